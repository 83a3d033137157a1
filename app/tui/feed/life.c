// SPDX-License-Identifier: Apache-2.0
// The worker's life as the workbench sees it: started, silent, ended, started again. Whatever becomes of it, what it has
// told stays on the screen.
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/card.h"

#include "app/tui/feed/feed.h"

// The limit that the knobs ask for, until the engine's report says it.
static void guess_limit(feed *f)
{
    hr_card card;
    const char *name = hr_knob_text(&f->knobs, HR_KNOB_DEVICE_CARD);
    bool has_card = name[0] != '\0' && hr_card_load(name, &card, NULL) == HR_OK;
    uint64_t limit_bytes;
    if (hr_device_limit_bytes(&f->knobs, has_card ? &card : NULL, &limit_bytes, NULL) == HR_OK) {
        f->live.limit_bytes = hr_limit_is_none(limit_bytes) ? 0 : limit_bytes;
    }
}

static void start(feed *f, const char *resume_path)
{
    hr_err err;
    hr_session_options options = {.preset = hr_preset_path(f->preset),
                                  .trusts = hr_preset_trusts(f->preset),
                                  .knobs = &f->knobs,
                                  .resume_path = resume_path,
                                  .autosave_path = f->autosave[0] == '\0' ? NULL : f->autosave,
                                  .guest = f->guest,
                                  .watchable = !f->scripted};
    feed_forget_recipe(f);
    if (!f->unknown) {
        guess_limit(f);
    }
    f->applied = f->knobs;
    memset(f->cut, 0, sizeof f->cut);
    f->stepped_is_old = true;
    if (f->live.steps == 0) {
        f->stepped = f->knobs; // what the first one will be of
    }
    f->life = HR_SESSION_LIVE;
    hr_status status = f->watched != NULL ? hr_session_attach(f->watched, &f->session, &err)
                       : f->scripted      ? hr_session_start_inline(&options, &f->session, &err)
                                          : hr_session_start(&options, &f->session, &err);
    if (status != HR_OK) {
        f->session = NULL;
        f->live.state = HR_ENGINE_FAILED;
        feed_say_error(f, &err);
        return;
    }
    if (f->watched == NULL) {
        feed_send_plain(f, HR_COMMAND_RUN, 0);
    }
    feed_ask_whatif(f);
}

void feed_start_engine(feed *f)
{
    start(f, NULL);
}

void feed_resume_engine(feed *f, uint64_t steps)
{
    f->saved_step = f->live.steps = steps; // before the first step says so
    start(f, f->autosave);
    if (f->session != NULL) {
        run_state_log(&f->live, LOG_GOOD, "resumed from the save of step %" PRIu64, steps);
    }
}

bool feed_may_lose(const feed *f)
{
    const bool computes = !hr_knob_is(&f->applied, HR_KNOB_DEVICE_KIND, "plan");
    const bool saves = hr_knob_text(&f->applied, HR_KNOB_TRAIN_SAVE)[0] != '\0' && feed_engine_lives(f);
    return f->watched == NULL && f->session != NULL && computes && !saves && f->live.steps > 0 &&
           f->live.steps != f->kept_step;
}

// What stands at the end is what it stands at: the worker saves before it goes.
static void tell_to_keep(feed *f)
{
    if (f->keeps && !f->keeps_told && feed_engine_lives(f)) {
        f->keeps_told = feed_send_plain(f, HR_COMMAND_KEEP, 0);
    }
}

bool feed_let_end(feed *f)
{
    tell_to_keep(f);
    if (f->session == NULL || hr_session_try_stop(f->session)) {
        f->ending = false;
        return true;
    }
    const char *save = hr_knob_text(&f->applied, HR_KNOB_TRAIN_SAVE);
    if (!f->ending && f->recipe.state == RECIPE_WORKS) {
        hr_session_interrupt(f->session); // then it hears that it is to end
    }
    if (!f->ending) {
        feed_say(f, MESSAGE_NOTE, "%s%s: it ends with what it is doing; q ends it at once%s",
                 save[0] == '\0' ? "the training ends" : "saving ", save, save[0] == '\0' ? "" : ", unsaved");
    }
    f->ending = true;
    return false;
}

void feed_end_at_once(feed *f)
{
    if (f->ending && f->session != NULL) {
        hr_session_kill(f->session);
    }
}

static void forget_session(feed *f)
{
    f->end_status = hr_session_stop(f->session, &f->end_error);
    f->session = NULL;
    f->ending = false;
    hr_report_deinit(&f->report);
    f->has_report = false;
    hr_report_deinit(&f->newest_report);
    f->has_newest_report = false;
    f->report_version++;
    f->report_taken = f->error_version = f->heap_version = 0;
    heap_record_clear(&f->heap); // what is shown of it stays
}

hr_status feed_stop_engine(feed *f, hr_err *err)
{
    if (f->session != NULL) {
        tell_to_keep(f);
        forget_session(f);
        feed_forget_plans(f);
        f->death = (death){0}; // the next training is another one
        if (f->autosave[0] != '\0' && !f->keeps) {
            (void)unlink(f->autosave); // it was for a restart of this training
        }
        f->saved_step = f->kept_step = HR_NONE;
    }
    if (f->end_status != HR_OK && err != NULL) {
        *err = f->end_error;
    }
    return f->end_status;
}

// A worker that dies before it has read the save it was to go on from has none of its own: that one stands.
static void note_save(feed *f, const hr_session_end *end)
{
    if (end->saved_step != HR_NONE) {
        f->saved_step = end->saved_step;
    }
}

// What it says at its end, or said before when that does not come.
static void end_by_kill(feed *f)
{
    enum { LOOKS = 300, LOOK_MS = 10 };
    hr_session_end end = {.saved_step = HR_NONE};
    hr_session_kill(f->session);
    hr_session_life life = hr_session_get_life(f->session, &end);
    for (int k = 0; k < LOOKS && life != HR_SESSION_ENDED && hr_session_fd(f->session) >= 0; k++) {
        (void)poll(NULL, 0, LOOK_MS);
        life = hr_session_get_life(f->session, &end);
    }
    if (life != HR_SESSION_LIVE) {
        note_save(f, &end);
    }
}

void feed_restart_engine(feed *f)
{
    if (f->session != NULL) {
        end_by_kill(f);
        forget_session(f);
        f->end_status = HR_OK; // killed: there was no save to fail
    }
    bool saved = f->saved_step != HR_NONE && f->autosave[0] != '\0';
    run_state_restart(&f->live);
    f->message.kind = MESSAGE_NONE;
    start(f, saved ? f->autosave : NULL);
    if (f->session != NULL && saved) {
        run_state_log(&f->live, LOG_GOOD, "started again from the save of step %" PRIu64, f->saved_step);
    } else if (f->session != NULL) {
        run_state_log(&f->live, LOG_GOOD, "started again from the beginning");
    }
}

// ---- what became of it ----------------------------------------------------------------------------------------

// "in conv1/conv2d_bwd_weights (instruction 33) of step 413"
static void say_where(const feed *f, const hr_session_end *end, char *text, size_t size)
{
    const hr_step_plan *p = feed_step_plan(f);
    if (end->instr == HR_NO_ID) {
        snprintf(text, size, "after step %" PRIu64, end->step);
    } else if (p != NULL && end->instr < p->instr_count) {
        snprintf(text, size, "in %s (instruction %" PRIu32 ") of step %" PRIu64,
                 hr_step_plan_text(p, p->instrs[end->instr].name), end->instr, end->step + 1);
    } else {
        snprintf(text, size, "in instruction %" PRIu32 " of step %" PRIu64, end->instr, end->step + 1);
    }
}

static void say_way_on(const feed *f, char *text, size_t size)
{
    if (f->life == HR_SESSION_ENDED && feed_why_not_again(f) != NULL) {
        snprintf(text, size, "%s", f->death.remedy);
    } else if (f->saved_step == HR_NONE) {
        snprintf(text, size, "R starts it again from the beginning");
    } else {
        snprintf(text, size, "R goes on from the save of step %" PRIu64, f->saved_step);
    }
}

static void say_end(feed *f)
{
    char where[HR_NAME_MAX + 80], way_on[DEATH_TEXT_MAX];
    say_where(f, &f->end, where, sizeof where);
    if (f->life == HR_SESSION_ENDED) {
        feed_note_death(f, where);
    }
    say_way_on(f, way_on, sizeof way_on);
    bool silent = f->life == HR_SESSION_SILENT;
    if (silent) {
        feed_say(f, MESSAGE_ERROR, "the worker has shown no sign of life for %d s, %s\ntry: wait%s%s",
                 (int)(HR_SESSION_SILENT_NS / 1000000000), where, f->watched != NULL ? "" : ", or ",
                 f->watched != NULL ? "" : way_on);
    } else if (hr_session_is_read_only(f->session)) {
        feed_say(f, MESSAGE_NOTE, "what was watched has ended: %s", f->end.sentence);
    } else {
        feed_say(f, MESSAGE_ERROR, "the worker ended %s: %s\ntry: %s", where, f->end.sentence, way_on);
    }
    run_state_log(&f->live, silent ? LOG_WARN : LOG_BAD, "%s", f->message.text);
}

static void restart_on_new_device(feed *f)
{
    const hr_session_end end = f->end;
    feed_restart_engine(f);
    feed_say(f, MESSAGE_NOTE, "the device was lost, and the worker started again from the %s: %s",
             f->saved_step != HR_NONE ? "last save" : "beginning", end.sentence);
}

// Whether this end was that of a recipe that hung: then another worker goes on.
static bool outlive_recipe(feed *f)
{
    enum { HANGS_EXIT_CODE = 3 };
    static const char last[] = "the last it said: ";
    const hr_session_end end = f->end;
    const char *said = strstr(end.sentence, last);
    const bool rested = f->recipe.state == RECIPE_WORKS && f->recipe.rested;
    if (f->recipe.state == RECIPE_IDLE || end.signal != 0 || end.exit_code != HANGS_EXIT_CODE) {
        return false;
    }
    feed_restart_engine(f);
    const uint64_t from = f->saved_step == HR_NONE ? 0 : f->saved_step;
    if (rested) { // as it was before: both are taken before a step is done
        feed_send_plain(f, HR_COMMAND_PAUSE, 0);
        f->live.steps = from;
    }
    feed_say(f, MESSAGE_ERROR,
             "the recipe hung: %s, so its process gave way to another one. The training %s step %" PRIu64
             "%s",
             said == NULL ? f->recipe.name : said + sizeof last - 1, rested ? "rests at" : "goes on from",
             from, end.step > from ? ", the steps after that are lost" : "");
    run_state_log(&f->live, LOG_BAD, "%s", f->message.text);
    return true;
}

bool feed_check_life(feed *f)
{
    hr_session_end end;
    if (f->ending) {
        return false; // it is meant to
    }
    hr_session_life life = f->session == NULL ? f->life : hr_session_get_life(f->session, &end);
    if (life == f->life) {
        return false;
    }
    f->life = life;
    if (life == HR_SESSION_LIVE) {
        feed_say(f, MESSAGE_NOTE, "the worker goes on");
        return true;
    }
    f->end = end;
    note_save(f, &end);
    if (life == HR_SESSION_ENDED) {
        f->live.state = HR_ENGINE_FAILED;
        f->was_killed = f->watched != NULL && end.exit_code < 0; // it said no word
        (f->watched != NULL && !f->was_killed ? run_log_close : run_log_fail)(&f->runs);
    }
    if (life == HR_SESSION_ENDED && outlive_recipe(f)) {
        return true;
    }
    say_end(f);
    // One that is lost again before a step was done would be lost a third time: the user has to look.
    if (end.device_lost && !f->stepped_is_old) {
        restart_on_new_device(f);
    }
    return true;
}

// ---- beginning and end ----------------------------------------------------------------------------------------

void feed_select_first(feed *f)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (f->knob = 0; f->knob + 1 < count && feed_why_not_turn(f, panel[f->knob]) != NULL;) {
        f->knob++;
    }
}

void feed_init(feed *f, const hr_preset *preset, const hr_knobs *knobs)
{
    f->preset = preset;
    f->knobs = f->applied = *knobs;
    f->saved_step = f->kept_step = HR_NONE;
    run_state_init(&f->live);
    feed_select_first(f);
}

void feed_deinit(feed *f)
{
    (void)feed_stop_engine(f, NULL);
    feed_stop_planner(f);
    feed_forget_judge(f);
    heap_record_deinit(&f->heap);
    free(f->frozen_runs);
    f->frozen_runs = NULL;
    if (f->has_step_plan) {
        hr_step_plan_deinit(&f->step_plan);
        f->has_step_plan = false;
    }
    hr_preset_close(f->owned);
    f->owned = NULL;
}
