// SPDX-License-Identifier: Apache-2.0
// Convolutions of two-byte images as products of what each pixel sees (half_matrix.h): forward, both gradients, and
// the transposed ones, which are their data gradients. A data gradient is one product for each place of a pixel
// in the stride, over the taps that reach it, so that nothing is multiplied by zero.
#include <stddef.h>

#include "half_matrix.h"

static int64_t reaching(int64_t kernel, int64_t stride, int64_t first)
{
    return first < kernel ? (kernel - first + stride - 1) / stride : 0;
}

static half_matrix matrix(int64_t row)
{
    return (half_matrix){.kind = HALF_MATRIX, .row = row};
}

// What the pixels of y see of x: one row each.
static half_matrix patches_of(const conv_shape *s)
{
    return (half_matrix){.kind = HALF_IMAGE,
                         .taps = {.across = s->kernel_w, .depth = s->c / s->groups},
                         .window = {.height = s->h,
                                    .width = s->w,
                                    .channels = s->c,
                                    .rows_h = s->oh,
                                    .rows_w = s->ow,
                                    .first_h = -s->pad_top,
                                    .first_w = -s->pad_left,
                                    .step_h = s->stride_h,
                                    .step_w = s->stride_w,
                                    .apart_h = s->gap_h + 1,
                                    .apart_w = s->gap_w + 1}};
}

static half_multiply forward_of(const conv_shape *s)
{
    const int64_t c = s->c / s->groups, f = s->f / s->groups;
    return (half_multiply){.m = s->n * s->oh * s->ow,
                           .n = f,
                           .k = s->kernel_h * s->kernel_w * c,
                           .a = patches_of(s),
                           .b = matrix(s->f),
                           .c = matrix(s->f),
                           .relu = s->relu,
                           .ceiling = s->ceiling,
                           .inner = s->groups,
                           .a_at = {.inner = c},
                           .b_at = {.inner = f},
                           .c_at = {.inner = f}};
}

static half_multiply weights_of(const conv_shape *s)
{
    const int64_t c = s->c / s->groups, f = s->f / s->groups;
    return (half_multiply){.m = s->kernel_h * s->kernel_w * c,
                           .n = f,
                           .k = s->n * s->oh * s->ow,
                           .a = patches_of(s),
                           .a_turned = true,
                           .b = matrix(s->f),
                           .c = matrix(s->f),
                           .inner = s->groups,
                           .a_at = {.inner = c},
                           .b_at = {.inner = f},
                           .c_at = {.inner = f}};
}

// ---- data gradient ----------------------------------------------------------------------------------------

// Along one direction: pixels `first`, `first` + stride ... of x, the first tap that reaches them, how many do, one for
// every `step`, and the pixel of y that the first tap of the first pixel comes from; the next tap's lies `apart` before it.
typedef struct phase {
    int64_t first, pixels, tap, step, taps, from, apart;
} phase;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static phase phase_of(int64_t first, int64_t size, int64_t kernel, int64_t stride, int64_t gap, int64_t pad)
{
    const int64_t apart = gap + 1, common = common_divisor(apart, stride), part = (first + pad) % stride;
    int64_t tap = 0; // the first that lies `part` behind a window's beginning, but for whole strides
    while (tap < kernel && tap * apart % stride != part) {
        tap++;
    }
    return (phase){.first = first,
                   .pixels = (size - first + stride - 1) / stride,
                   .tap = tap,
                   .step = stride / common,
                   .taps = reaching(kernel, stride / common, tap),
                   .from = (first + pad - tap * apart) / stride,
                   .apart = apart / common};
}

static half_matrix gradients_of(const conv_shape *s, const phase *h, const phase *w)
{
    return (half_matrix){.kind = HALF_IMAGE,
                         .taps = {.across = w->taps, .depth = s->f / s->groups},
                         .window = {.height = s->oh,
                                    .width = s->ow,
                                    .channels = s->f,
                                    .rows_h = h->pixels,
                                    .rows_w = w->pixels,
                                    .first_h = h->from - (h->taps - 1) * h->apart,
                                    .first_w = w->from - (w->taps - 1) * w->apart,
                                    .step_h = 1,
                                    .step_w = 1,
                                    .apart_h = h->apart,
                                    .apart_w = w->apart}};
}

// w[kh, kw, c, f] as [c][tap, f], the last tap first: that is the one of the first pixel of y.
static half_matrix turned_weights_of(const conv_shape *s, const phase *h, const phase *w)
{
    const int64_t tap = s->c / s->groups * s->f;
    const int64_t last_h = h->tap + (h->taps - 1) * h->step, last_w = w->tap + (w->taps - 1) * w->step;
    return (half_matrix){.kind = HALF_TAPS,
                         .row = s->f,
                         .taps = {.across = w->taps,
                                  .depth = s->f / s->groups,
                                  .first = (last_h * s->kernel_w + last_w) * tap,
                                  .step_a = -h->step * s->kernel_w * tap,
                                  .step_b = -w->step * tap}};
}

static half_matrix pixels_of(const conv_shape *s, const phase *h, const phase *w)
{
    return (half_matrix){.kind = HALF_IMAGE,
                         .window = {.height = s->h,
                                    .width = s->w,
                                    .channels = s->c,
                                    .rows_h = h->pixels,
                                    .rows_w = w->pixels,
                                    .first_h = h->first,
                                    .first_w = w->first,
                                    .step_h = s->stride_h,
                                    .step_w = s->stride_w}};
}

static int64_t phases_of(const conv_shape *s)
{
    const int64_t h = s->stride_h < s->h ? s->stride_h : s->h, w = s->stride_w < s->w ? s->stride_w : s->w;
    return h * w;
}

static half_multiply data_of(const conv_shape *s, int64_t at)
{
    const int64_t c = s->c / s->groups, f = s->f / s->groups;
    const int64_t across = s->stride_w < s->w ? s->stride_w : s->w;
    const phase h = phase_of(at / across, s->h, s->kernel_h, s->stride_h, s->gap_h, s->pad_top);
    const phase w = phase_of(at % across, s->w, s->kernel_w, s->stride_w, s->gap_w, s->pad_left);
    return (half_multiply){.m = s->n * h.pixels * w.pixels,
                           .n = c,
                           .k = h.taps * w.taps * f,
                           .a = gradients_of(s, &h, &w),
                           .b = turned_weights_of(s, &h, &w),
                           .b_turned = true,
                           .c = pixels_of(s, &h, &w),
                           .relu = s->relu,
                           .ceiling = s->ceiling,
                           .inner = s->groups,
                           .a_at = {.inner = f},
                           .b_at = {.inner = f},
                           .c_at = {.inner = c}};
}

// ---- the implementation -----------------------------------------------------------------------------------

static int64_t count_of(const conv_shape *s)
{
    return s->kind == CONV_BWD_DATA ? phases_of(s) : 1;
}

static half_multiply multiply_of(const op_query *q, const conv_shape *s, int64_t at)
{
    half_multiply p = s->kind == CONV_FORWARD    ? forward_of(s)
                      : s->kind == CONV_BWD_DATA ? data_of(s, at)
                                                 : weights_of(s);
    const bool exchanged = q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
    p.a.type = (hr_dtype)q->in[exchanged ? 1 : 0].dtype;
    p.b.type = (hr_dtype)q->in[exchanged ? 0 : 1].dtype;
    p.c.type = (hr_dtype)q->out[0].dtype;
    p.bias_type = q->in_count > 2 ? (hr_dtype)q->in[2].dtype : HR_F32;
    return p;
}

static bool sums_bias(const op_query *q)
{
    return q->out_count > 1;
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const conv_shape s = cpu_conv_shape(q);
    uint64_t most = sums_bias(q) ? cpu_half_sums_bytes(device, q->in[1].shape.dim[3]) : 0;
    for (int64_t k = 0; k < count_of(&s); k++) {
        const half_multiply p = multiply_of(q, &s, k);
        const uint64_t bytes = half_multiply_bytes(device, &p);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].layout == HR_LAYOUT_PLAIN && q->in[1].layout == HR_LAYOUT_PLAIN &&
           q->out[0].layout == HR_LAYOUT_PLAIN;
}

static void run(const cpu_run *r)
{
    const op_query *q = r->query;
    const conv_shape s = cpu_conv_shape(q);
    const bool exchanged = q->op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
    if (sums_bias(q)) {
        cpu_half_sums(r->device, &q->in[1], r->in[1], &q->out[1], r->out[1], r->workspace);
    }
    for (int64_t k = 0; k < count_of(&s); k++) {
        half_multiply p = multiply_of(q, &s, k);
        p.a.data = r->in[exchanged ? 1 : 0];
        p.b.data = r->in[exchanged ? 0 : 1];
        p.c.data = r->out[0];
        p.bias = q->in_count > 2 ? r->in[2] : NULL;
        half_multiply_run(r->device, &p, r->workspace);
    }
}

const cpu_impl cpu_half_conv = {
    .name = "tiles", .types = CPU_HALF, .fits = fits, .workspace = workspace, .run = run};
