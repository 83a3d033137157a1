// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/app.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/replay.h"
#include "headroom/units.h"

// ---- life -----------------------------------------------------------------------------------------------------

app *app_create(const hr_preset *preset, const hr_knobs *knobs)
{
    app *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return NULL;
    }
    feed_init(&a->feed, preset, knobs);
    a->bench = (bench_state){.feed = &a->feed, .glyphs = &a->looks.glyphs, .zoom = 2};
    a->focus = PANE_KNOBS;
    a->looks.glyphs = glyphs_make(GLYPHS_ASCII);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        table_view_init(&a->table[pane]);
    }
    a->runs = (runs_view){&a->feed, &a->table[PANE_RUNS]};
    a->evidence = (doctor_state){.feed = &a->feed, .glyphs = &a->looks.glyphs};
    a->learn = (learn_state){.feed = &a->feed,
                             .table = &a->table[PANE_SITUATIONS],
                             .about = &a->about,
                             .lesson_table = &a->table[PANE_LESSONS]};
    a->memory = (memory_state){.feed = &a->feed, .events = &a->table[PANE_EVENTS]};
    a->step = (step_view){.feed = &a->feed, .tables = a->table, .glyphs = &a->looks.glyphs};
    step_view_init(&a->step);
    return a;
}

static void free_presets(preset_list *list)
{
    for (int i = 0; i < PRESET_FOLDERS; i++) {
        hr_preset_list_free(list->entries[i]);
        list->entries[i] = NULL;
        list->count[i] = 0;
    }
}

void app_destroy(app *a)
{
    if (a == NULL) {
        return;
    }
    step_forget(&a->step, &a->feed);
    feed_deinit(&a->feed);
    free_presets(&a->presets);
    heap_scene_deinit(&a->memory.scene);
    learn_close(&a->learn);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        table_view_deinit(&a->table[pane]);
    }
    hr_preset_close(a->next.opened);
    free(a->remembered.text);
    free(a);
}

// ---- what engine and planner say ------------------------------------------------------------------------------

// An error stays until it was read, and the tour says it itself.
static void say_doctor_came(feed *f, bool told)
{
    if (told && f->message.kind == MESSAGE_NOTE) {
        f->message.kind = MESSAGE_NONE;
    } else if (!told && f->message.kind != MESSAGE_ERROR) {
        feed_say(f, MESSAGE_NOTE, "out of memory, so the Doctor came: a applies a fix, %s1 leaves",
                 f->turned.done > 0 ? "z turns back, " : "");
    }
}

// A page of a lesson stays: what is wrong is what it asks, and the Doctor would tell.
static bool asks_itself(const app *a)
{
    return a->feed.lesson != NULL && a->focus == PANE_LESSON;
}

// Doctor comes by itself with an out-of-memory, and goes when the training does; in a frozen view nothing comes or goes.
static void follow_state(app *a)
{
    bool oom = a->feed.live.state == HR_ENGINE_OOM;
    if (a->feed.is_frozen) {
        if (oom && !a->doctor.has_seen_oom && !a->doctor.oom_waits) {
            feed_say(&a->feed, MESSAGE_NOTE, "the training ran out of memory; Space shows why");
        }
        a->doctor.oom_waits = oom && !a->doctor.has_seen_oom;
        return;
    }
    if (oom && !a->doctor.has_seen_oom && asks_itself(a)) {
        feed_say(&a->feed, MESSAGE_NOTE, "out of memory: 4 is the Doctor, 1 the Bench");
    } else if (oom && !a->doctor.has_seen_oom) {
        bool comes_itself = a->screen != SCREEN_DOCTOR;
        a->doctor.before = a->screen;
        app_show_screen(a, SCREEN_DOCTOR);
        a->doctor.came_itself = comes_itself;
        if (comes_itself) {
            say_doctor_came(&a->feed, a->tour > 0);
        }
    } else if (run_state_is_training(&a->feed.live) && a->doctor.came_itself) {
        app_show_screen(a, a->doctor.before);
    }
    a->doctor.has_seen_oom = oom;
}

void app_freeze(app *a, bool frozen)
{
    feed_freeze(&a->feed, frozen);
    if (!frozen) {
        a->doctor.oom_waits = false;
        follow_state(a);
    }
}

void app_follow_lesson(app *a)
{
    const bool held = a->feed.lesson != NULL;
    learn_follow(&a->learn);
    a->feed.lesson = learn_holds(&a->learn);
    if (!held && a->feed.lesson != NULL && a->feed.recipe.state != RECIPE_IDLE) {
        feed_stop_recipe(&a->feed); // its callbacks could turn what is held
    }
}

// What has been played of a lesson; done is said where the lesson itself is not shown.
static bool take_lesson(app *a)
{
    const bool is_new = learn_take(&a->learn);
    app_follow_lesson(a);
    if (a->learn.lesson.tells && a->screen != SCREEN_LEARN) {
        feed_say(&a->feed, MESSAGE_NOTE, "lesson %s: done. 6 says what is behind it",
                 hr_lesson_tell(a->learn.lesson.open)->title);
    }
    a->learn.lesson.tells = false;
    return is_new;
}

bool app_drain(app *a, bool *more)
{
    *more = false;
    bool changed = false;
    if (a->feed.session != NULL) {
        changed = feed_drain_events(&a->feed, more);
        follow_state(a);
        changed = feed_drain_rest(&a->feed) || changed;
    }
    changed = take_lesson(a) || changed;
    console_follow(a);
    return app_take_plans(a, more) || changed;
}

// ---- pending work ---------------------------------------------------------------------------------------------

bool app_begins_anew(const app *a)
{
    return a->next.anew && strcmp(a->next.preset, hr_preset_path(a->feed.preset)) == 0;
}

// What is trusted is what is open, and no other file.
static bool open_next(app *a)
{
    char *problems = NULL;
    hr_err err;
    const bool trusts = app_begins_anew(a) && hr_preset_trusts(a->feed.preset);
    hr_status status = hr_replay_open_preset(a->next.preset, trusts, &a->next.opened, &problems, &err);
    hr_preset_problems_free(problems);
    if (status != HR_OK) {
        a->next.opened = NULL;
        feed_say_error(&a->feed, &err);
    }
    return status == HR_OK;
}

static void drop_next(app *a)
{
    feed_forget_judge(&a->feed);
    hr_preset_close(a->next.opened);
    a->next.opened = NULL;
    a->next.stands = false;
    a->next.work = PENDING_NONE;
}

static const hr_knobs *next_knobs(const app *a)
{
    return a->next.work == PENDING_RESTART ? &a->feed.knobs
           : a->next.anew                  ? &a->next.knobs
                                           : hr_preset_knobs(a->next.opened);
}

// The training ends for what stands, and for nothing else.
static bool next_stands(app *a)
{
    if (a->next.work == PENDING_QUIT || a->next.stands) {
        return true;
    }
    const bool again = a->next.work == PENDING_RESTART;
    judgement v = JUDGED_REFUSED;
    if (again || a->next.opened != NULL || open_next(a)) {
        v = feed_judge(&a->feed, again ? a->feed.preset : a->next.opened, next_knobs(a));
    }
    a->next.stands = v == JUDGED_STANDS;
    if (v == JUDGED_REFUSED) {
        drop_next(a);
    }
    return a->next.stands;
}

bool app_cancel_next(app *a)
{
    const bool waits = a->feed.judge != NULL;
    if (waits) {
        drop_next(a);
    }
    return waits;
}

// Not in a lesson: it would tell what the lesson asks.
static void say_about(app *a)
{
    if (a->feed.lesson != NULL) {
        return;
    }
    app_tell_about(a);
    if (a->about.text[0] != '\0') {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", a->about.text);
    }
}

static void switch_preset(app *a)
{
    hr_err unsaved = {0};
    const hr_knobs knobs = *next_knobs(a);
    hr_status status = feed_stop_engine(&a->feed, &unsaved);
    run_log_close(&a->feed.runs);
    a->feed.runs.pinned = 0;
    fit_forget(&a->feed.fit);
    hr_preset_close(a->feed.owned);
    a->feed.preset = a->feed.owned = a->next.opened;
    a->next.opened = NULL;
    feed_forget_plans(&a->feed);
    a->feed.knobs = a->feed.applied = knobs;
    app_follow_lesson(a);
    feed_select_first(&a->feed);
    run_state_init(&a->feed.live);
    heap_record_clear(&a->feed.heap);
    heap_scene_clear(&a->memory.scene);
    memset(&a->feed.turned, 0, sizeof a->feed.turned);
    step_forget(&a->step, &a->feed);
    a->bench.baseline.pinned = a->doctor.has_seen_oom = false;
    app_freeze(a, false);
    a->feed.message.kind = MESSAGE_NONE;
    app_show_screen(a, a->feed.lesson != NULL ? SCREEN_LEARN : SCREEN_BENCH); // what is wanted comes first
    feed_start_engine(&a->feed);
    say_about(a);
    if (status != HR_OK) {
        a->feed.end_status = HR_OK;
        feed_say(&a->feed, MESSAGE_ERROR, "the training that ended was not saved: %s", unsaved.sentence);
    }
}

void app_work(app *a)
{
    const pending work = a->next.work;
    if (work == PENDING_NONE || !next_stands(a) || (work != PENDING_RESTART && !feed_let_end(&a->feed))) {
        return;
    }
    a->next.work = PENDING_NONE;
    a->next.stands = false;
    if (work == PENDING_PRESET) {
        switch_preset(a);
    } else if (work == PENDING_RESTART) {
        feed_restart_engine(&a->feed);
    } else {
        (void)feed_stop_engine(&a->feed, NULL);
        a->quits = true;
    }
}

// ---- what the screen asks -------------------------------------------------------------------------------------

layout_wish app_wish(const app *a)
{
    return (layout_wish){screen_row_of(a->screen), a->expanded, a->focus, KNOB_EDIT_FRONT};
}

layout app_layout(const app *a)
{
    layout_wish wish = app_wish(a);
    return layout_make(a->rows, a->columns, &wish);
}

const hr_preset_entry *app_preset_entry(const app *a, size_t index)
{
    for (int folder = 0; folder < PRESET_FOLDERS; folder++) {
        for (size_t i = 0; i < a->presets.count[folder]; i++) {
            const hr_preset_entry *entry = &a->presets.entries[folder][i];
            bool matches = strcasestr(entry->name, a->presets.filter) != NULL ||
                           strcasestr(entry->title, a->presets.filter) != NULL;
            if (matches && index-- == 0) {
                return entry;
            }
        }
    }
    return NULL;
}
