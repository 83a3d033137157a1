// SPDX-License-Identifier: Apache-2.0
// The worker's life as the workbench sees it: started, silent, ended, started again. Whatever becomes of it, what it has
// told stays on the screen.
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/card.h"

#include "app/tui/app.h"

// The limit that the knobs ask for, until the engine's report says it.
static void guess_limit(app *a)
{
    hr_card card;
    const char *name = hr_knob_text(&a->knobs, HR_KNOB_DEVICE_CARD);
    bool has_card = name[0] != '\0' && hr_card_load(name, &card, NULL) == HR_OK;
    uint64_t limit_bytes;
    if (hr_device_limit_bytes(&a->knobs, has_card ? &card : NULL, &limit_bytes, NULL) == HR_OK) {
        a->live.limit_bytes = hr_limit_is_none(limit_bytes) ? 0 : limit_bytes;
    }
}

static void start(app *a, const char *resume_path)
{
    hr_err err;
    hr_session_options options = {.preset = hr_preset_path(a->preset),
                                  .trusts = hr_preset_trusts(a->preset),
                                  .knobs = &a->knobs,
                                  .resume_path = resume_path,
                                  .autosave_path = a->autosave[0] == '\0' ? NULL : a->autosave,
                                  .watchable = !a->scripted};
    if (!a->unknown) {
        guess_limit(a);
    }
    a->applied = a->knobs;
    memset(a->cut, 0, sizeof a->cut);
    a->stepped_is_old = true;
    if (a->live.steps == 0) {
        a->stepped = a->knobs; // what the first one will be of
    }
    a->life = HR_SESSION_LIVE;
    hr_status status = a->watched != NULL ? hr_session_attach(a->watched, &a->session, &err)
                       : a->scripted      ? hr_session_start_inline(&options, &a->session, &err)
                                          : hr_session_start(&options, &a->session, &err);
    if (status != HR_OK) {
        a->session = NULL;
        a->live.state = HR_ENGINE_FAILED;
        app_say_error(a, &err);
        return;
    }
    if (a->watched == NULL) {
        app_send_plain(a, HR_COMMAND_RUN, 0);
    }
    app_ask_whatif(a);
}

const char *app_why_not_command(const app *a)
{
    return a->watched == NULL ? NULL : "this training is somebody else's: it can be watched, not turned";
}

void app_start_engine(app *a)
{
    start(a, NULL);
}

void app_resume_engine(app *a, uint64_t steps)
{
    a->saved_step = a->live.steps = steps; // before the first step says so
    start(a, a->autosave);
    if (a->session != NULL) {
        run_state_log(&a->live, LOG_GOOD, "resumed from the save of step %" PRIu64, steps);
    }
}

bool app_may_lose(const app *a)
{
    const bool computes = !hr_knob_is(&a->applied, HR_KNOB_DEVICE_KIND, "plan");
    const bool saves = hr_knob_text(&a->applied, HR_KNOB_TRAIN_SAVE)[0] != '\0' && app_engine_lives(a);
    return a->watched == NULL && a->session != NULL && computes && !saves && a->live.steps > 0 &&
           a->live.steps != a->kept_step;
}

// What stands at the end is what it stands at: the worker saves before it goes.
static void tell_to_keep(app *a)
{
    if (a->keeps && !a->keeps_told && app_engine_lives(a)) {
        a->keeps_told = app_send_plain(a, HR_COMMAND_KEEP, 0);
    }
}

bool app_let_end(app *a)
{
    tell_to_keep(a);
    if (a->session == NULL || hr_session_try_stop(a->session)) {
        a->ending = false;
        return true;
    }
    const char *save = hr_knob_text(&a->applied, HR_KNOB_TRAIN_SAVE);
    if (!a->ending) {
        app_say(a, MESSAGE_NOTE, "%s%s: it ends with what it is doing; q ends it at once%s",
                save[0] == '\0' ? "the training ends" : "saving ", save, save[0] == '\0' ? "" : ", unsaved");
    }
    a->ending = true;
    return false;
}

void app_end_at_once(app *a)
{
    if (a->ending && a->session != NULL) {
        hr_session_kill(a->session);
    }
}

static void forget_session(app *a)
{
    a->end_status = hr_session_stop(a->session, &a->end_error);
    a->session = NULL;
    a->ending = false;
    hr_report_deinit(&a->report);
    a->has_report = false;
    hr_report_deinit(&a->newest_report);
    a->has_newest_report = false;
    a->report_version++;
    a->report_taken = a->error_version = a->heap_version = 0;
    heap_record_clear(&a->heap); // what is shown of it stays
}

hr_status app_stop_engine(app *a, hr_err *err)
{
    if (a->session != NULL) {
        tell_to_keep(a);
        forget_session(a);
        app_forget_plans(a);
        a->death = (death){0}; // the next training is another one
        if (a->autosave[0] != '\0' && !a->keeps) {
            (void)unlink(a->autosave); // it was for a restart of this training
        }
        a->saved_step = a->kept_step = HR_NONE;
    }
    if (a->end_status != HR_OK && err != NULL) {
        *err = a->end_error;
    }
    return a->end_status;
}

// A worker that dies before it has read the save it was to go on from has none of its own: that one stands.
static void note_save(app *a, const hr_session_end *end)
{
    if (end->saved_step != HR_NONE) {
        a->saved_step = end->saved_step;
    }
}

// What it says at its end, or said before when that does not come.
static void end_by_kill(app *a)
{
    enum { LOOKS = 300, LOOK_MS = 10 };
    hr_session_end end = {.saved_step = HR_NONE};
    hr_session_kill(a->session);
    hr_session_life life = hr_session_get_life(a->session, &end);
    for (int k = 0; k < LOOKS && life != HR_SESSION_ENDED && hr_session_fd(a->session) >= 0; k++) {
        (void)poll(NULL, 0, LOOK_MS);
        life = hr_session_get_life(a->session, &end);
    }
    if (life != HR_SESSION_LIVE) {
        note_save(a, &end);
    }
}

void app_restart_engine(app *a)
{
    if (a->session != NULL) {
        end_by_kill(a);
        forget_session(a);
        a->end_status = HR_OK; // killed: there was no save to fail
    }
    bool saved = a->saved_step != HR_NONE && a->autosave[0] != '\0';
    run_state_restart(&a->live);
    a->message.kind = MESSAGE_NONE;
    start(a, saved ? a->autosave : NULL);
    if (a->session != NULL && saved) {
        run_state_log(&a->live, LOG_GOOD, "started again from the save of step %" PRIu64, a->saved_step);
    } else if (a->session != NULL) {
        run_state_log(&a->live, LOG_GOOD, "started again from the beginning");
    }
}

bool app_engine_lives(const app *a)
{
    return a->session != NULL && a->life != HR_SESSION_ENDED;
}

// ---- what became of it ----------------------------------------------------------------------------------------

// "in conv1/conv2d_bwd_weights (instruction 33) of step 413"
static void say_where(const app *a, const hr_session_end *end, char *text, size_t size)
{
    const hr_step_plan *p = app_step_plan(a);
    if (end->instr == HR_NO_ID) {
        snprintf(text, size, "after step %" PRIu64, end->step);
    } else if (p != NULL && end->instr < p->instr_count) {
        snprintf(text, size, "in %s (instruction %" PRIu32 ") of step %" PRIu64,
                 hr_step_plan_text(p, p->instrs[end->instr].name), end->instr, end->step + 1);
    } else {
        snprintf(text, size, "in instruction %" PRIu32 " of step %" PRIu64, end->instr, end->step + 1);
    }
}

static void say_way_on(const app *a, char *text, size_t size)
{
    if (a->life == HR_SESSION_ENDED && death_why_not(a) != NULL) {
        snprintf(text, size, "%s", a->death.remedy);
    } else if (a->saved_step == HR_NONE) {
        snprintf(text, size, "R starts it again from the beginning");
    } else {
        snprintf(text, size, "R goes on from the save of step %" PRIu64, a->saved_step);
    }
}

static void say_end(app *a)
{
    char where[HR_NAME_MAX + 80], way_on[DEATH_TEXT_MAX];
    say_where(a, &a->end, where, sizeof where);
    if (a->life == HR_SESSION_ENDED) {
        death_note(a, where);
    }
    say_way_on(a, way_on, sizeof way_on);
    bool silent = a->life == HR_SESSION_SILENT;
    if (silent) {
        app_say(a, MESSAGE_ERROR, "the worker has shown no sign of life for %d s, %s\ntry: wait%s%s",
                (int)(HR_SESSION_SILENT_NS / 1000000000), where, a->watched != NULL ? "" : ", or ",
                a->watched != NULL ? "" : way_on);
    } else if (hr_session_is_read_only(a->session)) {
        app_say(a, MESSAGE_NOTE, "what was watched has ended: %s", a->end.sentence);
    } else {
        app_say(a, MESSAGE_ERROR, "the worker ended %s: %s\ntry: %s", where, a->end.sentence, way_on);
    }
    run_state_log(&a->live, silent ? LOG_WARN : LOG_BAD, "%s", a->message.text);
}

static void restart_on_new_device(app *a)
{
    const hr_session_end end = a->end;
    app_restart_engine(a);
    app_say(a, MESSAGE_NOTE, "the device was lost, and the worker started again from the %s: %s",
            a->saved_step != HR_NONE ? "last save" : "beginning", end.sentence);
}

bool app_check_life(app *a)
{
    hr_session_end end;
    if (a->ending) {
        return false; // it is meant to
    }
    hr_session_life life = a->session == NULL ? a->life : hr_session_get_life(a->session, &end);
    if (life == a->life) {
        return false;
    }
    a->life = life;
    if (life == HR_SESSION_LIVE) {
        app_say(a, MESSAGE_NOTE, "the worker goes on");
        return true;
    }
    a->end = end;
    note_save(a, &end);
    if (life == HR_SESSION_ENDED) {
        a->live.state = HR_ENGINE_FAILED;
        a->was_killed = a->watched != NULL && end.exit_code < 0; // it said no word
        (a->watched != NULL && !a->was_killed ? run_log_close : run_log_fail)(&a->runs);
    }
    say_end(a);
    // One that is lost again before a step was done would be lost a third time: somebody has to look.
    if (end.device_lost && !a->stepped_is_old) {
        restart_on_new_device(a);
    }
    return true;
}
