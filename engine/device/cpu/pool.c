// SPDX-License-Identifier: Apache-2.0
// Pooling of float32 and bfloat16 images. Padding never wins a maximum and never takes a gradient. A maximum moves bits;
// gradients of windows that overlap are summed in float32, of bfloat16 an image at a time, and rounded once. Both backward
// passes add the same numbers in the same order, so that they agree bit for bit.
#include <string.h>

#include "base/half.h"
#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

typedef uint8_t u8x16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t u16x16 __attribute__((vector_size(32), aligned(2), may_alias));

typedef struct window_job {
    cpu_image x, y;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    const void *x_data, *y_data, *dy; // as the pass needs them
    const uint8_t *index_in;          // NULL: found by comparing
    void *out;
    uint8_t *index_out;
    float *scratch; // an image of dx per worker, where windows of bfloat16 overlap
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

// ---- numbers of both types, as the bits of float32 ------------------------------------------------------------

// `half` is a constant wherever this is inlined. Vectors are no arguments: their registers depend on the processor.
#define BITS_AT(data, at, half)                                                                              \
    ((half) ? __builtin_convertvector(*(const u16x16 *)((const uint16_t *)(data) + (at)), i32x16) << 16      \
            : (i32x16)F32X16((const float *)(data) + (at)))
#define PUT_BITS(data, at, bits, half)                                                                       \
    do {                                                                                                     \
        if (half) {                                                                                          \
            *(u16x16 *)((uint16_t *)(data) + (at)) = __builtin_convertvector((bits) >> 16, u16x16);          \
        } else {                                                                                             \
            F32X16W((float *)(data) + (at)) = (f32x16)(bits);                                                \
        }                                                                                                    \
    } while (0)

CPU_INLINE float number_at(const void *data, int64_t at, const bool half)
{
    return half ? float_of_bf16(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

CPU_INLINE void put_number_of(void *data, int64_t at, const void *from, int64_t from_at, const bool half)
{
    if (half) {
        ((uint16_t *)data)[at] = ((const uint16_t *)from)[from_at];
    } else {
        ((float *)data)[at] = ((const float *)from)[from_at];
    }
}

// ---- windows --------------------------------------------------------------------------------------------------

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

// ---- forward --------------------------------------------------------------------------------------------------

CPU_INLINE void pool_lane(const window_job *j, const window *v, int64_t at, int64_t c, const bool half)
{
    int64_t best = v->top * j->kernel_w + v->left, best_at = offset_of(j, v, v->top, v->left) + c;
    float y = number_at(j->x_data, best_at, half);
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t from = offset_of(j, v, kh, kw) + c;
            const float x = number_at(j->x_data, from, half);
            best = x > y ? kh * j->kernel_w + kw : best;
            best_at = x > y ? from : best_at;
            y = x > y ? x : y;
        }
    }
    put_number_of(j->out, at + c, j->x_data, best_at, half);
    if (j->index_out != NULL) {
        j->index_out[at + c] = (uint8_t)best;
    }
}

CPU_INLINE void pool_lanes(const window_job *j, const window *v, int64_t at, int64_t c, const bool half)
{
    i32x16 best = (i32x16){0} + (int32_t)(v->top * j->kernel_w + v->left);
    i32x16 y = BITS_AT(j->x_data, offset_of(j, v, v->top, v->left) + c, half);
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const i32x16 x = BITS_AT(j->x_data, offset_of(j, v, kh, kw) + c, half);
            const i32x16 larger = (f32x16)x > (f32x16)y;
            y = (x & larger) | (y & ~larger);
            best = (((i32x16){0} + (int32_t)(kh * j->kernel_w + kw)) & larger) | (best & ~larger);
        }
    }
    PUT_BITS(j->out, at + c, y, half);
    if (j->index_out != NULL) {
        *(u8x16 *)(j->index_out + at + c) = __builtin_convertvector(best, u8x16);
    }
}

// Rows [begin, end) of the output, over all images. The copy of the job cannot be changed by what is stored.
CPU_INLINE void pool_rows(const window_job *shared, int64_t begin, int64_t end, const bool half)
{
    const window_job j = *shared;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / j.y.height, oh = row % j.y.height;
        for (int64_t ow = 0; ow < j.y.width; ow++) {
            const window v = window_at(&j, image, oh, ow);
            const int64_t at = (row * j.y.width + ow) * j.y.channels;
            int64_t c = 0;
            for (; c + CPU_LANES <= j.y.channels; c += CPU_LANES) {
                pool_lanes(&j, &v, at, c, half);
            }
            for (; c < j.y.channels; c++) {
                pool_lane(&j, &v, at, c, half);
            }
        }
    }
}

CPU_HOT static void pool_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    pool_rows(argument, begin, end, false);
}

CPU_HOT static void pool_body_bf16(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    pool_rows(argument, begin, end, true);
}

static void run_max_pool(const cpu_run *r)
{
    const op_query *q = r->query;
    window_job j = job_of(q, &q->in[0], &q->out[0]);
    j.x_data = r->in[0];
    j.out = r->out[0];
    j.index_out = q->out_count > 1 ? r->out[1] : NULL;
    workers_for_pieces(r->device->workers, j.y.images * j.y.height, 1,
                       q->in[0].dtype == HR_BF16 ? pool_body_bf16 : pool_body, &j);
}

// ---- backward -------------------------------------------------------------------------------------------------

// Where windows tile the image dx takes dy or 0 (sum NULL); where they overlap `sum`, an image in float32, adds it up.
// `dx` and `sum` begin with the image, `from` is its first number in the whole tensor.
typedef struct image_to {
    void *dx;
    float *sum;
    int64_t from;
} image_to;

CPU_INLINE void route_lane(const window_job *j, const window *v, const image_to *to, int64_t at, int64_t c,
                           const bool half)
{
    bool open = true;
    const float dy = number_at(j->dy, at + c, half);
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t place = offset_of(j, v, kh, kw) + c;
            const bool here = j->index_in != NULL ? j->index_in[at + c] == kh * j->kernel_w + kw
                                                  : open && number_at(j->x_data, place, half) ==
                                                                number_at(j->y_data, at + c, half);
            if (to->sum != NULL) {
                to->sum[place - to->from] += here ? dy : 0.0f;
            } else if (here) {
                put_number_of(to->dx, place - to->from, j->dy, at + c, half);
            } else {
                memset((char *)to->dx + (place - to->from) * (half ? 2 : 4), 0, half ? 2 : 4);
            }
            open = open && !here;
        }
    }
}

CPU_INLINE void route_lanes(const window_job *j, const window *v, const image_to *to, int64_t at, int64_t c,
                            const bool indexed, const bool adds, const bool half)
{
    const i32x16 dy = BITS_AT(j->dy, at + c, half);
    const i32x16 index =
        indexed ? __builtin_convertvector(*(const u8x16 *)(j->index_in + at + c), i32x16) : (i32x16){0};
    const f32x16 y = indexed ? (f32x16){0} : (f32x16)BITS_AT(j->y_data, at + c, half);
    i32x16 open = ~(i32x16){0};
    for (int64_t kh = v->top; kh < v->bottom; kh++) {
        for (int64_t kw = v->left; kw < v->right; kw++) {
            const int64_t place = offset_of(j, v, kh, kw) + c;
            i32x16 here;
            if (indexed) {
                here = index == (int32_t)(kh * j->kernel_w + kw);
            } else { // the first place that equals the maximum
                here = ((f32x16)BITS_AT(j->x_data, place, half) == y) & open;
                open &= ~here;
            }
            if (adds) {
                F32X16W(to->sum + place - to->from) += (f32x16)(dy & here);
            } else {
                PUT_BITS(to->dx, place - to->from, dy & here, half);
            }
        }
    }
}

// Windows side by side: every input is in one of them, but for what is left at the far edges.
static bool tiles(const window_job *j)
{
    return j->stride_h == j->kernel_h && j->stride_w == j->kernel_w && j->pad_top == 0 && j->pad_left == 0 &&
           j->y.height * j->kernel_h <= j->x.height && j->y.width * j->kernel_w <= j->x.width;
}

static void clear_edges(const window_job *j, char *image, int64_t number_bytes)
{
    const int64_t row_bytes = j->x.width * j->x.channels * number_bytes;
    const int64_t covered_bytes = j->y.width * j->kernel_w * j->x.channels * number_bytes;
    const int64_t rows = j->y.height * j->kernel_h;
    for (int64_t h = 0; h < rows && covered_bytes < row_bytes; h++) {
        memset(image + h * row_bytes + covered_bytes, 0, (size_t)(row_bytes - covered_bytes));
    }
    memset(image + rows * row_bytes, 0, (size_t)((j->x.height - rows) * row_bytes));
}

CPU_INLINE void route_windows(const window_job *j, int64_t image, const image_to *to, const bool indexed,
                              const bool adds, const bool half)
{
    for (int64_t oh = 0; oh < j->y.height; oh++) {
        for (int64_t ow = 0; ow < j->y.width; ow++) {
            const window v = window_at(j, image, oh, ow);
            const int64_t at = ((image * j->y.height + oh) * j->y.width + ow) * j->y.channels;
            int64_t c = 0;
            for (; c + CPU_LANES <= j->y.channels; c += CPU_LANES) {
                route_lanes(j, &v, to, at, c, indexed, adds, half);
            }
            for (; c < j->y.channels; c++) {
                route_lane(j, &v, to, at, c, half);
            }
        }
    }
}

CPU_INLINE void route_image(const window_job *shared, int64_t image, const image_to *to, const bool half)
{
    const window_job j = *shared;
    if (j.index_in != NULL && to->sum != NULL) {
        route_windows(&j, image, to, true, true, half);
    } else if (j.index_in != NULL) {
        route_windows(&j, image, to, true, false, half);
    } else if (to->sum != NULL) {
        route_windows(&j, image, to, false, true, half);
    } else {
        route_windows(&j, image, to, false, false, half);
    }
}

// Whole images: windows may overlap, and an image stays in the near caches.
CPU_HOT static void route_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const window_job *j = argument;
    const int64_t numbers = j->x.height * j->x.width * j->x.channels;
    const bool set = tiles(j);
    (void)worker;
    for (int64_t image = begin; image < end; image++) {
        float *dx = (float *)j->out + image * numbers;
        const image_to to = {.dx = dx, .sum = set ? NULL : dx, .from = image * numbers};
        if (set) {
            clear_edges(j, (char *)dx, sizeof *dx);
        } else {
            memset(dx, 0, (size_t)numbers * sizeof *dx);
        }
        route_image(j, image, &to, false);
    }
}

CPU_HOT static void route_body_bf16(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const window_job *j = argument;
    const int64_t numbers = j->x.height * j->x.width * j->x.channels;
    float *sum = j->scratch == NULL ? NULL : j->scratch + (int64_t)worker * numbers;
    for (int64_t image = begin; image < end; image++) {
        uint16_t *dx = (uint16_t *)j->out + image * numbers;
        const image_to to = {.dx = dx, .sum = sum, .from = image * numbers};
        if (sum == NULL) {
            clear_edges(j, (char *)dx, sizeof *dx);
        } else {
            memset(sum, 0, (size_t)numbers * sizeof *sum);
        }
        route_image(j, image, &to, true);
        if (sum != NULL) {
            cast_narrow_bf16(dx, sum, numbers);
        }
    }
}

static window_job bwd_job(const op_query *q)
{
    const bool indexed = q->op == HR_OP_MAX_POOL_BWD_INDEX;
    return indexed ? job_of(q, &q->out[0], &q->in[0]) : job_of(q, &q->in[0], &q->in[1]);
}

static window_job bwd_job_with(const cpu_run *r)
{
    window_job j = bwd_job(r->query);
    if (r->query->op == HR_OP_MAX_POOL_BWD_INDEX) {
        j.index_in = r->in[0];
        j.dy = r->in[1];
    } else {
        j.x_data = r->in[0];
        j.y_data = r->in[1];
        j.dy = r->in[2];
    }
    j.out = r->out[0];
    return j;
}

static void run_max_pool_bwd(const cpu_run *r)
{
    const window_job j = bwd_job_with(r);
    workers_for_pieces(r->device->workers, j.x.images, 1, route_body, &j);
}

static uint64_t bwd_workspace_bf16(const cpu_device *device, const op_query *q)
{
    const window_job j = bwd_job(q);
    const uint64_t numbers = (uint64_t)(j.x.height * j.x.width * j.x.channels);
    return tiles(&j) ? 0 : numbers * device->threads * sizeof(float);
}

static void run_max_pool_bwd_bf16(const cpu_run *r)
{
    window_job j = bwd_job_with(r);
    j.scratch = tiles(&j) ? NULL : r->workspace;
    workers_for(r->device->workers, j.x.images, 1, route_body_bf16, &j);
}

const cpu_impl cpu_max_pool = {.name = "loops", .run = run_max_pool};
const cpu_impl cpu_max_pool_bwd = {.name = "loops", .run = run_max_pool_bwd};
const cpu_impl cpu_max_pool_bf16 = {
    .name = "loops", .types = CPU_HALF, .fits = cpu_all_bf16, .run = run_max_pool};
const cpu_impl cpu_max_pool_bwd_bf16 = {.name = "loops",
                                        .types = CPU_HALF,
                                        .fits = cpu_all_bf16,
                                        .workspace = bwd_workspace_bf16,
                                        .run = run_max_pool_bwd_bf16};
