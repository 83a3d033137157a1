// SPDX-License-Identifier: Apache-2.0
// Axes, and tensors that have them.
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

uint32_t axes_place(const axes *a, const mem_axis *x)
{
    uint32_t place = 0;
    while (place < a->count && a->at[place] != x) {
        place++;
    }
    return place;
}

bool axes_have(const axes *a, const mem_axis *x)
{
    return axes_place(a, x) < a->count;
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

bool tensors_are_one(const tensor *a, const tensor *b)
{
    bool same = a->layer == b->layer && a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->dims[d].count == b->dims[d].count;
        for (uint32_t k = 0; same && k < a->dims[d].count; k++) {
            const mem_axis *x = a->dims[d].at[k], *y = b->dims[d].at[k];
            same = x->size == y->size && axes_place(&a->axes, x) == axes_place(&b->axes, y);
        }
    }
    return same;
}

axes tensor_axes(const tensor *t)
{
    axes all = {.count = 0};
    for (uint32_t d = 0; d < t->rank; d++) {
        axes_join(&all, &t->dims[d]);
    }
    return all;
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
