// SPDX-License-Identifier: Apache-2.0
// Another order in memory: what a chain of Reshape and Transpose comes to, as one layer that moves bytes, where the layer
// behind it cannot read the tensor as it lies.
#include <inttypes.h>
#include <string.h>

#include "onnx_walk.h"

enum { PERMUTED_MOST = 4, PIXEL_RUNS = 5, MOVES_SHARED = 64 };

// Axes that stay next to each other, and the place of the first of them in memory.
typedef struct run {
    int64_t size;
    uint32_t place;
} run;

// The runs of a sample in their new order, and in that of memory; from[k] is the place of new run k among those of memory.
typedef struct regrouping {
    run now[ONNX_AXES], before[ONNX_AXES];
    uint32_t from[ONNX_AXES], count;
} regrouping;

// A layer that moves bytes: what it reads and gives.
typedef struct move {
    const char *kind, *key, *text;
    layer *source;
    int64_t shape[ONNX_RANK];
    uint32_t rank;
} move;

static bool put_shape(move *m, uint32_t rank, const int64_t *sample)
{
    m->rank = rank + 1;
    m->shape[0] = ONNX_BATCH;
    memcpy(m->shape + 1, sample, rank * sizeof *sample);
    return m->text != NULL && m->source != NULL;
}

// ---- which layer it is ----------------------------------------------------------------------------------------

static bool find_runs(const axes *memory, const axes *order, regrouping *out)
{
    uint32_t last = 0;
    for (uint32_t k = 1; k < order->count; k++) {
        const uint32_t place = axes_place(memory, order->at[k]);
        if (place == memory->count) {
            return false;
        }
        if (out->count > 0 && place == last + 1) {
            out->now[out->count - 1].size *= order->at[k]->size;
        } else {
            out->now[out->count++] = (run){order->at[k]->size, place};
        }
        last = place;
    }
    for (uint32_t k = 0; k < out->count; k++) {
        for (uint32_t j = 0; j < out->count; j++) {
            out->from[k] += out->now[j].place < out->now[k].place ? 1 : 0;
        }
        out->before[out->from[k]] = out->now[k];
    }
    return true;
}

// [groups, channels of one] at the end of an image become [channels of one, groups].
static bool is_channel_shuffle(const tensor *t, const axes *order)
{
    const axes *memory = &t->axes;
    const uint32_t head = memory->count - 2;
    return t->layer->rank == 4 && memory->count > 2 && order->at[head] == memory->at[head + 1] &&
           order->at[head + 1] == memory->at[head] &&
           memcmp(order->at, memory->at, head * sizeof order->at[0]) == 0 &&
           memory->at[head]->size * memory->at[head + 1]->size == t->layer->shape[3];
}

static bool shuffled(walk *w, const tensor *t, move *m)
{
    m->kind = "channel_shuffle";
    m->key = "groups";
    m->text = onnx_print(w->g, "%" PRId64, t->axes.at[t->axes.count - 2]->size);
    m->source = t->layer;
    return put_shape(m, 3, t->layer->shape + 1);
}

static bool permuted(walk *w, const tensor *t, const regrouping *r, move *m)
{
    int64_t shape[ONNX_RANK] = {ONNX_BATCH}, sample[ONNX_RANK];
    text words = {0};
    for (uint32_t k = 0; k < r->count; k++) {
        shape[k + 1] = r->before[k].size;
        sample[k] = r->now[k].size;
        text_append(&words, "%s%u", k > 0 ? ", " : "[", r->from[k] + 1);
    }
    m->kind = "permute";
    m->key = "axes";
    m->source = walk_reshaped(w, t->layer, r->count + 1, shape);
    m->text = words.failed ? NULL : onnx_print(w->g, "%s]", words.data);
    text_deinit(&words);
    return put_shape(m, r->count, sample);
}

// Patches of pixels that become channels, and back: five runs that change places.
static bool pixels(walk *w, const tensor *t, const regrouping *r, move *m)
{
    static const struct {
        const char *kind;
        uint32_t from[PIXEL_RUNS];
        bool shuffles; // channels become pixels
    } known[] = {
        {"pixel_unshuffle", {0, 2, 4, 1, 3}, false},
        {"pixel_shuffle", {0, 3, 1, 4, 2}, true},
    };
    for (size_t k = 0; r->count == PIXEL_RUNS && k < sizeof known / sizeof *known; k++) {
        if (memcmp(r->from, known[k].from, sizeof known[k].from) != 0) {
            continue;
        }
        const run *b = r->before;
        const bool back = known[k].shuffles;
        const int64_t size[2] = {b[back ? 3 : 1].size, b[back ? 4 : 3].size}, down = size[0], right = size[1];
        const int64_t pixel[4] = {ONNX_BATCH, b[0].size * down, b[back ? 1 : 2].size * right,
                                  b[back ? 2 : 4].size};
        const int64_t patch[4] = {ONNX_BATCH, b[0].size, b[back ? 1 : 2].size, pixel[3] * down * right};
        m->kind = known[k].kind;
        m->key = "size";
        m->text = down == right ? onnx_print(w->g, "%" PRId64, down)
                                : onnx_print(w->g, "[%" PRId64 ", %" PRId64 "]", down, right);
        m->source = walk_reshaped(w, t->layer, 4, back ? patch : pixel);
        return put_shape(m, 3, (back ? pixel : patch) + 1);
    }
    return walk_refuse(w, "a permute of %u dimensions of a sample, where our layers move at most %d",
                       r->count, PERMUTED_MOST);
}

static bool find_move(walk *w, const tensor *t, const axes *order, move *m)
{
    regrouping r = {.count = 0};
    if (order->count != t->axes.count || !find_runs(&t->axes, order, &r)) {
        return walk_refuse(w, "a permute of a part of a tensor's dimensions");
    }
    if (is_channel_shuffle(t, order)) {
        return shuffled(w, t, m);
    }
    return r.count <= PERMUTED_MOST ? permuted(w, t, &r, m) : pixels(w, t, &r, m);
}

// ---- the layer ------------------------------------------------------------------------------------------------

static bool is_that(const layer *l, const move *m)
{
    return strcmp(l->kind, m->kind) == 0 && strcmp(layer_attribute_text(l, m->key), m->text) == 0 &&
           l->rank == m->rank && memcmp(l->shape, m->shape, m->rank * sizeof m->shape[0]) == 0;
}

// The layer that moves so, which is made once for all that read its source.
static layer *mover(walk *w, const move *m)
{
    uint32_t looked = 0;
    for (layer *made = m->source->moves; made != NULL && looked++ < MOVES_SHARED; made = made->move) {
        if (is_that(made, m)) {
            return made;
        }
    }
    layer *l = walk_emit(w, m->kind, m->source, m->rank, m->shape);
    if (l != NULL) {
        layer_word(w, l, m->key, m->text);
        l->move = m->source->moves;
        m->source->moves = l;
    }
    return l;
}

const tensor *walk_moved(walk *w, const tensor *t, const axes *order)
{
    move m = {.kind = NULL};
    if (!walk_is_closed(w, t)) {
        return NULL;
    }
    for (uint32_t k = 0; k < order->count; k++) {
        if (order->at[k]->copied) {
            return walk_refuse(w, "an expanded tensor, which our layers would have to copy");
        }
    }
    if (axes_equal(order, &t->axes)) {
        return t;
    }
    if (order->count == 0 || order->at[0] != t->axes.at[0] || order->at[0]->size != ONNX_BATCH) {
        return walk_refuse(w, "a tensor without the batch as its first dimension");
    }
    layer *l = find_move(w, t, order, &m) ? mover(w, &m) : NULL;
    tensor *out = l == NULL ? NULL : tensor_again(w, t);
    if (out != NULL) {
        out->layer = l;
        out->axes = *order;
    }
    return out;
}

const tensor *walk_last(walk *w, const tensor *t, const axes *features)
{
    axes order = {.count = 0};
    bool last = features->count <= t->axes.count;
    for (uint32_t k = t->axes.count - features->count; last && k < t->axes.count; k++) {
        last = axes_have(features, t->axes.at[k]);
    }
    if (last) {
        return t;
    }
    for (uint32_t k = 0; k < t->axes.count; k++) {
        if (!axes_have(features, t->axes.at[k])) {
            axes_add(&order, t->axes.at[k]);
        }
    }
    axes_join(&order, features);
    return walk_moved(w, t, &order);
}

// ---- one axis for a dimension ---------------------------------------------------------------------------------

// The axes in the order of dimensions, those first whose first axis lies first.
static axes by_place(const tensor *t)
{
    uint32_t order[ONNX_RANK], first[ONNX_RANK];
    axes out = {.count = 0};
    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t at = d;
        first[d] = t->axes.count;
        for (uint32_t k = 0; k < t->dims[d].count; k++) {
            const uint32_t place = axes_place(&t->axes, t->dims[d].at[k]);
            first[d] = place < first[d] ? place : first[d];
        }
        for (; at > 0 && first[order[at - 1]] > first[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        axes_join(&out, &t->dims[order[d]]);
    }
    return out;
}

const tensor *walk_whole(walk *w, const tensor *t, uint32_t dim)
{
    const axes own = t->dims[dim];
    for (uint32_t k = 0; k < own.count; k++) {
        if (!axes_have(&t->axes, own.at[k])) {
            return t;
        }
    }
    if (own.count < 2) {
        return t;
    }
    uint32_t at = axes_place(&t->axes, own.at[0]);
    if (at + own.count > t->axes.count ||
        memcmp(&t->axes.at[at], own.at, own.count * sizeof own.at[0]) != 0) {
        const axes order = by_place(t);
        t = walk_moved(w, t, &order);
        at = t == NULL ? 0 : axes_place(&t->axes, own.at[0]);
    }
    mem_axis *joined = t == NULL ? NULL : axis_new(w, axes_size(&own), false);
    tensor *out = joined == NULL ? NULL : tensor_again(w, t);
    if (out == NULL) {
        return NULL;
    }
    out->axes.count = at;
    axes_add(&out->axes, joined);
    for (uint32_t k = at + own.count; k < t->axes.count; k++) {
        axes_add(&out->axes, t->axes.at[k]);
    }
    out->dims[dim] = (axes){.count = 0};
    axes_add(&out->dims[dim], joined);
    return out;
}

// ---- what a layer needs to see --------------------------------------------------------------------------------

layer *walk_arrange(walk *w, const tensor *t, const axes *groups, uint32_t count)
{
    int64_t shape[ONNX_RANK];
    axes flat = {.count = 0};
    for (uint32_t k = 0; k < count; k++) {
        axes_join(&flat, &groups[k]);
        shape[k] = axes_size(&groups[k]);
    }
    t = walk_moved(w, t, &flat);
    if (t == NULL) {
        return NULL;
    }
    if (groups[0].count != 1 || groups[0].at[0]->size != ONNX_BATCH) {
        return walk_refuse(w, "a tensor without the batch as its first dimension");
    }
    return walk_reshaped(w, t->layer, count, shape);
}

layer *walk_arrange_dims(walk *w, const tensor *t)
{
    return walk_arrange(w, t, t->dims, t->rank);
}

layer *walk_image(walk *w, const tensor *t)
{
    if (t->rank != 4) {
        return walk_refuse(w, "needs [batch, channels, height, width], had %u dimensions", t->rank);
    }
    const axes groups[4] = {t->dims[0], t->dims[2], t->dims[3], t->dims[1]};
    return walk_arrange(w, t, groups, 4);
}

static bool has_inner_one(const layer *l)
{
    for (uint32_t k = 1; k + 1 < l->rank; k++) {
        if (l->shape[k] == 1) {
            return true;
        }
    }
    return false;
}

// The axes before the features, as dimensions: at most four.
static uint32_t head_shape(const axes *head, int64_t shape[ONNX_RANK])
{
    axes middle = {.count = 0};
    if (head->count <= 4) {
        for (uint32_t k = 0; k < head->count; k++) {
            shape[k] = head->at[k]->size;
        }
        return head->count;
    }
    for (uint32_t k = 1; k < head->count; k++) {
        axes_add(&middle, head->at[k]);
    }
    shape[0] = head->at[0]->size;
    shape[1] = axes_size(&middle);
    return 2;
}

layer *walk_rows(walk *w, const tensor **x, const axes *features, axes *head)
{
    int64_t shape[ONNX_RANK];
    if (!walk_is_closed(w, *x)) {
        return NULL;
    }
    if (tensor_is_expanded(*x)) {
        return walk_refuse(w, "works on an expanded tensor, which our layers would have to copy");
    }
    const tensor *t = walk_last(w, *x, features);
    if (t == NULL) {
        return NULL;
    }
    *x = t;
    *head = t->axes;
    head->count -= features->count;
    if (head->count == 0 || head->at[0]->size != ONNX_BATCH) {
        return walk_refuse(w, "a tensor without the batch as its first dimension");
    }
    const int64_t size = axes_size(features);
    const layer *l = t->layer;
    if (l->shape[l->rank - 1] == size && (l->rank <= t->rank || !has_inner_one(l))) {
        return t->layer;
    }
    uint32_t rank = head_shape(head, shape);
    shape[rank++] = size;
    return walk_reshaped(w, t->layer, rank, shape);
}
