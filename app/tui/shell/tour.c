// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/tour.h"

#include "app/tui/shell/act.h"
#include "app/tui/shell/remember.h"

static const struct {
    request done; // by this the step is
    const char *line;
} steps[] = {
    {REQUEST_RIGHT, "tour 1/9: → turns batch size up: see what it does to memory"},
    {REQUEST_UNDO, "tour 2/9: z undoes it; beside each knob stands what its next value would do"},
    {REQUEST_PIN, "tour 3/9: b pins a baseline: every number then shows what changed"},
    {REQUEST_NEXT, "tour 4/9: Tab goes from pane to pane"},
    {REQUEST_HELP, "tour 5/9: ? explains the pane and its keys; Esc closes it"},
    {REQUEST_COMMAND, "tour 6/9: : takes commands, Tab completes them; Esc closes it"},
    {REQUEST_MEMORY, "tour 7/9: 2 shows the memory as a map: every tensor, every hole"},
    {REQUEST_DOCTOR, "tour 8/9: 4 is the Doctor: what is wrong, and turns that need less; a applies one"},
    {REQUEST_FIT, "tour 9/9: 0 is Fit: what the knobs together trade, peak against step time"},
};

enum { STEPS = sizeof steps / sizeof *steps };

// Of the step that turns, where the preset itself does not fit.
static const char turn_line[] = "tour 1/9: this does not fit: ← turns batch size down, and needs less memory";
// Of the step that undoes, where what the first one turned did not fit.
static const char undo_line[] =
    "tour 2/9: it does not fit: the Doctor says why and what would; z undoes the turn";

void tour_begin(app *a)
{
    a->tour = 1;
    app_show_screen(a, SCREEN_BENCH);
    a->focus = PANE_KNOBS;
    act_select_knob(a, -HR_KNOB_COUNT); // batch.size is the first
}

void tour_follow(app *a, request done)
{
    bool turned = a->tour == 1 && (done == REQUEST_LEFT || done == REQUEST_MORE || done == REQUEST_LESS);
    if (a->tour == 0 || (!turned && steps[a->tour - 1].done != done)) {
        return;
    }
    a->tour = a->tour == STEPS ? 0 : a->tour + 1;
    if (a->tour == 0) {
        feed_say(&a->feed, MESSAGE_NOTE,
                 "that was the tour: 1 goes back to the Bench, ? lists every key, 6 explains the words");
    }
}

const char *tour_line(const app *a)
{
    if (a->tour == 0) {
        return NULL;
    }
    const request done = steps[a->tour - 1].done;
    const bool out = a->feed.live.state == HR_ENGINE_OOM;
    return out && done == REQUEST_RIGHT                                ? turn_line
           : out && done == REQUEST_UNDO && a->screen == SCREEN_DOCTOR ? undo_line
                                                                       : steps[a->tour - 1].line;
}

// ---- the card -------------------------------------------------------------------------------------------------

static const card_choice choices[] = {
    {"Enter", "what to press first, one key at a time"},
    {"L", "a course, what words mean, situations to try"},
    {"p", "another model, or one of your own"},
};

const card_choice *card_choices(size_t *count)
{
    *count = sizeof choices / sizeof *choices;
    return choices;
}

void card_show(app *a)
{
    // behind a recorded step nothing trains, and the tour's first knobs cannot be turned
    if (!a->card_seen && a->remembered.path != NULL && !hr_preset_is_trace(a->feed.preset)) {
        a->card_seen = true;
        bool kept = remember_write(a, a->remembered.path); // otherwise it would come every time
        a->overlay = kept ? OVERLAY_CARD : a->overlay;
    }
}

bool card_key(app *a, int key)
{
    a->overlay = OVERLAY_NONE;
    if (key == INPUT_ENTER) {
        tour_begin(a);
    }
    return key == INPUT_ENTER || key == INPUT_ESCAPE;
}
