// SPDX-License-Identifier: Apache-2.0
#include "session/engine_loop.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "memory/heap_snapshot.h"
#include "session/autosave.h"
#include "session/driven.h"
#include "session/loop_guest.h"
#include "session/pace.h"

enum {
    REPORT_NS = 250 * 1000 * 1000,
    TOGETHER_NS = 500 * 1000 * 1000,
    REPORT_SHARE = 200, // and no sooner than after so many times what the last one took
    TIMEOUT_S = (int)(HR_SESSION_SILENT_NS / 1000000000),
    TIMEOUT_GUEST_S = TRACE_TIMEOUT_MAX_S, // while a guest is at work: it has limits of its own
    TIMEOUT_BUILD_S = 60 // reading data, making kernels, writing a save: no instruction passes for long
};

struct engine_loop {
    open_request request;
    const session_callbacks *out;
    driven d;
    pace pace;
    autosave save;
    loop_guest guest;
    char path[PATH_MAX]; // of the preset, whole, to go on from the save elsewhere
    uint64_t report_due_ns;
    bool state_changed; // since the last report, and at the beginning
    bool resumes;       // the save that was to be gone on from has not been read yet
    bool over;
    hr_status ending;
    hr_err ending_error;
};

static const hr_knobs *knobs_of(const engine_loop *l)
{
    return l->d.ops->knobs(l->d.self);
}

static void beat(engine_loop *l)
{
    atomic_fetch_add_explicit(&l->out->heartbeat->beats, 1, memory_order_relaxed);
}

static void be_patient(engine_loop *l, int seconds)
{
    atomic_store_explicit(&l->out->heartbeat->timeout_s, (uint32_t)seconds, memory_order_relaxed);
    beat(l);
}

static void on_event(void *context, const hr_event *event)
{
    engine_loop *l = context;
    hr_event told = *event;
    bool asks = event->kind == HR_EVENT_BUILD || l->pace.out == NULL;
    bool simulates = asks && hr_knob_is(knobs_of(l), HR_KNOB_DEVICE_KIND, "plan");
    told.time_ns = pace_event(&l->pace, event, simulates);
    if (event->kind == HR_EVENT_STATE) {
        l->state_changed = true;
        atomic_store_explicit(&l->out->heartbeat->state, (uint32_t)event->u.note.count, memory_order_relaxed);
    }
    if (event->kind == HR_EVENT_SAVED &&
        l->save.writing) { // then the heartbeat has it before the event is read
        autosave_note(&l->save, event->u.note.count, l->out->heartbeat);
    }
    beat(l);
    l->out->event(l->out->context, &told);
    loop_guest_event(&l->guest, event);
}

static void on_before_update(void *context)
{
    loop_guest_before_update(&((engine_loop *)context)->guest);
}

// ---- create, destroy ------------------------------------------------------------------------------------------

static hr_status open_driven(engine_loop *l, hr_err *err)
{
    open_request *r = &l->request;
    const driven_options options = {.preset = r->preset,
                                    .trusts = r->trusts,
                                    .knobs = &r->knobs,
                                    .sink = on_event,
                                    .sink_context = l,
                                    .position = &l->out->heartbeat->position,
                                    .before_update = on_before_update};
    if (r->resume_path[0] != '\0') {
        HR_TRY(hr_knobs_set(&r->knobs, HR_KNOB_TRAIN_RESUME, r->resume_path, err));
    }
    return driven_open(&options, &l->d, err);
}

static bool guest_turns(void *context, bool *idle)
{
    engine_loop *l = context;
    const bool goes_on = engine_loop_turn(l, idle);
    be_patient(l, TIMEOUT_GUEST_S);
    l->out->said(l->out->context, HR_GUEST_STATE, "", 0, true);
    return goes_on;
}

static bool guest_waits(void *context)
{
    engine_loop *l = context;
    return l->out->wait != NULL && l->out->wait(l->out->context, OUTLET_FOREVER);
}

static void guest_says(void *context, hr_guest_line kind, const char *text, size_t length)
{
    engine_loop *l = context;
    beat(l);
    l->out->said(l->out->context, kind, text, length, kind == HR_GUEST_STATE);
}

static void open_guest(engine_loop *l, const hr_guest_ops *guest)
{
    const hr_guest_host host = {.context = l,
                                .preset = l->request.preset,
                                .trusts = l->request.trusts,
                                .engine = l->d.engine,
                                .turn = guest_turns,
                                .wait = guest_waits,
                                .say = guest_says};
    loop_guest_begin(&l->guest, guest, &host);
}

hr_status engine_loop_create(const open_request *request, const session_callbacks *out,
                             const hr_guest_ops *guest, engine_loop **loop, hr_err *err)
{
    engine_loop *l = hr_calloc(1, sizeof *l);
    *loop = NULL;
    if (l == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for an engine's loop");
    }
    l->request = *request;
    l->out = out;
    l->pace.out = out->wait != NULL ? out : NULL;
    l->state_changed = true;
    l->resumes = request->resume_path[0] != '\0';
    const bool is_file = realpath(request->preset, l->path) != NULL;
    autosave_begin(&l->save, l->request.autosave_path,
                   &(save_origin){is_file ? l->path : l->request.preset, request->trusts});
    be_patient(l, TIMEOUT_BUILD_S); // until the first turn: of a record, the file and its first report
    hr_status status = open_driven(l, err);
    if (status != HR_OK) {
        engine_loop_destroy(l);
        return status;
    }
    open_guest(l, guest);
    *loop = l;
    return HR_OK;
}

void engine_loop_destroy(engine_loop *l)
{
    if (l != NULL) {
        loop_guest_end(&l->guest);
        driven_close(&l->d);
        hr_free(l);
    }
}

// ---- what it says ---------------------------------------------------------------------------------------------

void engine_loop_report(engine_loop *l)
{
    hr_report fresh;
    const uint64_t begin_ns = clock_now_ns();
    if (l->d.ops->report(l->d.self, &fresh, NULL) == HR_OK) {
        l->out->report(l->out->context, &fresh);
        hr_report_deinit(&fresh);
    }
    const uint64_t now_ns = clock_now_ns(), wait_ns = REPORT_SHARE * (now_ns - begin_ns);
    l->report_due_ns = now_ns + (wait_ns > REPORT_NS ? wait_ns : REPORT_NS);
    l->state_changed = false;
}

// A knob may lead from one out-of-memory straight to the next: what counts is that the state moved.
static void publish(engine_loop *l)
{
    hr_engine_state state = l->d.ops->state(l->d.self);
    if (l->state_changed && (state == HR_ENGINE_OOM || state == HR_ENGINE_FAILED)) {
        l->out->error(l->out->context, l->d.ops->error(l->d.self));
    }
    bool due = l->pace.out != NULL && state == HR_ENGINE_RUNNING && clock_now_ns() >= l->report_due_ns;
    if (l->state_changed || due) {
        engine_loop_report(l);
    }
}

static hr_session_chunk chunk_of(const engine_loop *l, const heap_chunk *c)
{
    hr_session_chunk chunk = {.address = c->address,
                              .size_bytes = c->size_bytes,
                              .requested_bytes = c->requested_bytes,
                              .region_address = c->region_address,
                              .region_bytes = c->region_bytes,
                              .in_use = c->in_use,
                              .pending = c->pending};
    l->d.ops->holder(l->d.self, c->tensor, &chunk.tensor, &chunk.category);
    return chunk;
}

static void tell_heap(engine_loop *l)
{
    heap_snapshot snapshot = {0};
    hr_session_heap heap = {.seq = l->d.ops->next_seq(l->d.self)};
    const allocator *a = l->d.ops->heap(l->d.self);
    if (a != NULL && heap_snapshot_of(a, &snapshot, NULL) != HR_OK) {
        return; // it will be asked for again
    }
    heap.chunks = hr_calloc(snapshot.chunks.count, sizeof *heap.chunks);
    heap.count = heap.chunks != NULL ? snapshot.chunks.count : 0;
    for (size_t k = 0; k < heap.count; k++) {
        heap.chunks[k] = chunk_of(l, &snapshot.chunks.data[k]);
    }
    if (heap.count == snapshot.chunks.count) {
        l->out->heap(l->out->context, &heap);
    }
    hr_free(heap.chunks);
    heap_snapshot_deinit(&snapshot);
}

// ---- what it is told ------------------------------------------------------------------------------------------

// What it may lose by a guest that hangs is saved before.
static void order_guest(engine_loop *l, const hr_command *piece)
{
    hr_err err = {0};
    if (!loop_guest_collect(&l->guest, piece)) {
        return;
    }
    const bool runs = piece->knob == HR_GUEST_FILE || piece->knob == HR_GUEST_CHUNK;
    if (l->d.engine != NULL && runs && autosave_now(&l->save, l->d.engine, l->out, &err) != HR_OK) {
        l->out->error(l->out->context, &err);
    }
    be_patient(l, TIMEOUT_GUEST_S);
    loop_guest_take(&l->guest);
    l->out->said(l->out->context, HR_GUEST_STATE, "", 0, true);
    if (runs) {
        l->out->knobs(l->out->context, knobs_of(l));
    }
    be_patient(l, TIMEOUT_S);
}

static void obey(engine_loop *l, const hr_command *command)
{
    hr_err err = {0};
    const bool keeps = command->kind == HR_COMMAND_KEEP;
    const bool writes = command->kind == HR_COMMAND_SAVE || command->kind == HR_COMMAND_STOP ||
                        command->kind == HR_COMMAND_QUIT;
    be_patient(l, writes || keeps ? TIMEOUT_BUILD_S : TIMEOUT_S);
    if (writes && l->out->writing != NULL) {
        l->out->writing(l->out->context, true);
    }
    hr_status status = HR_OK;
    if (keeps && l->d.engine != NULL) {
        status = autosave_now(&l->save, l->d.engine, l->out, &err);
    } else if (!keeps) {
        status = l->d.ops->command(l->d.self, command, &err);
        if (status == HR_OK) {
            loop_guest_obeyed(&l->guest, command);
        }
    }
    if (writes && l->out->writing != NULL) {
        l->out->writing(l->out->context, false);
    }
    if (status != HR_OK) {
        l->out->error(l->out->context, &err);
    } else if (command->kind == HR_COMMAND_KNOB) {
        l->out->knobs(l->out->context, knobs_of(l));
    }
    if (command->kind == HR_COMMAND_QUIT) {
        l->over = true;
        l->ending = status;
        l->ending_error = err;
    }
    atomic_fetch_add_explicit(&l->out->heartbeat->commands, 1, memory_order_relaxed);
}

// What is turned together is built together: a knob that was announced is waited for, though not for long.
static bool take_announced(engine_loop *l, hr_command *command)
{
    return l->out->wait != NULL && l->out->wait(l->out->context, clock_now_ns() + TOGETHER_NS) &&
           l->out->take(l->out->context, command);
}

static void obey_all(engine_loop *l)
{
    hr_command command;
    bool announced = false;
    while (!l->over &&
           (l->out->take(l->out->context, &command) || (announced && take_announced(l, &command)))) {
        if (command.kind == HR_COMMAND_GUEST) {
            atomic_fetch_add_explicit(&l->out->heartbeat->commands, 1, memory_order_relaxed);
            order_guest(l, &command);
        } else {
            obey(l, &command);
        }
        announced = command.kind == HR_COMMAND_KNOB && command.count > 0;
    }
    if (l->out->wants_heap(l->out->context)) {
        tell_heap(l);
    }
}

// The save that was gone on from is as good as one of ours, when it is the file that is kept.
static void note_resumed(engine_loop *l)
{
    const uint64_t steps = engine_loop_steps(l);
    if (l->resumes && steps > 0) {
        if (strcmp(l->request.resume_path, l->request.autosave_path) == 0) {
            autosave_note(&l->save, steps, l->out->heartbeat);
        }
        l->resumes = false;
    }
}

// Nothing of this process reaches a lost device again: the worker ends, and says why.
static bool has_lost_device(engine_loop *l)
{
    const hr_err *err = l->d.ops->error(l->d.self);
    if (l->d.ops->state(l->d.self) != HR_ENGINE_FAILED || err->status != HR_DEVICE_LOST) {
        return false;
    }
    l->over = true;
    l->ending = HR_DEVICE_LOST;
    l->ending_error = *err;
    return true;
}

bool engine_loop_turn(engine_loop *l, bool *idle)
{
    obey_all(l);
    *idle = true;
    if (l->over) {
        return false;
    }
    be_patient(l, TIMEOUT_GUEST_S);
    loop_guest_begin_turn(&l->guest);
    const int timeout_s = l->d.ops->needs_build(l->d.self) ? TIMEOUT_BUILD_S : TIMEOUT_S;
    be_patient(l, timeout_s);
    pace_begin_step(&l->pace);
    l->d.ops->advance(l->d.self, idle);
    note_resumed(l);
    be_patient(l, TIMEOUT_GUEST_S);
    loop_guest_end_turn(&l->guest, idle);
    be_patient(l, timeout_s);
    publish(l);
    if (has_lost_device(l)) {
        return false;
    }
    be_patient(l, TIMEOUT_BUILD_S);
    if (l->d.engine != NULL) {
        autosave_keep(&l->save, l->d.engine, l->out);
    }
    be_patient(l, TIMEOUT_S);
    if (!*idle) {
        pace_end_step(&l->pace);
    }
    return true;
}

void engine_loop_run(engine_loop *l)
{
    bool idle = false;
    while (engine_loop_turn(l, &idle)) {
        if (idle) {
            (void)l->out->wait(l->out->context, OUTLET_FOREVER);
        }
    }
}

uint64_t engine_loop_steps(const engine_loop *l)
{
    return l->d.ops->steps(l->d.self);
}

const hr_knobs *engine_loop_knobs(const engine_loop *l)
{
    return knobs_of(l);
}

hr_status engine_loop_ending(const engine_loop *l, hr_err *err)
{
    if (l->ending != HR_OK && err != NULL) {
        *err = l->ending_error;
    }
    return l->ending;
}
