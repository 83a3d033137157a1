// SPDX-License-Identifier: Apache-2.0
// What each request does. Keys, ":" commands, clicks and tests all come through app_request.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/app.h"

enum { PAGE_ROWS = 8, HELP_ROWS_MAX = REQUEST_COUNT + 16 };

// ---- knobs ----------------------------------------------------------------------------------------------------

static bool send(app *a, const hr_command *command)
{
    if (a->host == NULL || !hr_engine_host_send(a->host, command)) {
        app_say(a, MESSAGE_ERROR, "%s",
                a->host == NULL ? "no engine runs: p chooses a preset"
                                : "the engine is busy and took no command: try again");
        return false;
    }
    return true;
}

bool app_send(app *a, hr_command_kind kind, hr_knob_id knob, const char *text)
{
    hr_command command = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .knob = (uint32_t)knob};
    snprintf(command.text, sizeof command.text, "%s", text);
    return send(a, &command);
}

bool app_send_plain(app *a, hr_command_kind kind, uint64_t count)
{
    hr_command command = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count};
    return send(a, &command);
}

// Hands knob `id` of a->knobs to the engine; one that could not start is started anew.
static void hand_over(app *a, hr_knob_id id)
{
    char text[HR_KNOB_TEXT_MAX];
    if (a->host == NULL) {
        app_start_engine(a);
        return;
    }
    app_send(a, HR_COMMAND_KNOB, id, hr_knob_format(&a->knobs, id, text));
    app_ask_whatif(a);
}

bool app_turn(app *a, hr_knob_id id, const char *text)
{
    hr_err err;
    hr_knob_value before = a->knobs.value[id];
    if (turn_set(&a->knobs, id, text, &err) != HR_OK) {
        app_say_error(a, &err);
        return false;
    }
    turn_log_add(&a->turned, id, &before, &a->knobs.value[id]);
    hand_over(a, id);
    return true;
}

// Says what the plan knew of the value that was just turned to.
static void say_turned(app *a, hr_knob_id id, const whatif_cell *plan)
{
    size_t count;
    char text[HR_KNOB_TEXT_MAX], bytes[HR_BYTES_TEXT_MAX];
    const char *key = hr_knob_rows(&count)[id].key;
    hr_knob_format(&a->knobs, id, text);
    if (plan == NULL || plan->refused) {
        app_say(a, MESSAGE_NOTE, "%s=%s from the next step on", key, text);
    } else if (plan->plan.fits) {
        hr_bytes_human(plan->plan.peak_in_use_bytes, bytes);
        app_say(a, MESSAGE_NOTE, "%s=%s from the next step on: planned peak %s", key, text, bytes);
    } else {
        hr_bytes_human(plan->plan.peak_in_use_bytes, bytes);
        app_say(a, MESSAGE_NOTE, "%s=%s does not fit: it is planned to need %s; z turns it back", key, text,
                bytes);
    }
}

static void turn_selected(app *a, int direction)
{
    char text[HR_KNOB_TEXT_MAX];
    size_t count;
    hr_knob_id id = app_knob(a);
    const whatif_cell *cell = app_whatif(a, id, direction == TURN_LESS ? WHATIF_LESS : WHATIF_MORE);
    whatif_cell plan = cell == NULL ? (whatif_cell){0} : *cell;
    if (!turn_neighbour(&a->knobs, id, direction, a->live.limit_bytes, text)) {
        app_say(a, MESSAGE_NOTE, "%s: no value %s this one", hr_knob_rows(&count)[id].key,
                direction == TURN_LESS ? "below" : "above");
    } else if (app_turn(a, id, text)) {
        say_turned(a, id, plan.known ? &plan : NULL);
    }
}

static void step_back(app *a, int forward)
{
    const turn_step *step = forward ? turn_log_redo(&a->turned) : turn_log_undo(&a->turned);
    size_t count;
    char text[HR_KNOB_TEXT_MAX];
    if (step == NULL) {
        return;
    }
    a->knobs.value[step->id] = forward ? step->after : step->before;
    hand_over(a, step->id);
    app_say(a, MESSAGE_NOTE, "%s: %s=%s", forward ? "redone" : "undone", hr_knob_rows(&count)[step->id].key,
            hr_knob_format(&a->knobs, step->id, text));
}

static void edit_selected(app *a)
{
    char text[HR_KNOB_TEXT_MAX];
    hr_knob_id id = app_knob(a);
    prompt_begin_selected(&a->prompt, hr_knob_format(&a->knobs, id, text));
    a->overlay = OVERLAY_EDIT;
}

// ---- training -------------------------------------------------------------------------------------------------

static void run_or_pause(app *a, int unused)
{
    (void)unused;
    if (a->host == NULL) {
        app_start_engine(a);
    } else if (model_is_training(&a->live)) {
        app_send_plain(a, HR_COMMAND_PAUSE, 0);
        app_say(a, MESSAGE_NOTE, "training pauses after this step; r goes on");
    } else {
        // Once all steps are done, "run" means as many again.
        uint64_t all = (uint64_t)hr_knob_int(&a->applied, HR_KNOB_TRAIN_STEPS);
        bool done = a->live.state == HR_ENGINE_IDLE && all > 0 && a->live.steps >= all;
        app_send_plain(a, HR_COMMAND_RUN, done ? all : 0);
    }
}

static void freeze(app *a, int unused)
{
    (void)unused;
    a->is_frozen = !a->is_frozen;
    if (a->is_frozen) {
        a->frozen = a->live;
        app_say(a, MESSAGE_NOTE, "the view is frozen, the training is not; Space goes on");
    }
}

static void pin(app *a)
{
    for (int i = 0; i < COUNTER_COUNT; i++) {
        a->baseline.counter[i] = app_counter(a, (counter_id)i);
    }
    a->baseline.step_seconds = model_step_seconds(app_model(a));
    a->baseline.loss_per_second = model_loss_per_second(app_model(a));
    a->baseline.pinned = true;
    app_say(a, MESSAGE_NOTE, "pinned: every number shows what changed since; B forgets it");
}

static void ask_to_quit(app *a, int unused)
{
    (void)unused;
    if (model_is_training(&a->live) && a->overlay != OVERLAY_QUIT) {
        a->overlay = OVERLAY_QUIT;
        return;
    }
    a->overlay = OVERLAY_NONE;
    a->pending = PENDING_QUIT;
}

static void interrupt(app *a, int unused)
{
    (void)unused;
    if (model_is_training(&a->live) && !a->interrupted) {
        a->interrupted = true;
        app_send_plain(a, HR_COMMAND_PAUSE, 0);
        app_say(a, MESSAGE_NOTE, "training pauses after this step; ^C again leaves");
        return;
    }
    a->pending = PENDING_QUIT;
}

// ---- view -----------------------------------------------------------------------------------------------------

static void open_presets(app *a, int unused)
{
    (void)unused;
    static const char *const folders[PRESET_FOLDERS] = {"", "models", "articles"};
    hr_err err;
    for (int i = 0; i < PRESET_FOLDERS; i++) {
        hr_preset_list_free(a->presets.entries[i]);
        a->presets.entries[i] = NULL;
        a->presets.count[i] = 0;
        if (hr_preset_list(folders[i], &a->presets.entries[i], &a->presets.count[i], &err) != HR_OK) {
            a->presets.entries[i] = NULL;
            a->presets.count[i] = 0;
            app_say_error(a, &err);
        }
    }
    a->presets.selected = a->presets.top = 0;
    a->overlay = OVERLAY_PRESETS;
}

void app_switch_preset(app *a)
{
    a->overlay = OVERLAY_NONE;
    a->pending = PENDING_PRESET;
    app_say(a, MESSAGE_NOTE, "opening %s", a->pending_preset);
}

void app_open_preset(app *a, const char *name)
{
    snprintf(a->pending_preset, sizeof a->pending_preset, "%s", name);
    if (model_is_training(&a->live) || a->live.steps > 0) {
        a->overlay = OVERLAY_SWITCH;
    } else {
        app_switch_preset(a);
    }
}

static void choose_preset(app *a)
{
    const hr_preset_entry *entry = app_preset_entry(a, a->presets.selected);
    a->overlay = OVERLAY_NONE;
    if (entry != NULL) {
        app_open_preset(a, entry->name);
    }
}

static void edit_or_choose(app *a, int unused)
{
    (void)unused;
    if (a->overlay == OVERLAY_PRESETS) {
        choose_preset(a);
    } else {
        edit_selected(a);
    }
}

static void focus_next(app *a, int direction)
{
    layout l = app_layout(a);
    layout_wish wish = app_wish(a);
    a->focus = layout_next(&l, &wish, direction);
}

static size_t moved(size_t at, int by, size_t count)
{
    if (by < 0) {
        return at < (size_t)-by ? 0 : at - (size_t)-by;
    }
    return at + (size_t)by < count ? at + (size_t)by : count == 0 ? 0 : count - 1;
}

static void select_row(app *a, int by)
{
    size_t knobs, old = a->knob;
    turn_panel(&knobs);
    if (a->overlay == OVERLAY_HELP) {
        a->help_top = moved(a->help_top, by, HELP_ROWS_MAX);
    } else if (a->overlay == OVERLAY_PRESETS) {
        size_t count = 0;
        while (app_preset_entry(a, count) != NULL) {
            count++;
        }
        a->presets.selected = moved(a->presets.selected, by, count);
    } else if (a->focus == PANE_COUNTERS) {
        a->counter = moved(a->counter, by, COUNTER_COUNT);
    } else if (a->focus == PANE_PEAK) {
        a->table_top = moved(a->table_top, by, a->has_report ? a->report.memory.at_peak.tensor_count : 0);
    } else if (a->focus == PANE_LOG) {
        const model *m = app_model(a);
        a->log_back = moved(a->log_back, -by, m->log_count < LOG_LENGTH ? (size_t)m->log_count : LOG_LENGTH);
    } else {
        a->knob = moved(a->knob, by, knobs);
        if (a->knob != old) {
            app_ask_whatif(a);
        }
    }
}

static void zoom(app *a, int direction)
{
    unsigned finest = app_layout(a).pane[PANE_STEP].h > 0 ? 1 : 0; // one step has a pane of its own there
    if (direction < 0 && a->zoom > finest) {
        a->zoom--;
    } else if (direction > 0 && a->zoom < HISTORY_LEVELS) {
        a->zoom++;
    }
}

static void go_back(app *a, int unused)
{
    (void)unused;
    if (a->overlay != OVERLAY_NONE) {
        a->overlay = OVERLAY_NONE;
    } else if (a->message.kind != MESSAGE_NONE) {
        a->message.kind = MESSAGE_NONE;
    } else if (a->expanded) {
        a->expanded = false;
    } else if (a->doctor) {
        a->doctor = a->doctor_came_itself = false;
        a->focus = a->focus == PANE_DOCTOR ? PANE_KNOBS : a->focus;
    }
}

static void show_screen(app *a, int doctor)
{
    layout l = app_layout(a);
    a->doctor = doctor;
    a->doctor_came_itself = false;
    if (a->expanded || l.kind == LAYOUT_SINGLE) {
        a->focus = doctor ? PANE_DOCTOR : PANE_KNOBS;
    }
    layout_wish wish = app_wish(a);
    l = app_layout(a);
    if (!layout_can_show(&l, &wish, a->focus)) {
        a->focus = PANE_KNOBS;
    }
}

static void next_glyphs(app *a, int unused)
{
    (void)unused;
    int next = ((int)a->glyphs.set + 1) % GLYPHS_COUNT;
    // A locale that shows ASCII only, or one where blocks are two columns wide, offers less.
    if (a->richest_glyphs == GLYPHS_ASCII) {
        next = GLYPHS_ASCII;
    } else if (a->richest_glyphs == GLYPHS_BRAILLE && next < GLYPHS_BRAILLE) {
        next = GLYPHS_BRAILLE;
    }
    a->glyphs = glyphs_make((glyph_set)next);
    app_say(a, MESSAGE_NOTE, "glyphs: %s", glyphs_name(a->glyphs.set));
}

// ---- what can be done now -------------------------------------------------------------------------------------

const char *app_why_not(const app *a, request r)
{
    layout l = app_layout(a);
    bool steps_alone = l.pane[PANE_STEP].h > 0;
    switch ((int)r) { // most need no reason
    case REQUEST_UNDO:
        return a->turned.done == 0 ? "no knob has been turned yet" : NULL;
    case REQUEST_REDO:
        return a->turned.done == a->turned.count ? "nothing has been undone" : NULL;
    case REQUEST_PIN:
        return app_model(a)->steps == 0 ? "a baseline needs a finished step" : NULL;
    case REQUEST_UNPIN:
        return a->baseline.pinned ? NULL : "no baseline is pinned: b pins one";
    case REQUEST_ZOOM_IN:
        return a->zoom == (steps_alone ? 1u : 0u) ? "this is the finest view" : NULL;
    case REQUEST_ZOOM_OUT:
        return a->zoom == HISTORY_LEVELS ? "this is the longest view" : NULL;
    case REQUEST_EXPAND:
        return l.kind == LAYOUT_BENCH ? NULL : "this window already shows one pane alone";
    case REQUEST_ENTER:
        return a->overlay == OVERLAY_PRESETS || a->focus == PANE_KNOBS || l.kind < LAYOUT_SINGLE
                   ? NULL
                   : "Enter edits a knob: Tab goes to [knobs]";
    case REQUEST_BENCH:
        return a->doctor ? NULL : "this is the Bench";
    case REQUEST_DOCTOR:
        return a->doctor ? "this is the Doctor" : l.kind < LAYOUT_SINGLE ? "this window is too small" : NULL;
    case REQUEST_BACK:
        return a->overlay == OVERLAY_NONE && a->message.kind == MESSAGE_NONE && !a->expanded && !a->doctor
                   ? "nothing is open"
                   : NULL;
    default:
        return NULL;
    }
}

// Inside an overlay the letters that work on the screen behind it wait.
static bool overlay_takes(const app *a, request r)
{
    if (a->overlay == OVERLAY_HELP || a->overlay == OVERLAY_PRESETS) {
        return r == REQUEST_UP || r == REQUEST_DOWN || r == REQUEST_PAGE_UP || r == REQUEST_PAGE_DOWN ||
               r == REQUEST_BACK || r == REQUEST_QUIT || r == REQUEST_INTERRUPT || r == REQUEST_REDRAW ||
               r == REQUEST_HELP || r == REQUEST_PRESETS ||
               (r == REQUEST_ENTER && a->overlay == OVERLAY_PRESETS);
    }
    return true;
}

static void set_baseline(app *a, int pinned)
{
    if (pinned) {
        pin(a);
    }
    a->baseline.pinned = pinned != 0;
}

static void toggle_expanded(app *a, int unused)
{
    (void)unused;
    a->expanded = !a->expanded;
}

static void toggle_help(app *a, int unused)
{
    (void)unused;
    a->overlay = a->overlay == OVERLAY_HELP ? OVERLAY_NONE : OVERLAY_HELP;
    a->help_top = 0;
}

static void begin_command(app *a, int unused)
{
    (void)unused;
    prompt_begin(&a->prompt, "");
    a->overlay = OVERLAY_COMMAND;
}

static void ask_redraw(app *a, int unused)
{
    (void)unused;
    a->redraws = true;
}

static void say_pane(app *a, int unused)
{
    (void)unused;
    app_say_pane(a);
}

static const struct {
    void (*run)(app *a, int argument);
    int argument;
} acts[REQUEST_COUNT] = {
    [REQUEST_LEFT] = {turn_selected, TURN_LESS},
    [REQUEST_RIGHT] = {turn_selected, TURN_MORE},
    [REQUEST_ENTER] = {edit_or_choose, 0},
    [REQUEST_RUN] = {run_or_pause, 0},
    [REQUEST_FREEZE] = {freeze, 0},
    [REQUEST_UNDO] = {step_back, false},
    [REQUEST_REDO] = {step_back, true},
    [REQUEST_PIN] = {set_baseline, true},
    [REQUEST_UNPIN] = {set_baseline, false},
    [REQUEST_PRESETS] = {open_presets, 0},
    [REQUEST_BENCH] = {show_screen, false},
    [REQUEST_DOCTOR] = {show_screen, true},
    [REQUEST_NEXT] = {focus_next, 1},
    [REQUEST_PREVIOUS] = {focus_next, -1},
    [REQUEST_UP] = {select_row, -1},
    [REQUEST_DOWN] = {select_row, 1},
    [REQUEST_PAGE_UP] = {select_row, -PAGE_ROWS},
    [REQUEST_PAGE_DOWN] = {select_row, PAGE_ROWS},
    [REQUEST_EXPAND] = {toggle_expanded, 0},
    [REQUEST_ZOOM_IN] = {zoom, -1},
    [REQUEST_ZOOM_OUT] = {zoom, 1},
    [REQUEST_SAY] = {say_pane, 0},
    [REQUEST_HELP] = {toggle_help, 0},
    [REQUEST_COMMAND] = {begin_command, 0},
    [REQUEST_GLYPHS] = {next_glyphs, 0},
    [REQUEST_REDRAW] = {ask_redraw, 0},
    [REQUEST_BACK] = {go_back, 0},
    [REQUEST_INTERRUPT] = {interrupt, 0},
    [REQUEST_QUIT] = {ask_to_quit, 0},
};

void app_request(app *a, request r)
{
    const char *why_not = app_why_not(a, r);
    if (a->message.kind == MESSAGE_NOTE && r != REQUEST_BACK) {
        a->message.kind = MESSAGE_NONE;
    }
    a->interrupted = a->interrupted && r == REQUEST_INTERRUPT;
    if (why_not != NULL) {
        app_say(a, MESSAGE_NOTE, "%s", why_not);
    } else if (r != REQUEST_NONE && overlay_takes(a, r)) {
        acts[r].run(a, acts[r].argument);
    }
}
