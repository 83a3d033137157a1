// SPDX-License-Identifier: Apache-2.0
// Starting, stopping and leaving a training, and which one.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/replay.h"
#include "headroom/words.h"

#include "app/tui/shell/act.h"

void act_run_or_pause(app *a, int unused)
{
    (void)unused;
    if (!feed_engine_lives(&a->feed)) {
        act_restart(a, 0);
    } else if (run_state_is_training(&a->feed.live)) {
        feed_send_plain(&a->feed, HR_COMMAND_PAUSE, 0);
        feed_say(&a->feed, MESSAGE_NOTE, "training pauses after this step; r goes on");
    } else {
        // Once all steps are done, "run" means as many again.
        uint64_t all = (uint64_t)hr_knob_int(&a->feed.applied, HR_KNOB_TRAIN_STEPS);
        bool done = a->feed.live.state == HR_ENGINE_IDLE && all > 0 && a->feed.live.steps >= all;
        feed_send_plain(&a->feed, HR_COMMAND_RUN, done ? all : 0);
    }
}

void act_restart(app *a, int unused)
{
    (void)unused;
    const char *why_not = feed_why_not_again(&a->feed);
    if (why_not != NULL) {
        feed_say(&a->feed, MESSAGE_ERROR, "%s\ntry: %s", why_not, a->feed.death.remedy);
    } else if (a->feed.life == HR_SESSION_SILENT) {
        a->next.work = PENDING_RESTART; // it may go on yet: it is killed for one that stands
        feed_say(&a->feed, MESSAGE_NOTE, "trying what is to take its place; Esc leaves it");
    } else {
        feed_restart_engine(&a->feed);
    }
}

// Of what is shown too, when that is a frozen copy.
static void mark_baseline(feed *f, uint32_t number)
{
    f->runs.pinned = number;
    f->runs.version++;
    if (f->frozen_runs != NULL) {
        f->frozen_runs->pinned = number;
        f->frozen_runs->version++;
    }
}

static void pin(app *a)
{
    for (int i = 0; i < COUNTER_COUNT; i++) {
        a->bench.baseline.counter[i] = counter_value(&a->bench, (counter_id)i);
    }
    a->bench.baseline.step_seconds = run_state_step_seconds(feed_run_state(&a->feed));
    a->bench.baseline.loss_per_second = run_state_loss_per_second(feed_run_state(&a->feed));
    a->bench.baseline.pinned = true;
    const run *r = run_log_current(feed_runs(&a->feed));
    mark_baseline(&a->feed, r == NULL ? 0 : r->number);
    feed_say(&a->feed, MESSAGE_NOTE, "pinned: every number shows what changed since; B forgets it");
}

void act_quit(app *a, int unused)
{
    (void)unused;
    if (feed_may_lose(&a->feed) && a->overlay != OVERLAY_QUIT) {
        a->overlay = OVERLAY_QUIT;
        return;
    }
    a->overlay = OVERLAY_NONE;
    a->next.work = PENDING_QUIT;
}

void act_interrupt(app *a, int unused)
{
    (void)unused;
    if (a->feed.recipe.state != RECIPE_IDLE && !a->feed.recipe.stopping) {
        feed_stop_recipe(&a->feed);
        feed_say(&a->feed, MESSAGE_NOTE, "the recipe stops; ^C again pauses the training");
        return;
    }
    if (run_state_is_training(&a->feed.live) && a->feed.watched == NULL && !a->interrupted) {
        a->interrupted = true;
        feed_send_plain(&a->feed, HR_COMMAND_PAUSE, 0);
        feed_say(&a->feed, MESSAGE_NOTE, "training pauses after this step; ^C again leaves");
        return;
    }
    a->feed.keeps = true; // it was not asked what is to become of it
    a->next.work = PENDING_QUIT;
}

void act_pin(app *a, int pinned)
{
    if (pinned) {
        pin(a);
    }
    a->bench.baseline.pinned = pinned != 0;
    if (!pinned) {
        mark_baseline(&a->feed, 0);
    }
}

// ---- presets --------------------------------------------------------------------------------------------------

const char *const preset_folders[PRESET_FOLDERS] = {"", "models", "articles"};

void act_presets(app *a, int unused)
{
    (void)unused;
    hr_err err;
    for (int i = 0; i < PRESET_FOLDERS; i++) {
        hr_preset_list_free(a->presets.entries[i]);
        a->presets.entries[i] = NULL;
        a->presets.count[i] = 0;
        if (hr_preset_list(preset_folders[i], &a->presets.entries[i], &a->presets.count[i], &err) != HR_OK) {
            a->presets.entries[i] = NULL;
            a->presets.count[i] = 0;
            feed_say_error(&a->feed, &err);
        }
    }
    a->presets.selected = a->presets.top = 0;
    a->presets.filter[0] = '\0';
    a->overlay = OVERLAY_PRESETS;
}

static void take_about(app *a, const char *name, const hr_preset *preset)
{
    snprintf(a->about.name, sizeof a->about.name, "%s", name);
    const char *note = preset == NULL ? "" : hr_preset_note(preset);
    snprintf(a->about.text, sizeof a->about.text, "%s%s%s",
             preset == NULL ? "" : hr_preset_description(preset), note[0] != '\0' ? " " : "", note);
    for (size_t end = strlen(a->about.text); end > 0 && a->about.text[end - 1] <= ' '; end--) {
        a->about.text[end - 1] = '\0';
    }
    (void)hr_plain_text(a->about.text, "");
}

void app_read_about(app *a, const char *name)
{
    hr_preset *preset = NULL;
    hr_err err;
    if (strcmp(a->about.name, name) == 0) {
        return;
    }
    bool there = hr_preset_open(name, false, &preset, NULL, &err) == HR_OK;
    take_about(a, name, there ? preset : NULL);
    if (there) {
        hr_preset_close(preset);
    }
}

void app_tell_about(app *a)
{
    take_about(a, hr_preset_name(a->feed.preset), a->feed.preset);
    if (a->about.text[0] != '\0') {
        run_state_log(&a->feed.live, LOG_NOTE, "%s", a->about.text);
    }
}

void app_switch_preset(app *a)
{
    (void)app_cancel_next(a);
    a->overlay = OVERLAY_NONE;
    a->next.work = PENDING_PRESET;
    feed_say(&a->feed, MESSAGE_NOTE, "trying %s: the training ends once it stands; Esc leaves it",
             a->next.preset);
}

// What cannot be opened is said before anything is asked about the training.
static bool opens(feed *f, const char *name)
{
    hr_preset *opened;
    char *problems = NULL;
    hr_err err;
    hr_status status = hr_replay_open_preset(name, false, &opened, &problems, &err);
    hr_preset_problems_free(problems);
    if (status == HR_OK) {
        status = hr_knobs_validate(hr_preset_knobs(opened), &err);
        hr_preset_close(opened);
    }
    if (status != HR_OK) {
        feed_say_error(f, &err);
    }
    return status == HR_OK;
}

static void ask_to_end(app *a, const char *name)
{
    if (feed_why_not_command(&a->feed) != NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s", feed_why_not_command(&a->feed));
        return;
    }
    snprintf(a->next.preset, sizeof a->next.preset, "%s", name);
    if (run_state_is_training(&a->feed.live) || a->feed.live.steps > 0) {
        a->overlay = OVERLAY_SWITCH;
    } else {
        app_switch_preset(a);
    }
}

void app_open_preset(app *a, const char *name)
{
    if (!opens(&a->feed, name)) {
        return;
    }
    a->next.anew = false;
    ask_to_end(a, name);
}

void app_begin_anew(app *a, const hr_knobs *knobs)
{
    a->next.anew = true;
    a->next.knobs = *knobs;
    ask_to_end(a, hr_preset_path(a->feed.preset));
}

void app_begin_preset(app *a, const char *name, const hr_knobs *knobs)
{
    a->next.anew = true;
    a->next.knobs = *knobs;
    ask_to_end(a, name);
}

// ---- in the editor --------------------------------------------------------------------------------------------

const char *act_why_not_edit(const feed *f)
{
    return f->scripted ? "a script has no terminal to lend to an editor"
           : hr_preset_path(f->preset)[0] == '\0'
               ? "this preset is no file: :export preset FILE.yaml makes one"
               : NULL;
}

void act_edit_preset(app *a, int unused)
{
    (void)unused;
    const char *path = hr_preset_path(a->feed.preset);
    if (access(path, W_OK) != 0) {
        feed_say(&a->feed, MESSAGE_ERROR,
                 "%s cannot be written\ntry: :export preset mine.yaml, then :preset ./mine.yaml", path);
        return;
    }
    a->edits_preset = true;
}

// What is wrong with it is set right where it was made.
static void say_edit_again(feed *f)
{
    char wrong[sizeof f->message.text];
    const char *hint = strstr(f->message.text, "\ntry: ");
    const size_t length = hint == NULL ? strlen(f->message.text) : (size_t)(hint - f->message.text);
    snprintf(wrong, sizeof wrong, "%.*s", (int)length, f->message.text);
    feed_say(f, MESSAGE_ERROR, "%s\ntry: E, which opens it again", wrong);
}

void act_preset_was_edited(app *a, bool changed)
{
    a->edits_preset = false;
    if (changed) {
        a->feed.message.kind = MESSAGE_NONE;
        app_open_preset(a, hr_preset_path(a->feed.preset));
        if (a->feed.message.kind == MESSAGE_ERROR) {
            say_edit_again(&a->feed);
        }
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "%s is as it was", hr_preset_path(a->feed.preset));
    }
}

void act_choose_preset(app *a)
{
    const hr_preset_entry *entry = app_preset_entry(a, a->presets.selected);
    a->overlay = OVERLAY_NONE;
    if (entry != NULL) {
        app_open_preset(a, entry->name);
    }
}
