// SPDX-License-Identifier: Apache-2.0
// Layer names to layer indices: a hash table, so that a model of many layers is read in linear time.
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct name_slot {
    const char *name; // NULL: empty
    uint32_t index;
} name_slot;

// Starts zeroed. Names are borrowed and must outlive the table.
typedef struct name_table {
    name_slot *slots;
    uint32_t capacity; // 0 or a power of two; at most half full
    uint32_t count;
} name_table;

// False when memory is short; the table is then unchanged. The name must not be in the table yet.
bool name_table_add(name_table *t, const char *name, uint32_t index);
// HR_NO_ID when absent.
uint32_t name_table_find(const name_table *t, const char *name);
void name_table_deinit(name_table *t);

#endif
