// SPDX-License-Identifier: Apache-2.0
// Pooling. Padding never wins a maximum and never takes a gradient.
#include <string.h>

#include "kernels.h"

// One window: its output element, and the part of the input that it sees, for one channel.
typedef struct window {
    int64_t out;                     // index of the output element
    int64_t image, channel;          // offsets into the input
    int64_t top, left;               // of place 0, may lie in the padding
    int64_t height, width, channels; // of the input
    int64_t kernel_h, kernel_w;
} window;

enum { OUTSIDE = -1 };

// Input index of place `place` (row-major in the window), OUTSIDE in the padding.
static int64_t window_at(const window *w, int64_t place)
{
    const int64_t h = w->top + place / w->kernel_w, x = w->left + place % w->kernel_w;
    if (h < 0 || h >= w->height || x < 0 || x >= w->width) {
        return OUTSIDE;
    }
    return w->image + (h * w->width + x) * w->channels + w->channel;
}

static int64_t window_places(const window *w)
{
    return w->kernel_h * w->kernel_w;
}

// Window of output element `out`, for input shape x and output shape y.
static window window_of(const op_attr *a, const hr_shape *x, const hr_shape *y, int64_t out)
{
    const int64_t c = y->dim[3];
    const int64_t ow = out / c % y->dim[2], oh = out / c / y->dim[2] % y->dim[1];
    const int64_t n = out / c / y->dim[2] / y->dim[1];
    return (window){
        .out = out,
        .image = n * x->dim[1] * x->dim[2] * c,
        .channel = out % c,
        .top = oh * a->stride_h - a->pad_top,
        .left = ow * a->stride_w - a->pad_left,
        .height = x->dim[1],
        .width = x->dim[2],
        .channels = c,
        .kernel_h = a->kernel_h,
        .kernel_w = a->kernel_w,
    };
}

// Of the image, or of what its normalisation and activation make of it.
static double pooled_value(const reference_call *call, int64_t at)
{
    static const uint32_t own[] = {1, 2, 3, 4};
    const int32_t act = call->query->attr.act;
    if (call->query->in_count == 1) {
        return ((const double *)call->in[0])[at];
    }
    const double y = reference_normalised(call, 0, (uint64_t)at, own);
    const double above = act == HR_ACT_NONE || y > 0.0 ? y : 0.0;
    return act == HR_ACT_RELU6 && above > 6.0 ? 6.0 : above;
}

// First place of the largest value, and the value.
static int64_t window_best(const reference_call *call, const window *w, double *value)
{
    int64_t best = OUTSIDE;
    for (int64_t place = 0; place < window_places(w); place++) {
        const int64_t at = window_at(w, place);
        const double here = at == OUTSIDE ? 0.0 : pooled_value(call, at);
        if (at != OUTSIDE && (best == OUTSIDE || here > *value)) {
            best = place;
            *value = here;
        }
    }
    return best;
}

void reference_max_pool(const reference_call *call)
{
    const op_query *q = call->query;
    double *y = call->out[0];
    uint8_t *index = q->out_count > 1 ? call->out[1] : NULL;
    for (int64_t out = 0; out < (int64_t)call->out_count[0]; out++) {
        const window w = window_of(&q->attr, &q->in[0].shape, &q->out[0].shape, out);
        const int64_t best = window_best(call, &w, &y[out]);
        if (index != NULL) {
            index[out] = (uint8_t)best;
        }
    }
}

void reference_max_pool_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    const double *x = call->in[0], *y = call->in[1], *dy = call->in[2];
    double *dx = call->out[0];
    memset(dx, 0, call->out_count[0] * sizeof *dx);
    for (int64_t out = 0; out < (int64_t)call->in_count[2]; out++) {
        const window w = window_of(&q->attr, &q->out[0].shape, &q->in[2].shape, out);
        for (int64_t place = 0; place < window_places(&w); place++) {
            const int64_t at = window_at(&w, place);
            if (at != OUTSIDE && x[at] == y[out]) {
                dx[at] += dy[out];
                break;
            }
        }
    }
}

void reference_unpool(const op_attr *a, const hr_shape *x, const hr_shape *pooled, const uint8_t *index,
                      const double *dy, double *dx)
{
    uint64_t pixels = 0, count = 0;
    (void)(shape_elements(x, &pixels) && shape_elements(pooled, &count)); // tensors that are there
    memset(dx, 0, pixels * sizeof *dx);
    for (int64_t out = 0; out < (int64_t)count; out++) {
        const window w = window_of(a, x, pooled, out);
        dx[window_at(&w, index[out])] += dy[out];
    }
}

void reference_max_pool_bwd_index(const reference_call *call)
{
    const op_query *q = call->query;
    reference_unpool(&q->attr, &q->out[0].shape, &q->in[1].shape, call->in[0], call->in[1], call->out[0]);
}

// What the sum over a window is divided by.
static double window_divisor(const window *w, const op_attr *a)
{
    int64_t inside = 0;
    for (int64_t place = 0; place < window_places(w); place++) {
        inside += window_at(w, place) != OUTSIDE;
    }
    return (double)((a->flags & OP_FLAG_PADDING) != 0 ? window_places(w) : inside);
}

void reference_avg_pool(const reference_call *call)
{
    const op_query *q = call->query;
    const double *x = call->in[0];
    double *y = call->out[0];
    for (int64_t out = 0; out < (int64_t)call->out_count[0]; out++) {
        const window w = window_of(&q->attr, &q->in[0].shape, &q->out[0].shape, out);
        y[out] = 0.0;
        for (int64_t place = 0; place < window_places(&w); place++) {
            const int64_t at = window_at(&w, place);
            y[out] += at != OUTSIDE ? x[at] : 0.0;
        }
        y[out] /= window_divisor(&w, &q->attr);
    }
}

void reference_avg_pool_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    const double *dy = call->in[0];
    double *dx = call->out[0];
    memset(dx, 0, call->out_count[0] * sizeof *dx);
    for (int64_t out = 0; out < (int64_t)call->in_count[0]; out++) {
        const window w = window_of(&q->attr, &q->out[0].shape, &q->in[0].shape, out);
        const double share = dy[out] / window_divisor(&w, &q->attr);
        for (int64_t place = 0; place < window_places(&w); place++) {
            const int64_t at = window_at(&w, place);
            if (at != OUTSIDE) {
                dx[at] += share;
            }
        }
    }
}

void reference_global_avg_pool(const reference_call *call)
{
    const hr_shape *shape = &call->query->in[0].shape;
    const int64_t pixels = shape->dim[1] * shape->dim[2], channels = shape->dim[3];
    const double *x = call->in[0];
    double *y = call->out[0];
    for (int64_t i = 0; i < (int64_t)call->out_count[0]; i++) {
        const double *image = x + i / channels * pixels * channels + i % channels;
        double sum = 0.0;
        for (int64_t p = 0; p < pixels; p++) {
            sum += image[p * channels];
        }
        y[i] = sum / (double)pixels;
    }
}

void reference_global_avg_pool_bwd(const reference_call *call)
{
    const hr_shape *shape = &call->query->out[0].shape;
    const int64_t pixels = shape->dim[1] * shape->dim[2], channels = shape->dim[3];
    const double *dy = call->in[0];
    double *dx = call->out[0];
    for (int64_t i = 0; i < (int64_t)call->out_count[0]; i++) {
        dx[i] = dy[i / channels / pixels * channels + i % channels] / (double)pixels;
    }
}
