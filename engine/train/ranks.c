// SPDX-License-Identifier: Apache-2.0
#include "train/ranks.h"

#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "model/compress_low_rank.h"
#include "program/compile.h"
#include "train/decompose.h"
#include "train/engine_impl.h"
#include "train/svd.h"

// What a singular value decomposition takes on one core with a plain BLAS: nanoseconds for each longer * shorter^2, of the values
// alone and with the vectors.
static const double values_ns = 2, vectors_ns = 6, quick_ns = 1e8;

// One of the layer's weights.
typedef struct part {
    uint32_t param;
    const stored_tensor *values; // NULL: not at hand
    double *lost;                // [most + 1] squares that a rank loses; NULL: not computed
} part;

typedef struct curve {
    const hr_engine *e;
    const store *weights; // NULL: those of the engine
    uint32_t layer;
    VEC(part) parts;
    store taken;
    double whole; // squares of all weights
    uint64_t zeros, elements;
    bool known; // every part's `lost`
} curve;

static low_rank_ranks ranks_at(const curve *c, const part *p, int64_t rank)
{
    return low_rank_ranks_of(&(low_rank_choice){.rank = rank}, &c->e->model->params[p->param].shape);
}

// ---- which weights ----------------------------------------------------------------------------------------------------

static bool products_alone_read(const hr_model *m, uint32_t param)
{
    bool any = false;
    for (uint32_t n = 0; n < m->node_count; n++) {
        const model_node *node = &m->nodes[n];
        for (uint32_t k = 0; k < node->in_count; k++) {
            if (node->in[k].is_param && node->in[k].index == param) {
                if (k != 1 || !compress_is_product(node)) {
                    return false;
                }
                any = true;
            }
        }
    }
    return any;
}

static hr_status refuse(const hr_model *m, uint32_t layer, hr_err *err)
{
    const char *name = m->layers[layer].name;
    for (uint32_t k = 0; k < m->own_params; k++) {
        if (m->params[k].layer == layer && m->params[k].held != HELD_REAL) {
            (void)HR_FAIL(err, STATE,
                          "weights of layer %.64s are whole numbers (compress.lora_base): needed real ones",
                          name);
            hr_err_try(err, "-s compress.lora_base=none");
            return HR_STATE;
        }
        if (m->params[k].layer == layer && m->params[k].factor != MODEL_FACTOR_NONE) {
            (void)HR_FAIL(err, STATE, "layer %.64s is made of factors already (compress.low_rank)", name);
            hr_err_try(err, "-s compress.low_rank=none");
            return HR_STATE;
        }
    }
    (void)HR_FAIL(err, STATE, "layer %.64s has no weights that a product could stand for", name);
    hr_err_try(err, "a dense layer or a convolution");
    return HR_STATE;
}

static hr_status find_parts(curve *c, hr_err *err)
{
    const hr_model *m = c->e->model;
    for (uint32_t k = 0; k < m->own_params; k++) {
        const model_param *p = &m->params[k];
        if (p->layer != c->layer || p->adapter || p->factor != MODEL_FACTOR_NONE || p->held != HELD_REAL ||
            !products_alone_read(m, k)) {
            continue;
        }
        part *one = vec_push(&c->parts);
        if (one == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for ranks");
        }
        *one = (part){.param = k};
    }
    return c->parts.count > 0 ? HR_OK : refuse(m, c->layer, err);
}

// ---- what ranks lose --------------------------------------------------------------------------------------------------

static double longer_by_squares(double a, double b)
{
    return a > b ? a * b * b : b * a * a;
}

static double cost_ns(const hr_shape *w)
{
    const double m = (double)w->dim[w->rank - 2], n = (double)w->dim[w->rank - 1];
    const double area = w->rank == 4 ? (double)(w->dim[0] * w->dim[1]) : 1;
    return area == 1 ? values_ns * longer_by_squares(m, n)
                     : vectors_ns * (longer_by_squares(m, area * n) + longer_by_squares(area * m, n));
}

static hr_status check_cost(const curve *c, hr_err *err)
{
    const hr_model *m = c->e->model;
    double sum = 0;
    for (size_t k = 0; k < c->parts.count; k++) {
        sum += cost_ns(&m->params[c->parts.data[k].param].shape);
    }
    if (sum <= quick_ns) {
        return HR_OK;
    }
    (void)HR_FAIL(
        err, STATE,
        "the singular values of layer %.64s would take about %.1f s, for which training would wait: "
        "needed 0.1 s at most",
        m->layers[c->layer].name, sum * 1e-9);
    hr_err_try(err, "headroom export %.64s --save FILE --ranks", c->e->preset_name);
    return HR_STATE;
}

static hr_status take_values(curve *c, hr_err *err)
{
    const hr_engine *e = c->e;
    const store *from = c->weights != NULL ? c->weights : &c->taken;
    if (e->build == NULL || !e->build->arithmetic) {
        return HR_FAIL(err, STATE,
                       "layer %.64s has no weights yet: their bytes are known, their error is not",
                       e->model->layers[c->layer].name);
    }
    for (size_t k = 0; c->weights == NULL && k < c->parts.count; k++) {
        HR_TRY(store_take_one(&c->taken, e->build, e->model->params[c->parts.data[k].param].name, err));
    }
    for (size_t k = 0; k < c->parts.count; k++) { // now that the store grows no more
        part *p = &c->parts.data[k];
        uint64_t elements = 0;
        p->values = store_find(from, e->model->params[p->param].name);
        (void)shape_elements(&p->values->shape, &elements);
        c->elements += elements;
        for (uint64_t i = 0; i < elements; i++) {
            const double value = store_value(p->values, i);
            c->whole += value * value;
            c->zeros += fpclassify(value) == FP_ZERO;
        }
    }
    return HR_OK;
}

static hr_status lose_two(part *p, int64_t most, hr_err *err)
{
    const hr_shape *w = &p->values->shape;
    const int64_t m = w->dim[w->rank - 2], n = w->dim[w->rank - 1];
    double *a = hr_calloc((size_t)(m * n), sizeof *a), *s = hr_calloc((size_t)most, sizeof *s);
    hr_status status = HR_OK;
    if (a == NULL || s == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to decompose %s", p->values->name);
    } else {
        store_values(p->values, a);
        status = svd_values(a, m, n, s, err);
    }
    for (int64_t r = most - 1; status == HR_OK && r >= 0; r--) {
        p->lost[r] = p->lost[r + 1] + s[r] * s[r];
    }
    hr_free(a);
    hr_free(s);
    return status;
}

// From the whole inwards: rank r has lost what rank r + 1 had, and row and column r of the core.
static hr_status lose_three(part *p, int64_t most, hr_err *err)
{
    double *energy = hr_calloc((size_t)(most * most), sizeof *energy), whole = 0, kept = 0;
    uint64_t elements = 0;
    if (energy == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to decompose %s", p->values->name);
    }
    const hr_status status = decompose_energy(p->values, most, energy, err);
    (void)shape_elements(&p->values->shape, &elements);
    for (uint64_t k = 0; k < elements; k++) {
        whole += store_value(p->values, k) * store_value(p->values, k);
    }
    for (int64_t r = 0; status == HR_OK && r <= most; r++) {
        p->lost[r] = fmax(whole - kept, 0);
        for (int64_t k = 0; r < most && k <= r; k++) {
            kept += energy[r * most + k] + (k < r ? energy[k * most + r] : 0);
        }
    }
    hr_free(energy);
    return status;
}

static hr_status measure(curve *c, bool quick, hr_err *err)
{
    HR_TRY(quick ? check_cost(c, err) : HR_OK);
    HR_TRY(take_values(c, err));
    for (size_t k = 0; k < c->parts.count; k++) {
        part *p = &c->parts.data[k];
        const hr_shape *w = &p->values->shape;
        const int64_t most = ranks_at(c, p, 1).most;
        p->lost = hr_calloc((size_t)most + 1, sizeof *p->lost);
        if (p->lost == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for ranks");
        }
        const bool has_core = w->rank == 4 && w->dim[0] * w->dim[1] > 1;
        HR_TRY((has_core ? lose_three : lose_two)(p, most, err));
    }
    c->known = true;
    return HR_OK;
}

// ---- points -----------------------------------------------------------------------------------------------------------

static uint64_t element_bytes(const curve *c)
{
    hr_dtype variables, compute;
    precision_types(&c->e->knobs, &variables, &compute);
    return dtype_bytes(variables);
}

static hr_event_rank point_at(const curve *c, int64_t rank)
{
    hr_event_rank to = {.layer = c->layer, .rank = (uint32_t)rank};
    double lost = 0;
    for (size_t k = 0; k < c->parts.count; k++) {
        const part *p = &c->parts.data[k];
        const low_rank_ranks r = ranks_at(c, p, rank);
        const bool thin = low_rank_shrinks(&r);
        to.bytes += (thin ? r.elements : r.full) * element_bytes(c);
        to.dense_bytes += r.full * element_bytes(c);
        to.break_even = fmax(to.break_even, r.break_even);
        to.full = r.most > to.full ? (uint32_t)r.most : to.full;
        lost += thin && c->known ? p->lost[rank] : 0;
    }
    to.error = !c->known ? (double)NAN : c->whole > 0 ? sqrt(lost / c->whole) : 0;
    to.zeros = c->elements > 0 ? (double)c->zeros / (double)c->elements : (double)NAN;
    return to;
}

// The next of 1, 2, 3, 4, 6, 8, 12 …, or the last rank below break-even where that comes first, or the full one.
static int64_t next_rank(int64_t rank, int64_t even, int64_t full)
{
    int64_t power = 1;
    while (2 * power <= rank) {
        power *= 2;
    }
    int64_t next = power == 1 || rank >= power + power / 2 ? 2 * power : power + power / 2;
    next = rank < even && even < next ? even : next;
    return next < full ? next : full;
}

static hr_status add_points(const curve *c, rank_list *list, hr_err *err)
{
    const size_t before = list->count;
    const hr_event_rank first = point_at(c, 1);
    const int64_t even = (int64_t)ceil(first.break_even) - 1;
    for (int64_t rank = 1, last = 0; rank != last; last = rank, rank = next_rank(rank, even, first.full)) {
        hr_event_rank *to = vec_push(list);
        if (to == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for ranks");
        }
        *to = point_at(c, rank);
        to->point = (uint32_t)(list->count - before - 1);
    }
    for (size_t k = before; k < list->count; k++) {
        list->data[k].points = (uint32_t)(list->count - before);
    }
    return HR_OK;
}

static void drop(curve *c)
{
    for (size_t k = 0; k < c->parts.count; k++) {
        hr_free(c->parts.data[k].lost);
    }
    vec_deinit(&c->parts);
    store_deinit(&c->taken);
}

static hr_status ranks_of(const hr_engine *e, const store *weights, const char *layer, rank_list *list,
                          hr_err *err)
{
    const bool quick = weights == NULL;
    curve c = {.e = e, .weights = weights};
    while (c.layer < e->model->own_layers && strcmp(e->model->layers[c.layer].name, layer) != 0) {
        c.layer++;
    }
    if (c.layer == e->model->own_layers) {
        return HR_FAIL(err, STATE, "model %.64s has no layer %.64s", e->model->name, layer);
    }
    hr_status status = find_parts(&c, err);
    if (status == HR_OK) {
        const hr_status measured = measure(&c, quick, err);
        hr_err ignored = {0};
        status = add_points(&c, list, measured == HR_OK ? err : &ignored);
        status = measured != HR_OK ? measured : status;
    }
    drop(&c);
    return status;
}

hr_status ranks_of_layer(const hr_engine *e, const char *layer, rank_list *list, hr_err *err)
{
    return ranks_of(e, NULL, layer, list, err);
}

hr_status ranks_of_deployed(const hr_engine *e, const store *weights, hr_deploy *out, hr_err *err)
{
    const hr_model *m = e->model;
    rank_list list = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t k = 0; k < m->own_layers && status == HR_OK; k++) {
        const size_t before = list.count;
        status = ranks_of(e, weights, m->layers[k].name, &list, err);
        status = status == HR_STATE && list.count == before ? HR_OK : status; // it has no points
    }
    out->ranks = status == HR_OK ? hr_calloc(list.count + 1, sizeof *out->ranks) : NULL;
    if (status == HR_OK && out->ranks == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for ranks");
    }
    for (size_t k = 0; status == HR_OK && k < list.count; k++) {
        hr_deploy_rank *to = &out->ranks[out->rank_count++];
        (void)text_copy(to->layer, sizeof to->layer, m->layers[list.data[k].layer].name);
        to->at = list.data[k];
    }
    vec_deinit(&list);
    return status;
}
