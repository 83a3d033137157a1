// SPDX-License-Identifier: Apache-2.0
// Norms as operators, and norms and activations that are written in steps: x - mean(x), its square, the mean of that … Each
// step is an open layer that knows of what it is a step.
#include <math.h>
#include <string.h>

#include "onnx_fold.h"
#include "onnx_layers.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-3 * fabs(b);
}

// ---- the layers -----------------------------------------------------------------------------------------------

static tensor *normed(walk *w, const char *kind, const tensor *x, uint32_t last, double epsilon,
                      const onnx_tensor *gain, const onnx_tensor *shift)
{
    axes features = {.count = 0}, head;
    for (uint32_t d = x->rank - last; d < x->rank; d++) {
        axes_join(&features, &x->dims[d]);
    }
    layer *l = walk_rows(w, &x, &features, &head);
    layer *out = l == NULL ? NULL : walk_emit(w, kind, l, l->rank, l->shape);
    tensor *t = out == NULL ? NULL : tensor_again(w, x);
    if (t == NULL) {
        return NULL;
    }
    layer_real(w, out, "epsilon", epsilon);
    layer_param(w, out, gain);
    layer_param(w, out, shift);
    t->layer = out;
    return t;
}

// A weight of one number for each of the last dimensions' features.
static bool fits(walk *w, const tensor *x, uint32_t last, const value *v)
{
    const onnx_tensor *t = v->weight;
    if (t == NULL || t->rank != last) {
        return walk_refuse(w, "a norm whose weight is no parameter as it is, or without one");
    }
    for (uint32_t k = 0; k < last; k++) {
        if (t->dims[k] != dim_size(x, x->rank - last + k)) {
            return walk_refuse(w, "a norm whose weight has another size than its features");
        }
    }
    return true;
}

static bool last_dims(walk *w, const tensor *x, uint32_t *last)
{
    uint32_t axis = 0;
    if (!node_axis(w, onnx_whole(w->node, "axis", -1), x->rank, &axis)) {
        return false;
    }
    *last = x->rank - axis;
    return true;
}

bool take_layer_norm(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const value gain = walk_value(w, 1), shift = walk_value(w, 2);
    uint32_t last = 0;
    if (x == NULL || !last_dims(w, x, &last) || !fits(w, x, last, &gain)) {
        return false;
    }
    if (!walk_has(w, 2)) {
        return walk_refuse(w, "a layer norm without a bias, which no layer is");
    }
    return fits(w, x, last, &shift) &&
           walk_give(w, 0,
                     normed(w, "layer_norm", x, last, onnx_real(w->node, "epsilon", 1e-5), gain.weight,
                            shift.weight));
}

bool take_rms_norm(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const value gain = walk_value(w, 1);
    uint32_t last = 0;
    return x != NULL && last_dims(w, x, &last) && fits(w, x, last, &gain) &&
           walk_give(w, 0,
                     normed(w, "rms_norm", x, last, onnx_real(w->node, "epsilon", 1e-5), gain.weight, NULL));
}

// ---- means ----------------------------------------------------------------------------------------------------

static bool is_image_order(const tensor *x)
{
    axes order = x->dims[0];
    axes_join(&order, &x->dims[2]);
    axes_join(&order, &x->dims[3]);
    axes_join(&order, &x->dims[1]);
    return axes_equal(&order, &x->axes);
}

static layer *reduced(walk *w, const tensor *x, const axes *gone, bool sums)
{
    axes groups[4] = {{.count = 0}};
    uint32_t count = 1, at = 0;
    int64_t shape[ONNX_RANK];
    while (at < x->axes.count && x->axes.at[at] != gone->at[0]) {
        at++;
    }
    if (at == 0 || at + gone->count > x->axes.count || x->axes.count == gone->count ||
        memcmp(&x->axes.at[at], gone->at, gone->count * sizeof gone->at[0]) != 0 ||
        x->axes.count == gone->count + 1) {
        return walk_refuse(w, "a mean or sum over dimensions that do not lie next to each other");
    }
    axes_add(&groups[0], x->axes.at[0]);
    for (uint32_t k = 1; k < at; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at > 1 ? 1 : 0;
    const uint32_t place = count;
    groups[count++] = *gone;
    for (uint32_t k = at + gone->count; k < x->axes.count; k++) {
        axes_add(&groups[count], x->axes.at[k]);
    }
    count += at + gone->count < x->axes.count ? 1 : 0;
    layer *l = walk_arrange(w, x, groups, count);
    if (l == NULL) {
        return NULL;
    }
    for (uint32_t k = 0, to = 0; k < l->rank; k++) {
        if (k != place) {
            shape[to++] = l->shape[k];
        }
    }
    layer *out = walk_emit(w, "reduce", l, l->rank - 1, shape);
    if (out != NULL) {
        layer_whole(w, out, "axis", place);
        layer_word(w, out, "of", sums ? "sum" : "mean");
        out->of = x;
    }
    return out;
}

// The mean over the flagged dimensions of x.
static tensor *mean_of(walk *w, const tensor *x, const bool flags[ONNX_RANK], bool keep, bool sums)
{
    axes gone = {.count = 0};
    layer *l = x->layer;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (flags[d]) {
            axes_join(&gone, &x->dims[d]);
        }
    }
    if (flags[0]) {
        return walk_refuse(w, "a mean or sum over the batch; the losses are ours");
    }
    if (gone.count > 0) {
        const bool image = x->rank == 4 && !flags[1] && flags[2] && flags[3] && !sums && is_image_order(x);
        layer *from = image ? walk_image(w, x) : NULL;
        const int64_t shape[2] = {ONNX_BATCH, dim_size(x, 1)};
        l = !image         ? reduced(w, x, &gone, sums)
            : from == NULL ? NULL
                           : walk_emit(w, "global_avg_pool", from, 2, shape);
    }
    tensor *out = l == NULL ? NULL : tensor_new(w, l, 0);
    for (uint32_t d = 0; out != NULL && d < x->rank; d++) {
        if (keep || !flags[d]) {
            out->dims[out->rank++] = flags[d] ? (axes){.count = 0} : x->dims[d];
        }
    }
    for (uint32_t k = 0; out != NULL && k < x->axes.count; k++) {
        if (!axes_have(&gone, x->axes.at[k])) {
            axes_add(&out->axes, x->axes.at[k]);
        }
    }
    return out;
}

bool take_mean(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    bool flags[ONNX_RANK] = {false}, given = false;
    if (x == NULL || !node_axes(w, 1, x->rank, flags, &given)) {
        return false;
    }
    const bool keep = onnx_whole(w->node, "keepdims", 1) != 0, sums = strcmp(w->node->op, "ReduceSum") == 0;
    const bool all = !given && onnx_whole(w->node, "noop_with_empty_axes", 0) == 0;
    uint32_t flagged = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
        flags[d] = flags[d] || all;
        flagged += flags[d] ? 1 : 0;
    }
    if (x->layer->open == OPEN_SQUARE && !sums && flagged == 1 && flags[x->rank - 1] && keep) {
        tensor *mean = walk_open(w, x, OPEN_MEAN, x->layer->of);
        if (mean != NULL) {
            mean->layer->centre = x->layer->centre;
            mean->layer->epsilon = 0;
        }
        return walk_give(w, 0, mean);
    }
    return walk_give(w, 0, mean_of(w, x, flags, keep, sums));
}

bool take_global_pool(walk *w)
{
    tensor *x = walk_tensor(w, 0);
    const bool flags[ONNX_RANK] = {false, false, true, true};
    if (x == NULL) {
        return false;
    }
    return x->rank != 4 && x->rank != 3
               ? walk_refuse(w, "needs [batch, channels, height, width], had %u dimensions", x->rank) != NULL
               : walk_give(w, 0, mean_of(w, x, flags, true, false));
}

// ---- steps ----------------------------------------------------------------------------------------------------

static tensor *step(walk *w, const tensor *x, layer_open open, double factor)
{
    tensor *t = walk_open(w, x, open, x->layer->open == OPEN_NOT ? x : x->layer->of);
    if (t != NULL) {
        t->layer->centre = x->layer->open == OPEN_NOT ? NULL : x->layer->centre;
        t->layer->factor = factor;
    }
    return t;
}

// x over a root: a layer norm where x is centred, a root mean square norm where it is not.
static tensor *over_root(walk *w, const tensor *x, const tensor *root)
{
    const layer *of = root->layer->of->layer;
    const bool centred = x->layer->open == OPEN_CENTRED && root->layer->centre == x->layer->of->layer;
    if (!centred && !(root->layer->centre == NULL && of == x->layer)) {
        return NULL;
    }
    tensor *t = walk_open(w, x, OPEN_NORMED, centred ? x->layer->of : x);
    if (t != NULL) {
        t->layer->epsilon = root->layer->epsilon;
        t->layer->centre = centred ? of : NULL;
    }
    return t;
}

tensor *step_subtract(walk *w, const tensor *x, const tensor *y)
{
    const layer *mean = y->layer;
    if (strcmp(mean->kind, "reduce") != 0 || mean->of == NULL || mean->of->layer != x->layer ||
        y->rank != x->rank || dim_size(y, y->rank - 1) != 1) {
        return NULL;
    }
    return walk_open(w, x, OPEN_CENTRED, x);
}

tensor *step_divide(walk *w, const tensor *x, const tensor *y)
{
    return y->layer->open == OPEN_ROOT ? over_root(w, x, y) : NULL;
}

static tensor *gelu_of(walk *w, const tensor *x, bool by_tanh)
{
    tensor *out = walk_alike(w, "gelu", x);
    if (out != NULL && by_tanh) {
        layer_word(w, out->layer, "approximate", "true");
    }
    return out;
}

// (x · 0.5) · (1 + erf), x · (0.5 · (1 + erf)) and x · (1 + erf)
static tensor *bell_product(walk *w, const tensor *x, const tensor *bell)
{
    const layer *of = bell->layer->of->layer, *half = x->layer;
    if (half == of && near(bell->layer->factor, 1)) {
        tensor *t = walk_open(w, x, OPEN_TWICE, bell->layer->of);
        if (t != NULL) {
            t->layer->bias = bell->layer->bias;
        }
        return t;
    }
    const bool halved = strcmp(half->kind, "scale") == 0 && half->inputs[0] == of && near(half->factor, 0.5);
    if (!(half == of && near(bell->layer->factor, 0.5)) && !(halved && near(bell->layer->factor, 1))) {
        return NULL;
    }
    return gelu_of(w, bell->layer->of, bell->layer->bias);
}

static tensor *with_gain(walk *w, const tensor *x, const value *gain)
{
    const onnx_tensor *t = gain->weight;
    if (t == NULL || t->rank != 1 || t->dims[0] != dim_size(x, x->rank - 1)) {
        return NULL;
    }
    if (x->layer->centre == NULL) {
        tensor source = *x->layer->of;
        memcpy(source.dims, x->dims, sizeof source.dims);
        source.axes = x->axes;
        source.rank = x->rank;
        return normed(w, "rms_norm", &source, 1, x->layer->epsilon, t, NULL);
    }
    tensor *out = walk_open(w, x, OPEN_GAINED, x->layer->of);
    if (out != NULL) {
        out->layer->epsilon = x->layer->epsilon;
        layer_param(w, out->layer, t);
    }
    return out;
}

static tensor *times_number(walk *w, const tensor *x, double factor)
{
    const layer *l = x->layer;
    if (l->open == OPEN_TWICE && near(factor, 0.5)) {
        return gelu_of(w, l->of, l->bias);
    }
    if (l->open == OPEN_ONE_BELL) {
        tensor *out = step(w, x, OPEN_ONE_BELL, l->factor * factor);
        if (out != NULL) {
            out->layer->bias = l->bias;
        }
        return out;
    }
    if (l->open == OPEN_CUBE || l->open == OPEN_CUBIC || l->open == OPEN_SQUARE) {
        return step(w, x, l->open, l->factor * factor);
    }
    return NULL;
}

tensor *step_multiply(walk *w, const tensor *x, const value *y)
{
    double factor = 0;
    if (x->layer->open == OPEN_GROUPED) {
        return grouped_multiply(w, x, y);
    }
    if (x->layer->open == OPEN_NORMED) {
        tensor *out = with_gain(w, x, y);
        if (out != NULL || w->g->status != HR_OK) {
            return out;
        }
    }
    if (walk_number(w, y, &factor)) {
        return times_number(w, x, factor);
    }
    const tensor *other = y->tensor;
    if (other == NULL) {
        return NULL;
    }
    if (other->layer->open == OPEN_ONE_BELL) {
        return bell_product(w, x, other);
    }
    if (other->layer->open == OPEN_INVERSE) {
        return over_root(w, x, other);
    }
    const bool square = other->layer->open == OPEN_SQUARE && other->layer->of->layer == x->layer &&
                        other->layer->centre == NULL;
    if (square && near(other->layer->factor, 1)) {
        return step(w, x, OPEN_CUBE, 1);
    }
    if (other->layer == x->layer) {
        tensor *out = step(w, x, OPEN_SQUARE, 1);
        if (out != NULL && x->layer->open == OPEN_CENTRED) {
            out->layer->centre = x->layer->of->layer;
        }
        return out;
    }
    return NULL;
}

tensor *step_add(walk *w, const tensor *x, const value *y)
{
    double number = 0;
    const layer *l = x->layer;
    if (l->open == OPEN_GROUPED_GAIN) {
        return grouped_add(w, x, y);
    }
    if (l->open == OPEN_GAINED && y->weight != NULL && y->weight->rank == 1 &&
        y->weight->dims[0] == dim_size(x, x->rank - 1)) {
        return normed(w, "layer_norm", l->of, 1, l->epsilon, l->params[0], y->weight);
    }
    if (y->tensor != NULL && y->tensor->layer->open == OPEN_CUBE && y->tensor->layer->of->layer == l &&
        near(y->tensor->layer->factor, 0.044715)) {
        return step(w, x, OPEN_CUBIC, 1);
    }
    if (!walk_number(w, y, &number)) {
        return NULL;
    }
    if (l->open == OPEN_MEAN) {
        tensor *out = step(w, x, OPEN_MEAN, 1);
        if (out != NULL) {
            out->layer->epsilon = number;
        }
        return out;
    }
    if (l->open == OPEN_BELL && near(number, 1)) {
        tensor *out = step(w, x, OPEN_ONE_BELL, 1);
        if (out != NULL) {
            out->layer->bias = l->bias;
        }
        return out;
    }
    // 1 + 0.044715 x², of what is then multiplied with x
    return NULL;
}

static tensor *power(walk *w, const tensor *x)
{
    const value v = walk_value(w, 1);
    double by = 0;
    if (!walk_number(w, &v, &by)) {
        return NULL;
    }
    if (by == 3 && x->layer->open == OPEN_NOT) {
        return step(w, x, OPEN_CUBE, 1);
    }
    if (by == 0.5 && x->layer->open == OPEN_MEAN) {
        tensor *out = step(w, x, OPEN_ROOT, 1);
        if (out != NULL) {
            out->layer->epsilon = x->layer->epsilon;
        }
        return out;
    }
    const bool centred = x->layer->open == OPEN_CENTRED;
    tensor *out = by == 2 && (centred || x->layer->open == OPEN_NOT) ? step(w, x, OPEN_SQUARE, 1) : NULL;
    if (out != NULL && centred) {
        out->layer->centre = x->layer->of->layer;
    }
    return out;
}

// tanh of the cubic, erf of x / √2
static tensor *bell(walk *w, const tensor *x, bool tangent)
{
    const layer *l = x->layer;
    const bool cubic = tangent && l->open == OPEN_CUBIC && near(l->factor, 0.7978845608);
    const bool root = !tangent && strcmp(l->kind, "scale") == 0 && near(l->factor, 0.7071067812);
    if (!cubic && !root) {
        return NULL;
    }
    tensor *before = root ? tensor_again(w, x) : NULL;
    if (root && before == NULL) {
        return NULL;
    }
    if (root) {
        before->layer = l->inputs[0];
    }
    tensor *out = walk_open(w, x, OPEN_BELL, root ? before : l->of);
    if (out != NULL) {
        out->layer->bias = tangent;
        if (tangent) {
            walk_note(w, "A GELU by tanh is planned as one operation: the file's own is made of several, for "
                         "which PyTorch keeps "
                         "three more tensors of its size.");
        }
    }
    return out;
}

tensor *step_alone(walk *w, const tensor *x)
{
    const char *op = w->node->op;
    const layer_open open = x->layer->open;
    if (strcmp(op, "Pow") == 0) {
        return power(w, x);
    }
    if (strcmp(op, "Erf") == 0 || strcmp(op, "Tanh") == 0) {
        return bell(w, x, op[0] == 'T');
    }
    const layer_open next = strcmp(op, "Neg") == 0 && open == OPEN_NOT           ? OPEN_NEGATIVE
                            : strcmp(op, "Sqrt") == 0 && open == OPEN_MEAN       ? OPEN_ROOT
                            : strcmp(op, "Reciprocal") == 0 && open == OPEN_ROOT ? OPEN_INVERSE
                            : strcmp(op, "IsNaN") == 0 && open == OPEN_SCORES    ? OPEN_IS_NAN
                                                                                 : OPEN_NOT;
    tensor *out = next == OPEN_NOT ? NULL : step(w, x, next, 1);
    if (out != NULL) {
        out->layer->epsilon = x->layer->epsilon;
    }
    return out;
}
