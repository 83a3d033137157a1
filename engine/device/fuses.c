// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

bool device_fuses(void *context, hr_op op, hr_act act)
{
    (void)context;
    static const bool rectifies[HR_OP_COUNT] = {
        [HR_OP_CONV2D] = true,     [HR_OP_DENSE] = true,           [HR_OP_ADD] = true,
        [HR_OP_BATCH_NORM] = true, [HR_OP_BATCH_NORM_EVAL] = true, [HR_OP_BATCH_NORM_APPLY] = true};
    return (act == HR_ACT_RELU || act == HR_ACT_RELU6) && rectifies[op];
}
