// SPDX-License-Identifier: Apache-2.0
// Images whose rows or columns are cut and joined again: turned around an edge (roll), or every n-th pixel of them as channels
// (patch_merging, as Swin has it).
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

// ---- roll -----------------------------------------------------------------------------------------------------

// The place in memory of x among the axes of all dimensions but one.
static uint32_t place_beside(const tensor *t, const mem_axis *x, uint32_t dim)
{
    const uint32_t place = axes_place(&t->axes, x);
    return place - (t->dims[dim].count > 0 && axes_place(&t->axes, t->dims[dim].at[0]) < place ? 1 : 0);
}

static bool are_alike_beside(const tensor *a, const tensor *b, uint32_t dim)
{
    bool same = a->rank == b->rank && a->dims[dim].count <= 1 && b->dims[dim].count <= 1;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = d == dim || a->dims[d].count == b->dims[d].count;
        for (uint32_t k = 0; same && d != dim && k < a->dims[d].count; k++) {
            const mem_axis *x = a->dims[d].at[k], *y = b->dims[d].at[k];
            same = x->size == y->size && place_beside(a, x, dim) == place_beside(b, y, dim);
        }
    }
    return same;
}

// Whether dim of a tensor that lies as the slice's output is what was sliced; of a piece of one place no dimension is.
static bool is_sliced(const layer *slice, const tensor *t, uint32_t dim)
{
    const int place = layer_attribute_text(slice, "axis")[0] - '0';
    const mem_axis *own = t->dims[dim].count == 1 ? t->dims[dim].at[0] : NULL;
    const uint32_t at = own == NULL ? t->axes.count : axes_place(&t->axes, own);
    int64_t before = 1, sliced_before = 1;
    for (uint32_t k = 0; k < at && k < t->axes.count; k++) {
        before *= t->axes.at[k]->size;
    }
    for (int k = 0; k < place; k++) {
        sliced_before *= slice->shape[k];
    }
    return own == NULL ? slice->count == 1
                       : at < t->axes.count && own->size == slice->count && before == sliced_before;
}

bool pieces_follow(const layer *a, const tensor *later, const layer *b, const tensor *first, uint32_t dim)
{
    return strcmp(a->kind, "slice") == 0 && strcmp(b->kind, "slice") == 0 && a->inputs[0] == b->inputs[0] &&
           strcmp(layer_attribute_text(a, "axis"), layer_attribute_text(b, "axis")) == 0 && b->from == 0 &&
           a->from == b->count && is_sliced(a, later, dim) && is_sliced(b, first, dim) &&
           are_alike_beside(later, first, dim);
}

// Shifts of a roll are kept as its `from` (rows) and `count` (columns).
static layer *rolled(walk *w, layer *source, int64_t rows, int64_t columns)
{
    const bool again = strcmp(source->kind, "roll") == 0 && (source->from == 0 || rows == 0) &&
                       (source->count == 0 || columns == 0);
    const int64_t shift[2] = {rows + (again ? source->from : 0), columns + (again ? source->count : 0)};
    layer *from = again ? source->inputs[0] : source;
    layer *l = walk_emit(w, "roll", from, from->rank, from->shape);
    if (l != NULL) {
        l->from = shift[0];
        l->count = shift[1];
        layer_pair(w, l, "shift", shift);
    }
    return l;
}

tensor *turned_around(walk *w, const tensor *later, const tensor *first, uint32_t dim)
{
    if (!pieces_follow(later->layer, later, first->layer, first, dim)) {
        return NULL;
    }
    layer *source = first->layer->inputs[0];
    const int64_t place = layer_attribute_text(first->layer, "axis")[0] - '0', head = first->layer->count;
    if (source->rank != 4 || place < 1 || place > 2 || source->shape[place] != head + later->layer->count) {
        return NULL;
    }
    const int64_t size = source->shape[place], shift = 2 * head > size ? size - head : -head;
    const bool one = head > 1; // a piece of one place has no axis
    const tensor *like = one ? first : later;
    mem_axis *whole = like->dims[dim].count == 1 ? axis_new(w, size, false) : NULL;
    layer *l = whole == NULL ? NULL : rolled(w, source, place == 1 ? shift : 0, place == 2 ? shift : 0);
    tensor *out = l == NULL ? NULL : tensor_again(w, like);
    if (out == NULL) {
        return NULL;
    }
    for (uint32_t k = 0; k < out->axes.count; k++) {
        out->axes.at[k] = out->axes.at[k] == like->dims[dim].at[0] ? whole : out->axes.at[k];
    }
    out->dims[dim].at[0] = whole;
    out->layer = l;
    return out;
}

// ---- every n-th -----------------------------------------------------------------------------------------------

typedef struct taken {
    const tensor *source, *view; // view: the tensor that has them
    int64_t first[ONNX_RANK], step[ONNX_RANK];
} taken;

// What x has of the tensor that it was taken of; NULL: all of its own.
static const taken *taken_of(const tensor *x)
{
    const taken *t = x->layer->taken;
    return t != NULL && tensors_are_one(t->view, x) ? t : NULL;
}

static tensor *without_dim(walk *w, const tensor *x, uint32_t dim)
{
    tensor *out = tensor_again(w, x);
    for (uint32_t d = dim; out != NULL && d + 1 < out->rank; d++) {
        out->dims[d] = x->dims[d + 1];
    }
    if (out != NULL) {
        out->rank--;
    }
    return out;
}

tensor *every_nth(walk *w, tensor *x, uint32_t dim, int64_t first, int64_t step)
{
    int64_t shape[ONNX_RANK + 1];
    const int64_t size = dim_size(x, dim);
    const taken *before = taken_of(x);
    if (x->rank == ONNX_RANK || size % step != 0 || first >= step) {
        return walk_refuse(w, "every %lld-th of %lld places from %lld on, which no layer takes",
                           (long long)step, (long long)size, (long long)first);
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        shape[d < dim ? d : d + 1] = dim_size(x, d);
    }
    shape[dim] = size / step;
    shape[dim + 1] = step;
    tensor *apart = tensor_pieces(w, x, x->rank + 1, shape);
    const tensor *one = apart == NULL ? NULL : tensor_piece(w, apart, dim + 1, first, 1);
    tensor *out = one == NULL ? NULL : without_dim(w, one, dim + 1);
    taken *t = out == NULL ? NULL : onnx_take(w->g, 1, sizeof *t);
    if (t == NULL) {
        return NULL;
    }
    *t = before != NULL && before->step[dim] == 0 ? *before : (taken){.source = x};
    t->view = out;
    t->first[dim] = first;
    t->step[dim] = step;
    out->layer->taken = t;
    return out;
}

// Whether the k-th of size² tensors has every size-th pixel, column by column, of the source.
static bool is_patch(const tensor *x, const tensor *source, int64_t size, uint32_t k)
{
    const taken *t = taken_of(x);
    const int64_t row = k % size, column = k / size;
    return t != NULL && t->source == source && t->step[1] == size && t->step[2] == size && t->step[0] == 0 &&
           t->step[3] == 0 && t->first[1] == row && t->first[2] == column;
}

tensor *merged_patches(walk *w, const tensor *const *of, uint32_t count, uint32_t dim)
{
    const taken *t = of[0]->rank == 4 && dim == 3 ? taken_of(of[0]) : NULL;
    const int64_t size = t == NULL ? 0 : t->step[1];
    if (size < 2 || size > 16 || size * size != count) {
        return NULL;
    }
    for (uint32_t k = 0; k < count; k++) {
        if (!is_patch(of[k], t->source, size, k)) {
            return NULL;
        }
    }
    layer *image = walk_arrange_dims(w, t->source);
    if (image == NULL) {
        return NULL;
    }
    const int64_t shape[4] = {ONNX_BATCH, image->shape[1] / size, image->shape[2] / size,
                              image->shape[3] * size * size};
    layer *l = walk_emit(w, "patch_merging", image, 4, shape);
    layer_whole(w, l, "size", size);
    return l == NULL ? NULL : tensor_plain(w, l, NULL);
}
