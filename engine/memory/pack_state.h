// SPDX-License-Identifier: Apache-2.0
// A packing under construction below a capacity, from the bottom up, with everything that a search asks about it and
// a way back.
//
//   room ▲  ............ capacity        floor   nothing will come below it any more
//        │  ~~ rest ~~                   base    the end of the highest placed item; base to floor is lost
//        │  ┌──┐ floor                   rest    the rooms of the items alive there that are still to be placed
//        │  │  │▒▒▒▒▒┌───┐               low     of an unplaced item: the highest floor in its life
//        │  │  ├─────┤   │ base
//        └──┴──┴─────┴───┴──▶ sections
//
// Sections are the births after which a block dies before the next birth: what is alive at another birth is alive
// at one of these as well, so they see all pairs that meet. Floors and lows only rise until they are undone.
#ifndef MEMORY_PACK_STATE_H
#define MEMORY_PACK_STATE_H

#include <stddef.h>

#include "base/vec.h"
#include "memory/pack_items.h"

// What was before: the low of an item; of a section the floor, the base, or the floor that was also the base.
typedef struct pack_change {
    enum { PACK_LOW, PACK_FLOOR, PACK_BASE, PACK_FLOOR_AND_BASE, PACK_PLACED } what;
    uint32_t index;
    uint64_t bytes;
} pack_change;

typedef struct pack_section {
    uint64_t floor, base, rest; // bytes
    uint32_t crossing;          // unplaced items alive here and in the next section
    uint32_t items_before;      // items that begin in an earlier section
    uint32_t failures;          // contradictions that came to light here, never undone
} pack_section;

typedef struct pack_state {
    pack_item *items; // by first section; first and last are sections
    uint64_t *low, *offset;
    uint64_t *keys;   // random, of each item
    uint32_t *twin;   // an equal item that goes first, or PACK_NONE
    uint32_t *by_low; // items, roughly by low
    bool *is_placed;
    pack_section *sections; // [section_count + 1]
    uint64_t *above;        // [section_count]
    uint32_t *next;         // [section_count + 1]
    uint32_t count, section_count;
    uint64_t capacity;
    VEC(pack_change) trail;
} pack_state;

#define PACK_NONE UINT32_MAX

// Takes what it needs of the items (at least one). False when host memory is short; deinit is due in any case.
HR_MUST_CHECK bool pack_state_init(pack_state *s, const pack_items *items);
void pack_state_deinit(pack_state *s);
// Nothing is placed; failures stay. The capacity is at least the largest load.
void pack_state_reset(pack_state *s, uint64_t capacity);
// Room in the trail for one step of a search: tighten, then place or raise. False when host memory is short.
HR_MUST_CHECK bool pack_state_reserve(pack_state *s);

// The three steps below are false when they meet a contradiction: then they are half done, and to be undone.
// Place an item at its low; all floors in its life are equal.
bool pack_state_place(pack_state *s, uint32_t item);
// Give up what lies between the floor of a section and `floor`.
bool pack_state_raise(pack_state *s, uint32_t section, uint64_t floor);
// Draws conclusions about the sections [begin, end), which nothing unplaced crosses into: floors up to the lowest low
// above them, and, unless in haste, for every item everything that must come at or above its low.
bool pack_state_tighten(pack_state *s, uint32_t begin, uint32_t end, bool is_hasty);
void pack_state_undo(pack_state *s, uint32_t trail_count);

// Whether an unplaced item that is alive in the section would fit into what is lost there.
bool pack_state_has_hole(const pack_state *s, uint32_t section);
// Of everything that decides whether [begin, end) can be completed.
uint64_t pack_state_hash(const pack_state *s, uint32_t begin, uint32_t end);

#endif
