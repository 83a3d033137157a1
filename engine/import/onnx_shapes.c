// SPDX-License-Identifier: Apache-2.0
// What the operators on shapes ask for, whatever they are asked of.
#include <string.h>

#include "onnx_fold.h"

bool node_axis(walk *w, int64_t axis, uint32_t rank, uint32_t *out)
{
    axis += axis < 0 ? (int64_t)rank : 0;
    if (axis < 0 || axis >= (int64_t)rank) {
        return walk_refuse(w, "needs an axis within %u dimensions", rank);
    }
    *out = (uint32_t)axis;
    return true;
}

// Whole numbers of an attribute, or of operand k. *count 0: neither is written.
static bool whole_list(walk *w, const char *key, uint32_t k, int64_t list[ONNX_PARTS], uint32_t *count)
{
    const onnx_attribute *a = onnx_find(w->node, key);
    const numbers *n = a == NULL && walk_has(w, k) ? walk_needs_numbers(w, k) : NULL;
    const int64_t many = a != NULL ? a->count : n != NULL ? numbers_count(n) : 0;
    *count = 0;
    if (w->g->status != HR_OK || (n != NULL && !walk_is_known(w, n, false))) {
        return false;
    }
    if (many > ONNX_PARTS) {
        return walk_refuse(w, "needs at most %d numbers in '%s'", ONNX_PARTS, key);
    }
    for (int64_t j = 0; j < many; j++) {
        list[(*count)++] = a != NULL ? a->wholes[j] : numbers_whole(numbers_at(n, j));
    }
    return true;
}

bool node_axes(walk *w, uint32_t k, uint32_t rank, bool flags[ONNX_RANK], bool *given)
{
    int64_t list[ONNX_PARTS];
    uint32_t count = 0, place = 0;
    memset(flags, 0, ONNX_RANK * sizeof *flags);
    if (!whole_list(w, "axes", k, list, &count)) {
        return false;
    }
    *given = count > 0;
    for (uint32_t j = 0; j < count; j++) {
        if (!node_axis(w, list[j], rank, &place)) {
            return false;
        }
        flags[place] = true;
    }
    return true;
}

static bool product(uint32_t rank, const int64_t *shape, int64_t *out)
{
    *out = 1;
    for (uint32_t k = 0; k < rank; k++) {
        if (__builtin_mul_overflow(*out, shape[k], out)) {
            return false;
        }
    }
    return true;
}

// A shape that was written for the batch of the export holds that: it is put for the batch here.
static void mend_batch(walk *w, int64_t total, uint32_t rank, int64_t *shape, int64_t unknown)
{
    const int64_t fixed = w->fixed_batch;
    int64_t asked = 0;
    if (fixed < 1 || total % ONNX_BATCH != 0 || unknown >= 0 || !product(rank, shape, &asked) || asked < 1 ||
        asked % fixed != 0 || asked / fixed != total / ONNX_BATCH) {
        return;
    }
    for (uint32_t k = 0; k < rank; k++) {
        if (shape[k] % fixed == 0 && (fixed > 1 || k == 0)) {
            shape[k] = shape[k] / fixed * ONNX_BATCH;
            return;
        }
    }
}

bool node_reshape(walk *w, uint32_t rank, const int64_t *have, uint32_t *out_rank, int64_t out[ONNX_RANK])
{
    const numbers *n = walk_needs_numbers(w, 1);
    int64_t total = 0, known = 0, unknown = -1;
    const bool keeps_zero = onnx_whole(w->node, "allowzero", 0) != 0;
    if (n == NULL || !walk_is_known(w, n, false)) {
        return false;
    }
    if (n->rank != 1 || n->dims[0] > ONNX_RANK || !product(rank, have, &total)) {
        return walk_refuse(w, "needs a shape of at most %d dimensions", ONNX_RANK);
    }
    *out_rank = (uint32_t)n->dims[0];
    for (uint32_t k = 0; k < *out_rank; k++) {
        out[k] = numbers_whole(numbers_at(n, k));
        out[k] = out[k] == 0 && !keeps_zero && k < rank ? have[k] : out[k];
        if (out[k] == -1 && unknown < 0) {
            unknown = k;
            out[k] = 1;
        } else if (out[k] < 0) {
            return walk_refuse(w, "needs a shape with one -1 at most");
        }
    }
    mend_batch(w, total, *out_rank, out, unknown);
    if (unknown >= 0 && w->fixed_batch > 0 && total % ONNX_BATCH == 0 && unknown != 0 &&
        out[0] == w->fixed_batch) {
        out[0] = ONNX_BATCH;
    }
    if (!product(*out_rank, out, &known) || (unknown < 0 && known != total) ||
        (unknown >= 0 && (known == 0 || total % known != 0))) {
        return walk_refuse(w, "needs a shape of as many elements as there are");
    }
    if (unknown >= 0) {
        out[unknown] = total / known;
    }
    return true;
}

bool node_squeezed(walk *w, bool adds, uint32_t rank, const int64_t *have, uint32_t *out_rank,
                   int64_t out[ONNX_RANK])
{
    bool flags[ONNX_RANK], given = false;
    int64_t list[ONNX_PARTS];
    uint32_t count = 0;
    *out_rank = 0;
    if (!whole_list(w, "axes", 1, list, &count)) {
        return false;
    }
    if (adds && rank + count > ONNX_RANK) {
        return walk_refuse(w, "needs at most %d dimensions", ONNX_RANK);
    }
    if (!node_axes(w, 1, adds ? rank + count : rank, flags, &given)) {
        return false;
    }
    const uint32_t whole = adds ? rank + count : rank;
    for (uint32_t k = 0, own = 0; k < whole; k++) {
        if (adds) {
            out[(*out_rank)++] = flags[k] || own >= rank ? 1 : have[own++];
        } else if (given ? !flags[k] : have[k] != 1) {
            out[(*out_rank)++] = have[k];
        } else if (have[k] != 1) {
            return walk_refuse(w, "needs dimensions of size 1 to take away");
        }
    }
    return true;
}

bool node_permutation(walk *w, uint32_t rank, uint32_t order[ONNX_RANK])
{
    const onnx_attribute *a = onnx_find(w->node, "perm");
    uint32_t seen = 0;
    for (uint32_t k = 0; k < rank; k++) {
        order[k] = rank - 1 - k;
        if (a != NULL && (k >= a->count || a->wholes[k] < 0 || a->wholes[k] >= (int64_t)rank)) {
            return walk_refuse(w, "needs the order of %u dimensions", rank);
        }
        order[k] = a != NULL ? (uint32_t)a->wholes[k] : order[k];
        seen |= 1u << order[k];
    }
    return seen == (1u << rank) - 1 || walk_refuse(w, "needs the order of %u dimensions", rank) != NULL;
}

bool node_parts(walk *w, int64_t size, int64_t parts[ONNX_PARTS], uint32_t *count)
{
    int64_t sum = 0;
    if (!whole_list(w, "split", 1, parts, count)) {
        return false;
    }
    if (*count == 0) {
        const int64_t asked = onnx_whole(w->node, "num_outputs", w->node->output_count);
        const int64_t piece = asked < 1 ? 0 : (size + asked - 1) / asked;
        if (asked < 1 || asked > ONNX_PARTS || piece * (asked - 1) >= size) {
            return walk_refuse(w, "needs 1 to %d parts of a dimension", ONNX_PARTS);
        }
        for (int64_t k = 0; k < asked; k++) {
            parts[(*count)++] = k + 1 < asked ? piece : size - piece * (asked - 1);
        }
    }
    for (uint32_t k = 0; k < *count; k++) {
        if (parts[k] < 1 || parts[k] > size) {
            return walk_refuse(w, "needs parts of a dimension that are not empty");
        }
        sum += parts[k];
    }
    return (sum == size && *count == w->node->output_count) ||
           walk_refuse(w, "needs parts that make up the dimension") != NULL;
}

// What Slice means by numbers that may lie far outside.
static cut cut_of(int64_t size, int64_t from, int64_t end, int64_t step)
{
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    from = from < -size ? -size : from > size ? size : from;
    end = end < -size - 1 ? -size - 1 : end > size ? size : end;
    from += from < 0 ? size : 0;
    end += end < 0 ? size : 0;
    from = from < low ? low : from > high ? high : from;
    end = end < low ? low : end > high ? high : end;
    const int64_t far = step < 0 ? from - end : end - from, wide = step < 0 ? -step : step;
    return (cut){from, far <= 0 ? 0 : (far - 1) / wide + 1, step};
}

bool node_cuts(walk *w, uint32_t rank, const int64_t *have, cut cuts[ONNX_RANK])
{
    int64_t from[ONNX_PARTS], end[ONNX_PARTS], along[ONNX_PARTS], steps[ONNX_PARTS];
    uint32_t count = 0, ends = 0, axis_count = 0, step_count = 0, place = 0;
    for (uint32_t k = 0; k < rank; k++) {
        cuts[k] = (cut){0, have[k], 1};
    }
    if (!whole_list(w, "starts", 1, from, &count) || !whole_list(w, "ends", 2, end, &ends) ||
        !whole_list(w, "axes", 3, along, &axis_count) || !whole_list(w, "steps", 4, steps, &step_count)) {
        return false;
    }
    if (ends != count || (axis_count > 0 && axis_count != count) || (step_count > 0 && step_count != count)) {
        return walk_refuse(w, "needs as many ends, axes and steps as there are beginnings");
    }
    for (uint32_t k = 0; k < count; k++) {
        const int64_t asked = step_count > 0 ? steps[k] : 1;
        const int64_t step = asked == INT64_MIN ? -INT64_MAX : asked; // both are past any dimension
        if (!node_axis(w, axis_count > 0 ? along[k] : (int64_t)k, rank, &place)) {
            return false;
        }
        if (step == 0) {
            return walk_refuse(w, "needs steps other than 0");
        }
        w->too_long =
            w->too_long || (w->open_sequence != NULL && end[k] == w->sequence && have[place] < end[k]);
        cuts[place] = cut_of(have[place], from[k], end[k], step);
    }
    return true;
}

bool node_picks(walk *w, uint32_t rank, const int64_t *have, uint32_t *axis, int64_t *place)
{
    const numbers *n = walk_needs_numbers(w, 1);
    if (n == NULL || !node_axis(w, onnx_whole(w->node, "axis", 0), rank, axis)) {
        return false;
    }
    if (!numbers_is_one(n)) {
        return walk_refuse(w, "a look-up of several places, which no layer does of what another computes");
    }
    *place = numbers_whole(numbers_first(n));
    *place += *place < 0 ? have[*axis] : 0;
    return (*place >= 0 && *place < have[*axis]) ||
           walk_refuse(w, "looks up a place beyond its %lld", (long long)have[*axis]) != NULL;
}
