// SPDX-License-Identifier: Apache-2.0
// Trials of dense layers and lookups with whole-number weights: odd depths and widths, blocks of int4 that are not whole, tables.
#include "base/quantize.h"
#include "numeric/op_draw.h"
#include "ops/held.h"

op_trial op_case_quantize(hr_op op, op_draw *d)
{
    op_trial t = op_trial_make(op, (op_attr){0});
    const int64_t rows = op_draw_int(d, 0, 1) == 0 ? op_draw_int(d, 1, 8) : op_draw_int(d, 120, 300);
    const int64_t columns = op_draw_int(d, 1, 6 * d->size);
    const bool turned = op_draw_int(d, 0, 1) == 1;
    t.query.attr.flags = turned ? OP_FLAG_TRANSPOSE : 0;
    op_draw_in(d, &t, turned ? DIMS(columns, rows) : DIMS(rows, columns), -1.0, 1.0);
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

static int64_t groups_of(int64_t count)
{
    return (int64_t)quantize_int4_groups((uint64_t)count);
}

static int64_t pitch_of(int64_t count)
{
    return (int64_t)quantize_int4_pitch((uint64_t)count);
}

// Weights [in,out] or, of a table, [out,in], with scales for each of `out`.
static void draw_weights(op_draw *d, op_trial *t, int64_t in, int64_t out)
{
    const bool turned = (t->query.attr.flags & OP_FLAG_TRANSPOSE) != 0;
    const bool four = t->query.op == HR_OP_DENSE_INT4_WEIGHTS || t->query.op == HR_OP_EMBEDDING_INT4;
    if (four) {
        const int64_t *scales = turned ? DIMS(out, groups_of(in)) : DIMS(groups_of(in), out);
        draw_whole(d, t, HR_U8, turned ? DIMS(out, pitch_of(in)) : DIMS(in, pitch_of(out)), 0, 255);
        op_draw_in(d, t, scales, 0.01, 0.1);
        draw_whole(d, t, HR_I8, scales, -8, 7);
    } else {
        draw_whole(d, t, HR_I8, turned ? DIMS(out, in) : DIMS(in, out), -127, 127);
        op_draw_in(d, t, DIMS(out), 50.0, 500.0);
    }
}

op_trial op_case_quantized(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.flags = op_draw_int(d, 0, 1) == 1 ? OP_FLAG_TRANSPOSE : 0});
    const int64_t in = op_draw_int(d, 1, d->size > 8 ? 200 : 4 * d->size);
    const int64_t out = d->wide ? op_draw_channels(d, 1) : op_draw_int(d, 1, 4 * d->size);
    op_draw_in(d, &t, op_draw_rows(d, (uint32_t)op_draw_int(d, 2, 4), in, dims), -1.0, 1.0);
    draw_weights(d, &t, in, out);
    if (op_draw_int(d, 0, 1) == 1) {
        op_draw_in(d, &t, DIMS(out), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// Some numbers lie outside the table.
op_trial op_case_looked_up(hr_op op, op_draw *d)
{
    const int64_t entries = op_draw_int(d, 1, 6 * d->size);
    const int64_t features = op_draw_int(d, 0, 2) == 0 ? op_draw_int(d, 120, 300) : op_draw_int(d, 1, 40);
    const op_attr attr = {.flags = OP_FLAG_TRANSPOSE, .count = (int32_t)features};
    op_trial t = op_trial_make(op, attr);
    op_draw_numbers(d, &t, op_draw_int(d, 0, 1) == 0 ? DIMS(op_draw_int(d, 1, 9)) : DIMS(2, 3), -1, entries);
    draw_weights(d, &t, features, entries);
    op_trial_infer_out(&t, 1);
    return t;
}

// Weights of two or four dimensions, of odd sizes, some larger than what a kernel makes at once.
op_trial op_case_held(hr_op op, op_draw *d)
{
    op_trial t = op_trial_make(op, (op_attr){.rule = (int32_t)op_draw_int(d, HELD_INT8, HELD_NF4)});
    const int64_t columns = op_draw_int(d, 0, 7) == 0 ? 1025 : op_draw_int(d, 1, 4 * d->size);
    const int64_t *const dims = op_draw_int(d, 0, 1) == 0 ? DIMS(op_draw_int(d, 1, 140), columns)
                                                          : DIMS(3, 2, op_draw_int(d, 1, 30), columns);
    hr_shape shape = {.rank = 0};
    while (shape.rank < OP_MAX_RANK && dims[shape.rank] > 0) {
        shape.dim[shape.rank] = dims[shape.rank];
        shape.rank++;
    }
    held_parts parts;
    held_parts_of(&shape, (held_as)t.query.attr.rule, &parts);
    const bool whole = t.query.attr.rule == HELD_INT8;
    draw_whole(d, &t, (hr_dtype)parts.part[0].dtype, parts.part[0].shape.dim, whole ? -127 : 0,
               whole ? 127 : 255);
    op_draw_in(d, &t, parts.part[1].shape.dim, 0.01, 90.0);
    if (parts.count > 2) {
        draw_whole(d, &t, HR_I8, parts.part[2].shape.dim, -8, 7);
    }
    op_trial_add_out(&t, HR_F32, shape.dim);
    return t;
}
