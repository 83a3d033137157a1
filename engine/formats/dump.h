// SPDX-License-Identifier: Apache-2.0
// The ways to write down a heap that ran out of memory: as the frameworks do it, one row each.
#ifndef FORMATS_DUMP_H
#define FORMATS_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "events/heap.h"

// What a framework says beside the heap. Zeroed: it says no more than the snapshot does. Texts are borrowed for the call.
typedef struct dump_facts {
    const char *op;           // "conv1"; whose request was refused
    const char *shape;        // "128,30,30,32" of its tensor; NULL: not known
    const char *type;         // in TensorFlow's words: "float"
    uint32_t device;          // 0: the first
    uint64_t device_bytes;    // of the whole card; 0: as much as the limit
    uint64_t outside_bytes;   // of the card, taken by others than the pool: the context
    bool limit_is_fraction;   // the limit is a share of the card that was asked for
    bool growth;              // bfc: the pool grows
    bool expandable_segments; // caching: the setting
} dump_facts;

typedef struct dump_style {
    const char *name; // "tensorflow"
    const char *line; // what it is, for people
    void (*write)(const heap_snapshot *p, const dump_facts *facts,
                  text *out); // out->failed: host memory was short
} dump_style;

extern const dump_style dump_styles[]; // ends with a row without a name

const dump_style *dump_style_find(const char *name); // NULL when there is none

#endif
