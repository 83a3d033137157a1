// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions of plain images. Where kernels do not overlap (a kernel of the stride's size, as a U-Net
// has them) the result is products alone: row h of x gives rows h·kh to h·kh + kh − 1 of y, one product each, written
// where they lie. In general they are the convolution whose data gradient they are: the library's, or from the
// definition. The bias and its gradient belong to the large image there, and are added here. bfloat16 goes through the
// library in every case.
#include <string.h>

#include "base/half.h"
#include "base/workers.h"
#include "cpu.h"
#include "gemm.h"
#include "simd.h"
#include "sums.h"

enum { GRAIN_FLOATS = 16384 };

// ---- bias -------------------------------------------------------------------------------------------------

typedef struct bias_job {
    void *y;
    const void *bias;
    int64_t filters;
} bias_job;

CPU_HOT static void add_bias(const bias_job *j, int64_t begin, int64_t end)
{
    const float *restrict bias = j->bias;
    for (int64_t row = begin; row < end; row++) {
        float *restrict y = (float *)j->y + row * j->filters;
        for (int64_t f = 0; f < j->filters; f++) {
            y[f] += bias[f];
        }
    }
}

CPU_HOT static void add_bias_bf16(const bias_job *j, int64_t begin, int64_t end)
{
    const uint16_t *restrict bias = j->bias;
    for (int64_t row = begin; row < end; row++) {
        uint16_t *restrict y = (uint16_t *)j->y + row * j->filters;
        for (int64_t f = 0; f < j->filters; f++) {
            y[f] = bf16_of_float(float_of_bf16(y[f]) + float_of_bf16(bias[f]));
        }
    }
}

static void bias_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    add_bias(argument, begin, end);
}

static void bias_body_bf16(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    add_bias_bf16(argument, begin, end);
}

// What the convolution leaves out: the bias behind it, or the bias' gradient.
static void finish(const cpu_run *r)
{
    const op_query *q = r->query;
    const bool half = cpu_has_half(q);
    workers *w = r->device->workers;
    if (q->op == HR_OP_CONV2D_TRANSPOSE && q->in_count > 2) {
        const bias_job j = {r->out[0], r->in[2], q->out[0].shape.dim[3]};
        const int64_t grain = j.filters >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / j.filters;
        workers_for(w, cpu_elements_of(&q->out[0]) / j.filters, grain, half ? bias_body_bf16 : bias_body, &j);
    }
    if (q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS && q->out_count > 1) {
        const int64_t filters = q->in[1].shape.dim[3], rows = cpu_elements_of(&q->in[1]) / filters;
        if (half) {
            cpu_half_sums(r->device, &q->in[1], r->in[1], &q->out[1], r->out[1], r->workspace);
        } else {
            sums_columns(w, r->in[1], rows, filters, r->out[1], r->workspace);
        }
    }
}

static uint64_t finish_bytes(const cpu_device *device, const op_query *q)
{
    const bool sums = q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS && q->out_count > 1;
    const int64_t filters = q->in[1].shape.dim[3];
    if (!sums) {
        return 0;
    }
    return cpu_has_half(q) ? cpu_half_sums_bytes(device, filters)
                           : sums_scratch_bytes(device->workers, filters);
}

static bool is_plain(const op_query *q)
{
    return q->in[0].layout == HR_LAYOUT_PLAIN && q->in[1].layout == HR_LAYOUT_PLAIN &&
           q->out[0].layout == HR_LAYOUT_PLAIN;
}

// ---- products ---------------------------------------------------------------------------------------------

// One product per row of x and row of the kernel: [W, C] · [kw·F, C]ᵀ is a row of y.
static gemm_batch batch_of(const cpu_device *device, const op_query *q)
{
    const int64_t *x = q->in[0].shape.dim, *w = q->in[1].shape.dim;
    const int64_t width = x[2], channels = x[3], row = w[1] * w[2];
    return (gemm_batch){
        .each = {.m = width, .n = row, .k = channels, .b_transposed = true, .workers = device->workers},
        .outer = x[0] * x[1],
        .inner = w[0],
        .a = {width * channels, 0},
        .b = {0, row * channels},
        .c = {w[0] * width * row, width * row}};
}

static bool is_apart(const cpu_device *device, const op_query *q)
{
    const op_attr *a = &q->attr;
    (void)device;
    return is_plain(q) && a->kernel_h == a->stride_h && a->kernel_w == a->stride_w && a->pad_top == 0 &&
           a->pad_left == 0 && a->pad_bottom == 0 && a->pad_right == 0;
}

static uint64_t product_bytes(const cpu_device *device, const op_query *q)
{
    const gemm_batch g = batch_of(device, q);
    return gemm_batch_scratch_bytes(&g);
}

static void run_product(const cpu_run *r)
{
    const gemm_batch g = batch_of(r->device, r->query);
    gemm_batch_run(&g, r->in[0], r->in[1], r->out[0], r->workspace);
    finish(r);
}

// ---- through a convolution --------------------------------------------------------------------------------

static bool has_library_kernel(const cpu_device *device, const op_query *q)
{
    return cpu_onednn_conv.fits(device, q);
}

// The library's scratch is free again when finish needs its own.
static hr_status ask_library(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    HR_TRY(cpu_onednn_conv.ask(device, q, limit, out, err));
    const uint64_t behind = finish_bytes(device, q);
    out->workspace_bytes = out->workspace_bytes > behind ? out->workspace_bytes : behind;
    return HR_OK;
}

static hr_status prepare_library(const cpu_device *device, const program *p, const instr *i,
                                 const op_query *q, void **state, hr_err *err)
{
    return cpu_onednn_conv.prepare(device, p, i, q, state, err);
}

static void release_library(void *state)
{
    cpu_onednn_conv.release(state);
}

static hr_status call_library(const cpu_run *r, hr_err *err)
{
    HR_TRY(cpu_onednn_conv.call(r, err));
    finish(r);
    return HR_OK;
}

// The convolution of the same operands: forward is its data gradient and so on, the two images exchanged.
static void run_direct(const cpu_run *r)
{
    op_query q = *r->query;
    cpu_run other = {.device = r->device, .query = &q, .io = r->io};
    const bool weights = q.op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
    q.attr.groups = 1;
    q.in_count = 2;
    q.out_count = 1;
    q.in[0] = r->query->in[weights ? 1 : 0];
    q.in[1] = r->query->in[weights ? 0 : 1];
    other.in[0] = r->in[weights ? 1 : 0];
    other.in[1] = r->in[weights ? 0 : 1];
    other.out[0] = r->out[0];
    const cpu_impl *impl = weights                          ? &cpu_direct_bwd_weights
                           : q.op == HR_OP_CONV2D_TRANSPOSE ? &cpu_direct_bwd_data
                                                            : &cpu_direct;
    impl->run(&other);
    finish(r);
}

static bool is_direct(const cpu_device *device, const op_query *q)
{
    (void)device;
    return is_plain(q);
}

const cpu_impl cpu_transpose_product = {
    .name = "tiles", .fits = is_apart, .workspace = product_bytes, .run = run_product};
const cpu_impl cpu_transpose_onednn = {.name = CPU_LIBRARY,
                                       .fits = has_library_kernel,
                                       .ask = ask_library,
                                       .prepare = prepare_library,
                                       .release = release_library,
                                       .call = call_library};
const cpu_impl cpu_transpose_onednn_bf16 = {.name = CPU_LIBRARY,
                                            .types = CPU_BF16,
                                            .fits = has_library_kernel,
                                            .ask = ask_library,
                                            .prepare = prepare_library,
                                            .release = release_library,
                                            .call = call_library};
const cpu_impl cpu_transpose_direct = {
    .name = "loops", .fits = is_direct, .workspace = finish_bytes, .run = run_direct};
