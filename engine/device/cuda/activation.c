// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/activation_args.h"

enum { THREADS = 256, PACK_BYTES = 16 };

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const op_operand *t = &r->query->in[0];
    const activation_args a = {
        .x = (const void *)r->in[0], .out = (void *)r->out[0], .count = (int64_t)cuda_elements(t)};
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)t->dtype);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, per_thread, THREADS), &a,
                       sizeof a, err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_RELU,
     .types = CUDA_REAL,
     .name = "relu",
     .module = "activation",
     .kernel = name_of,
     .run = run_forward},
};

const cuda_family cuda_family_activation = CUDA_FAMILY(impls);
