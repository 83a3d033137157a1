// SPDX-License-Identifier: Apache-2.0
// Views: nothing is written for them. Pieces of an axis are slices.
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

static bool is_float(int64_t type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

bool take_identity(walk *w)
{
    const value v = walk_value(w, 0);
    if (w->node->output_count > 0 && w->node->outputs[0] != ONNX_NOTHING) {
        w->values[w->node->outputs[0]] = v;
    }
    return true;
}

bool take_cast(walk *w)
{
    const int64_t to = onnx_whole(w->node, "to", 0);
    const value v = walk_value(w, 0);
    if (v.tensor != NULL && v.tensor->layer->classes > 0 ? is_float(to) : !is_float(to)) {
        return walk_refuse(w, "a cast between numbers and ids");
    }
    return take_identity(w);
}

bool take_shape(walk *w)
{
    const value v = walk_value(w, 0);
    int64_t shape[ONNX_RANK] = {0};
    const int64_t rank = v.tensor != NULL    ? v.tensor->rank
                         : v.weight != NULL  ? v.weight->rank
                         : v.numbers != NULL ? v.numbers->rank
                                             : 0;
    if (v.tensor != NULL) {
        tensor_shape(v.tensor, shape);
    } else if (v.weight != NULL || v.numbers != NULL) {
        memcpy(shape, v.weight != NULL ? v.weight->dims : v.numbers->dims, sizeof shape);
    } else {
        return walk_refuse(w, "asks for the shape of nothing");
    }
    int64_t from = onnx_whole(w->node, "start", 0), end = onnx_whole(w->node, "end", rank);
    from = from < -rank ? 0 : from < 0 ? from + rank : from > rank ? rank : from;
    end = end < -rank ? 0 : end < 0 ? end + rank : end > rank ? rank : end;
    return walk_give_numbers(w, 0, numbers_list(w->g, shape + from, end > from ? (uint32_t)(end - from) : 0));
}

bool take_reshape(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t have[ONNX_RANK], shape[ONNX_RANK];
    uint32_t rank = 0;
    if (x == NULL) {
        return false;
    }
    tensor_shape(x, have);
    return node_reshape(w, x->rank, have, &rank, shape) && walk_give(w, 0, tensor_pieces(w, x, rank, shape));
}

bool take_flatten(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t shape[2] = {1, 1}, at = onnx_whole(w->node, "axis", 1);
    if (x == NULL) {
        return false;
    }
    at += at < 0 ? (int64_t)x->rank : 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        shape[(int64_t)k < at ? 0 : 1] *= dim_size(x, k); // of a tensor that was counted
    }
    return walk_give(w, 0, tensor_pieces(w, x, 2, shape));
}

bool take_transpose(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    tensor *out = x == NULL ? NULL : tensor_again(w, x);
    uint32_t order[ONNX_RANK];
    if (out == NULL || !node_permutation(w, x->rank, order)) {
        return false;
    }
    for (uint32_t k = 0; k < x->rank; k++) {
        out->dims[k] = x->dims[order[k]];
    }
    return walk_give(w, 0, out);
}

// Channels as pixels and back: x seen as `apart`, its dimensions in another order, that seen as `out`.
static bool give_blocks(walk *w, const tensor *x, const int64_t apart[6], const uint32_t order[6],
                        const int64_t out[4])
{
    const tensor *seen = tensor_pieces(w, x, 6, apart);
    tensor *t = tensor_again(w, seen);
    for (uint32_t k = 0; t != NULL && k < 6; k++) {
        t->dims[k] = seen->dims[order[k]];
    }
    return t != NULL && walk_give(w, 0, tensor_pieces(w, t, 4, out));
}

static bool pixels_to_depth(walk *w, const tensor *x, int64_t size)
{
    static const uint32_t order[6] = {0, 3, 5, 1, 2, 4};
    const int64_t n = dim_size(x, 0), c = dim_size(x, 1), h = dim_size(x, 2), across = dim_size(x, 3);
    if (h % size != 0 || across % size != 0) {
        return walk_refuse(w, "an image that its blocks do not divide");
    }
    const int64_t apart[6] = {n, c, h / size, size, across / size, size};
    const int64_t out[4] = {n, c * size * size, h / size, across / size};
    return give_blocks(w, x, apart, order, out);
}

static bool depth_to_pixels(walk *w, const tensor *x, int64_t size)
{
    static const uint32_t places_first[6] = {0, 3, 4, 1, 5, 2}, channels_first[6] = {0, 1, 4, 2, 5, 3};
    const onnx_attribute *mode = onnx_find(w->node, "mode");
    const bool channels = mode != NULL && mode->word != NULL && strcmp(mode->word, "CRD") == 0;
    const int64_t n = dim_size(x, 0), c = dim_size(x, 1), h = dim_size(x, 2), across = dim_size(x, 3);
    if (c % size != 0 || c / size % size != 0) {
        return walk_refuse(w, "channels that its blocks do not divide");
    }
    const int64_t left = c / size / size, out[4] = {n, left, h * size, across * size};
    const int64_t apart[2][6] = {{n, size, size, left, h, across}, {n, left, size, size, h, across}};
    return give_blocks(w, x, apart[channels ? 1 : 0], channels ? channels_first : places_first, out);
}

bool take_blocks(walk *w)
{
    const tensor *x = walk_tensor(w, 0);
    const int64_t size = onnx_whole(w->node, "blocksize", 0);
    if (x == NULL) {
        return false;
    }
    if (x->rank != 4 || size < 1) {
        return walk_refuse(w, "needs [batch, channels, height, width] and a block of 1 or more");
    }
    return w->node->op[0] == 'S' ? pixels_to_depth(w, x, size) : depth_to_pixels(w, x, size);
}

bool take_squeeze(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t have[ONNX_RANK], shape[ONNX_RANK];
    uint32_t rank = 0;
    if (x == NULL) {
        return false;
    }
    tensor_shape(x, have);
    return node_squeezed(w, w->node->op[0] == 'U', x->rank, have, &rank, shape) &&
           walk_give(w, 0, tensor_pieces(w, x, rank, shape));
}

bool take_expand(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const numbers *n = x == NULL ? NULL : walk_needs_numbers(w, 1);
    int64_t have[ONNX_RANK], want[ONNX_RANK], shape[ONNX_RANK];
    uint32_t rank = 0;
    if (n == NULL) {
        return false;
    }
    if (n->rank != 1 || n->dims[0] > ONNX_RANK) {
        return walk_refuse(w, "needs a shape of at most %d dimensions", ONNX_RANK);
    }
    tensor_shape(x, have);
    for (uint32_t k = 0; k < n->dims[0]; k++) {
        const int64_t own = (int64_t)k + x->rank - n->dims[0];
        want[k] = numbers_whole(numbers_at(n, k));
        want[k] = own >= 0 && have[own] == ONNX_BATCH && want[k] == w->fixed_batch ? ONNX_BATCH : want[k];
        if (want[k] < 1 || want[k] > ONNX_DIM_MAX) {
            return walk_refuse(w, "needs dimensions from 1 to 2^40");
        }
    }
    if (!onnx_broadcast(x->rank, have, (uint32_t)n->dims[0], want, &rank, shape)) {
        return walk_refuse(w, "needs a shape that its operand broadcasts to");
    }
    tensor *out = tensor_new(w, x->layer, rank);
    for (uint32_t k = 0; out != NULL && k < rank; k++) {
        const bool own = k >= rank - x->rank;
        if (own && have[k - (rank - x->rank)] == shape[k]) {
            out->dims[k] = x->dims[k - (rank - x->rank)];
            continue;
        }
        mem_axis *copied = axis_new(w, shape[k], true);
        if (copied == NULL) {
            return false;
        }
        axes_add(&out->dims[k], copied);
    }
    if (out != NULL) {
        out->axes = x->axes;
    }
    return walk_give(w, 0, out);
}

// ---- pieces ---------------------------------------------------------------------------------------------------

static tensor *nth_places(walk *w, tensor *x, uint32_t dim, const cut *c)
{
    const bool all = c->step > 1 && dim_size(x, dim) / c->step == c->count;
    return all ? every_nth(w, x, dim, c->from, c->step)
               : walk_refuse(w, "every %lld-th place of a part of a dimension, which no layer takes",
                             (long long)c->step);
}

bool take_slice(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t have[ONNX_RANK];
    cut cuts[ONNX_RANK];
    if (x == NULL) {
        return false;
    }
    tensor_shape(x, have);
    if (!node_cuts(w, x->rank, have, cuts)) {
        return false;
    }
    const uint32_t rank = x->rank;
    for (uint32_t k = 0; x != NULL && k < rank; k++) {
        if (have[k] == ONNX_BATCH && w->fixed_batch > 0 && cuts[k].count == w->fixed_batch) {
            continue; // all samples of the batch of the export
        }
        if (cuts[k].count < 1) {
            return walk_refuse(w, "a slice without places");
        }
        if (cuts[k].step != 1 && cuts[k].count > 1) {
            x = nth_places(w, x, k, &cuts[k]);
            continue;
        }
        x = tensor_piece(w, x, k, cuts[k].from, cuts[k].count);
    }
    return walk_give(w, 0, x);
}

bool take_split(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t parts[ONNX_PARTS], at = 0;
    uint32_t count = 0, axis = 0;
    if (x == NULL || !node_axis(w, onnx_whole(w->node, "axis", 0), x->rank, &axis) ||
        !node_parts(w, dim_size(x, axis), parts, &count)) {
        return false;
    }
    for (uint32_t k = 0; k < count; at += parts[k], k++) {
        if (!walk_give(w, k, tensor_piece(w, x, axis, at, parts[k]))) {
            return false;
        }
    }
    return true;
}

// A flat tensor of which all places are looked up in their order, as an exporter writes a view of strides: another shape of it. Of an
// open batch the numbers of one sample stand there, and each further sample has to look up the places behind the last.
// NULL without a refusal for another look-up.
static tensor *looked_up_in_order(walk *w, const tensor *x)
{
    const numbers *n = x->rank == 1 ? walk_numbers(w, 1) : NULL;
    int64_t shape[ONNX_RANK], count = 1;
    if (n == NULL || n->missing != NULL || n->rank < 2) {
        return NULL;
    }
    memcpy(shape, n->dims, sizeof shape);
    for (uint32_t k = 1; k < n->rank; k++) {
        count *= shape[k]; // of numbers that were counted
    }
    const bool open = shape[0] == ONNX_BATCH, fixed = w->fixed_batch > 0 && shape[0] == w->fixed_batch;
    const bool first = open && n->strides[0] == 0; // which alone stands there
    const int64_t samples = first ? 1 : shape[0];
    shape[0] = ONNX_BATCH;
    if (!(open || fixed) || count < 1 || dim_size(x, 0) / ONNX_BATCH != count ||
        dim_size(x, 0) % ONNX_BATCH != 0 || (first && n->by_sample != (double)count) ||
        !numbers_work(w->g, samples * count)) {
        return NULL;
    }
    for (int64_t k = 0; k < samples * count; k++) {
        if (numbers_at(n, k) != (double)k) {
            return NULL;
        }
    }
    return tensor_pieces(w, x, n->rank, shape);
}

bool take_pick(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    int64_t have[ONNX_RANK], place = 0;
    uint32_t axis = 0;
    tensor *again = x == NULL ? NULL : looked_up_in_order(w, x);
    if (x == NULL || again != NULL || w->g->status != HR_OK) {
        return walk_give(w, 0, again);
    }
    tensor_shape(x, have);
    if (!node_picks(w, x->rank, have, &axis, &place)) {
        return false;
    }
    const numbers *index = walk_numbers(w, 1);
    tensor *one = tensor_piece(w, x, axis, place, 1);
    tensor *out = one == NULL ? NULL : tensor_again(w, one);
    if (out == NULL || index->rank > 0) { // a list of one place keeps the dimension
        return index->rank > 1 && out != NULL ? walk_refuse(w, "a look-up in several dimensions") != NULL
                                              : walk_give(w, 0, out);
    }
    for (uint32_t k = axis; k + 1 < out->rank; k++) {
        out->dims[k] = one->dims[k + 1];
    }
    out->rank--;
    return walk_give(w, 0, out);
}
