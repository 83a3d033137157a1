// SPDX-License-Identifier: Apache-2.0
// Attention: the product of queries and keys, a scale, a mask, softmax and dropout, the product with the values, and the dense
// layers before and behind are one layer.
#include <math.h>
#include <string.h>

#include "onnx_layers.h"
#include "onnx_scores.h"

// ---- scores ---------------------------------------------------------------------------------------------------

tensor *attention_scores(walk *w, const tensor *q, const tensor *k)
{
    tensor turned = *k;
    if (k->rank < 3 || k->rank != q->rank) {
        return walk_refuse(w, "a product of two tensors that are not [batch, heads, places, features]");
    }
    turned.dims[k->rank - 1] = k->dims[k->rank - 2];
    turned.dims[k->rank - 2] = k->dims[k->rank - 1];
    scores s = {.q = scores_by_head(w, q), .scale = 1};
    s.k = s.q == NULL ? NULL : scores_by_head(w, &turned);
    int64_t shape[ONNX_RANK];
    tensor_shape(q, shape);
    shape[q->rank - 1] = dim_size(k, k->rank - 1);
    layer *l = s.k == NULL ? NULL : layer_new(w, "a step", q->rank, shape);
    tensor *t = l == NULL ? NULL : tensor_plain(w, l, NULL);
    if (t == NULL) {
        return NULL;
    }
    l->open = OPEN_SCORES;
    return scores_changed(w, t, &s);
}

tensor *attention_scaled(walk *w, const tensor *x, double factor)
{
    scores s = *x->layer->scores;
    s.scale *= factor;
    return s.softmax ? walk_refuse(w, "a softmax of attention that is multiplied") : scores_changed(w, x, &s);
}

tensor *attention_softmax(walk *w, const tensor *x)
{
    scores s = *x->layer->scores;
    if (s.softmax) {
        return walk_refuse(w, "a second softmax of attention");
    }
    s.softmax = true;
    return scores_changed(w, x, &s);
}

tensor *attention_dropped(walk *w, const tensor *x, double rate)
{
    scores s = *x->layer->scores;
    s.dropout = rate;
    return s.softmax ? scores_changed(w, x, &s) : walk_refuse(w, "a dropout before the softmax of attention");
}

// What is added is 0 where a place is seen, and otherwise at most ONNX_HIDDEN, so low that it counts nothing: everywhere nothing
// (no mask), or above the diagonal (a causal one).
tensor *attention_masked(walk *w, const tensor *x, const numbers *hidden)
{
    scores s = *x->layer->scores;
    numbers n = *hidden;
    if (s.softmax) {
        return walk_refuse(w, "a mask behind the softmax of attention");
    }
    if (s.windows.biased && n.rank == 5) {
        return windows_masked(w, x, hidden);
    }
    if (n.rank < 2) {
        return walk_refuse(w, "a mask of attention of one dimension");
    }
    if (!walk_is_known(w, &n, false)) {
        return NULL;
    }
    for (uint32_t d = 0; d + 2 < n.rank; d++) {
        n.dims[d] = n.strides[d] == 0 ? 1 : n.dims[d];
    }
    const int64_t rows = n.dims[n.rank - 2], columns = n.dims[n.rank - 1], count = numbers_count(&n);
    bool all = numbers_work(w->g, count), causal = all && rows == columns;
    for (int64_t k = 0; (all || causal) && k < count; k++) {
        const double added = numbers_at(&n, k);
        const bool seen = added == 0, below = k % columns <= k / columns % rows;
        all = all && seen;
        causal = causal && (below ? seen : added <= ONNX_HIDDEN);
    }
    if (!all && !causal) {
        return walk_refuse(w, "a mask of attention that is neither causal nor empty");
    }
    s.causal = s.causal || !all;
    return scores_changed(w, x, &s);
}

// ---- heads ----------------------------------------------------------------------------------------------------

static bool is_on_the_way(const layer *l)
{
    return l->open == OPEN_ROTARY || strcmp(l->kind, "slice") == 0 || strcmp(l->kind, "reshape") == 0 ||
           strcmp(l->kind, "scale") == 0 || strcmp(l->kind, "rms_norm") == 0;
}

// Rows of a sample in a layer's output.
static int64_t places_of(const layer *l)
{
    int64_t places = 1;
    for (uint32_t k = 1; k + 1 < l->rank; k++) {
        places *= l->shape[k]; // counted as it was made
    }
    return places;
}

// The axes in memory before a head's features: the batch and places, which of windows lie as an image has them.
static axes lead_of(const tensor *x, const axes *own, const windows *v)
{
    axes lead = x->axes;
    const uint32_t behind = own->count + x->dims[3].count;
    if (v->h > 0) {
        lead.count = lead.count > behind ? lead.count - behind : 0;
        return lead;
    }
    lead = x->dims[0];
    axes_join(&lead, &x->dims[2]);
    return lead;
}

// The dense layer whose features the heads are, all its places, and what was done to them on the way.
static bool project(walk *w, const tensor *x, const windows *v, projection *out)
{
    axes own = {.count = 0};
    for (uint32_t k = 0; k < x->dims[1].count; k++) {
        if (!x->dims[1].at[k]->copied) {
            axes_add(&own, x->dims[1].at[k]);
        }
    }
    axes order = lead_of(x, &own, v);
    const int64_t places = axes_size(&order) / ONNX_BATCH;
    windows mine = *v;
    axes_join(&order, &own);
    axes_join(&order, &x->dims[3]);
    if (!axes_equal(&order, &x->axes) ||
        (v->h > 0 && !(windows_find(x, &mine) && mine.h == v->h && mine.w == v->w && mine.down == v->down &&
                       mine.across == v->across))) {
        return walk_refuse(w, "heads of attention that are no part of a dense layer's features");
    }
    layer *l = x->layer;
    *out = (projection){.factor = 1, .heads = axes_size(&own)};
    for (; is_on_the_way(l); l = l->inputs[0]) {
        out->factor *= strcmp(l->kind, "scale") == 0               ? l->factor
                       : l->open == OPEN_ROTARY && l->epsilon != 0 ? l->epsilon
                                                                   : 1;
        out->rotary = l->open == OPEN_ROTARY ? l->factor : out->rotary;
        out->norm = strcmp(l->kind, "rms_norm") == 0 ? l : out->norm;
    }
    if (strcmp(l->kind, "dense") != 0) {
        return walk_refuse(
            w, "queries, keys or values that a layer of kind '%s' gives, where a dense one is needed",
            l->kind);
    }
    out->dense = l;
    if (places != places_of(l->inputs[0])) {
        return walk_refuse(w, "queries, keys or values of %lld places where their dense layer gives %lld",
                           (long long)places, (long long)places_of(l->inputs[0]));
    }
    return out->norm == NULL || out->norm->shape[out->norm->rank - 1] == axes_size(&x->dims[3]) ||
           walk_refuse(w, "a norm over all heads of attention") != NULL;
}

static bool are_alike(walk *w, const heads *h)
{
    const projection *q = &h->of[0], *k = &h->of[1], *v = &h->of[2];
    if (q->rotary != k->rotary || v->rotary != 0 || v->norm != NULL ||
        (q->norm == NULL) != (k->norm == NULL)) {
        return walk_refuse(w, "rotary positions or norms of some of queries, keys and values");
    }
    if (q->norm != NULL &&
        strcmp(layer_attribute_text(q->norm, "epsilon"), layer_attribute_text(k->norm, "epsilon")) != 0) {
        return walk_refuse(w, "norms of queries and keys with different epsilons");
    }
    int64_t units = 0;
    for (int a = 0; a < 3; a++) {
        bool known = false;
        for (int b = 0; b < a; b++) {
            known = known || h->of[a].dense == h->of[b].dense;
        }
        units += known ? 0 : h->of[a].dense->units;
    }
    return (units == (h->heads + 2 * h->kv_heads) * h->head_dim && v->heads == h->kv_heads) ||
           walk_refuse(w, "projections of %lld features for %lld heads of %lld", (long long)units,
                       (long long)h->heads, (long long)h->head_dim) != NULL;
}

static bool read_heads(walk *w, const tensor *const of[3], const scores *s, heads *h)
{
    const int64_t size = dim_size(of[0], 3);
    for (int k = 0; k < 3; k++) {
        if (!project(w, of[k], &s->windows, &h->of[k])) {
            return false;
        }
    }
    h->windows = s->windows;
    h->head_dim = size;
    h->heads = h->of[0].heads;
    h->kv_heads = h->of[1].heads;
    h->causal = s->causal;
    h->dropout = s->dropout;
    // PyTorch's scaled_dot_product_attention is exported with the root of the scale on queries and keys alike.
    h->streams = h->of[0].factor != 1 && h->of[0].factor == h->of[1].factor;
    const double scale = s->scale * h->of[0].factor * h->of[1].factor, usual = 1 / sqrt((double)size);
    h->scale = fabs(scale - usual) > 1e-5 * usual ? scale : 0;
    if (!(scale >= 1e-6 && scale <= 1e6) || h->of[2].factor != 1) {
        return walk_refuse(w, "scores of attention multiplied by %g, and values by %g", scale,
                           h->of[2].factor);
    }
    if (!are_alike(w, h) || dim_size(of[2], 3) != size) {
        return w->g->status == HR_OK && walk_refuse(w, "values of another size than queries");
    }
    return true;
}

static tensor *attend(walk *w, const tensor *q, const tensor *k, const tensor *v, const scores *s)
{
    static const uint32_t order[4] = {0, 2, 1, 3};
    const tensor *const of[3] = {q, k, v};
    heads *h = onnx_take(w->g, 1, sizeof *h);
    if (h == NULL || !read_heads(w, of, s, h)) {
        return NULL;
    }
    const int64_t places = axes_size(&q->dims[0]) / ONNX_BATCH * dim_size(q, 2);
    const int64_t flat[3] = {ONNX_BATCH, places, h->heads * h->head_dim},
                  shape[4] = {ONNX_BATCH, places, h->heads, h->head_dim};
    layer *lies = layer_new(w, "a step", 4, shape),
          *l = lies == NULL ? NULL : layer_new(w, "a step", 3, flat);
    tensor *t = l == NULL ? NULL : h->windows.biased ? windows_heads(w, h) : tensor_plain(w, lies, order);
    if (t != NULL) {
        l->open = OPEN_HEADS;
        l->heads = h;
        t->layer = l;
    }
    return t;
}

tensor *attention_heads(walk *w, const tensor *x, const tensor *v)
{
    const scores *s = x->layer->scores;
    if (!s->softmax) {
        return walk_refuse(w, "a product of three tensors without a softmax");
    }
    tensor *values = scores_by_head(w, v);
    tensor *out = values == NULL ? NULL : attend(w, s->q, s->k, values, s);
    if (out == NULL || x->rank == 4) {
        return out;
    }
    const int64_t shape[3] = {dim_size(out, 0) * dim_size(out, 1), dim_size(out, 2), dim_size(out, 3)};
    return tensor_pieces(w, out, 3, shape);
}

// ---- the layer ------------------------------------------------------------------------------------------------

static layer *source_of(walk *w, const projection *p)
{
    layer *l = p->dense->inputs[0];
    const int64_t shape[3] = {l->shape[0], places_of(l), l->shape[l->rank - 1]};
    return l->rank == 3 ? l : walk_reshaped(w, l, 3, shape);
}

static void put_params(walk *w, layer *out, const heads *h, const onnx_tensor *weight)
{
    for (int a = 0; a < 3; a++) {
        bool known = false;
        for (int b = 0; b < a; b++) {
            known = known || h->of[a].dense == h->of[b].dense;
        }
        for (uint32_t k = 0; !known && k < h->of[a].dense->param_count; k++) {
            layer_param(w, out, h->of[a].dense->params[k]);
        }
    }
    out->path = "";
    layer_param(w, out, weight);
    for (int a = 0; a < 2; a++) {
        layer_param(w, out, h->of[a].norm == NULL ? NULL : h->of[a].norm->params[0]);
    }
}

static void put_attributes(walk *w, layer *out, const heads *h, int64_t width)
{
    layer_whole(w, out, "heads", h->heads);
    if (h->kv_heads != h->heads) {
        layer_whole(w, out, "kv_heads", h->kv_heads);
    }
    if (h->heads * h->head_dim != width) {
        layer_whole(w, out, "head_dim", h->head_dim);
    }
    layer_word(w, out, "causal", h->causal ? "true" : "false");
    if (h->dropout > 0) {
        layer_real(w, out, "dropout", h->dropout);
    }
    if (h->scale != 0) {
        layer_real(w, out, "scale", h->scale);
    }
    if (!h->streams) {
        layer_word(w, out, "form", "materialised");
    }
    if (h->of[0].rotary != 0) {
        layer_real(w, out, "rotary", h->of[0].rotary);
    }
    if (h->of[0].norm != NULL) {
        layer_word(w, out, "qk_norm_epsilon", layer_attribute_text(h->of[0].norm, "epsilon"));
    }
    const bool q = h->of[0].dense->bias, k = h->of[1].dense->bias;
    layer_word(w, out, "bias", q ? "true" : "false");
    if (k != q) {
        layer_word(w, out, "key_bias", k ? "true" : "false");
    }
    if (q) {
        layer_word(w, out, "output_bias", "false"); // until there is one
    }
}

tensor *attention_closed(walk *w, const tensor *x, int64_t units, const onnx_tensor *weight)
{
    const heads *h = x->layer->heads;
    const axes *last = &x->dims[x->rank - 1];
    const int64_t features = h->heads * h->head_dim;
    if (h->windows.biased) {
        return windows_closed(w, x, units, weight);
    }
    if (axes_size(last) != features || last->count > x->axes.count ||
        memcmp(&x->axes.at[x->axes.count - last->count], last->at, last->count * sizeof last->at[0]) != 0) {
        return walk_refuse(
            w, "a dense layer over a part of the heads of attention, or over heads in another order");
    }
    layer *q = source_of(w, &h->of[0]), *k = q == NULL ? NULL : source_of(w, &h->of[1]);
    if (k == NULL) {
        return NULL;
    }
    const int64_t width = q->shape[2], shape[3] = {x->layer->shape[0], x->layer->shape[1], width};
    if (h->of[2].dense->inputs[0] != h->of[1].dense->inputs[0] || units != width ||
        h->of[0].dense->bias != h->of[2].dense->bias) {
        return walk_refuse(w,
                           "attention with an output of %lld features for %lld, with biases of some "
                           "projections, or with keys and "
                           "values of different tensors",
                           (long long)units, (long long)width);
    }
    layer *out = walk_emit(w, "attention", q, 3, shape);
    mem_axis *made = out == NULL ? NULL : axis_new(w, width, false);
    tensor *t = made == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return NULL;
    }
    out->inputs[out->input_count] = k;
    out->input_count += k != q ? 1 : 0;
    put_params(w, out, h, weight);
    put_attributes(w, out, h, width);
    t->layer = out;
    t->axes.count -= last->count;
    axes_add(&t->axes, made);
    t->dims[x->rank - 1] = (axes){.count = 0};
    axes_add(&t->dims[x->rank - 1], made);
    return t;
}

bool attention_biased(walk *w, const tensor *x, const onnx_tensor *bias)
{
    layer *l = x->layer;
    const char *others = layer_attribute_text(l, "bias");
    l->bias = true;
    layer_word(w, l, "output_bias", others != NULL && others[0] == 't' ? NULL : "true");
    for (uint32_t k = 0; k < l->attribute_count; k++) {
        if (strcmp(l->attributes[k].key, "output_bias") == 0 && others != NULL && others[0] == 't') {
            l->attributes[k] = l->attributes[--l->attribute_count];
        }
    }
    layer_param(w, l, bias);
    return true;
}

// ---- the operator of opset 23 ---------------------------------------------------------------------------------

// Operand k as [batch, heads, places, features].
static tensor *headed(walk *w, uint32_t k, int64_t count)
{
    tensor *x = walk_tensor(w, k);
    if (x == NULL || x->rank == 4) {
        return x;
    }
    if (x->rank != 3 || count < 1 || dim_size(x, 2) % count != 0) {
        return walk_refuse(w, "needs heads of queries, keys and values");
    }
    const int64_t shape[4] = {dim_size(x, 0), dim_size(x, 1), count, dim_size(x, 2) / count};
    tensor *t = tensor_pieces(w, x, 4, shape);
    if (t != NULL) {
        const axes places = t->dims[1];
        t->dims[1] = t->dims[2];
        t->dims[2] = places;
    }
    return t;
}

bool take_attention(walk *w)
{
    const int64_t q_heads = onnx_whole(w->node, "q_num_heads", 0),
                  kv_heads = onnx_whole(w->node, "kv_num_heads", q_heads);
    tensor *q = headed(w, 0, q_heads), *k = q == NULL ? NULL : headed(w, 1, kv_heads);
    tensor *v = k == NULL ? NULL : headed(w, 2, kv_heads);
    if (v == NULL) {
        return false;
    }
    if (walk_has(w, 4) || walk_has(w, 5) || onnx_real(w->node, "softcap", 0) != 0) {
        return walk_refuse(w, "attention with keys of the past or a cap on its scores");
    }
    scores s = {.scale = onnx_real(w->node, "scale", 1 / sqrt((double)dim_size(q, 3))), .softmax = true};
    s.causal = onnx_whole(w->node, "is_causal", 0) != 0;
    const numbers *mask = walk_has(w, 3) ? walk_needs_numbers(w, 3) : NULL;
    if (walk_has(w, 3)) {
        return mask != NULL ? walk_refuse(w, "a mask of attention that is given as an operand") != NULL
                            : false;
    }
    tensor *out = attend(w, q, k, v, &s);
    if (out == NULL) {
        return false;
    }
    out->layer->heads->streams = true;
    if (walk_tensor(w, 0)->rank == 3) {
        const axes places = out->dims[2];
        out->dims[2] = out->dims[1];
        out->dims[1] = places;
        const int64_t shape[3] = {dim_size(out, 0), dim_size(out, 1), dim_size(out, 2) * dim_size(out, 3)};
        out = tensor_pieces(w, out, 3, shape);
    }
    return walk_give(w, 0, out);
}
