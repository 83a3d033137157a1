// SPDX-License-Identifier: Apache-2.0
// Trials of dense layers with whole-number weights: odd depths and widths, blocks of int4 that are not whole.
#include "base/quantize.h"
#include "numeric/op_draw.h"

op_trial op_case_quantize(hr_op op, op_draw *d)
{
    op_trial t = op_trial_make(op, (op_attr){0});
    const int64_t rows = op_draw_int(d, 0, 1) == 0 ? op_draw_int(d, 1, 8) : op_draw_int(d, 120, 300);
    op_draw_in(d, &t, DIMS(rows, op_draw_int(d, 1, 6 * d->size)), -1.0, 1.0);
    op_trial_infer_out(&t, op == HR_OP_QUANTIZE_INT8 ? 2 : 3);
    return t;
}

static void draw_whole(op_draw *d, op_trial *t, hr_dtype dtype, const int64_t *dims, int64_t low,
                       int64_t high)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, dtype, dims);
    for (uint64_t n = 0; n < op_trial_in_count(t, k); n++) {
        t->in[k][n] = (double)op_draw_int(d, low, high);
    }
}

op_trial op_case_quantized(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){0});
    const int64_t in = op_draw_int(d, 1, d->size > 8 ? 200 : 4 * d->size);
    const int64_t out = d->wide ? op_draw_channels(d, 1) : op_draw_int(d, 1, 4 * d->size);
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)in);
    op_draw_in(d, &t, op_draw_rows(d, (uint32_t)op_draw_int(d, 2, 4), in, dims), -1.0, 1.0);
    if (op == HR_OP_DENSE_INT4_WEIGHTS) {
        draw_whole(d, &t, HR_U8, DIMS(in, (int64_t)quantize_int4_pitch((uint64_t)out)), 0, 255);
        op_draw_in(d, &t, DIMS(groups, out), 0.01, 0.1);
        draw_whole(d, &t, HR_I8, DIMS(groups, out), -8, 7);
    } else {
        draw_whole(d, &t, HR_I8, DIMS(in, out), -127, 127);
        op_draw_in(d, &t, DIMS(out), 50.0, 500.0);
    }
    if (op_draw_int(d, 0, 1) == 1) {
        op_draw_in(d, &t, DIMS(out), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}
