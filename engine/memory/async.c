// SPDX-License-Identifier: Apache-2.0
#include "memory/async.h"

#include <assert.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/async_impl.h"
#include "memory/counting.h"

#define ROUNDING_BYTES ((uint64_t)BIN_MIN_BYTES)

// The pool's addresses: this many times its limit, so that holes in them are never why a request fails.
enum { MOST_SPREAD = 8, MOST_OWNERS = 1 << 24 };

static async_heap *heap_of(allocator *a)
{
    return (async_heap *)a;
}

static const async_heap *heap_of_const(const allocator *a)
{
    return (const async_heap *)a;
}

// ---- requests -------------------------------------------------------------------------------------------------

// The owner that stands for a stream, made when it is new. NOMEM without change.
static hr_status find_owner(async_heap *h, uint32_t stream, uint32_t *owner)
{
    uint32_t k = 1;
    while (k < h->owners.count && h->owners.data[k].stream != stream) {
        k++;
    }
    *owner = k;
    if (k < h->owners.count) {
        return HR_OK;
    }
    async_owner *added = k == MOST_OWNERS ? NULL : vec_push(&h->owners);
    if (added == NULL) {
        return HR_NOMEM;
    }
    added->stream = stream;
    bins_init(&added->free);
    h->base.merges_late = k > 1; // neighbours of two owners stay apart until they are shared
    return HR_OK;
}

// The better of the best fits among the stream's own chunks and the shared ones.
static uint32_t best_fit(const async_heap *h, uint32_t owner, uint64_t bytes)
{
    const chunk *records = h->chunks.records;
    uint32_t own = bins_best_fit(&h->owners.data[owner].free, records, bytes);
    uint32_t shared = bins_best_fit(&h->owners.data[ASYNC_EVERYBODY].free, records, bytes);
    if (own == CHUNK_NONE || shared == CHUNK_NONE) {
        return own == CHUNK_NONE ? shared : own;
    }
    if (records[own].size_bytes != records[shared].size_bytes) {
        return records[own].size_bytes < records[shared].size_bytes ? own : shared;
    }
    return records[own].address < records[shared].address ? own : shared;
}

// First chunk of a run that serves the request.
static hr_status find(async_heap *h, uint32_t owner, uint64_t bytes, uint32_t *first)
{
    *first = best_fit(h, owner, bytes);
    if (*first == CHUNK_NONE && h->owners.data[ASYNC_EVERYBODY].free.occupied != 0) {
        *first = async_find_run(h, owner, bytes);
    }
    return *first != CHUNK_NONE ? HR_OK : async_grow(h, owner, bytes, first);
}

// Cuts exactly `bytes` off the beginning of a run. What remains stays its owners'.
static void cut_run(async_heap *h, uint32_t first, uint64_t bytes)
{
    async_unshelve(h, first);
    while (h->chunks.records[first].size_bytes < bytes) {
        uint32_t next = h->chunks.records[first].next;
        uint64_t missing_bytes = bytes - h->chunks.records[first].size_bytes;
        async_unshelve(h, next);
        if (h->chunks.records[next].size_bytes > missing_bytes) {
            (void)async_split(h, next, missing_bytes);
        }
        async_join(h, first, next);
    }
    if (h->chunks.records[first].size_bytes > bytes) {
        (void)async_split(h, first, bytes);
    }
}

static void give_to_everybody(async_heap *h)
{
    uint32_t id = h->regions.count == 0 ? CHUNK_NONE : h->regions.data[0].first;
    while (id != CHUNK_NONE) {
        chunk *c = &h->chunks.records[id];
        if (async_is_free(c) && c->group != ASYNC_EVERYBODY) {
            async_unshelve(h, id);
            chunk_assign(c, ASYNC_EVERYBODY);
            id = async_settle(h, id);
        }
        id = h->chunks.records[id].next;
    }
}

static void settle_streams(async_heap *h, uint64_t keep_bytes)
{
    if (h->owners.count > 2) { // the shared ones, and one stream: no other is waiting
        give_to_everybody(h);
    }
    async_trim(h, keep_bytes);
}

static hr_status async_alloc(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    (void)err; // the caller knows as much
    async_heap *h = heap_of(a);
    uint32_t owner = 0, id = CHUNK_NONE;
    a->refusal.driver_bytes = 0;
    a->refusal.rounded_bytes = r->bytes;
    if (r->bytes > a->counters.limit_bytes) {
        return HR_OOM;
    }
    uint64_t bytes = (r->bytes + ROUNDING_BYTES - 1) & ~(ROUNDING_BYTES - 1);
    a->refusal.rounded_bytes = bytes;
    if (!async_reserve(h)) {
        return HR_NOMEM;
    }
    HR_TRY(find_owner(h, r->stream, &owner));
    hr_status status = find(h, owner, bytes, &id);
    if (status == HR_OOM) {
        settle_streams(h, 0);
        status = async_reserve(h) ? find(h, owner, bytes, &id) : HR_NOMEM;
    }
    if (status != HR_OK) {
        return status;
    }
    cut_run(h, id, bytes);
    chunk *served = &h->chunks.records[id];
    served->requested_bytes = r->bytes;
    chunk_number(served, ++a->allocation_ids);
    chunk_assign(served, owner);
    served->tensor = r->tensor;
    chunks_index(&h->chunks, id);
    *address = served->address;
    count_served(a, served->address, r->bytes, bytes, r->tensor, r->stream);
    return HR_OK;
}

static void async_free(allocator *a, uint64_t address)
{
    async_heap *h = heap_of(a);
    uint32_t id = chunks_unindex(&h->chunks, address);
    assert(id != CHUNK_NONE && "an address that this allocator did not give out");
    if (id == CHUNK_NONE) {
        return;
    }
    chunk *c = &h->chunks.records[id];
    chunk freed = *c;
    chunk_set_free(c, a->allocation_ids, 0);
    chunk_number(c, 0);
    (void)async_settle(h, id);
    count_freed(a, address, freed.requested_bytes, freed.size_bytes, freed.tensor,
                h->owners.data[freed.group].stream);
}

static void async_synchronise(allocator *a)
{
    settle_streams(heap_of(a), heap_of(a)->threshold_bytes);
}

// ---- what is told ---------------------------------------------------------------------------------------------

static uint64_t async_largest_free(const allocator *a)
{
    const async_heap *h = heap_of_const(a);
    uint64_t most_bytes = 0;
    for (uint32_t k = 0; k < h->owners.count; k++) {
        uint64_t bytes = bins_largest_bytes(&h->owners.data[k].free, h->chunks.records);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    return most_bytes;
}

static heap_chunk show(const async_heap *h, const async_region *r, uint32_t id)
{
    const chunk *c = &h->chunks.records[id];
    bool is_free = async_is_free(c);
    return (heap_chunk){
        .address = c->address,
        .size_bytes = c->size_bytes,
        .requested_bytes = is_free ? 0 : c->requested_bytes,
        .region_address = r->address,
        .region_bytes = r->bytes,
        .allocation_id = c->allocation_id,
        .since = is_free ? c->since : c->allocation_id,
        .tensor = is_free ? HR_NO_ID : c->tensor,
        .stream = h->owners.data[c->group].stream,
        .handle = id,
        .in_use = !is_free,
        .pending = is_free && c->group != ASYNC_EVERYBODY && h->owners.count > 2,
    };
}

static void async_walk(const allocator *a, heap_visitor visit, void *context)
{
    const async_heap *h = heap_of_const(a);
    for (uint32_t k = 0; k < h->regions.count; k++) {
        const async_region *r = &h->regions.data[k];
        uint32_t stop = k + 1 < h->regions.count ? h->regions.data[k + 1].first : CHUNK_NONE;
        for (uint32_t id = r->first; id != stop; id = h->chunks.records[id].next) {
            heap_chunk seen = show(h, r, id);
            if (!visit(context, &seen)) {
                return;
            }
        }
    }
}

static uint64_t async_hash(const allocator *a)
{
    const async_heap *h = heap_of_const(a);
    uint64_t hash = hash64_mix(h->regions.count, h->owners.count);
    for (uint32_t k = 1; k < h->owners.count; k++) {
        hash = hash64_mix(hash, h->owners.data[k].stream);
    }
    for (uint32_t k = 0; k < h->regions.count; k++) {
        hash = hash64_mix(hash64_mix(hash, h->regions.data[k].address - h->origin), h->regions.data[k].bytes);
    }
    uint32_t id = h->regions.count == 0 ? CHUNK_NONE : h->regions.data[0].first;
    for (; id != CHUNK_NONE; id = h->chunks.records[id].next) {
        const chunk *c = &h->chunks.records[id];
        hash = hash64_mix(hash, c->size_bytes | (async_is_free(c) ? 0 : 1));
        hash = h->owners.count > 2 ? hash64_mix(hash, c->group) : hash;
    }
    return hash;
}

static void async_statistics(const allocator *a, allocator_say say, void *context)
{
    const heap_counters *c = &a->counters;
    say(context, "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD", heap_of_const(a)->threshold_bytes);
    say(context, "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT", c->pool_bytes);
    say(context, "CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH", c->peak_pool_bytes);
    say(context, "CU_MEMPOOL_ATTR_USED_MEM_CURRENT", c->in_use_bytes);
    say(context, "CU_MEMPOOL_ATTR_USED_MEM_HIGH", c->peak_in_use_bytes);
}

static size_t async_metadata(const allocator *a)
{
    const async_heap *h = heap_of_const(a);
    return sizeof *h + chunks_metadata_bytes(&h->chunks) + h->regions.capacity * sizeof *h->regions.data +
           h->owners.capacity * sizeof *h->owners.data;
}

// ---- life -----------------------------------------------------------------------------------------------------

// Says of what still lives that it is gone, and of its pieces.
static void async_destroy(allocator *a)
{
    async_heap *h = heap_of(a);
    backing *source = a->source;
    for (uint32_t id = h->last; id != CHUNK_NONE; id = h->chunks.records[id].prev) {
        const chunk *c = &h->chunks.records[id];
        if (!async_is_free(c)) {
            count_freed(a, c->address, c->requested_bytes, c->size_bytes, c->tensor,
                        h->owners.data[c->group].stream);
        }
    }
    for (uint32_t k = h->regions.count; k-- > 0;) {
        source->unmap(source->context, h->regions.data[k].address, h->regions.data[k].bytes);
        count_shrunk(a, h->regions.data[k].address, h->regions.data[k].bytes);
    }
    if (h->origin != 0) {
        source->release(source->context, h->origin, h->reserved_bytes);
    }
    vec_deinit(&h->regions);
    vec_deinit(&h->owners);
    chunks_deinit(&h->chunks);
    hr_free(h);
}

static const allocator_ops ops = {
    .name = "async",
    .alloc = async_alloc,
    .free = async_free,
    .largest_free = async_largest_free,
    .walk = async_walk,
    .hash = async_hash,
    .destroy = async_destroy,
    .synchronise = async_synchronise,
    .statistics = async_statistics,
    .metadata = async_metadata,
};

// As many addresses as are to be had, up to MOST_SPREAD times the limit in pieces.
static hr_status reserve(async_heap *h, hr_err *err)
{
    backing *source = h->base.source;
    uint64_t limit_bytes = h->base.counters.limit_bytes;
    uint64_t once_bytes = (limit_bytes + h->piece_bytes - 1) / h->piece_bytes * h->piece_bytes;
    for (uint64_t spread = MOST_SPREAD; spread > 0 && h->origin == 0; spread /= 2) {
        h->reserved_bytes = once_bytes * spread;
        h->origin = source->reserve(source->context, h->reserved_bytes);
    }
    char text[HR_BYTES_TEXT_MAX];
    return h->origin != 0 || limit_bytes == 0
               ? HR_OK
               : HR_FAIL(err, DEVICE, "async: needed %s of addresses, the device gave none",
                         hr_bytes_human(once_bytes, text));
}

hr_status async_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                       hr_err *err)
{
    *out = NULL;
    if (source->mapping_bytes == 0) {
        return HR_FAIL(err, DEVICE, "async: needed a device that maps memory, this one does not");
    }
    async_heap *h = hr_calloc(1, sizeof *h);
    if (h == NULL) {
        return HR_FAIL(err, NOMEM, "async: needed %zu bytes for its bookkeeping, had none", sizeof *h);
    }
    h->base = (allocator){.ops = &ops, .source = source, .bus = bus};
    h->base.counters.limit_bytes = config->limit_bytes;
    h->last = CHUNK_NONE;
    h->piece_bytes = source->mapping_bytes;
    h->threshold_bytes = config->release_threshold_bytes;
    uint32_t everybody = 0;
    hr_status status = HR_OK;
    if (vec_push(&h->owners) == NULL) {
        status = HR_FAIL(err, NOMEM, "async: needed host memory for its bookkeeping, had none");
    } else {
        h->owners.data[everybody].stream = 0;
        bins_init(&h->owners.data[everybody].free);
        status = reserve(h, err);
    }
    if (status != HR_OK) {
        async_destroy(&h->base);
        return status;
    }
    *out = &h->base;
    return HR_OK;
}
