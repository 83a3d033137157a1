// SPDX-License-Identifier: Apache-2.0
#include "gates.h"

#include "cudnn.h"

enum { KEYS_STEP = 128, DATA_CENTRE_BLACKWELL = 10 };

static bool keys_are_odd(const cudnn_case *c)
{
    return c->keys % KEYS_STEP != 0;
}

static bool is_single(const cudnn_case *c)
{
    return c->queries == 1 && c->keys == 1;
}

static bool is_fixed_order_on_blackwell(const cudnn_case *c)
{
    return c->deterministic && c->compute_major == DATA_CENTRE_BLACKWELL;
}

static bool is_float32_and_uneven(const cudnn_case *c)
{
    return c->is_float32 && !c->pads_evenly;
}

static bool is_data_of_odd_channels_and_uneven(const cudnn_case *c)
{
    return c->of_data && c->odd_channels && !c->pads_evenly;
}

#define SURFACE "cudnn-frontend, include/cudnn_frontend/node/sdpa_support_surface.h"

static const cudnn_gate gates[] = {
    {.first = 91000,
     .last = 91001,
     .forward = true,
     .backward = true,
     .fault = "attention of two-byte types has known bugs, mended in 9.10.2",
     .source = SURFACE ", validate_sdpa_support_surface and validate_sdpa_backward_support_surface"},
    {.first = 0,
     .last = 91500,
     .backward = true,
     .meets = keys_are_odd,
     .fault = "a gradient over keys that are no multiple of 128 reads beyond its memory when a CUDA graph is "
              "replayed, mended in 9.15.1",
     .source = "cudnn-frontend, release notes of 1.16.0; scaled_dot_product_flash_attention.h masks instead"},
    {.first = 0,
     .last = UINT64_MAX,
     .backward = true,
     .meets = is_single,
     .fault = "a gradient of one query and one key is not supported",
     .source = SURFACE "; cuDNN, release notes of 9.18.1, known issues"},
    {.first = 0,
     .last = 91799,
     .backward = true,
     .meets = is_fixed_order_on_blackwell,
     .fault = "a gradient in a fixed order is not supported on Blackwell before 9.18.0",
     .source = SURFACE},
    {.kind = GATE_CONVOLUTION,
     .first = 0,
     .last = UINT64_MAX,
     .backward = true,
     .meets = is_float32_and_uneven,
     .fault = "a gradient of float32 is wrong where an image is padded by other widths behind than before",
     .source =
         "numeric/cuda_engines on an H100, cuDNN 9.19: eng1, eng18 and eng20 of weights, eng50 of data"},
    {.kind = GATE_CONVOLUTION,
     .first = 0,
     .last = UINT64_MAX,
     .backward = true,
     .meets = is_data_of_odd_channels_and_uneven,
     .fault = "a gradient of an image is wrong where it is padded by other widths behind than before and "
              "channels are "
              "no multiple of eight",
     .source = "numeric/cuda_engines on an H100, cuDNN 9.19: eng50 of float16, 5 channels in, 21 out"},
};

const cudnn_gate *cudnn_gates(uint32_t *count)
{
    *count = (uint32_t)(sizeof gates / sizeof *gates);
    return gates;
}

const cudnn_gate *cudnn_gate_of(const cudnn_case *c)
{
    for (size_t k = 0; k < sizeof gates / sizeof *gates; k++) {
        const cudnn_gate *g = &gates[k];
        if (c->kind == g->kind && c->version >= g->first && c->version <= g->last &&
            (c->backward ? g->backward : g->forward) && (g->meets == NULL || g->meets(c))) {
            return g;
        }
    }
    return NULL;
}

static bool is_attention(const op_query *q)
{
    return q->op == HR_OP_ATTENTION || q->op == HR_OP_ATTENTION_BWD;
}

// A transposed convolution is computed as the gradient of data, and its own gradient of data as a convolution.
static bool is_gradient(const op_query *q)
{
    return q->op == HR_OP_ATTENTION_BWD || q->op == HR_OP_CONV2D_BWD_DATA ||
           q->op == HR_OP_CONV2D_BWD_WEIGHTS || q->op == HR_OP_CONV2D_TRANSPOSE ||
           q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
}

static bool is_of_data(const op_query *q)
{
    return q->op == HR_OP_CONV2D_BWD_DATA || q->op == HR_OP_CONV2D_TRANSPOSE;
}

// Of HWIO.
static bool has_odd_channels(const hr_shape *weights)
{
    enum { IN = 2, OUT = 3, VECTOR = 8 };
    return weights->rank > OUT && (weights->dim[IN] % VECTOR != 0 || weights->dim[OUT] % VECTOR != 0);
}

hr_status cudnn_gate_query(const cuda_device *device, const op_query *q, hr_err *err)
{
    HR_TRY(cudnn_need(err));
    const op_attr *a = &q->attr;
    const cudnn_case c = {.kind = is_attention(q) ? GATE_ATTENTION : GATE_CONVOLUTION,
                          .version = cudnn.cudnnGetVersion(),
                          .compute_major = cuda_device_traits(device)->compute_major,
                          .backward = is_gradient(q),
                          .deterministic = cuda_device_deterministic(device),
                          .queries = q->in[0].shape.dim[1],
                          .keys = q->in[1].shape.dim[1],
                          .of_data = is_of_data(q),
                          .odd_channels = has_odd_channels(&q->in[1].shape),
                          .is_float32 = q->in[0].dtype == HR_F32,
                          .pads_evenly = a->pad_top == a->pad_bottom && a->pad_left == a->pad_right};
    const cudnn_gate *g = cudnn_gate_of(&c);
    return g == NULL
               ? HR_OK
               : HR_FAIL(err, DEVICE, "%s: of cuDNN %llu.%llu.%llu %s", op_name((hr_op)q->op),
                         (unsigned long long)(c.version / 10000), (unsigned long long)(c.version / 100 % 100),
                         (unsigned long long)(c.version % 100), g->fault);
}
