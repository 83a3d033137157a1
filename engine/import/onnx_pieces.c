// SPDX-License-Identifier: Apache-2.0
// Tensors under another shape: what Reshape, Transpose and their like do without moving a byte where that is possible.
#include <string.h>

#include "onnx_walk.h"

// ---- another shape --------------------------------------------------------------------------------------------

enum { SPLITS = 64 };

typedef struct split {
    mem_axis *whole, *outer, *inner;
} split;

typedef struct cutting {
    walk *w;
    split splits[SPLITS];
    uint32_t split_count;
    mem_axis *queue[SPLITS];
    uint32_t queued; // the last is the next
    bool across;     // a piece would lie across axes that are not next to each other
} cutting;

// The axes of memory after the splits.
static bool unfold(const cutting *c, mem_axis *x, axes *out)
{
    for (uint32_t k = 0; k < c->split_count; k++) {
        if (c->splits[k].whole == x) {
            return unfold(c, c->splits[k].outer, out) && unfold(c, c->splits[k].inner, out);
        }
    }
    axes_add(out, x);
    return out->count < ONNX_AXES;
}

static void *refuse_view(walk *w)
{
    return walk_refuse(w, "a view that cuts across the dimensions that there are, which no layer does");
}

static void *cut_across(cutting *c)
{
    c->across = true;
    return NULL;
}

// Cuts the next axis of the queue so that its outer part is `room`.
static mem_axis *cut_axis(cutting *c, mem_axis *x, int64_t room)
{
    if (x->size % room != 0 || c->split_count == SPLITS || c->queued == SPLITS) {
        return cut_across(c);
    }
    mem_axis *outer = axis_new(c->w, room, x->copied), *inner = axis_new(c->w, x->size / room, x->copied);
    if (outer == NULL || inner == NULL) {
        return NULL;
    }
    c->splits[c->split_count++] = (split){x, outer, inner};
    c->queue[c->queued++] = inner;
    return outer;
}

static bool cut_dim(cutting *c, int64_t size, axes *dim)
{
    for (int64_t room = size; room > 1;) {
        if (c->queued == 0 || dim->count == ONNX_AXES - 1) {
            return cut_across(c);
        }
        mem_axis *x = c->queue[--c->queued];
        x = room % x->size == 0 ? x : cut_axis(c, x, room);
        if (x == NULL) {
            return false;
        }
        axes_add(dim, x);
        room /= x->size;
    }
    return true;
}

// t under another shape in the axes that it has, cut; NULL with c->across where these do not divide.
static tensor *cut_as(cutting *c, const tensor *t, uint32_t rank, const int64_t *shape)
{
    tensor *out = tensor_new(c->w, t->layer, rank);
    for (uint32_t d = t->rank; d-- > 0;) {
        for (uint32_t k = t->dims[d].count; k-- > 0;) {
            if (c->queued == SPLITS) {
                return cut_across(c);
            }
            c->queue[c->queued++] = t->dims[d].at[k];
        }
    }
    for (uint32_t d = 0; out != NULL && d < rank; d++) {
        if (!cut_dim(c, shape[d], &out->dims[d])) {
            return NULL;
        }
    }
    for (uint32_t k = 0; out != NULL && k < t->axes.count; k++) {
        if (!unfold(c, t->axes.at[k], &out->axes)) {
            return cut_across(c);
        }
    }
    return out != NULL && c->queued > 0 ? cut_across(c) : out;
}

// Its numbers in one dimension; what follows one another there and in memory is one axis, but for the batch.
static tensor *joined(walk *w, const tensor *t)
{
    axes flat = {.count = 0};
    mem_axis *whole[ONNX_AXES] = {
        NULL};                  // of the axis at each place in memory, where it is the first of a run
    uint32_t next = UINT32_MAX; // the place behind the last axis
    tensor *out = tensor_new(w, t->layer, 1);
    for (uint32_t d = 0; d < t->rank; d++) {
        axes_join(&flat, &t->dims[d]);
    }
    for (uint32_t k = 0; out != NULL && k < flat.count; k++) {
        mem_axis *x = flat.at[k];
        const uint32_t place = axes_place(&t->axes, x);
        if (place == next && place < t->axes.count && place > 1) {
            out->dims[0].at[out->dims[0].count - 1]->size *= x->size;
        } else {
            mem_axis *first = axis_new(w, x->size, x->copied);
            if (first == NULL) {
                return NULL;
            }
            axes_add(&out->dims[0], first);
            if (place < t->axes.count) {
                whole[place] = first;
            }
        }
        next = place < t->axes.count ? place + 1 : UINT32_MAX;
    }
    for (uint32_t k = 0; out != NULL && k < t->axes.count; k++) {
        if (whole[k] != NULL) {
            axes_add(&out->axes, whole[k]);
        }
    }
    return out;
}

// In the axes that it has, or in those that it is left with where neighbours are one, or else moved as its dimensions are.
tensor *tensor_pieces(walk *w, const tensor *t, uint32_t rank, const int64_t *shape)
{
    cutting first = {.w = w}, second = {.w = w}, third = {.w = w};
    const axes order = tensor_axes(t);
    tensor *out = cut_as(&first, t, rank, shape);
    const tensor *whole = first.across ? joined(w, t) : NULL;
    out = whole == NULL ? out : cut_as(&second, whole, rank, shape);
    if (!second.across) {
        return out;
    }
    const bool moves = t->layer->open == OPEN_NOT && !tensor_is_expanded(t) && !axes_equal(&order, &t->axes);
    const tensor *moved = moves ? walk_moved(w, t, &order) : NULL;
    whole = moved == NULL ? NULL : joined(w, moved);
    out = whole == NULL ? NULL : cut_as(&third, whole, rank, shape);
    return !moves || third.across ? refuse_view(w) : out;
}

// ---- two tensors alike ----------------------------------------------------------------------------------------

// Sizes into which both products can be cut: for (8, 4) and (4, 8) these are 4, 2, 4. From the last to the first.
static bool common_cut(const axes *a, const axes *b, int64_t *out, uint32_t *count)
{
    uint32_t i = a->count, j = b->count;
    int64_t x = i > 0 ? a->at[i - 1]->size : 0, y = j > 0 ? b->at[j - 1]->size : 0;
    *count = 0;
    while (i > 0 && j > 0) {
        const int64_t size = x < y ? x : y;
        if ((x > y ? x : y) % size != 0 || *count == SPLITS) {
            return false;
        }
        out[(*count)++] = size;
        x /= size;
        y /= size;
        if (x == 1 && --i > 0) {
            x = a->at[i - 1]->size;
        }
        if (y == 1 && --j > 0) {
            y = b->at[j - 1]->size;
        }
    }
    return i == 0 && j == 0;
}

// The tensor with dimension d cut into pieces of cuts[d].
static tensor *refined(walk *w, const tensor *t, int64_t cuts[ONNX_RANK][SPLITS], const uint32_t *counts)
{
    int64_t flat[ONNX_RANK * SPLITS];
    cutting c = {.w = w};
    uint32_t total = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        for (uint32_t k = counts[d]; k-- > 0;) {
            flat[total++] = cuts[d][k];
        }
    }
    tensor *out = tensor_new(w, t->layer, t->rank);
    for (uint32_t d = t->rank; out != NULL && d-- > 0;) {
        for (uint32_t k = t->dims[d].count; k-- > 0;) {
            c.queue[c.queued++] = t->dims[d].at[k];
        }
    }
    for (uint32_t d = 0, at = 0; out != NULL && d < t->rank; at += counts[d], d++) {
        for (uint32_t k = 0; k < counts[d]; k++) {
            if (!cut_dim(&c, flat[at + k], &out->dims[d])) {
                return c.across ? refuse_view(w) : NULL;
            }
        }
    }
    for (uint32_t k = 0; out != NULL && k < t->axes.count; k++) {
        if (!unfold(&c, t->axes.at[k], &out->axes)) {
            return refuse_view(w);
        }
    }
    return out;
}

// The order of x's axes that is that of y's in memory.
static axes order_of(const tensor *x, const tensor *y)
{
    const axes own = tensor_axes(x), other = tensor_axes(y);
    axes order = {.count = 0};
    for (uint32_t k = 0; k < y->axes.count; k++) {
        for (uint32_t j = 0; j < other.count && j < own.count; j++) {
            if (other.at[j] == y->axes.at[k]) {
                axes_add(&order, own.at[j]);
            }
        }
    }
    return order;
}

bool tensor_align(walk *w, const tensor **a, const tensor **b)
{
    int64_t cuts[ONNX_RANK][SPLITS];
    uint32_t counts[ONNX_RANK] = {0};
    for (uint32_t d = 0; d < (*a)->rank; d++) {
        if (!common_cut(&(*a)->dims[d], &(*b)->dims[d], cuts[d], &counts[d])) {
            return walk_refuse(w, "two tensors whose dimensions do not divide each other");
        }
    }
    *a = refined(w, *a, cuts, counts);
    *b = *a == NULL ? NULL : refined(w, *b, cuts, counts);
    if (*b == NULL) {
        return false;
    }
    const axes plain = tensor_axes(*b), as_b = order_of(*a, *b), as_a = order_of(*b, *a);
    if (axes_equal(&plain, &(*b)->axes)) {
        *a = walk_moved(w, *a, &as_b);
    } else {
        *b = walk_moved(w, *b, &as_a);
    }
    return *a != NULL && *b != NULL;
}

// ---- places of a dimension ------------------------------------------------------------------------------------

static bool has_axes_of(const tensor *x)
{
    const layer *l = x->layer;
    bool same = l->rank == x->axes.count;
    for (uint32_t k = 0; same && k < l->rank; k++) {
        same = l->shape[k] == x->axes.at[k]->size;
    }
    return same;
}

// x with one axis for each dimension, where its layer's output has those; else as it is.
static const tensor *as_layer_has_it(walk *w, const tensor *x)
{
    const tensor *one = x;
    for (uint32_t d = 0; d < x->rank; d++) {
        const axes *own = &x->dims[d];
        const uint32_t at = own->count == 0 ? 0 : axes_place(&x->axes, own->at[0]);
        if (own->count > 1 && at + own->count <= x->axes.count &&
            memcmp(&x->axes.at[at], own->at, own->count * sizeof own->at[0]) == 0) {
            one = walk_whole(w, one, d);
        }
        if (one == NULL) {
            return NULL;
        }
    }
    return has_axes_of(one) ? one : x;
}

// The layer in which the axis is a dimension by itself, and which.
static layer *layer_with(walk *w, const tensor *x, uint32_t at, uint32_t *place)
{
    layer *l = x->layer;
    if (has_axes_of(x)) {
        *place = at;
        return walk_is_closed(w, x) ? l : NULL;
    }
    axes groups[4] = {{.count = 0}};
    uint32_t count = 0;
    axes_add(&groups[count++], x->axes.at[0]);
    for (uint32_t k = 1; k < at; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at > 1 ? 1 : 0;
    *place = count;
    axes_add(&groups[count++], x->axes.at[at]);
    for (uint32_t k = at + 1; k < x->axes.count; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at + 1 < x->axes.count ? 1 : 0;
    return walk_arrange(w, x, groups, count);
}

static void replace_axis(axes *a, const mem_axis *old, mem_axis *kept)
{
    axes out = {.count = 0};
    for (uint32_t k = 0; k < a->count; k++) {
        if (a->at[k] != old) {
            axes_add(&out, a->at[k]);
        } else if (kept->size > 1) {
            axes_add(&out, kept);
        }
    }
    *a = out;
}

tensor *tensor_piece(walk *w, tensor *whole, uint32_t dim, int64_t from, int64_t count)
{
    uint32_t place = 0, at = 0;
    int64_t shape[ONNX_RANK];
    if (count == dim_size(whole, dim)) {
        return whole;
    }
    if (whole->layer->open == OPEN_PARAMETER) {
        return walk_refuse(w, "a piece of a parameter; as many places as it has rows need none");
    }
    const tensor *x = walk_whole(w, whole, dim);
    x = x == NULL ? NULL : as_layer_has_it(w, x);
    if (x == NULL) {
        return NULL;
    }
    if (x->dims[dim].count != 1 || !axes_have(&x->axes, x->dims[dim].at[0])) {
        return walk_refuse(w, "a piece of an expanded dimension");
    }
    mem_axis *own = x->dims[dim].at[0];
    while (x->axes.at[at] != own) {
        at++;
    }
    if (at == 0) {
        return walk_refuse(w, "a piece of the batch");
    }
    layer *source = layer_with(w, x, at, &place);
    mem_axis *kept = source == NULL ? NULL : axis_new(w, count, false);
    tensor *out = kept == NULL ? NULL : tensor_again(w, x);
    if (out == NULL) {
        return NULL;
    }
    memcpy(shape, source->shape, sizeof shape);
    shape[place] = count;
    out->layer = walk_emit(w, "slice", source, source->rank, shape);
    if (out->layer == NULL) {
        return NULL;
    }
    layer_whole(w, out->layer, "axis", place);
    layer_whole(w, out->layer, "from", from);
    layer_whole(w, out->layer, "count", count);
    out->layer->from = from;
    out->layer->count = count;
    replace_axis(&out->axes, own, kept);
    for (uint32_t d = 0; d < out->rank; d++) {
        replace_axis(&out->dims[d], own, kept);
    }
    return out;
}
