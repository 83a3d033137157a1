// SPDX-License-Identifier: Apache-2.0
// What rows ask of their operands: types, sizes, the names of kernels for them.
#include "combine.h"
#include "cuda_device.h"

static const op_operand *operand_of(const op_query *q, uint32_t k)
{
    return k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
}

uint32_t cuda_type(const op_query *q)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const uint32_t dtype = operand_of(q, k)->dtype;
        if (dtype == HR_F16 || dtype == HR_BF16) {
            return dtype;
        }
    }
    return HR_F32;
}

bool cuda_one_type(const cuda_device *device, const op_query *q)
{
    (void)device;
    const uint32_t type = cuda_type(q);
    bool one = true;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const uint32_t dtype = operand_of(q, k)->dtype;
        one = one && (dtype == type || !dtype_is_real((hr_dtype)dtype));
    }
    return one;
}

uint64_t cuda_elements(const op_operand *t)
{
    uint64_t elements = 0;
    (void)shape_elements(&t->shape, &elements);
    return elements;
}

uint64_t cuda_bytes(const op_operand *t)
{
    uint64_t bytes = 0, padding_bytes = 0;
    (void)operand_bytes(t, &bytes, &padding_bytes);
    return bytes;
}

const char *cuda_suffix(uint32_t dtype)
{
    static const char *const suffixes[HR_DTYPE_COUNT] = {
        [HR_F32] = "f32", [HR_F64] = "f64", [HR_F16] = "f16", [HR_BF16] = "bf16",
        [HR_I32] = "i32", [HR_U8] = "u8",   [HR_I8] = "i8"};
    return suffixes[dtype];
}

cuda_around cuda_around_axes(const hr_shape *shape, int32_t axis, int32_t count)
{
    cuda_around a = {1, 1, 1};
    for (int32_t k = 0; k < (int32_t)shape->rank; k++) {
        int64_t *part = k < axis ? &a.outer : k < axis + count ? &a.middle : &a.inner;
        *part *= shape->dim[k];
    }
    return a;
}

float cuda_share_of(const op_attr *attr, int64_t middle)
{
    return (attr->flags & OP_FLAG_MEAN) != 0 ? (float)(1.0 / (double)middle) : 1.0F;
}
