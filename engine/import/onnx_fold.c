// SPDX-License-Identifier: Apache-2.0
#include "onnx_fold.h"

#include <math.h>
#include <string.h>

// ---- numbers by themselves ------------------------------------------------------------------------------------

static double plus(double a, double b)
{
    return a + b;
}
static double minus(double a, double b)
{
    return a - b;
}
static double times(double a, double b)
{
    return a * b;
}
static double divided(double a, double b)
{
    return a / b;
}
static double divided_whole(double a, double b)
{
    return b == 0 ? 0 : trunc(a / b);
}
// Mod of whole numbers has the divisor's sign.
static double modulo(double a, double b)
{
    const double rest = b == 0 ? 0 : fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static double equal(double a, double b)
{
    return a == b;
}
static double less(double a, double b)
{
    return a < b;
}
static double less_or_equal(double a, double b)
{
    return a <= b;
}
static double greater(double a, double b)
{
    return a > b;
}
static double greater_or_equal(double a, double b)
{
    return a >= b;
}
static double both(double a, double b)
{
    return a != 0 && b != 0;
}
static double either(double a, double b)
{
    return a != 0 || b != 0;
}
static double one_of(double a, double b)
{
    return (a != 0) != (b != 0);
}
static double no(double a)
{
    return a == 0;
}
static double negative(double a)
{
    return -a;
}
static double inverse(double a)
{
    return 1 / a;
}
static double is_nan(double a)
{
    return a != a;
}
static double sign(double a)
{
    return (a > 0) - (a < 0);
}

typedef enum outcome { AS_GIVEN, WHOLE, REAL } outcome;

static const struct {
    const char *op;
    number_of_two of_reals, of_wholes;
    number_of_one of_one;
    outcome real;
} elementwise[] = {
    {"Add", plus, plus, NULL, AS_GIVEN},
    {"Sub", minus, minus, NULL, AS_GIVEN},
    {"Mul", times, times, NULL, AS_GIVEN},
    {"Div", divided, divided_whole, NULL, AS_GIVEN},
    {"Mod", fmod, modulo, NULL, AS_GIVEN},
    {"Pow", pow, pow, NULL, AS_GIVEN},
    {"Max", fmax, fmax, NULL, AS_GIVEN},
    {"Min", fmin, fmin, NULL, AS_GIVEN},
    {"Equal", equal, equal, NULL, WHOLE},
    {"Less", less, less, NULL, WHOLE},
    {"LessOrEqual", less_or_equal, less_or_equal, NULL, WHOLE},
    {"Greater", greater, greater, NULL, WHOLE},
    {"GreaterOrEqual", greater_or_equal, greater_or_equal, NULL, WHOLE},
    {"And", both, both, NULL, WHOLE},
    {"Or", either, either, NULL, WHOLE},
    {"Xor", one_of, one_of, NULL, WHOLE},
    {"Not", NULL, NULL, no, WHOLE},
    {"IsNaN", NULL, NULL, is_nan, WHOLE},
    {"Neg", NULL, NULL, negative, AS_GIVEN},
    {"Abs", NULL, NULL, fabs, AS_GIVEN},
    {"Sign", NULL, NULL, sign, AS_GIVEN},
    {"Floor", NULL, NULL, floor, REAL},
    {"Ceil", NULL, NULL, ceil, REAL},
    {"Round", NULL, NULL, nearbyint, REAL},
    {"Sqrt", NULL, NULL, sqrt, REAL},
    {"Exp", NULL, NULL, exp, REAL},
    {"Log", NULL, NULL, log, REAL},
    {"Cos", NULL, NULL, cos, REAL},
    {"Sin", NULL, NULL, sin, REAL},
    {"Reciprocal", NULL, NULL, inverse, REAL},
};

static bool fold_where(walk *w)
{
    const numbers *c = walk_needs_numbers(w, 0), *a = walk_needs_numbers(w, 1), *b = walk_needs_numbers(w, 2);
    if (a == NULL || b == NULL || c == NULL || !walk_is_known(w, a, false) || !walk_is_known(w, b, false) ||
        !walk_is_known(w, c, false)) {
        return false;
    }
    return walk_give_numbers(w, 0, numbers_choose(w->g, c, a, b));
}

// The ends of Clip are numbers by themselves, and either may be left out.
static bool fold_clip(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    for (uint32_t k = 1; k < 3 && n != NULL; k++) {
        const numbers *end = walk_has(w, k) ? walk_needs_numbers(w, k) : NULL;
        if (walk_has(w, k)) {
            n = end == NULL ? NULL : numbers_map(w->g, n, end, k == 1 ? fmax : fmin, n->real);
        }
    }
    return walk_give_numbers(w, 0, n);
}

bool fold_elementwise(walk *w)
{
    if (strcmp(w->node->op, "Clip") == 0) {
        return fold_clip(w);
    }
    if (strcmp(w->node->op, "Where") == 0) {
        return fold_where(w);
    }
    for (size_t k = 0; k < sizeof elementwise / sizeof *elementwise; k++) {
        if (strcmp(elementwise[k].op, w->node->op) != 0) {
            continue;
        }
        const numbers *a = walk_needs_numbers(w, 0);
        const bool two = elementwise[k].of_one == NULL;
        const numbers *b = a == NULL || !two ? a : walk_needs_numbers(w, 1);
        if (b == NULL || !walk_is_known(w, a, elementwise[k].real != WHOLE) ||
            !walk_is_known(w, b, elementwise[k].real != WHOLE)) {
            return false;
        }
        const bool given = a->real || b->real;
        const bool real = elementwise[k].real == AS_GIVEN ? given : elementwise[k].real == REAL;
        return walk_give_numbers(
            w, 0,
            two ? numbers_map(w->g, a, b, given ? elementwise[k].of_reals : elementwise[k].of_wholes, real)
                : numbers_each(w->g, a, elementwise[k].of_one, real));
    }
    return walk_refuse(w, "it is not computed here");
}

// ---- making numbers -------------------------------------------------------------------------------------------

bool fold_constant(walk *w)
{
    const onnx_attribute *a = onnx_find(w->node, "value");
    if (a != NULL && a->tensor != NULL && w->node->output_count > 0 && w->node->outputs[0] != ONNX_NOTHING) {
        if (a->tensor->type == ONNX_FLOAT && a->tensor->rank > 0 && !onnx_is_single(a->tensor)) {
            w->values[w->node->outputs[0]] = (value){.weight = a->tensor}; // it may be a parameter
            return true;
        }
        return walk_give_numbers(w, 0, numbers_of(w->g, a->tensor));
    }
    if ((a = onnx_find(w->node, "value_int")) != NULL) {
        return walk_give_numbers(w, 0, numbers_scalar(w->g, (double)a->whole, false));
    }
    if ((a = onnx_find(w->node, "value_float")) != NULL) {
        return walk_give_numbers(w, 0, numbers_scalar(w->g, a->real, true));
    }
    if ((a = onnx_find(w->node, "value_ints")) != NULL) {
        return walk_give_numbers(w, 0, numbers_list(w->g, a->wholes, a->count));
    }
    return walk_refuse(w, "a constant of a kind that is not read");
}

// The shape that operand k holds.
static bool shape_of(walk *w, uint32_t k, uint32_t *rank, int64_t dims[ONNX_RANK])
{
    const numbers *n = walk_needs_numbers(w, k);
    if (n == NULL || !walk_is_known(w, n, false)) {
        return false;
    }
    if (n->rank != 1 || n->dims[0] > ONNX_RANK) {
        return walk_refuse(w, "needs a shape of at most %d dimensions", ONNX_RANK);
    }
    *rank = (uint32_t)n->dims[0];
    for (uint32_t d = 0; d < *rank; d++) {
        dims[d] = numbers_whole(numbers_at(n, d));
        if (dims[d] < 0 || dims[d] > ONNX_DIM_MAX) {
            return walk_refuse(w, "needs dimensions from 0 to 2^40");
        }
    }
    return true;
}

bool fold_constant_of_shape(walk *w)
{
    uint32_t rank = 0;
    int64_t dims[ONNX_RANK];
    const onnx_attribute *a = onnx_find(w->node, "value");
    if (!shape_of(w, 0, &rank, dims)) {
        return false;
    }
    numbers *n = a != NULL && a->tensor != NULL ? numbers_of(w->g, a->tensor) : numbers_scalar(w->g, 0, true);
    if (n == NULL) {
        return false;
    }
    if (!numbers_is_one(n)) {
        return walk_refuse(w, "needs one number as its value");
    }
    n->rank = 0;
    (void)numbers_expand(n, rank, dims);
    return walk_give_numbers(w, 0, n);
}

bool fold_range(walk *w)
{
    const numbers *from = walk_needs_numbers(w, 0), *to = walk_needs_numbers(w, 1),
                  *by = walk_needs_numbers(w, 2);
    double *room = NULL;
    if (from == NULL || to == NULL || by == NULL) {
        return false;
    }
    const double start = numbers_first(from), step = numbers_first(by);
    const double count = ceil((numbers_first(to) - start) / step);
    if (!(count >= 0 && count <= ONNX_NUMBERS)) {
        return walk_refuse(w, "needs a range of 0 to %d numbers", ONNX_NUMBERS);
    }
    const int64_t dims[1] = {(int64_t)count};
    // Samples are alike: the number of one is that of the first, and takes one place.
    const bool same[1] = {dims[0] == ONNX_BATCH};
    numbers *n = numbers_blank(w->g, 1, dims, same, &room);
    for (int64_t k = 0; n != NULL && k < (same[0] ? 1 : dims[0]); k++) {
        room[k] = start + (double)k * step;
    }
    if (n != NULL) {
        n->real = from->real;
        n->by_sample = same[0] ? step : 0;
    }
    return walk_give_numbers(w, 0, n);
}

static double to_truth(double a)
{
    return a != 0;
}

bool fold_cast(walk *w)
{
    const int64_t to = onnx_whole(w->node, "to", 0);
    const numbers *n = walk_needs_numbers(w, 0);
    if (n == NULL) {
        return false;
    }
    if (!walk_is_known(w, n, to == ONNX_FLOAT || to == ONNX_DOUBLE)) {
        return false;
    }
    const bool real = to == ONNX_FLOAT || to == ONNX_DOUBLE || to == ONNX_FLOAT16 || to == ONNX_BFLOAT16;
    if (to == ONNX_STRING) {
        return walk_refuse(w, "a cast to text");
    }
    if (to == ONNX_BOOL || (n->real && !real)) {
        return walk_give_numbers(w, 0, numbers_each(w->g, n, to == ONNX_BOOL ? to_truth : trunc, false));
    }
    numbers *more = numbers_again(w->g, n);
    if (more != NULL) {
        more->real = real;
    }
    return walk_give_numbers(w, 0, more);
}

// ---- views of numbers -----------------------------------------------------------------------------------------

bool fold_squeeze(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    numbers *out = n == NULL ? NULL : numbers_again(w->g, n);
    int64_t shape[ONNX_RANK];
    uint32_t rank = 0;
    const bool adds = w->node->op[0] == 'U';
    if (out == NULL || !node_squeezed(w, adds, n->rank, n->dims, &rank, shape)) {
        return false;
    }
    // The dimensions that stay keep their strides; those of size 1 need none.
    for (uint32_t k = 0, from = 0; k < rank; k++) {
        out->dims[k] = shape[k];
        out->strides[k] = 0;
        if (shape[k] != 1) {
            while (n->dims[from] == 1) {
                from++;
            }
            out->strides[k] = n->strides[from++];
        }
    }
    out->rank = rank;
    return walk_give_numbers(w, 0, out);
}

// The same numbers in another shape of as many.
static numbers *reshaped(walk *w, const numbers *n, uint32_t rank, const int64_t *shape)
{
    int64_t stride = 1;
    const bool once = n->missing != NULL || numbers_alike(w->g, n);
    numbers *out = once ? numbers_again(w->g, n) : numbers_plain(w->g, n);
    if (out == NULL) {
        return NULL;
    }
    out->rank = rank;
    for (uint32_t k = rank; k-- > 0;) {
        out->dims[k] = shape[k];
        out->strides[k] = shape[k] == 1 || once ? 0 : stride;
        stride *= once ? 1 : shape[k];
    }
    return out;
}

bool fold_reshape(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    int64_t shape[ONNX_RANK];
    uint32_t rank = 0;
    return n != NULL && node_reshape(w, n->rank, n->dims, &rank, shape) &&
           walk_give_numbers(w, 0, reshaped(w, n, rank, shape));
}

bool fold_flatten(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    int64_t shape[2] = {1, 1}, at = onnx_whole(w->node, "axis", 1);
    if (n == NULL) {
        return false;
    }
    at += at < 0 ? (int64_t)n->rank : 0;
    for (uint32_t k = 0; k < n->rank; k++) {
        int64_t *to = &shape[(int64_t)k < at ? 0 : 1];
        if (__builtin_mul_overflow(*to, n->dims[k], to)) {
            return walk_refuse(w, "needs as many numbers as can be counted");
        }
    }
    return walk_give_numbers(w, 0, reshaped(w, n, 2, shape));
}

bool fold_transpose(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    numbers *out = n == NULL ? NULL : numbers_again(w->g, n);
    uint32_t order[ONNX_RANK];
    if (out == NULL || !node_permutation(w, n->rank, order)) {
        return false;
    }
    for (uint32_t k = 0; k < n->rank; k++) {
        out->dims[k] = n->dims[order[k]];
        out->strides[k] = n->strides[order[k]];
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_expand(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    numbers *out = n == NULL ? NULL : numbers_again(w->g, n);
    uint32_t rank = 0, whole = 0;
    int64_t dims[ONNX_RANK], shape[ONNX_RANK];
    if (out == NULL || !shape_of(w, 1, &rank, dims)) {
        return false;
    }
    if (!onnx_broadcast(n->rank, n->dims, rank, dims, &whole, shape) || !numbers_expand(out, whole, shape)) {
        return walk_refuse(w, "needs a shape that its operand broadcasts to");
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_slice(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    numbers *out = n == NULL ? NULL : numbers_again(w->g, n);
    cut cuts[ONNX_RANK];
    if (out == NULL || !node_cuts(w, n->rank, n->dims, cuts)) {
        return false;
    }
    for (uint32_t k = 0; k < n->rank; k++) {
        out->at += cuts[k].count == 0 ? 0 : cuts[k].from * n->strides[k];
        out->dims[k] = cuts[k].count;
        out->strides[k] = cuts[k].count <= 1 ? 0 : n->strides[k] * cuts[k].step;
        const bool whole = cuts[k].count == n->dims[k] && cuts[k].step == 1;
        out->by_sample = whole || n->by_sample == 0 ? out->by_sample : (double)NAN; // it may be of samples
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_split(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    int64_t parts[ONNX_PARTS], at = 0;
    uint32_t count = 0, axis = 0;
    if (n == NULL || !node_axis(w, onnx_whole(w->node, "axis", 0), n->rank, &axis) ||
        !node_parts(w, n->dims[axis], parts, &count)) {
        return false;
    }
    for (uint32_t k = 0; k < count; at += parts[k], k++) {
        numbers *out = numbers_again(w->g, n);
        if (out == NULL) {
            return false;
        }
        out->at += at * n->strides[axis];
        out->dims[axis] = parts[k];
        (void)walk_give_numbers(w, k, out);
    }
    return true;
}
