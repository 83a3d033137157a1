// SPDX-License-Identifier: Apache-2.0
// What a way of instructions sends to the host instead of making it again: what is dearest to make for its bytes, as far as the link is
// idle between its last use in forward and its first one in backward.
#include <stdlib.h>
#include <string.h>

#include "program/costs.h"
#include "program/evictor.h"

enum { SMALLEST_BYTES = 65536 }; // below this a copy's start costs more than its memory

typedef struct offer {
    uint32_t value;
    double worth; // of a byte
} offer;

static int by_worth(const void *a, const void *b)
{
    const offer *x = a, *y = b;
    if (x->worth > y->worth || x->worth < y->worth) {
        return x->worth > y->worth ? -1 : 1;
    }
    return x->value < y->value ? -1 : x->value > y->value;
}

static uint32_t last_forward_use(const evictor *e, const evict_value *x)
{
    uint32_t last = HR_NO_ID;
    for (uint32_t k = 0; k < x->use_count && e->uses[x->first_use + k] < e->forward_count; k++) {
        last = e->uses[x->first_use + k];
    }
    return last;
}

static bool may_be_sent(const evictor *e, uint32_t v)
{
    const evict_value *x = &e->values[v];
    const tensor *t =
        x->first_tensor == HR_NO_ID ? NULL : &e->d->tensors.data[draft_owner(e->d, x->first_tensor)];
    return t != NULL && x->bytes >= SMALLEST_BYTES && t->category == HR_CATEGORY_ACTIVATIONS && !x->stays &&
           x->asked != HR_NO_ID && last_forward_use(e, x) != HR_NO_ID;
}

static void add_copy(evictor *e, uint32_t v)
{
    const evict_value *x = &e->values[v];
    e->sends.copies[e->sends.count++] = (link_copy){.id = v,
                                                    .behind = last_forward_use(e, x),
                                                    .before = x->asked,
                                                    .cost = copy_cost(e->d->target, x->bytes)};
}

static uint64_t schedule(evictor *e)
{
    return link_schedule(e->sends.copies, e->sends.count, e->until, e->d->instrs.count, e->forward_count);
}

static void take_out(evict_sends *s, uint32_t v)
{
    for (uint32_t k = 0; k < s->count; k++) {
        if (s->copies[k].id == v) {
            s->copies[k] = s->copies[--s->count];
            return;
        }
    }
}

// One after the other, those for which there is room.
static void fill_link(evictor *e, const offer *offers, uint32_t count)
{
    evict_sends *s = &e->sends;
    s->order_count = s->count = 0;
    for (uint32_t k = 0; k < count; k++) {
        add_copy(e, offers[k].value);
        if (schedule(e) == 0) {
            s->order[s->order_count++] = offers[k].value;
        } else {
            take_out(s, offers[k].value);
        }
    }
}

static uint32_t find_offers(evictor *e, offer *offers)
{
    uint32_t count = 0;
    memset(e->there, 0, e->d->tensors.count * sizeof *e->there);
    e->apart = true;
    for (uint32_t v = 0; v < e->value_count; v++) {
        if (may_be_sent(e, v)) {
            const uint64_t cost = e->values[v].droppable ? evict_cost_again(e, v, UINT64_MAX) : UINT64_MAX;
            offers[count++] = (offer){v, (double)cost / (double)e->values[v].bytes};
        }
    }
    qsort(offers, count, sizeof *offers, by_worth);
    return count;
}

hr_status evictor_find_sends(evictor *e, hr_err *err)
{
    const uint32_t instrs = e->d->instrs.count + 1u, values = e->value_count + 1u;
    evict_sends *s = &e->sends;
    offer *offers = hr_calloc(values, sizeof *offers);
    s->order = hr_calloc(values, sizeof *s->order);
    s->copies = hr_calloc(values, sizeof *s->copies);
    s->first_done = hr_calloc(instrs, sizeof *s->first_done);
    s->first_begin = hr_calloc(instrs, sizeof *s->first_begin);
    s->next_done = hr_calloc(values, sizeof *s->next_done);
    s->next_begin = hr_calloc(values, sizeof *s->next_begin);
    const bool there = offers != NULL && s->order != NULL && s->copies != NULL && s->first_done != NULL &&
                       s->first_begin != NULL && s->next_done != NULL && s->next_begin != NULL;
    if (there) {
        evictor_weigh(e, e->cost);
        fill_link(e, offers, find_offers(e, offers));
    }
    hr_free(offers);
    return there ? HR_OK : evictor_no_memory(e, err);
}

void evictor_send(evictor *e, uint64_t bytes)
{
    evict_sends *s = &e->sends;
    uint64_t sum = 0;
    memset(s->sent, 0, e->value_count * sizeof *s->sent);
    s->count = 0;
    for (uint32_t k = 0; k < s->order_count && sum < bytes; k++) {
        s->sent[s->order[k]] = true;
        sum += e->values[s->order[k]].bytes;
        add_copy(e, s->order[k]);
    }
    if (s->count == 0) {
        return;
    }
    (void)schedule(e);
    memset(s->first_done, 0xff, (e->d->instrs.count + 1u) * sizeof *s->first_done);
    memset(s->first_begin, 0xff, (e->d->instrs.count + 1u) * sizeof *s->first_begin);
    for (uint32_t k = 0; k < s->count; k++) {
        const link_copy *c = &s->copies[k];
        s->next_done[c->id] = s->first_done[c->done];
        s->first_done[c->done] = c->id;
        s->next_begin[c->id] = s->first_begin[c->begin];
        s->first_begin[c->begin] = c->id;
    }
}

uint64_t evictor_sends_cost(evictor *e)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < e->sends.count; k++) {
        link_copy *c = &e->sends.copies[k];
        const uint32_t needed = e->states[c->id].needed;
        c->before = needed == HR_NO_ID ? e->values[c->id].asked : needed;
        sum += 2 * c->cost / COPY_PART;
    }
    return e->sends.count == 0 ? 0 : sum + schedule(e);
}
