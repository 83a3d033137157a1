// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include <assert.h>

#include "headroom/units.h"

#define MAPPING_BYTES (2 * HR_MIB) // of every NVIDIA card (cuMemGetAllocationGranularity)

static uint64_t whole(uint64_t bytes, uint64_t granule_bytes)
{
    return (bytes + granule_bytes - 1) & ~(granule_bytes - 1);
}

bool address_space_init(address_space *s, uint64_t capacity_bytes, uint64_t granularity_bytes,
                        uint64_t reservable)
{
    assert(granularity_bytes != 0 && (granularity_bytes & (granularity_bytes - 1)) == 0);
    *s = (address_space){
        .granularity_bytes = granularity_bytes,
        .mapping_bytes = granularity_bytes > MAPPING_BYTES ? granularity_bytes : MAPPING_BYTES,
    };
    const uint64_t most_bytes = INT64_MAX;
    if (capacity_bytes > most_bytes / ADDRESS_SPACE_SLACK - s->mapping_bytes) {
        return false;
    }
    s->capacity_bytes = whole(capacity_bytes, granularity_bytes);
    s->span_bytes = whole(s->capacity_bytes * ADDRESS_SPACE_SLACK, s->mapping_bytes);
    uint64_t left_bytes = (most_bytes - s->span_bytes) & ~(s->mapping_bytes - 1), wanted_bytes;
    bool fits = hr_mul_bytes(whole(capacity_bytes, s->mapping_bytes), reservable, &wanted_bytes);
    s->reservable_bytes = fits && wanted_bytes < left_bytes ? wanted_bytes : left_bytes;
    return true;
}

void address_space_place(address_space *s, uint64_t base)
{
    s->base = base;
    range_tree_init(&s->taken, base, base + s->span_bytes);
    range_tree_init(&s->reserved, base + s->span_bytes, base + address_space_bytes(s));
}

void address_space_deinit(address_space *s)
{
    range_tree_deinit(&s->taken);
    range_tree_deinit(&s->reserved);
}

uint64_t address_space_bytes(const address_space *s)
{
    return s->span_bytes + s->reservable_bytes;
}

static range_node leave(range_tree *ranges, uint64_t address, uint64_t need_bytes)
{
    range_node range = range_tree_leave(ranges, address);
    assert(range.bytes == need_bytes);
    (void)need_bytes; // read by the assertion alone
    return range;
}

uint64_t address_space_take(address_space *s, uint64_t bytes)
{
    if (bytes == 0 || bytes > s->capacity_bytes) {
        return 0;
    }
    uint64_t need_bytes = whole(bytes, s->granularity_bytes);
    if (need_bytes > s->capacity_bytes - s->held_bytes) {
        return 0;
    }
    uint64_t address = range_tree_enter(&s->taken, need_bytes);
    s->held_bytes += address == 0 ? 0 : need_bytes;
    return address;
}

range_node address_space_give_back(address_space *s, uint64_t address, uint64_t bytes)
{
    range_node range = leave(&s->taken, address, whole(bytes, s->granularity_bytes));
    s->held_bytes -= range.bytes;
    return range;
}

uint64_t address_space_reserve(address_space *s, uint64_t bytes)
{
    if (bytes == 0 || bytes > s->reservable_bytes) {
        return 0;
    }
    return range_tree_enter(&s->reserved, whole(bytes, s->mapping_bytes));
}

range_node address_space_release(address_space *s, uint64_t address, uint64_t bytes)
{
    range_node range = leave(&s->reserved, address, whole(bytes, s->mapping_bytes));
    assert(range.mapped_bytes == 0);
    return range;
}

// The reservation around these granules.
static range_node *reservation(address_space *s, uint64_t address, uint64_t bytes)
{
    range_node *r = range_tree_at(&s->reserved, address);
    assert(r != NULL && ((address | bytes) & (s->mapping_bytes - 1)) == 0);
    assert(bytes <= r->bytes - (address - r->address));
    (void)bytes; // read by the assertions alone
    return r;
}

bool address_space_map(address_space *s, uint64_t address, uint64_t bytes)
{
    range_node *r = reservation(s, address, bytes);
    if (bytes > s->capacity_bytes - s->held_bytes) {
        return false;
    }
    assert(bytes <= r->bytes - r->mapped_bytes);
    r->mapped_bytes += bytes;
    s->held_bytes += bytes;
    return true;
}

void address_space_unmap(address_space *s, uint64_t address, uint64_t bytes)
{
    range_node *r = reservation(s, address, bytes);
    assert(bytes <= r->mapped_bytes);
    r->mapped_bytes -= bytes;
    s->held_bytes -= bytes;
}
