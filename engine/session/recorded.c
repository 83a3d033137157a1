// SPDX-License-Identifier: Apache-2.0
// A recorded step in an engine's place: its requests are played on the allocator of the knobs, from an empty heap each time.
//
//        open ──▶ IDLE ──RUN, KNOB──▶ RUNNING ── all is served ──▶ IDLE
//                                        │  └── a request is refused ──▶ OOM ──RUN, KNOB──▶ RUNNING
//                                        └── PAUSE ──▶ PAUSED, no host memory ──▶ FAILED
//
// One play is one piece of work. What a record does not say, categories and phases, is none.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "insight/replay_plan.h"
#include "session/driven.h"
#include "session/session_impl.h"

// A log may be of hours: nobody watches them at their pace.
#define LONGEST_NS UINT64_C(2000000000)
// Apart, where a record has no times.
#define APART_NS UINT64_C(1000)

typedef struct recorded {
    char *path; // of the record, as it was named
    hr_replay *replay;
    replay_tensors tensors;
    hr_knobs knobs;
    hr_event_sink sink;
    void *sink_context;
    hr_position *position;
    hr_engine_state state;
    hr_err error;
    bool needs_build;
    uint64_t asked; // plays to do
    uint64_t steps; // done, over all plays
    hr_report report;
    bool has_report;
    // The last play: its heap stays as it is until the next one.
    replay_stage stage;
    replay_player player;
    bool has_player;
    trace_bus bus;
    uint64_t begin_ns, now_ns; // of events, over all plays
    struct {
        uint64_t begin_ns; // recorded
        uint64_t peak_bytes, floor_bytes;
        uint32_t events;
    } step;              // at hand
    double step_seconds; // of the last one, as recorded; NaN: the record has no times
} recorded;

// ---- events ---------------------------------------------------------------------------------------------------

static const trace *trace_of(const recorded *e)
{
    return &e->replay->trace;
}

static uint64_t last_ns(const trace *t)
{
    return t->events.count == 0 ? 0 : t->events.data[t->events.count - 1].time_ns;
}

// When the event at hand is due, after the beginning of the play.
static uint64_t due_ns(const recorded *e)
{
    const trace *t = trace_of(e);
    const uint64_t all_ns = last_ns(t);
    const uint32_t at = e->player.at;
    if (at >= t->events.count || !t->has_times || all_ns == 0) {
        return at * APART_NS;
    }
    const uint64_t own_ns = t->events.data[at].time_ns;
    return all_ns <= LONGEST_NS ? own_ns : (uint64_t)((double)own_ns / (double)all_ns * (double)LONGEST_NS);
}

// Before the first play it is the clock's time, as of a training that has not been built.
static void tell(recorded *e, hr_event *event)
{
    const uint64_t at_ns = e->begin_ns + (e->has_player ? due_ns(e) : 0);
    e->now_ns = at_ns > e->now_ns ? at_ns : e->now_ns;
    event->time_ns = e->begin_ns > 0 ? e->now_ns : clock_now_ns();
    event->step = (uint32_t)e->steps;
    e->sink(e->sink_context, event);
}

static void note(recorded *e, hr_event_kind kind, uint64_t count, const char *words)
{
    hr_event event = {.version = HR_EVENT_VERSION, .kind = (uint8_t)kind, .instr = HR_NO_ID};
    event.seq = e->bus.seq++;
    event.u.note.count = count;
    (void)text_copy(event.u.note.text, sizeof event.u.note.text, words);
    tell(e, &event);
}

static void begin_step(recorded *e, uint64_t recorded_ns, uint64_t in_use_bytes)
{
    e->step.begin_ns = recorded_ns;
    e->step.peak_bytes = e->step.floor_bytes = in_use_bytes;
    e->step.events = 0;
}

static void end_step(recorded *e, hr_event *event)
{
    const trace *t = trace_of(e);
    const uint32_t at = e->player.at < t->events.count ? e->player.at : t->events.count - 1;
    const uint64_t recorded_ns = t->events.data[at].time_ns;
    const uint64_t duration_ns = recorded_ns - e->step.begin_ns;
    e->steps++;
    e->step_seconds = t->has_times && duration_ns > 0 ? (double)duration_ns * 1e-9 : (double)NAN;
    atomic_store_explicit(&e->position->step, e->steps, memory_order_relaxed);
    event->u.step = (hr_event_step){.loss = (double)NAN,
                                    .accuracy = (double)NAN,
                                    .duration_ns = duration_ns,
                                    .peak_in_use_bytes = e->step.peak_bytes,
                                    .floor_in_use_bytes = e->step.floor_bytes};
    tell(e, event);
    const allocator *heap = e->player.devices[e->replay->about.device].heap;
    begin_step(e, recorded_ns, heap->counters.in_use_bytes);
}

static void count_memory(recorded *e, const hr_event_memory *m)
{
    e->step.peak_bytes = m->in_use_bytes > e->step.peak_bytes ? m->in_use_bytes : e->step.peak_bytes;
    e->step.floor_bytes = m->in_use_bytes < e->step.floor_bytes ? m->in_use_bytes : e->step.floor_bytes;
    e->step.events++;
}

// Of the bus: what the allocator did, and steps that the record marks.
static void hear(void *context, const hr_event *event)
{
    recorded *e = context;
    hr_event told = *event;
    if (event->kind == HR_EVENT_STEP) {
        end_step(e, &told);
        return;
    }
    if (event->device != e->replay->about.device) {
        return;
    }
    told.category = HR_CATEGORY_COUNT;
    told.instr = e->player.at < trace_of(e)->events.count ? e->tensors.instr_of[e->player.at] : HR_NO_ID;
    replay_tensors_name(&e->tensors, trace_of(e), &told);
    count_memory(e, &told.u.memory);
    tell(e, &told);
}

static void set_state(recorded *e, hr_engine_state state, const char *why)
{
    const bool changed = e->state != state;
    e->state = state;
    if (changed || why[0] != '\0') {
        note(e, HR_EVENT_STATE, state, why);
    }
}

static void fail(recorded *e, hr_engine_state state)
{
    e->asked = 0;
    set_state(e, state, e->error.sentence);
}

// ---- a play ---------------------------------------------------------------------------------------------------

static void forget_play(recorded *e)
{
    if (e->has_player) {
        replay_close(&e->player);
        e->has_player = false;
    }
    e->begin_ns = e->now_ns + APART_NS;
}

// What is made once for its knobs, over any number of plays.
static hr_status build(recorded *e, hr_err *err)
{
    e->needs_build = true;
    if (e->has_report) {
        hr_report_deinit(&e->report);
        e->has_report = false;
    }
    HR_TRY(hr_replay_report(e->replay, &e->knobs, "", &e->report, err));
    e->has_report = true;
    HR_TRY(replay_prepare(e->replay, &e->knobs, &e->stage, err));
    e->stage.setup.bus = &e->bus;
    e->stage.setup.tags_events = true;
    e->needs_build = false;
    return HR_OK;
}

static bool is_refused(const recorded *e)
{
    return e->player.failure_count > 0;
}

static hr_status play(recorded *e, hr_err *err)
{
    const trace *t = trace_of(e);
    e->has_player = true; // also where it starts in part: replay_close is due
    HR_TRY(replay_start(&e->player, t, &e->stage.setup, err));
    begin_step(e, 0, 0);
    while (e->player.at < t->events.count && !is_refused(e)) {
        HR_TRY(replay_play(&e->player, e->player.at + 1, err));
    }
    if (!is_refused(e) && e->step.events > 0) {
        hr_event event = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .instr = HR_NO_ID};
        event.seq = e->bus.seq++;
        end_step(e, &event);
    }
    return HR_OK;
}

static void say_refused(recorded *e)
{
    const hr_report_oom *oom = &e->report.oom;
    hr_status status = HR_FAIL(&e->error, OOM, "%s", oom->sentence);
    if (oom->fix_count > 0) {
        hr_err_try(&e->error, "%s", oom->hint);
    } else {
        hr_err_try(&e->error, "headroom cards --fit '%.200s'", e->path);
    }
    (void)status;
    fail(e, HR_ENGINE_OOM);
}

static void say_built(recorded *e)
{
    char words[64] = "a recorded step";
    const hr_replay_about *about = &e->replay->about;
    if (about->device_count > 1) {
        (void)snprintf(words, sizeof words, "device %u of %u of a recorded step", about->device,
                       about->device_count);
    }
    note(e, HR_EVENT_BUILD, e->tensors.instr_count, words);
}

static void advance(void *self, bool *idle)
{
    recorded *e = self;
    *idle = e->state != HR_ENGINE_RUNNING;
    if (*idle) {
        return;
    }
    forget_play(e);
    hr_status status = e->needs_build ? build(e, &e->error) : HR_OK;
    say_built(e);
    status = status == HR_OK ? play(e, &e->error) : status;
    if (status != HR_OK) {
        fail(e, HR_ENGINE_FAILED);
    } else if (is_refused(e)) {
        say_refused(e);
    } else {
        e->asked--;
        if (e->asked == 0) {
            set_state(e, HR_ENGINE_IDLE, "");
        }
    }
}

// ---- commands -------------------------------------------------------------------------------------------------

static void run(recorded *e, uint64_t count)
{
    e->asked = count > 0 ? count : 1;
    set_state(e, HR_ENGINE_RUNNING, "");
}

static hr_status turn(recorded *e, const hr_command *command, hr_err *err)
{
    hr_knobs turned = e->knobs;
    if (command->knob >= HR_KNOB_COUNT) {
        return HR_FAIL(err, KNOB, "there is no knob %u", command->knob);
    }
    const hr_knob_id id = (hr_knob_id)command->knob;
    HR_TRY(hr_replay_check_turn(id, command->text, err));
    HR_TRY(hr_knobs_set(&turned, id, command->text, err));
    HR_TRY(hr_knobs_validate(&turned, err));
    e->knobs = turned;
    e->needs_build = true;
    note(e, HR_EVENT_KNOB, command->knob, command->text);
    run(e, 1);
    return HR_OK;
}

static hr_status command(void *self, const hr_command *what, hr_err *err)
{
    recorded *e = self;
    switch ((hr_command_kind)what->kind) {
    case HR_COMMAND_RUN:
        run(e, what->count);
        return HR_OK;
    case HR_COMMAND_PAUSE:
        if (e->state == HR_ENGINE_RUNNING) {
            set_state(e, HR_ENGINE_PAUSED, "");
        }
        return HR_OK;
    case HR_COMMAND_KNOB:
        return turn(e, what, err);
    case HR_COMMAND_SAVE:
        return HR_FAIL(err, STATE, "a recorded step has no weights: there is nothing to save");
    case HR_COMMAND_EVALUATE:
        return HR_FAIL(err, STATE, "a recorded step has no weights: there is nothing to evaluate");
    case HR_COMMAND_RANKS:
        return HR_FAIL(err, STATE, "a recorded step has no weights: there are no ranks of them");
    case HR_COMMAND_STOP:
        set_state(e, HR_ENGINE_IDLE, "");
        return HR_OK;
    case HR_COMMAND_KEEP:
    case HR_COMMAND_GUEST:
    case HR_COMMAND_QUIT:
        return HR_OK;
    case HR_COMMAND_COUNT:
        break;
    }
    return HR_FAIL(err, USAGE, "there is no command %u", what->kind);
}

// ---- what is asked of it --------------------------------------------------------------------------------------

static void destroy(void *self)
{
    recorded *e = self;
    if (e->has_player) {
        replay_close(&e->player);
    }
    if (e->has_report) {
        hr_report_deinit(&e->report);
    }
    replay_tensors_deinit(&e->tensors);
    hr_replay_close(e->replay);
    hr_free(e->path);
    hr_free(e);
}

static hr_engine_state state(const void *self)
{
    return ((const recorded *)self)->state;
}

static const hr_err *error(const void *self)
{
    return &((const recorded *)self)->error;
}

static const hr_knobs *knobs(const void *self)
{
    return &((const recorded *)self)->knobs;
}

static uint64_t steps(const void *self)
{
    return ((const recorded *)self)->steps;
}

static hr_status report(void *self, hr_report *out, hr_err *err)
{
    recorded *e = self;
    if (!e->has_report) {
        HR_TRY(build(e, err));
    }
    hr_status status = session_copy_report(&e->report, out);
    if (status != HR_OK) {
        return HR_FAIL(err, NOMEM, "no host memory for a report");
    }
    out->step.instructions = e->tensors.instr_count;
    out->step.seconds = e->step_seconds;
    out->step.measured = !isnan(e->step_seconds);
    out->train.steps = e->steps;
    return HR_OK;
}

static bool needs_build(const void *self)
{
    const recorded *e = self;
    return e->needs_build || hr_knob_is(&e->knobs, HR_KNOB_ALLOCATOR_KIND, "static"); // it packs every play
}

static const allocator *heap(const void *self)
{
    const recorded *e = self;
    return e->has_player ? e->player.devices[e->replay->about.device].heap : NULL;
}

static uint64_t next_seq(const void *self)
{
    return ((const recorded *)self)->bus.seq;
}

static void holder(const void *self, uint32_t tag, uint32_t *tensor, uint8_t *category)
{
    const recorded *e = self;
    *tensor = tag < trace_of(e)->events.count ? e->tensors.of_event[tag] : HR_NO_ID;
    *category = HR_CATEGORY_COUNT;
}

static const driven_ops ops = {
    .destroy = destroy,
    .command = command,
    .advance = advance,
    .state = state,
    .error = error,
    .knobs = knobs,
    .steps = steps,
    .report = report,
    .needs_build = needs_build,
    .heap = heap,
    .next_seq = next_seq,
    .holder = holder,
};

hr_status recorded_open(const driven_options *options, driven *out, hr_err *err)
{
    recorded *e = hr_calloc(1, sizeof *e);
    if (e == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a recorded step");
    }
    e->path = hr_strdup(options->preset);
    e->knobs = *options->knobs;
    e->sink = options->sink;
    e->sink_context = options->sink_context;
    e->position = options->position;
    e->needs_build = true;
    e->step_seconds = (double)NAN;
    trace_bus_init(&e->bus);
    e->bus.simulated = true;
    e->bus.phase = HR_PHASE_COUNT;
    (void)trace_attach(&e->bus, hear, e);
    hr_status status = e->path != NULL ? replay_open_step(e->path, &e->replay, err)
                                       : HR_FAIL(err, NOMEM, "no host memory for a recorded step");
    status = status == HR_OK ? replay_tensors_of(e->replay, &e->tensors, err) : status;
    if (status != HR_OK) {
        destroy(e);
        return status;
    }
    *out = (driven){.ops = &ops, .self = e};
    return HR_OK;
}
