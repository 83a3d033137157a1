// SPDX-License-Identifier: Apache-2.0
#include "formats/live_table.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/host_mem.h"

enum { FIRST_CAPACITY = 256 };

static uint32_t home_of(const live_table *t, const live_entry *e)
{
    return (uint32_t)hash64_mix(e->address, e->device) & (t->capacity - 1);
}

// The place of that address' entry, or the empty one where it belongs.
static uint32_t place_of(const live_table *t, const live_entry *wanted)
{
    uint32_t at = home_of(t, wanted);
    while (t->entries[at].address != 0 &&
           (t->entries[at].address != wanted->address || t->entries[at].device != wanted->device)) {
        at = (at + 1) & (t->capacity - 1);
    }
    return at;
}

static bool grow(live_table *t)
{
    live_table larger = {.capacity = t->capacity == 0 ? FIRST_CAPACITY : t->capacity * 2, .count = t->count};
    larger.entries = hr_calloc(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < t->capacity; k++) {
        if (t->entries[k].address != 0) {
            larger.entries[place_of(&larger, &t->entries[k])] = t->entries[k];
        }
    }
    hr_free(t->entries);
    *t = larger;
    return true;
}

bool live_put(live_table *t, const live_entry *entry)
{
    if (2 * (t->count + 1) > t->capacity && !grow(t)) {
        return false;
    }
    live_entry *place = &t->entries[place_of(t, entry)];
    t->count += place->address == 0 ? 1 : 0;
    *place = *entry;
    return true;
}

// Entries behind the hole that would no longer be found move up (Knuth, TAOCP 3, 6.4, algorithm R).
static void close_hole(live_table *t, uint32_t hole)
{
    const uint32_t mask = t->capacity - 1;
    for (uint32_t at = (hole + 1) & mask; t->entries[at].address != 0; at = (at + 1) & mask) {
        if (((at - home_of(t, &t->entries[at])) & mask) >= ((at - hole) & mask)) {
            t->entries[hole] = t->entries[at];
            hole = at;
        }
    }
    t->entries[hole] = (live_entry){0};
}

const live_entry *live_find(const live_table *t, uint8_t device, uint64_t address)
{
    const live_entry wanted = {.address = address, .device = device};
    const live_entry *found = t->count == 0 ? NULL : &t->entries[place_of(t, &wanted)];
    return found == NULL || found->address == 0 ? NULL : found;
}

bool live_take(live_table *t, uint8_t device, uint64_t address, live_entry *out)
{
    if (t->count == 0) {
        return false;
    }
    const live_entry wanted = {.address = address, .device = device};
    const uint32_t at = place_of(t, &wanted);
    if (t->entries[at].address == 0) {
        return false;
    }
    *out = t->entries[at];
    t->count--;
    close_hole(t, at);
    return true;
}

void live_deinit(live_table *t)
{
    hr_free(t->entries);
    *t = (live_table){0};
}
