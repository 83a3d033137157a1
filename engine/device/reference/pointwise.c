// SPDX-License-Identifier: Apache-2.0
// Input and read-back, activations, sums and products element by element.
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "kernels.h"

void reference_input(const reference_call *call)
{
    const uint64_t count = call->out_count[0];
    const hr_dtype dtype = (hr_dtype)call->query->out[0].dtype;
    const void *from = call->io->slot[call->query->attr.slot];
    if (!dtype_is_real(dtype) || dtype == HR_F64) {
        memcpy(call->out[0], from, count * dtype_bytes(dtype));
        return;
    }
    double *x = call->out[0];
    const float *floats = from;
    const uint16_t *halves = from;
    for (uint64_t i = 0; i < count; i++) {
        x[i] = dtype == HR_F16    ? (double)float_of_f16(halves[i])
               : dtype == HR_BF16 ? (double)float_of_bf16(halves[i])
                                  : (double)floats[i];
    }
}

void reference_cross(const reference_call *call)
{
    const hr_dtype dtype = (hr_dtype)call->query->out[0].dtype;
    const bool whole = !dtype_is_real(dtype);
    memcpy(call->out[0], call->in[0], call->out_count[0] * (whole ? dtype_bytes(dtype) : sizeof(double)));
}

void reference_order(const reference_call *call)
{
    (void)call; // one lane runs everything in order
}

void reference_read(const reference_call *call)
{
    if (call->query->attr.slot == READ_CORRECT) {
        call->io->correct += *(const int32_t *)call->in[0];
    } else if (call->query->attr.slot == READ_FINITE) {
        reference_read_finite(call);
    } else if (call->query->attr.slot == READ_LOSS) {
        const op_attr *a = &call->query->attr;
        step_io_add_loss(call->io, a, step_io_weight(call->io, a), *(const double *)call->in[0]);
    }
}

static double positive(double v)
{
    return v > 0.0 ? v : 0.0;
}

// The largest value that an activation lets through.
static double ceiling_of(int32_t act)
{
    return act == HR_ACT_RELU6 ? 6.0 : HUGE_VAL;
}

static void rectify(const double *x, double *y, uint64_t count, double ceiling)
{
    for (uint64_t i = 0; i < count; i++) {
        y[i] = positive(x[i] > ceiling ? ceiling : x[i]);
    }
}

void reference_act(const reference_call *call)
{
    const int32_t act = call->query->attr.act;
    if (act == HR_ACT_RELU || act == HR_ACT_RELU6) {
        rectify(call->out[0], call->out[0], call->out_count[0], ceiling_of(act));
    } else if (act == HR_ACT_GELU) {
        reference_gelu_tanh(call->out[0], call->out_count[0]);
    }
}

void reference_relu(const reference_call *call)
{
    rectify(call->in[0], call->out[0], call->out_count[0], HUGE_VAL);
}

void reference_relu6(const reference_call *call)
{
    rectify(call->in[0], call->out[0], call->out_count[0], ceiling_of(HR_ACT_RELU6));
}

// A second gradient is added to the first.
static void rectify_bwd(const reference_call *call, double ceiling)
{
    const double *y = call->in[0], *dy = call->in[1], *more = call->query->in_count > 2 ? call->in[2] : NULL;
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        const double sum = more == NULL ? dy[i] : dy[i] + more[i];
        dx[i] = y[i] > 0.0 && (y[i] < ceiling || ceiling == HUGE_VAL) ? sum : 0.0;
    }
}

void reference_relu_bwd(const reference_call *call)
{
    rectify_bwd(call, HUGE_VAL);
}

void reference_relu6_bwd(const reference_call *call)
{
    rectify_bwd(call, ceiling_of(HR_ACT_RELU6));
}

void reference_add(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = a[i] + b[i];
    }
    reference_act(call);
}

void reference_multiply(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = a[i] * b[i];
    }
}

void reference_multiply_bwd(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1], *dy = call->in[2];
    double *da = call->out[0], *db = call->out[1];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        const double g = dy[i];
        da[i] = g * b[i];
        db[i] = g * a[i];
    }
}

// A factor's number: its sample's, where samples have their own, and its channel's.
void reference_multiply_broadcast(const reference_call *call)
{
    const hr_shape *b = &call->query->in[1].shape;
    const double *a = call->in[0], *factor = call->in[1];
    const uint64_t channels = (uint64_t)b->dim[b->rank - 1], groups = call->in_count[1] / channels;
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = a[i] * factor[i / (call->out_count[0] / groups) * channels + i % channels];
    }
}

void reference_scale(const reference_call *call)
{
    const op_query *q = call->query;
    const double factor =
        (q->attr.scale == 0.0 ? 1.0 : q->attr.scale) * (q->in_count > 1 ? *(const double *)call->in[1] : 1.0);
    const double *x = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = factor * x[i];
    }
}
