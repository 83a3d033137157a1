// SPDX-License-Identifier: Apache-2.0
#include "program/checkpoint_evict.h"

#include <math.h>
#include <string.h>

#include "program/evictor.h"

enum { LEVELS = 80, LEVEL = 32, FORWARDS_MOST = 3, OFFLOADED_MOST = 16 };

typedef enum evict_worth { BY_BYTES, BY_SOME_TIME, BY_TIME } evict_worth;

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

// ---- letting go -------------------------------------------------------------------------------------------------

static void appear(evictor *e, uint32_t v, bool held)
{
    evict_state *s = &e->states[v];
    s->alive = true;
    s->held = held;
    if (e->values[v].droppable) {
        s->place = e->listed_count;
        e->listed[e->listed_count++] = v;
    }
}

// `how`, of a value that can be made again: as the way has it.
static hr_status vanish(evictor *e, uint32_t v, uint32_t how, hr_err *err)
{
    evict_state *s = &e->states[v];
    s->alive = s->held = false;
    e->live_bytes -= e->values[v].bytes;
    if (!e->values[v].droppable) {
        return HR_OK; // it lives on for whoever reads it to run again
    }
    uint32_t *step = vec_push(&e->steps);
    if (step == NULL) {
        return evictor_no_memory(e, err);
    }
    *step = e->values[v].first_tensor | how;
    e->listed[s->place] = e->listed[--e->listed_count];
    e->states[e->listed[s->place]].place = s->place;
    for (uint32_t t = e->values[v].first_tensor; t != HR_NO_ID; t = e->sibling[t]) {
        e->there[t] = false;
    }
    return HR_OK;
}

static uint32_t next_use(const evictor *e, uint32_t v)
{
    const evict_value *x = &e->values[v];
    return e->states[v].passed < x->use_count ? e->uses[x->first_use + e->states[v].passed] : HR_NO_ID;
}

static void look_at(evictor *e, uint32_t n, uint32_t *depth)
{
    if (e->seen[n] != e->looks) {
        e->seen[n] = e->looks;
        e->stack[(*depth)++] = n;
    }
}

// Has what makes operand t to run again, too, so that v is there again?
static bool is_missing(const evictor *e, uint32_t t, uint32_t v)
{
    const uint32_t from = e->value_of[t];
    const bool made_anyway = e->apart && from != HR_NO_ID && e->values[from].asked != HR_NO_ID;
    return from == v || (from != HR_NO_ID && !e->there[t] && !made_anyway);
}

// Of making the value again from what is there but it. More than `most` is as good as any.
static uint64_t cost_again(evictor *e, uint32_t v, uint64_t most)
{
    uint64_t sum = 0;
    uint32_t depth = 0;
    e->looks++;
    for (uint32_t t = e->values[v].first_tensor; t != HR_NO_ID; t = e->sibling[t]) {
        look_at(e, e->writer[t], &depth);
    }
    while (depth > 0 && sum <= most) {
        const uint32_t n = e->stack[--depth];
        const instr *i = &e->d->instrs.data[n];
        sum += e->weight[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            if (is_missing(e, i->in[k], v)) {
                look_at(e, e->writer[i->in[k]], &depth);
            }
        }
    }
    return sum;
}

// The same, or something that is not below `most`. What is let go of makes others dearer: a cost that was found is one at least, until
// something has been made again.
static double cost_below(evictor *e, uint32_t v, double most)
{
    evict_state *s = &e->states[v];
    if (s->known != e->reruns || (double)s->cost < most) {
        s->cost = cost_again(e, v, most < 0x1p62 ? (uint64_t)most : UINT64_MAX);
        s->known = e->reruns;
    }
    return (double)s->cost;
}

// A tape that backward has read from is read to its end.
static bool may_go(const evictor *e, uint32_t v, uint32_t now)
{
    return !e->states[v].held || e->values[v].asked > now;
}

static double worth(const evictor *e, uint32_t v, uint32_t now)
{
    const uint32_t next = next_use(e, v);
    const uint64_t then = e->until[next == HR_NO_ID ? e->d->instrs.count : next];
    const double time = then > e->until[now] ? (double)(then - e->until[now]) : 1;
    return (double)e->values[v].bytes * (e->rule == BY_BYTES ? 1 : e->rule == BY_TIME ? time : sqrt(time));
}

// The value that nobody waits for and costs least for what it is worth; HR_NO_ID: none. `over` is one, too, though the instruction
// that is to run reads it: its result may lie there.
static uint32_t choose(evictor *e, uint32_t now, uint32_t over)
{
    double best = 0;
    uint32_t found = HR_NO_ID;
    for (uint32_t k = 0; k < e->listed_count; k++) {
        const uint32_t v = e->listed[k];
        if ((e->states[v].pending > 0 && v != over) || e->values[v].bytes == 0 || !may_go(e, v, now)) {
            continue;
        }
        const double value = worth(e, v, now);
        const double most = found == HR_NO_ID ? 0x1p62 : best * value;
        const double cost = cost_below(e, v, most);
        if (cost < most) {
            best = cost / value;
            found = v;
        }
    }
    return found;
}

// ---- running ----------------------------------------------------------------------------------------------------

static bool dies(const evictor *e, uint32_t v)
{
    return next_use(e, v) == HR_NO_ID && !e->values[v].stays && !e->states[v].held &&
           e->states[v].pending == 0;
}

// The value over which the instruction could write its result; HR_NO_ID.
static uint32_t find_over(const evictor *e, const instr *i)
{
    const op_row *row = op_row_of(i->op);
    if (!e->in_place || row->in_place < 0 || row->in_place >= i->in_count ||
        i->out_count <= row->in_place_out) {
        return HR_NO_ID;
    }
    const uint32_t from = e->value_of[i->in[row->in_place]], to = e->value_of[i->out[row->in_place_out]];
    const bool fits = from != HR_NO_ID && to != HR_NO_ID && from != to && !e->states[to].alive &&
                      e->values[from].bytes == e->values[to].bytes;
    return fits && e->states[from].pending == 0 ? from : HR_NO_ID;
}

// The instruction has its turn at its own place in the step.
static void pass_uses(const evictor *e, uint32_t n)
{
    const instr *i = &e->d->instrs.data[n];
    for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
        const uint32_t v = e->value_of[evict_operand(i, k)];
        while (v != HR_NO_ID && next_use(e, v) <= n) {
            e->states[v].passed++;
        }
    }
}

static void await(const evictor *e, const instr *i, bool awaited)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        const uint32_t v = e->value_of[i->in[k]];
        if (v != HR_NO_ID) {
            e->states[v].pending += awaited ? 1u : UINT32_MAX;
        }
    }
}

// Bytes of results that have no storage yet.
static uint64_t new_bytes(const evictor *e, const instr *i)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < i->out_count; k++) {
        const uint32_t v = e->value_of[i->out[k]];
        const bool born = v != HR_NO_ID && !e->states[v].alive && evict_is_first(e, i, i->in_count + k);
        sum += born ? e->values[v].bytes : 0;
    }
    return sum;
}

// Makes room for instruction n. *over: the value that its result is written over; HR_NO_ID.
static hr_status make_room(evictor *e, uint32_t n, uint32_t now, uint32_t *over, hr_err *err)
{
    const instr *i = &e->d->instrs.data[n];
    const uint64_t room = now < e->forward_count ? e->forward_budget_bytes : e->budget_bytes;
    await(e, i, false);
    const uint32_t may = find_over(e, i);
    *over = may != HR_NO_ID && dies(e, may) ? may : HR_NO_ID;
    await(e, i, true);
    uint64_t need = new_bytes(e, i) - (*over != HR_NO_ID ? e->values[*over].bytes : 0);
    while (e->live_bytes + need > room) {
        const uint32_t v = choose(e, now, *over == HR_NO_ID ? may : HR_NO_ID);
        if (v == HR_NO_ID) {
            break;
        }
        if (v == may && *over == HR_NO_ID) {
            *over = may;
            need -= e->values[may].bytes;
        } else {
            HR_TRY(vanish(e, v, CHECKPOINT_GOES, err));
        }
    }
    e->live_bytes += need;
    e->peak_bytes = e->live_bytes > e->peak_bytes ? e->live_bytes : e->peak_bytes;
    e->live_bytes += *over != HR_NO_ID ? e->values[*over].bytes : 0;
    return HR_OK;
}

// Runs instruction n while the step is at `now`: again, where that is another one. Its inputs are there.
static hr_status run(evictor *e, uint32_t n, uint32_t now, hr_err *err)
{
    const instr *i = &e->d->instrs.data[n];
    uint32_t over;
    if (n == now) {
        pass_uses(e, n);
    }
    HR_TRY(make_room(e, n, now, &over, err));
    uint32_t *step = vec_push(&e->steps);
    if (step == NULL) {
        return evictor_no_memory(e, err);
    }
    *step = n;
    for (uint32_t k = 0; k < i->out_count; k++) {
        const uint32_t v = e->value_of[i->out[k]];
        if (v != HR_NO_ID && !e->states[v].alive) {
            appear(e, v, n == now && e->values[v].taped);
        }
        e->there[i->out[k]] = true;
    }
    await(e, i, false);
    if (over != HR_NO_ID && !dies(e, over)) {
        HR_TRY(vanish(e, over, CHECKPOINT_GOES, err));
    }
    for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
        const uint32_t v = e->value_of[evict_operand(i, k)];
        if (v != HR_NO_ID && e->states[v].alive && dies(e, v)) {
            HR_TRY(vanish(e, v, CHECKPOINT_ENDS, err));
        }
    }
    return HR_OK;
}

// Runs again what instruction `now` takes and is not there.
static hr_status make_inputs(evictor *e, uint32_t now, hr_err *err)
{
    uint32_t depth = 0, first = HR_NO_ID;
    e->stack[depth++] = now;
    while (depth > 0) {
        const instr *i = &e->d->instrs.data[e->stack[--depth]];
        await(e, i, true);
        for (uint32_t k = 0; k < i->in_count; k++) {
            const uint32_t t = i->in[k], n = e->writer[t];
            if (e->value_of[t] != HR_NO_ID && !e->there[t] && !e->wanted[n]) {
                e->wanted[n] = true;
                first = n < first ? n : first;
                e->stack[depth++] = n;
            }
        }
    }
    for (uint32_t n = first; first != HR_NO_ID && n < e->forward_count; n++) {
        if (e->wanted[n]) {
            e->wanted[n] = false;
            e->spent += e->cost[n];
            e->reruns++;
            HR_TRY(run(e, n, now, err));
        }
    }
    return HR_OK;
}

// An eager tape holds what is read of it to the end of backward: what backward begins with is let go of and made again, beside the
// tape.
static hr_status leave_tape(evictor *e, hr_err *err)
{
    for (uint32_t k = e->listed_count; k-- > 0;) {
        const uint32_t v = e->listed[k];
        if (e->states[v].held && e->values[v].asked == e->forward_count) {
            HR_TRY(vanish(e, v, CHECKPOINT_GOES, err));
        }
    }
    return HR_OK;
}

// *ends: at a price that is worth knowing.
static hr_status go_through(evictor *e, bool *ends, hr_err *err)
{
    const uint64_t most = FORWARDS_MOST * e->forward_cost;
    e->live_bytes = e->peak_bytes = e->spent = 0;
    e->steps.count = e->listed_count = 0;
    e->reruns = 1;
    memset(e->states, 0, e->value_count * sizeof *e->states);
    memset(e->there, 0, e->d->tensors.count * sizeof *e->there);
    for (uint32_t n = 0; n < e->d->instrs.count && e->spent <= most; n++) {
        if (n == e->forward_count && e->apart) {
            HR_TRY(leave_tape(e, err));
        }
        HR_TRY(make_inputs(e, n, err));
        HR_TRY(run(e, n, n, err));
    }
    *ends = e->spent <= most;
    return HR_OK;
}

// ---- ways -------------------------------------------------------------------------------------------------------

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
    if (e->spent == 0 || as_low || same) {
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

// Under ever smaller budgets, as long as they are about kept.
static hr_status find_by(evictor *e, uint64_t whole_bytes, checkpoint_ways *out, hr_err *err)
{
    bool ends = true;
    uint64_t budget = whole_bytes;
    e->peak_bytes = 0;
    for (uint32_t k = 0; k < LEVELS && ends && e->peak_bytes / 2 < budget; k++) {
        budget -= budget / LEVEL;
        e->budget_bytes = budget;
        e->forward_budget_bytes = budget / 4 * e->quarters;
        HR_TRY(go_through(e, &ends, err));
        if (ends) {
            HR_TRY(add_way(e, out, err));
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
    HR_TRY(go_through(e, &ends, err));
    const uint64_t whole_bytes = e->peak_bytes;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        e->quarters = rules[k].quarters;
        e->rule = rules[k].worth;
        e->apart = rules[k].apart;
        evictor_weigh(e, rules[k].apart ? e->cost : e->operations);
        HR_TRY(find_by(e, whole_bytes, out, err));
    }
    return HR_OK;
}

// Where activations go to the host, a way is compiled whatever it shows: few are enough then, from the first to the last.
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
    if (hr_knob_is(d->knobs, HR_KNOB_OFFLOAD_ACTIVATIONS, "on")) {
        thin_out(out);
    }
    out->at_most_bytes = checkpoint_ways_at_most(d, budget_bytes);
    out->done = true;
    evictor_deinit(&e);
    return status;
}
