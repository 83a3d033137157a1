// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/offer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/feed/autosave.h"

// Whether it has every setting that the command line made.
static bool has_settings(const app *a)
{
    const hr_knobs *own = hr_preset_knobs(a->feed.preset);
    bool same = true;
    for (int id = 0; id < HR_KNOB_COUNT && same; id++) {
        char its[HR_KNOB_TEXT_MAX], asked[HR_KNOB_TEXT_MAX], offered[HR_KNOB_TEXT_MAX];
        hr_knob_format(own, (hr_knob_id)id, its);
        hr_knob_format(&a->feed.knobs, (hr_knob_id)id, asked);
        hr_knob_format(&a->offer.about.knobs, (hr_knob_id)id, offered);
        same = strcmp(its, asked) == 0 || strcmp(asked, offered) == 0;
    }
    return same;
}

static bool is_what_was_asked_for(const app *a)
{
    char path[PATH_MAX];
    const bool same =
        realpath(hr_preset_path(a->feed.preset), path) != NULL && strcmp(path, a->offer.about.preset) == 0;
    return (same || !a->asked) && has_settings(a);
}

static bool can_be_offered(app *a, const autosave_file *file)
{
    return !file->left && hr_save_look(file->path, &a->offer.about, NULL) == HR_OK &&
           a->offer.about.preset[0] != '\0';
}

void offer_look(app *a)
{
    autosave_file *files = malloc(AUTOSAVES_SEEN_MAX * sizeof *files);
    const size_t count =
        files == NULL || a->feed.autosave[0] == '\0' ? 0 : autosave_dead(a->feed.autosave, files);
    size_t other = count;
    for (size_t k = 0; k < count && a->overlay != OVERLAY_OFFER; k++) {
        if (!can_be_offered(a, &files[k])) {
            continue;
        }
        if (is_what_was_asked_for(a)) {
            a->offer.file = files[k];
            a->overlay = OVERLAY_OFFER;
        } else if (other == count) {
            other = k;
        }
    }
    if (a->overlay != OVERLAY_OFFER && other < count && can_be_offered(a, &files[other])) {
        char name[OFFER_NAME_MAX];
        feed_say(&a->feed, MESSAGE_NOTE,
                 "step %" PRIu64 " of %s is kept: headroom alone offers to go on from it",
                 a->offer.about.steps, offer_name(&a->offer.about, name));
    }
    free(files);
}

const char *offer_name(const hr_save_about *about, char text[OFFER_NAME_MAX])
{
    const char *slash = strrchr(about->preset, '/');
    snprintf(text, OFFER_NAME_MAX, "%.*s", OFFER_NAME_MAX - 1, slash == NULL ? about->preset : slash + 1);
    char *dot = strrchr(text, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
    return text;
}

static void start_anew(app *a)
{
    a->overlay = OVERLAY_NONE;
    feed_start_engine(&a->feed);
}

// The knobs of that session; where it was itself gone on from is not where this one goes on from.
static void take_knobs(app *a)
{
    a->feed.knobs = a->feed.applied = a->offer.about.knobs;
    if (strstr(hr_knob_text(&a->feed.knobs, HR_KNOB_TRAIN_RESUME), "/autosave-") != NULL) {
        a->feed.knobs.value[HR_KNOB_TRAIN_RESUME] = (hr_knob_value){.set = false};
    }
}

// Whoever renames it first has it: two workbenches never go on from the same one.
static void take(app *a)
{
    hr_err err;
    hr_preset *opened = NULL;
    char *problems = NULL;
    hr_status status = hr_preset_open(a->offer.about.preset, a->offer.about.trusts, &opened, &problems, &err);
    hr_preset_problems_free(problems);
    if (status == HR_OK && rename(a->offer.file.path, a->feed.autosave) != 0) {
        status = HR_FAIL(&err, SAVE, "%.300s is there no more: another workbench goes on from it",
                         a->offer.file.path);
        hr_preset_close(opened);
    }
    if (status != HR_OK) {
        start_anew(a);
        feed_say_error(&a->feed, &err);
        return;
    }
    a->overlay = OVERLAY_NONE;
    hr_preset_close(a->feed.owned);
    a->feed.preset = a->feed.owned = opened;
    feed_forget_plans(&a->feed);
    a->feed.turned = (knob_edit_log){0}; // its knobs are as they were
    take_knobs(a);
    feed_resume_engine(&a->feed, a->offer.about.steps);
    if (a->feed.session != NULL) {
        feed_say(&a->feed, MESSAGE_NOTE, "resumed from the save of step %" PRIu64, a->offer.about.steps);
    }
}

bool offer_key(app *a, int key)
{
    const request r = request_of_key(key);
    if (key == 'y') {
        take(a);
        return true;
    }
    if (key == 'n') {
        (void)autosave_leave(&a->offer.file);
        start_anew(a);
        feed_say(&a->feed, MESSAGE_NOTE, "it stays: headroom doctor says where, and how to go on from it");
        return true;
    }
    if (r == REQUEST_QUIT || r == REQUEST_INTERRUPT) {
        a->overlay = OVERLAY_NONE; // nothing has begun: it is offered again
        return false;
    }
    if (key == INPUT_ESCAPE) {
        start_anew(a); // it is offered again
    }
    return r != REQUEST_REDRAW; // the question stands until it is answered
}
