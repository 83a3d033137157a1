// SPDX-License-Identifier: Apache-2.0
// Ways of instructions: rules under falling budgets, and of all that they find what is cheapest at its peak.
#include <string.h>

#include "program/checkpoint_evict.h"
#include "program/evictor.h"

enum { LEVELS = 80, LEVEL = 32, OFFLOADED_MOST = 16 };

// What is tried under each budget: forward leaves some of it to backward, and a value is worth its bytes, or these by the time until it
// is read, or by the root of it. `apart`: a value costs what it alone adds where everything is made again that backward reads, in the
// time of the device; an attention's result is then dearer than its operands. Otherwise it costs what has gone before it, too, in
// operations, which finds lower peaks.
static const struct {
    uint32_t quarters; // of the budget in forward
    evict_worth worth;
    bool apart;
} rules[] = {{4, BY_BYTES, false},     {4, BY_SOME_TIME, false}, {4, BY_TIME, false},
             {3, BY_BYTES, false},     {3, BY_SOME_TIME, false}, {2, BY_BYTES, false},
             {2, BY_SOME_TIME, false}, {1, BY_BYTES, false},     {1, BY_SOME_TIME, false},
             {4, BY_BYTES, true},      {4, BY_SOME_TIME, true},  {3, BY_BYTES, true},
             {3, BY_SOME_TIME, true},  {2, BY_BYTES, true}};

// Keeps the way that was gone, unless there is one as cheap and as low; those that it beats go.
static hr_status add_way(evictor *e, checkpoint_ways *out, hr_err *err)
{
    uint32_t at = 0;
    while (at < out->count && out->way[at].cost < e->spent) {
        at++;
    }
    const bool as_low = at > 0 && out->way[at - 1].peak_bytes <= e->peak_bytes;
    const bool same =
        at < out->count && out->way[at].cost == e->spent && out->way[at].peak_bytes <= e->peak_bytes;
    if (e->spent == 0 || as_low || same) { // that of nothing is the plain step's
        return HR_OK;
    }
    uint32_t kept = at;
    while (kept < out->count && out->way[kept].peak_bytes >= e->peak_bytes) {
        kept++;
    }
    if (out->count - kept + at == CHECKPOINT_WAYS_MOST) {
        return HR_OK;
    }
    checkpoint_way w = {.cost = e->spent,
                        .peak_bytes = e->peak_bytes,
                        .steps = arena_take(&out->memory, e->steps.count, sizeof *w.steps),
                        .step_count = e->steps.count};
    if (w.steps == NULL) {
        return evictor_no_memory(e, err);
    }
    memcpy(w.steps, e->steps.data, e->steps.count * sizeof *w.steps);
    memmove(&out->way[at + 1], &out->way[kept], (out->count - kept) * sizeof *out->way);
    out->count = out->count - kept + at + 1;
    out->way[at] = w;
    return HR_OK;
}

// Under ever smaller budgets, as long as they are about kept. Of what is too much `eighths` are sent.
static hr_status find_by(evictor *e, uint64_t whole_bytes, uint32_t eighths, checkpoint_ways *out,
                         hr_err *err)
{
    bool ends = true;
    uint64_t budget = whole_bytes;
    e->peak_bytes = 0;
    for (uint32_t k = 0; k < LEVELS && ends && e->peak_bytes / 2 < budget; k++) {
        budget -= budget / LEVEL;
        e->budget_bytes = budget;
        e->forward_budget_bytes = budget / 4 * e->quarters;
        evictor_send(e, (whole_bytes - budget) / 8 * eighths);
        HR_TRY(evictor_go_through(e, &ends, err));
        if (ends) {
            HR_TRY(add_way(e, out, err));
        }
    }
    return HR_OK;
}

static hr_status find_by_rules(evictor *e, uint64_t whole_bytes, checkpoint_ways *out, hr_err *err)
{
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        e->quarters = rules[k].quarters;
        e->worth = rules[k].worth;
        e->apart = rules[k].apart;
        evictor_weigh(e, rules[k].apart ? e->cost : e->operations);
        HR_TRY(find_by(e, whole_bytes, 0, out, err));
    }
    return HR_OK;
}

// What is sent is all that is too much, or less, or more; the rest is made again.
static hr_status find_with_sends(evictor *e, uint64_t whole_bytes, checkpoint_ways *out, hr_err *err)
{
    static const uint32_t eighths[] = {4, 6, 8, 10, 12, 16};
    HR_TRY(evictor_find_sends(e, err));
    e->apart = true;
    e->quarters = 4;
    evictor_weigh(e, e->cost);
    for (size_t k = 0; k < sizeof eighths / sizeof *eighths && e->sends.order_count > 0; k++) {
        for (int worth = BY_BYTES; worth <= BY_SOME_TIME; worth++) {
            e->worth = (evict_worth)worth;
            HR_TRY(find_by(e, whole_bytes, eighths[k], out, err));
        }
    }
    return HR_OK;
}

static hr_status find_all(evictor *e, checkpoint_ways *out, hr_err *err)
{
    bool ends;
    evictor_weigh(e, e->cost);
    e->forward_cost = e->until[e->forward_count];
    e->budget_bytes = e->forward_budget_bytes = UINT64_MAX;
    HR_TRY(evictor_go_through(e, &ends, err));
    const uint64_t whole_bytes = e->peak_bytes;
    HR_TRY(find_by_rules(e, whole_bytes, out, err));
    const bool sends = hr_knob_is(e->d->knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on") && !e->d->sends_all;
    return sends ? find_with_sends(e, whole_bytes, out, err) : HR_OK;
}

// Where all activations go to the host, a way is compiled whatever it shows: few are enough then, from the first to the last.
static void thin_out(checkpoint_ways *out)
{
    const uint32_t count = out->count;
    if (count <= OFFLOADED_MOST) {
        return;
    }
    for (uint32_t k = 0; k < OFFLOADED_MOST; k++) {
        out->way[k] = out->way[(count - 1) * k / (OFFLOADED_MOST - 1)];
    }
    out->count = OFFLOADED_MOST;
}

hr_status evictions_find(const draft *d, uint32_t forward_count, const bool *may_drop, uint64_t budget_bytes,
                         checkpoint_ways *out, hr_err *err)
{
    evictor e;
    hr_status status = evictor_init(&e, d, forward_count, may_drop, err);
    if (status == HR_OK) {
        status = find_all(&e, out, err);
    }
    if (d->sends_all) {
        thin_out(out);
    }
    out->at_most_bytes = checkpoint_ways_at_most(d, budget_bytes);
    out->done = true;
    evictor_deinit(&e);
    return status;
}
