// SPDX-License-Identifier: Apache-2.0
// The heap's side of a step plan. While a step is played its memory events come in the order of its instructions, once
// for every round of a loop:
//
//   round 1      events are kept, instructions filled up to the one at hand
//   round 2 …    kept while they last, in case one is refused; of a round that ends, what it left behind alone stays
//
// so that an accumulated step's events are as many as those of one round.
#include <string.h>

#include "base/host_mem.h"
#include "base/vec.h"
#include "insight/step_plan.h"

typedef struct witness {
    const program *p;
    hr_step_plan *out;
    VEC(hr_event) events;
    bool *stays; // [tensor_count] no instruction frees it
    uint64_t in_use_bytes, pool_bytes;
    uint32_t next;     // first instruction that has not been filled
    uint32_t last;     // of the latest event of the step; HR_NO_ID: there was none
    uint32_t round;    // first event of the round at hand, when it is not the first
    uint32_t loop_end; // of that round
    bool again;        // is it a later round?
    bool over;         // the first step is, or was refused
    bool short_of_memory;
} witness;

// ---- rounds ---------------------------------------------------------------------------------------------------

static bool leaves_something(const witness *w, const hr_event *e)
{
    return e->kind == HR_EVENT_GROW || e->kind == HR_EVENT_SHRINK ||
           (e->kind == HR_EVENT_ALLOC && w->stays[e->u.memory.tensor]);
}

// in_use of what is kept is as if the rest of the round had not been: it has come and gone.
static void forget_round(witness *w)
{
    uint32_t kept = w->round;
    uint64_t in_use_bytes = kept == 0 ? 0 : w->events.data[kept - 1].u.memory.in_use_bytes;
    for (uint32_t k = w->round; w->again && k < w->events.count; k++) {
        hr_event *e = &w->events.data[k];
        if (leaves_something(w, e)) {
            in_use_bytes += e->kind == HR_EVENT_ALLOC ? e->u.memory.allocated_bytes : 0;
            e->u.memory.in_use_bytes = in_use_bytes;
            w->events.data[kept++] = *e;
        }
    }
    w->events.count = w->again ? kept : w->events.count;
}

static uint32_t end_of_loop(const program *p, uint32_t n)
{
    while (n < p->instr_count && p->instrs[n].op != HR_OP_END) {
        n++;
    }
    return n;
}

static void fill_until(witness *w, uint32_t end)
{
    for (; w->next < end; w->next++) {
        hr_step_plan_instr *to = &w->out->instrs[w->next];
        to->event = w->events.count;
        to->in_use_bytes = w->in_use_bytes;
        to->pool_bytes = w->pool_bytes;
    }
}

// The event belongs to instruction `at`: what came before it is done.
static void come_to(witness *w, uint32_t at)
{
    if (w->last != HR_NO_ID && at < w->last) {
        const uint32_t end = end_of_loop(w->p, at);
        fill_until(w, end < w->p->instr_count ? end + 1 : end);
        forget_round(w);
        w->again = true;
        w->round = w->events.count;
        w->loop_end = end;
    } else if (w->again && at > w->loop_end) {
        forget_round(w);
        w->again = false;
    }
    fill_until(w, at + 1);
    w->last = at;
}

// ---- events ---------------------------------------------------------------------------------------------------

static void keep(witness *w, const hr_event *e)
{
    hr_event *place = vec_push(&w->events);
    w->short_of_memory = place == NULL;
    w->over = place == NULL;
    if (place != NULL) {
        *place = *e;
    }
}

static void note_tensor(const witness *w, const hr_event *e)
{
    hr_step_plan_tensor *t = &w->out->tensors[e->u.memory.tensor];
    if (t->allocated_bytes == 0) {
        t->address = e->u.memory.address;
        t->allocated_bytes = e->u.memory.allocated_bytes;
    }
}

static void note_peak(const witness *w, const hr_event *e)
{
    if (e->u.memory.in_use_bytes > w->out->peak_in_use_bytes) {
        w->out->peak_in_use_bytes = e->u.memory.in_use_bytes;
        w->out->peak_instr = e->instr;
    }
}

static void hear(void *context, const hr_event *e)
{
    witness *w = context;
    if (w->over || e->step > 0 || e->kind < HR_EVENT_ALLOC || e->kind > HR_EVENT_OOM) {
        return;
    }
    if (e->instr != HR_NO_ID) {
        come_to(w, e->instr);
    }
    keep(w, e);
    w->out->build_events += e->instr == HR_NO_ID;
    w->over = w->over || e->kind == HR_EVENT_OOM;
    w->in_use_bytes = e->u.memory.in_use_bytes;
    w->pool_bytes = e->u.memory.pool_bytes;
    if (e->kind == HR_EVENT_ALLOC) {
        note_tensor(w, e);
        note_peak(w, e);
    }
    if (e->instr != HR_NO_ID && !w->again) {
        w->out->instrs[e->instr].in_use_bytes = w->in_use_bytes;
        w->out->instrs[e->instr].pool_bytes = w->pool_bytes;
    }
}

// ---- the play -------------------------------------------------------------------------------------------------

// What shares another's bytes lies where they lie.
static void place_sharers(hr_step_plan *out)
{
    for (size_t k = 0; k < out->tensor_count; k++) {
        out->tensors[k].address = out->tensors[out->tensors[k].owner].address;
    }
}

static void finish(witness *w, const play_result *played)
{
    hr_step_plan *out = w->out;
    const bool refused_here =
        !played->fits && w->events.count > 0 && w->events.data[w->events.count - 1].kind == HR_EVENT_OOM;
    out->fits = played->fits;
    out->refused_instr = played->fits ? HR_NO_ID : played->oom.instr;
    if (played->fits) {
        out->peak_in_use_bytes = played->peak.in_use_bytes;
        out->peak_instr = played->peak.instr;
    }
    if (refused_here) {
        w->in_use_bytes = w->pool_bytes = 0;
    } else {
        forget_round(w);
    }
    fill_until(w, w->p->instr_count);
    place_sharers(out);
    out->events = w->events.data;
    out->event_count = w->events.count;
}

static void find_what_stays(witness *w)
{
    memset(w->stays, true, w->p->tensor_count * sizeof *w->stays);
    for (uint32_t n = 0; n < w->p->instr_count; n++) {
        if (w->p->instrs[n].op == HR_OP_FREE) {
            w->stays[w->p->instrs[n].in[0]] = false;
        }
    }
}

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the events of a step's step_plan");
}

static hr_status listen(witness *w, const play_case *c, play_result *played, hr_err *err)
{
    trace_bus bus;
    trace_bus_init(&bus);
    bus.simulated = true;
    (void)trace_attach(&bus, hear, w);
    HR_TRY(play_traced(c->device, c->device_context, c->knobs, c->failed_bytes, &bus, c->programs, c->count,
                       c->steps, played, err));
    if (w->short_of_memory) {
        return no_memory(err);
    }
    finish(w, played);
    return HR_OK;
}

hr_status step_plan_play(step_plan_draft *d, play_result *played, hr_err *err)
{
    witness w = {.p = d->p, .out = d->out, .last = HR_NO_ID};
    d->out->limit_bytes = d->c->failed_bytes;
    d->out->peak_instr = d->out->refused_instr = HR_NO_ID;
    w.stays = hr_calloc(d->p->tensor_count, sizeof *w.stays);
    if (w.stays == NULL) {
        return no_memory(err);
    }
    find_what_stays(&w);
    hr_status status = listen(&w, d->c, played, err);
    hr_free(w.stays);
    if (status != HR_OK) {
        vec_deinit(&w.events);
    }
    return status;
}
