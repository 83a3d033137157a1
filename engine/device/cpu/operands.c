// SPDX-License-Identifier: Apache-2.0
// What kernels ask of their operands: types and sizes.
#include "cpu.h"

bool cpu_has_type(const op_query *q, hr_dtype dtype)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        if ((k < q->in_count ? &q->in[k] : &q->out[k - q->in_count])->dtype == dtype) {
            return true;
        }
    }
    return false;
}

bool cpu_has_half(const op_query *q)
{
    return cpu_has_type(q, HR_F16) || cpu_has_type(q, HR_BF16);
}

bool cpu_all_bf16(const cpu_device *device, const op_query *q)
{
    (void)device;
    return !cpu_has_type(q, HR_F16) && !cpu_has_type(q, HR_F32);
}

cpu_image cpu_image_of(const op_operand *operand)
{
    const int64_t *d = operand->shape.dim;
    if (operand->layout != HR_LAYOUT_BLOCKED) {
        return (cpu_image){d[0], d[1], d[2], d[3], 1};
    }
    int64_t blocks = (d[3] + OP_BLOCK_CHANNELS - 1) / OP_BLOCK_CHANNELS;
    return (cpu_image){d[0] * blocks, d[1], d[2], OP_BLOCK_CHANNELS, blocks};
}

int64_t cpu_floats_of(const op_operand *operand)
{
    uint64_t bytes = 0, padding_bytes = 0;
    (void)operand_bytes(operand, &bytes, &padding_bytes);
    return (int64_t)(bytes / dtype_bytes((hr_dtype)operand->dtype));
}

int64_t cpu_elements_of(const op_operand *operand)
{
    uint64_t elements = 0;
    (void)shape_elements(&operand->shape, &elements);
    return (int64_t)elements;
}
