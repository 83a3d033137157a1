// SPDX-License-Identifier: Apache-2.0
// Pointwise operations, reductions and random numbers.
#include <math.h>

#include "run.h"

static double rectified(const graph_node *n, double x)
{
    if (x < (double)n->low) {
        return (double)n->low + (double)n->slope * (x - (double)n->low);
    }
    return x > (double)n->high ? (double)n->high : x;
}

static double normal_cdf(double x)
{
    return 0.5 * (1.0 + erf(x * 0.70710678118654752440));
}

static double of_one(const graph_node *n, double x)
{
    switch (n->mode) {
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_SQRT:
        return sqrt(x);
    case CUDNN_POINTWISE_RSQRT:
        return 1.0 / sqrt(x);
    case CUDNN_POINTWISE_RECIPROCAL:
        return 1.0 / x;
    case CUDNN_POINTWISE_NEG:
        return -x;
    case CUDNN_POINTWISE_ABS:
        return fabs(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_RELU_FWD:
        return rectified(n, x);
    case CUDNN_POINTWISE_TANH_FWD:
        return tanh(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
        return 1.0 / (1.0 + exp(-x));
    case CUDNN_POINTWISE_GELU_FWD:
        return x * normal_cdf(x);
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case CUDNN_POINTWISE_LOGICAL_NOT:
        return x == 0.0;
    default:
        return NAN; // no mode that the emulation knows
    }
}

static double of_two(const graph_node *n, double x, double b)
{
    switch (n->mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_MAX:
        return x > b ? x : b;
    case CUDNN_POINTWISE_MIN:
        return x < b ? x : b;
    case CUDNN_POINTWISE_CMP_EQ:
        return x == b;
    case CUDNN_POINTWISE_CMP_NEQ:
        return x != b;
    case CUDNN_POINTWISE_CMP_GT:
        return x > b;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_CMP_LT:
        return x < b;
    case CUDNN_POINTWISE_CMP_LE:
        return x <= b;
    case CUDNN_POINTWISE_LOGICAL_AND:
        return x != 0.0 && b != 0.0;
    case CUDNN_POINTWISE_LOGICAL_OR:
        return x != 0.0 || b != 0.0;
    default:
        return NAN;
    }
}

static double value_of(const runner *r, const graph_node *n, int32_t k, const cursor *c)
{
    const image *t = &r->image[n->in[k]];
    return (double)t->at[cursor_place(t->shape, c)];
}

void run_pointwise(const runner *r, const graph_node *n)
{
    const image *y = &r->image[n->out];
    cursor c = {{0}};
    do {
        const double x = value_of(r, n, 0, &c) * (double)n->alpha[0];
        double result = 0;
        if (n->mode == CUDNN_POINTWISE_GEN_INDEX) {
            result = (double)c.index[n->axis];
        } else if (n->mode == CUDNN_POINTWISE_BINARY_SELECT) {
            result = value_of(r, n, 2, &c) != 0.0 ? x : value_of(r, n, 1, &c);
        } else if (n->in_count == 2) {
            result = of_two(n, x, value_of(r, n, 1, &c) * (double)n->alpha[1]);
        } else {
            result = of_one(n, x);
        }
        y->at[cursor_place(y->shape, &c)] = (float)result;
    } while (cursor_next(y->shape, &c));
}

static double start_of(int32_t mode)
{
    switch (mode) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return 1.0;
    case CUDNN_REDUCE_TENSOR_MAX:
        return -HUGE_VAL;
    case CUDNN_REDUCE_TENSOR_MIN:
        return HUGE_VAL;
    default:
        return 0.0;
    }
}

static double with(int32_t mode, double sum, double x)
{
    switch (mode) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return sum * x;
    case CUDNN_REDUCE_TENSOR_MAX:
        return x > sum ? x : sum;
    case CUDNN_REDUCE_TENSOR_MIN:
        return x < sum ? x : sum;
    case CUDNN_REDUCE_TENSOR_AMAX:
        return fabs(x) > sum ? fabs(x) : sum;
    case CUDNN_REDUCE_TENSOR_NORM1:
        return sum + fabs(x);
    case CUDNN_REDUCE_TENSOR_NORM2:
        return sum + x * x;
    default:
        return sum + x;
    }
}

static double end_of(int32_t mode, double sum, double count)
{
    return mode == CUDNN_REDUCE_TENSOR_AVG     ? sum / count
           : mode == CUDNN_REDUCE_TENSOR_NORM2 ? sqrt(sum)
                                               : sum;
}

void run_reduction(const runner *r, const graph_node *n)
{
    const image *x = &r->image[n->in[0]], *y = &r->image[n->out];
    double *sum = run_sums(graph_extent(y->shape));
    cursor c = {{0}};
    do {
        sum[cursor_place(y->shape, &c)] = start_of(n->mode);
    } while (cursor_next(y->shape, &c));
    c = (cursor){{0}};
    do {
        double *at = &sum[cursor_place(y->shape, &c)];
        *at = with(n->mode, *at, (double)x->at[cursor_place(x->shape, &c)]);
    } while (cursor_next(x->shape, &c));
    const double count = (double)graph_elements(x->shape) / (double)graph_elements(y->shape);
    c = (cursor){{0}};
    do {
        const int64_t place = cursor_place(y->shape, &c);
        y->at[place] = (float)end_of(n->mode, sum[place], count);
    } while (cursor_next(y->shape, &c));
    run_sums_free(sum);
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9); // splitmix64
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

// Ones and zeros that seed, offset and place decide: not the library's numbers, which nobody may count on.
void run_random(const runner *r, const graph_node *n)
{
    const image *y = &r->image[n->out];
    uint64_t seed = 0, offset = 0, place = 0;
    memcpy(&seed, r->call->data[n->in[0]], sizeof seed);
    memcpy(&offset, r->call->data[n->in[1]], sizeof offset);
    cursor c = {{0}};
    do {
        const uint64_t word = mixed(mixed(seed + 1) ^ mixed(offset + 2) ^ mixed(3 * ++place)) >> 11;
        y->at[cursor_place(y->shape, &c)] = ldexp((double)word, -53) < n->ones ? 1.0f : 0.0f;
    } while (cursor_next(y->shape, &c));
}
