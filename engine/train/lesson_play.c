// SPDX-License-Identifier: Apache-2.0
// A lesson's steps under some knobs: an engine, and what its events say.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/lesson.h"

#include "base/text.h"
#include "base/workers.h"
#include "knobs/lesson.h"

typedef struct listener {
    hr_lesson_events *events;
    bool computes;
} listener;

static void hear(void *context, const hr_event *event)
{
    const listener *l = context;
    hr_lesson_see(l->events, event, l->computes);
}

static hr_status advance(hr_engine *engine, uint32_t steps, const hr_lesson_watch *watch, hr_err *err)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps};
    HR_TRY(hr_engine_command(engine, &run, err));
    for (bool idle = false; !idle;) {
        if (watch->goes_on != NULL && !watch->goes_on(watch->context)) {
            return HR_FAIL(err, INTERRUPTED, "a lesson's run was left");
        }
        hr_engine_advance(engine, &idle);
    }
    if (hr_engine_get_state(engine) == HR_ENGINE_FAILED) {
        const hr_err *failed = hr_engine_error(engine);
        if (err != NULL) {
            *err = *failed;
        }
        return failed->status;
    }
    return HR_OK;
}

static hr_status play(const hr_lesson *lesson, const hr_preset *preset, const hr_knobs *knobs,
                      const hr_lesson_watch *watch, hr_lesson_seen *out, hr_err *err)
{
    const bool plans = hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "plan");
    hr_engine *engine = NULL;
    out->knobs = *knobs;
    listener l = {.events = &out->events, .computes = !plans};
    const hr_engine_options options = {.plan_only = plans, .sink = hear, .sink_context = &l};
    hr_knobs played = *knobs;
    played.value[HR_KNOB_TRAIN_SAVE] = played.value[HR_KNOB_TRAIN_SAVE_EVERY] = (hr_knob_value){0};
    HR_TRY(hr_engine_create(preset, &played, &options, &engine, err));
    hr_status status = advance(engine, lesson->about.steps, watch, err);
    out->events.done = hr_engine_steps(engine);
    status = status == HR_OK ? hr_engine_report(engine, &out->report, err) : status;
    hr_engine_destroy(engine);
    return status;
}

// ---- a lesson under way ---------------------------------------------------------------------------------------

// What plays on a thread of its own.
typedef struct beside {
    pthread_t thread;
    bool runs; // from its start until it was waited for
    atomic_bool left, ended;
    hr_lesson_seen *seen; // of a try, owned; NULL: the table begins
    hr_knobs knobs;       // of a try
    hr_status status;
    hr_err err;
} beside;

struct hr_lesson_table {
    const hr_lesson *lesson;
    hr_lesson_watch watch;
    hr_lesson_runs runs; // what they point to is owned; the learner's is the start's until the first try
    beside beside;
};

static hr_status new_seen(const char *name, hr_lesson_seen **out, hr_err *err)
{
    *out = hr_calloc(1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for what is seen of a lesson's run");
    }
    text_copy((*out)->name, sizeof(*out)->name, name);
    return HR_OK;
}

static void free_seen(hr_lesson_seen *seen)
{
    if (seen != NULL) {
        hr_lesson_seen_deinit(seen);
        hr_free(seen);
    }
}

static hr_status add_seen(hr_lesson_table *t, const char *name, hr_lesson_seen **out, hr_err *err)
{
    HR_TRY(new_seen(name, out, err));
    t->runs.seen[t->runs.count++] = *out;
    return HR_OK;
}

static bool has_tried(const hr_lesson_table *t)
{
    return t->runs.count > 1 && t->runs.seen[0] != t->runs.seen[1];
}

static hr_status play_start(hr_lesson_table *t, hr_err *err)
{
    hr_lesson_seen *seen = NULL;
    HR_TRY(add_seen(t, "start", &seen, err));
    t->runs.seen[t->runs.count++] = seen;
    return play(t->lesson, t->lesson->preset, &t->lesson->start, &t->watch, seen, err);
}

static hr_status play_preset(hr_lesson_table *t, const hr_preset *preset, const hr_lesson_run *run,
                             hr_lesson_seen *seen, hr_err *err)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    HR_TRY(hr_knobs_set_pairs(&knobs, run->pairs, err));
    HR_TRY(hr_knobs_validate(&knobs, err));
    return play(t->lesson, preset, &knobs, &t->watch, seen, err);
}

static hr_status play_run(hr_lesson_table *t, const hr_lesson_run *run, hr_err *err)
{
    hr_knobs knobs;
    hr_preset *preset = NULL;
    hr_lesson_seen *seen = NULL;
    HR_TRY(add_seen(t, run->name, &seen, err));
    if (run->preset == NULL) {
        HR_TRY(hr_lesson_knobs(t->lesson, run->pairs, &knobs, err));
        return play(t->lesson, t->lesson->preset, &knobs, &t->watch, seen, err);
    }
    HR_TRY(hr_preset_open(run->preset, false, &preset, NULL, err));
    const hr_status status = play_preset(t, preset, run, seen, err);
    hr_preset_close(preset);
    return status;
}

static hr_status new_table(const hr_lesson *lesson, const hr_lesson_watch *watch, hr_lesson_table **out,
                           hr_err *err)
{
    *out = hr_calloc(1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a lesson");
    }
    **out = (hr_lesson_table){.lesson = lesson, .watch = *watch};
    return HR_OK;
}

static hr_status play_begin(hr_lesson_table *t, hr_err *err)
{
    hr_status status = play_start(t, err);
    for (uint32_t k = 0; k < t->lesson->about.run_count && status == HR_OK; k++) {
        status = play_run(t, &t->lesson->about.runs[k], err);
    }
    return status;
}

hr_status hr_lesson_begin(const hr_lesson *lesson, const hr_lesson_watch *watch, hr_lesson_table **out,
                          hr_err *err)
{
    hr_lesson_table *t = NULL;
    HR_TRY(new_table(lesson, watch, &t, err));
    const hr_status status = play_begin(t, err);
    if (status != HR_OK) {
        hr_lesson_end(t);
        return status;
    }
    *out = t;
    return HR_OK;
}

// What was tried takes the place of what was tried before.
static void take_try(hr_lesson_table *t, hr_lesson_seen *seen, hr_status status)
{
    hr_lesson_seen *gone = status != HR_OK ? seen : has_tried(t) ? t->runs.seen[0] : NULL;
    if (status == HR_OK) {
        t->runs.seen[0] = seen;
    }
    free_seen(gone);
}

hr_status hr_lesson_try(hr_lesson_table *t, const hr_knobs *knobs, hr_err *err)
{
    hr_lesson_seen *seen = NULL;
    HR_TRY(new_seen("now", &seen, err));
    const hr_status status = play(t->lesson, t->lesson->preset, knobs, &t->watch, seen, err);
    take_try(t, seen, status);
    return status;
}

const hr_lesson_runs *hr_lesson_table_runs(const hr_lesson_table *t)
{
    return &t->runs;
}

// ---- beside the caller's thread -------------------------------------------------------------------------------

static bool is_not_left(void *context)
{
    const hr_lesson_table *t = context;
    return !atomic_load(&t->beside.left);
}

static void *play_beside(void *context)
{
    hr_lesson_table *t = context;
    beside *b = &t->beside;
    b->status = b->seen == NULL ? play_begin(t, &b->err)
                                : play(t->lesson, t->lesson->preset, &b->knobs, &t->watch, b->seen, &b->err);
    atomic_store(&b->ended, true);
    return NULL;
}

static hr_status start_beside(hr_lesson_table *t, hr_err *err)
{
    beside *b = &t->beside;
    b->err = (hr_err){0};
    atomic_store(&b->ended, false);
    if (thread_start(&b->thread, play_beside, t) != 0) {
        return HR_FAIL(err, NOMEM, "no thread for a lesson's run");
    }
    b->runs = true;
    return HR_OK;
}

hr_status hr_lesson_begin_beside(const hr_lesson *lesson, hr_lesson_table **out, hr_err *err)
{
    hr_lesson_table *t = NULL;
    HR_TRY(new_table(lesson, &(hr_lesson_watch){.goes_on = is_not_left}, &t, err));
    t->watch.context = t;
    const hr_status status = start_beside(t, err);
    if (status != HR_OK) {
        hr_lesson_end(t);
        return status;
    }
    *out = t;
    return HR_OK;
}

hr_status hr_lesson_try_beside(hr_lesson_table *t, const hr_knobs *knobs, hr_err *err)
{
    beside *b = &t->beside;
    HR_TRY(new_seen("now", &b->seen, err));
    b->knobs = *knobs;
    const hr_status status = start_beside(t, err);
    if (status != HR_OK) {
        free_seen(b->seen);
        b->seen = NULL;
    }
    return status;
}

bool hr_lesson_is_done(hr_lesson_table *t, bool waits, hr_status *status, hr_err *err)
{
    beside *b = &t->beside;
    *status = HR_OK;
    if (!b->runs) {
        return true;
    }
    if (!waits && !atomic_load(&b->ended)) {
        return false;
    }
    (void)pthread_join(b->thread, NULL);
    b->runs = false;
    *status = b->status;
    if (b->status != HR_OK && err != NULL) {
        *err = b->err;
    }
    if (b->seen != NULL) {
        take_try(t, b->seen, b->status);
        b->seen = NULL;
    }
    return true;
}

void hr_lesson_end(hr_lesson_table *t)
{
    hr_status left;
    if (t == NULL) {
        return;
    }
    atomic_store(&t->beside.left, true);
    (void)hr_lesson_is_done(t, true, &left, NULL);
    for (uint32_t k = has_tried(t) ? 0 : 1; k < t->runs.count; k++) {
        free_seen(t->runs.seen[k]);
    }
    hr_free(t);
}
