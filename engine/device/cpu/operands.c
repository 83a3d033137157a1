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
    return (cpu_image){d[0], d[1], d[2], d[3]};
}

int64_t cpu_elements_of(const op_operand *operand)
{
    uint64_t elements = 0;
    (void)shape_elements(&operand->shape, &elements);
    return (int64_t)elements;
}
