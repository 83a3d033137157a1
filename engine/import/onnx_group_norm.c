// SPDX-License-Identifier: Apache-2.0
// Group and instance norms: as operators, and as PyTorch's exporters write a group norm, an instance norm over [batch, groups,
// everything else] whose gain is 1, then a product with the gain of each channel, then a sum with the shift.
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "onnx_fold.h"
#include "onnx_layers.h"

static tensor *group_normed(walk *w, const tensor *x, int64_t groups, double epsilon, const onnx_tensor *gain,
                            const onnx_tensor *shift)
{
    axes head;
    layer *l = walk_rows(w, &x, &x->dims[1], &head);
    if (l != NULL && l->rank < 3) {
        return walk_refuse(w, "a group norm of features that have no places, which no layer is");
    }
    layer *out = l == NULL ? NULL : walk_emit(w, "group_norm", l, l->rank, l->shape);
    tensor *t = out == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return NULL;
    }
    layer_whole(w, out, "groups", groups);
    layer_real(w, out, "epsilon", epsilon);
    layer_param(w, out, gain);
    layer_param(w, out, shift);
    t->layer = out;
    return t;
}

// A number for each of the groups or channels of x, as a parameter; NULL without a refusal where it is something else.
static const onnx_tensor *vector_of(const value *v, int64_t size)
{
    return v->weight != NULL && v->weight->rank == 1 && v->weight->dims[0] == size ? v->weight : NULL;
}

// Whether v is that number all over, and no parameter that has not learned yet.
static bool is_all(walk *w, const value *v, double wanted)
{
    const onnx_tensor *t = v->weight;
    const bool learns = t != NULL && (text_ends_in(t->name, ".weight") || text_ends_in(t->name, ".bias"));
    const numbers *n = v->numbers != NULL ? v->numbers : t == NULL || learns ? NULL : numbers_of(w->g, t);
    return n != NULL && n->missing == NULL && numbers_alike(w->g, n) && numbers_first(n) == wanted;
}

static bool has_channels(walk *w, const tensor *x)
{
    return x->rank >= 3 ||
           walk_refuse(w, "needs [batch, channels, places…], had %u dimensions", x->rank) != NULL;
}

bool take_instance_norm(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const value gain = walk_value(w, 1), shift = walk_value(w, 2);
    if (x == NULL || !has_channels(w, x)) {
        return false;
    }
    const double epsilon = onnx_real(w->node, "epsilon", 1e-5);
    if (is_all(w, &gain, 1) && is_all(w, &shift, 0)) {
        tensor *t = walk_is_closed(w, x) ? walk_open(w, x, OPEN_GROUPED, x) : NULL;
        if (t != NULL) {
            t->layer->epsilon = epsilon;
        }
        return walk_give(w, 0, t);
    }
    const int64_t channels = dim_size(x, 1);
    const onnx_tensor *first = vector_of(&gain, channels), *second = vector_of(&shift, channels);
    if (w->g->status != HR_OK) {
        return false;
    }
    if (first == NULL || second == NULL) {
        return walk_refuse(
            w, "needs a gain and a shift for each of %" PRId64 " channels, as they are in the file",
            channels);
    }
    return walk_give(w, 0, group_normed(w, x, channels, epsilon, first, second));
}

bool take_group_norm(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const value gain = walk_value(w, 1), shift = walk_value(w, 2);
    if (x == NULL || !has_channels(w, x)) {
        return false;
    }
    const int64_t channels = dim_size(x, 1), groups = onnx_whole(w->node, "num_groups", 0);
    if (groups < 1 || channels % groups != 0) {
        return walk_refuse(w, "%" PRId64 " groups of %" PRId64 " channels", groups, channels);
    }
    const onnx_tensor *first = vector_of(&gain, channels), *second = vector_of(&shift, channels);
    if (first == NULL || second == NULL) { // until opset 20 there is one for each group
        return walk_refuse(
            w, "needs a gain and a shift for each of %" PRId64 " channels, as they are in the file",
            channels);
    }
    return walk_give(w, 0, group_normed(w, x, groups, onnx_real(w->node, "epsilon", 1e-5), first, second));
}

// ---- in steps -------------------------------------------------------------------------------------------------

// The parameter of [channels, 1, …, 1] or [1, channels, 1, …], whose places are all but the channels of x.
static const onnx_tensor *of_channels(walk *w, const tensor *x, const value *v)
{
    const tensor *t = v->weight != NULL ? walk_tensor_of(w, v) : v->tensor;
    if (t == NULL || t->layer->open != OPEN_PARAMETER || t->rank > x->rank || t->rank + 1 < x->rank ||
        t->axes.count > 1) {
        return NULL;
    }
    const uint32_t channels = t->rank == x->rank ? 1 : 0;
    return dim_size(t, channels) == dim_size(x, 1) && axes_size(&t->axes) == dim_size(x, 1)
               ? t->layer->params[0]
               : NULL;
}

tensor *grouped_multiply(walk *w, const tensor *x, const value *y)
{
    const onnx_tensor *gain = x->rank < 3 ? NULL : of_channels(w, x, y);
    tensor *out = gain == NULL ? NULL : walk_open(w, x, OPEN_GROUPED_GAIN, x->layer->of);
    if (out != NULL) {
        out->layer->epsilon = x->layer->epsilon;
        layer_param(w, out->layer, gain);
    }
    return out;
}

tensor *grouped_add(walk *w, const tensor *x, const value *y)
{
    const layer *l = x->layer;
    const axes *groups = &l->of->dims[1], *channels = &x->dims[1];
    const onnx_tensor *shift = x->rank < 3 ? NULL : of_channels(w, x, y);
    tensor *source = shift == NULL ? NULL : tensor_again(w, x);
    if (source == NULL) {
        return NULL;
    }
    const bool whole = axes_equal(&x->dims[0], &l->of->dims[0]) && groups->count <= channels->count &&
                       memcmp(groups->at, channels->at, groups->count * sizeof groups->at[0]) == 0;
    if (!whole) {
        return walk_refuse(w, "a group norm whose groups are no whole channels that follow each other");
    }
    const value gain = {.weight = l->params[0]}, added = {.weight = shift};
    if (is_all(w, &gain, 1) && is_all(w, &added, 0)) {
        walk_note(
            w,
            "A group norm whose gain is 1 and whose shift is 0 is taken for one that has not learned yet.");
    }
    source->layer = l->of->layer;
    return group_normed(w, source, axes_size(groups), l->epsilon, l->params[0], shift);
}
