// SPDX-License-Identifier: Apache-2.0
#include "memory/direct.h"

#include <assert.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/async.h"
#include "memory/chunks.h"
#include "memory/counting.h"

typedef struct direct {
    allocator base;
    chunks chunks;   // all of them in use
    uint32_t root;   // of the tree by address
    uint64_t origin; // the lowest address so far, for offsets that do not depend on the backing
} direct;

static direct *direct_of(allocator *a)
{
    return (direct *)a;
}

static const direct *direct_of_const(const allocator *a)
{
    return (const direct *)a;
}

// ---- by address -----------------------------------------------------------------------------------------------
// A treap over the records, as in chunk_tree.c, whose children are the links that have no other use here: prev lies
// below, next above.

static uint32_t priority(uint32_t id)
{
    uint32_t mixed = (id + 1) * UINT32_C(0x9E3779B1);
    mixed ^= mixed >> 15;
    return mixed * UINT32_C(0x85EBCA77);
}

static void enter(direct *d, uint32_t id)
{
    chunk *records = d->chunks.records, *added = &records[id];
    uint32_t *link = &d->root;
    while (*link != CHUNK_NONE && priority(*link) > priority(id)) {
        link = added->address < records[*link].address ? &records[*link].prev : &records[*link].next;
    }
    uint32_t under = *link, *below = &added->prev, *above = &added->next;
    *link = id;
    while (under != CHUNK_NONE) {
        chunk *node = &records[under];
        if (node->address < added->address) {
            *below = under;
            below = &node->next;
            under = node->next;
        } else {
            *above = under;
            above = &node->prev;
            under = node->prev;
        }
    }
    *below = *above = CHUNK_NONE;
}

static void leave(direct *d, uint32_t id)
{
    chunk *records = d->chunks.records;
    uint32_t *link = &d->root;
    while (*link != id) {
        link = records[id].address < records[*link].address ? &records[*link].prev : &records[*link].next;
    }
    uint32_t below = records[id].prev, above = records[id].next;
    while (below != CHUNK_NONE && above != CHUNK_NONE) {
        if (priority(below) > priority(above)) {
            *link = below;
            link = &records[below].next;
            below = *link;
        } else {
            *link = above;
            link = &records[above].prev;
            above = *link;
        }
    }
    *link = below != CHUNK_NONE ? below : above;
    chunks_release(&d->chunks, id);
}

// The lowest chunk above `address`: the first of all above 0.
static uint32_t chunk_above(const direct *d, uint64_t address)
{
    uint32_t found = CHUNK_NONE, node = d->root;
    while (node != CHUNK_NONE) {
        bool above = d->chunks.records[node].address > address;
        found = above ? node : found;
        node = above ? d->chunks.records[node].prev : d->chunks.records[node].next;
    }
    return found;
}

// ---- requests -------------------------------------------------------------------------------------------------

// Whole granules; the limit keeps the sum far below the end of 64 bits.
static uint64_t round_up(const direct *d, uint64_t bytes)
{
    uint64_t granularity_bytes = d->base.source->granularity_bytes;
    return (bytes + granularity_bytes - 1) / granularity_bytes * granularity_bytes;
}

static hr_status take(direct *d, const allocator_request *r, uint64_t *size_bytes, uint64_t *address)
{
    const heap_counters *c = &d->base.counters;
    *size_bytes = 0;
    if (r->bytes > c->limit_bytes) {
        return HR_OOM;
    }
    *size_bytes = round_up(d, r->bytes);
    if (*size_bytes > c->limit_bytes - c->pool_bytes) {
        return HR_OOM;
    }
    d->base.refusal.driver_bytes = *size_bytes;
    *address = d->base.source->take(d->base.source->context, *size_bytes);
    return *address == 0 ? HR_OOM : HR_OK;
}

static hr_status direct_alloc(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    (void)err; // the caller knows as much
    direct *d = direct_of(a);
    uint64_t size_bytes = 0;
    if (!chunks_reserve(&d->chunks, 1)) {
        return HR_NOMEM;
    }
    a->refusal.driver_bytes = 0;
    hr_status status = take(d, r, &size_bytes, address);
    if (status != HR_OK) {
        a->refusal.rounded_bytes = size_bytes == 0 ? r->bytes : size_bytes;
        return status;
    }
    d->origin = d->origin == 0 || *address < d->origin ? *address : d->origin;
    uint32_t id = chunks_add(&d->chunks);
    chunk *served = &d->chunks.records[id];
    *served = (chunk){
        .address = *address, .size_bytes = size_bytes, .requested_bytes = r->bytes, .tensor = r->tensor};
    chunk_number(served, ++a->allocation_ids);
    chunk_assign(served, r->stream);
    chunks_index(&d->chunks, id);
    enter(d, id);
    count_grown(a, *address, size_bytes);
    count_served(a, *address, r->bytes, size_bytes, r->tensor, r->stream);
    return HR_OK;
}

static void give_back(direct *d, const chunk *freed)
{
    backing *source = d->base.source;
    count_freed(&d->base, freed->address, freed->requested_bytes, freed->size_bytes, freed->tensor,
                freed->group);
    source->give_back(source->context, freed->address, freed->size_bytes);
    count_shrunk(&d->base, freed->address, freed->size_bytes);
}

static void direct_free(allocator *a, uint64_t address)
{
    direct *d = direct_of(a);
    uint32_t id = chunks_unindex(&d->chunks, address);
    assert(id != CHUNK_NONE && "an address that this allocator did not give out");
    if (id == CHUNK_NONE) {
        return;
    }
    chunk freed = d->chunks.records[id];
    leave(d, id);
    give_back(d, &freed);
}

static uint64_t direct_largest_free(const allocator *a)
{
    (void)a;
    return 0;
}

static void direct_walk(const allocator *a, heap_visitor visit, void *context)
{
    const direct *d = direct_of_const(a);
    for (uint32_t id = chunk_above(d, 0); id != CHUNK_NONE;
         id = chunk_above(d, d->chunks.records[id].address)) {
        const chunk *c = &d->chunks.records[id];
        heap_chunk seen = {
            .address = c->address,
            .size_bytes = c->size_bytes,
            .requested_bytes = c->requested_bytes,
            .region_address = c->address,
            .region_bytes = c->size_bytes,
            .allocation_id = c->allocation_id,
            .since = c->allocation_id,
            .tensor = c->tensor,
            .stream = c->group,
            .handle = id,
            .in_use = true,
        };
        if (!visit(context, &seen)) {
            return;
        }
    }
}

static uint64_t direct_hash(const allocator *a)
{
    const direct *d = direct_of_const(a);
    uint64_t hash = hash64_mix(d->chunks.indexed, d->base.counters.limit_bytes);
    for (uint32_t id = chunk_above(d, 0); id != CHUNK_NONE;
         id = chunk_above(d, d->chunks.records[id].address)) {
        const chunk *c = &d->chunks.records[id];
        hash = hash64_mix(hash64_mix(hash, c->address - d->origin), c->size_bytes);
    }
    return hash;
}

static void direct_destroy(allocator *a)
{
    direct *d = direct_of(a);
    for (uint32_t id = chunk_above(d, 0); id != CHUNK_NONE;
         id = chunk_above(d, d->chunks.records[id].address)) {
        give_back(d, &d->chunks.records[id]);
    }
    chunks_deinit(&d->chunks);
    hr_free(d);
}

static size_t direct_metadata(const allocator *a)
{
    const direct *d = direct_of_const(a);
    return sizeof *d + chunks_metadata_bytes(&d->chunks);
}

static hr_status create(const allocator_ops *ops, const allocator_config *config, backing *source,
                        trace_bus *bus, allocator **out, hr_err *err)
{
    direct *d = hr_calloc(1, sizeof *d);
    *out = NULL;
    if (d == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes for its bookkeeping, had none", ops->name,
                       sizeof *d);
    }
    d->base = (allocator){.ops = ops, .source = source, .bus = bus};
    d->base.counters.limit_bytes = config->limit_bytes;
    d->root = CHUNK_NONE;
    *out = &d->base;
    return HR_OK;
}

hr_status direct_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                        hr_err *err)
{
    static const allocator_ops ops = {
        .name = "direct",
        .alloc = direct_alloc,
        .free = direct_free,
        .largest_free = direct_largest_free,
        .walk = direct_walk,
        .hash = direct_hash,
        .destroy = direct_destroy,
        .metadata = direct_metadata,
    };
    return create(&ops, config, source, bus, out, err);
}

// ---- the driver's own pool --------------------------------------------------------------------------------------

// cudaMemPoolAttr's names. They say nothing on numbers, which have no such pool.
static void pool_statistics(const allocator *a, allocator_say say, void *context)
{
    backing_look seen = {0};
    if (a->source->look != NULL && a->source->look(a->source->context, &seen)) {
        say(context, "reserved_mem_current", seen.reserved_bytes);
        say(context, "reserved_mem_high", seen.reserved_high_bytes);
        say(context, "used_mem_current", seen.used_bytes);
        say(context, "used_mem_high", seen.used_high_bytes);
    }
}

hr_status async_driver_create(const allocator_config *config, backing *source, trace_bus *bus,
                              allocator **out, hr_err *err)
{
    static const allocator_ops ops = {
        .name = "async_driver",
        .alloc = direct_alloc,
        .free = direct_free,
        .largest_free = direct_largest_free,
        .walk = direct_walk,
        .hash = direct_hash,
        .destroy = direct_destroy,
        .statistics = pool_statistics,
        .metadata = direct_metadata,
    };
    if (source->pool == NULL) {
        return async_create(config, source, bus, out, err);
    }
    source->pool->keep(source->pool->context, config->release_threshold_bytes);
    return create(&ops, config, source->pool, bus, out, err);
}
