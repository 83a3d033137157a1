// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients: one kernel each (kernels/activation.cu), a second one for the tanh form of GELU.
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/activation_args.h"

enum { THREADS = 256, PACK_BYTES = 16, SUM_OPERANDS = 3 };

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    const bool by_tanh = (q->attr.flags & OP_FLAG_TANH) != 0;
    const char *op = !by_tanh ? op_name((hr_op)q->op) : q->op == HR_OP_GELU ? "gelu_tanh" : "gelu_tanh_bwd";
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s%s", op, q->in_count == SUM_OPERANDS ? "sum_" : "",
                   cuda_suffix(cuda_type(q)));
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    const op_operand *t = &r->query->in[0];
    const activation_args a = {.x = (const void *)r->in[0],
                               .dy = (const void *)r->in[1],
                               .more = (const void *)r->in[2],
                               .out = (void *)r->out[0],
                               .count = (int64_t)cuda_elements(t),
                               .slope = (float)r->query->attr.rate};
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)t->dtype);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, per_thread, THREADS), &a,
                       sizeof a, err);
}

#define ROW(OP, text)                                                                                        \
    {                                                                                                        \
        .op = HR_OP_##OP, .types = CUDA_REAL, .name = (text), .fits = cuda_one_type, .module = "activation", \
        .kernel = name_of, .run = run                                                                        \
    }

static const cuda_impl impls[] = {
    ROW(RELU, "relu"),
    ROW(RELU_BWD, "relu_bwd"),
    ROW(RELU6, "relu6"),
    ROW(RELU6_BWD, "relu6_bwd"),
    ROW(GELU, "gelu"),
    ROW(GELU_BWD, "gelu_bwd"),
    ROW(SILU, "silu"),
    ROW(SILU_BWD, "silu_bwd"),
    ROW(TANH, "tanh"),
    ROW(TANH_BWD, "tanh_bwd"),
    ROW(SIGMOID, "sigmoid"),
    ROW(SIGMOID_BWD, "sigmoid_bwd"),
    ROW(HARD_SIGMOID, "hard_sigmoid"),
    ROW(HARD_SIGMOID_BWD, "hard_sigmoid_bwd"),
    ROW(HARD_SWISH, "hard_swish"),
    ROW(HARD_SWISH_BWD, "hard_swish_bwd"),
    ROW(LEAKY_RELU, "leaky_relu"),
    ROW(LEAKY_RELU_BWD, "leaky_relu_bwd"),
    ROW(SOFTPLUS, "softplus"),
    ROW(SOFTPLUS_BWD, "softplus_bwd"),
    ROW(MISH, "mish"),
    ROW(MISH_BWD, "mish_bwd"),
};

const cuda_family cuda_family_activation = CUDA_FAMILY(impls);
