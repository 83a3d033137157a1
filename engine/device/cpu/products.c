// SPDX-License-Identifier: Apache-2.0
// What is one matrix product: dense layers, and 1x1 convolutions of stride 1 over plain images, [N*H*W,C] x [C,F].
// Nothing is reordered: weights, gradients and images are used where they lie.
#include <string.h>

#include "cpu.h"
#include "gemm.h"
#include "simd.h"
#include "workers.h"

enum { SUM_CHUNK_ROWS = 64, SUM_GRAIN_FLOATS = 32768, LINE_BYTES = 64 };

// y[rows, f] = x[rows, c] · w[c, f]
typedef struct product {
    int64_t rows, c, f;
} product;

static product product_of(const op_operand *x, const op_operand *y)
{
    const int64_t c = x->shape.dim[x->shape.rank - 1], f = y->shape.dim[y->shape.rank - 1];
    return (product){cpu_elements_of(x) / c, c, f};
}

static gemm forward_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->in[0], &q->out[0]);
    return (gemm){
        .m = p.rows, .n = p.f, .k = p.c, .relu = q->attr.act == HR_ACT_RELU, .threads = device->threads};
}

// dx[rows, c] = dy[rows, f] · w[c, f]ᵀ
static gemm bwd_data_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->out[0], &q->in[0]);
    return (gemm){.m = p.rows, .n = p.c, .k = p.f, .b_transposed = true, .threads = device->threads};
}

// dw[c, f] = x[rows, c]ᵀ · dy[rows, f]
static gemm bwd_weights_gemm(const cpu_device *device, const op_query *q)
{
    const product p = product_of(&q->in[0], &q->in[1]);
    return (gemm){.m = p.c, .n = p.f, .k = p.rows, .a_transposed = true, .threads = device->threads};
}

static uint64_t forward_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = forward_gemm(device, q);
    return gemm_scratch_bytes(&g);
}

static void run_forward(const cpu_run *r)
{
    const gemm g = forward_gemm(r->device, r->query);
    gemm_run(&g, r->in[0], r->in[1], r->query->in_count > 2 ? r->in[2] : NULL, r->out[0], r->workspace);
}

static uint64_t bwd_data_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = bwd_data_gemm(device, q);
    return gemm_scratch_bytes(&g);
}

static void run_bwd_data(const cpu_run *r)
{
    const gemm g = bwd_data_gemm(r->device, r->query);
    gemm_run(&g, r->in[0], r->in[1], NULL, r->out[0], r->workspace);
}

// ---- bias gradient: sums of columns -------------------------------------------------------------------------------

typedef struct sum_job {
    const float *y;
    int64_t f;
    float *partial; // [worker][f], then one chunk's sums [worker][f]
    uint32_t threads;
} sum_job;

uint64_t cpu_column_sum_bytes(const cpu_device *device, int64_t f)
{
    const uint64_t bytes = (uint64_t)f * 2 * device->threads * sizeof(float);
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static int64_t sum_grain(int64_t f)
{
    return f >= SUM_GRAIN_FLOATS ? 1 : SUM_GRAIN_FLOATS / f;
}

CPU_INLINE void add_row(float *restrict sum, const float *restrict row, int64_t f)
{
    for (int64_t c = 0; c < f; c++) {
        sum[c] += row[c];
    }
}

// Sums of chunks, then the sum of those: long columns lose no digits.
CPU_HOT static void sum_rows(const sum_job *j, float *restrict total, float *restrict chunk, int64_t begin,
                             int64_t end)
{
    memset(total, 0, (size_t)j->f * sizeof *total);
    for (int64_t first = begin; first < end; first += SUM_CHUNK_ROWS) {
        const int64_t last = first + SUM_CHUNK_ROWS < end ? first + SUM_CHUNK_ROWS : end;
        memset(chunk, 0, (size_t)j->f * sizeof *chunk);
        for (int64_t r = first; r < last; r++) {
            add_row(chunk, j->y + r * j->f, j->f);
        }
        add_row(total, chunk, j->f);
    }
}

static void sum_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const sum_job *j = argument;
    sum_rows(j, j->partial + (int64_t)worker * j->f, j->partial + (int64_t)(j->threads + worker) * j->f,
             begin, end);
}

void cpu_column_sum(const cpu_device *device, const float *y, int64_t rows, int64_t f, float *sum,
                    float *scratch)
{
    const sum_job j = {y, f, scratch, device->threads};
    cpu_for(device->threads, rows, sum_grain(f), sum_body, &j);
    memcpy(sum, scratch, (size_t)f * sizeof *sum);
    for (uint32_t w = 1; w < cpu_for_ranges(device->threads, rows, sum_grain(f)); w++) {
        for (int64_t c = 0; c < f; c++) {
            sum[c] += scratch[(int64_t)w * f + c];
        }
    }
}

static uint64_t bwd_weights_workspace(const cpu_device *device, const op_query *q)
{
    const gemm g = bwd_weights_gemm(device, q);
    const uint64_t product_bytes = gemm_scratch_bytes(&g);
    const uint64_t sum_bytes = q->out_count > 1 ? cpu_column_sum_bytes(device, g.n) : 0;
    return product_bytes > sum_bytes ? product_bytes : sum_bytes;
}

static void run_bwd_weights(const cpu_run *r)
{
    const gemm g = bwd_weights_gemm(r->device, r->query);
    gemm_run(&g, r->in[0], r->in[1], NULL, r->out[0], r->workspace);
    if (r->query->out_count > 1) {
        cpu_column_sum(r->device, r->in[1], g.k, g.n, r->out[1], r->workspace);
    }
}

// ---- which convolutions are products ------------------------------------------------------------------------------

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
