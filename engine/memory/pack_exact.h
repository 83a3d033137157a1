// SPDX-License-Identifier: Apache-2.0
// Exact search for a packing below a capacity: depth first, most constrained place first, with restarts.
//
//   ▲        ┌────────        A niche is a run of sections on one floor between higher ones. The next thing at a
//   │────┐   │ wall           section of a niche is an item that lies within the niche, at its floor, or a loss. Of
//   │    │ ? │                all sections in niches the one with the fewest answers is asked.
//   │    └───┘ floor
//   └──────────────▶ sections
//
// Only packings are looked for in which the sum of all offsets is the least: nothing can be pushed down, and nothing
// fits into what was lost. One of the lowest packings is of that kind. Sections that no unplaced item connects are
// solved apart (as Moffitt does: "MiniMalloc: A lightweight memory allocator for hardware-accelerated machine
// learning", ASPLOS 2023), and what once failed is remembered by its hash.
#ifndef MEMORY_PACK_EXACT_H
#define MEMORY_PACK_EXACT_H

#include "memory/pack_items.h"

typedef struct pack_exact pack_exact;

typedef enum pack_verdict {
    PACK_FOUND,     // a packing at or below the capacity
    PACK_EXHAUSTED, // there is none
    PACK_STOPPED,   // by the limit of nodes or by `stop`
    PACK_NO_MEMORY
} pack_verdict;

enum { PACK_STYLES = 4 };

// One dive from the empty packing.
typedef struct pack_dive {
    uint64_t capacity_bytes; // at least the largest load
    uint64_t seed;
    uint32_t round;                              // chooses the style, and from which on chance has a say
    uint64_t node_limit;                         // of this dive
    bool (*stop)(void *context, uint64_t nodes); // asked now and then, with the nodes of this dive so far
    void *stop_context;
    uint64_t nodes; // out: items placed and losses taken
} pack_dive;

// Takes what it needs of the items (at least one). NULL when host memory is short.
pack_exact *pack_exact_create(const pack_items *items);
void pack_exact_destroy(pack_exact *e);
// What a dive learns serves the later ones.
pack_verdict pack_exact_dive(pack_exact *e, pack_dive *dive);
// Of the packing that was found: offsets[id] of each item.
void pack_exact_read(const pack_exact *e, uint64_t *offsets);

#endif
