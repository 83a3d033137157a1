// SPDX-License-Identifier: Apache-2.0
// Attention within windows of an image, as Swin has it: windows are cut by views that move no byte here, scores get a bias by
// where two pixels stand to one another, and a mask between pixels that were no neighbours before the image was rolled.
#include <string.h>

#include "onnx_layers.h"
#include "onnx_scores.h"

enum { SIDE_MOST = 64 };
#define TORN (-100.0) // what is added at most to the scores of pixels that were no neighbours

// ---- how they lie ---------------------------------------------------------------------------------------------

// Memory: batch, windows below one another, their rows, windows beside one another, their columns, heads, features.
bool windows_find(const tensor *x, windows *out)
{
    axes whole = {.count = 0};
    if (x->rank != 4 || x->dims[2].count != 2 || x->axes.count == 0) {
        return false;
    }
    const uint32_t rows = axes_place(&x->axes, x->dims[2].at[0]),
                   columns = axes_place(&x->axes, x->dims[2].at[1]);
    if (columns >= x->axes.count || rows < 1 || rows > 2 || columns < rows + 1 || columns > rows + 2) {
        return false;
    }
    *out = (windows){.h = x->axes.at[rows]->size, .w = x->axes.at[columns]->size, .down = 1, .across = 1};
    axes_add(&whole, x->axes.at[0]);
    if (rows == 2) {
        axes_add(&whole, x->axes.at[1]);
        out->down = x->axes.at[1]->size;
    }
    if (columns == rows + 2) {
        axes_add(&whole, x->axes.at[rows + 1]);
        out->across = x->axes.at[rows + 1]->size;
    }
    return axes_equal(&whole, &x->dims[0]) && x->axes.at[0]->size == ONNX_BATCH && out->h <= SIDE_MOST &&
           out->w <= SIDE_MOST;
}

// ---- the bias -------------------------------------------------------------------------------------------------

const numbers *parameter_numbers(walk *w, const tensor *t)
{
    if (t->layer->open != OPEN_PARAMETER || t->layer->param_count == 0) {
        return NULL;
    }
    const numbers *read = numbers_of(w->g, t->layer->params[0]);
    const numbers *flat = read == NULL || read->missing != NULL ? read : numbers_plain(w->g, read);
    numbers *out = flat == NULL ? NULL : numbers_again(w->g, flat);
    for (uint32_t d = 0; out != NULL && d < t->rank; d++) {
        int64_t stride = 1;
        const mem_axis *own = t->dims[d].count > 0 ? t->dims[d].at[0] : NULL;
        if (t->dims[d].count > 1 || (own != NULL && own->copied)) {
            return NULL;
        }
        for (uint32_t k = axes_place(&t->axes, own) + 1; k < t->axes.count; k++) {
            stride *= t->axes.at[k]->size;
        }
        out->dims[d] = dim_size(t, d);
        out->strides[d] = own != NULL && read->missing == NULL ? stride : 0;
    }
    if (out != NULL) {
        out->rank = t->rank;
    }
    return out;
}

// A table of biases as numbers; NULL: it is none of [1, heads, places, places].
static const numbers *bias_numbers(walk *w, const value *bias, int64_t head_count, int64_t places)
{
    const tensor *t = bias->tensor != NULL || bias->weight == NULL ? bias->tensor : walk_tensor_of(w, bias);
    if (t == NULL || t->rank < 3 || t->rank > 4 || axes_size(&t->axes) != head_count * places * places ||
        dim_size(t, t->rank - 3) != head_count || dim_size(t, t->rank - 2) != places ||
        dim_size(t, t->rank - 1) != places) {
        return NULL;
    }
    return parameter_numbers(w, t);
}

// Whether a bias depends on nothing but how far a pixel is below and beside another.
static bool is_relative(walk *w, const numbers *n, int64_t head_count, const windows *v)
{
    const int64_t places = v->h * v->w, rows = (2 * v->h - 1) * (2 * v->w - 1);
    const double **seen = onnx_take(w->g, (size_t)rows, sizeof *seen);
    if (seen == NULL || !numbers_work(w->g, head_count * places * places)) {
        return false;
    }
    const uint32_t at = n->rank - 3;
    for (int64_t head = 0; head < head_count; head++) {
        memset(seen, 0, (size_t)rows * sizeof *seen);
        for (int64_t k = 0; k < places * places; k++) {
            const int64_t i = k / places, j = k % places;
            const double *x = n->at + head * n->strides[at] + i * n->strides[at + 1] + j * n->strides[at + 2];
            const int64_t below = i / v->w - j / v->w + v->h - 1, beside = i % v->w - j % v->w + v->w - 1;
            const double **one = &seen[below * (2 * v->w - 1) + beside];
            *one = *one == NULL ? x : *one;
            if (!(**one == *x)) {
                return false;
            }
        }
    }
    return true;
}

// The table itself is not in the file, which has what was looked up in it: as many numbers as it has, shared with no one.
static const onnx_tensor *table_of(walk *w, const onnx_tensor *looked_up, int64_t head_count,
                                   const windows *v)
{
    onnx_tensor *t = onnx_take(w->g, 1, sizeof *t);
    if (t != NULL) {
        *t = *looked_up;
        t->rank = 1;
        t->dims[0] = (2 * v->h - 1) * (2 * v->w - 1) * head_count;
    }
    return t;
}

tensor *windows_biased(walk *w, const tensor *x, const value *bias)
{
    scores s = *x->layer->scores;
    windows v;
    if (s.softmax || s.windows.biased || s.q == NULL || x->rank != 4 || !windows_find(s.q, &v)) {
        return NULL;
    }
    const int64_t head_count = dim_size(x, 1), places = v.h * v.w;
    const numbers *n = dim_size(x, 2) == places && dim_size(x, 3) == places
                           ? bias_numbers(w, bias, head_count, places)
                           : NULL;
    const tensor *t = n == NULL ? NULL : walk_tensor_of(w, bias);
    if (t == NULL || (n->missing == NULL && !is_relative(w, n, head_count, &v))) {
        return NULL;
    }
    const onnx_tensor *looked_up = t->layer->params[0];
    if (n->missing != NULL) {
        walk_note(w, "'%.60s' is taken for what was looked up in a table of biases by relative position.",
                  looked_up->name);
    }
    v.biased = true;
    v.table = table_of(w, looked_up, head_count, &v);
    s.windows = v;
    return v.table == NULL ? NULL : scores_changed(w, x, &s);
}

// ---- the mask -------------------------------------------------------------------------------------------------

// Which of four parts of a rolled image a pixel is in, that were no neighbours.
static int part_of(const windows *v, int64_t window, int64_t pixel)
{
    const int64_t row = window / v->across * v->h + pixel / v->w,
                  column = window % v->across * v->w + pixel % v->w;
    return (row >= v->down * v->h - v->shift[0] ? 1 : 0) + (column >= v->across * v->w - v->shift[1] ? 2 : 0);
}

static bool is_torn_so(const windows *v, const numbers *n, int64_t *steps)
{
    const int64_t places = v->h * v->w, each = places * places;
    for (int64_t k = 0; k < v->down * v->across * each; k++) {
        const int64_t window = k / each, i = k % each / places, j = k % places;
        const bool torn = part_of(v, window, i) != part_of(v, window, j);
        const double added = n->at[window * n->strides[1] + i * n->strides[3] + j * n->strides[4]];
        *steps = k;
        if (torn ? !(added <= TORN) : added != 0) {
            return false;
        }
    }
    return true;
}

// Whether the dimensions of scores are [batch, windows, heads, places, places], as they came to be, and those of a mask so.
static bool fits_windows(const tensor *x, const numbers *n, const windows *v)
{
    const int64_t places = v->h * v->w, count = v->down * v->across;
    const axes order = tensor_axes(x);
    return x->rank == 5 && axes_equal(&order, &x->axes) && dim_size(x, 1) == count &&
           dim_size(x, 3) == places && n->rank == 5 && n->dims[0] == 1 && n->dims[1] == count &&
           n->dims[2] == 1 && n->dims[3] == places && n->dims[4] == places;
}

tensor *windows_masked(walk *w, const tensor *x, const numbers *hidden)
{
    scores s = *x->layer->scores;
    windows *v = &s.windows;
    if (!fits_windows(x, hidden, v) || s.softmax || v->shift[0] + v->shift[1] > 0) {
        return walk_refuse(
            w, "a mask of windows in another form than [1, windows, 1, places, places], or a second one");
    }
    if (!walk_is_known(w, hidden, false) || !numbers_work(w->g, numbers_count(hidden))) {
        return NULL;
    }
    for (v->shift[0] = 0; v->shift[0] < v->h; v->shift[0]++) {
        for (v->shift[1] = 0; v->shift[1] < v->w; v->shift[1]++) {
            int64_t steps = 0;
            const bool so = is_torn_so(v, hidden, &steps);
            if (so || !numbers_work(w->g, steps)) {
                return so ? scores_changed(w, x, &s) : NULL;
            }
        }
    }
    return walk_refuse(w, "a mask of windows that no roll of the image explains");
}

// ---- heads and the layer --------------------------------------------------------------------------------------

tensor *windows_heads(walk *w, const heads *h)
{
    const windows *v = &h->windows;
    const int64_t lies[7] = {ONNX_BATCH, v->down, v->h, v->across, v->w, h->heads, h->head_dim};
    layer *memory = layer_new(w, "a step", 7, lies);
    const tensor *flat = memory == NULL ? NULL : tensor_plain(w, memory, NULL);
    tensor *t = flat == NULL ? NULL : tensor_new(w, memory, 4);
    if (t == NULL) {
        return NULL;
    }
    static const uint32_t dims[7] = {0, 0, 2, 0, 2, 1, 3};
    t->axes = flat->axes;
    for (uint32_t k = 0; k < 7; k++) {
        axes_join(&t->dims[dims[k]], &flat->dims[k]);
    }
    return t;
}

// The image whose windows these are: what the dense layer of queries, keys and values reads.
static layer *image_of(walk *w, const heads *h)
{
    const windows *v = &h->windows;
    layer *l = h->of[0].dense->inputs[0];
    const int64_t shape[4] = {ONNX_BATCH, v->down * v->h, v->across * v->w, h->heads * h->head_dim};
    for (int k = 1; k < 3; k++) {
        if (h->of[k].dense->inputs[0] != l || h->of[k].dense->bias != h->of[0].dense->bias) {
            return walk_refuse(
                w,
                "attention of windows with queries, keys and values of different tensors, or biases of some");
        }
    }
    if (l->shape[l->rank - 1] != shape[3] || h->kv_heads != h->heads || h->causal || h->scale != 0 ||
        h->of[0].rotary != 0 || h->of[0].norm != NULL) {
        return walk_refuse(w, "attention of windows of another width than the image, or that is causal, "
                              "scaled otherwise, or has "
                              "rotary positions or norms");
    }
    return walk_reshaped(w, l, 4, shape);
}

static bool windows_unbiased(walk *w)
{
    return walk_refuse(w, "attention of windows with biases in some of its projections");
}

static void put_attributes(walk *w, layer *l, const heads *h)
{
    const windows *v = &h->windows;
    const int64_t size[2] = {v->h, v->w};
    layer_whole(w, l, "heads", h->heads);
    layer_pair(w, l, "size", size);
    if (v->shift[0] + v->shift[1] > 0) {
        layer_pair(w, l, "shift", v->shift);
    }
    if (h->dropout > 0) {
        layer_real(w, l, "dropout", h->dropout);
    }
    l->needs_bias = h->of[0].dense->bias;
    layer_word(w, l, "bias", "false");
}

bool windows_output_biased(walk *w, layer *l, const onnx_tensor *bias)
{
    if (!l->needs_bias) {
        return windows_unbiased(w);
    }
    l->bias = true;
    layer_word(w, l, "bias", "true");
    layer_param(w, l, bias);
    return true;
}

bool windows_are_whole(walk *w, const layer *l)
{
    return strcmp(l->kind, "window_attention") != 0 || l->bias == l->needs_bias || windows_unbiased(w);
}

tensor *windows_closed(walk *w, const tensor *x, int64_t units, const onnx_tensor *weight)
{
    const heads *h = x->layer->heads;
    const axes *last = &x->dims[x->rank - 1];
    layer *image = image_of(w, h);
    if (image == NULL) {
        return NULL;
    }
    if (units != image->shape[3] || axes_size(last) != units || last->count > x->axes.count ||
        memcmp(&x->axes.at[x->axes.count - last->count], last->at, last->count * sizeof last->at[0]) != 0) {
        return walk_refuse(
            w, "a dense layer over a part of the heads of windows, or of another width than the image");
    }
    layer *l = walk_emit(w, "window_attention", image, 4, image->shape);
    mem_axis *made = l == NULL ? NULL : axis_new(w, units, false);
    tensor *t = made == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return NULL;
    }
    for (int k = 0; k < 3; k++) {
        const layer *dense = h->of[k].dense;
        const bool known = (k > 0 && dense == h->of[0].dense) || (k > 1 && dense == h->of[1].dense);
        for (uint32_t p = 0; !known && p < dense->param_count; p++) {
            layer_param(w, l, dense->params[p]);
        }
    }
    layer_param(w, l, h->windows.table);
    l->path = "";
    layer_param(w, l, weight);
    put_attributes(w, l, h);
    t->layer = l;
    t->axes.count -= last->count;
    axes_add(&t->axes, made);
    t->dims[x->rank - 1] = (axes){.count = 0};
    axes_add(&t->dims[x->rank - 1], made);
    return t;
}
