// SPDX-License-Identifier: Apache-2.0
#include "memory/pack_niche.h"

#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"

enum { MANY_ITEMS = 512 };

bool pack_niches_init(pack_niches *n, const pack_state *s)
{
    *n = (pack_niches){0};
    n->list = hr_calloc(s->section_count, sizeof *n->list);
    n->niche_of = hr_calloc(s->section_count, sizeof *n->niche_of);
    n->fits = hr_calloc((size_t)s->section_count + 1, sizeof *n->fits);
    n->worth = hr_calloc(s->count, sizeof *n->worth);
    n->answers = hr_calloc(s->count, sizeof *n->answers);
    return n->list != NULL && n->niche_of != NULL && n->fits != NULL && n->worth != NULL &&
           n->answers != NULL;
}

void pack_niches_deinit(pack_niches *n)
{
    hr_free(n->list);
    hr_free(n->niche_of);
    hr_free(n->fits);
    hr_free(n->worth);
    hr_free(n->answers);
}

// ---- style ----------------------------------------------------------------------------------------------------

static double worth_of(const pack_item *i, const pack_style *style)
{
    double room = (double)i->room_bytes, length = i->length;
    return style->tries == PACK_LARGE_FIRST  ? room
           : style->tries == PACK_AREA_FIRST ? room * length
                                             : length + 1e-20 * room;
}

void pack_niches_choose_style(pack_niches *n, const pack_state *s, uint32_t round, uint64_t seed)
{
    static const pack_style styles[PACK_STYLES] = {
        {PACK_AT_MOST_REST, PACK_LARGE_FIRST},
        {PACK_AT_MOST_REST, PACK_LONG_FIRST},
        {PACK_AT_MOST_FAILURES, PACK_AREA_FIRST},
        {PACK_AT_MOST_FAILURES, PACK_LONG_FIRST},
    };
    const double noise = round < PACK_STYLES ? 0 : 0.2;
    n->style = styles[round % PACK_STYLES];
    n->is_hasty = round == 0 && s->count > MANY_ITEMS;
    for (uint32_t k = 0; k < s->count; k++) {
        uint64_t bits = hash64_mix(hash64_mix(seed, round), k);
        double chance = (double)(bits >> 11) * 0x1p-52 - 1; // in [-1, 1)
        n->worth[k] = worth_of(&s->items[k], &n->style) * (1 + noise * chance);
    }
}

// ---- question -------------------------------------------------------------------------------------------------

static void find_niches(pack_niches *n, const pack_state *s, uint32_t begin, uint32_t end)
{
    n->count = 0;
    for (uint32_t from = begin, to; from < end; from = to) {
        uint64_t floor = s->sections[from].floor;
        for (to = from + 1; to < end && s->sections[to].floor == floor; to++) {
        }
        uint64_t left = from == begin ? UINT64_MAX : s->sections[from - 1].floor;
        uint64_t right = to == end ? UINT64_MAX : s->sections[to].floor;
        uint32_t niche = PACK_NONE;
        if (left > floor && right > floor) {
            niche = n->count++;
            n->list[niche] = (pack_niche){from, to, left < right ? left : right, UINT64_MAX};
        }
        for (uint32_t t = from; t < to; t++) {
            n->niche_of[t] = niche;
        }
    }
}

// Of equal items only the first that is left: the others lie above it.
static bool is_answer(const pack_state *s, uint32_t item)
{
    return !s->is_placed[item] && (s->twin[item] == PACK_NONE || s->is_placed[s->twin[item]]);
}

static void count_fits(pack_niches *n, const pack_state *s, uint32_t begin, uint32_t end)
{
    memset(&n->fits[begin], 0, (end - begin + 1) * sizeof *n->fits);
    for (uint32_t k = s->sections[begin].items_before; k < s->sections[end].items_before; k++) {
        const pack_item *i = &s->items[k];
        uint32_t niche = n->niche_of[i->first];
        if (niche == PACK_NONE || i->last >= n->list[niche].end || !is_answer(s, k)) {
            continue;
        }
        pack_niche *in = &n->list[niche];
        in->smallest = i->room_bytes < in->smallest ? i->room_bytes : in->smallest;
        n->fits[i->first]++;
        n->fits[i->last + 1]--; // modulo 2^32; every sum is a real one
    }
}

// Less is asked first.
static double rank_of(const pack_niches *n, const pack_section *at, uint32_t answers)
{
    return n->style.asks == PACK_AT_MOST_REST ? answers - (double)at->rest * 0x1p-64
                                              : answers / (at->failures + 1.0);
}

static bool choose_section(pack_niches *n, pack_state *s, uint32_t begin, uint32_t end, pack_question *q)
{
    double best = 1e300;
    uint32_t fits = 0;
    for (uint32_t t = begin; t < end; t++) {
        pack_section *at = &s->sections[t];
        fits += n->fits[t];
        if (n->niche_of[t] == PACK_NONE) {
            continue;
        }
        const pack_niche *in = &n->list[n->niche_of[t]];
        uint64_t least = in->wall - at->floor < in->smallest ? in->wall - at->floor : in->smallest;
        bool may_lose = least <= s->capacity - at->floor - at->rest;
        if (fits == 0 && !may_lose) {
            at->failures++;
            return false;
        }
        double rank = rank_of(n, at, fits + may_lose);
        if (rank < best) {
            best = rank;
            *q = (pack_question){t, fits, may_lose};
        }
    }
    return true;
}

static void sort_answers(pack_niches *n, const pack_state *s, pack_question *q)
{
    const pack_niche *in = &n->list[n->niche_of[q->section]];
    q->count = 0;
    for (uint32_t k = s->sections[in->begin].items_before; k < s->sections[q->section + 1].items_before;
         k++) {
        if (s->items[k].last < q->section || s->items[k].last >= in->end || !is_answer(s, k)) {
            continue;
        }
        uint32_t at = q->count++;
        for (; at > 0 && n->worth[n->answers[at - 1]] < n->worth[k]; at--) {
            n->answers[at] = n->answers[at - 1];
        }
        n->answers[at] = k;
    }
}

bool pack_niches_ask(pack_niches *n, pack_state *s, uint32_t begin, uint32_t end, pack_question *q)
{
    *q = (pack_question){0};
    find_niches(n, s, begin, end);
    count_fits(n, s, begin, end);
    if (!choose_section(n, s, begin, end, q)) {
        return false;
    }
    sort_answers(n, s, q);
    return true;
}

// ---- a loss ---------------------------------------------------------------------------------------------------

static bool are_alive_together(const pack_item *a, const pack_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

// The lowest end of an item that is not alive in the section, but meets this one: what this one may come to rest on.
static uint64_t lowest_support(const pack_state *s, uint32_t begin, uint32_t item, uint32_t section)
{
    const pack_item *i = &s->items[item];
    uint64_t lowest = UINT64_MAX;
    for (uint32_t k = s->sections[begin].items_before; k < s->sections[i->last + 1].items_before; k++) {
        const pack_item *other = &s->items[k];
        if (!s->is_placed[k] && are_alive_together(i, other) &&
            (other->last < section || other->first > section) && s->low[k] + other->room_bytes < lowest) {
            lowest = s->low[k] + other->room_bytes;
        }
    }
    return lowest;
}

// Above its floor, an item of the section comes to lie at its low when that is higher, or on another item.
uint64_t pack_niches_next_floor(const pack_state *s, uint32_t begin, uint32_t section)
{
    uint64_t floor = s->sections[section].floor, next = UINT64_MAX;
    for (uint32_t k = s->sections[begin].items_before; k < s->sections[section + 1].items_before; k++) {
        if (s->is_placed[k] || s->items[k].last < section || s->low[k] >= next) {
            continue;
        }
        uint64_t at = s->low[k] > floor ? s->low[k] : lowest_support(s, begin, k, section);
        next = at < next ? at : next;
    }
    return next;
}
