// SPDX-License-Identifier: Apache-2.0
// The workspace that PyTorch takes for a convolution (execution.as=pytorch). Its images and weights lie as N, C, H, W unless they
// are channels_last, and a bias is added behind it. It knows no limit: an engine whose workspace cannot be had is passed over.
#include "conv_spec.h"
#include "cudnn.h"
#include "device_impl.h"

static void lay(graph_tensor *t, bool channels_last)
{
    static const uint8_t orders[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}}; // of dimensions, the densest first
    int64_t stride = 1;
    for (uint8_t k = 0; k < t->rank; k++) {
        const uint8_t at = orders[channels_last][k];
        t->stride[at] = stride;
        stride *= t->dim[at];
    }
}

// Of a transposed one, whose result PyTorch cuts. Those of a convolution are alike by now (program/passes/pads.c).
static void pad_alike(int64_t *before, int64_t *after, int64_t *size)
{
    *before = *before < 0 ? 0 : *before;
    *after = *after < 0 ? 0 : *after;
    const int64_t least = *before < *after ? *before : *after;
    *size += *before + *after - 2 * least;
    *before = *after = least;
}

void conv_pytorch_spec(const op_query *q, const pytorch_images *images, graph_spec *spec)
{
    op_query alone = *q;
    uint8_t result = 0;
    if (q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_TRANSPOSE) {
        alone.in_count = 2;
    }
    alone.attr.act = HR_ACT_NONE;
    conv_spec(&alone, spec, &result);
    spec->as_named = true;
    graph_node *n = &spec->node[0];
    const bool transposed = q->op == HR_OP_CONV2D_TRANSPOSE || q->op == HR_OP_CONV2D_TRANSPOSE_BWD_DATA ||
                            q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
    for (int32_t k = 0; transposed && k < n->spatial; k++) {
        pad_alike(&n->pad_before[k], &n->pad_after[k], &spec->tensor[CONV_X].dim[2 + k]);
    }
    for (uint32_t k = 0; k < spec->tensor_count; k++) {
        lay(&spec->tensor[k], images->channels_last);
    }
}

hr_status conv_pytorch_workspace(cuda_device *device, const op_query *q, const pytorch_images *images,
                                 uint64_t limit_bytes, target_answer *out, hr_err *err)
{
    graph_spec spec;
    graph_choice choice;
    conv_pytorch_spec(q, images, &spec);
    HR_TRY(graph_choose_named(device, &spec, images->tf32, limit_bytes, &choice, err));
    *out = (target_answer){.workspace_bytes = choice.workspace_bytes};
    if (choice.none) {
        out->instead = cudnn_shows_compiled() ? TARGET_INSTEAD_ENGINE : TARGET_INSTEAD_DRIVER;
    } else {
        out->impl = target_impl_name(CUDA_CUDNN, choice.name);
    }
    return HR_OK;
}
