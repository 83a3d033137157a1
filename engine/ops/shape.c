// SPDX-License-Identifier: Apache-2.0
// Types, shapes and sizes of operands, and what the rows of several families share.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "ops/rows.h"

static const struct {
    const char *name;
    uint64_t bytes;
} dtype_rows[HR_DTYPE_COUNT] = {
    [HR_F32] = {"float32", 4},   [HR_F64] = {"float64", 8}, [HR_F16] = {"float16", 2},
    [HR_BF16] = {"bfloat16", 2}, [HR_I32] = {"int32", 4},   [HR_U8] = {"uint8", 1},
    [HR_I8] = {"int8", 1},
};

uint64_t dtype_bytes(hr_dtype dtype)
{
    return dtype_rows[dtype].bytes;
}

const char *dtype_name(hr_dtype dtype)
{
    return dtype_rows[dtype].name;
}

bool dtype_is_real(hr_dtype dtype)
{
    return dtype == HR_F32 || dtype == HR_F64 || dtype == HR_F16 || dtype == HR_BF16;
}

const char *layout_name(hr_layout layout)
{
    static const char *const names[] = {
        [HR_LAYOUT_PLAIN] = "plain", [HR_LAYOUT_PADDED] = "padded", [HR_LAYOUT_LIBRARY] = "library"};
    return names[layout];
}

hr_shape shape_of(uint32_t rank, const int64_t *dim)
{
    hr_shape s = {.rank = rank};
    memcpy(s.dim, dim, rank * sizeof *dim);
    return s;
}

bool shape_equal(const hr_shape *a, const hr_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

bool shape_elements(const hr_shape *shape, uint64_t *elements)
{
    uint64_t product = 1;
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (shape->dim[k] < 1 || !hr_mul_bytes(product, (uint64_t)shape->dim[k], &product)) {
            *elements = 0;
            return false;
        }
    }
    *elements = product;
    return true;
}

static int64_t rounded_up(int64_t count, int64_t step)
{
    return (count + step - 1) / step * step;
}

// What the last dimension is in memory.
int64_t operand_pitch(const op_operand *t)
{
    const int64_t columns = t->shape.rank == 0 ? 1 : t->shape.dim[t->shape.rank - 1];
    return t->layout == HR_LAYOUT_PADDED ? rounded_up(columns, OP_PAD_ELEMENTS) : columns;
}

bool operand_bytes(const op_operand *t, uint64_t *bytes, uint64_t *padding_bytes)
{
    uint64_t elements = 0;
    uint64_t plain = 0;
    *bytes = *padding_bytes = 0;
    if (!shape_elements(&t->shape, &elements) ||
        !hr_mul_bytes(elements, dtype_bytes((hr_dtype)t->dtype), &plain)) {
        return false;
    }
    *bytes = plain;
    if (t->shape.rank == 0) {
        return true;
    }
    const uint64_t columns = (uint64_t)t->shape.dim[t->shape.rank - 1];
    if (!hr_mul_bytes(plain / columns, (uint64_t)operand_pitch(t), bytes)) {
        return false;
    }
    *padding_bytes = *bytes - plain;
    return true;
}

const char *shape_text(const hr_shape *shape, char *text, size_t size)
{
    size_t used = 0;
    if (size > 0) {
        text[0] = '\0';
    }
    for (uint32_t k = 0; k < shape->rank && used < size; k++) {
        int n = snprintf(text + used, size - used, k == 0 ? "%lld" : "x%lld", (long long)shape->dim[k]);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

uint64_t op_out_elements(const op_query *q, unsigned k)
{
    uint64_t elements = 0;
    (void)shape_elements(&q->out[k].shape, &elements);
    return elements;
}

uint64_t op_in_elements(const op_query *q, unsigned k)
{
    uint64_t elements = 0;
    (void)shape_elements(&q->in[k].shape, &elements);
    return elements;
}

uint64_t op_no_flops(const op_query *q)
{
    (void)q;
    return 0;
}

uint32_t op_wide_dtype(uint32_t dtype)
{
    return dtype == HR_F64 ? HR_F64 : HR_F32;
}

hr_status op_shape_like_first(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)attr, (void)in_count, (void)err;
    for (size_t k = 0; k < out_count; k++) {
        out[k] = in[0];
    }
    return HR_OK;
}

int64_t op_reach(int32_t kernel, int32_t gap)
{
    return ((int64_t)kernel - 1) * ((int64_t)gap + 1) + 1;
}

int64_t op_window_count(int64_t in, int64_t reach, int32_t stride, int32_t pad_before, int32_t pad_after)
{
    int64_t span = in + pad_before + pad_after - reach;
    return span < 0 || stride < 1 ? 0 : span / stride + 1;
}
