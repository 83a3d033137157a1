// SPDX-License-Identifier: Apache-2.0
#include "memory/pack_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"

// ---- items and sections ---------------------------------------------------------------------------------------

static int by_section(const void *a, const void *b)
{
    const pack_item *left = a, *right = b;
    if (left->first != right->first) {
        return left->first < right->first ? -1 : 1;
    }
    if (left->last != right->last) {
        return left->last < right->last ? -1 : 1;
    }
    if (left->room_bytes != right->room_bytes) {
        return left->room_bytes > right->room_bytes ? -1 : 1;
    }
    return (left->id > right->id) - (left->id < right->id);
}

// From births to sections: the birth that an item sees last is one, its first is the next one.
static void number_sections(pack_state *s, uint32_t *section_of, uint32_t birth_count)
{
    for (uint32_t k = 0; k < s->count; k++) {
        section_of[s->items[k].last] = 1;
    }
    for (uint32_t t = 0; t < birth_count; t++) {
        bool is_section = section_of[t] != 0;
        section_of[t] = s->section_count;
        s->section_count += is_section;
    }
    for (uint32_t k = 0; k < s->count; k++) {
        pack_item *i = &s->items[k];
        i->first = section_of[i->first];
        i->last = section_of[i->last];
        i->length = i->last - i->first + 1;
    }
}

static bool are_equal(const pack_item *a, const pack_item *b)
{
    return a->first == b->first && a->last == b->last && a->room_bytes == b->room_bytes;
}

static void index_items(pack_state *s)
{
    qsort(s->items, s->count, sizeof *s->items, by_section);
    for (uint32_t k = 0; k < s->count; k++) {
        s->keys[k] = hash64_mix(k, 1);
        s->by_low[k] = k;
        s->twin[k] = k > 0 && are_equal(&s->items[k - 1], &s->items[k]) ? k - 1 : PACK_NONE;
    }
    for (uint32_t t = 0, k = 0; t <= s->section_count; t++) {
        for (; k < s->count && s->items[k].first < t; k++) {
        }
        s->sections[t].items_before = k;
    }
}

bool pack_state_init(pack_state *s, const pack_items *items)
{
    *s = (pack_state){.count = items->count};
    s->items = hr_calloc(s->count, sizeof *s->items);
    s->low = hr_calloc(s->count, sizeof *s->low);
    s->offset = hr_calloc(s->count, sizeof *s->offset);
    s->keys = hr_calloc(s->count, sizeof *s->keys);
    s->twin = hr_calloc(s->count, sizeof *s->twin);
    s->by_low = hr_calloc(s->count, sizeof *s->by_low);
    s->is_placed = hr_calloc(s->count, sizeof *s->is_placed);
    uint32_t *section_of = hr_calloc(items->birth_count, sizeof *section_of);
    bool has_room = s->items != NULL && s->low != NULL && s->offset != NULL && s->keys != NULL &&
                    s->twin != NULL && s->by_low != NULL && s->is_placed != NULL && section_of != NULL;
    if (has_room) {
        memcpy(s->items, items->list, s->count * sizeof *s->items);
        number_sections(s, section_of, items->birth_count);
        s->sections = hr_calloc((size_t)s->section_count + 1, sizeof *s->sections);
        s->above = hr_calloc(s->section_count, sizeof *s->above);
        s->next = hr_calloc((size_t)s->section_count + 1, sizeof *s->next);
        has_room = s->sections != NULL && s->above != NULL && s->next != NULL;
    }
    if (has_room) {
        index_items(s);
    }
    hr_free(section_of);
    return has_room;
}

void pack_state_deinit(pack_state *s)
{
    hr_free(s->items);
    hr_free(s->low);
    hr_free(s->offset);
    hr_free(s->keys);
    hr_free(s->twin);
    hr_free(s->by_low);
    hr_free(s->is_placed);
    hr_free(s->sections);
    hr_free(s->above);
    hr_free(s->next);
    vec_deinit(&s->trail);
}

void pack_state_reset(pack_state *s, uint64_t capacity)
{
    s->capacity = capacity;
    s->trail.count = 0;
    for (uint32_t t = 0; t < s->section_count; t++) {
        pack_section *at = &s->sections[t];
        at->floor = at->base = at->rest = 0;
        at->crossing = 0;
    }
    for (uint32_t k = 0; k < s->count; k++) {
        const pack_item *i = &s->items[k];
        s->low[k] = 0;
        s->is_placed[k] = false;
        for (uint32_t t = i->first; t <= i->last; t++) {
            s->sections[t].rest += i->room_bytes;
            s->sections[t].crossing += t < i->last;
        }
    }
}

bool pack_state_reserve(pack_state *s)
{
    return vec_reserve_((void **)&s->trail.data, &s->trail.capacity,
                        s->trail.count + 4 * s->section_count + s->count + 1, sizeof *s->trail.data);
}

// ---- steps ----------------------------------------------------------------------------------------------------

static void note(pack_state *s, pack_change change)
{
    s->trail.data[s->trail.count++] = change;
}

static bool blame(pack_state *s, uint32_t section)
{
    s->sections[section].failures++;
    return false;
}

static void set_floor(pack_state *s, uint32_t section, uint64_t floor, uint64_t base)
{
    pack_section *at = &s->sections[section];
    if (at->floor == at->base) {
        note(s, (pack_change){PACK_FLOOR_AND_BASE, section, at->floor});
    } else {
        note(s, (pack_change){PACK_BASE, section, at->base});
        note(s, (pack_change){PACK_FLOOR, section, at->floor});
    }
    at->floor = floor;
    at->base = base;
}

// The unplaced items that are alive within [first, last] begin at `low` or higher.
static bool lift(pack_state *s, uint32_t first, uint32_t last, uint64_t low)
{
    for (uint32_t k = 0, end = s->sections[last + 1].items_before; k < end; k++) {
        if (s->is_placed[k] || s->items[k].last < first || s->low[k] >= low) {
            continue;
        }
        note(s, (pack_change){PACK_LOW, k, s->low[k]});
        s->low[k] = low;
        if (s->items[k].room_bytes > s->capacity - low) {
            return blame(s, s->items[k].first);
        }
    }
    return true;
}

bool pack_state_place(pack_state *s, uint32_t item)
{
    const pack_item *i = &s->items[item];
    uint64_t end = s->low[item] + i->room_bytes;
    s->offset[item] = s->low[item];
    for (uint32_t t = i->first; t <= i->last; t++) {
        set_floor(s, t, end, end);
        s->sections[t].rest -= i->room_bytes;
        s->sections[t].crossing -= t < i->last;
    }
    s->is_placed[item] = true;
    note(s, (pack_change){PACK_PLACED, item, 0});
    return lift(s, i->first, i->last, end);
}

bool pack_state_raise(pack_state *s, uint32_t section, uint64_t floor)
{
    pack_section *at = &s->sections[section];
    set_floor(s, section, floor, at->base);
    return floor <= s->capacity - at->rest ? lift(s, section, section, floor) : blame(s, section);
}

static void take_back(pack_state *s, uint32_t item)
{
    const pack_item *i = &s->items[item];
    s->is_placed[item] = false;
    for (uint32_t t = i->first; t <= i->last; t++) {
        s->sections[t].rest += i->room_bytes;
        s->sections[t].crossing += t < i->last;
    }
}

void pack_state_undo(pack_state *s, uint32_t trail_count)
{
    while (s->trail.count > trail_count) {
        const pack_change *c = &s->trail.data[--s->trail.count];
        if (c->what == PACK_LOW) {
            s->low[c->index] = c->bytes;
        } else if (c->what == PACK_PLACED) {
            take_back(s, c->index);
        } else {
            pack_section *at = &s->sections[c->index];
            at->floor = c->what == PACK_BASE ? at->floor : c->bytes;
            at->base = c->what == PACK_FLOOR ? at->base : c->bytes;
        }
    }
}

// ---- conclusions ----------------------------------------------------------------------------------------------

// The highest first; almost sorted from the last time.
static void sort_by_low(pack_state *s)
{
    const uint64_t *low = s->low;
    for (uint32_t n = 1; n < s->count; n++) {
        uint32_t item = s->by_low[n], at = n;
        for (; at > 0 && low[s->by_low[at - 1]] < low[item]; at--) {
            s->by_low[at] = s->by_low[at - 1];
        }
        s->by_low[at] = item;
    }
}

// The next section from here on that no lower item has claimed.
static uint32_t unclaimed(uint32_t *next, uint32_t section)
{
    while (next[section] != section) {
        next[section] = next[next[section]];
        section = next[section];
    }
    return section;
}

// The next item above a floor begins at the lowest low that is left: from the lowest up, every item claims the
// sections of its life that are not claimed yet.
static bool raise_floors(pack_state *s, uint32_t begin, uint32_t end)
{
    uint32_t *next = s->next;
    for (uint32_t t = begin; t <= end; t++) {
        next[t] = t;
    }
    for (uint32_t n = s->count; n-- > 0;) {
        uint32_t k = s->by_low[n];
        const pack_item *i = &s->items[k];
        if (s->is_placed[k] || i->first < begin || i->first >= end) {
            continue;
        }
        for (uint32_t t = unclaimed(next, i->first); t <= i->last; t = unclaimed(next, t + 1)) {
            pack_section *at = &s->sections[t];
            next[t] = t + 1;
            if (s->low[k] > at->floor) {
                set_floor(s, t, s->low[k], at->base);
                if (at->floor > s->capacity - at->rest) {
                    return blame(s, t);
                }
            }
        }
    }
    return true;
}

// From the highest low down: with an item come all that begin no lower and are alive with it.
static bool check_heads(pack_state *s, uint32_t begin, uint32_t end)
{
    uint64_t *above = s->above;
    memset(&above[begin], 0, (end - begin) * sizeof *above);
    for (uint32_t n = 0; n < s->count; n++) {
        uint32_t k = s->by_low[n];
        const pack_item *i = &s->items[k];
        if (s->is_placed[k] || i->first < begin || i->first >= end) {
            continue;
        }
        uint64_t most = 0;
        for (uint32_t t = i->first; t <= i->last; t++) {
            above[t] += i->room_bytes;
            most = above[t] > most ? above[t] : most;
        }
        if (most > s->capacity - s->low[k]) {
            return blame(s, i->first);
        }
    }
    return true;
}

bool pack_state_tighten(pack_state *s, uint32_t begin, uint32_t end, bool is_hasty)
{
    sort_by_low(s);
    return raise_floors(s, begin, end) && (is_hasty || check_heads(s, begin, end));
}

// ---- questions ------------------------------------------------------------------------------------------------

bool pack_state_has_hole(const pack_state *s, uint32_t section)
{
    for (uint32_t k = 0; k < s->sections[section + 1].items_before; k++) {
        const pack_item *i = &s->items[k];
        uint64_t base = 0, floor = UINT64_MAX;
        if (s->is_placed[k] || i->last < section) {
            continue;
        }
        for (uint32_t t = i->first; t <= i->last; t++) {
            base = s->sections[t].base > base ? s->sections[t].base : base;
            floor = s->sections[t].floor < floor ? s->sections[t].floor : floor;
        }
        if (base < floor && i->room_bytes <= floor - base) {
            return true;
        }
    }
    return false;
}

uint64_t pack_state_hash(const pack_state *s, uint32_t begin, uint32_t end)
{
    uint64_t hash = hash64_mix(s->capacity, ((uint64_t)begin << 32) + end);
    for (uint32_t t = begin; t < end; t++) {
        hash = hash64_mix(hash, s->sections[t].floor);
        hash = hash64_mix(hash, s->sections[t].base);
    }
    for (uint32_t k = s->sections[begin].items_before; k < s->sections[end].items_before; k++) {
        hash += s->is_placed[k] ? 0 : s->keys[k];
    }
    return hash;
}
