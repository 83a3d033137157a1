// SPDX-License-Identifier: Apache-2.0
#include "device/roofline.h"

#include <math.h>

#include "device/cost.h"

static double first_known(double a, double b)
{
    return a > 0 ? a : b;
}

// Products run on tensor cores where the card has them for this type; the rest on its ordinary units.
static double flops_per_second(const roofline *r, hr_dtype dtype, bool product)
{
    const hr_card *card = &r->card;
    switch (dtype) {
    case HR_F16:
        return first_known(product ? card->float16_flops : card->vector_float16_flops, card->float32_flops);
    case HR_BF16:
        return first_known(product ? card->bfloat16_flops : card->vector_bfloat16_flops, card->float32_flops);
    case HR_F64:
        return first_known(product ? 0 : card->vector_float64_flops, card->float64_flops);
    case HR_F32:
        return first_known(product && r->tf32 ? card->tf32_flops : 0, card->float32_flops);
    case HR_I32:
    case HR_U8:
    case HR_DTYPE_COUNT:
        break;
    }
    return card->float32_flops;
}

static double ratio(double amount, double per_second)
{
    return per_second > 0 ? amount / per_second : 0;
}

static double seconds_of(const roofline *r, const program *p, const instr *i)
{
    const hr_card *card = &r->card;
    if (i->lane != HR_LANE_COMPUTE && i->op != HR_OP_ADVANCE) { // which stays on the card, whatever its lane
        return card->launch_seconds + ratio((double)i->bytes_moved, card->link_bytes_per_second);
    }
    const bool product = cost_is_product(cost_family_of(i));
    const double peak = flops_per_second(r, cost_type_of(p, i), product);
    const double memory = ratio((double)i->bytes_moved, card->memory_bytes_per_second);
    return card->launch_seconds + fmax(ratio((double)i->flops, peak), memory);
}

uint64_t roofline_ns(const roofline *r, const program *p, const instr *i)
{
    return cost_family_of(i) == COST_NOTHING ? 0 : (uint64_t)llround(seconds_of(r, p, i) * 1e9);
}
