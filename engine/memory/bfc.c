// SPDX-License-Identifier: Apache-2.0
#include "memory/bfc.h"

#include <assert.h>
#include <string.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "base/vec.h"
#include "memory/bins.h"
#include "memory/chunks.h"
#include "memory/counting.h"

#define ROUNDING_BYTES     ((uint64_t)BIN_MIN_BYTES)
#define FIRST_REGION_BYTES (2 * HR_MIB)
#define SPARE_TO_SPLIT     (128 * HR_MIB) // a larger rest is split off even when it is less than the request

// Its first chunk is the same record for the region's whole life: a split keeps the low part in the record, a merge
// the lower record.
typedef struct region {
    uint64_t address, bytes;
    uint32_t first;
} region;

typedef struct bfc {
    allocator base;
    chunks chunks;
    bins bins;
    VEC(region) regions; // by address
    uint64_t next_region_bytes;
    bool garbage_collection;
} bfc;

static bfc *bfc_of(allocator *a)
{
    return (bfc *)a;
}

static const bfc *bfc_of_const(const allocator *a)
{
    return (const bfc *)a;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ROUNDING_BYTES - 1) & ~(ROUNDING_BYTES - 1);
}

static uint64_t round_down(uint64_t bytes)
{
    return bytes & ~(ROUNDING_BYTES - 1);
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_free(const chunk *c)
{
    return c->allocation_id == 0;
}

// ---- chunks ---------------------------------------------------------------------------------------------------

// Cuts `id` to `bytes`; the rest becomes a free chunk behind it.
static void split(bfc *b, uint32_t id, uint64_t bytes)
{
    uint32_t rest_id = chunks_add(&b->chunks);
    chunk *whole = &b->chunks.records[id];
    b->chunks.records[rest_id] = (chunk){
        .address = whole->address + bytes,
        .size_bytes = whole->size_bytes - bytes,
        .prev = id,
        .next = whole->next,
        .since = whole->since,
    };
    if (whole->next != CHUNK_NONE) {
        b->chunks.records[whole->next].prev = rest_id;
    }
    whole->next = rest_id;
    whole->size_bytes = bytes;
    bins_add(&b->bins, b->chunks.records, rest_id);
}

// Joins two neighbours, neither of them in a bin, into the lower record.
static void join(bfc *b, uint32_t low_id, uint32_t high_id)
{
    chunk *low = &b->chunks.records[low_id], *high = &b->chunks.records[high_id];
    low->size_bytes += high->size_bytes;
    low->since = low->since > high->since ? low->since : high->since;
    low->next = high->next;
    if (high->next != CHUNK_NONE) {
        b->chunks.records[high->next].prev = low_id;
    }
    chunks_release(&b->chunks, high_id);
}

// Puts a free chunk into its bin, joined with its free neighbours: the next one first, then the previous one.
static void settle(bfc *b, uint32_t id)
{
    chunk *records = b->chunks.records;
    uint32_t next = records[id].next, prev = records[id].prev;
    if (next != CHUNK_NONE && is_free(&records[next])) {
        bins_remove(&b->bins, records, next);
        join(b, id, next);
    }
    if (prev != CHUNK_NONE && is_free(&records[prev])) {
        bins_remove(&b->bins, records, prev);
        join(b, prev, id);
        id = prev;
    }
    bins_add(&b->bins, records, id);
}

// ---- regions --------------------------------------------------------------------------------------------------

// Asks the backing for `bytes`, then for 0.9 of it and so on, but never for less than `least_bytes`. The product is
// in single precision, as TensorFlow's; where rounding up undoes the shrinking, one step of 256 B is taken.
static uint64_t take_backpedalling(bfc *b, uint64_t *bytes, uint64_t least_bytes)
{
    backing *source = b->base.source;
    uint64_t address = source->take(source->context, *bytes);
    while (address == 0) {
        uint64_t fewer = round_up((uint64_t)((float)*bytes * 0.9f));
        *bytes = fewer < *bytes ? fewer : *bytes - ROUNDING_BYTES;
        if (*bytes < least_bytes) {
            return 0;
        }
        address = source->take(source->context, *bytes);
    }
    return address;
}

// Enters the range into the regions, whose last element is room for one. The chunk that now ends right before the
// range when it was joined to an older region, CHUNK_NONE when it is a region of its own.
static uint32_t add_region(bfc *b, uint64_t address, uint64_t bytes, uint32_t chunk_id)
{
    region *regions = b->regions.data;
    uint32_t others = b->regions.count - 1, at = 0;
    while (at < others && regions[at].address < address) {
        at++;
    }
    if (b->base.source->coalesces && at > 0 && regions[at - 1].address + regions[at - 1].bytes == address) {
        regions[at - 1].bytes += bytes;
        b->regions.count--;
        uint32_t last = regions[at - 1].first;
        while (b->chunks.records[last].next != CHUNK_NONE) {
            last = b->chunks.records[last].next;
        }
        return last;
    }
    memmove(&regions[at + 1], &regions[at], (others - at) * sizeof *regions);
    regions[at] = (region){.address = address, .bytes = bytes, .first = chunk_id};
    return CHUNK_NONE;
}

// Grows the pool so that a chunk of `rounded_bytes` is free. OOM when limit or backing do not allow it.
static hr_status extend(bfc *b, uint64_t rounded_bytes)
{
    uint64_t available_bytes = round_down(b->base.counters.limit_bytes - b->base.counters.pool_bytes);
    if (rounded_bytes > available_bytes) {
        return HR_OOM;
    }
    if (vec_push(&b->regions) == NULL) {
        return HR_NOMEM;
    }
    bool raised = false;
    while (rounded_bytes > b->next_region_bytes) {
        b->next_region_bytes *= 2;
        raised = true;
    }
    uint64_t bytes = min_of(b->next_region_bytes, available_bytes);
    uint64_t address = take_backpedalling(b, &bytes, rounded_bytes);
    if (address == 0) {
        b->regions.count--;
        return HR_OOM;
    }
    if (!raised &&
        b->next_region_bytes < b->base.counters.limit_bytes) { // at the limit, more would change nothing
        b->next_region_bytes *= 2;
    }
    uint32_t id = chunks_add(&b->chunks);
    uint32_t before = add_region(b, address, bytes, id);
    b->chunks.records[id] =
        (chunk){.address = address, .size_bytes = bytes, .prev = before, .next = CHUNK_NONE};
    if (before != CHUNK_NONE) {
        b->chunks.records[before].next = id;
    }
    settle(b, id);
    count_grown(&b->base, address, bytes);
    return HR_OK;
}

// Free chunks are always merged, so a wholly free region is one free chunk.
static bool is_wholly_free(const bfc *b, const region *r)
{
    const chunk *first = &b->chunks.records[r->first];
    return is_free(first) && first->next == CHUNK_NONE;
}

static void give_back_region(bfc *b, const region *r)
{
    bins_remove(&b->bins, b->chunks.records, r->first);
    chunks_release(&b->chunks, r->first);
    b->base.source->give_back(b->base.source->context, r->address, r->bytes);
    count_shrunk(&b->base, r->address, r->bytes);
}

// Gives all wholly free regions back when that makes room for `rounded_bytes`; false when it would not.
static bool collect_regions(bfc *b, uint64_t rounded_bytes)
{
    uint64_t free_bytes = 0;
    for (uint32_t i = 0; i < b->regions.count; i++) {
        free_bytes += is_wholly_free(b, &b->regions.data[i]) ? b->regions.data[i].bytes : 0;
    }
    if (free_bytes == 0 ||
        rounded_bytes > b->base.counters.limit_bytes - b->base.counters.pool_bytes + free_bytes) {
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->regions.count; i++) {
        if (is_wholly_free(b, &b->regions.data[i])) {
            give_back_region(b, &b->regions.data[i]);
        } else {
            b->regions.data[kept++] = b->regions.data[i];
        }
    }
    b->regions.count = kept;
    return true;
}

// ---- the interface --------------------------------------------------------------------------------------------

// A free chunk of at least `rounded_bytes`, growing the pool when there is none.
static hr_status find(bfc *b, uint64_t rounded_bytes, uint32_t *id)
{
    *id = bins_best_fit(&b->bins, b->chunks.records, rounded_bytes);
    if (*id != CHUNK_NONE) {
        return HR_OK;
    }
    hr_status status = extend(b, rounded_bytes);
    if (status == HR_OOM && b->garbage_collection && collect_regions(b, rounded_bytes)) {
        status = extend(b, rounded_bytes);
    }
    if (status == HR_OK) {
        *id = bins_best_fit(&b->bins, b->chunks.records, rounded_bytes);
    }
    return status;
}

static hr_status bfc_alloc(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    (void)err; // the caller knows as much
    bfc *b = bfc_of(a);
    if (r->bytes > a->counters.limit_bytes) {
        return HR_OOM;
    }
    if (!chunks_reserve(&b->chunks, 2)) { // a new region's chunk, and the rest of a split
        return HR_NOMEM;
    }
    uint64_t rounded_bytes = round_up(r->bytes);
    uint32_t id;
    HR_TRY(find(b, rounded_bytes, &id));
    bins_remove(&b->bins, b->chunks.records, id);
    uint64_t size_bytes = b->chunks.records[id].size_bytes;
    if (size_bytes >= 2 * rounded_bytes || size_bytes - rounded_bytes >= SPARE_TO_SPLIT) {
        split(b, id, rounded_bytes);
    }
    chunk *served = &b->chunks.records[id];
    served->requested_bytes = r->bytes;
    chunk_number(served, ++a->allocation_ids);
    chunk_assign(served, r->stream);
    served->tensor = r->tensor;
    chunks_index(&b->chunks, id);
    *address = served->address;
    count_served(a, served->address, r->bytes, served->size_bytes, r->tensor, r->stream);
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
    c->since = a->allocation_ids;
    chunk_number(c, 0);
    settle(b, id);
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

static void bfc_walk(const allocator *a, heap_visitor visit, void *context)
{
    const bfc *b = bfc_of_const(a);
    for (uint32_t i = 0; i < b->regions.count; i++) {
        const region *r = &b->regions.data[i];
        for (uint32_t id = r->first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
            const chunk *c = &b->chunks.records[id];
            heap_chunk seen = {
                .address = c->address,
                .size_bytes = c->size_bytes,
                .requested_bytes = is_free(c) ? 0 : c->requested_bytes,
                .region_address = r->address,
                .region_bytes = r->bytes,
                .allocation_id = c->allocation_id,
                .since = is_free(c) ? c->since : c->allocation_id,
                .handle = id,
                .stream = is_free(c) ? 0 : c->group,
                .tensor = is_free(c) ? HR_NO_ID : c->tensor,
                .in_use = !is_free(c),
            };
            if (!visit(context, &seen)) {
                return;
            }
        }
    }
}

// Chunks tile a region and regions are in order, so sizes alone give every offset; a region's size parts it from the
// next. The next region's size counts only up to the limit.
static uint64_t bfc_hash(const allocator *a)
{
    const bfc *b = bfc_of_const(a);
    uint64_t hash = hash64_mix(b->regions.count, min_of(b->next_region_bytes, b->base.counters.limit_bytes));
    for (uint32_t i = 0; i < b->regions.count; i++) {
        hash = hash64_mix(hash, b->regions.data[i].bytes);
        for (uint32_t id = b->regions.data[i].first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
            const chunk *c = &b->chunks.records[id];
            hash = hash64_mix(hash, c->size_bytes | (is_free(c) ? 0 : 1));
        }
    }
    return hash;
}

// Says of what still lives that it is gone: whoever adds up the events ends at nothing.
static void forget_region(bfc *b, const region *r)
{
    for (uint32_t id = r->first; id != CHUNK_NONE; id = b->chunks.records[id].next) {
        const chunk *c = &b->chunks.records[id];
        if (!is_free(c)) {
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
    chunks_deinit(&b->chunks);
    hr_free(b);
}

static size_t bfc_metadata(const allocator *a)
{
    const bfc *b = bfc_of_const(a);
    return sizeof *b + chunks_metadata_bytes(&b->chunks) + b->regions.capacity * sizeof *b->regions.data;
}

static const allocator_ops ops = {
    .name = "bfc",
    .alloc = bfc_alloc,
    .free = bfc_free,
    .largest_free = bfc_largest_free,
    .walk = bfc_walk,
    .hash = bfc_hash,
    .destroy = bfc_destroy,
    .next_region = bfc_next_region,
    .metadata = bfc_metadata,
};

hr_status bfc_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                     hr_err *err)
{
    *out = NULL;
    if (source->alignment_bytes % ROUNDING_BYTES != 0) {
        return HR_FAIL(err, DEVICE,
                       "bfc: needed ranges at multiples of %llu bytes, the device aligns to %llu",
                       (unsigned long long)ROUNDING_BYTES, (unsigned long long)source->alignment_bytes);
    }
    bfc *b = hr_calloc(1, sizeof *b);
    if (b == NULL) {
        return HR_FAIL(err, NOMEM, "bfc: needed %zu bytes for its bookkeeping, had none", sizeof *b);
    }
    b->base = (allocator){.ops = &ops, .source = source, .bus = bus};
    bins_init(&b->bins);
    b->base.counters.limit_bytes = config->limit_bytes;
    b->next_region_bytes =
        round_up(config->growth ? min_of(config->limit_bytes, FIRST_REGION_BYTES) : config->limit_bytes);
    b->garbage_collection = config->garbage_collection;
    *out = &b->base;
    return HR_OK;
}
