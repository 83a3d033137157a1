// SPDX-License-Identifier: Apache-2.0
#include "insight/evidence_heap.h"

#include <string.h>

#include "base/text.h"

// What is called so is held ahead; of the others one is the batch that is used.
static bool is_held_ahead(const char *name, bool *one_is_used)
{
    static const char *const words[] = {":ahead", "prefetch", "Prefetch", "IteratorGetNext"};
    for (size_t k = 0; name != NULL && k < sizeof words / sizeof *words; k++) {
        if (strstr(name, words[k]) != NULL) {
            *one_is_used = *one_is_used || k > 0;
            return true;
        }
    }
    return false;
}

enum { BATCH_SIZES = 16 };

typedef struct ahead {
    const heap_snapshot *p;
    uint64_t sizes[BATCH_SIZES]; // of which one was spared: images and labels of the batch that is used
    uint32_t size_count;
    oom_part *part;
} ahead;

// The first of every size; any of those beyond what a batch has.
static bool is_of_the_used(ahead *a, uint64_t bytes)
{
    for (uint32_t k = 0; k < a->size_count; k++) {
        if (a->sizes[k] == bytes) {
            return false;
        }
    }
    if (a->size_count < BATCH_SIZES) {
        a->sizes[a->size_count++] = bytes;
    }
    return true;
}

static bool waits(void *context, const heap_chunk *c)
{
    ahead *a = context;
    bool one_is_used = false;
    const char *name = intern_text(&a->p->names, c->tensor);
    if (!is_held_ahead(name, &one_is_used)) {
        return false;
    }
    if (one_is_used && is_of_the_used(a, c->requested_bytes)) {
        return false;
    }
    a->part->blocks++;
    a->part->largest += c->requested_bytes == a->part->block_bytes;
    if (c->requested_bytes > a->part->block_bytes) {
        a->part->block_bytes = c->requested_bytes;
        a->part->largest = 1;
        (void)text_copy(a->part->name, sizeof a->part->name, name);
    }
    return true;
}

static void find_named_queue(const heap_snapshot *p, oom_evidence *out)
{
    if (out->queue.blocks == 0) {
        ahead a = {.p = p, .part = &out->queue};
        out->queue.without = heap_without_them(p, waits, &a);
        out->queue.most_bytes = out->queue.without.held_bytes;
    }
}

// One of both says that it is a copy; a gradient, which is of the same size, does not.
static bool is_the_same_thing(const char *a, const char *b)
{
    static const char *const copies[] = {"clone",       "copy",   "initial",
                                         "Initializer", "Assign", "load_state_dict"};
    for (size_t k = 0; a != NULL && b != NULL && k < sizeof copies / sizeof *copies; k++) {
        if (strstr(a, copies[k]) != NULL || strstr(b, copies[k]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool is_twin(void *context, const heap_chunk *c)
{
    return c == context || c->address == ((const heap_chunk *)context)->address;
}

// The only chunk of the request's size. Without names two of them that are most of the pool are taken for one thing.
static void find_twin(const heap_snapshot *p, oom_evidence *out)
{
    heap_chunk *twin = NULL;
    uint32_t count = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        heap_chunk *c = &p->chunks.data[k];
        if (c->in_use && !c->pending && c->requested_bytes > 0 &&
            (c->requested_bytes == p->refusal.requested_bytes ||
             c->requested_bytes == p->refusal.rounded_bytes)) {
            twin = c;
            count++;
        }
    }
    if (count != 1) {
        return;
    }
    const char *name = intern_text(&p->names, twin->tensor);
    const char *asked = intern_text(&p->names, p->refusal.tensor);
    const uint64_t limit_bytes =
        p->counters.limit_bytes > p->counters.pool_bytes ? p->counters.limit_bytes : p->counters.pool_bytes;
    const bool nameless = name == NULL || asked == NULL;
    if (!is_the_same_thing(name, asked) && !(nameless && twin->size_bytes > limit_bytes * 2 / 5)) {
        return;
    }
    out->twin = (oom_part){.blocks = 1, .block_bytes = twin->requested_bytes};
    (void)text_copy(out->twin.name, sizeof out->twin.name, name == NULL ? "" : name);
    out->twin.without = heap_without_them(p, is_twin, twin);
    out->twin.most_bytes = out->twin.without.held_bytes;
}

void evidence_of_heap(const heap_snapshot *p, oom_evidence *out)
{
    find_named_queue(p, out);
    find_twin(p, out);
}
