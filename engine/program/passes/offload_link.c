// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "program/link.h"

static int by_numbers(uint32_t a, uint32_t b, uint32_t then_a, uint32_t then_b)
{
    return a != b ? (a < b ? -1 : 1) : then_a < then_b ? -1 : then_a > then_b;
}

static int by_last_use(const void *a, const void *b)
{
    const link_copy *x = a, *y = b;
    return by_numbers(x->behind, y->behind, x->id, y->id);
}

static int by_first_use(const void *a, const void *b)
{
    const link_copy *x = a, *y = b;
    return by_numbers(x->before, y->before, x->id, y->id);
}

// The first instruction from `low` to `high` that begins no earlier than `then`; `high` where none does.
static uint32_t first_from(const uint64_t *until, uint32_t low, uint32_t high, uint64_t then)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (until[middle] >= then) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static uint64_t go_out(link_copy *copies, uint32_t count, const uint64_t *until, uint32_t forward_end)
{
    uint64_t free_from = 0;
    qsort(copies, count, sizeof *copies, by_last_use);
    for (uint32_t k = 0; k < count; k++) {
        link_copy *c = &copies[k];
        const uint64_t ready = until[c->behind + 1];
        free_from = (free_from > ready ? free_from : ready) + c->cost;
        c->done = first_from(until, c->behind + 1, forward_end, free_from);
    }
    return free_from > until[forward_end] ? free_from - until[forward_end] : 0;
}

static uint64_t come_back(link_copy *copies, uint32_t count, const uint64_t *until,
                          uint32_t instruction_count, uint32_t forward_end)
{
    uint64_t late = 0, busy_from = until[instruction_count];
    qsort(copies, count, sizeof *copies, by_first_use);
    for (uint32_t k = count; k-- > 0;) {
        link_copy *c = &copies[k];
        const uint64_t end = until[c->before] < busy_from ? until[c->before] : busy_from;
        busy_from = end > c->cost ? end - c->cost : 0;
        late = end < c->cost ? late + c->cost - end : late;
        const uint32_t behind = first_from(until, forward_end, c->before, busy_from + 1);
        c->begin = behind > forward_end ? behind - 1 : forward_end;
    }
    return late + (count > 0 && busy_from < until[forward_end] ? until[forward_end] - busy_from : 0);
}

uint64_t link_schedule(link_copy *copies, uint32_t count, const uint64_t *until, uint32_t instruction_count,
                       uint32_t forward_end)
{
    const uint64_t late = go_out(copies, count, until, forward_end);
    return late + come_back(copies, count, until, instruction_count, forward_end);
}
