// SPDX-License-Identifier: Apache-2.0
// What the passes are told: the same choice that load makes, without a kernel being made.
#include "headroom/units.h"

#include "conv_spec.h"
#include "device_impl.h"
#include "graph_library.h"

// Where no limit is set, TensorFlow's own (TF_CUDNN_WORKSPACE_LIMIT_IN_MB): cuDNN also knows engines that would take
// more than any card has.
static const uint64_t usual_limit_bytes = 4 * HR_GIB;

// Planners ask on threads of their own; one at a time.
static hr_status ask(void *context, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err)
{
    cuda_device *device = context;
    const cuda_impl *impl = NULL;
    *out = (target_answer){0};
    if (!op_needs_kernel((hr_op)q->op)) {
        return HR_OK;
    }
    pthread_mutex_lock(&device->asking);
    const uint64_t limit_bytes = workspace_limit == UINT64_MAX ? usual_limit_bytes : workspace_limit;
    hr_status status = cuda_pick_planned(device, q, limit_bytes, &impl, out, err);
    if (status == HR_OK) {
        status = cuda_say_instead(device, q, limit_bytes, impl, out, err);
    }
    pthread_mutex_unlock(&device->asking);
    return status;
}

// PyTorch's convolutions know no limit of their own.
static hr_status ask_pytorch(void *context, const op_query *q, const pytorch_images *images,
                             uint64_t workspace_limit, target_answer *out, hr_err *err)
{
    cuda_device *device = context;
    *out = (target_answer){0};
    if (!pytorch_asks_cudnn(q, images, device->traits.compute_major)) {
        return HR_OK;
    }
    pthread_mutex_lock(&device->asking);
    const hr_status status = conv_pytorch_workspace(device, q, images, workspace_limit, out, err);
    pthread_mutex_unlock(&device->asking);
    return status;
}

// cuBLASLt's GELU is the tanh form.
static bool fuses(void *context, hr_op op, hr_act act)
{
    return (act == HR_ACT_GELU && (op == HR_OP_DENSE || op == HR_OP_DENSE_BWD_DATA)) ||
           device_fuses(context, op, act);
}

static bool absorbs(void *context, target_absorption what, hr_op op)
{
    (void)context;
    switch (what) {
    case TARGET_ADDS:
        return op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_APPLY || op == HR_OP_RELU_BWD ||
               op == HR_OP_RELU6_BWD || op == HR_OP_LAYER_NORM_BWD || op == HR_OP_RMS_NORM_BWD ||
               op == HR_OP_DENSE || op == HR_OP_DENSE_BWD_DATA;
    case TARGET_GRADIENT:
        return op == HR_OP_SOFTMAX_XENT_STREAM;
    case TARGET_CUTS:
    case TARGET_GATES:
        return op == HR_OP_BATCH_NORM_BWD;
    case TARGET_NORMALISES:
        return op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_APPLY || op == HR_OP_MAX_POOL;
    case TARGET_UNPOOLS:
        return op == HR_OP_BATCH_NORM_BWD;
    case TARGET_MASKS:
        return device_masks(op);
    case TARGET_JOINS:
        return op == HR_OP_ATTENTION || op == HR_OP_ATTENTION_BWD;
    case TARGET_WIDENS:
        return op == HR_OP_DENSE_BWD_WEIGHTS;
    }
    return false;
}

static bool pads_rows(void *context, const op_query *q)
{
    (void)context;
    return cuda_pads_rows(q);
}

void cuda_fill_target(cuda_device *device, const char *name, hr_target *out)
{
    *out = (hr_target){.name = name,
                       .key = device->key,
                       .slow_to_ask =
                           !device->search, // then times are kept instead, and graphs without are counted
                       .very_slow = true,
                       .compute_major = device->traits.compute_major,
                       .compute_minor = device->traits.compute_minor,
                       .multiprocessors = device->traits.multiprocessors,
                       .context = device,
                       .ask = ask,
                       .ask_pytorch = graph_library_is_ready(device->graphs) ? ask_pytorch : NULL,
                       .fuses = fuses,
                       .absorbs = absorbs,
                       .pads_rows = pads_rows};
}
