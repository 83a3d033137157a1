// SPDX-License-Identifier: Apache-2.0
// Convolution of plain images in any geometry, straight from its definition: for what oneDNN has no compiled
// kernel (odd groups, channel multipliers). Needs no scratch; every output is summed by one worker, in one
// order.
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"
#include "sums.h"

typedef struct job {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, step_h, step_w, pad_top, pad_left;
    int64_t groups, group_c, group_f;
    const float *x_data, *w, *bias, *dy;
    float *out;
    bool relu;
    float ceiling; // of relu
} job;

static job job_of(const op_query *q, const op_operand *x, const op_operand *y)
{
    const op_attr *a = &q->attr;
    return (job){.x = cpu_image_of(x),
                 .y = cpu_image_of(y),
                 .kernel_h = a->kernel_h,
                 .kernel_w = a->kernel_w,
                 .stride_h = a->stride_h,
                 .stride_w = a->stride_w,
                 .step_h = (int64_t)a->gap_h + 1,
                 .step_w = (int64_t)a->gap_w + 1,
                 .pad_top = a->pad_top,
                 .pad_left = a->pad_left,
                 .groups = a->groups,
                 .group_c = x->shape.dim[3] / a->groups,
                 .group_f = y->shape.dim[3] / a->groups};
}

// Input row that output row `o` sees at `k` rows into its window; -1 in the padding.
CPU_INLINE int64_t input_at(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t size)
{
    const int64_t i = o * stride + k - pad;
    return i < size ? i : -1; // below 0 already when it lies before the image
}

// Output row that sees input row `i` at `k` rows into its window; -1 when none does.
CPU_INLINE int64_t output_at(int64_t i, int64_t k, int64_t stride, int64_t pad, int64_t size)
{
    const int64_t o = (i + pad - k) / stride;
    return i + pad >= k && o * stride == i + pad - k && o < size ? o : -1;
}

CPU_INLINE const float *weights_at(const job *j, int64_t kh, int64_t kw, int64_t c)
{
    return j->w + ((kh * j->kernel_w + kw) * j->group_c + c) * j->y.channels;
}

CPU_INLINE void add_scaled(float *restrict to, const float *restrict from, float factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] += factor * from[i];
    }
}

// y += one input pixel at one kernel place.
CPU_INLINE void add_pixel(const job *j, float *y, const float *x, int64_t kh, int64_t kw)
{
    for (int64_t g = 0; g < j->groups; g++) {
        for (int64_t c = 0; c < j->group_c; c++) {
            add_scaled(y + g * j->group_f, weights_at(j, kh, kw, c) + g * j->group_f, x[g * j->group_c + c],
                       j->group_f);
        }
    }
}

CPU_HOT static void forward_rows(const job *j, int64_t begin, int64_t end)
{
    const int64_t channels = j->y.channels;
    for (int64_t at = begin; at < end; at++) {
        const int64_t ow = at % j->y.width, oh = at / j->y.width % j->y.height;
        const int64_t image = at / j->y.width / j->y.height;
        float *y = j->out + at * channels;
        for (int64_t f = 0; f < channels; f++) {
            y[f] = j->bias != NULL ? j->bias[f] : 0.0f;
        }
        for (int64_t kh = 0; kh < j->kernel_h; kh++) {
            for (int64_t kw = 0; kw < j->kernel_w; kw++) {
                const int64_t h = input_at(oh, kh * j->step_h, j->stride_h, j->pad_top, j->x.height);
                const int64_t w = input_at(ow, kw * j->step_w, j->stride_w, j->pad_left, j->x.width);
                if (h >= 0 && w >= 0) {
                    add_pixel(j, y, j->x_data + ((image * j->x.height + h) * j->x.width + w) * j->x.channels,
                              kh, kw);
                }
            }
        }
        for (int64_t f = 0; j->relu && f < channels; f++) {
            const float value = y[f] < 0.0f ? 0.0f : y[f];
            y[f] = value > j->ceiling ? j->ceiling : value;
        }
    }
}

// dx += one output pixel at one kernel place.
CPU_INLINE void add_gradient(const job *j, float *dx, const float *dy, int64_t kh, int64_t kw)
{
    for (int64_t g = 0; g < j->groups; g++) {
        for (int64_t c = 0; c < j->group_c; c++) {
            const float *w = weights_at(j, kh, kw, c) + g * j->group_f;
            float sum = 0.0f;
            for (int64_t f = 0; f < j->group_f; f++) {
                sum += dy[g * j->group_f + f] * w[f];
            }
            dx[g * j->group_c + c] += sum;
        }
    }
}

CPU_HOT static void bwd_data_pixels(const job *j, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at++) {
        const int64_t w = at % j->x.width, h = at / j->x.width % j->x.height;
        const int64_t image = at / j->x.width / j->x.height;
        float *dx = j->out + at * j->x.channels;
        memset(dx, 0, (size_t)j->x.channels * sizeof *dx);
        for (int64_t kh = 0; kh < j->kernel_h; kh++) {
            for (int64_t kw = 0; kw < j->kernel_w; kw++) {
                const int64_t oh = output_at(h, kh * j->step_h, j->stride_h, j->pad_top, j->y.height);
                const int64_t ow = output_at(w, kw * j->step_w, j->stride_w, j->pad_left, j->y.width);
                if (oh >= 0 && ow >= 0) {
                    add_gradient(j, dx,
                                 j->dy + ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels, kh,
                                 kw);
                }
            }
        }
    }
}

// dw[kh, kw, c, :] of one image, added to `to`.
CPU_INLINE void add_weight_row(const job *j, float *to, int64_t image, int64_t kh, int64_t kw, int64_t c)
{
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        const int64_t h = input_at(oh, kh * j->step_h, j->stride_h, j->pad_top, j->x.height);
        for (int64_t ow = 0; ow < j->y.width && h >= 0; ow++) {
            const int64_t w = input_at(ow, kw * j->step_w, j->stride_w, j->pad_left, j->x.width);
            if (w < 0) {
                continue;
            }
            const float *x = j->x_data + ((image * j->x.height + h) * j->x.width + w) * j->x.channels + c;
            const float *dy = j->dy + ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels;
            for (int64_t g = 0; g < j->groups; g++) {
                add_scaled(to + g * j->group_f, dy + g * j->group_f, x[g * j->group_c], j->group_f);
            }
        }
    }
}

// Rows of dw: one per kernel place and channel of a group.
CPU_HOT static void bwd_weights_rows(const job *j, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        const int64_t c = row % j->group_c, tap = row / j->group_c;
        float *to = j->out + row * j->y.channels;
        memset(to, 0, (size_t)j->y.channels * sizeof *to);
        for (int64_t image = 0; image < j->x.images; image++) {
            add_weight_row(j, to, image, tap / j->kernel_w, tap % j->kernel_w, c);
        }
    }
}

static void forward_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    forward_rows(argument, begin, end);
}

static void bwd_data_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    bwd_data_pixels(argument, begin, end);
}

static void bwd_weights_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    bwd_weights_rows(argument, begin, end);
}

static void run_forward(const cpu_run *r)
{
    job j = job_of(r->query, &r->query->in[0], &r->query->out[0]);
    j.x_data = r->in[0];
    j.w = r->in[1];
    j.bias = r->query->in_count > 2 ? r->in[2] : NULL;
    j.out = r->out[0];
    j.relu = r->query->attr.act != HR_ACT_NONE;
    j.ceiling = cpu_ceiling(r->query->attr.act);
    workers_for(r->device->workers, j.y.images * j.y.height * j.y.width, 1, forward_body, &j);
}

static void run_bwd_data(const cpu_run *r)
{
    job j = job_of(r->query, &r->query->out[0], &r->query->in[0]);
    j.dy = r->in[0];
    j.w = r->in[1];
    j.out = r->out[0];
    workers_for(r->device->workers, j.x.images * j.x.height * j.x.width, 1, bwd_data_body, &j);
}

static void run_bwd_weights(const cpu_run *r)
{
    job j = job_of(r->query, &r->query->in[0], &r->query->in[1]);
    j.x_data = r->in[0];
    j.dy = r->in[1];
    j.out = r->out[0];
    workers_for(r->device->workers, j.kernel_h * j.kernel_w * j.group_c, 1, bwd_weights_body, &j);
    if (r->query->out_count > 1) {
        sums_columns(r->device->workers, r->in[1], j.y.images * j.y.height * j.y.width, j.y.channels,
                     r->out[1], r->workspace);
    }
}

static uint64_t bwd_weights_workspace(const cpu_device *device, const op_query *q)
{
    return q->out_count > 1 ? sums_scratch_bytes(device->workers, q->in[1].shape.dim[3]) : 0;
}

static bool is_plain(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].layout == HR_LAYOUT_PLAIN && q->in[1].layout == HR_LAYOUT_PLAIN &&
           q->out[0].layout == HR_LAYOUT_PLAIN;
}

const cpu_impl cpu_direct = {.name = "loops", .fits = is_plain, .run = run_forward};
const cpu_impl cpu_direct_bwd_data = {.name = "loops", .fits = is_plain, .run = run_bwd_data};
const cpu_impl cpu_direct_bwd_weights = {
    .name = "loops", .fits = is_plain, .workspace = bwd_weights_workspace, .run = run_bwd_weights};
