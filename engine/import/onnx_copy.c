// SPDX-License-Identifier: Apache-2.0
// Folding that makes other numbers of those that there are: looked up, joined, summed. A dimension along which all are the
// same stays one place in memory.
#include <math.h>
#include <string.h>

#include "onnx_fold.h"

// Digits of the k-th place that `out` holds; 0 where it is the same all along.
static void digits_of(const numbers *out, int64_t k, int64_t digits[ONNX_RANK])
{
    for (uint32_t d = out->rank; d-- > 0;) {
        const int64_t size = out->strides[d] == 0 ? 1 : out->dims[d];
        digits[d] = k % size;
        k /= size;
    }
}

static int64_t held_of(const numbers *out)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < out->rank; d++) {
        count *= out->dims[d] == 0 ? 0 : out->strides[d] == 0 ? 1 : out->dims[d]; // limited as it was made
    }
    return count;
}

// ---- looking up -----------------------------------------------------------------------------------------------

typedef struct look_up {
    const numbers *n, *index;
    uint32_t first, parts; // dimensions of n that the index replaces
    uint32_t index_rank;   // dimensions of the index that the result has
    numbers *out;
} look_up;

static numbers *blank_look_up(walk *w, const look_up *l, double **room)
{
    int64_t dims[ONNX_RANK];
    bool same[ONNX_RANK];
    uint32_t rank = 0;
    if (l->n->rank - l->parts + l->index_rank > ONNX_RANK) {
        return walk_refuse(w, "needs at most %d dimensions", ONNX_RANK);
    }
    for (uint32_t k = 0; k < l->first; k++, rank++) {
        dims[rank] = l->n->dims[k];
        same[rank] = l->n->strides[k] == 0;
    }
    for (uint32_t k = 0; k < l->index_rank; k++, rank++) {
        dims[rank] = l->index->dims[k];
        same[rank] = l->index->strides[k] == 0;
    }
    for (uint32_t k = l->first + l->parts; k < l->n->rank; k++, rank++) {
        dims[rank] = l->n->dims[k];
        same[rank] = l->n->strides[k] == 0;
    }
    return numbers_blank(w->g, rank, dims, same, room);
}

// Where in n the number lies that belongs at the place of `digits`; -1: beyond it.
static int64_t found_at(const look_up *l, const int64_t *digits)
{
    int64_t at = 0, index_at = 0;
    for (uint32_t k = 0; k < l->index_rank; k++) {
        index_at += digits[l->first + k] * l->index->strides[k];
    }
    for (uint32_t k = 0; k < l->n->rank; k++) {
        int64_t digit = 0;
        if (k < l->first) {
            digit = digits[k];
        } else if (k >= l->first + l->parts) {
            digit = digits[k - l->parts + l->index_rank];
        } else {
            const int64_t stride = l->index_rank < l->index->rank ? l->index->strides[l->index_rank] : 0;
            digit = numbers_whole(l->index->at[index_at + (int64_t)(k - l->first) * stride]);
            digit += digit < 0 ? l->n->dims[k] : 0;
            if (digit < 0 || digit >= l->n->dims[k]) {
                return -1;
            }
        }
        at += digit * l->n->strides[k];
    }
    return at;
}

static bool give_look_up(walk *w, const look_up *l)
{
    double *room = NULL;
    int64_t digits[ONNX_RANK];
    numbers *out = blank_look_up(w, l, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        digits_of(out, k, digits);
        const int64_t at = found_at(l, digits);
        if (at < 0) {
            return walk_refuse(w, "looks up a place beyond the table");
        }
        room[k] = l->n->at[at];
    }
    if (out != NULL) {
        out->real = l->n->real;
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_gather(walk *w)
{
    look_up l = {.n = walk_needs_numbers(w, 0), .parts = 1};
    l.index = l.n == NULL ? NULL : walk_needs_numbers(w, 1);
    if (l.index == NULL || !node_axis(w, onnx_whole(w->node, "axis", 0), l.n->rank, &l.first)) {
        return false;
    }
    l.index_rank = l.index->rank;
    return give_look_up(w, &l);
}

// Whether rows of so many indices name places of n.
static bool names_places(walk *w, const numbers *n, int64_t parts)
{
    if (n->rank == 0) {
        return walk_refuse(w, "needs a table, had a single number, which has no places");
    }
    return (parts >= 1 && parts <= n->rank) ||
           walk_refuse(w, "needs indices of 1 to %u dimensions, had %lld", n->rank, (long long)parts) != NULL;
}

bool fold_gather_nd(walk *w)
{
    look_up l = {.n = walk_needs_numbers(w, 0)};
    l.index = l.n == NULL ? NULL : walk_needs_numbers(w, 1);
    if (l.index == NULL) {
        return false;
    }
    l.index_rank = l.index->rank < 1 ? 0 : l.index->rank - 1;
    const int64_t parts = l.index->rank < 1 ? 0 : l.index->dims[l.index_rank];
    if (onnx_whole(w->node, "batch_dims", 0) != 0) {
        return walk_refuse(w, "needs a batch_dims of 0");
    }
    if (!names_places(w, l.n, parts)) {
        return false;
    }
    l.parts = (uint32_t)parts;
    return give_look_up(w, &l);
}

// A copy of n that can be written to.
static numbers *copied(walk *w, const numbers *n, double **room)
{
    int64_t digits[ONNX_RANK];
    bool same[ONNX_RANK] = {false};
    numbers *out = numbers_blank(w->g, n->rank, n->dims, same, room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0;
        digits_of(out, k, digits);
        for (uint32_t d = 0; d < n->rank; d++) {
            at += digits[d] * n->strides[d];
        }
        (*room)[k] = n->at[at];
    }
    if (out != NULL) {
        out->real = n->real;
    }
    return out;
}

// Puts rows of `each` updates where the rows of indices say.
static bool scatter(walk *w, const numbers *n, const numbers *index, const numbers *updates, double *room)
{
    const uint32_t parts = (uint32_t)index->dims[index->rank - 1];
    const int64_t rows = numbers_count(index) / parts;
    int64_t each = 1, all = 0;
    bool counted = true;
    for (uint32_t d = parts; d < n->rank; d++) {
        counted = counted && !__builtin_mul_overflow(each, n->dims[d], &each);
    }
    if (!counted || __builtin_mul_overflow(rows, each, &all) || all != numbers_count(updates)) {
        return walk_refuse(w, "needs as many updates as its indices name places");
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t to = 0;
        for (uint32_t d = 0; d < parts; d++) {
            int64_t digit = numbers_whole(index->at[row * parts + d]);
            digit += digit < 0 ? n->dims[d] : 0;
            if (digit < 0 || digit >= n->dims[d]) {
                return walk_refuse(w, "puts a number beyond the table");
            }
            to = to * n->dims[d] + digit;
        }
        for (int64_t k = 0; k < each; k++) {
            room[to * each + k] = updates->at[row * each + k];
        }
    }
    return true;
}

// The last of the updates of one place counts.
bool fold_scatter_nd(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0), *index = n == NULL ? NULL : walk_needs_numbers(w, 1);
    const numbers *updates = index == NULL ? NULL : walk_needs_numbers(w, 2);
    const onnx_attribute *how = onnx_find(w->node, "reduction");
    double *room = NULL;
    if (updates == NULL) {
        return false;
    }
    const int64_t parts = index->rank < 1 ? 0 : index->dims[index->rank - 1];
    if (how != NULL && how->word != NULL && strcmp(how->word, "none") != 0) {
        return walk_refuse(w, "needs updates that are put as they are, had the reduction %.20s", how->word);
    }
    if (!names_places(w, n, parts)) {
        return false;
    }
    index = numbers_plain(w->g, index);
    updates = index == NULL ? NULL : numbers_plain(w->g, updates);
    numbers *out = updates == NULL ? NULL : copied(w, n, &room);
    return out != NULL && scatter(w, n, index, updates, room) && walk_give_numbers(w, 0, out);
}

// ---- joining --------------------------------------------------------------------------------------------------

static bool joined_dims(walk *w, uint32_t axis, int64_t dims[ONNX_RANK], bool same[ONNX_RANK])
{
    for (uint32_t k = 0; k < w->node->input_count; k++) {
        const numbers *n = walk_needs_numbers(w, k);
        const numbers *first = n == NULL ? NULL : walk_needs_numbers(w, 0);
        if (first == NULL) {
            return false;
        }
        for (uint32_t d = 0; d < first->rank; d++) {
            if (n->rank != first->rank || (d != axis && n->dims[d] != first->dims[d])) {
                return walk_refuse(w, "needs tables of numbers of one shape");
            }
            dims[d] = d != axis ? n->dims[d] : k == 0 ? n->dims[d] : dims[d] + n->dims[d];
            same[d] = d != axis && (k == 0 || same[d]) && n->strides[d] == 0;
        }
    }
    return true;
}

bool fold_concat(walk *w)
{
    int64_t dims[ONNX_RANK] = {0}, digits[ONNX_RANK];
    bool same[ONNX_RANK] = {false};
    double *room = NULL;
    uint32_t axis = 0;
    const numbers *first = walk_needs_numbers(w, 0);
    if (first == NULL || !node_axis(w, onnx_whole(w->node, "axis", 0), first->rank, &axis) ||
        !joined_dims(w, axis, dims, same)) {
        return false;
    }
    numbers *out = numbers_blank(w->g, first->rank, dims, same, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        digits_of(out, k, digits);
        uint32_t which = 0;
        const numbers *n = first;
        while (digits[axis] >= n->dims[axis]) {
            digits[axis] -= n->dims[axis];
            n = walk_numbers(w, ++which);
        }
        int64_t at = 0;
        for (uint32_t d = 0; d < n->rank; d++) {
            at += digits[d] * n->strides[d];
        }
        room[k] = n->at[at];
    }
    if (out != NULL) {
        out->real = first->real;
        for (uint32_t k = 0; k < w->node->input_count; k++) {
            const numbers *n = walk_numbers(w, k);
            out->missing = n != NULL && n->missing != NULL ? n->missing : out->missing;
        }
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_tile(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0), *times = n == NULL ? NULL : walk_needs_numbers(w, 1);
    int64_t dims[ONNX_RANK], digits[ONNX_RANK];
    bool same[ONNX_RANK];
    double *room = NULL;
    if (times == NULL || times->rank != 1 || times->dims[0] != n->rank) {
        return times == NULL ? false : walk_refuse(w, "needs how often each dimension is repeated") != NULL;
    }
    for (uint32_t k = 0; k < n->rank; k++) {
        const int64_t often = numbers_whole(numbers_at(times, k));
        if (often < 1 || __builtin_mul_overflow(n->dims[k], often, &dims[k])) {
            return walk_refuse(w, "needs repeats of 1 or more");
        }
        same[k] = n->strides[k] == 0;
    }
    numbers *out = numbers_blank(w->g, n->rank, dims, same, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0;
        digits_of(out, k, digits);
        for (uint32_t d = 0; d < n->rank; d++) {
            at += digits[d] % n->dims[d] * n->strides[d];
        }
        room[k] = n->at[at];
    }
    if (out != NULL) {
        out->real = n->real;
    }
    return walk_give_numbers(w, 0, out);
}

// ---- along one axis -------------------------------------------------------------------------------------------

bool fold_cumsum(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0), *which = n == NULL ? NULL : walk_needs_numbers(w, 1);
    int64_t digits[ONNX_RANK];
    bool same[ONNX_RANK];
    double *room = NULL;
    uint32_t axis = 0;
    if (which == NULL || !node_axis(w, numbers_whole(numbers_first(which)), n->rank, &axis)) {
        return false;
    }
    if (onnx_whole(w->node, "exclusive", 0) != 0 || onnx_whole(w->node, "reverse", 0) != 0) {
        return walk_refuse(w, "a running sum that is exclusive or from behind");
    }
    for (uint32_t d = 0; d < n->rank; d++) {
        same[d] = d != axis && n->strides[d] == 0;
    }
    numbers *out = numbers_blank(w->g, n->rank, n->dims, same, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0;
        digits_of(out, k, digits);
        for (uint32_t d = 0; d < n->rank; d++) {
            at += digits[d] * n->strides[d];
        }
        room[k] = n->at[at] + (digits[axis] > 0 ? room[k - out->strides[axis]] : 0);
    }
    if (out != NULL) {
        out->real = n->real;
    }
    return walk_give_numbers(w, 0, out);
}

bool fold_trilu(walk *w)
{
    const numbers *n = walk_needs_numbers(w, 0);
    const numbers *by = n != NULL && walk_has(w, 1) ? walk_needs_numbers(w, 1) : NULL;
    const bool upper = onnx_whole(w->node, "upper", 1) != 0;
    double *room = NULL;
    if (n == NULL || w->g->status != HR_OK) {
        return false;
    }
    if (n->rank < 2) {
        return walk_refuse(w, "needs two dimensions");
    }
    const double shift = by == NULL ? 0 : numbers_first(by);
    bool same[ONNX_RANK] = {false};
    for (uint32_t d = 0; d + 2 < n->rank; d++) {
        same[d] = n->strides[d] == 0;
    }
    int64_t digits[ONNX_RANK];
    numbers *out = numbers_blank(w->g, n->rank, n->dims, same, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        int64_t at = 0;
        digits_of(out, k, digits);
        for (uint32_t d = 0; d < n->rank; d++) {
            at += digits[d] * n->strides[d];
        }
        const double beside = (double)(digits[n->rank - 1] - digits[n->rank - 2]) - shift;
        room[k] = (upper ? beside >= 0 : beside <= 0) ? n->at[at] : 0;
    }
    if (out != NULL) {
        out->real = n->real;
    }
    return walk_give_numbers(w, 0, out);
}

// ---- all into one ---------------------------------------------------------------------------------------------

typedef struct reduction {
    const numbers *n;
    const char *of; // "Sum", "Mean", …
    bool gone[ONNX_RANK];
    int64_t count; // elements that become one
} reduction;

static double reduced(const reduction *r, const int64_t *digits)
{
    int64_t first = 0;
    double sum = 0;
    for (uint32_t d = 0; d < r->n->rank; d++) {
        first += r->gone[d] ? 0 : digits[d] * r->n->strides[d];
    }
    for (int64_t k = 0; k < r->count; k++) {
        int64_t at = first, rest = k;
        for (uint32_t d = r->n->rank; d-- > 0;) {
            at += r->gone[d] ? rest % r->n->dims[d] * r->n->strides[d] : 0;
            rest /= r->gone[d] ? r->n->dims[d] : 1;
        }
        const double x = r->n->at[at];
        sum = k == 0                       ? x
              : strcmp(r->of, "Prod") == 0 ? sum * x
              : strcmp(r->of, "Max") == 0  ? fmax(sum, x)
              : strcmp(r->of, "Min") == 0  ? fmin(sum, x)
                                           : sum + x;
    }
    return strcmp(r->of, "Mean") == 0 ? sum / (double)r->count : sum;
}

// Which dimensions go, and how many elements they have.
static bool read_reduction(walk *w, reduction *r)
{
    bool given = false;
    r->n = walk_needs_numbers(w, 0);
    r->of = w->node->op + strlen("Reduce");
    r->count = 1;
    if (r->n == NULL || !node_axes(w, 1, r->n->rank, r->gone, &given)) {
        return false;
    }
    const bool all = !given && onnx_whole(w->node, "noop_with_empty_axes", 0) == 0;
    if (numbers_count(r->n) < 1 || !numbers_work(w->g, numbers_count(r->n))) {
        return walk_refuse(w, "needs numbers, had none");
    }
    for (uint32_t d = 0; d < r->n->rank; d++) {
        r->gone[d] = r->gone[d] || all;
        r->count *= r->gone[d] ? r->n->dims[d] : 1;
    }
    return true;
}

bool fold_reduce(walk *w)
{
    reduction r = {.gone = {false}};
    int64_t dims[ONNX_RANK], digits[ONNX_RANK];
    bool same[ONNX_RANK];
    double *room = NULL;
    if (!read_reduction(w, &r)) {
        return false;
    }
    for (uint32_t d = 0; d < r.n->rank; d++) {
        dims[d] = r.gone[d] ? 1 : r.n->dims[d];
        same[d] = !r.gone[d] && r.n->strides[d] == 0;
    }
    numbers *out = numbers_blank(w->g, r.n->rank, dims, same, &room);
    const int64_t count = out == NULL ? 0 : held_of(out);
    for (int64_t k = 0; k < count; k++) {
        digits_of(out, k, digits);
        room[k] = reduced(&r, digits);
    }
    if (out == NULL) {
        return false;
    }
    out->real = r.n->real;
    if (onnx_whole(w->node, "keepdims", 1) == 0) {
        out->rank = 0;
        for (uint32_t d = 0; d < r.n->rank; d++) {
            if (!r.gone[d]) {
                out->dims[out->rank] = out->dims[d];
                out->strides[out->rank++] = out->strides[d];
            }
        }
    }
    return walk_give_numbers(w, 0, out);
}
