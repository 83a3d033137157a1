// SPDX-License-Identifier: Apache-2.0
// First fit in every order that is known to be good at something, then dives of the exact search below one capacity
// after the other: what it finds lowers the height, what it exhausts raises the bound.
#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/pack_exact.h"
#include "memory/pack_state.h"

enum { DIVE_NODES = 300 };

// 192 MiB of changes.
#define CHANGES_MAX (UINT64_C(192) * HR_MIB / sizeof(pack_change))

typedef struct search {
    const pack_goal *goal;
    pack_items items;
    uint64_t *offsets, *trial; // the best, and the one at work
    uint64_t unit_bytes;       // of which every room is a multiple, and so every height worth looking at
    pack_result *result;
    uint64_t nodes_before; // the dive at work
    bool was_stopped;
} search;

static bool is_decided(const search *s)
{
    const pack_result *r = s->result;
    uint64_t capacity_bytes = s->goal->capacity_bytes;
    return r->height_bytes == r->lower_bound_bytes ||
           (capacity_bytes > 0 &&
            (r->height_bytes <= capacity_bytes || r->lower_bound_bytes > capacity_bytes));
}

static bool is_over(search *s)
{
    const pack_goal *g = s->goal;
    s->was_stopped = s->was_stopped || (g->node_limit > 0 && s->result->nodes >= g->node_limit) ||
                     (g->stop != NULL && g->stop(g->stop_context, s->result));
    return s->was_stopped || is_decided(s);
}

// Keeps the packing at work when it is the first or the best.
static void keep(search *s)
{
    uint64_t height_bytes = 0;
    for (uint32_t k = 0; k < s->items.count; k++) {
        const pack_item *i = &s->items.list[k];
        uint64_t end = s->trial[i->id] + i->room_bytes;
        height_bytes = end > height_bytes ? end : height_bytes;
    }
    if (s->result->height_bytes != 0 && height_bytes >= s->result->height_bytes) {
        return;
    }
    s->result->height_bytes = height_bytes;
    for (uint32_t k = 0; k < s->items.count; k++) {
        uint32_t id = s->items.list[k].id;
        s->offsets[id] = s->trial[id];
    }
}

// ---- orders ---------------------------------------------------------------------------------------------------

static bool try_orders(search *s)
{
    for (pack_order order = 0; order < PACK_ORDERS && (order == 0 || !is_over(s)); order++) {
        uint64_t height_bytes = 0;
        pack_items_sort(&s->items, order);
        if (!pack_first_fit(&s->items, s->trial, &height_bytes)) {
            return false;
        }
        s->result->nodes += s->items.count;
        keep(s);
    }
    return true;
}

// ---- dives ----------------------------------------------------------------------------------------------------

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// 1 1 2 1 1 2 4 1 …: Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993.
static uint64_t luby(uint32_t round)
{
    uint64_t n = (uint64_t)round + 1, power = 1;
    while (2 * power - 1 < n) {
        power *= 2;
    }
    while (2 * power - 1 != n) {
        n -= power - 1;
        for (power = 1; 2 * power - 1 < n; power *= 2) {
        }
    }
    return power;
}

// The lowest height that is still open takes turns with the highest that would do and with their middle, and meets
// every style: tight ones are often the easiest to find, loose ones the surest.
static uint64_t capacity_of(const search *s, uint32_t round)
{
    const pack_result *r = s->result;
    uint64_t low = r->lower_bound_bytes, high = r->height_bytes - s->unit_bytes;
    if (s->goal->capacity_bytes > 0) {
        high = s->goal->capacity_bytes / s->unit_bytes * s->unit_bytes;
    }
    uint64_t middle = low + (high - low) / 2 / s->unit_bytes * s->unit_bytes;
    const uint64_t turns[] = {low, high, low, middle};
    return turns[(round + round / PACK_STYLES) % 4];
}

static bool stop_dive(void *context, uint64_t nodes)
{
    search *s = context;
    s->result->nodes = s->nodes_before + nodes;
    return is_over(s);
}

static pack_verdict dive(search *s, pack_exact *e, uint32_t round)
{
    pack_dive d = {.capacity_bytes = capacity_of(s, round),
                   .seed = s->goal->seed,
                   .round = round,
                   .node_limit = (DIVE_NODES + 2 * (uint64_t)s->items.count) * luby(round),
                   .stop = stop_dive,
                   .stop_context = s};
    s->nodes_before = s->result->nodes;
    if (s->goal->node_limit > 0 && s->goal->node_limit - s->nodes_before < d.node_limit) {
        d.node_limit = s->goal->node_limit - s->nodes_before;
    }
    pack_verdict verdict = pack_exact_dive(e, &d);
    s->result->nodes = s->nodes_before + d.nodes;
    if (verdict == PACK_FOUND) {
        pack_exact_read(e, s->trial);
        keep(s);
    } else if (verdict == PACK_EXHAUSTED) {
        s->result->lower_bound_bytes = d.capacity_bytes + s->unit_bytes;
    }
    return verdict;
}

// How many changes the way to a packing takes: of each section in a life, and of each two items that meet.
static bool count_changes(const pack_items *items, uint64_t *changes)
{
    uint32_t *born = hr_calloc((size_t)items->birth_count + 2, sizeof *born); // before the birth
    if (born == NULL) {
        return false;
    }
    for (uint32_t k = 0; k < items->count; k++) {
        born[items->list[k].first + 1]++;
    }
    *changes = 0;
    for (uint32_t t = 1; t <= items->birth_count; t++) {
        *changes += (uint64_t)born[t] * born[t] / 2;
        born[t] += born[t - 1];
    }
    for (uint32_t k = 0; k < items->count; k++) {
        const pack_item *i = &items->list[k];
        *changes += i->last - i->first + 1 + born[i->last + 1] - born[i->first + 1];
    }
    hr_free(born);
    return true;
}

static bool try_dives(search *s)
{
    uint64_t changes = 0;
    if (is_over(s)) {
        return true;
    }
    if (!count_changes(&s->items, &changes)) {
        return false;
    }
    for (uint32_t k = 0; k < s->items.count; k++) {
        s->unit_bytes = common_divisor(s->items.list[k].room_bytes, s->unit_bytes);
    }
    pack_exact *e = changes > CHANGES_MAX ? NULL : pack_exact_create(&s->items);
    pack_verdict verdict = e == NULL && changes <= CHANGES_MAX ? PACK_NO_MEMORY : PACK_STOPPED;
    for (uint32_t round = 0; e != NULL && verdict != PACK_NO_MEMORY && !is_over(s); round++) {
        verdict = dive(s, e, round);
    }
    pack_exact_destroy(e);
    return verdict != PACK_NO_MEMORY;
}

// ---- search ---------------------------------------------------------------------------------------------------

static hr_status run(search *s, uint32_t count, hr_err *err)
{
    s->trial = hr_calloc(count, sizeof *s->trial);
    bool has_room = s->trial != NULL && try_orders(s) && try_dives(s);
    hr_free(s->trial);
    return has_room ? HR_OK : HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", count);
}

hr_status pack_search(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                      const pack_goal *goal, uint64_t *offsets, pack_result *result, hr_err *err)
{
    search s = {.goal = goal, .offsets = offsets, .result = result};
    *result = (pack_result){0};
    for (uint32_t k = 0; k < count; k++) {
        offsets[k] = 0;
    }
    hr_status status = pack_items_init(&s.items, buffers, count, alignment_bytes, err);
    result->lower_bound_bytes = s.items.most_bytes;
    if (status == HR_OK && s.items.count > 0) {
        status = run(&s, count, err);
    }
    pack_items_deinit(&s.items);
    if (status != HR_OK) {
        *result = (pack_result){0};
        return status;
    }
    result->optimal = result->height_bytes == result->lower_bound_bytes;
    return HR_OK;
}
