// SPDX-License-Identifier: Apache-2.0
#include "ops/relative.h"

#include <math.h>

#include "ops/rows.h"

static bool is_shifted(const op_attr *a)
{
    return a->rule == OP_RELATIVE_WINDOW && (a->pad_top > 0 || a->pad_left > 0);
}

relative_shape relative_shape_of(const op_attr *attr, const hr_shape *table)
{
    const int64_t area = (int64_t)attr->kernel_h * attr->kernel_w;
    const bool window = attr->rule == OP_RELATIVE_WINDOW;
    return (relative_shape){.windows = is_shifted(attr) ? (int64_t)attr->stride_h * attr->stride_w : 1,
                            .heads = table->dim[1],
                            .queries = window ? area : attr->kernel_h,
                            .keys = window ? area : attr->kernel_w};
}

// ---- buckets ----------------------------------------------------------------------------------------------------

static int32_t buckets_of(const op_attr *a, int64_t rows)
{
    return (int32_t)((a->flags & OP_FLAG_CAUSAL) != 0 ? rows : rows / 2);
}

// As T5 counts: in float32, cut off.
static int32_t bucket_of(const op_attr *a, int32_t buckets, int32_t distance)
{
    const int32_t single = buckets / 2;
    if (distance < single) {
        return distance;
    }
    const float share = logf((float)distance / (float)single) / (float)log(a->base / single);
    const int32_t bucket = single + (int32_t)(share * (float)(buckets - single));
    return bucket < buckets ? bucket : buckets - 1;
}

// The smallest distance of a bucket lies between those of its neighbours.
int32_t relative_buckets(const op_attr *attr, int64_t rows, int32_t from[RELATIVE_MAX_BUCKETS])
{
    const int32_t buckets = buckets_of(attr, rows);
    for (int32_t k = 0; k < buckets; k++) {
        int32_t low = k == 0 ? 0 : from[k - 1], high = (int32_t)attr->base + 1;
        while (low < high) {
            const int32_t middle = low + (high - low) / 2;
            if (bucket_of(attr, buckets, middle) >= k) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        from[k] = low;
    }
    return buckets;
}

static int64_t row_of_distance(const op_attr *a, const int32_t *from, int32_t buckets, int64_t behind)
{
    const bool causal = (a->flags & OP_FLAG_CAUSAL) != 0;
    const int64_t distance = behind < 0 ? -behind : causal ? 0 : behind;
    int32_t bucket = buckets - 1;
    while (bucket > 0 && distance < from[bucket]) {
        bucket--;
    }
    return bucket + (!causal && behind > 0 ? buckets : 0);
}

int64_t relative_row(const op_attr *attr, const int32_t *from, int32_t buckets, int64_t i, int64_t j)
{
    if (attr->rule == OP_RELATIVE_BUCKETS) {
        return row_of_distance(attr, from, buckets, j - i);
    }
    const int64_t w = attr->kernel_w, down = i / w - j / w, right = i % w - j % w;
    return (down + attr->kernel_h - 1) * (2 * w - 1) + right + w - 1;
}

// ---- shifted windows --------------------------------------------------------------------------------------------

// The last window of a side ends with the `shift` pixels that came from the other end.
static bool is_torn(int64_t window, int64_t windows, int64_t size, int64_t shift, int64_t a, int64_t b)
{
    return shift > 0 && window == windows - 1 && (a < size - shift) != (b < size - shift);
}

bool relative_is_hidden(const op_attr *attr, int64_t window, int64_t i, int64_t j)
{
    if (!is_shifted(attr)) {
        return false;
    }
    const int64_t w = attr->kernel_w, down = window / attr->stride_w, right = window % attr->stride_w;
    return is_torn(down, attr->stride_h, attr->kernel_h, attr->pad_top, i / w, j / w) ||
           is_torn(right, attr->stride_w, w, attr->pad_left, i % w, j % w);
}

// ---- rows -------------------------------------------------------------------------------------------------------

static hr_status check_buckets(const op_attr *a, int64_t rows, hr_err *err)
{
    const int32_t buckets = buckets_of(a, rows), single = buckets / 2, farthest = INT32_MAX / 2;
    if (buckets < 2 || buckets > RELATIVE_MAX_BUCKETS || (a->flags & OP_FLAG_CAUSAL ? 0 : rows % 2) != 0) {
        return HR_FAIL(err, MODEL, "a relative bias needs 2 to %d buckets a direction, had %lld rows",
                       RELATIVE_MAX_BUCKETS, (long long)rows);
    }
    if (a->base <= single || a->base > farthest) {
        return HR_FAIL(err, MODEL, "a relative bias of %d buckets needs a distance above %d, had %.0f",
                       buckets, single, a->base);
    }
    return HR_OK;
}

static hr_status check_window(const op_attr *a, int64_t rows, hr_err *err)
{
    const int64_t distances = (2 * (int64_t)a->kernel_h - 1) * (2 * (int64_t)a->kernel_w - 1);
    if (rows != distances) {
        return HR_FAIL(err, MODEL, "windows of %dx%d have %lld distances, the table has %lld rows",
                       a->kernel_h, a->kernel_w, (long long)distances, (long long)rows);
    }
    if (a->pad_top < 0 || a->pad_top >= a->kernel_h || a->pad_left < 0 || a->pad_left >= a->kernel_w ||
        a->stride_h < 1 || a->stride_w < 1) {
        return HR_FAIL(err, MODEL, "windows of %dx%d are shifted by less than their size, had %dx%d",
                       a->kernel_h, a->kernel_w, a->pad_top, a->pad_left);
    }
    return HR_OK;
}

static hr_status relative_bias_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                     size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *table = &in[0].shape;
    if (table->rank != 2 || a->kernel_h < 1 || a->kernel_w < 1) {
        return HR_FAIL(err, MODEL, "a relative bias needs a table [rows, heads], had %u dimensions",
                       table->rank);
    }
    HR_TRY((a->rule == OP_RELATIVE_BUCKETS ? check_buckets : check_window)(a, table->dim[0], err));
    const relative_shape s = relative_shape_of(a, table);
    out[0] = in[0];
    out[0].shape = shape_of(3, (const int64_t[]){s.windows * s.heads, s.queries, s.keys});
    return HR_OK;
}

static uint64_t relative_bias_bwd_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

const op_row op_row_RELATIVE_BIAS = {
    .name = "relative_bias",
    .traits = {COST_EMBEDDING, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = relative_bias_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RELATIVE_BIAS_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_RELATIVE_BIAS_BWD = {
    .name = "relative_bias_bwd",
    .traits = {COST_EMBEDDING, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flops = relative_bias_bwd_flops,
    .in_place = -1,
};
