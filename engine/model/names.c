// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing; nothing is ever removed.
#include "model/names.h"

#include <string.h>

#include "headroom/event.h"

#include "base/hash.h"
#include "base/host_mem.h"

enum { FIRST_CAPACITY = 64 };

// The slot that holds `name`, or the empty one where it would go.
static name_slot *slot_of(const name_table *t, const char *name)
{
    uint32_t at = (uint32_t)hash64(name, strlen(name), 0);
    for (;;) {
        name_slot *slot = &t->slots[at & (t->capacity - 1)];
        if (!slot->name || strcmp(slot->name, name) == 0) {
            return slot;
        }
        at++;
    }
}

static bool grow(name_table *t)
{
    name_table larger = {.capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY, .count = t->count};
    larger.slots = hr_calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots) {
        return false;
    }
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->slots[i].name) {
            *slot_of(&larger, t->slots[i].name) = t->slots[i];
        }
    }
    hr_free(t->slots);
    *t = larger;
    return true;
}

bool name_table_add(name_table *t, const char *name, uint32_t index)
{
    if (t->count >= t->capacity / 2 && !grow(t)) {
        return false;
    }
    *slot_of(t, name) = (name_slot){name, index};
    t->count++;
    return true;
}

uint32_t name_table_find(const name_table *t, const char *name)
{
    if (t->capacity == 0) {
        return HR_NO_ID;
    }
    const name_slot *slot = slot_of(t, name);
    return slot->name ? slot->index : HR_NO_ID;
}

void name_table_deinit(name_table *t)
{
    hr_free(t->slots);
    *t = (name_table){0};
}
