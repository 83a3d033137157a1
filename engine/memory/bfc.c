// SPDX-License-Identifier: Apache-2.0
#include "memory/bfc.h"

#include <assert.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/bfc_impl.h"
#include "memory/counting.h"

#define FIRST_REGION_BYTES (2 * HR_MIB)
#define SPARE_BYTES        (128 * HR_MIB)
#define REQUEST_MAX        (UINT64_C(1) << 61) // beyond any limit; twice as much cannot wrap

// The best fit among what the request may have.
static uint32_t best_fit(const bfc *b, uint64_t rounded_bytes, uint64_t freed_before)
{
    uint32_t id = bins_best_fit(&b->bins, b->chunks.records, rounded_bytes);
    if (freed_before > 0 && b->timestamped) {
        while (id != CHUNK_NONE && b->chunks.records[id].since > freed_before) {
            id = bins_after(&b->bins, b->chunks.records, id);
        }
    }
    return id;
}

// A free chunk of at least `rounded_bytes`; when there is none, the pool grows, then what waits is merged, then
// regions go back.
static hr_status find(bfc *b, uint64_t rounded_bytes, uint64_t freed_before, uint32_t *id)
{
    *id = best_fit(b, rounded_bytes, freed_before);
    if (*id != CHUNK_NONE) {
        return HR_OK;
    }
    hr_status status = bfc_extend(b, rounded_bytes);
    if (status == HR_OOM && freed_before == 0 && bfc_merge_by_force(b, rounded_bytes)) {
        status = HR_OK;
    }
    if (status == HR_OOM && b->garbage_collection && bfc_collect(b, rounded_bytes)) {
        status = bfc_extend(b, rounded_bytes);
    }
    if (status == HR_OK) {
        *id = best_fit(b, rounded_bytes, freed_before);
    }
    return status;
}

// Makes `id` the request's, which is in no bin any longer, and gives back what is too much of it.
static void serve(bfc *b, uint32_t id, const allocator_request *r, uint64_t rounded_bytes)
{
    allocator *a = &b->base;
    uint64_t size_bytes = b->chunks.records[id].size_bytes;
    if (size_bytes >= 2 * rounded_bytes || size_bytes - rounded_bytes >= b->spare_bytes) {
        bfc_split(b, id, rounded_bytes);
    }
    chunk *served = &b->chunks.records[id];
    served->requested_bytes = r->bytes;
    chunk_number(served, ++a->allocation_ids);
    chunk_assign(served, r->stream);
    served->tensor = r->tensor;
    chunks_index(&b->chunks, id);
    count_served(a, served->address, r->bytes, served->size_bytes, r->tensor, r->stream);
}

static hr_status refuse(bfc *b, uint64_t rounded_bytes)
{
    b->base.refusal.rounded_bytes = rounded_bytes;
    return HR_OOM;
}

static hr_status bfc_alloc(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    (void)err; // the caller knows as much
    bfc *b = bfc_of(a);
    a->refusal.driver_bytes = 0;
    if (r->bytes > REQUEST_MAX) {
        return refuse(b, r->bytes);
    }
    if (!chunks_reserve(&b->chunks, 2)) { // a new region's chunk, and the rest of a split
        return HR_NOMEM;
    }
    if (b->timestamped) {
        if (!bfc_reserve_waiting(b)) {
            return HR_NOMEM;
        }
        bfc_merge_safe(b);
    }
    uint64_t rounded_bytes = bfc_round_up(r->bytes);
    uint32_t id;
    hr_status status = find(b, rounded_bytes, r->freed_before, &id);
    if (status != HR_OK) {
        return status == HR_OOM ? refuse(b, rounded_bytes) : status;
    }
    bins_remove(&b->bins, b->chunks.records, id);
    serve(b, id, r, rounded_bytes);
    *address = b->chunks.records[id].address;
    return HR_OK;
}

static void bfc_free(allocator *a, uint64_t address)
{
    bfc *b = bfc_of(a);
    uint32_t id = chunks_unindex(&b->chunks, address);
    assert(id != CHUNK_NONE && "an address that this allocator did not give out");
    if (id == CHUNK_NONE) {
        return;
    }
    chunk *c = &b->chunks.records[id];
    uint64_t requested_bytes = c->requested_bytes, size_bytes = c->size_bytes;
    uint32_t tensor = c->tensor, stream = c->group;
    chunk_number(c, 0);
    if (b->timestamped) {
        bfc_let_wait(b, id);
    } else {
        chunk_set_free(c, a->allocation_ids, 0);
        bins_add(&b->bins, b->chunks.records, bfc_coalesce(b, id, false));
    }
    count_freed(a, address, requested_bytes, size_bytes, tensor, stream);
}

static uint64_t bfc_largest_free(const allocator *a)
{
    const bfc *b = bfc_of_const(a);
    return bins_largest_bytes(&b->bins, b->chunks.records);
}

static uint64_t bfc_next_region(const allocator *a)
{
    return bfc_of_const(a)->next_region_bytes;
}

static heap_chunk seen_chunk(const bfc *b, const bfc_region *r, uint32_t id)
{
    const chunk *c = &b->chunks.records[id];
    bool free = bfc_is_free(c);
    return (heap_chunk){
        .address = c->address,
        .size_bytes = c->size_bytes,
        .requested_bytes = free ? 0 : c->requested_bytes,
        .region_address = r->address,
        .region_bytes = r->bytes,
        .allocation_id = c->allocation_id,
        .since = !free            ? c->allocation_id
                 : b->timestamped ? 0
                                  : c->since,
        .freed_at = free && b->timestamped ? c->since : 0,
        .handle = id,
        .stream = free ? 0 : c->group,
        .tensor = free ? HR_NO_ID : c->tensor,
        .in_use = !free,
    };
}

static void bfc_walk(const allocator *a, heap_visitor visit, void *context)
{
    const bfc *b = bfc_of_const(a);
    for (uint32_t i = 0; i < b->regions.count; i++) {
        const bfc_region *r = &b->regions.data[i];
        for (uint32_t id = r->first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
            heap_chunk seen = seen_chunk(b, r, id);
            if (!visit(context, &seen)) {
                return;
            }
        }
    }
}

// Stamps are absolute, so a heap with timestamps is never twice the same.
static uint64_t hash_of_stamps(const bfc *b, uint64_t hash)
{
    hash = hash64_mix(hash64_mix(hash, b->counter->last), b->safe_frontier);
    for (uint32_t k = 0; k < b->waiting.count; k++) {
        hash = hash64_mix(hash, b->waiting.data[k]);
    }
    return hash;
}

// Chunks tile a region and regions are in order, so sizes alone give every offset; a region's size parts it from the
// next. The next region's size counts only up to the limit.
static uint64_t bfc_hash(const allocator *a)
{
    const bfc *b = bfc_of_const(a);
    uint64_t hash = hash64_mix(b->regions.count, bfc_min(b->next_region_bytes, b->base.counters.limit_bytes));
    for (uint32_t i = 0; i < b->regions.count; i++) {
        hash = hash64_mix(hash, b->regions.data[i].bytes);
        for (uint32_t id = b->regions.data[i].first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
            const chunk *c = &b->chunks.records[id];
            hash = hash64_mix(hash, c->size_bytes | (bfc_is_free(c) ? 0 : 1));
            hash = b->timestamped && bfc_is_free(c) ? hash64_mix(hash, c->since) : hash;
        }
    }
    return b->timestamped ? hash_of_stamps(b, hash) : hash;
}

// AllocatorStats of TensorFlow (tsl/framework/allocator.h), in its order. This allocator reserves nothing for others,
// and has no limit to what could be reserved: bytes_reservable_limit has no value there either.
static void bfc_statistics(const allocator *a, allocator_say say, void *context)
{
    heap_counters c = allocator_get_stats(a);
    say(context, "num_allocs", c.allocations);
    say(context, "bytes_in_use", c.in_use_bytes);
    say(context, "peak_bytes_in_use", c.peak_in_use_bytes);
    say(context, "largest_alloc_size", c.largest_allocation_bytes);
    say(context, "bytes_limit", c.limit_bytes);
    say(context, "bytes_reserved", 0);
    say(context, "peak_bytes_reserved", 0);
    say(context, "largest_free_block_bytes", c.largest_free_bytes);
    say(context, "pool_bytes", c.pool_bytes);
    say(context, "peak_pool_bytes", c.peak_pool_bytes);
    say(context, "peak_allocated_bytes", c.peak_in_use_bytes); // in use + reserved
}

// Says of what still lives that it is gone: the sum of all events is zero.
static void forget_region(bfc *b, const bfc_region *r)
{
    for (uint32_t id = r->first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
        const chunk *c = &b->chunks.records[id];
        if (!bfc_is_free(c)) {
            count_freed(&b->base, c->address, c->requested_bytes, c->size_bytes, c->tensor, c->group);
        }
    }
    b->base.source->give_back(b->base.source->context, r->address, r->bytes);
    count_shrunk(&b->base, r->address, r->bytes);
}

static void bfc_destroy(allocator *a)
{
    bfc *b = bfc_of(a);
    for (uint32_t i = 0; i < b->regions.count; i++) {
        forget_region(b, &b->regions.data[i]);
    }
    vec_deinit(&b->regions);
    vec_deinit(&b->waiting);
    chunks_deinit(&b->chunks);
    hr_free(b);
}

static size_t bfc_metadata(const allocator *a)
{
    const bfc *b = bfc_of_const(a);
    return sizeof *b + chunks_metadata_bytes(&b->chunks) + b->regions.capacity * sizeof *b->regions.data +
           b->waiting.capacity * sizeof *b->waiting.data;
}

static const allocator_ops ops = {
    .name = "bfc",
    .alloc = bfc_alloc,
    .free = bfc_free,
    .largest_free = bfc_largest_free,
    .walk = bfc_walk,
    .hash = bfc_hash,
    .destroy = bfc_destroy,
    .statistics = bfc_statistics,
    .next_region = bfc_next_region,
    .metadata = bfc_metadata,
};

// A rest of nothing is never split off, however small the fraction.
static uint64_t spare_bytes(const allocator_config *config)
{
    if (!(config->fragmentation_fraction > 0)) {
        return SPARE_BYTES;
    }
    uint64_t bytes = (uint64_t)(config->fragmentation_fraction * (double)config->limit_bytes);
    return bytes > 0 ? bytes : 1;
}

hr_status bfc_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                     hr_err *err)
{
    *out = NULL;
    if (source->alignment_bytes % BFC_ROUNDING_BYTES != 0) {
        return HR_FAIL(err, DEVICE,
                       "bfc: needed ranges at multiples of %llu bytes, the device aligns to %llu",
                       (unsigned long long)BFC_ROUNDING_BYTES, (unsigned long long)source->alignment_bytes);
    }
    if (!(config->fragmentation_fraction <= 1)) {
        return HR_FAIL(err, KNOB, "bfc: needed a fragmentation fraction of at most 1, had %g",
                       config->fragmentation_fraction);
    }
    bfc *b = hr_calloc(1, sizeof *b);
    if (b == NULL) {
        return HR_FAIL(err, NOMEM, "bfc: needed %zu bytes for its bookkeeping, had none", sizeof *b);
    }
    b->base = (allocator){.ops = &ops, .source = source, .bus = bus, .merges_late = config->timestamped};
    bins_init(&b->bins);
    b->base.counters.limit_bytes = config->limit_bytes;
    b->next_region_bytes =
        bfc_round_up(config->growth ? bfc_min(config->limit_bytes, FIRST_REGION_BYTES) : config->limit_bytes);
    b->garbage_collection = config->garbage_collection;
    b->spare_bytes = spare_bytes(config);
    b->timestamped = config->timestamped;
    b->counter = &b->own_counter;
    *out = &b->base;
    return HR_OK;
}
