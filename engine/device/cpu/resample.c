// SPDX-License-Identifier: Apache-2.0
// Nearest-neighbour upsampling and average pooling: rows of contiguous channels.
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN_FLOATS = 16384 };

typedef struct job {
    cpu_image small, large; // y and x of a pooling; x and y of upsampling
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    bool counts_padding;
    const float *from;
    float *to;
} job;

static job job_of(const cpu_run *r, const op_operand *small, const op_operand *large)
{
    const op_attr *a = &r->query->attr;
    return (job){.small = cpu_image_of(small),
                 .large = cpu_image_of(large),
                 .kernel_h = a->kernel_h,
                 .kernel_w = a->kernel_w,
                 .stride_h = a->stride_h,
                 .stride_w = a->stride_w,
                 .pad_top = a->pad_top,
                 .pad_left = a->pad_left,
                 .counts_padding = (a->flags & OP_FLAG_PADDING) != 0,
                 .from = r->in[0],
                 .to = r->out[0]};
}

// Runs `body` over the rows of pixels of `image`.
static void over_rows(const cpu_run *r, const job *j, const cpu_image *image, workers_body body)
{
    const int64_t row = image->width * image->channels;
    workers_for(r->device->workers, image->images * image->height,
                row >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / row, body, j);
}

CPU_INLINE void add_pixel(float *restrict to, const float *restrict from, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        to[c] += from[c];
    }
}

CPU_INLINE void add_share(float *restrict to, const float *restrict from, float share, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        to[c] += share * from[c];
    }
}

// ---- upsampling -------------------------------------------------------------------------------------------

// Rows of the small image; each makes kernel_h rows of the large one.
CPU_HOT static void upsample_rows(const job *j, int64_t begin, int64_t end)
{
    const int64_t channels = j->small.channels, width = j->large.width * channels;
    for (int64_t row = begin; row < end; row++) {
        const float *x = j->from + row * j->small.width * channels;
        float *y = j->to + row * j->kernel_h * width, *at = y;
        for (int64_t w = 0; w < j->small.width; w++) {
            for (int64_t copy = 0; copy < j->kernel_w; copy++, at += channels) {
                memcpy(at, x + w * channels, (size_t)channels * sizeof *at);
            }
        }
        for (int64_t copy = 1; copy < j->kernel_h; copy++) {
            memcpy(y + copy * width, y, (size_t)width * sizeof *y);
        }
    }
}

CPU_HOT static void upsample_bwd_rows(const job *j, int64_t begin, int64_t end)
{
    const int64_t channels = j->small.channels, width = j->large.width * channels;
    for (int64_t row = begin; row < end; row++) {
        float *dx = j->to + row * j->small.width * channels;
        memset(dx, 0, (size_t)(j->small.width * channels) * sizeof *dx);
        for (int64_t kh = 0; kh < j->kernel_h; kh++) {
            const float *dy = j->from + (row * j->kernel_h + kh) * width;
            for (int64_t w = 0; w < j->large.width; w++) {
                add_pixel(dx + w / j->kernel_w * channels, dy + w * channels, channels);
            }
        }
    }
}

static void upsample_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    upsample_rows(argument, begin, end);
}

static void upsample_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    upsample_bwd_rows(argument, begin, end);
}

static void run_upsample(const cpu_run *r)
{
    const job j = job_of(r, &r->query->in[0], &r->query->out[0]);
    over_rows(r, &j, &j.small, upsample_body);
}

static void run_upsample_bwd(const cpu_run *r)
{
    const job j = job_of(r, &r->query->out[0], &r->query->in[0]);
    over_rows(r, &j, &j.small, upsample_bwd_body);
}

// ---- average pooling --------------------------------------------------------------------------------------

// The places [begin, end) of the image that window `o` of one side sees.
typedef struct span {
    int64_t begin, end;
} span;

CPU_INLINE span seen(int64_t o, int64_t kernel, int64_t stride, int64_t pad, int64_t size)
{
    const int64_t first = o * stride - pad, behind = first + kernel;
    return (span){first < 0 ? 0 : first, behind < size ? behind : size};
}

CPU_INLINE float share_of(const job *j, span h, span w)
{
    const int64_t places =
        j->counts_padding ? j->kernel_h * j->kernel_w : (h.end - h.begin) * (w.end - w.begin);
    return 1.0f / (float)places;
}

// Rows of the pooled image.
CPU_HOT static void pool_rows(const job *j, int64_t begin, int64_t end)
{
    const int64_t channels = j->small.channels;
    for (int64_t row = begin; row < end; row++) {
        const span h = seen(row % j->small.height, j->kernel_h, j->stride_h, j->pad_top, j->large.height);
        const float *x = j->from + row / j->small.height * j->large.height * j->large.width * channels;
        for (int64_t ow = 0; ow < j->small.width; ow++) {
            const span w = seen(ow, j->kernel_w, j->stride_w, j->pad_left, j->large.width);
            const float share = share_of(j, h, w);
            float *y = j->to + (row * j->small.width + ow) * channels;
            memset(y, 0, (size_t)channels * sizeof *y);
            for (int64_t at = h.begin; at < h.end; at++) {
                for (int64_t k = w.begin; k < w.end; k++) {
                    add_pixel(y, x + (at * j->large.width + k) * channels, channels);
                }
            }
            for (int64_t c = 0; c < channels; c++) {
                y[c] *= share;
            }
        }
    }
}

// What the windows of pooled row `oh` add to row `row` of dx.
CPU_INLINE void add_windows(const job *j, float *dx, const float *dy, int64_t oh)
{
    const int64_t channels = j->small.channels;
    const span h = seen(oh, j->kernel_h, j->stride_h, j->pad_top, j->large.height);
    for (int64_t ow = 0; ow < j->small.width; ow++) {
        const span w = seen(ow, j->kernel_w, j->stride_w, j->pad_left, j->large.width);
        const float share = share_of(j, h, w);
        for (int64_t k = w.begin; k < w.end; k++) {
            add_share(dx + k * channels, dy + ow * channels, share, channels);
        }
    }
}

// Rows of dx, each summed by one worker from the pooled rows that saw it.
CPU_HOT static void pool_bwd_rows(const job *j, int64_t begin, int64_t end)
{
    const int64_t channels = j->small.channels, width = j->large.width * channels;
    for (int64_t row = begin; row < end; row++) {
        const int64_t h = row % j->large.height + j->pad_top, image = row / j->large.height;
        const int64_t first = h < j->kernel_h ? 0 : (h - j->kernel_h) / j->stride_h + 1;
        const int64_t last = h / j->stride_h < j->small.height ? h / j->stride_h : j->small.height - 1;
        float *dx = j->to + row * width;
        memset(dx, 0, (size_t)width * sizeof *dx);
        for (int64_t oh = first; oh <= last; oh++) {
            add_windows(j, dx, j->from + (image * j->small.height + oh) * j->small.width * channels, oh);
        }
    }
}

static void pool_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    pool_rows(argument, begin, end);
}

static void pool_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    pool_bwd_rows(argument, begin, end);
}

static void run_avg_pool(const cpu_run *r)
{
    const job j = job_of(r, &r->query->out[0], &r->query->in[0]);
    over_rows(r, &j, &j.small, pool_body);
}

static void run_avg_pool_bwd(const cpu_run *r)
{
    const job j = job_of(r, &r->query->in[0], &r->query->out[0]);
    over_rows(r, &j, &j.large, pool_bwd_body);
}

const cpu_impl cpu_upsample = {.name = "loops", .run = run_upsample};
const cpu_impl cpu_upsample_bwd = {.name = "loops", .run = run_upsample_bwd};
const cpu_impl cpu_avg_pool = {.name = "loops", .run = run_avg_pool};
const cpu_impl cpu_avg_pool_bwd = {.name = "loops", .run = run_avg_pool_bwd};
