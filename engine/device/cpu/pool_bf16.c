// SPDX-License-Identifier: Apache-2.0
// Pooling of bfloat16 images. A maximum moves bits; gradients of windows that overlap are summed in float32, an image
// at a time, and rounded once. Ties, padding and the order of sums are those of pool.c.
#include <string.h>

#include "base/half.h"
#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

typedef uint8_t u8x16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t u16x16 __attribute__((vector_size(32), aligned(2), may_alias));

// Sixteen numbers as the bits of float32.
#define WIDE_BITS(p) (__builtin_convertvector(*(const u16x16 *)(p), i32x16) << 16)

typedef struct job {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    const uint16_t *x_data, *y_data, *dy; // as the pass needs them
    const uint8_t *index_in;              // NULL: found by comparing
    uint16_t *out;
    uint8_t *index_out;
    float *scratch; // an image of dx per worker, where windows overlap
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
                 .pad_top = a->pad_top,
                 .pad_left = a->pad_left};
}

// The places of a window that lie inside the image, and the pixel of place (0, 0) within it.
typedef struct window {
    int64_t top, bottom, left, right, origin;
} window;

CPU_INLINE window window_at(const job *j, int64_t oh, int64_t ow)
{
    const int64_t h = oh * j->stride_h - j->pad_top, w = ow * j->stride_w - j->pad_left;
    window v = {h < 0 ? -h : 0, j->x.height - h, w < 0 ? -w : 0, j->x.width - w, h * j->x.width + w};
    v.bottom = v.bottom < j->kernel_h ? v.bottom : j->kernel_h;
    v.right = v.right < j->kernel_w ? v.right : j->kernel_w;
    return v;
}

CPU_INLINE int64_t offset_of(const job *j, const window *v, int64_t kh, int64_t kw)
{
    return (v->origin + kh * j->x.width + kw) * j->x.channels;
}

// ---- forward --------------------------------------------------------------------------------------------------

CPU_INLINE void pool_lane(const job *j, const uint16_t *image, const window *v, int64_t at, int64_t c)
{
    uint16_t y = image[offset_of(j, v, v->top, v->left) + c];
    int64_t best = v->top * j->kernel_w + v->left;
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const uint16_t x = image[offset_of(j, v, kh, kw) + c];
            const bool larger = float_of_bf16(x) > float_of_bf16(y);
            y = larger ? x : y;
            best = larger ? kh * j->kernel_w + kw : best;
        }
    }
    j->out[at + c] = y;
    if (j->index_out != NULL) {
        j->index_out[at + c] = (uint8_t)best;
    }
}

CPU_INLINE void pool_lanes(const job *j, const uint16_t *image, const window *v, int64_t at, int64_t c)
{
    i32x16 y = WIDE_BITS(image + offset_of(j, v, v->top, v->left) + c);
    i32x16 best = (i32x16){0} + (int32_t)(v->top * j->kernel_w + v->left);
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const i32x16 x = WIDE_BITS(image + offset_of(j, v, kh, kw) + c);
            const i32x16 larger = (f32x16)x > (f32x16)y;
            y = (x & larger) | (y & ~larger);
            best = (((i32x16){0} + (int32_t)(kh * j->kernel_w + kw)) & larger) | (best & ~larger);
        }
    }
    *(u16x16 *)(j->out + at + c) = __builtin_convertvector(y >> 16, u16x16);
    if (j->index_out != NULL) {
        *(u8x16 *)(j->index_out + at + c) = __builtin_convertvector(best, u8x16);
    }
}

CPU_INLINE void pool_window(const job *j, const uint16_t *image, const window *v, int64_t at)
{
    int64_t c = 0;
    for (; c + CPU_LANES <= j->y.channels; c += CPU_LANES) {
        pool_lanes(j, image, v, at, c);
    }
    for (; c < j->y.channels; c++) {
        pool_lane(j, image, v, at, c);
    }
}

// Rows [begin, end) of the output, over all images.
CPU_HOT static void pool_rows(const job *shared, int64_t begin, int64_t end)
{
    const job j = *shared;
    for (int64_t row = begin; row < end; row++) {
        const uint16_t *image = j.x_data + row / j.y.height * j.x.height * j.x.width * j.x.channels;
        for (int64_t ow = 0; ow < j.y.width; ow++) {
            const window v = window_at(&j, row % j.y.height, ow);
            pool_window(&j, image, &v, (row * j.y.width + ow) * j.y.channels);
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
    job j = job_of(q, &q->in[0], &q->out[0]);
    j.x_data = r->in[0];
    j.out = r->out[0];
    j.index_out = q->out_count > 1 ? r->out[1] : NULL;
    workers_for_pieces(r->device->workers, j.y.images * j.y.height, 1, pool_body, &j);
}

// ---- backward -------------------------------------------------------------------------------------------------

// Windows side by side: every input is in one of them, but for what is left at the far edges.
static bool tiles(const job *j)
{
    return j->stride_h == j->kernel_h && j->stride_w == j->kernel_w && j->pad_top == 0 && j->pad_left == 0 &&
           j->y.height * j->kernel_h <= j->x.height && j->y.width * j->kernel_w <= j->x.width;
}

CPU_INLINE void route_lane(const job *j, int64_t image_at, const window *v, int64_t at, int64_t c,
                           uint16_t *dx, float *sum)
{
    bool open = true;
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t to = offset_of(j, v, kh, kw) + c;
            const bool here = j->index_in != NULL ? j->index_in[at + c] == kh * j->kernel_w + kw
                                                  : open && float_of_bf16(j->x_data[image_at + to]) ==
                                                                float_of_bf16(j->y_data[at + c]);
            const uint16_t share = here ? j->dy[at + c] : 0;
            if (sum == NULL) {
                dx[to] = share;
            } else {
                sum[to] += float_of_bf16(share);
            }
            open = open && !here;
        }
    }
}

CPU_INLINE void route_lanes(const job *j, int64_t image_at, const window *v, int64_t at, int64_t c,
                            uint16_t *dx, float *sum, const bool indexed)
{
    const i32x16 dy = WIDE_BITS(j->dy + at + c);
    const i32x16 index =
        indexed ? __builtin_convertvector(*(const u8x16 *)(j->index_in + at + c), i32x16) : (i32x16){0};
    const i32x16 y = indexed ? (i32x16){0} : WIDE_BITS(j->y_data + at + c);
    i32x16 open = ~(i32x16){0};
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t to = offset_of(j, v, kh, kw) + c;
            i32x16 here;
            if (indexed) {
                here = index == (int32_t)(kh * j->kernel_w + kw);
            } else { // the first place that equals the maximum
                here = ((f32x16)WIDE_BITS(j->x_data + image_at + to) == (f32x16)y) & open;
                open &= ~here;
            }
            if (sum == NULL) {
                *(u16x16 *)(dx + to) = __builtin_convertvector((dy & here) >> 16, u16x16);
            } else {
                F32X16W(sum + to) += (f32x16)(dy & here);
            }
        }
    }
}

// `dx` is the image in bfloat16 where windows tile it, `sum` in float32 where they do not.
CPU_INLINE void route_window(const job *j, int64_t image_at, const window *v, int64_t at, uint16_t *dx,
                             float *sum)
{
    int64_t c = 0;
    for (; c + CPU_LANES <= j->y.channels; c += CPU_LANES) {
        if (j->index_in != NULL) {
            route_lanes(j, image_at, v, at, c, dx, sum, true);
        } else {
            route_lanes(j, image_at, v, at, c, dx, sum, false);
        }
    }
    for (; c < j->y.channels; c++) {
        route_lane(j, image_at, v, at, c, dx, sum);
    }
}

static void clear_edges(const job *j, uint16_t *image)
{
    const int64_t row = j->x.width * j->x.channels, covered = j->y.width * j->kernel_w * j->x.channels;
    const int64_t rows = j->y.height * j->kernel_h;
    for (int64_t h = 0; h < rows && covered < row; h++) {
        memset(image + h * row + covered, 0, (size_t)(row - covered) * sizeof *image);
    }
    memset(image + rows * row, 0, (size_t)((j->x.height - rows) * row) * sizeof *image);
}

CPU_HOT static void route_image(const job *shared, int64_t image, uint16_t *dx, float *sum)
{
    const job j = *shared;
    const int64_t image_at = image * j.x.height * j.x.width * j.x.channels;
    for (int64_t oh = 0; oh < j.y.height; oh++) {
        for (int64_t ow = 0; ow < j.y.width; ow++) {
            const window v = window_at(&j, oh, ow);
            route_window(&j, image_at, &v, ((image * j.y.height + oh) * j.y.width + ow) * j.y.channels, dx,
                         sum);
        }
    }
}

static void route_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const int64_t elements = j->x.height * j->x.width * j->x.channels;
    for (int64_t image = begin; image < end; image++) {
        uint16_t *dx = j->out + image * elements;
        if (j->scratch == NULL) {
            clear_edges(j, dx);
            route_image(j, image, dx, NULL);
            continue;
        }
        float *sum = j->scratch + (int64_t)worker * elements;
        memset(sum, 0, (size_t)elements * sizeof *sum);
        route_image(j, image, dx, sum);
        cast_narrow_bf16(dx, sum, elements);
    }
}

static job bwd_job(const op_query *q)
{
    const bool indexed = q->op == HR_OP_MAX_POOL_BWD_INDEX;
    return indexed ? job_of(q, &q->out[0], &q->in[0]) : job_of(q, &q->in[0], &q->in[1]);
}

static uint64_t bwd_workspace(const cpu_device *device, const op_query *q)
{
    const job j = bwd_job(q);
    const uint64_t elements = (uint64_t)(j.x.height * j.x.width * j.x.channels);
    return tiles(&j) ? 0 : elements * device->threads * sizeof(float);
}

static void run_max_pool_bwd(const cpu_run *r)
{
    job j = bwd_job(r->query);
    if (r->query->op == HR_OP_MAX_POOL_BWD_INDEX) {
        j.index_in = r->in[0];
        j.dy = r->in[1];
    } else {
        j.x_data = r->in[0];
        j.y_data = r->in[1];
        j.dy = r->in[2];
    }
    j.out = r->out[0];
    j.scratch = tiles(&j) ? NULL : r->workspace;
    workers_for(r->device->workers, j.x.images, 1, route_body, &j);
}

const cpu_impl cpu_max_pool_bf16 = {
    .name = "loops", .types = CPU_HALF, .fits = cpu_all_bf16, .run = run_max_pool};
const cpu_impl cpu_max_pool_bwd_bf16 = {.name = "loops",
                                        .types = CPU_HALF,
                                        .fits = cpu_all_bf16,
                                        .workspace = bwd_workspace,
                                        .run = run_max_pool_bwd};
