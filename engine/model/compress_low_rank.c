// SPDX-License-Identifier: Apache-2.0
// compress.low_rank: weights become thin factors, where that makes them fewer.
//
//   dense, m x n            x·U·V + b                       U [m, r], V [r, n]
//   1x1 convolution         the same of channels
//   k x k convolution       1x1, k x k, 1x1 + b             U [C, r1], core [k, k, r1, r2], V [r2, F]   (Tucker-2)
//
// Y.-D. Kim et al.: "Compression of deep convolutional neural networks for fast and low power mobile applications", ICLR 2016.
// From the start, factors are normal and of such deviations that the elements of their product have the variance of the layer's
// own beginning, and as the decomposition of trained weights shares it out: of two factors each has the root of the singular
// values, of three the core has them and the outer two are orthogonal columns (M. Khodak et al.: "Initialization and regularization
// of factorized neural layers", ICLR 2021).
#include "model/compress_low_rank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

static bool has_core(const hr_shape *w)
{
    return w->rank == 4 && w->dim[0] * w->dim[1] > 1;
}

static int64_t at_least_one(double rank)
{
    return rank >= 1 ? (int64_t)rank : 1;
}

static low_rank_ranks of_two(const low_rank_choice *choice, double m, double n)
{
    const double even = m * n / (m + n);
    const int64_t rank = choice->rank > 0 ? choice->rank : at_least_one(choice->ratio * even);
    return (low_rank_ranks){.in = rank,
                            .out = rank,
                            .full = (uint64_t)(m * n),
                            .elements = (uint64_t)rank * (uint64_t)(m + n),
                            .break_even = even,
                            .most = (int64_t)fmin(m, n)};
}

// Positive root of area·a²·C·F + a·(C² + F²) = share·area·C·F: of both channels the part a stays.
static double part_of(double area, double c, double f, double share)
{
    const double square = area * c * f, linear = c * c + f * f;
    return (sqrt(linear * linear + 4 * square * square * share) - linear) / (2 * square);
}

static low_rank_ranks of_three(const low_rank_choice *choice, const hr_shape *w)
{
    const double area = (double)(w->dim[0] * w->dim[1]), c = (double)w->dim[2], f = (double)w->dim[3];
    low_rank_ranks r = {.in = choice->rank,
                        .out = choice->rank,
                        .full = (uint64_t)(area * c * f),
                        .most = (int64_t)fmin(c, f)};
    if (choice->rank == 0) {
        const double part = part_of(area, c, f, choice->ratio);
        r.in = at_least_one(fmin(part * c, area * f));
        r.out = at_least_one(fmin(part * f, area * c));
        r.most = (int64_t)fmax(c, f); // each is below its own channels
    }
    r.elements = (uint64_t)w->dim[2] * (uint64_t)r.in + (uint64_t)area * (uint64_t)r.in * (uint64_t)r.out +
                 (uint64_t)r.out * (uint64_t)w->dim[3];
    r.break_even = (sqrt((c + f) * (c + f) + 4 * area * area * c * f) - (c + f)) / (2 * area);
    return r;
}

low_rank_ranks low_rank_ranks_of(const low_rank_choice *choice, const hr_shape *w)
{
    return has_core(w) ? of_three(choice, w)
                       : of_two(choice, (double)w->dim[w->rank - 2], (double)w->dim[w->rank - 1]);
}

static low_rank_ranks ranks_of(const compressor *c, uint32_t weights)
{
    return low_rank_ranks_of(&c->low_rank, &c->b->params.data[weights].shape);
}

bool low_rank_shrinks(const low_rank_ranks *r)
{
    return r->in <= r->most && r->out <= r->most && r->elements < r->full;
}

// ---- which -------------------------------------------------------------------------------------------------------------

static hr_status refuse(const compressor *c, uint32_t largest, hr_err *err)
{
    const char *text = hr_knob_text(c->knobs, HR_KNOB_COMPRESS_LOW_RANK);
    hr_status status = HR_KNOB;
    if (largest == HR_NO_ID) {
        status = HR_FAIL(err, KNOB,
                         "compress.low_rank=%.32s: model %.64s has no weights that a product could stand for",
                         text, c->model);
        hr_err_try(err, "-s compress.low_rank=none");
        return status;
    }
    const low_rank_ranks r = ranks_of(c, largest);
    const char *name = c->b->params.data[largest].name;
    if (c->low_rank.rank > r.most) {
        status = HR_FAIL(
            err, KNOB,
            "compress.low_rank=%.32s is above the full rank of every layer of model %.64s: %s has %lld", text,
            c->model, name, (long long)r.most);
    } else {
        status = HR_FAIL(
            err, KNOB, "compress.low_rank=%.32s makes no layer of model %.64s smaller: %s is below rank %.1f",
            text, c->model, name, r.break_even);
    }
    hr_err_try(err, "-s compress.low_rank=ratio:0.5");
    return status;
}

// Weights that products alone read, and that become fewer.
static bool choose(compressor *c)
{
    model_builder *b = c->b;
    bool any = false;
    for (uint32_t n = 0; n < b->nodes.count; n++) {
        const model_node *node = &b->nodes.data[n];
        if (compress_is_product(node)) {
            const low_rank_ranks r = ranks_of(c, node->in[1].index);
            c->gone[node->in[1].index] = low_rank_shrinks(&r);
        }
    }
    for (uint32_t n = 0; n < b->nodes.count; n++) {
        const model_node *node = &b->nodes.data[n];
        for (uint32_t k = 0; k < node->in_count; k++) {
            if (node->in[k].is_param && !(k == 1 && compress_is_product(node))) {
                c->gone[node->in[k].index] = false;
            }
        }
    }
    for (uint32_t n = 0; n < b->nodes.count; n++) {
        const model_node *node = &b->nodes.data[n];
        if (compress_is_product(node) && c->gone[node->in[1].index]) {
            any = c->touched[node->layer] = true;
        }
    }
    return any;
}

// The weights for which the largest rank is enough; HR_NO_ID: there are none.
static uint32_t largest_of(const compressor *c)
{
    uint32_t largest = HR_NO_ID;
    double most = 0;
    for (uint32_t n = 0; n < c->b->nodes.count; n++) {
        const model_node *node = &c->b->nodes.data[n];
        if (compress_is_product(node) && ranks_of(c, node->in[1].index).break_even > most) {
            most = ranks_of(c, node->in[1].index).break_even;
            largest = node->in[1].index;
        }
    }
    return largest;
}

hr_status compress_low_rank_begin(compressor *c, hr_err *err)
{
    return choose(c) ? HR_OK : refuse(c, largest_of(c), err);
}

// ---- factors ------------------------------------------------------------------------------------------------------------

static double variance_of(const model_param *p)
{
    const double in = (double)p->fan_in, out = (double)p->fan_out, scale = p->init_scale;
    static const double of_truncated = 0.7737413035; // of a normal distribution within two deviations
    switch (p->init) {
    case MODEL_INIT_GLOROT_UNIFORM:
        return 2 / (in + out);
    case MODEL_INIT_HE_UNIFORM:
        return 2 / in;
    case MODEL_INIT_NORMAL:
        return scale * scale;
    case MODEL_INIT_TRUNCATED_NORMAL:
        return of_truncated * scale * scale;
    case MODEL_INIT_UNIFORM:
        return scale * scale / 3;
    case MODEL_INIT_ZEROS:
    case MODEL_INIT_ONES:
    case MODEL_INIT_CONSTANT:
    case MODEL_INIT_FORGET_BIAS:
        break;
    }
    return 0; // weights that begin alike, as products cannot: the last factor begins with zeros
}

static void make_factor(compressor *c, uint32_t like, uint32_t which, const hr_shape *shape, double variance)
{
    static const char *const words[] = {"weights_u", "weights_v", "weights_core"};
    const uint64_t area = shape->rank == 4 ? (uint64_t)(shape->dim[0] * shape->dim[1]) : 1;
    const model_param factor = {.shape = *shape,
                                .category = HR_CATEGORY_WEIGHTS,
                                .trainable = true,
                                .factor = (model_factor)(MODEL_FACTOR_U + which),
                                .init = variance > 0 ? MODEL_INIT_NORMAL : MODEL_INIT_ZEROS,
                                .init_scale = sqrt(variance),
                                .fan_in = area * (uint64_t)shape->dim[shape->rank - 2],
                                .fan_out = area * (uint64_t)shape->dim[shape->rank - 1]};
    c->made[like][which] = compress_param(c, like, words[which], &factor);
}

static hr_shape outer_shape(const hr_shape *w, int64_t in, int64_t out)
{
    return w->rank == 4 ? shape_of(4, (const int64_t[]){1, 1, in, out})
                        : shape_of(2, (const int64_t[]){in, out});
}

static void make_factors(compressor *c, uint32_t weights)
{
    const model_param p = c->b->params.data[weights];
    const hr_shape *w = &p.shape;
    const int64_t m = w->dim[w->rank - 2], n = w->dim[w->rank - 1];
    const low_rank_ranks r = ranks_of(c, weights);
    const double variance = variance_of(&p), in = (double)r.in, out = (double)r.out;
    const hr_shape u = outer_shape(w, m, r.in), v = outer_shape(w, r.out, n);
    if (has_core(w)) {
        const hr_shape core = shape_of(4, (const int64_t[]){w->dim[0], w->dim[1], r.in, r.out});
        make_factor(c, weights, 0, &u, 1 / (double)m);
        make_factor(c, weights, 2, &core, variance * (double)m * (double)n / (in * out));
        make_factor(c, weights, 1, &v, 1 / (double)n);
        return;
    }
    const double singular = sqrt(variance * (double)m * (double)n / in);
    make_factor(c, weights, 0, &u, variance > 0 ? singular / (double)m : 1 / (double)m);
    make_factor(c, weights, 1, &v, singular / (double)n);
}

static uint32_t append(compressor *c, const model_node *node, const op_attr *attr, uint32_t x, uint32_t which,
                       const char *word)
{
    const model_node product = {.op = node->op,
                                .attr = *attr,
                                .in_count = 2,
                                .in = {ref_value(x), ref_param(c->made[node->in[1].index][which])}};
    return compress_node(c, &product, node->out[0], word);
}

// The last product has the bias and the result.
static void factor_node(compressor *c, const model_node *node)
{
    static const op_attr pixel = {.kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1, .groups = 1};
    const uint32_t weights = node->in[1].index;
    const bool core = has_core(&c->b->params.data[weights].shape);
    op_attr attr = node->attr;
    attr.flags &= ~OP_FLAG_PACKED;
    if (c->made[weights][0] == HR_NO_ID) {
        make_factors(c, weights);
    }
    uint32_t x = append(c, node, core ? &pixel : &attr, node->in[0].index, 0, "low");
    x = core ? append(c, node, &attr, x, 2, "core") : x;
    model_node last = *node;
    last.attr = node->op == HR_OP_CONV2D ? pixel : attr;
    last.in[0] = ref_value(x);
    last.in[1] = ref_param(c->made[weights][1]);
    if (!c->b->broken) {
        compress_keep(c, &last);
    }
}

void compress_low_rank_node(compressor *c, const model_node *node)
{
    if (compress_is_product(node) && c->gone[node->in[1].index]) {
        factor_node(c, node);
        return;
    }
    model_node kept = *node; // attention whose products are not one any more
    if (node->layer != HR_NO_ID && c->touched[node->layer] &&
        (node->op == HR_OP_DENSE || node->op == HR_OP_ATTENTION)) {
        kept.attr.flags &= ~OP_FLAG_PACKED;
    }
    compress_keep(c, &kept);
}
