// SPDX-License-Identifier: Apache-2.0
// A set of bytes as sorted spans; spans that touch are one. First fit packs without gaps, so a set that many buffers
// went into is usually one span or a few.
#ifndef MEMORY_SPANS_H
#define MEMORY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct span {
    uint64_t begin, end; // half-open
} span;

// Starts zeroed. By address; consecutive spans have a gap between them.
typedef struct spans {
    VEC(span) list;
} spans;

void spans_deinit(spans *s);
// Adds [begin, end), begin < end; false when host memory is short, and nothing has changed.
bool spans_add(spans *s, uint64_t begin, uint64_t end);
// Index of the first span at or behind `from` that ends behind `address`; list.count when there is none.
uint32_t spans_behind(const spans *s, uint32_t from, uint64_t address);

#endif
