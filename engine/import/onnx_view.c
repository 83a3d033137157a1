// SPDX-License-Identifier: Apache-2.0
// Axes: what Reshape, Transpose and their like do to a tensor without moving a byte.
#include <string.h>

#include "onnx_walk.h"

int64_t axes_size(const axes *a)
{
    int64_t size = 1;
    for (uint32_t k = 0; k < a->count; k++) {
        size *= a->at[k]->size; // pieces of a tensor that was counted
    }
    return size;
}

int64_t dim_size(const tensor *t, uint32_t dim)
{
    return axes_size(&t->dims[dim]);
}

void tensor_shape(const tensor *t, int64_t shape[ONNX_RANK])
{
    for (uint32_t k = 0; k < t->rank; k++) {
        shape[k] = dim_size(t, k);
    }
}

bool axes_equal(const axes *a, const axes *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->at, b->at, a->count * sizeof a->at[0]) == 0);
}

void axes_add(axes *a, mem_axis *x)
{
    if (a->count < ONNX_AXES) {
        a->at[a->count++] = x;
    }
}

void axes_join(axes *a, const axes *b)
{
    for (uint32_t k = 0; k < b->count; k++) {
        axes_add(a, b->at[k]);
    }
}

bool axes_have(const axes *a, const mem_axis *x)
{
    for (uint32_t k = 0; k < a->count; k++) {
        if (a->at[k] == x) {
            return true;
        }
    }
    return false;
}

mem_axis *axis_new(walk *w, int64_t size, bool copied)
{
    mem_axis *x = onnx_take(w->g, 1, sizeof *x);
    if (x != NULL) {
        x->size = size;
        x->copied = copied;
    }
    return x;
}

tensor *tensor_new(walk *w, layer *l, uint32_t rank)
{
    tensor *t = l == NULL ? NULL : onnx_take(w->g, 1, sizeof *t);
    if (t != NULL) {
        t->layer = l;
        t->rank = rank;
    }
    return t;
}

tensor *tensor_again(walk *w, const tensor *t)
{
    tensor *more = t == NULL ? NULL : onnx_take(w->g, 1, sizeof *more);
    if (more != NULL) {
        *more = *t;
    }
    return more;
}

tensor *tensor_plain(walk *w, layer *l, const uint32_t *order)
{
    mem_axis *own[ONNX_RANK] = {NULL};
    tensor *t = tensor_new(w, l, l == NULL ? 0 : l->rank);
    for (uint32_t k = 0; t != NULL && k < l->rank; k++) {
        own[k] = axis_new(w, l->shape[k], false);
        if (own[k] == NULL) {
            return NULL;
        }
        if (l->shape[k] != 1) {
            axes_add(&t->axes, own[k]);
        }
    }
    for (uint32_t k = 0; t != NULL && k < l->rank; k++) {
        mem_axis *x = own[order == NULL ? k : order[k]];
        if (x->size != 1) {
            axes_add(&t->dims[k], x);
        }
    }
    return t;
}

bool tensor_is_expanded(const tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++) {
        for (uint32_t k = 0; k < t->dims[d].count; k++) {
            if (t->dims[d].at[k]->copied) {
                return true;
            }
        }
    }
    return false;
}

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
        uint32_t place = 0;
        while (place < t->axes.count && t->axes.at[place] != x) {
            place++;
        }
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

static axes in_dims(const tensor *t)
{
    axes all = {.count = 0};
    for (uint32_t d = 0; d < t->rank; d++) {
        axes_join(&all, &t->dims[d]);
    }
    return all;
}

// In the axes that it has, or in those that it is left with where neighbours are one, or else moved as its dimensions are.
tensor *tensor_pieces(walk *w, const tensor *t, uint32_t rank, const int64_t *shape)
{
    cutting first = {.w = w}, second = {.w = w}, third = {.w = w};
    const axes order = in_dims(t);
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
    const axes own = in_dims(x), other = in_dims(y);
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
    const axes plain = in_dims(*b), as_b = order_of(*a, *b), as_a = order_of(*b, *a);
    if (axes_equal(&plain, &(*b)->axes)) {
        *a = walk_moved(w, *a, &as_b);
    } else {
        *b = walk_moved(w, *b, &as_a);
    }
    return *a != NULL && *b != NULL;
}
