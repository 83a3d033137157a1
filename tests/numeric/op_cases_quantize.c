// SPDX-License-Identifier: Apache-2.0
#include "numeric/op_draw.h"

// Values within the range, beyond its ends, and zeros; a range may lie on one side of zero.
static void add_range(op_draw *d, op_trial *t)
{
    const uint32_t k = t->query.in_count;
    op_draw_in(d, t, DIMS(2), 0.0, 2.0);
    const int64_t side = op_draw_int(d, 0, 5);
    if (side < 2) {
        t->in[k][side] = 0.0;
    }
}

op_trial op_case_fake_quant(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){0});
    const int64_t features = op_draw_int(d, 0, 1) == 1 ? 64 : op_draw_int(d, 1, 20 * d->size);
    (void)op_draw_rows(d, (uint32_t)op_draw_int(d, 1, 4), features, dims);
    t.query.attr.count = op == HR_OP_FAKE_QUANT_WEIGHTS ? (int32_t)op_draw_int(d, 0, 1) : 0;
    t.query.attr.momentum = op == HR_OP_TRACK_RANGE && op_draw_int(d, 0, 2) > 0 ? 0.999 : 0.0;
    op_draw_in(d, &t, dims, -3.0, 3.0);
    if (op != HR_OP_FAKE_QUANT_WEIGHTS) {
        add_range(d, &t);
    }
    if (op == HR_OP_TRACK_RANGE) {
        op_trial_add_out(&t, HR_F64, DIMS(2));
    } else {
        op_trial_infer_out(&t, 1);
    }
    return t;
}
