// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include <assert.h>
#include <string.h>

static uint64_t whole_granules(const address_space *s, uint64_t bytes)
{
    return (bytes + s->granularity_bytes - 1) & ~(s->granularity_bytes - 1);
}

bool address_space_init(address_space *s, uint64_t capacity_bytes, uint64_t granularity_bytes)
{
    assert(granularity_bytes != 0 && (granularity_bytes & (granularity_bytes - 1)) == 0);
    *s = (address_space){.granularity_bytes = granularity_bytes};
    if (capacity_bytes > (uint64_t)INT64_MAX / ADDRESS_SPACE_SLACK - granularity_bytes) {
        return false;
    }
    s->capacity_bytes = whole_granules(s, capacity_bytes);
    s->span_bytes = s->capacity_bytes * ADDRESS_SPACE_SLACK;
    return true;
}

void address_space_deinit(address_space *s)
{
    vec_deinit(&s->taken);
}

uint64_t address_space_take(address_space *s, uint64_t bytes)
{
    if (bytes == 0 || bytes > s->capacity_bytes) {
        return 0;
    }
    uint64_t need_bytes = whole_granules(s, bytes);
    if (need_bytes > s->capacity_bytes - s->held_bytes) {
        return 0;
    }
    uint64_t address = s->base;
    uint32_t at = 0;
    while (at < s->taken.count && s->taken.data[at].address - address < need_bytes) {
        address = s->taken.data[at].address + s->taken.data[at].bytes;
        at++;
    }
    if (s->base + s->span_bytes - address < need_bytes || vec_push(&s->taken) == NULL) {
        return 0;
    }
    address_range *slot = &s->taken.data[at];
    memmove(slot + 1, slot, (s->taken.count - 1 - at) * sizeof *slot);
    *slot = (address_range){.address = address, .bytes = need_bytes};
    s->held_bytes += need_bytes;
    return address;
}

address_range address_space_give_back(address_space *s, uint64_t address, uint64_t bytes)
{
    uint32_t at = 0;
    while (at < s->taken.count && s->taken.data[at].address != address) {
        at++;
    }
    assert(at < s->taken.count && s->taken.data[at].bytes == whole_granules(s, bytes));
    (void)bytes; // read by the assertion alone
    address_range *slot = &s->taken.data[at];
    address_range range = *slot;
    memmove(slot, slot + 1, (s->taken.count - 1 - at) * sizeof *slot);
    s->taken.count--;
    s->held_bytes -= range.bytes;
    return range;
}
