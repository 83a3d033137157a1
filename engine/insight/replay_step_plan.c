// SPDX-License-Identifier: Apache-2.0
// The step plan of a recorded step: what the record says of each request, then a play that is listened to.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/intern.h"
#include "insight/replay_plan.h"

typedef struct draft {
    const hr_replay *r;
    const trace *t;
    replay_tensors tensors;
    intern texts, layers;
    hr_step_plan *out;
    VEC(hr_event) events;
    uint32_t at; // instruction that is played
    bool over, short_of_memory;
} draft;

static hr_status no_memory(const draft *d, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the step plan of %u recorded events", d->t->events.count);
}

// ---- what the record says -------------------------------------------------------------------------------------

static bool add_text(draft *d, const char *words, uint32_t *at)
{
    const uint32_t number = intern_add(&d->texts, words, strlen(words));
    *at = number == INTERN_NONE ? 0 : d->texts.starts.data[number];
    return number != INTERN_NONE;
}

// HR_NO_ID where there is no name. False: no memory.
static bool layer_of(draft *d, const char *name, uint32_t *layer)
{
    const char *slash = name == NULL ? NULL : strrchr(name, '/');
    *layer = HR_NO_ID;
    if (name == NULL || name[0] == '\0') {
        return true;
    }
    *layer = intern_add(&d->layers, name, slash == NULL ? strlen(name) : (size_t)(slash - name));
    return *layer != INTERN_NONE;
}

static bool list_tensors(draft *d)
{
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        const replay_tensor *from = &d->tensors.rows[k];
        hr_step_plan_tensor *to = &d->out->tensors[k];
        const char *name = replay_name(d->t, from->born);
        to->category = HR_CATEGORY_COUNT;
        to->persistent = d->t->events.data[from->born].row == TRACE_BEFORE;
        to->owner = k;
        to->born = d->tensors.instr_of[from->born];
        to->died = from->died == HR_NO_ID ? HR_NO_ID : d->tensors.instr_of[from->died];
        to->bytes = d->t->events.data[from->born].bytes;
        if (!add_text(d, name == NULL ? "" : name, &to->name) || !layer_of(d, name, &to->layer)) {
            return false;
        }
    }
    return true;
}

static bool describe_instr(draft *d, uint32_t event, hr_step_plan_instr *to)
{
    const uint32_t tensor = d->tensors.of_event[event];
    const hr_step_plan_tensor *t = &d->out->tensors[tensor];
    const trace_kind kind = (trace_kind)d->t->events.data[event].kind;
    const char *name = d->texts.bytes.data + t->name;
    char line[256], short_name[160];
    (void)snprintf(short_name, sizeof short_name, "%s", name);
    (void)snprintf(line, sizeof line, "%-7s %14" PRIu64 " B  %s",
                   kind == TRACE_FREE      ? "free"
                   : kind == TRACE_REFUSED ? "refused"
                                           : "alloc",
                   t->bytes, short_name);
    to->is_free = kind == TRACE_FREE;
    to->is_alloc = !to->is_free;
    to->tensor = tensor;
    to->layer = t->layer;
    to->phase = HR_PHASE_COUNT;
    to->seconds = (double)NAN;
    to->name = t->name;
    return add_text(d, line, &to->line);
}

// What is asked for, whatever an allocator makes of it.
static bool list_instrs(draft *d)
{
    uint64_t requested_bytes = 0;
    for (uint32_t k = 0; k < d->t->events.count; k++) {
        const trace_event *e = &d->t->events.data[k];
        if (d->tensors.of_event[k] != HR_NO_ID) {
            const uint64_t bytes =
                d->tensors.of_event[k] < d->tensors.count ? d->out->tensors[d->tensors.of_event[k]].bytes : 0;
            requested_bytes += e->kind == TRACE_ALLOC ? bytes : 0;
            requested_bytes -= e->kind == TRACE_FREE ? bytes : 0;
        }
        if (d->tensors.instr_of[k] != HR_NO_ID) {
            hr_step_plan_instr *to = &d->out->instrs[d->tensors.instr_of[k]];
            to->requested_bytes =
                requested_bytes +
                (e->kind == TRACE_REFUSED ? d->out->tensors[d->tensors.of_event[k]].bytes : 0);
            if (!describe_instr(d, k, to)) {
                return false;
            }
        }
    }
    return true;
}

static bool list_layers(draft *d)
{
    d->out->layer_count = intern_count(&d->layers);
    d->out->layers = hr_calloc(d->out->layer_count + 1, sizeof *d->out->layers);
    for (size_t k = 0; d->out->layers != NULL && k < d->out->layer_count; k++) {
        hr_step_plan_layer *to = &d->out->layers[k];
        to->seconds = to->sparsity = (double)NAN;
        to->parameters = to->parameter_bytes = to->saved_bytes = to->flops = HR_NONE;
        if (!add_text(d, intern_text(&d->layers, (uint32_t)k), &to->name)) {
            return false;
        }
    }
    for (size_t k = 0; d->out->layers != NULL && k < d->out->tensor_count; k++) {
        const hr_step_plan_tensor *t = &d->out->tensors[k];
        if (t->layer != HR_NO_ID) {
            hr_step_plan_layer *to = &d->out->layers[t->layer];
            to->activation_bytes += t->bytes;
        }
    }
    return d->out->layers != NULL;
}

static hr_status describe(draft *d, hr_err *err)
{
    hr_step_plan *out = d->out;
    uint32_t empty;
    HR_TRY(replay_tensors_of(d->r, &d->tensors, err));
    out->rounds = 1;
    out->step_seconds = (double)NAN;
    out->tensor_count = d->tensors.count;
    out->instr_count = d->tensors.instr_count;
    out->peak_instr = out->refused_instr = HR_NO_ID;
    out->instrs = hr_calloc(out->instr_count + 1, sizeof *out->instrs);
    out->tensors = hr_calloc(out->tensor_count + 1, sizeof *out->tensors);
    return out->instrs != NULL && out->tensors != NULL && add_text(d, "", &empty) && list_tensors(d) &&
                   list_instrs(d) && list_layers(d)
               ? HR_OK
               : no_memory(d, err);
}

// ---- what an allocator makes of it ----------------------------------------------------------------------------

static void note(draft *d, const hr_event *e)
{
    hr_step_plan *out = d->out;
    hr_step_plan_tensor *t =
        e->u.memory.tensor < out->tensor_count ? &out->tensors[e->u.memory.tensor] : NULL;
    if (e->kind == HR_EVENT_ALLOC && t != NULL && t->allocated_bytes == 0) {
        t->address = e->u.memory.address;
        t->allocated_bytes = e->u.memory.allocated_bytes;
    }
    if (e->kind == HR_EVENT_ALLOC && e->u.memory.in_use_bytes > out->peak_in_use_bytes) {
        out->peak_in_use_bytes = e->u.memory.in_use_bytes;
        out->peak_instr = d->at;
    }
}

static void hear(void *context, const hr_event *event)
{
    draft *d = context;
    if (d->over || event->device != d->r->about.device || event->kind < HR_EVENT_ALLOC ||
        event->kind > HR_EVENT_OOM) {
        return;
    }
    hr_event *kept = vec_push(&d->events);
    d->short_of_memory = kept == NULL;
    d->over = kept == NULL;
    if (kept == NULL) {
        return;
    }
    *kept = *event;
    kept->time_ns = 0;
    kept->instr = d->at;
    kept->category = HR_CATEGORY_COUNT;
    replay_tensors_name(&d->tensors, d->t, kept);
    d->out->build_events += d->at == HR_NO_ID;
    d->over = event->kind == HR_EVENT_OOM;
    note(d, kept);
}

// What the record was refused and is served here is given back at once: its instruction has what was in use with it.
static void fill_instr(draft *d, const replay_player *p, uint32_t before)
{
    const allocator *heap = p->devices[d->r->about.device].heap;
    if (d->at == HR_NO_ID) {
        return;
    }
    hr_step_plan_instr *to = &d->out->instrs[d->at];
    to->event = before;
    to->in_use_bytes = d->over ? 0 : heap->counters.in_use_bytes;
    to->pool_bytes = d->over ? 0 : heap->counters.pool_bytes;
    for (uint32_t k = before; to->is_alloc && !d->over && k < d->events.count; k++) {
        const hr_event *e = &d->events.data[k];
        if (e->kind == HR_EVENT_ALLOC) {
            to->in_use_bytes = e->u.memory.in_use_bytes;
            to->pool_bytes = e->u.memory.pool_bytes;
        }
    }
}

static hr_status play_events(draft *d, replay_player *p, hr_err *err)
{
    const replay_device *device = &p->devices[d->r->about.device];
    for (uint32_t k = 0; k < d->t->events.count && device->heap != NULL; k++) {
        const uint32_t before = d->events.count;
        const bool was_over = d->over;
        d->at = d->tensors.instr_of[k];
        if (!was_over) {
            HR_TRY(replay_play(p, k + 1, err));
        }
        if (!was_over && p->failure_count > 0) {
            d->over = true;
            d->out->refused_instr = d->at;
        }
        fill_instr(d, p, before);
    }
    return d->short_of_memory ? no_memory(d, err) : HR_OK;
}

static hr_status play(draft *d, const hr_knobs *knobs, hr_err *err)
{
    replay_stage stage;
    replay_player p;
    trace_bus bus;
    HR_TRY(replay_prepare(d->r, knobs, &stage, err));
    trace_bus_init(&bus);
    bus.simulated = true;
    bus.phase = HR_PHASE_COUNT;
    (void)trace_attach(&bus, hear, d);
    stage.setup.bus = &bus;
    stage.setup.tags_events = true;
    d->at = HR_NO_ID;
    hr_status status = replay_start(&p, d->t, &stage.setup, err);
    if (status == HR_OK) {
        d->over = p.failure_count > 0; // the plan of all of it does not fit
        status = play_events(d, &p, err);
        d->out->fits = p.failure_count == 0;
    }
    replay_close(&p);
    d->out->limit_bytes = stage.limit_bytes == HR_NONE ? 0 : stage.limit_bytes;
    d->out->refused_instr = d->out->fits ? HR_NO_ID : d->out->refused_instr;
    return status;
}

static hr_status find_missing(hr_replay *replay, const hr_knobs *knobs, hr_step_plan *out, hr_err *err)
{
    hr_whatif plan;
    if (out->fits) {
        return HR_OK;
    }
    HR_TRY(replay_whatif(replay, knobs, &plan, err));
    out->missing_bytes = plan.missing_bytes;
    return HR_OK;
}

hr_status replay_step_plan(hr_replay *replay, const hr_knobs *knobs, hr_step_plan *out, hr_err *err)
{
    draft d = {.r = replay, .t = &replay->trace, .out = out};
    *out = (hr_step_plan){0};
    hr_status status = describe(&d, err);
    status = status == HR_OK ? play(&d, knobs, err) : status;
    status = status == HR_OK ? find_missing(replay, knobs, out, err) : status;
    out->events = d.events.data;
    out->event_count = d.events.count;
    out->texts = d.texts.bytes.data;
    out->texts_bytes = d.texts.bytes.count;
    d.texts.bytes.data = NULL;
    intern_deinit(&d.texts);
    intern_deinit(&d.layers);
    replay_tensors_deinit(&d.tensors);
    if (status != HR_OK) {
        hr_step_plan_deinit(out);
    }
    return status;
}
