// SPDX-License-Identifier: Apache-2.0
#include "events/heap_room.h"

#include "headroom/units.h"

#define SMALL_MOST_BYTES HR_MIB // of a block in PyTorch's small pool

static bool is_in_its_pool(const heap_chunk *c, uint64_t bytes)
{
    return c->region_kind == HEAP_REGION_SMALL   ? bytes <= SMALL_MOST_BYTES
           : c->region_kind == HEAP_REGION_LARGE ? bytes > SMALL_MOST_BYTES
                                                 : true;
}

static bool belongs_to_a_stream(const heap_chunk *c)
{
    return c->pending || c->region_kind != HEAP_REGION_PLAIN;
}

static bool is_unused(const heap_chunk *c)
{
    return !c->in_use || c->pending;
}

bool heap_may_use(const heap_chunk *c, uint64_t bytes, uint32_t stream)
{
    return !c->in_use && c->freed_at == 0 && is_in_its_pool(c, bytes) &&
           (!belongs_to_a_stream(c) || c->stream == stream);
}

// The longest run, within a region, of memory that nothing uses; of what the request may use, or of what it may not.
typedef struct run {
    uint64_t bytes, longest_bytes;
    uint32_t stream, longest_stream;
    uint64_t region;
} run;

static void add_to_run(run *r, const heap_chunk *c, bool belongs)
{
    r->bytes = belongs && c->region_address == r->region ? r->bytes : 0;
    r->region = c->region_address;
    if (!belongs) {
        return;
    }
    r->stream = r->bytes == 0 ? c->stream : r->stream;
    r->bytes += c->size_bytes;
    if (r->bytes > r->longest_bytes) {
        r->longest_bytes = r->bytes;
        r->longest_stream = r->stream;
    }
}

typedef struct chooser {
    heap_chooser may_go;
    void *context;
    uint64_t bytes;
    uint32_t stream;
} chooser;

// What is free must be to be had; what is in use must be of its pool and may have to stay.
static bool may_be_in_window(void *context, const heap_chunk *c)
{
    const chooser *o = context;
    if (!c->in_use) {
        return heap_may_use(c, o->bytes, o->stream);
    }
    bool same_stream = c->region_kind == HEAP_REGION_PLAIN || c->stream == o->stream;
    return same_stream && is_in_its_pool(c, o->bytes) && (o->may_go == NULL || o->may_go(o->context, c));
}

static void take_holes(heap_room *room, const heap_snapshot *p)
{
    heap_holes holes;
    if (heap_holes_of(p, &holes, NULL) != HR_OK) {
        return;
    }
    room->hole_count = (uint32_t)holes.list.count;
    for (uint32_t k = 0; k < room->hole_count && k < HEAP_ROOM_HOLES; k++) {
        room->holes[k] = holes.list.data[k].bytes;
    }
    heap_holes_deinit(&holes);
}

static uint64_t needed_of(const heap_refusal *asked)
{
    return asked->rounded_bytes > 0 ? asked->rounded_bytes : asked->requested_bytes;
}

heap_without heap_without_them(const heap_snapshot *p, heap_chooser gone, void *context)
{
    const uint64_t needed_bytes = needed_of(&p->refusal);
    heap_without without = {.held_bytes = 0};
    run own = {.bytes = 0};
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        heap_chunk seen = p->chunks.data[k];
        if (seen.in_use && gone(context, &seen)) {
            seen.in_use = false;
            without.held_bytes += seen.size_bytes;
            without.waste_bytes += seen.size_bytes - seen.requested_bytes;
        }
        add_to_run(&own, &seen, heap_may_use(&seen, needed_bytes, p->refusal.stream));
    }
    without.hole_bytes = own.longest_bytes;
    return without;
}

heap_room heap_room_of(const heap_snapshot *p, heap_chooser may_go, void *context)
{
    const heap_counters *c = &p->counters;
    const heap_refusal *asked = &p->refusal;
    heap_room room = {.any = asked->any && p->chunks.count > 0};
    if (!room.any) {
        return room;
    }
    run own = {.bytes = 0}, others = {.bytes = 0};
    uint64_t pending_bytes = 0;
    room.needed_bytes = needed_of(asked);
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *chunk = &p->chunks.data[k];
        bool usable = heap_may_use(chunk, room.needed_bytes, asked->stream);
        add_to_run(&own, chunk, usable);
        add_to_run(&others, chunk, is_unused(chunk) && !usable);
        pending_bytes += chunk->in_use && chunk->pending ? chunk->size_bytes : 0;
    }
    uint64_t used_bytes =
        c->in_use_bytes - (pending_bytes < c->in_use_bytes ? pending_bytes : c->in_use_bytes);
    uint64_t ungrown_bytes = c->limit_bytes > c->pool_bytes ? c->limit_bytes - c->pool_bytes : 0;
    if (asked->told && c->limit_bytes == 0) {
        ungrown_bytes = asked->device_free_bytes;
    }
    room.limit_bytes = c->pool_bytes + ungrown_bytes;
    room.free_bytes = room.limit_bytes - (used_bytes < room.limit_bytes ? used_bytes : room.limit_bytes);
    room.waste_bytes = c->in_use_bytes > c->requested_bytes ? c->in_use_bytes - c->requested_bytes : 0;
    room.hole_bytes = own.longest_bytes;
    room.ungrown_bytes = ungrown_bytes;
    room.driver_bytes = asked->driver_bytes;
    room.largest_bytes = own.longest_bytes > ungrown_bytes ? own.longest_bytes : ungrown_bytes;
    room.elsewhere_bytes = others.longest_bytes;
    room.elsewhere_stream = others.longest_stream;
    take_holes(&room, p);
    chooser o = {may_go, context, room.needed_bytes, asked->stream};
    room.window = heap_cheapest_window(p, room.needed_bytes, may_be_in_window, &o);
    return room;
}
