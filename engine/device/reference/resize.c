// SPDX-License-Identifier: Apache-2.0
// Images of another size: every pixel of the result from its four neighbours or from its window, and its gradient back to
// them.
#include "ops/resize.h"

#include <string.h>

#include "kernels.h"
#include "ops/adaptive.h"

typedef struct sides {
    resize_axis h, w;
    int64_t images, channels;
} sides;

static sides sides_of(const op_attr *attr, const hr_shape *x, const hr_shape *y)
{
    return (sides){resize_axis_of(attr, x->dim[1], y->dim[1]), resize_axis_of(attr, x->dim[2], y->dim[2]),
                   x->dim[0], x->dim[3]};
}

typedef struct corner {
    int64_t at; // pixel of x
    double share;
} corner;

static void corners_of(const sides *s, int64_t image, int64_t oh, int64_t ow, corner out[4])
{
    const resize_tap h = resize_tap_of(&s->h, oh), w = resize_tap_of(&s->w, ow);
    const double down = (double)h.part / (double)s->h.per, right = (double)w.part / (double)s->w.per;
    for (int k = 0; k < 4; k++) {
        const int64_t row = k / 2 == 0 ? h.at : h.next, column = k % 2 == 0 ? w.at : w.next;
        out[k].at = (image * (s->h.last + 1) + row) * (s->w.last + 1) + column;
        out[k].share = (k / 2 == 0 ? 1 - down : down) * (k % 2 == 0 ? 1 - right : right);
    }
}

// `x` and `y` are the images of both sizes; `back` adds y's numbers to those of x.
static void over_pixels(const sides *s, double *x, double *y, bool back)
{
    for (int64_t pixel = 0; pixel < s->images * s->h.out * s->w.out; pixel++) {
        corner four[4];
        corners_of(s, pixel / s->w.out / s->h.out, pixel / s->w.out % s->h.out, pixel % s->w.out, four);
        for (int64_t c = 0; c < s->channels; c++) {
            double *beside = &y[pixel * s->channels + c];
            double sum = 0;
            for (int k = 0; k < 4; k++) {
                double *at = &x[four[k].at * s->channels + c];
                sum += four[k].share * *at;
                *at += back ? four[k].share * *beside : 0;
            }
            *beside = back ? *beside : sum;
        }
    }
}

void reference_resize(const reference_call *call)
{
    const op_query *q = call->query;
    const sides s = sides_of(&q->attr, &q->in[0].shape, &q->out[0].shape);
    over_pixels(&s, call->in[0], call->out[0], false);
}

void reference_resize_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    const sides s = sides_of(&q->attr, &q->out[0].shape, &q->in[0].shape);
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    over_pixels(&s, call->out[0], call->in[0], true);
}

// Pixel (h, w) of y, an image's, has the mean of its window in x; or what is behind it goes back there in equal parts.
static void over_window(const hr_shape *x_shape, const hr_shape *y_shape, double *x, double *y, bool back)
{
    const int64_t *of = x_shape->dim, *to = y_shape->dim, channels = of[3];
    for (int64_t pixel = 0; pixel < to[0] * to[1] * to[2]; pixel++) {
        const int64_t h = pixel / to[2] % to[1], w = pixel % to[2], image = pixel / to[2] / to[1];
        const int64_t h_end = adaptive_end(h, of[1], to[1]), w_end = adaptive_end(w, of[2], to[2]);
        const double share =
            1.0 / (double)(adaptive_places(h, of[1], to[1]) * adaptive_places(w, of[2], to[2]));
        for (int64_t at_h = adaptive_begin(h, of[1], to[1]); at_h < h_end; at_h++) {
            for (int64_t at_w = adaptive_begin(w, of[2], to[2]); at_w < w_end; at_w++) {
                double *seen = &x[((image * of[1] + at_h) * of[2] + at_w) * channels];
                for (int64_t c = 0; c < channels; c++) {
                    double *to_add = back ? &seen[c] : &y[pixel * channels + c];
                    *to_add += share * (back ? y[pixel * channels + c] : seen[c]);
                }
            }
        }
    }
}

void reference_adaptive_pool(const reference_call *call)
{
    const op_query *q = call->query;
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    over_window(&q->in[0].shape, &q->out[0].shape, call->in[0], call->out[0], false);
}

void reference_adaptive_pool_bwd(const reference_call *call)
{
    const op_query *q = call->query;
    memset(call->out[0], 0, call->out_count[0] * sizeof(double));
    over_window(&q->out[0].shape, &q->in[0].shape, call->out[0], call->in[0], true);
}
