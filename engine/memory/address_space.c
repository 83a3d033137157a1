// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include <assert.h>
#include <string.h>

#include "headroom/units.h"

#define MAPPING_BYTES (2 * HR_MIB) // of every NVIDIA card (cuMemGetAllocationGranularity)

static uint64_t whole(uint64_t bytes, uint64_t granule_bytes)
{
    return (bytes + granule_bytes - 1) & ~(granule_bytes - 1);
}

bool address_space_init(address_space *s, uint64_t capacity_bytes, uint64_t granularity_bytes)
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
    bool fits =
        hr_mul_bytes(whole(capacity_bytes, s->mapping_bytes), ADDRESS_SPACE_RESERVABLE, &wanted_bytes);
    s->reservable_bytes = fits && wanted_bytes < left_bytes ? wanted_bytes : left_bytes;
    return true;
}

void address_space_deinit(address_space *s)
{
    vec_deinit(&s->taken);
    vec_deinit(&s->reserved);
}

uint64_t address_space_bytes(const address_space *s)
{
    return s->span_bytes + s->reservable_bytes;
}

// First fit of whole granules into [low, high); 0 when there is no gap or no host memory.
static uint64_t enter(address_ranges *ranges, uint64_t low, uint64_t high, uint64_t need_bytes)
{
    uint64_t address = low;
    uint32_t at = 0;
    while (at < ranges->count && ranges->data[at].address - address < need_bytes) {
        address = ranges->data[at].address + ranges->data[at].bytes;
        at++;
    }
    if (high - address < need_bytes || vec_push(ranges) == NULL) {
        return 0;
    }
    address_range *slot = &ranges->data[at];
    memmove(slot + 1, slot, (ranges->count - 1 - at) * sizeof *slot);
    *slot = (address_range){.address = address, .bytes = need_bytes};
    return address;
}

// Index of the range that holds `address`; the count when none does.
static uint32_t holder(const address_ranges *ranges, uint64_t address)
{
    uint32_t low = 0, high = ranges->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const address_range *r = &ranges->data[middle];
        if (address >= r->address && address - r->address < r->bytes) {
            return middle;
        }
        if (r->address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return ranges->count;
}

static address_range leave(address_ranges *ranges, uint64_t address, uint64_t need_bytes)
{
    uint32_t at = holder(ranges, address);
    assert(at < ranges->count && ranges->data[at].address == address && ranges->data[at].bytes == need_bytes);
    (void)need_bytes; // read by the assertion alone
    address_range *slot = &ranges->data[at];
    address_range range = *slot;
    memmove(slot, slot + 1, (ranges->count - 1 - at) * sizeof *slot);
    ranges->count--;
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
    uint64_t address = enter(&s->taken, s->base, s->base + s->span_bytes, need_bytes);
    s->held_bytes += address == 0 ? 0 : need_bytes;
    return address;
}

address_range address_space_give_back(address_space *s, uint64_t address, uint64_t bytes)
{
    address_range range = leave(&s->taken, address, whole(bytes, s->granularity_bytes));
    s->held_bytes -= range.bytes;
    return range;
}

uint64_t address_space_reserve(address_space *s, uint64_t bytes)
{
    if (bytes == 0 || bytes > s->reservable_bytes) {
        return 0;
    }
    uint64_t low = s->base + s->span_bytes;
    return enter(&s->reserved, low, low + s->reservable_bytes, whole(bytes, s->mapping_bytes));
}

address_range address_space_release(address_space *s, uint64_t address, uint64_t bytes)
{
    address_range range = leave(&s->reserved, address, whole(bytes, s->mapping_bytes));
    assert(range.mapped_bytes == 0);
    return range;
}

// The reservation around these granules.
static address_range *reservation(address_space *s, uint64_t address, uint64_t bytes)
{
    uint32_t at = holder(&s->reserved, address);
    assert(at < s->reserved.count && ((address | bytes) & (s->mapping_bytes - 1)) == 0);
    address_range *r = &s->reserved.data[at];
    assert(bytes <= r->bytes - (address - r->address));
    (void)bytes; // read by the assertions alone
    return r;
}

bool address_space_map(address_space *s, uint64_t address, uint64_t bytes)
{
    address_range *r = reservation(s, address, bytes);
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
    address_range *r = reservation(s, address, bytes);
    assert(bytes <= r->mapped_bytes);
    r->mapped_bytes -= bytes;
    s->held_bytes -= bytes;
}
