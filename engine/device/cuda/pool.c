// SPDX-License-Identifier: Apache-2.0
// Pooling: kernels of our own, a pack of channels per thread.
#include <math.h>
#include <stdio.h>

#include "cuda_device.h"
#include "kernels/pool_args.h"

enum { PACK_BYTES = 16, GRID_Y_MAX = 65535, WARP = 32, PLACES_MAX = 1 << 30 };

// Of a pooling that normalises what it reads.
enum { GAMMA = 1, BETA, MEAN, VARIANCE };

static bool is_normalised(const op_query *q)
{
    return q->op == HR_OP_MAX_POOL && q->in_count > GAMMA;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s%s_%s", op_name((hr_op)q->op),
                   is_normalised(q) ? "_normalised" : "", cuda_suffix(cuda_type(q)));
}

// Places of an image and channels are counted in 32 bits; images are of one type, indices are bytes.
static bool fits(const cuda_device *device, const op_query *q)
{
    (void)device;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        uint64_t pixels = 1;
        for (uint32_t n = 1; n + 1 < t->shape.rank; n++) {
            pixels *= (uint64_t)t->shape.dim[n];
        }
        const bool channels = is_normalised(q) && k >= GAMMA && k <= VARIANCE;
        const bool suits =
            channels ? t->dtype == HR_F32 : t->dtype == (uint32_t)cuda_type(q) || t->dtype == HR_U8;
        if (!suits || pixels >= PLACES_MAX || t->shape.dim[t->shape.rank - 1] >= PLACES_MAX) {
            return false;
        }
    }
    return true;
}

static uint32_t lanes_of(const op_query *q, int64_t channels)
{
    const uint32_t lanes = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)cuda_type(q));
    return channels % lanes == 0 ? lanes : 1;
}

// What all of them are given. `result` is what threads walk over.
static pool_args args_of(const op_query *q, const op_operand *image, const op_operand *pooled,
                         const op_operand *result)
{
    const int64_t channels = image->shape.dim[3];
    const uint32_t lanes = lanes_of(q, channels);
    return (pool_args){.packs = (int64_t)cuda_elements(result) / lanes,
                       .height = (int32_t)image->shape.dim[1],
                       .width = (int32_t)image->shape.dim[2],
                       .channels = (int32_t)channels,
                       .pooled_height = pooled->shape.rank == 4 ? (int32_t)pooled->shape.dim[1] : 1,
                       .pooled_width = pooled->shape.rank == 4 ? (int32_t)pooled->shape.dim[2] : 1,
                       .kernel_h = q->attr.kernel_h,
                       .kernel_w = q->attr.kernel_w,
                       .stride_h = q->attr.stride_h,
                       .stride_w = q->attr.stride_w,
                       .pad_top = q->attr.pad_top,
                       .pad_left = q->attr.pad_left,
                       .padding = (q->attr.flags & OP_FLAG_PADDING) != 0,
                       .vectors = lanes > 1};
}

static hr_status launch(const cuda_run *r, const pool_args *a, hr_err *err)
{
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a->packs, 1, POOL_THREADS), a,
                       sizeof *a, err);
}

static hr_status run_forward(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    pool_args a = args_of(q, &q->in[0], &q->out[0], &q->out[0]);
    a.x = (const void *)r->in[0];
    a.out = (void *)r->out[0];
    a.index_out = q->out_count > 1 ? (uint8_t *)r->out[1] : NULL;
    if (is_normalised(q)) {
        a.gamma = (const float *)r->in[GAMMA];
        a.beta = (const float *)r->in[BETA];
        a.mean = (const float *)r->in[MEAN];
        a.variance = (const float *)r->in[VARIANCE];
        a.epsilon = (float)q->attr.epsilon;
        a.floor = q->attr.act == HR_ACT_NONE ? -INFINITY : 0.0f;
        a.ceiling = q->attr.act == HR_ACT_RELU6 ? 6.0f : INFINITY;
    }
    return launch(r, &a, err);
}

static hr_status run_backward(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const uint32_t dy = q->in_count - 1u;
    pool_args a = args_of(q, &q->out[0], &q->in[dy], &q->out[0]);
    a.dy = (const void *)r->in[dy];
    a.out = (void *)r->out[0];
    if (q->op == HR_OP_MAX_POOL_BWD) {
        a.x = (const void *)r->in[0];
        a.y = (const void *)r->in[1];
    } else if (q->op == HR_OP_MAX_POOL_BWD_INDEX) {
        a.index = (const uint8_t *)r->in[0];
    }
    return launch(r, &a, err);
}

// A block is an image and as many packs as threads stand side by side; below one another they share its pixels.
static hr_status run_global(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    pool_args a = args_of(q, &q->in[0], &q->out[0], &q->out[0]);
    const uint32_t lanes = lanes_of(q, a.channels), packs = (uint32_t)a.channels / lanes;
    const int64_t images = q->in[0].shape.dim[0];
    a.x = (const void *)r->in[0];
    a.out = (void *)r->out[0];
    a.across = 1;
    while (a.across < WARP && (uint32_t)a.across < packs) {
        a.across *= 2;
    }
    const cuda_grid grid = {.blocks_x = (packs + (uint32_t)a.across - 1) / (uint32_t)a.across,
                            .blocks_y = (uint32_t)(images < GRID_Y_MAX ? images : GRID_Y_MAX),
                            .blocks_z = 1,
                            .threads = POOL_THREADS,
                            .shared_bytes = POOL_THREADS * lanes * (uint32_t)sizeof(float)};
    return cuda_launch(r, r->function, grid, &a, sizeof a, err);
}

#define ROW(OP, function)                                                                                    \
    {                                                                                                        \
        .op = HR_OP_##OP, .types = CUDA_REAL, .name = "gather", .fits = fits, .module = "pool",              \
        .kernel = name_of, .run = (function)                                                                 \
    }

static const cuda_impl impls[] = {
    ROW(MAX_POOL, run_forward),
    ROW(MAX_POOL_BWD, run_backward),
    ROW(MAX_POOL_BWD_INDEX, run_backward),
    ROW(AVG_POOL, run_forward),
    ROW(AVG_POOL_BWD, run_backward),
    ROW(GLOBAL_AVG_POOL, run_global),
    ROW(GLOBAL_AVG_POOL_BWD, run_backward),
};

const cuda_family cuda_family_pool = CUDA_FAMILY(impls);
