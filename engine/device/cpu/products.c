// SPDX-License-Identifier: Apache-2.0
// What is one matrix product: dense layers, and 1x1 convolutions of stride 1 over plain images, [N*H*W,C] x
// [C,F]. Nothing is reordered: weights, gradients and images are used where they lie.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "gemm.h"
#include "simd.h"
#include "sums.h"

// y[rows, f] = x[rows, c] · w[c, f]; rows are all dimensions but the last
typedef struct product {
    int64_t rows, c, f;
} product;

static product product_of(const op_operand *x, const op_operand *y)
{
    const int64_t c = x->shape.dim[x->shape.rank - 1], f = y->shape.dim[y->shape.rank - 1];
    return (product){cpu_elements_of(x) / c, c, f};
}

// A dense layer's weights may lie [f, c].
static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static gemm forward_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->in[0], &q->out[0]);
    return (gemm){.m = p.rows,
                  .n = p.f,
                  .k = p.c,
                  .b_transposed = is_turned(q),
                  .relu = q->attr.act != HR_ACT_NONE,
                  .workers = device->workers};
}

// dx[rows, c] = dy[rows, f] · w[c, f]ᵀ
static gemm bwd_data_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->out[0], &q->in[0]);
    return (gemm){.m = p.rows, .n = p.c, .k = p.f, .b_transposed = !is_turned(q), .workers = device->workers};
}

// dw[c, f] = x[rows, c]ᵀ · dy[rows, f], or turned dw[f, c] = dy[rows, f]ᵀ · x[rows, c], where the sums of dy are not
// those of the right side.
static gemm bwd_weights_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->in[0], &q->in[1]);
    const bool turned = is_turned(q);
    return (gemm){.m = turned ? p.f : p.c,
                  .n = turned ? p.c : p.f,
                  .k = p.rows,
                  .a_transposed = true,
                  .sum_b = q->out_count > 1 && !turned,
                  .workers = device->workers};
}

static uint64_t forward_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = forward_gemm(device, q);
    return gemm_scratch_bytes(&g);
}

static void run_forward(const cpu_run *r)
{
    const gemm g = forward_gemm(r->device, r->query);
    const gemm_operands o = {r->in[0], r->in[1], r->query->in_count > 2 ? r->in[2] : NULL, r->out[0], NULL};
    gemm_run(&g, &o, r->workspace);
    const float ceiling = cpu_ceiling(r->query->attr.act);
    if (g.relu && !isinf(ceiling)) {
        cpu_rectify(r->device, r->out[0], g.m * g.n, ceiling);
    }
}

// ---- data gradient of few channels ------------------------------------------------------------------------
// Up to four channels fill no register, but four lanes hold one pixel's dx: w is turned to [f][4] once, then
// each dy is spread over the lanes. Eight pixels at a time, so that sums need not wait for one another.

typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));

enum { FEW_CHANNELS = 4, PIXELS_AT_ONCE = 8, FEW_GRAIN_PIXELS = 512 };

typedef struct few_job {
    const float *dy;
    const f32x4 *w; // [f]
    float *dx;
    int64_t c, f;
} few_job;

CPU_INLINE void store_few(float *dx, const float *lanes, int64_t c)
{
    for (int64_t k = 0; k < c; k++) {
        dx[k] = lanes[k];
    }
}

CPU_INLINE void few_pixels(const few_job *j, int64_t p, const int count, const int64_t c)
{
    f32x4 sum[PIXELS_AT_ONCE] = {{0}};
    for (int64_t k = 0; k < j->f; k++) {
        const f32x4 w = j->w[k];
        for (int i = 0; i < count; i++) {
            sum[i] += w * j->dy[(p + i) * j->f + k];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < count; i++) {
        store_few(j->dx + (p + i) * c, (const float *)&sum[i], c);
    }
}

CPU_INLINE void few_pixels_of(const few_job *j, int64_t begin, int64_t end, const int64_t c)
{
    int64_t p = begin;
    for (; p + PIXELS_AT_ONCE <= end; p += PIXELS_AT_ONCE) {
        few_pixels(j, p, PIXELS_AT_ONCE, c);
    }
    for (; p < end; p++) {
        few_pixels(j, p, 1, c);
    }
}

// A colour image's three are known here, so that a pixel is stored and not copied by a call.
CPU_HOT static void few_range(const few_job *shared, int64_t begin, int64_t end)
{
    const few_job j = *shared;
    if (j.c == 3) {
        few_pixels_of(&j, begin, end, 3);
    } else {
        few_pixels_of(&j, begin, end, j.c);
    }
}

static void few_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    few_range(argument, begin, end);
}

static void run_few(const cpu_run *r, const gemm *g)
{
    float *turned = r->workspace;
    const float *w = r->in[1];
    memset(turned, 0, (size_t)g->k * FEW_CHANNELS * sizeof *turned);
    for (int64_t c = 0; c < g->n; c++) {
        for (int64_t f = 0; f < g->k; f++) {
            turned[f * FEW_CHANNELS + c] = w[c * g->k + f];
        }
    }
    const few_job j = {r->in[0], (const f32x4 *)turned, r->out[0], g->n, g->k};
    workers_for_pieces(r->device->workers, g->m, FEW_GRAIN_PIXELS, few_body, &j);
}

static bool is_few(const gemm *g)
{
    return g->n <= FEW_CHANNELS && g->m >= FEW_GRAIN_PIXELS && g->b_transposed;
}

static uint64_t bwd_data_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = bwd_data_gemm(device, q);
    return is_few(&g) ? (uint64_t)g.k * FEW_CHANNELS * sizeof(float) : gemm_scratch_bytes(&g);
}

static void run_bwd_data(const cpu_run *r)
{
    const gemm g = bwd_data_gemm(r->device, r->query);
    if (is_few(&g)) {
        run_few(r, &g);
    } else {
        const gemm_operands o = {r->in[0], r->in[1], NULL, r->out[0], NULL};
        gemm_run(&g, &o, r->workspace);
    }
}

// ---- weight gradient --------------------------------------------------------------------------------------

static bool sums_apart(const op_query *q)
{
    return q->out_count > 1 && is_turned(q);
}

static uint64_t bwd_weights_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = bwd_weights_gemm(device, q);
    const uint64_t product_bytes = gemm_scratch_bytes(&g);
    const uint64_t sum_bytes = sums_apart(q) ? sums_scratch_bytes(device->workers, g.m) : 0;
    return product_bytes > sum_bytes ? product_bytes : sum_bytes;
}

static void run_bwd_weights(const cpu_run *r)
{
    const gemm g = bwd_weights_gemm(r->device, r->query);
    const bool turned = is_turned(r->query);
    const gemm_operands o = {r->in[turned ? 1 : 0], r->in[turned ? 0 : 1], NULL, r->out[0],
                             g.sum_b ? r->out[1] : NULL};
    gemm_run(&g, &o, r->workspace);
    if (sums_apart(r->query)) {
        sums_columns(g.workers, r->in[1], g.k, g.m, r->out[1], r->workspace);
    }
}

// ---- which convolutions are products ----------------------------------------------------------------------

static bool is_plain(const op_operand *t)
{
    return t->layout == HR_LAYOUT_PLAIN;
}

static bool is_pointwise(const cpu_device *device, const op_query *q)
{
    (void)device;
    const op_attr *a = &q->attr;
    return a->kernel_h == 1 && a->kernel_w == 1 && a->stride_h == 1 && a->stride_w == 1 && a->groups == 1 &&
           a->pad_top == 0 && a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0 &&
           is_plain(&q->in[0]) && is_plain(&q->in[1]) && is_plain(&q->out[0]);
}

const cpu_impl cpu_dense = {.name = "tiles", .workspace = forward_workspace, .run = run_forward};
const cpu_impl cpu_dense_bwd_data = {.name = "tiles", .workspace = bwd_data_workspace, .run = run_bwd_data};
const cpu_impl cpu_dense_bwd_weights = {
    .name = "tiles", .workspace = bwd_weights_workspace, .run = run_bwd_weights};
const cpu_impl cpu_pointwise = {
    .name = "tiles", .fits = is_pointwise, .workspace = forward_workspace, .run = run_forward};
const cpu_impl cpu_pointwise_bwd_data = {
    .name = "tiles", .fits = is_pointwise, .workspace = bwd_data_workspace, .run = run_bwd_data};
const cpu_impl cpu_pointwise_bwd_weights = {
    .name = "tiles", .fits = is_pointwise, .workspace = bwd_weights_workspace, .run = run_bwd_weights};
