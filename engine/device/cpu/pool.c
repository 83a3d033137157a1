// SPDX-License-Identifier: Apache-2.0
// Pooling. Padding never wins a maximum and never takes a gradient. Both backward passes add the same numbers
// in the same order, so that they agree bit for bit.
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

typedef struct window_job {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    const float *x_data, *y_data, *dy; // as the pass needs them
    const uint8_t *index_in;
    float *out;
    uint8_t *index_out;
} window_job;

static window_job job_of(const op_query *q, const op_operand *x, const op_operand *y)
{
    const op_attr *a = &q->attr;
    return (window_job){.x = cpu_image_of(x),
                        .y = cpu_image_of(y),
                        .kernel_h = a->kernel_h,
                        .kernel_w = a->kernel_w,
                        .stride_h = a->stride_h,
                        .stride_w = a->stride_w,
                        .pad_top = a->pad_top,
                        .pad_left = a->pad_left};
}

// The part of a window that lies inside the image: places [top, bottom) x [left, right) of the kernel.
typedef struct window {
    int64_t top, bottom, left, right;
    int64_t origin; // pixel of place (0, 0) in the whole tensor; may lie in the padding
} window;

CPU_INLINE window window_at(const window_job *j, int64_t image, int64_t oh, int64_t ow)
{
    const int64_t h = oh * j->stride_h - j->pad_top, w = ow * j->stride_w - j->pad_left;
    window v = {h < 0 ? -h : 0, j->x.height - h, w < 0 ? -w : 0, j->x.width - w, 0};
    v.bottom = v.bottom < j->kernel_h ? v.bottom : j->kernel_h;
    v.right = v.right < j->kernel_w ? v.right : j->kernel_w;
    v.origin = (image * j->x.height + h) * j->x.width + w;
    return v;
}

CPU_INLINE int64_t offset_of(const window_job *j, const window *v, int64_t kh, int64_t kw)
{
    return (v->origin + kh * j->x.width + kw) * j->x.channels;
}

// ---- forward ----------------------------------------------------------------------------------------------

typedef uint8_t u8x16 __attribute__((vector_size(16), aligned(1), may_alias));

CPU_INLINE void pool_lane(const window_job *j, const window *v, int64_t at, int64_t c)
{
    int64_t best = v->top * j->kernel_w + v->left;
    float y = j->x_data[offset_of(j, v, v->top, v->left) + c];
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const float x = j->x_data[offset_of(j, v, kh, kw) + c];
            best = x > y ? kh * j->kernel_w + kw : best;
            y = x > y ? x : y;
        }
    }
    j->out[at + c] = y;
    if (j->index_out != NULL) {
        j->index_out[at + c] = (uint8_t)best;
    }
}

CPU_INLINE void pool_lanes(const window_job *j, const window *v, int64_t at, int64_t c)
{
    i32x16 best = (i32x16){0} + (int32_t)(v->top * j->kernel_w + v->left);
    i32x16 y = (i32x16)F32X16(j->x_data + offset_of(j, v, v->top, v->left) + c);
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const f32x16 x = F32X16(j->x_data + offset_of(j, v, kh, kw) + c);
            const i32x16 larger = x > (f32x16)y;
            y = ((i32x16)x & larger) | (y & ~larger);
            best = (((i32x16){0} + (int32_t)(kh * j->kernel_w + kw)) & larger) | (best & ~larger);
        }
    }
    F32X16W(j->out + at + c) = (f32x16)y;
    if (j->index_out != NULL) {
        *(u8x16 *)(j->index_out + at + c) = __builtin_convertvector(best, u8x16);
    }
}

CPU_INLINE void pool_window(const window_job *j, const window *v, int64_t at)
{
    int64_t c = 0;
    for (; c + CPU_LANES <= j->y.channels; c += CPU_LANES) {
        pool_lanes(j, v, at, c);
    }
    for (; c < j->y.channels; c++) {
        pool_lane(j, v, at, c);
    }
}

// Rows [begin, end) of the output, over all images. The copy of the job cannot be changed by what is stored.
CPU_HOT static void pool_rows(const window_job *shared, int64_t begin, int64_t end)
{
    const window_job j = *shared;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.y.height, oh = row % j.y.height;
        for (int64_t ow = 0; ow < j.y.width; ow++) {
            const window v = window_at(&j, image, oh, ow);
            pool_window(&j, &v, (row * j.y.width + ow) * j.y.channels);
        }
    }
}

static void pool_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    pool_rows(argument, begin, end);
}

static void run_max_pool(const cpu_run *r)
{
    const op_query *q = r->query;
    window_job j = job_of(q, &q->in[0], &q->out[0]);
    j.x_data = r->in[0];
    j.out = r->out[0];
    j.index_out = q->out_count > 1 ? r->out[1] : NULL;
    workers_for_pieces(r->device->workers, j.y.images * j.y.height, 1, pool_body, &j);
}

// ---- backward ---------------------------------------------------------------------------------------------

// How a window hands its dy on. ADD: dx += dy, where windows may overlap. SET: dx = dy or 0, where they tile.
typedef enum route { ROUTE_ADD, ROUTE_SET } route;

CPU_INLINE void route_lane(const window_job *j, const window *v, int64_t at, int64_t c, const route how)
{
    bool open = true;
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t to = offset_of(j, v, kh, kw) + c;
            const bool here = j->index_in != NULL ? j->index_in[at + c] == kh * j->kernel_w + kw
                                                  : open && j->x_data[to] == j->y_data[at + c];
            const float share = here ? j->dy[at + c] : 0.0f;
            j->out[to] = how == ROUTE_SET ? share : j->out[to] + share;
            open = open && !here;
        }
    }
}

CPU_INLINE void route_lanes(const window_job *j, const window *v, int64_t at, int64_t c, const bool indexed,
                            const route how)
{
    const i32x16 dy = (i32x16)F32X16(j->dy + at + c);
    i32x16 open = ~(i32x16){0}, index = {0};
    f32x16 y = {0};
    if (indexed) {
        index = __builtin_convertvector(*(const u8x16 *)(j->index_in + at + c), i32x16);
    } else {
        y = F32X16(j->y_data + at + c);
    }
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t to = offset_of(j, v, kh, kw) + c;
            i32x16 here;
            if (indexed) {
                here = index == (int32_t)(kh * j->kernel_w + kw);
            } else { // the first place that equals the maximum
                here = (F32X16(j->x_data + to) == y) & open;
                open &= ~here;
            }
            f32x16 share = (f32x16)(dy & here);
            if (how == ROUTE_ADD) {
                share += F32X16(j->out + to);
            }
            F32X16W(j->out + to) = share;
        }
    }
}

CPU_INLINE void route_window(const window_job *j, const window *v, int64_t at, const bool indexed,
                             const route how)
{
    int64_t c = 0;
    for (; c + CPU_LANES <= j->y.channels; c += CPU_LANES) {
        route_lanes(j, v, at, c, indexed, how);
    }
    for (; c < j->y.channels; c++) {
        route_lane(j, v, at, c, how);
    }
}

// Windows side by side: every input is in one of them, but for what is left at the far edges.
static bool tiles(const window_job *j)
{
    return j->stride_h == j->kernel_h && j->stride_w == j->kernel_w && j->pad_top == 0 && j->pad_left == 0 &&
           j->y.height * j->kernel_h <= j->x.height && j->y.width * j->kernel_w <= j->x.width;
}

static void clear_edges(const window_job *j, float *image)
{
    const int64_t row = j->x.width * j->x.channels, covered = j->y.width * j->kernel_w * j->x.channels;
    const int64_t rows = j->y.height * j->kernel_h;
    for (int64_t h = 0; h < rows && covered < row; h++) {
        memset(image + h * row + covered, 0, (size_t)(row - covered) * sizeof *image);
    }
    memset(image + rows * row, 0, (size_t)((j->x.height - rows) * row) * sizeof *image);
}

CPU_INLINE void route_image(const window_job *j, int64_t image, const bool indexed, const route how)
{
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        for (int64_t ow = 0; ow < j->y.width; ow++) {
            const window v = window_at(j, image, oh, ow);
            route_window(j, &v, ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels, indexed, how);
        }
    }
}

// Whole images: windows may overlap, and an image stays in the near caches.
CPU_HOT static void route_images(const window_job *shared, int64_t begin, int64_t end, bool set)
{
    const window_job j = *shared;
    const int64_t image_floats = j.x.height * j.x.width * j.x.channels;
    for (int64_t image = begin; image < end; image++) {
        float *dx = j.out + image * image_floats;
        if (set) {
            clear_edges(&j, dx);
            if (j.index_in != NULL) {
                route_image(&j, image, true, ROUTE_SET);
            } else {
                route_image(&j, image, false, ROUTE_SET);
            }
        } else {
            memset(dx, 0, (size_t)image_floats * sizeof *dx);
            if (j.index_in != NULL) {
                route_image(&j, image, true, ROUTE_ADD);
            } else {
                route_image(&j, image, false, ROUTE_ADD);
            }
        }
    }
}

static void route_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    route_images(argument, begin, end, tiles(argument));
}

static void run_max_pool_bwd(const cpu_run *r)
{
    const op_query *q = r->query;
    window_job j = job_of(q, &q->in[0], &q->in[1]);
    j.x_data = r->in[0];
    j.y_data = r->in[1];
    j.dy = r->in[2];
    j.out = r->out[0];
    workers_for_pieces(r->device->workers, j.x.images, 1, route_body, &j);
}

static void run_max_pool_bwd_index(const cpu_run *r)
{
    const op_query *q = r->query;
    window_job j = job_of(q, &q->out[0], &q->in[0]);
    j.index_in = r->in[0];
    j.dy = r->in[1];
    j.out = r->out[0];
    workers_for_pieces(r->device->workers, j.x.images, 1, route_body, &j);
}

const cpu_impl cpu_max_pool = {.name = "loops", .run = run_max_pool};
const cpu_impl cpu_max_pool_bwd = {.name = "loops", .run = run_max_pool_bwd};
const cpu_impl cpu_max_pool_bwd_index = {.name = "loops", .run = run_max_pool_bwd_index};
