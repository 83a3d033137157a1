// SPDX-License-Identifier: Apache-2.0
// What lives at which address of which device, for writers that have to know at the release what they were told at the
// allocation. One thread.
#ifndef FORMATS_LIVE_TABLE_H
#define FORMATS_LIVE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct live_entry {
    uint64_t address; // 0: empty
    uint64_t bytes;
    uint64_t id, since; // the owner's
    uint8_t device;
} live_entry;

// Starts zeroed.
typedef struct live_table {
    live_entry *entries; // open addressing, at most half full
    uint32_t capacity, count;
} live_table;

// Puts the entry in, in the place of the one at its address if there is one. False when host memory is short.
bool live_put(live_table *t, const live_entry *entry);
// Takes the entry out; false when nothing lives there.
bool live_take(live_table *t, uint8_t device, uint64_t address, live_entry *out);
// NULL when nothing lives there. Until the next put or take.
const live_entry *live_find(const live_table *t, uint8_t device, uint64_t address);
void live_deinit(live_table *t);

#endif
