// SPDX-License-Identifier: Apache-2.0
// First fit in every order that is known to be good at something; the best of them is the answer.
#include <string.h>

#include "base/host_mem.h"
#include "memory/pack_items.h"

typedef struct search {
    const pack_goal *goal;
    pack_items items;
    uint64_t *offsets, *trial; // the best, and the one at work
    pack_result *result;
} search;

static bool is_over(const search *s)
{
    const pack_result *r = s->result;
    const pack_goal *g = s->goal;
    bool decided = g->capacity_bytes == 0
                       ? r->height_bytes == r->lower_bound_bytes
                       : r->height_bytes <= g->capacity_bytes || r->lower_bound_bytes > g->capacity_bytes;
    return decided || (g->node_limit > 0 && r->nodes >= g->node_limit) ||
           (g->stop != NULL && g->stop(g->stop_context, r));
}

static bool try_order(search *s, pack_order order)
{
    uint64_t height_bytes = 0;
    pack_items_sort(&s->items, order);
    if (!pack_first_fit(&s->items, s->trial, &height_bytes)) {
        return false;
    }
    s->result->nodes += s->items.count;
    if (order == 0 || height_bytes < s->result->height_bytes) {
        s->result->height_bytes = height_bytes;
        for (uint32_t k = 0; k < s->items.count; k++) {
            uint32_t id = s->items.list[k].id;
            s->offsets[id] = s->trial[id];
        }
    }
    return true;
}

static hr_status search_orders(search *s, uint32_t count, hr_err *err)
{
    s->trial = hr_calloc(count, sizeof *s->trial);
    bool has_room = s->trial != NULL;
    for (pack_order order = 0; has_room && order < PACK_ORDERS && (order == 0 || !is_over(s)); order++) {
        has_room = try_order(s, order);
    }
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
        status = search_orders(&s, count, err);
    }
    pack_items_deinit(&s.items);
    if (status != HR_OK) {
        *result = (pack_result){0};
        return status;
    }
    result->optimal = result->height_bytes == result->lower_bound_bytes;
    return HR_OK;
}
