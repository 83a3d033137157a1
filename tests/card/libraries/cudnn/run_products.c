// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products.
#include <math.h>

#include "run.h"

// x[N,C,D,H,W], w[K,C/groups,…], y[N,K,…]: missing spatial dimensions are of extent 1.
typedef struct convolution {
    const runner *r;
    const graph_node *n;
    const image *x, *w, *y;
    int64_t dim_x[5], dim_w[5], dim_y[5], stride_x[5], stride_w[5], stride_y[5];
    int64_t pre[3], step[3], dilation[3];
} convolution;

static void spread(const graph_tensor *t, int64_t dim[5], int64_t stride[5])
{
    const int32_t missing = 5 - t->rank;
    for (int32_t k = 0; k < 5; k++) {
        const int32_t from = k < 2 ? k : k - missing;
        const bool there = k < 2 || k >= 2 + missing;
        dim[k] = there ? t->dim[from] : 1;
        stride[k] = there ? t->stride[from] : 0;
    }
}

// As engines of cuDNN 9.19 do on an H100 (numeric/cuda_engines): gradients of float32 know one padding of an axis.
static bool knows_one_padding(const runner *r, const graph_node *n)
{
    return n->kind != CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
           r->image[n->in[0]].shape->type == NUMBER_F32;
}

static convolution convolution_of(const runner *r, const graph_node *n, const image *x, const image *w,
                                  const image *y)
{
    convolution c = {.r = r, .n = n, .x = x, .w = w, .y = y};
    spread(x->shape, c.dim_x, c.stride_x);
    spread(w->shape, c.dim_w, c.stride_w);
    spread(y->shape, c.dim_y, c.stride_y);
    for (int64_t k = 0; k < 3; k++) {
        const int64_t from = k - (3 - n->spatial);
        c.pre[k] = from < 0 ? 0 : knows_one_padding(r, n) ? n->post[from] : n->pre[from];
        c.step[k] = from < 0 ? 1 : n->stride[from];
        c.dilation[k] = from < 0 ? 1 : n->dilation[from];
    }
    return c;
}

// What is done for every pair of an output pixel and a tap whose input pixel is inside the image, given where channel 0
// of x, of w and of y lie.
typedef void (*pixel_fn)(const convolution *c, int64_t x, int64_t w, int64_t y, double *sum);

static bool input_place(const convolution *c, const int64_t out[3], const int64_t tap[3], int64_t *place)
{
    for (int32_t k = 0; k < 3; k++) {
        const int64_t at = out[k] * c->step[k] - c->pre[k] + tap[k] * c->dilation[k];
        if (at < 0 || at >= c->dim_x[k + 2]) {
            return false;
        }
        *place += at * c->stride_x[k + 2];
    }
    return true;
}

static void unroll(int64_t flat, const int64_t dim[3], int64_t out[3])
{
    out[2] = flat % dim[2];
    out[1] = flat / dim[2] % dim[1];
    out[0] = flat / dim[2] / dim[1];
}

static int64_t place_of(const int64_t index[3], const int64_t stride[3])
{
    return index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2];
}

static void walk(const convolution *c, pixel_fn products, double *sum)
{
    const int64_t *out_dim = &c->dim_y[2], *window = &c->dim_w[2];
    const int64_t pixels = out_dim[0] * out_dim[1] * out_dim[2], taps = window[0] * window[1] * window[2];
    for (int64_t at = 0; at < c->dim_y[0] * pixels; at++) {
        int64_t out[3], tap[3];
        unroll(at % pixels, out_dim, out);
        for (int64_t k = 0; k < taps; k++) {
            unroll(k, window, tap);
            int64_t x = at / pixels * c->stride_x[0];
            if (!input_place(c, out, tap, &x)) {
                continue;
            }
            const int64_t turned[3] = {window[0] - 1 - tap[0], window[1] - 1 - tap[1],
                                       window[2] - 1 - tap[2]};
            products(c, x, place_of(c->n->flips ? turned : tap, &c->stride_w[2]),
                     at / pixels * c->stride_y[0] + place_of(out, &c->stride_y[2]), sum);
        }
    }
}

// For every filter f and every channel of its group.
#define FOR_FILTERS(c)                                                                                       \
    for (int64_t f = 0, group_width = (c)->dim_w[0] / ((c)->dim_x[1] / (c)->dim_w[1]); f < (c)->dim_w[0];    \
         f++)                                                                                                \
        for (int64_t k = 0, first = f / group_width * (c)->dim_w[1]; k < (c)->dim_w[1]; k++)

static void into_y(const convolution *c, int64_t x, int64_t w, int64_t y, double *sum)
{
    FOR_FILTERS(c)
    {
        sum[y + f * c->stride_y[1]] += run_operand(c->r, c->x, x + (first + k) * c->stride_x[1]) *
                                       run_operand(c->r, c->w, w + f * c->stride_w[0] + k * c->stride_w[1]);
    }
}

static void into_x(const convolution *c, int64_t x, int64_t w, int64_t y, double *sum)
{
    FOR_FILTERS(c)
    {
        sum[x + (first + k) * c->stride_x[1]] +=
            run_operand(c->r, c->y, y + f * c->stride_y[1]) *
            run_operand(c->r, c->w, w + f * c->stride_w[0] + k * c->stride_w[1]);
    }
}

static void into_w(const convolution *c, int64_t x, int64_t w, int64_t y, double *sum)
{
    FOR_FILTERS(c)
    {
        sum[w + f * c->stride_w[0] + k * c->stride_w[1]] +=
            run_operand(c->r, c->x, x + (first + k) * c->stride_x[1]) *
            run_operand(c->r, c->y, y + f * c->stride_y[1]);
    }
}

static void put_sums(const runner *r, const graph_node *n, const image *out, const double *sum)
{
    cursor c = {{0}};
    do {
        const int64_t place = cursor_place(out->shape, &c);
        const double old = n->beta == 0.0f ? 0.0 : (double)n->beta * (double)out->at[place];
        out->at[place] = (float)((double)n->alpha[0] * run_shaken(r, sum[place]) + old);
    } while (cursor_next(out->shape, &c));
}

void run_convolution(const runner *r, const graph_node *n)
{
    const image *a = &r->image[n->in[0]], *b = &r->image[n->in[1]], *out = &r->image[n->out];
    double *sum = run_sums(graph_extent(out->shape));
    if (n->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
        const convolution c = convolution_of(r, n, a, b, out);
        walk(&c, into_y, sum);
    } else if (n->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
        const convolution c = convolution_of(r, n, out, b, a);
        walk(&c, into_x, sum);
    } else {
        const convolution c = convolution_of(r, n, a, out, b);
        walk(&c, into_w, sum);
    }
    put_sums(r, n, out, sum);
    run_sums_free(sum);
}

void run_matmul(const runner *r, const graph_node *n)
{
    const image *a = &r->image[n->in[0]], *b = &r->image[n->in[1]], *out = &r->image[n->out];
    const int32_t row = out->shape->rank - 2, column = out->shape->rank - 1;
    const int64_t step_a = a->shape->stride[column], step_b = b->shape->stride[row];
    cursor c = {{0}};
    do {
        cursor of_a = c, of_b = c;
        of_a.index[column] = 0;
        of_b.index[row] = 0;
        const int64_t at_a = cursor_place(a->shape, &of_a), at_b = cursor_place(b->shape, &of_b);
        double sum = 0;
        for (int64_t k = 0; k < a->shape->dim[column]; k++) {
            sum += run_operand(r, a, at_a + k * step_a) * run_operand(r, b, at_b + k * step_b);
        }
        out->at[cursor_place(out->shape, &c)] = (float)run_shaken(r, sum);
    } while (cursor_next(out->shape, &c));
}
