// SPDX-License-Identifier: Apache-2.0
// The order in which Keras goes through the calls of a model, as map_graph of keras/src/ops/function.py (Keras 3.15) has it: a
// search from the outputs numbers the calls, then each stands by how far it is from an output, the farthest first.
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "keras.h"

enum { FRESH, BEGUN, FINISHED };

typedef struct ordering {
    keras_graph *g;
    uint8_t *state;               // of calls
    bool *is_input;               // the graph begins here
    uint32_t *stack, *next;       // the calls in progress, and which of their refs is next
    uint32_t *after, after_count; // calls behind all they read
    uint32_t *depth, *layer_depth, *rank, ranked;
    bool *seen;
    bool circle;
} ordering;

static void *room(uint32_t count, size_t size)
{
    return hr_calloc(count > 0 ? count : 1, size);
}

static bool ordering_init(ordering *o, keras_graph *g)
{
    const uint32_t n = g->nodes.count;
    *o = (ordering){.g = g,
                    .state = room(n, sizeof *o->state),
                    .is_input = room(n, sizeof *o->is_input),
                    .stack = room(n, sizeof *o->stack),
                    .next = room(n, sizeof *o->next),
                    .after = room(n, sizeof *o->after),
                    .depth = room(n, sizeof *o->depth),
                    .layer_depth = room(g->layers.count, sizeof *o->layer_depth),
                    .rank = room(n, sizeof *o->rank),
                    .seen = room(n, sizeof *o->seen)};
    return o->state != NULL && o->is_input != NULL && o->stack != NULL && o->next != NULL &&
           o->after != NULL && o->depth != NULL && o->layer_depth != NULL && o->rank != NULL &&
           o->seen != NULL;
}

static void ordering_deinit(ordering *o)
{
    hr_free(o->state);
    hr_free(o->is_input);
    hr_free(o->stack);
    hr_free(o->next);
    hr_free(o->after);
    hr_free(o->depth);
    hr_free(o->layer_depth);
    hr_free(o->rank);
    hr_free(o->seen);
}

static void search_from(ordering *o, uint32_t root)
{
    uint32_t height = 0;
    if (o->state[root] == FRESH) {
        o->state[root] = BEGUN;
        o->stack[height++] = root;
    }
    while (height > 0 && !o->circle) {
        const uint32_t at = o->stack[height - 1];
        const keras_node *node = &o->g->nodes.data[at];
        if (o->is_input[at] || o->next[at] == node->ref_count) {
            o->state[at] = FINISHED;
            o->after[o->after_count++] = at;
            height--;
            continue;
        }
        const uint32_t from = o->g->refs.data[node->first_ref + o->next[at]++].node;
        o->circle = o->state[from] == BEGUN;
        if (o->state[from] == FRESH) {
            o->state[from] = BEGUN;
            o->stack[height++] = from;
        }
    }
}

static void see(ordering *o, uint32_t node)
{
    if (!o->seen[node]) {
        o->seen[node] = true;
        o->rank[o->ranked++] = node;
    }
}

static void set_depths(ordering *o)
{
    for (uint32_t k = o->after_count; k-- > 0;) {
        const uint32_t at = o->after[k];
        const keras_node *node = &o->g->nodes.data[at];
        uint32_t *of_layer = &o->layer_depth[node->layer];
        see(o, at);
        o->depth[at] = o->depth[at] > *of_layer ? o->depth[at] : *of_layer;
        *of_layer = o->depth[at];
        for (uint32_t r = 0; !o->is_input[at] && r < node->ref_count; r++) {
            const uint32_t from = o->g->refs.data[node->first_ref + r].node;
            see(o, from);
            o->depth[from] = o->depth[from] > o->depth[at] + 1 ? o->depth[from] : o->depth[at] + 1;
        }
    }
}

// By depth, the largest first; those of one depth stay as they were seen.
static bool put_order(ordering *o)
{
    uint32_t deepest = 0;
    for (uint32_t k = 0; k < o->ranked; k++) {
        deepest = o->depth[o->rank[k]] > deepest ? o->depth[o->rank[k]] : deepest;
    }
    uint32_t *starts = room(deepest + 2, sizeof *starts);
    if (starts == NULL || !vec_reserve(&o->g->order, o->ranked)) {
        hr_free(starts);
        return false;
    }
    for (uint32_t k = 0; k < o->ranked; k++) {
        starts[deepest - o->depth[o->rank[k]] + 1]++;
    }
    for (uint32_t d = 0; d <= deepest; d++) {
        starts[d + 1] += starts[d];
    }
    for (uint32_t k = 0; k < o->ranked; k++) { // `next` is not needed any more
        o->next[starts[deepest - o->depth[o->rank[k]]]++] = o->rank[k];
    }
    for (uint32_t k = 0; k < o->ranked; k++) {
        if (!o->is_input[o->next[k]]) {
            o->g->order.data[o->g->order.count++] = o->next[k];
        }
    }
    hr_free(starts);
    return true;
}

bool keras_graph_order(keras_graph *g, bool *nomem)
{
    ordering o;
    bool good = ordering_init(&o, g);
    *nomem = !good;
    if (good) {
        for (uint32_t k = 0; k < g->inputs.count; k++) {
            o.is_input[g->inputs.data[k].node] = true;
        }
        for (uint32_t k = 0; k < g->nodes.count; k++) {
            o.is_input[k] =
                o.is_input[k] || strcmp(g->layers.data[g->nodes.data[k].layer].class_name, "InputLayer") == 0;
        }
        for (uint32_t k = 0; k < g->outputs.count; k++) {
            search_from(&o, g->outputs.data[k].node);
        }
        set_depths(&o);
        good = !o.circle;
        *nomem = good && !put_order(&o);
    }
    ordering_deinit(&o);
    return good && !*nomem;
}
