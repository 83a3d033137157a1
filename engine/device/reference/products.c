// SPDX-License-Identifier: Apache-2.0
// Convolution and dense layers. Both are the same sum of products,
//
//     y[n,oh,ow,f] = Σ x[n, oh·stride + kh·step − pad, ow·stride + kw·step − pad, c] · w[kh,kw,c,f],
//
// and forward, data gradient and weight gradient walk the same products in the same order; only the side that
// collects differs. A dense layer is a 1×1 convolution over one row of pixels, one for each row of x.
#include <string.h>

#include "kernels.h"

typedef enum collector { COLLECT_Y, COLLECT_X, COLLECT_W } collector;

typedef struct products {
    collector to;
    double *x, *w, *y;
    int64_t n, h, width, c; // input image
    int64_t oh, ow, f;      // output image
    int64_t kh, kw, c_group, f_group;
    int64_t stride_h, stride_w, step_h, step_w; // from window to window, from tap to tap
    int64_t pad_top, pad_left;
} products;

// Blocks of a fixed length, so that every compiler level vectorises them; the order of additions is part of what
// the judge is.
enum { BLOCK = 4 };

static inline void add_scaled(double scale, const double *restrict from, double *restrict to, int64_t count)
{
    int64_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        for (int64_t k = 0; k < BLOCK; k++) {
            to[i + k] += scale * from[i + k];
        }
    }
    for (; i < count; i++) {
        to[i] += scale * from[i];
    }
}

static inline double dot(const double *restrict a, const double *restrict b, int64_t count)
{
    double part[BLOCK] = {0};
    int64_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        for (int64_t k = 0; k < BLOCK; k++) {
            part[k] += a[i + k] * b[i + k];
        }
    }
    for (; i < count; i++) {
        part[0] += a[i] * b[i];
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

// The products of one input scalar with the weights and outputs of its group.
static inline void collect(collector to, double *x, double *w, double *y, int64_t count)
{
    switch (to) {
    case COLLECT_Y:
        add_scaled(*x, w, y, count);
        break;
    case COLLECT_X:
        *x += dot(w, y, count);
        break;
    case COLLECT_W:
        add_scaled(*x, y, w, count);
        break;
    }
}

// All products of output row (n, oh) with the weights at (kh, kw). A row of weights stays near while the row of
// pixels goes by.
static void walk_row(const products *p, int64_t n, int64_t oh, int64_t kh, int64_t kw)
{
    const int64_t ih = oh * p->stride_h + kh * p->step_h - p->pad_top;
    if (ih < 0 || ih >= p->h) {
        return;
    }
    for (int64_t c = 0; c < p->c; c++) {
        const int64_t group = c / p->c_group;
        double *w = p->w + ((kh * p->kw + kw) * p->c_group + c % p->c_group) * p->f + group * p->f_group;
        for (int64_t ow = 0; ow < p->ow; ow++) {
            const int64_t iw = ow * p->stride_w + kw * p->step_w - p->pad_left;
            if (iw >= 0 && iw < p->width) {
                double *x = p->x + ((n * p->h + ih) * p->width + iw) * p->c + c;
                double *y = p->y + ((n * p->oh + oh) * p->ow + ow) * p->f + group * p->f_group;
                collect(p->to, x, w, y, p->f_group);
            }
        }
    }
}

static void walk(const products *p)
{
    for (int64_t n = 0; n < p->n; n++) {
        for (int64_t oh = 0; oh < p->oh; oh++) {
            for (int64_t tap = 0; tap < p->kh * p->kw; tap++) {
                walk_row(p, n, oh, tap / p->kw, tap % p->kw);
            }
        }
    }
}

static products convolution(const reference_call *call, const hr_shape *x, const hr_shape *w,
                            const hr_shape *y)
{
    const op_attr *a = &call->query->attr;
    const int64_t groups = x->dim[3] / w->dim[2];
    return (products){
        .n = y->dim[0],
        .h = x->dim[1],
        .width = x->dim[2],
        .c = x->dim[3],
        .oh = y->dim[1],
        .ow = y->dim[2],
        .f = y->dim[3],
        .kh = w->dim[0],
        .kw = w->dim[1],
        .c_group = w->dim[2],
        .f_group = y->dim[3] / groups,
        .stride_h = a->stride_h,
        .stride_w = a->stride_w,
        .step_h = (int64_t)a->gap_h + 1,
        .step_w = (int64_t)a->gap_w + 1,
        .pad_top = a->pad_top,
        .pad_left = a->pad_left,
    };
}

// The rows of x and y as pixels, over weights [in, out].
static products pixels(int64_t rows, int64_t features_in, int64_t features_out)
{
    return (products){
        .n = 1,
        .h = 1,
        .width = rows,
        .c = features_in,
        .oh = 1,
        .ow = rows,
        .f = features_out,
        .kh = 1,
        .kw = 1,
        .c_group = features_in,
        .f_group = features_out,
        .stride_h = 1,
        .stride_w = 1,
    };
}

static void forward(const reference_call *call, products p, const double *bias)
{
    p.to = COLLECT_Y;
    p.x = call->in[0];
    p.w = call->in[1];
    p.y = call->out[0];
    for (int64_t row = 0; row < p.n * p.oh * p.ow; row++) {
        for (int64_t f = 0; f < p.f; f++) {
            p.y[row * p.f + f] = bias != NULL ? bias[f] : 0.0;
        }
    }
    walk(&p);
}

static void add_rows(const double *rows, int64_t count, double *sum, int64_t columns)
{
    memset(sum, 0, (size_t)columns * sizeof *sum);
    for (int64_t row = 0; row < count; row++) {
        add_scaled(1.0, rows + row * columns, sum, columns);
    }
}

static void backward_data(const reference_call *call, products p)
{
    p.to = COLLECT_X;
    p.y = call->in[0];
    p.w = call->in[1];
    p.x = call->out[0];
    memset(p.x, 0, call->out_count[0] * sizeof *p.x);
    walk(&p);
}

static void backward_weights(const reference_call *call, products p)
{
    p.to = COLLECT_W;
    p.x = call->in[0];
    p.y = call->in[1];
    p.w = call->out[0];
    memset(p.w, 0, call->out_count[0] * sizeof *p.w);
    walk(&p);
    if (call->query->out_count < 2) {
        return;
    }
    add_rows(p.y, p.n * p.oh * p.ow, call->out[1], p.f);
}

void reference_conv2d(const reference_call *call)
{
    const op_query *q = call->query;
    forward(call, convolution(call, &q->in[0].shape, &q->in[1].shape, &q->out[0].shape),
            q->in_count > 2 ? call->in[2] : NULL);
    reference_act(call);
}

void reference_conv2d_bwd_data(const reference_call *call)
{
    const op_query *q = call->query;
    backward_data(call, convolution(call, &q->out[0].shape, &q->in[1].shape, &q->in[0].shape));
}

void reference_conv2d_bwd_weights(const reference_call *call)
{
    const op_query *q = call->query;
    backward_weights(call, convolution(call, &q->in[0].shape, &q->out[0].shape, &q->in[1].shape));
}

// A transposed convolution is the data gradient of one: its result is that convolution's x, its operand the y.
void reference_conv2d_transpose(const reference_call *call)
{
    const op_query *q = call->query;
    backward_data(call, convolution(call, &q->out[0].shape, &q->in[1].shape, &q->in[0].shape));
    const double *bias = q->in_count > 2 ? call->in[2] : NULL;
    const int64_t filters = q->out[0].shape.dim[3];
    double *y = call->out[0];
    for (int64_t i = 0; bias != NULL && i < (int64_t)call->out_count[0]; i++) {
        y[i] += bias[i % filters];
    }
}

void reference_conv2d_transpose_bwd_data(const reference_call *call)
{
    const op_query *q = call->query;
    forward(call, convolution(call, &q->in[0].shape, &q->in[1].shape, &q->out[0].shape), NULL);
}

void reference_conv2d_transpose_bwd_weights(const reference_call *call)
{
    const op_query *q = call->query;
    products p = convolution(call, &q->in[1].shape, &q->out[0].shape, &q->in[0].shape);
    p.to = COLLECT_W;
    p.x = call->in[1];
    p.y = call->in[0];
    p.w = call->out[0];
    memset(p.w, 0, call->out_count[0] * sizeof *p.w);
    walk(&p);
    if (q->out_count > 1) {
        add_rows(p.x, p.n * p.h * p.width, call->out[1], p.c);
    }
}

// Weights [out, in] are those of a layer from y to x: its data gradient is this one's result and the other way
// round.
static bool is_transposed(const reference_call *call)
{
    return (call->query->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

static products dense(const op_operand *x, const op_operand *w)
{
    uint64_t elements = 0;
    (void)shape_elements(&x->shape, &elements);
    const int64_t rows = (int64_t)elements / x->shape.dim[x->shape.rank - 1];
    return pixels(rows, w->shape.dim[0], w->shape.dim[1]);
}

static bool is_added(const reference_call *call)
{
    return (call->query->attr.flags & OP_FLAG_ADDED) != 0;
}

static void add_last(const reference_call *call)
{
    if (is_added(call)) {
        add_scaled(1.0, call->in[call->query->in_count - 1], call->out[0], (int64_t)call->out_count[0]);
    }
}

static void multiply_dense(const reference_call *call)
{
    const products p = dense(&call->query->in[0], &call->query->in[1]);
    const bool biased = call->query->in_count - is_added(call) > 2;
    if (!is_transposed(call)) {
        forward(call, p, biased ? call->in[2] : NULL);
        return;
    }
    backward_data(call, p);
    for (int64_t row = 0; biased && row < p.width; row++) {
        add_scaled(1.0, call->in[2], (double *)call->out[0] + row * p.c, p.c);
    }
}

void reference_dense(const reference_call *call)
{
    multiply_dense(call);
    add_last(call);
    if (call->query->out_count > 1) {
        memcpy(call->out[1], call->out[0], call->out_count[0] * sizeof(double));
    }
    reference_act(call);
}

static void multiply_dense_bwd_data(const reference_call *call)
{
    products p = dense(&call->query->in[0], &call->query->in[1]);
    if (!is_transposed(call)) {
        backward_data(call, p);
        return;
    }
    p.to = COLLECT_Y;
    p.x = call->in[0];
    p.w = call->in[1];
    p.y = call->out[0];
    memset(p.y, 0, call->out_count[0] * sizeof *p.y);
    walk(&p);
}

void reference_dense_bwd_data(const reference_call *call)
{
    multiply_dense_bwd_data(call);
    add_last(call);
    if (call->query->attr.act == HR_ACT_GELU) {
        reference_gelu_gradient(call->in[2], call->out[0], call->out_count[0]);
    }
}

void reference_dense_bwd_weights(const reference_call *call)
{
    products p = dense(&call->query->in[0], &call->query->out[0]);
    if (!is_transposed(call)) {
        backward_weights(call, p);
        return;
    }
    p.to = COLLECT_W;
    p.x = call->in[1];
    p.y = call->in[0];
    p.w = call->out[0];
    memset(p.w, 0, call->out_count[0] * sizeof *p.w);
    walk(&p);
    if (call->query->out_count > 1) {
        add_rows(p.x, p.width, call->out[1], p.c);
    }
}
