// SPDX-License-Identifier: Apache-2.0
// Where checkpoint.strategy=blocks cuts: behind every layer that merges branches and whose result alone goes on.
//
//   x ─┬─ norm ─ attention ─ add → y ─┬─ norm ─ dense ─ add → z      x, y and z are alone at their cuts
//      └─────────────│────────┘       └──────────────────┘
//   bias ────────────┘                                               but for what all such blocks are given
//
// Beside its result a cut lets go on what the blocks of a run are given: a bias of positions that they share, in a decoder
// what the encoder made. That was made before the block that the cut ends, which has one input of its own beside it, and
// several segments behind the first cut that it so crosses read it: it is kept in any case. A residual is none: behind a
// merge within its block only the block's sum is left to read it. Casts of variables are not counted.
#include "program/draft.h"

// A storage.
typedef struct value {
    uint32_t from, last; // the layer that writes it, HR_NO_ID: it crosses nothing; and the last that reads it
    uint32_t first;      // the first cut that it crosses beside the cut's result, HR_NO_ID
    uint32_t seen, segments; // behind it: the latest segment that reads the value, and how many do
} value;

typedef struct layer_end {
    int32_t open;    // how many values cross it
    uint32_t own;    // how many of them its layer wrote
    uint32_t until;  // the last layer that reads one of these
    uint32_t latest; // the latest layer before that wrote one of the others, HR_NO_ID
    uint32_t next;   // the first cut at or behind it, HR_NO_ID
    uint32_t segment;
    int32_t foreign; // first as a difference: how many cross it and are not given to a run
} layer_end;

typedef struct blocks {
    const draft *d;
    const uint32_t *writer; // [tensors] index of the forward instruction that writes it, HR_NO_ID
    uint32_t forward_count, layer_count; // the model's own: a teacher's layers cross nothing and cut nothing
    value *values;                       // [tensors] owners
    layer_end *ends;                     // [layers + 1]
    uint32_t *stack;                     // [layers]
    bool *cut;                           // [layers]
} blocks;

static bool is_merge(const blocks *b, const instr *i)
{
    uint32_t activations = 0;
    for (uint32_t k = 0; k < i->in_count; k++) {
        activations += b->writer[i->in[k]] != HR_NO_ID &&
                       b->d->tensors.data[i->in[k]].category == HR_CATEGORY_ACTIVATIONS;
    }
    return activations > 1;
}

static void measure_values(blocks *b)
{
    const draft *d = b->d;
    for (uint32_t t = 0; t < d->tensors.count; t++) {
        const tensor *own = &d->tensors.data[t];
        const bool counts = !own->persistent && own->storage == t && own->category != HR_CATEGORY_CASTS;
        const uint32_t layer =
            counts && b->writer[t] != HR_NO_ID ? d->instrs.data[b->writer[t]].layer : HR_NO_ID;
        b->values[t].from = layer < b->layer_count ? layer : HR_NO_ID;
    }
    for (uint32_t n = 0; n < b->forward_count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count && i->layer < b->layer_count; k++) {
            value *v = &b->values[draft_owner(d, i->in[k])];
            v->last = i->layer > v->last ? i->layer : v->last;
        }
    }
}

static void count_crossings(blocks *b)
{
    for (uint32_t t = b->d->persistent_count; t < b->d->tensors.count; t++) {
        const value *v = &b->values[t];
        if (v->from != HR_NO_ID && v->last > v->from) {
            layer_end *end = &b->ends[v->from];
            end->open++;
            end->own++;
            end->until = v->last > end->until ? v->last : end->until;
            b->ends[v->last].open--;
        }
    }
    uint32_t depth = 0;
    for (uint32_t l = 0; l < b->layer_count; l++) {
        b->ends[l].open += l == 0 ? 0 : b->ends[l - 1].open;
        while (depth > 0 && b->ends[b->stack[depth - 1]].until <= l) {
            depth--;
        }
        b->ends[l].latest = depth == 0 ? HR_NO_ID : b->stack[depth - 1];
        b->stack[depth++] = l;
    }
}

// Does the layer's result go on alone, or beside what was there before a block of one input began that it ends?
static bool ends_block(const blocks *b, uint32_t layer)
{
    const layer_end *end = &b->ends[layer];
    if (end->open == 1) {
        return true;
    }
    for (uint32_t l = layer; end->own == 1 && end->latest != HR_NO_ID && l > end->latest; l--) {
        if (b->ends[l - 1].open == end->open) {
            return true;
        }
    }
    return false;
}

static void number_segments(blocks *b)
{
    uint32_t segment = 1;
    for (uint32_t l = 0; l < b->layer_count; l++) {
        b->ends[l].segment = segment;
        b->ends[l].foreign = 0;
        segment += b->cut[l];
    }
    b->ends[b->layer_count].next = HR_NO_ID;
    for (uint32_t l = b->layer_count; l > 0; l--) {
        b->ends[l - 1].next = b->cut[l - 1] ? l - 1 : b->ends[l].next;
    }
}

// How many segments read each value behind the first cut that it crosses beside the cut's result.
static void count_segments(blocks *b)
{
    for (uint32_t t = 0; t < b->d->tensors.count; t++) {
        value *v = &b->values[t];
        v->first = v->from == HR_NO_ID ? HR_NO_ID : b->ends[v->from + 1].next;
        v->first = v->first != HR_NO_ID && v->first < v->last ? v->first : HR_NO_ID;
        v->seen = v->segments = 0;
    }
    for (uint32_t n = 0; n < b->forward_count; n++) {
        const instr *i = &b->d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count && i->layer < b->layer_count; k++) {
            value *v = &b->values[draft_owner(b->d, i->in[k])];
            const uint32_t segment = b->ends[i->layer].segment;
            if (v->first != HR_NO_ID && i->layer > v->first && segment > v->seen) {
                v->seen = segment;
                v->segments++;
            }
        }
    }
}

// Takes back the cuts that cross a value which is not given to a run; says whether there was one.
static bool take_back(blocks *b)
{
    number_segments(b);
    count_segments(b);
    for (uint32_t t = 0; t < b->d->tensors.count; t++) {
        const value *v = &b->values[t];
        if (v->first != HR_NO_ID && v->segments < 2) {
            b->ends[v->first].foreign++;
            b->ends[v->last].foreign--;
        }
    }
    bool any = false;
    for (uint32_t l = 0; l < b->layer_count; l++) {
        b->ends[l].foreign += l == 0 ? 0 : b->ends[l - 1].foreign;
        const bool back = b->cut[l] && b->ends[l].foreign > 0;
        b->cut[l] = b->cut[l] && !back;
        any = any || back;
    }
    return any;
}

static void cut(blocks *b)
{
    measure_values(b);
    count_crossings(b);
    for (uint32_t n = 0; n < b->forward_count; n++) {
        const instr *i = &b->d->instrs.data[n];
        if (i->layer < b->layer_count && !b->cut[i->layer] && is_merge(b, i)) {
            b->cut[i->layer] = ends_block(b, i->layer);
        }
    }
    while (take_back(b)) {
    }
}

hr_status draft_cut_blocks(const draft *d, const uint32_t *writer, uint32_t forward_count, bool *cuts,
                           hr_err *err)
{
    const uint32_t layers = d->model->own_layers;
    blocks b = {.d = d,
                .writer = writer,
                .forward_count = forward_count,
                .layer_count = layers,
                .values = hr_calloc(d->tensors.count, sizeof *b.values),
                .ends = hr_calloc(layers + 1u, sizeof *b.ends),
                .stack = hr_calloc(layers + 1u, sizeof *b.stack),
                .cut = cuts};
    hr_status status = HR_OK;
    if (b.values == NULL || b.ends == NULL || b.stack == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the blocks of %u layers", layers);
    } else {
        cut(&b);
    }
    hr_free(b.values);
    hr_free(b.ends);
    hr_free(b.stack);
    return status;
}
