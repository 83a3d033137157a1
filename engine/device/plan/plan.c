// SPDX-License-Identifier: Apache-2.0
// The plan device: the card file alone, no arithmetic, no memory. Addresses are pure numbers with the card's
// granularity, workspaces are *estimated* by one formula (estimate_workspace), and time is *simulated* from the
// card (card_time.h). The answers are the same on every machine.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "device/card_time.h"
#include "device/device.h"

// Without a card: what a CUDA driver hands out.
enum { UNDRESSED_GRANULARITY_BYTES = 2 * 1024 * 1024 };

// What cuDNN 9.19's first choice asks for a 3×3 convolution on sm_90, whatever the shape: tables of the implicit
// matrix product forward, the same plus the counters of a split sum for the weight gradient.
enum { PRODUCT_TABLE_BYTES = 131, SPLIT_COUNTERS_BYTES = 64, SPLITS = 2 };

typedef struct plan_context {
    bool dressed;
    card_time speed; // when not dressed, of the card `unlimited`
} plan_context;

typedef struct plan_program {
    const program *source; // borrowed until unload
} plan_program;

// ---- target ---------------------------------------------------------------------------------------------------

// Implicit matrix products need no patch matrix: only tables, and for the weight gradient the float32 partial sums
// of a product split in two (3×3, 64 to 64 channels: 295,107 bytes, as measured). 1×1 and depthwise kernels need
// none.
static uint64_t estimate_workspace(const op_query *q)
{
    const bool for_weights = q->op == HR_OP_CONV2D_BWD_WEIGHTS;
    if (q->op != HR_OP_CONV2D && q->op != HR_OP_CONV2D_BWD_DATA && !for_weights) {
        return 0;
    }
    const hr_shape *weights = for_weights ? &q->out[0].shape : &q->in[1].shape;
    const bool depthwise = q->attr.groups > 1 && weights->dim[2] == 1;
    if (depthwise || (weights->dim[0] == 1 && weights->dim[1] == 1)) {
        return 0;
    }
    uint64_t bytes = 0;
    if (for_weights) {
        (void)shape_elements(weights, &bytes);
        (void)hr_mul_bytes(bytes, SPLITS * sizeof(float), &bytes);
        (void)hr_add_bytes(bytes, SPLIT_COUNTERS_BYTES, &bytes);
    }
    (void)hr_add_bytes(bytes, PRODUCT_TABLE_BYTES, &bytes);
    return bytes;
}

static hr_status require_plain(const op_query *q, const op_operand *operands, uint32_t count, hr_err *err)
{
    for (uint32_t k = 0; k < count; k++) {
        if (operands[k].layout != HR_LAYOUT_PLAIN && operands[k].layout != HR_LAYOUT_PADDED) {
            return HR_FAIL(err, DEVICE, "%s on the plan device needs plain layouts, had %s",
                           op_name((hr_op)q->op), layout_name((hr_layout)operands[k].layout));
        }
    }
    return HR_OK;
}

static hr_status target_answers(void *context, const op_query *q, uint64_t workspace_limit,
                                target_answer *out, hr_err *err)
{
    (void)context;
    memset(out, 0, sizeof *out);
    HR_TRY(require_plain(q, q->in, q->in_count, err));
    HR_TRY(require_plain(q, q->out, q->out_count, err));
    out->workspace_bytes = estimate_workspace(q);
    if (out->workspace_bytes > workspace_limit) { // then the second choice, which does without
        out->workspace_bytes = 0;
        out->behind = 1;
    }
    out->impl = op_needs_kernel((hr_op)q->op) ? "estimate" : NULL;
    return HR_OK;
}

static bool absorbs(void *context, target_absorption what, hr_op op)
{
    (void)context;
    return what == TARGET_MASKS && device_masks(op);
}

static void plan_target(void *context, hr_target *out)
{
    const char name[] = "plan"; // the estimates ask nothing of the card
    *out = (hr_target){.name = device_plan.name,
                       .key = hash64(name, sizeof name, 0),
                       .context = context,
                       .ask = target_answers,
                       .fuses = device_fuses,
                       .absorbs = absorbs};
}

// ---- time -----------------------------------------------------------------------------------------------------

static hr_time_basis plan_time_basis(void *context)
{
    return card_time_basis(&((const plan_context *)context)->speed);
}

static uint64_t plan_duration_ns(void *context, const program *p, const instr *i)
{
    return card_time_ns(&((const plan_context *)context)->speed, p, i);
}

static uint64_t plan_issue_ns(void *context, const program *p, const instr *i)
{
    return card_issue_ns(&((const plan_context *)context)->speed, p, i);
}

static double plan_spread(void *context, const instr *i)
{
    (void)context;
    return card_time_spread(i);
}

// ---- device ---------------------------------------------------------------------------------------------------

static hr_status plan_open(const device_options *options, void **context, hr_err *err)
{
    plan_context *plan = hr_calloc(1, sizeof *plan);
    *context = plan;
    if (plan == NULL) {
        return HR_FAIL(err, NOMEM, "the plan device needs %zu bytes", sizeof *plan);
    }
    plan->dressed = options->card != NULL;
    const hr_status status =
        card_time_open(&plan->speed, options->card, options->tf32, options->capture, err);
    if (status != HR_OK) {
        hr_free(plan);
        *context = NULL;
    }
    return status;
}

static void plan_close(void *context)
{
    hr_free(context);
}

static void plan_isa(void *context, char *text, uint32_t size)
{
    const plan_context *plan = context;
    (void)snprintf(text, size, "%s", plan->dressed ? plan->speed.card.name : "no card");
}

static hr_status plan_memory(void *context, uint64_t capacity_bytes, bool numbers, backing *out, hr_err *err)
{
    (void)numbers; // it has nothing else
    const plan_context *plan = context;
    const uint64_t card_bytes = plan->dressed ? plan->speed.card.granularity_bytes : 0;
    return backing_numbers_open(capacity_bytes, card_bytes > 0 ? card_bytes : UNDRESSED_GRANULARITY_BYTES,
                                out, err);
}

static hr_status plan_load(void *context, const program *p, void **kernels, hr_err *err)
{
    (void)context;
    plan_program *loaded = hr_calloc(1, sizeof *loaded);
    *kernels = loaded;
    if (loaded == NULL) {
        return HR_FAIL(err, NOMEM, "the plan device needs %zu bytes for a program", sizeof *loaded);
    }
    loaded->source = p;
    return HR_OK;
}

static void plan_unload(void *context, void *kernels)
{
    (void)context;
    hr_free(kernels);
}

static hr_status plan_run(void *context, void *kernels, uint32_t instr_index, void *const *address,
                          step_io *io, hr_err *err)
{
    (void)context, (void)address, (void)err;
    const program *p = ((const plan_program *)kernels)->source;
    if (p->instrs[instr_index].op == HR_OP_READ) {
        io->loss = (double)NAN; // nothing was computed
        io->correct = 0;
    }
    return HR_OK;
}

static hr_status plan_copy_in(void *context, uint64_t address, const void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)address, (void)host, (void)bytes, (void)err;
    return HR_OK;
}

static hr_status plan_copy_out(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)address, (void)err;
    memset(host, 0, bytes);
    return HR_OK;
}

const device_ops device_plan = {
    .name = "plan",
    .line = "no arithmetic: the card file alone says bytes and time, the same on every machine",
    .simulated = true,
    .open = plan_open,
    .close = plan_close,
    .target = plan_target,
    .isa = plan_isa,
    .memory = plan_memory,
    .load = plan_load,
    .unload = plan_unload,
    .run = plan_run,
    .time_basis = plan_time_basis,
    .duration_ns = plan_duration_ns,
    .card_times = true,
    .issue_ns = plan_issue_ns,
    .spread = plan_spread,
    .copy_in = plan_copy_in,
    .copy_out = plan_copy_out,
};
