// SPDX-License-Identifier: Apache-2.0
#include "memory/heap_snapshot.h"

#include <stdlib.h>

#include "base/text.h"

typedef struct painter {
    heap_snapshot *snapshot;
    bool failed;
} painter;

static bool add_chunk(void *context, const heap_chunk *c)
{
    painter *p = context;
    heap_chunk *added = vec_push(&p->snapshot->chunks);
    if (added == NULL) {
        p->failed = true;
        return false;
    }
    *added = *c;
    return true;
}

hr_status heap_snapshot_of(const allocator *a, heap_snapshot *out, hr_err *err)
{
    painter p = {.snapshot = out};
    *out = (heap_snapshot){.counters = allocator_get_stats(a), .refusal = a->refusal};
    (void)text_copy(out->source, sizeof out->source, a->ops->name);
    out->next_region_bytes = a->ops->next_region == NULL ? 0 : a->ops->next_region(a);
    a->ops->walk(a, add_chunk, &p);
    if (p.failed) {
        heap_snapshot_deinit(out);
        return HR_FAIL(err, NOMEM, "%s allocator: needed host memory to show its heap, had none",
                       a->ops->name);
    }
    return HR_OK;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_among(void *context, const heap_chunk *c)
{
    const heap_addresses *s = context;
    return s->count > 0 && bsearch(&c->address, s->data, s->count, sizeof *s->data, by_address) != NULL;
}

static bool may_go(void *context, const heap_chunk *c)
{
    return !is_among(context, c);
}

heap_room heap_room_at(const allocator *a, heap_addresses stay, heap_addresses retained, uint32_t *in_the_way)
{
    heap_snapshot p;
    *in_the_way = HR_NO_ID;
    if (heap_snapshot_of(a, &p, NULL) != HR_OK) {
        return (heap_room){.any = false};
    }
    heap_room room = heap_room_of(&p, may_go, &stay);
    if (retained.count > 0) {
        room.retained = heap_without_them(&p, is_among, &retained);
    }
    uint64_t largest_bytes = 0;
    for (uint32_t k = 0; k < room.window.count; k++) {
        const heap_chunk *c = &p.chunks.data[room.window.first + k];
        if (c->in_use && c->size_bytes > largest_bytes) {
            largest_bytes = c->size_bytes;
            *in_the_way = c->tensor;
        }
    }
    heap_snapshot_deinit(&p);
    return room;
}
