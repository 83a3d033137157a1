// SPDX-License-Identifier: Apache-2.0
// Cases of matmul, softmax and attention: lengths on both sides of a tile, keys as many as queries or not, one
// head or several, heads of any width, with and without mask.
#include "numeric/op_draw.h"
#include "ops/relative.h"

// [..., rows, columns] of `rank` dimensions over the same leading ones.
static const int64_t *matrices(int64_t dims[OP_MAX_RANK], int64_t rank, const int64_t leading[2],
                               int64_t rows, int64_t columns)
{
    for (int64_t k = 0; k < OP_MAX_RANK; k++) {
        dims[k] = k + 2 < rank ? leading[k] : 0;
    }
    dims[rank - 2] = rows;
    dims[rank - 1] = columns;
    return dims;
}

op_trial op_case_matmul(hr_op op, op_draw *d)
{
    const int64_t rank = op_draw_int(d, 2, 4), leading[2] = {op_draw_int(d, 1, 3), op_draw_int(d, 1, 3)};
    const int64_t most = 3 * d->size;
    const int64_t m = op_draw_int(d, 1, most), n = op_draw_int(d, 1, most), k = op_draw_int(d, 1, most);
    const bool turned = op_draw_int(d, 0, 1) == 1, scaled = op_draw_int(d, 0, 1) == 1;
    int64_t dims[OP_MAX_RANK];
    op_trial t =
        op_trial_make(op, (op_attr){.flags = turned ? OP_FLAG_TRANSPOSE : 0, .scale = scaled ? 0.3 : 0.0});
    op_draw_in(d, &t, matrices(dims, rank, leading, m, k), -1.0, 1.0);
    op_draw_in(d, &t, matrices(dims, rank, leading, turned ? n : k, turned ? k : n), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_softmax(hr_op op, op_draw *d)
{
    const bool causal = op_draw_int(d, 0, 1) == 1;
    const int64_t rank = op_draw_int(d, causal ? 2 : 1, 4);
    const int64_t leading[2] = {op_draw_int(d, 1, 3), op_draw_int(d, 1, 2)};
    const int64_t rows = op_draw_int(d, 2, 2 * d->size), columns = op_draw_int(d, 2, d->size * d->size);
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.flags = causal ? OP_FLAG_CAUSAL : 0});
    op_draw_in(d, &t, rank == 1 ? DIMS(columns) : matrices(dims, rank, leading, rows, columns), -4.0, 4.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// At least two keys and queries: the weight of a single key is 1 and has no gradient to compare.
op_trial op_case_attention(hr_op op, op_draw *d)
{
    const int64_t length = d->size * d->size / 2, heads = op_draw_int(d, 1, 3),
                  samples = op_draw_int(d, 1, 2);
    const int64_t queries = op_draw_int(d, 2, length);
    const int64_t keys = op_draw_int(d, 0, 1) == 1 ? queries : op_draw_int(d, 2, length);
    const bool whole = d->size > 3 && op_draw_int(d, 0, 2) == 0; // heads of whole registers
    const int64_t width = heads * (whole ? 16 : op_draw_int(d, 1, 2 * d->size));
    const bool causal = op == HR_OP_ATTENTION && op_draw_int(d, 0, 1) == 1;
    op_attr attr = {.heads = (int32_t)heads, .flags = causal ? OP_FLAG_CAUSAL : 0};
    if (op != HR_OP_ATTENTION_VALUES && op_draw_int(d, 0, 2) == 0) {
        attr.scale = (double)op_draw_int(d, 1, 10) / 10.0;
    }
    if (op == HR_OP_ATTENTION && op_draw_int(d, 0, 1) == 1) {
        attr.rate = (double)op_draw_int(d, 1, 5) / 10.0;
        attr.salt = (uint64_t)op_draw_int(d, 0, INT64_MAX - 1);
    }
    op_trial t = op_trial_make(op, attr);
    if (op == HR_OP_ATTENTION_VALUES) {
        op_draw_in(d, &t, DIMS(samples, heads, queries, keys), -1.0, 1.0);
    } else {
        op_draw_in(d, &t, DIMS(samples, queries, width), -2.0, 2.0);
        op_draw_in(d, &t, DIMS(samples, keys, width), -2.0, 2.0);
    }
    if (op != HR_OP_ATTENTION_SCORES) {
        op_draw_in(d, &t, DIMS(samples, keys, width), -1.0, 1.0);
    }
    op_trial_infer_out(&t, op == HR_OP_ATTENTION ? 2 : 1);
    return t;
}

op_trial op_case_rotary(hr_op op, op_draw *d)
{
    const int64_t heads = op_draw_int(d, 1, 3), half = op_draw_int(d, 1, 8 * d->size);
    op_trial t =
        op_trial_make(op, (op_attr){.heads = (int32_t)heads, .base = op_draw_int(d, 0, 1) ? 1e4 : 5e5});
    op_draw_in(d, &t, DIMS(op_draw_int(d, 1, 2), op_draw_int(d, 1, d->size * d->size), 2 * half * heads),
               -2.0, 2.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Distances in buckets, or places of windows that were shifted or not.
op_trial op_case_relative(hr_op op, op_draw *d)
{
    const bool window = op_draw_int(d, 0, 1) == 1;
    const int64_t most = window ? d->size : 2 * d->size, heads = op_draw_int(d, 1, 3);
    const int32_t h = (int32_t)op_draw_int(d, 1, most), w = (int32_t)op_draw_int(d, 1, most);
    op_attr a = {.rule = window ? OP_RELATIVE_WINDOW : OP_RELATIVE_BUCKETS, .kernel_h = h, .kernel_w = w};
    int64_t rows = (int64_t)(2 * h - 1) * (2 * w - 1);
    if (window) {
        a.stride_h = (int32_t)op_draw_int(d, 1, 3);
        a.stride_w = (int32_t)op_draw_int(d, 1, 3);
        a.pad_top = (int32_t)op_draw_int(d, 0, h - 1);
        a.pad_left = (int32_t)op_draw_int(d, 0, w - 1);
    } else {
        rows = 2 * op_draw_int(d, 2, 8);
        a.flags = op_draw_int(d, 0, 1) == 1 ? OP_FLAG_CAUSAL : 0;
        a.base = (double)op_draw_int(d, rows, 4 * rows);
    }
    op_trial t = op_trial_make(op, a);
    op_draw_in(d, &t, DIMS(rows, heads), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}
