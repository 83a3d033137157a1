// SPDX-License-Identifier: Apache-2.0
// One way through a step: what is let go of where there is no room, and what runs again before it is read.
#include "program/checkpoint_evict.h"

#include <math.h>
#include <string.h>

#include "program/checkpoint_again.h"
#include "program/evictor.h"

enum { FORWARDS_MOST = 3 };

// ---- letting go -------------------------------------------------------------------------------------------------

static void appear(evictor *e, uint32_t v, bool held)
{
    evict_state *s = &e->states[v];
    s->alive = true;
    s->held = held;
    if (evict_can_be_made(e, v)) {
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
    if (!evict_can_be_made(e, v)) {
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

// The same, or something that is not below `most`. What is let go of makes others dearer: a cost that was found is one at least, until
// something has been made again.
static double cost_below(evictor *e, uint32_t v, double most)
{
    evict_state *s = &e->states[v];
    if (s->known != e->reruns || (double)s->cost < most) {
        s->cost = evict_cost_again(e, v, most < 0x1p62 ? (uint64_t)most : UINT64_MAX);
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
    return (double)e->values[v].bytes * (e->worth == BY_BYTES ? 1 : e->worth == BY_TIME ? time : sqrt(time));
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

// The value over which the instruction could write its result, where it runs again or for the first time; HR_NO_ID.
static uint32_t find_over(const evictor *e, const instr *i, bool again)
{
    const op_row *row = op_row_of(again ? draft_op_again(i->op) : i->op);
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

static uint64_t room_at(const evictor *e, uint32_t now)
{
    return now < e->forward_count ? e->forward_budget_bytes : e->budget_bytes;
}

// Makes room for instruction n. *over: the value that its result is written over; HR_NO_ID.
static hr_status make_room(evictor *e, uint32_t n, uint32_t now, uint32_t *over, hr_err *err)
{
    const instr *i = &e->d->instrs.data[n];
    const uint64_t room = room_at(e, now);
    await(e, i, false);
    const uint32_t may = find_over(e, i, n != now);
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

// ---- on the host ------------------------------------------------------------------------------------------------

static void note_there(const evictor *e, uint32_t v, bool there)
{
    for (uint32_t t = e->values[v].first_tensor; t != HR_NO_ID; t = e->sibling[t]) {
        e->there[t] = there;
    }
}

static void leave(evictor *e, uint32_t n)
{
    for (uint32_t v = e->sends.first_done[n]; v != HR_NO_ID; v = e->sends.next_done[v]) {
        e->states[v].alive = e->states[v].held = false;
        e->states[v].away = true;
        e->live_bytes -= e->values[v].bytes;
        note_there(e, v, false);
    }
}

static hr_status bring_back(evictor *e, uint32_t v, uint32_t now, hr_err *err)
{
    const uint64_t bytes = e->values[v].bytes;
    e->fails |= now < e->forward_count;
    while (e->live_bytes + bytes > room_at(e, now)) {
        const uint32_t least = choose(e, now, HR_NO_ID);
        if (least == HR_NO_ID) {
            break;
        }
        HR_TRY(vanish(e, least, CHECKPOINT_GOES, err));
    }
    e->live_bytes += bytes;
    e->peak_bytes = e->live_bytes > e->peak_bytes ? e->live_bytes : e->peak_bytes;
    e->states[v].away = false;
    e->states[v].alive = true;
    note_there(e, v, true);
    return HR_OK;
}

static hr_status arrive(evictor *e, uint32_t n, hr_err *err)
{
    for (uint32_t v = e->sends.first_begin[n]; v != HR_NO_ID; v = e->sends.next_begin[v]) {
        if (e->states[v].away) {
            HR_TRY(bring_back(e, v, n, err));
        }
    }
    return HR_OK;
}

// Instruction `now` asks for it, or one that runs again for that.
static hr_status ask_for(evictor *e, uint32_t v, uint32_t now, hr_err *err)
{
    evict_state *s = &e->states[v];
    if (now >= e->forward_count && s->needed == HR_NO_ID) {
        s->needed = now;
    }
    return s->away ? bring_back(e, v, now, err) : HR_OK;
}

static hr_status begin_sends(evictor *e, hr_err *err)
{
    for (uint32_t k = 0; k < e->sends.count; k++) {
        const uint32_t v = e->sends.copies[k].id;
        uint32_t *step = vec_push(&e->steps);
        if (step == NULL) {
            return evictor_no_memory(e, err);
        }
        *step = e->values[v].first_tensor | CHECKPOINT_LEAVES;
        e->states[v].needed = HR_NO_ID;
    }
    return HR_OK;
}

// ---- a way ------------------------------------------------------------------------------------------------------

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
            if (e->value_of[t] != HR_NO_ID && e->sends.sent[e->value_of[t]]) {
                HR_TRY(ask_for(e, e->value_of[t], now, err));
            }
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

// Instruction n at its own place.
static hr_status take_turn(evictor *e, uint32_t n, hr_err *err)
{
    if (e->sends.count > 0) {
        leave(e, n);
        HR_TRY(arrive(e, n, err));
    }
    if (n == e->forward_count && e->apart) {
        HR_TRY(leave_tape(e, err));
    }
    HR_TRY(make_inputs(e, n, err));
    return run(e, n, n, err);
}

hr_status evictor_go_through(evictor *e, bool *ends, hr_err *err)
{
    const uint64_t most = FORWARDS_MOST * e->forward_cost;
    e->live_bytes = e->peak_bytes = e->spent = 0;
    e->steps.count = e->listed_count = 0;
    e->reruns = 1;
    e->fails = false;
    memset(e->states, 0, e->value_count * sizeof *e->states);
    memset(e->there, 0, e->d->tensors.count * sizeof *e->there);
    HR_TRY(begin_sends(e, err));
    for (uint32_t n = 0; n < e->d->instrs.count && e->spent <= most && !e->fails; n++) {
        HR_TRY(take_turn(e, n, err));
    }
    *ends = e->spent <= most && !e->fails;
    e->spent += evictor_sends_cost(e);
    return HR_OK;
}
