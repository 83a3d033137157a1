// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

bool device_fuses(void *context, hr_op op, hr_act act)
{
    (void)context;
    return (act == HR_ACT_RELU || act == HR_ACT_RELU6) && op_row_of(op)->traits.acts == OP_ACTS;
}

bool device_masks(hr_op op)
{
    return op == HR_OP_SGD || op == HR_OP_MOMENTUM || op == HR_OP_RMSPROP || op == HR_OP_ADAM ||
           op == HR_OP_LION;
}
