// SPDX-License-Identifier: Apache-2.0
#include "memory/static.h"

#include <assert.h>
#include <inttypes.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "base/host_mem.h"
#include "memory/block.h"
#include "memory/counting.h"

#define ROUNDING_BYTES ((uint64_t)BIN_MIN_BYTES)

// Where a tensor's bytes lie.
typedef struct place {
    uint64_t offset, bytes; // as requested; 0: not planned
} place;

// By tag.
typedef struct layout {
    place *places;
    uint32_t count;
} layout;

typedef struct static_heap {
    allocator base;
    layout resident, *steps;
    uint32_t step_count;
    uint32_t followed; // HR_NO_ID: the resident requests
    bool planned;
    block block; // while pool_bytes > 0
    uint64_t address, resident_bytes;
    uint64_t step_in_use_bytes; // of what is in use
} static_heap;

static static_heap *heap_of(allocator *a)
{
    return (static_heap *)a;
}

static const static_heap *heap_of_const(const allocator *a)
{
    return (const static_heap *)a;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Sums of planned sizes are below 2^63 (pack.h).
static uint64_t round_up(uint64_t bytes)
{
    return (bytes + ROUNDING_BYTES - 1) & ~(ROUNDING_BYTES - 1);
}

// ---- planning -------------------------------------------------------------------------------------------------

static hr_status make_layout(const allocator_requests *r, const uint64_t *offsets, uint64_t base_bytes,
                             layout *out, hr_err *err)
{
    for (uint32_t k = 0; k < r->count; k++) {
        out->count = r->tensors[k] >= out->count ? r->tensors[k] + 1 : out->count;
    }
    out->places = hr_calloc(out->count, sizeof *out->places);
    if (out->count > 0 && out->places == NULL) {
        return HR_FAIL(err, NOMEM, "static allocator: no host memory for the places of %u tensors", r->count);
    }
    for (uint32_t k = 0; k < r->count; k++) {
        place *p = &out->places[r->tensors[k]];
        if (p->bytes != 0) {
            return HR_FAIL(err, CHECK, "static allocator: tensor %u is planned twice", r->tensors[k]);
        }
        *p = (place){base_bytes + offsets[k], r->buffers[k].bytes};
    }
    return HR_OK;
}

// One behind the other: what lives for ever needs no packing.
static hr_status stack_up(const allocator_requests *r, uint64_t *offsets, uint64_t *height_bytes, hr_err *err)
{
    *height_bytes = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        uint64_t padded_bytes = 0;
        offsets[k] = *height_bytes;
        if (!hr_add_bytes(r->buffers[k].bytes, ROUNDING_BYTES - 1, &padded_bytes) ||
            !hr_add_bytes(*height_bytes, padded_bytes & ~(ROUNDING_BYTES - 1), height_bytes) ||
            *height_bytes > INT64_MAX) {
            return HR_FAIL(err, CHECK, "static allocator: the resident tensors need more than 63 bits");
        }
    }
    return HR_OK;
}

static hr_status lay_out(const allocator_requests *r, bool packs, uint64_t base_bytes, layout *out,
                         uint64_t *height_bytes, hr_err *err)
{
    uint64_t *offsets = hr_calloc(r->count, sizeof *offsets);
    if (r->count > 0 && offsets == NULL) {
        return HR_FAIL(err, NOMEM, "static allocator: no host memory to plan %u tensors", r->count);
    }
    hr_status status = packs ? pack_offsets(r->buffers, r->count, ROUNDING_BYTES, offsets, height_bytes, err)
                             : stack_up(r, offsets, height_bytes, err);
    if (status == HR_OK) {
        status = make_layout(r, offsets, base_bytes, out, err);
    }
    hr_free(offsets);
    return status;
}

static hr_status lay_out_all(static_heap *h, const allocator_plan *plan, uint64_t *needed_bytes, hr_err *err)
{
    uint64_t highest_bytes = 0;
    HR_TRY(lay_out(&plan->resident, false, 0, &h->resident, &h->resident_bytes, err));
    h->steps = hr_calloc(plan->step_count, sizeof *h->steps);
    if (plan->step_count > 0 && h->steps == NULL) {
        return HR_FAIL(err, NOMEM, "static allocator: no host memory to plan %u steps", plan->step_count);
    }
    h->step_count = plan->step_count;
    for (uint32_t k = 0; k < plan->step_count; k++) {
        uint64_t height_bytes = 0;
        HR_TRY(lay_out(&plan->steps[k], true, h->resident_bytes, &h->steps[k], &height_bytes, err));
        highest_bytes = max_of(highest_bytes, height_bytes);
    }
    *needed_bytes = h->resident_bytes + highest_bytes;
    return HR_OK;
}

// The region, cut nowhere yet.
static hr_status take_block(static_heap *h, const allocator_plan *plan, uint64_t bytes, hr_err *err)
{
    backing *source = h->base.source;
    uint32_t most = 0;
    if (bytes == 0) {
        return HR_OK;
    }
    if (bytes > h->base.counters.limit_bytes || (h->address = source->take(source->context, bytes)) == 0) {
        return HR_OOM;
    }
    for (uint32_t k = 0; k < plan->step_count; k++) {
        most = plan->steps[k].count > most ? plan->steps[k].count : most;
    }
    if (!block_open(&h->block, h->address, bytes, plan->resident.count + most)) {
        source->give_back(source->context, h->address, bytes);
        return HR_FAIL(err, NOMEM, "static allocator: no host memory to book %u chunks",
                       plan->resident.count + most);
    }
    count_grown(&h->base, h->address, bytes);
    return HR_OK;
}

static void forget_plan(static_heap *h)
{
    for (uint32_t k = 0; k < h->step_count; k++) {
        hr_free(h->steps[k].places);
    }
    hr_free(h->steps);
    hr_free(h->resident.places);
    h->steps = NULL;
    h->resident = (layout){NULL, 0};
    h->step_count = 0;
}

static hr_status static_plan(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes, hr_err *err)
{
    static_heap *h = heap_of(a);
    if (h->planned) {
        return HR_FAIL(err, STATE, "static allocator: has a plan already");
    }
    hr_status status = lay_out_all(h, plan, needed_bytes, err);
    if (status == HR_OK) {
        status = take_block(h, plan, *needed_bytes, err);
    }
    if (status != HR_OK) {
        forget_plan(h);
        return status;
    }
    h->planned = true;
    return HR_OK;
}

static hr_status static_follow(allocator *a, uint32_t step, hr_err *err)
{
    static_heap *h = heap_of(a);
    if (step >= h->step_count) {
        return HR_FAIL(err, STATE, "static allocator: step %u of %u was not planned", step, h->step_count);
    }
    if (h->step_in_use_bytes > 0) {
        return HR_FAIL(err, STATE, "static allocator: the step before holds %" PRIu64 " bytes",
                       h->step_in_use_bytes);
    }
    h->followed = step;
    return HR_OK;
}

// ---- requests -------------------------------------------------------------------------------------------------

static hr_status find_place(const static_heap *h, uint64_t bytes, uint32_t tensor, const place **out,
                            hr_err *err)
{
    const layout *l = h->followed == HR_NO_ID ? &h->resident : &h->steps[h->followed];
    if (!h->planned) {
        return HR_FAIL(err, STATE,
                       "static allocator: tensor %u needs %" PRIu64 " bytes before anything is planned",
                       tensor, bytes);
    }
    uint64_t planned_bytes = tensor < l->count ? l->places[tensor].bytes : 0;
    if (planned_bytes != bytes) {
        return HR_FAIL(err, CHECK,
                       "static allocator: tensor %u needs %" PRIu64 " bytes, %" PRIu64 " are planned for it",
                       tensor, bytes, planned_bytes);
    }
    *out = &l->places[tensor];
    return HR_OK;
}

static bool is_of_step(const static_heap *h, uint64_t address)
{
    return address - h->address >= h->resident_bytes;
}

static hr_status static_alloc(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err)
{
    static_heap *h = heap_of(a);
    const place *p = NULL;
    uint64_t bytes = r->bytes;
    uint32_t tensor = r->tensor;
    HR_TRY(find_place(h, bytes, tensor, &p, err));
    if (!block_reserve(&h->block)) {
        return HR_NOMEM;
    }
    uint32_t id = block_cut(&h->block, h->address + p->offset, round_up(bytes));
    if (id == CHUNK_NONE) {
        return HR_FAIL(err, CHECK,
                       "static allocator: the place of tensor %u, %" PRIu64 " bytes at %" PRIu64
                       ", is not free",
                       tensor, bytes, p->offset);
    }
    chunk *served = &h->block.chunks.records[id];
    served->requested_bytes = bytes;
    chunk_number(served, ++a->allocation_ids);
    chunk_assign(served, r->stream);
    served->tensor = tensor;
    chunks_index(&h->block.chunks, id);
    h->step_in_use_bytes += is_of_step(h, served->address) ? served->size_bytes : 0;
    *address = served->address;
    count_served(a, served->address, bytes, served->size_bytes, tensor, r->stream);
    return HR_OK;
}

static void static_free(allocator *a, uint64_t address)
{
    static_heap *h = heap_of(a);
    uint32_t id = chunks_unindex(&h->block.chunks, address);
    assert(id != CHUNK_NONE && "an address that this allocator did not give out");
    if (id == CHUNK_NONE) {
        return;
    }
    chunk freed = h->block.chunks.records[id];
    h->step_in_use_bytes -= is_of_step(h, address) ? freed.size_bytes : 0;
    chunk_set_free(&h->block.chunks.records[id], a->allocation_ids, 0);
    block_heal(&h->block, id);
    count_freed(a, address, freed.requested_bytes, freed.size_bytes, freed.tensor, freed.group);
}

// ---- what is told ---------------------------------------------------------------------------------------------

static uint64_t static_largest_free(const allocator *a)
{
    const static_heap *h = heap_of_const(a);
    return a->counters.pool_bytes == 0 ? 0 : bins_largest_bytes(&h->block.bins, h->block.chunks.records);
}

static void static_walk(const allocator *a, heap_visitor visit, void *context)
{
    const static_heap *h = heap_of_const(a);
    for (uint32_t id = h->base.counters.pool_bytes == 0 ? CHUNK_NONE : 0; id != CHUNK_NONE;) {
        const chunk *c = &h->block.chunks.records[id];
        bool in_use = c->allocation_id != 0;
        heap_chunk seen = {
            .address = c->address,
            .size_bytes = c->size_bytes,
            .requested_bytes = in_use ? c->requested_bytes : 0,
            .region_address = h->address,
            .region_bytes = h->base.counters.pool_bytes,
            .allocation_id = c->allocation_id,
            .since = in_use ? c->allocation_id : c->since,
            .handle = id,
            .stream = in_use ? c->group : 0,
            .tensor = in_use ? c->tensor : HR_NO_ID,
            .in_use = in_use,
        };
        if (!visit(context, &seen)) {
            return;
        }
        id = c->next;
    }
}

static bool mix_chunk(void *context, const heap_chunk *c)
{
    uint64_t *hash = context;
    *hash = hash64_mix(*hash, c->size_bytes | (c->in_use ? 1 : 0));
    return true;
}

// Of the places only those that are taken: which step is next is said anew before each.
static uint64_t static_hash(const allocator *a)
{
    uint64_t hash = hash64_mix(heap_of_const(a)->planned, a->counters.pool_bytes);
    static_walk(a, mix_chunk, &hash);
    return hash;
}

// Says of what still lives that it is gone: the sum of all events is zero.
static void give_back(static_heap *h)
{
    for (uint32_t id = 0; id != CHUNK_NONE; id = h->block.chunks.records[id].next) {
        const chunk *c = &h->block.chunks.records[id];
        if (c->allocation_id != 0) {
            count_freed(&h->base, c->address, c->requested_bytes, c->size_bytes, c->tensor, c->group);
        }
    }
    uint64_t bytes = h->base.counters.pool_bytes;
    h->base.source->give_back(h->base.source->context, h->address, bytes);
    count_shrunk(&h->base, h->address, bytes);
}

static void static_destroy(allocator *a)
{
    static_heap *h = heap_of(a);
    if (h->base.counters.pool_bytes > 0) {
        give_back(h);
    }
    block_close(&h->block);
    forget_plan(h);
    hr_free(h);
}

static const allocator_ops ops = {
    .name = "static",
    .alloc = static_alloc,
    .free = static_free,
    .largest_free = static_largest_free,
    .walk = static_walk,
    .hash = static_hash,
    .destroy = static_destroy,
    .plan = static_plan,
    .follow = static_follow,
};

hr_status static_create(const allocator_config *config, backing *source, trace_bus *bus, allocator **out,
                        hr_err *err)
{
    *out = NULL;
    if (source->alignment_bytes % ROUNDING_BYTES != 0) {
        return HR_FAIL(err, DEVICE,
                       "static: needed ranges at multiples of %" PRIu64
                       " bytes, the device aligns to %" PRIu64,
                       ROUNDING_BYTES, source->alignment_bytes);
    }
    static_heap *h = hr_calloc(1, sizeof *h);
    if (h == NULL) {
        return HR_FAIL(err, NOMEM, "static: needed %zu bytes for its bookkeeping, had none", sizeof *h);
    }
    h->base = (allocator){.ops = &ops, .source = source, .bus = bus};
    h->base.counters.limit_bytes = config->limit_bytes;
    h->followed = HR_NO_ID;
    *out = &h->base;
    return HR_OK;
}
