// SPDX-License-Identifier: Apache-2.0
// Dropout as ops/dropout.h draws it. Key and first sample of a step come from device memory; a redrawn backward is the
// forward kernel on dy.
#include "ops/dropout.h"

#include <stdio.h>
#include <string.h>

#include "cuda_device.h"
#include "kernels/dropout_args.h"

enum { THREADS = 256, PACK_BYTES = 16 };

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    const char *kernel = q->op == HR_OP_DROPOUT_BWD_MASK ? "dropout_bwd_mask" : "dropout";
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", kernel, cuda_suffix(cuda_type(q)));
}

void cuda_dropout_scalars(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const dropout_draw d = dropout_begin(&q->attr, io->seed, io->update);
    const dropout_scalars s = {.first_sample = io->first_sample, .key = {d.key.word[0], d.key.word[1]}};
    _Static_assert(sizeof s <= CUDA_SCALAR_BYTES, "a slot holds the scalars");
    memcpy(slot, &s, sizeof s);
}

static uint32_t lanes_of(const op_query *q)
{
    return PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)q->out[0].dtype);
}

static hr_status run_drawn(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t samples = q->out[0].shape.dim[0], of_block = DROPOUT_LANES / (int64_t)lanes_of(q);
    const int64_t per_sample = (int64_t)cuda_elements(&q->out[0]) / samples;
    const int64_t blocks = (per_sample + DROPOUT_BLOCK - 1) / DROPOUT_BLOCK;
    const dropout_draw d = dropout_begin(&q->attr, 0, 0); // rate and scale are any step's
    const dropout_args a = {.x = (const void *)r->in[0],
                            .out = (void *)r->out[0],
                            .mask = q->out_count > 1 ? (uint8_t *)r->out[1] : NULL,
                            .scalars = (const dropout_scalars *)r->scalars,
                            .samples = samples,
                            .per_sample = per_sample,
                            .pieces = divisor_of(blocks * of_block),
                            .threshold = d.threshold,
                            .scale = (float)d.scale};
    const uint64_t pieces = (uint64_t)(samples * blocks * of_block);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, pieces, 1, THREADS), &a, sizeof a, err);
}

static hr_status run_masked(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const dropout_mask_args a = {.mask = (const uint8_t *)r->in[0],
                                 .dy = (const void *)r->in[1],
                                 .dx = (void *)r->out[0],
                                 .count = (int64_t)cuda_elements(&q->out[0]),
                                 .scale = (float)(1.0 / (1.0 - q->attr.rate))};
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.count, lanes_of(q), THREADS), &a,
                       sizeof a, err);
}

// ---- of whole samples -----------------------------------------------------------------------------------------

static bool is_path_gradient(const op_query *q)
{
    return q->op == HR_OP_DROP_PATH_BWD;
}

// Factors are float32 whatever x is.
static bool path_fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    const op_operand *x = &q->in[is_path_gradient(q) ? 1 : 0];
    const op_operand *factors = is_path_gradient(q) ? &q->in[0] : &q->out[1];
    return x->dtype == q->out[0].dtype && x->dtype == cuda_type(q) && factors->dtype == HR_F32;
}

static int64_t path_lanes(const op_query *q)
{
    const int64_t per_sample = (int64_t)cuda_elements(&q->out[0]) / q->out[0].shape.dim[0];
    return per_sample % lanes_of(q) == 0 ? lanes_of(q) : 1;
}

static void path_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "drop_path_%s_%s", path_lanes(q) > 1 ? "wide" : "narrow",
                   cuda_suffix(cuda_type(q)));
}

static hr_status run_path(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const bool backward = is_path_gradient(q);
    const dropout_draw d = dropout_begin(&q->attr, 0, 0); // rate and scale are any step's
    const int64_t count = (int64_t)cuda_elements(&q->out[0]) / path_lanes(q);
    const drop_path_args a = {.x = (const void *)r->in[backward ? 1 : 0],
                              .out = (void *)r->out[0],
                              .drawn = backward ? NULL : (float *)r->out[1],
                              .factors = backward ? (const float *)r->in[0] : NULL,
                              .scalars = backward ? NULL : (const dropout_scalars *)r->scalars,
                              .count = count,
                              .vectors = divisor_of(count / q->out[0].shape.dim[0]),
                              .threshold = d.threshold,
                              .scale = (float)d.scale};
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)count, 1, THREADS), &a, sizeof a,
                       err);
}

static const cuda_impl impls[] = {
    {.op = HR_OP_DROP_PATH,
     .types = CUDA_REAL,
     .name = "drop_path",
     .fits = path_fits,
     .module = "dropout",
     .kernel = path_name,
     .scalars = cuda_dropout_scalars,
     .run = run_path},
    {.op = HR_OP_DROP_PATH_BWD,
     .types = CUDA_REAL,
     .name = "drop_path_bwd",
     .fits = path_fits,
     .module = "dropout",
     .kernel = path_name,
     .run = run_path},
    {.op = HR_OP_DROPOUT,
     .types = CUDA_REAL,
     .name = "dropout",
     .fits = cuda_one_type,
     .module = "dropout",
     .kernel = name_of,
     .scalars = cuda_dropout_scalars,
     .run = run_drawn},
    {.op = HR_OP_DROPOUT_BWD,
     .types = CUDA_REAL,
     .name = "dropout",
     .fits = cuda_one_type,
     .module = "dropout",
     .kernel = name_of,
     .scalars = cuda_dropout_scalars,
     .run = run_drawn},
    {.op = HR_OP_DROPOUT_BWD_MASK,
     .types = CUDA_REAL,
     .name = "dropout_bwd_mask",
     .fits = cuda_one_type,
     .module = "dropout",
     .kernel = name_of,
     .run = run_masked},
};

const cuda_family cuda_family_dropout = CUDA_FAMILY(impls);
