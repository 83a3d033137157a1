// SPDX-License-Identifier: Apache-2.0
// Tensors joined along a dimension; a learned row before a sequence; halves of a head that changed places.
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

enum { JOINED_MAX = 256, KNOWN_MAX = 512 };

typedef struct parts {
    const tensor *of[JOINED_MAX];
    uint32_t count, dim;
} parts;

// One input of the concat: the layer, and which of its dimensions is joined.
typedef struct part {
    layer *layer;
    uint32_t place;
    int64_t before, behind; // elements around it
} part;

static int64_t size_between(const axes *a, uint32_t from, uint32_t to)
{
    int64_t size = 1;
    for (uint32_t k = from; k < to && k < a->count; k++) {
        size *= a->at[k]->size;
    }
    return size;
}

// Whether the layer has the joined axes as one dimension and all others as they are.
static bool lies_ready(const layer *l, const tensor *x, uint32_t at, uint32_t own)
{
    if (l->rank != x->axes.count - own + 1) {
        return false;
    }
    for (uint32_t k = 0; k < l->rank; k++) {
        const int64_t size = k < at    ? x->axes.at[k]->size
                             : k == at ? size_between(&x->axes, at, at + own)
                                       : x->axes.at[k + own - 1]->size;
        if (l->shape[k] != size) {
            return false;
        }
    }
    return true;
}

static bool part_of(walk *w, const tensor *x, uint32_t dim, uint32_t rank, part *out)
{
    const axes *own = &x->dims[dim];
    uint32_t at = 0, count = 0;
    while (at < x->axes.count && x->axes.at[at] != own->at[0]) {
        at++;
    }
    if (at + own->count > x->axes.count ||
        memcmp(&x->axes.at[at], own->at, own->count * sizeof own->at[0]) != 0) {
        return walk_refuse(w, "a concatenation along dimensions that do not lie next to each other");
    }
    if (at == 0) {
        return walk_refuse(w, "a concatenation along the batch");
    }
    out->before = size_between(&x->axes, 1, at);
    out->behind = size_between(&x->axes, at + own->count, x->axes.count);
    out->place = at;
    out->layer = x->layer;
    if (lies_ready(x->layer, x, at, own->count) && x->layer->rank == rank) {
        return walk_is_closed(w, x);
    }
    axes groups[4] = {{.count = 0}};
    axes_add(&groups[count++], x->axes.at[0]);
    for (uint32_t k = 1; k < at; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at > 1 ? 1 : 0;
    out->place = count;
    groups[count++] = *own;
    for (uint32_t k = at + own->count; k < x->axes.count; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at + own->count < x->axes.count ? 1 : 0;
    out->layer = walk_arrange(w, x, groups, count);
    return out->layer != NULL;
}

static tensor *joined_tensor(walk *w, const tensor *first, uint32_t dim, layer *l, int64_t size)
{
    mem_axis *joined = axis_new(w, size, false);
    tensor *out = joined == NULL ? NULL : tensor_new(w, l, first->rank);
    const axes *own = &first->dims[dim];
    for (uint32_t k = 0; out != NULL && k < first->axes.count; k++) {
        if (first->axes.at[k] == own->at[0]) {
            axes_add(&out->axes, joined);
        } else if (!axes_have(own, first->axes.at[k])) {
            axes_add(&out->axes, first->axes.at[k]);
        }
    }
    for (uint32_t d = 0; out != NULL && d < first->rank; d++) {
        out->dims[d] = first->dims[d];
        if (d == dim) {
            out->dims[d] = (axes){.count = 0};
            axes_add(&out->dims[d], joined);
        }
    }
    return out;
}

static bool same_beside(walk *w, const tensor *a, const tensor *b, uint32_t dim)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->rank != b->rank || (d != dim && dim_size(a, d) != dim_size(b, d))) {
            return walk_refuse(w, "a concatenation of tensors of different shapes");
        }
    }
    return true;
}

// The dimension of which this axis is the only one; its rank where there is none.
static uint32_t dim_of_axis(const tensor *t, const mem_axis *x)
{
    uint32_t d = 0;
    while (d < t->rank && !(t->dims[d].count == 1 && t->dims[d].at[0] == x)) {
        d++;
    }
    return d;
}

// Lets x lie as the first does, where each dimension of both has one axis; as it is where one has more.
static const tensor *in_order_of(walk *w, const tensor *first, const tensor *x)
{
    axes order = {.count = 0};
    if (first->axes.count != x->axes.count) {
        return x;
    }
    for (uint32_t k = 0; k < first->axes.count; k++) {
        const uint32_t d = dim_of_axis(first, first->axes.at[k]);
        if (d == first->rank || x->dims[d].count != 1) {
            return x;
        }
        axes_add(&order, x->dims[d].at[0]);
    }
    return walk_moved(w, x, &order);
}

// Where in memory a dimension of size 1 stands best: where it lies in `like`, or before what is behind it.
static uint32_t best_place(const tensor *like, const tensor *x, uint32_t dim)
{
    uint32_t best = x->axes.count;
    const bool image = x->rank == 4 && dim == 1;
    if (like->dims[dim].count == 1 && like->axes.count == x->axes.count + 1) {
        return axes_place(&like->axes, like->dims[dim].at[0]);
    }
    for (uint32_t d = dim + 1; !image && d < x->rank; d++) {
        for (uint32_t k = 0; k < x->dims[d].count; k++) {
            const uint32_t place = axes_place(&x->axes, x->dims[d].at[k]);
            best = place < best ? place : best;
        }
    }
    return best;
}

// One axis for the dimension that is joined, also where it is of size 1.
static const tensor *with_axis(walk *w, const tensor *like, const tensor *x, uint32_t dim)
{
    if (x->dims[dim].count > 0) {
        return walk_whole(w, x, dim);
    }
    mem_axis *one = axis_new(w, 1, false);
    tensor *out = one == NULL ? NULL : tensor_again(w, x);
    if (out == NULL) {
        return NULL;
    }
    const uint32_t place = best_place(like, x, dim);
    axes_add(&out->dims[dim], one);
    out->axes.count = place;
    axes_add(&out->axes, one);
    for (uint32_t k = place; k < x->axes.count; k++) {
        axes_add(&out->axes, x->axes.at[k]);
    }
    return out;
}

static bool in_one_order(walk *w, const tensor **of, uint32_t count, uint32_t dim)
{
    const tensor *like = of[0];
    for (uint32_t k = 0; k < count; k++) {
        if (!same_beside(w, of[0], of[k], dim)) {
            return false;
        }
        like = like->dims[dim].count == 0 ? of[k] : like;
    }
    like = walk_whole(w, like, dim);
    for (uint32_t k = 0; k < count; k++) {
        of[k] = like == NULL ? NULL : with_axis(w, like, of[k], dim);
        of[k] = of[k] == NULL ? NULL : in_order_of(w, of[0], of[k]);
        if (of[k] == NULL) {
            return false;
        }
    }
    return true;
}

static tensor *join(walk *w, const tensor **of, uint32_t count, uint32_t dim)
{
    part all[LAYER_INPUTS] = {{.layer = NULL}};
    int64_t shape[ONNX_RANK], size = 0;
    if (!in_one_order(w, of, count, dim)) {
        return NULL;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!part_of(w, of[k], dim, of[0]->layer->rank, &all[k])) {
            return NULL;
        }
        if (all[k].layer->rank != all[0].layer->rank || all[k].place != all[0].place ||
            all[k].before != all[0].before || all[k].behind != all[0].behind) {
            return walk_refuse(w, "a concatenation of tensors that lie in different orders, which this "
                                  "reader leaves as they lie");
        }
        size += all[k].layer->shape[all[k].place];
    }
    if (all[0].layer == NULL) {
        return walk_refuse(w, "a concatenation of nothing");
    }
    memcpy(shape, all[0].layer->shape, sizeof shape);
    shape[all[0].place] = size;
    layer *l = walk_emit(w, "concat", all[0].layer, all[0].layer->rank, shape);
    if (l == NULL) {
        return NULL;
    }
    for (uint32_t k = 0; k < count; k++) {
        l->inputs[k] = all[k].layer;
    }
    l->input_count = count;
    layer_whole(w, l, "axis", all[0].place);
    return joined_tensor(w, of[0], dim, l, size);
}

// ---- a learned row --------------------------------------------------------------------------------------------

// A row that the exporter has written once for each sample of the batch of the export: the row, or NULL without a refusal where
// the rows differ or are not that.
static const onnx_tensor *repeated_row(walk *w, const onnx_tensor *t)
{
    if (t->rank != 3 || t->dims[0] < 2 || t->dims[0] != w->fixed_batch || t->dims[1] != 1) {
        return NULL;
    }
    const numbers *n = numbers_of(w->g, t);
    if (n == NULL || !numbers_work(w->g, numbers_count(n))) {
        return NULL;
    }
    if (n->missing != NULL) {
        walk_note(w, "'%.60s' is taken for one row that the exporter has written for each of its samples.",
                  t->name);
    }
    for (int64_t k = t->dims[2]; n->missing == NULL && k < numbers_count(n); k++) {
        if (n->at[k] != n->at[k - t->dims[2]]) {
            return NULL;
        }
    }
    onnx_tensor *row = onnx_take(w->g, 1, sizeof *row);
    if (row != NULL) {
        *row = *t;
        row->dims[0] = 1;
    }
    return row;
}

static tensor *class_token(walk *w, const tensor *token, const tensor *x, uint32_t dim)
{
    axes row = {.count = 0};
    const onnx_tensor *learned = token->layer->params[0], *once = repeated_row(w, learned);
    if (w->g->status != HR_OK) {
        return NULL;
    }
    learned = once != NULL ? once : learned;
    for (uint32_t d = once != NULL ? 1 : 0; d < token->rank; d++) {
        for (uint32_t k = 0; k < token->dims[d].count; k++) {
            if (!token->dims[d].at[k]->copied) {
                axes_add(&row, token->dims[d].at[k]);
            }
        }
    }
    if (x->rank != 3 || token->rank != 3 || dim != 1 || dim_size(token, 1) != 1 ||
        axes_size(&row) != dim_size(x, 2)) {
        return walk_refuse(w, "a parameter joined with a tensor, other than a row before a sequence");
    }
    layer *l = walk_arrange_dims(w, x);
    if (l == NULL) {
        return NULL;
    }
    const int64_t shape[3] = {l->shape[0], l->shape[1] + 1, l->shape[2]};
    layer *out = walk_emit(w, "class_token", l, 3, shape);
    if (out != NULL) {
        layer_param(w, out, learned);
    }
    return out == NULL ? NULL : tensor_plain(w, out, NULL);
}

// ---- halves ---------------------------------------------------------------------------------------------------

// cat((-x[half:], x[:half]), -1) of the heads x; NULL without a refusal for another concatenation.
static tensor *turned_halves(walk *w, const parts *p)
{
    if (p->count != 2 || p->of[0]->layer->open != OPEN_NEGATIVE) {
        return NULL;
    }
    const layer *second = p->of[0]->layer->inputs[0], *first = p->of[1]->layer;
    const tensor *x = p->of[1];
    if (p->dim + 1 != x->rank || !pieces_follow(second, p->of[0], first, x, p->dim) ||
        second->count != first->count || x->dims[p->dim].count != 1) {
        return NULL;
    }
    mem_axis *whole = axis_new(w, 2 * first->count, false);
    tensor *out = whole == NULL ? NULL : tensor_again(w, x);
    if (out == NULL) {
        return NULL;
    }
    for (uint32_t k = 0; k < out->axes.count; k++) {
        out->axes.at[k] = out->axes.at[k] == x->dims[p->dim].at[0] ? whole : out->axes.at[k];
    }
    out->dims[p->dim].at[0] = whole;
    out->layer = first->inputs[0];
    return walk_open(w, out, OPEN_TURNED, NULL);
}

// ---- the operator ---------------------------------------------------------------------------------------------

// What was joined before, in the order it came: DenseNet joins all that was joined and what is new.
typedef struct joined {
    const tensor *of[JOINED_MAX];
    uint32_t count, dim;
    const tensor *out;
    struct joined *next;
} joined;

static bool begins_with(const joined *j, const parts *p)
{
    bool same = j->count < p->count && j->count > 1 && j->dim == p->dim;
    for (uint32_t k = 0; same && k < j->count; k++) {
        same = tensors_are_one(j->of[k], p->of[k]);
    }
    return same;
}

static bool keep_joined(walk *w, const parts *p, const tensor *out)
{
    joined *j = onnx_take(w->g, 1, sizeof *j);
    if (j == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < p->count; k++) {
        j->of[k] = p->of[k];
    }
    j->count = p->count;
    j->dim = p->dim;
    j->out = out;
    j->next = w->joined;
    w->joined = j;
    return true;
}

static void take_known(walk *w, parts *p)
{
    const joined *best = NULL;
    uint32_t looked = 0;
    for (const joined *j = w->joined; j != NULL && looked++ < KNOWN_MAX; j = j->next) {
        best = begins_with(j, p) && (best == NULL || j->count > best->count) ? j : best;
    }
    if (best != NULL) {
        p->of[0] = best->out;
        memmove(&p->of[1], &p->of[best->count], (p->count - best->count) * sizeof p->of[0]);
        p->count -= best->count - 1;
    }
}

static bool read_parts(walk *w, parts *p)
{
    if (w->node->input_count > JOINED_MAX) {
        return walk_refuse(w, "needs at most %d tensors, had %u", JOINED_MAX, w->node->input_count);
    }
    for (uint32_t k = 0; k < w->node->input_count; k++) {
        p->of[p->count++] = walk_tensor(w, k);
        if (p->of[k] == NULL) {
            return false;
        }
    }
    if (p->count == 0) {
        return walk_refuse(w, "a concatenation of nothing");
    }
    return node_axis(w, onnx_whole(w->node, "axis", 0), p->of[0]->rank, &p->dim);
}

// What is no concatenation but another layer; NULL without a refusal where it is one.
static tensor *known_whole(walk *w, const parts *p)
{
    tensor *out = turned_halves(w, p);
    out = out == NULL && w->g->status == HR_OK ? merged_patches(w, p->of, p->count, p->dim) : out;
    return out == NULL && w->g->status == HR_OK && p->count == 2
               ? turned_around(w, p->of[0], p->of[1], p->dim)
               : out;
}

bool take_concat(walk *w)
{
    parts p = {.count = 0};
    if (!read_parts(w, &p)) {
        return false;
    }
    tensor *known = known_whole(w, &p);
    if (known != NULL || w->g->status != HR_OK) {
        return walk_give(w, 0, known);
    }
    while (p.count > 1 && p.of[p.count - 2]->layer->open == OPEN_PARAMETER) {
        tensor *with = class_token(w, p.of[p.count - 2], p.of[p.count - 1], p.dim);
        if (with == NULL) {
            return false;
        }
        p.of[--p.count - 1] = with;
    }
    const parts whole = p;
    take_known(w, &p);
    while (p.count > LAYER_INPUTS) {
        p.of[0] = join(w, p.of, LAYER_INPUTS, p.dim);
        if (p.of[0] == NULL) {
            return false;
        }
        p.count -= LAYER_INPUTS - 1;
        memmove(&p.of[1], &p.of[LAYER_INPUTS], (p.count - 1) * sizeof p.of[0]);
    }
    tensor *out = p.count > 1 ? join(w, p.of, p.count, p.dim) : tensor_again(w, p.of[0]);
    return out != NULL && (p.count < 2 || keep_joined(w, &whole, out)) && walk_give(w, 0, out);
}
