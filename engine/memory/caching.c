// SPDX-License-Identifier: Apache-2.0
#include "memory/caching.h"

#include <assert.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/caching_parts.h"
#include "memory/chunk_tree.h"
#include "memory/counting.h"

// ---- serving and freeing --------------------------------------------------------------------------------------

static bool should_split(const caching *c, const caching_request *r, uint64_t left_bytes)
{
    if (r->pool == CACHING_SMALL || c->expands) {
        return left_bytes >= CACHING_BLOCK_BYTES;
    }
    return r->bytes < c->options.max_split_bytes && left_bytes > CACHING_SMALL_BYTES;
}

// Splits what is too much off a block that is in no tree, and counts which free blocks have neighbours now.
static void fit_to_size(caching *c, const caching_request *r, uint32_t block)
{
    const chunk *b = &c->chunks.records[block];
    const bool was_split = caching_is_split(b), counts = !caching_is_expandable(b);
    const uint64_t whole_bytes = b->size_bytes, left_bytes = whole_bytes - r->bytes;
    if (should_split(c, r, left_bytes)) {
        caching_insert(c, caching_cut(c, block, r->bytes, CACHING_LOW));
        if (counts && was_split) {
            caching_lower(&c->stats, CACHING_INACTIVE_SPLIT_BYTES, r->pool, r->bytes);
        } else if (counts) {
            caching_raise(&c->stats, CACHING_INACTIVE_SPLIT_BYTES, r->pool, left_bytes);
            caching_raise(&c->stats, CACHING_INACTIVE_SPLIT, r->pool, 1);
        }
    } else if (counts && was_split) {
        caching_lower(&c->stats, CACHING_INACTIVE_SPLIT_BYTES, r->pool, whole_bytes);
        caching_lower(&c->stats, CACHING_INACTIVE_SPLIT, r->pool, 1);
    }
}

static uint64_t serve(caching *c, const caching_request *r, const allocator_request *asked, uint32_t block)
{
    fit_to_size(c, r, block);
    chunk *b = &c->chunks.records[block];
    const uint64_t address = b->address, size_bytes = b->size_bytes;
    b->requested_bytes = asked->bytes;
    chunk_number(b, ++c->base.allocation_ids);
    caching_set_state(b, CACHING_USED);
    b->tensor = asked->tensor;
    chunks_index(&c->chunks, block);
    caching_raise(&c->stats, CACHING_ALLOCATION, r->pool, 1);
    caching_raise(&c->stats, CACHING_ALLOCATED_BYTES, r->pool, size_bytes);
    caching_raise(&c->stats, CACHING_ACTIVE, r->pool, 1);
    caching_raise(&c->stats, CACHING_ACTIVE_BYTES, r->pool, size_bytes);
    caching_raise(&c->stats, CACHING_REQUESTED_BYTES, r->pool, asked->bytes);
    if (size_bytes >= c->options.max_split_bytes) {
        caching_stat_raise(&c->stats.oversize_allocations, 1);
    }
    count_served(&c->base, address, asked->bytes, size_bytes, asked->tensor, asked->stream);
    return address;
}

static hr_status caching_alloc(allocator *a, const allocator_request *asked, uint64_t *address, hr_err *err)
{
    (void)err; // the caller knows as much
    caching *c = caching_of(a);
    if (asked->bytes >= CACHING_REQUEST_END) {
        a->refusal.rounded_bytes = asked->bytes;
        a->refusal.driver_bytes = 0;
        return HR_OOM;
    }
    caching_request r = {.bytes = caching_round(&c->options, asked->bytes)};
    r.pool = r.bytes <= CACHING_SMALL_BYTES ? CACHING_SMALL : CACHING_LARGE;
    r.segment_bytes = caching_segment_bytes(&c->options, r.bytes);
    HR_TRY(caching_find_queue(c, asked->stream, &r.queue));
    if (!caching_reserve_blocks(c, CACHING_FRESH) || !caching_reserve_segment(c)) {
        return HR_NOMEM;
    }
    uint32_t block = caching_fit(c, &r);
    hr_status status = block == CHUNK_NONE ? caching_climb(c, &r, &block) : HR_OK;
    if (status == HR_OK) {
        *address = serve(c, &r, asked, block);
    } else if (status == HR_OOM) {
        a->refusal.rounded_bytes = r.bytes;
        a->refusal.driver_bytes = r.segment_bytes;
    }
    return status;
}

static void caching_free(allocator *a, uint64_t address)
{
    caching *c = caching_of(a);
    const uint32_t block = chunks_unindex(&c->chunks, address);
    assert(block != CHUNK_NONE && "an address that this allocator did not give out");
    if (block == CHUNK_NONE) {
        return;
    }
    chunk *b = &c->chunks.records[block];
    caching_lower(&c->stats, CACHING_ALLOCATION, caching_pool_of(b), 1);
    caching_lower(&c->stats, CACHING_ALLOCATED_BYTES, caching_pool_of(b), b->size_bytes);
    if (b->size_bytes >= c->options.max_split_bytes) {
        caching_stat_lower(&c->stats.oversize_allocations, 1);
    }
    if ((b->group & CACHING_SHARED) != 0) {
        caching_set_state(b, CACHING_PENDING);
        b->chained = caching_count_uses(c, block);
    } else {
        caching_complete_free(c, block);
    }
}

// Work that was recorded is done; PyTorch would find that out at its next request.
static void caching_synchronise(allocator *a)
{
    caching_settle_events(caching_of(a));
}

// ---- looking at it --------------------------------------------------------------------------------------------

static uint64_t caching_largest_free(const allocator *a)
{
    const caching *c = caching_of_const(a);
    uint64_t largest_bytes = 0;
    for (uint32_t q = 0; q < c->queues.count; q++) {
        for (int pool = 0; pool < CACHING_POOLS; pool++) {
            uint64_t bytes = chunk_tree_largest(c->queues.data[q].free[pool], c->chunks.records);
            largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
        }
    }
    return largest_bytes;
}

// A region of the walk: an ordinary segment, or a run of mapped blocks of an expandable one.
typedef struct run {
    uint64_t address, bytes;
    uint32_t first, behind; // blocks [first, behind)
    heap_region_kind kind;
} run;

// The first run of the segment at or behind `block`; false when there is no more.
static bool next_run(const caching *c, const caching_segment *s, uint32_t block, run *out)
{
    const chunk *records = c->chunks.records;
    while (block != CHUNK_NONE && caching_state_of(&records[block]) == CACHING_UNMAPPED) {
        block = records[block].next;
    }
    if (block == CHUNK_NONE) {
        return false;
    }
    *out = (run){.address = records[block].address, .first = block};
    out->kind = s->expandable                                       ? HEAP_REGION_EXPANDABLE
                : caching_pool_of(&records[block]) == CACHING_SMALL ? HEAP_REGION_SMALL
                                                                    : HEAP_REGION_LARGE;
    while (block != CHUNK_NONE && caching_state_of(&records[block]) != CACHING_UNMAPPED) {
        out->bytes += records[block].size_bytes;
        block = records[block].next;
    }
    out->behind = block;
    return true;
}

static heap_chunk show(const caching *c, const run *region, uint32_t block)
{
    const chunk *b = &c->chunks.records[block];
    const bool is_free = caching_is_free(b);
    return (heap_chunk){
        .address = b->address,
        .size_bytes = b->size_bytes,
        .requested_bytes = is_free ? 0 : b->requested_bytes,
        .region_address = region->address,
        .region_bytes = region->bytes,
        .allocation_id = is_free ? 0 : b->allocation_id,
        .since = is_free ? b->since : b->allocation_id,
        .handle = HR_NO_ID,
        .region_kind = (uint8_t)region->kind,
        .stream = c->queues.data[caching_queue_of(b)].stream,
        .tensor = is_free ? HR_NO_ID : b->tensor,
        .in_use = !is_free,
        .pending = caching_state_of(b) == CACHING_PENDING,
    };
}

static bool walk_run(const caching *c, const run *region, heap_visitor visit, void *context)
{
    for (uint32_t id = region->first; id != region->behind; id = c->chunks.records[id].next) {
        heap_chunk seen = show(c, region, id);
        if (!visit(context, &seen)) {
            return false;
        }
    }
    return true;
}

static void caching_walk(const allocator *a, heap_visitor visit, void *context)
{
    const caching *c = caching_of_const(a);
    for (uint32_t k = 0; k < c->segments.count; k++) {
        const caching_segment *s = &c->segments.data[k];
        run region;
        for (uint32_t id = s->first; next_run(c, s, id, &region); id = region.behind) {
            if (!walk_run(c, &region, visit, context)) {
                return;
            }
        }
    }
}

// Which streams a block waits for, or will: in whatever order they were recorded.
static uint64_t hash_uses(const caching *c, uint32_t block)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < c->uses.count; k++) {
        sum += c->uses.data[k].block == block ? hash64_mix(1, c->uses.data[k].stream) : 0;
    }
    return sum;
}

static uint64_t hash_block(const caching *c, const uint32_t *ranks, uint32_t block, uint64_t hash)
{
    const chunk *b = &c->chunks.records[block];
    hash = hash64_mix(hash, b->size_bytes | caching_state_of(b));
    if ((b->group & CACHING_SHARED) != 0) {
        hash = hash64_mix(hash, hash_uses(c, block));
    }
    if (caching_collects(c) && caching_is_free(b)) {
        hash = hash64_mix(hash, c->searches - b->allocation_id);
    }
    if (c->options.order == CACHING_BY_BLOCK) {
        hash = hash64_mix(hash, ranks != NULL ? ranks[block] : c->numbers.data[block]);
    }
    return hash;
}

static bool is_empty(const caching *c, const caching_segment *s)
{
    const chunk *first = &c->chunks.records[s->first];
    return caching_state_of(first) == CACHING_UNMAPPED && first->next == CHUNK_NONE;
}

// Segments by address, of each its rank, stream, pool and blocks; a reservation with nothing mapped is as good as none.
static uint64_t caching_hash(const allocator *a)
{
    const caching *c = caching_of_const(a);
    uint32_t *ranks = caching_block_ranks(c);
    uint64_t hash = 0;
    for (uint32_t k = 0; k < c->segments.count; k++) {
        const caching_segment *s = &c->segments.data[k];
        const chunk *first = &c->chunks.records[s->first];
        if (is_empty(c, s)) {
            continue;
        }
        hash = hash64_mix(hash, s->bytes | caching_pool_of(first));
        hash = hash64_mix(hash, caching_segment_rank(c, s));
        hash = hash64_mix(hash, c->queues.data[caching_queue_of(first)].stream);
        for (uint32_t id = s->first; id != CHUNK_NONE; id = c->chunks.records[id].next) {
            hash = hash_block(c, ranks, id, hash);
        }
    }
    hr_free(ranks);
    return hash;
}

static void caching_statistics(const allocator *a, allocator_say say, void *context)
{
    const caching *c = caching_of_const(a);
    caching_say_stats(&c->stats, c->options.max_split_bytes, say, context);
}

static size_t caching_metadata(const allocator *a)
{
    const caching *c = caching_of_const(a);
    return sizeof *c + chunks_metadata_bytes(&c->chunks) + c->segments.capacity * sizeof *c->segments.data +
           c->orders.capacity * sizeof *c->orders.data + c->numbers.capacity * sizeof *c->numbers.data +
           c->queues.capacity * sizeof *c->queues.data + c->by_stream.capacity * sizeof *c->by_stream.data +
           c->uses.capacity * sizeof *c->uses.data;
}

const char *caching_notice(const allocator *a)
{
    const caching *c = caching_of_const(a);
    return c->options.expandable_segments && !c->expands
               ? "expandable_segments is on, but this device cannot map memory piece by piece: its segments "
                 "are ordinary ones"
               : NULL;
}

// ---- making and destroying ------------------------------------------------------------------------------------

// Says of what still lives that it is gone: the sum of all events is zero.
static void forget_run(caching *c, const run *region)
{
    for (uint32_t id = region->first; id != region->behind; id = c->chunks.records[id].next) {
        const chunk *b = &c->chunks.records[id];
        if (!caching_is_free(b)) {
            count_freed(&c->base, b->address, b->requested_bytes, b->size_bytes, b->tensor,
                        c->queues.data[caching_queue_of(b)].stream);
        }
    }
}

static void forget_segment(caching *c, const caching_segment *s)
{
    backing *source = c->base.source;
    run region;
    for (uint32_t id = s->first; next_run(c, s, id, &region); id = region.behind) {
        forget_run(c, &region);
        if (s->expandable) {
            source->unmap(source->context, region.address, region.bytes);
        } else {
            source->give_back(source->context, region.address, region.bytes);
        }
        count_shrunk(&c->base, region.address, region.bytes);
    }
    if (s->expandable) {
        source->release(source->context, s->address, s->bytes);
    }
}

static void caching_destroy(allocator *a)
{
    caching *c = caching_of(a);
    for (uint32_t k = 0; k < c->segments.count; k++) {
        forget_segment(c, &c->segments.data[k]);
    }
    vec_deinit(&c->segments);
    vec_deinit(&c->orders);
    vec_deinit(&c->numbers);
    vec_deinit(&c->queues);
    vec_deinit(&c->by_stream);
    vec_deinit(&c->uses);
    chunks_deinit(&c->chunks);
    hr_free(c);
}

static const allocator_ops ops = {
    .name = "caching",
    .alloc = caching_alloc,
    .free = caching_free,
    .largest_free = caching_largest_free,
    .walk = caching_walk,
    .hash = caching_hash,
    .destroy = caching_destroy,
    .synchronise = caching_synchronise,
    .statistics = caching_statistics,
    .metadata = caching_metadata,
};

static hr_status check_source(const allocator_config *config, const backing *source, hr_err *err)
{
    if (source->alignment_bytes % CACHING_BLOCK_BYTES != 0) {
        return HR_FAIL(err, DEVICE,
                       "caching: needed ranges at multiples of %llu bytes, the device aligns to %llu",
                       (unsigned long long)CACHING_BLOCK_BYTES, (unsigned long long)source->alignment_bytes);
    }
    const uint64_t step = source->mapping_bytes;
    const bool expands = config->caching.expandable_segments && step != 0;
    if (expands && (CACHING_SMALL_SEGMENT % step != 0 || config->caching.large_segment_bytes % step != 0)) {
        return HR_FAIL(err, DEVICE,
                       "caching: expandable segments needed handles in multiples of the %llu bytes that the "
                       "device maps at once, had %llu and %llu",
                       (unsigned long long)step, (unsigned long long)CACHING_SMALL_SEGMENT,
                       (unsigned long long)config->caching.large_segment_bytes);
    }
    return HR_OK;
}

hr_status caching_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                         hr_err *err)
{
    *out = NULL;
    HR_TRY(check_source(config, source, err));
    caching *c = hr_calloc(1, sizeof *c);
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "caching: needed %zu bytes for its bookkeeping, had none", sizeof *c);
    }
    c->base = (allocator){.ops = &ops, .source = source, .bus = bus};
    c->base.counters.limit_bytes = config->limit_bytes;
    c->options = config->caching;
    c->expands = config->caching.expandable_segments && source->mapping_bytes != 0;
    c->limited = config->limit_is_fraction;
    c->device_bytes = config->device_bytes != 0 ? config->device_bytes : config->limit_bytes;
    *out = &c->base;
    return HR_OK;
}
