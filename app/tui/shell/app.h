// SPDX-License-Identifier: Apache-2.0
// The state of the workbench. One thread owns it; the engine is reached through hr_session_* alone. What is
// drawn is a function of this struct, and what a key does is a change of it.
#ifndef TUI_APP_H
#define TUI_APP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"
#include "headroom/save.h"
#include "headroom/session.h"
#include "headroom/step_plan.h"

#include "app/tui/base/format.h"
#include "app/tui/feed/autosave.h"
#include "app/tui/feed/feed.h"
#include "app/tui/feed/knob_edit.h"
#include "app/tui/feed/run_log.h"
#include "app/tui/feed/run_state.h"
#include "app/tui/feed/whatif.h"
#include "app/tui/screens/bench/bench.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/learn/learn.h"
#include "app/tui/screens/memory/memory.h"
#include "app/tui/screens/runs/runs.h"
#include "app/tui/screens/step/step.h"
#include "app/tui/shell/complete.h"
#include "app/tui/shell/console.h"
#include "app/tui/shell/requests.h"
#include "app/tui/shell/tui.h"
#include "app/tui/term/glyphs.h"
#include "app/tui/term/theme.h"
#include "app/tui/view/layout.h"
#include "app/tui/view/prompt.h"
#include "app/tui/view/table_view.h"

typedef enum overlay {
    OVERLAY_NONE,
    OVERLAY_HELP,
    OVERLAY_PRESETS,
    OVERLAY_QUIT,    // "leave?"
    OVERLAY_SWITCH,  // "open pending_preset and end this training?"
    OVERLAY_COMMAND, // ":" line
    OVERLAY_EDIT,    // value of the selected knob
    OVERLAY_FILTER,  // of the focused table; where knobs are listed, selects the one looked for
    OVERLAY_COLUMNS, // of the focused table
    OVERLAY_FIND,    // in the help
    OVERLAY_NARROW,  // the presets
    OVERLAY_CARD,    // the first time ever
    OVERLAY_CONSOLE, // Lua
    OVERLAY_OFFER,   // "resume what ended without q?"
} overlay;

enum { PRESET_FOLDERS = 3 };

typedef struct preset_list {
    hr_preset_entry *entries[PRESET_FOLDERS]; // owned
    size_t count[PRESET_FOLDERS];
    size_t selected, top;          // of those that match
    char filter[TABLE_FILTER_MAX]; // part of a name or title, any case; "": all
} preset_list;

typedef enum pending {
    PENDING_NONE,
    PENDING_PRESET,  // pending_preset takes the training's place once it stands
    PENDING_RESTART, // a worker that is silent gives way to another one once that would stand
    PENDING_QUIT
} pending;

// How it looks, and what of that a person chose, now or before; "": nothing was.
typedef struct screen_looks {
    theme theme;
    glyphs glyphs;
    glyph_set richest_glyphs;
    bool no_color; // whatever the theme
    char chosen_theme[24], chosen_glyphs[24], chosen_mouse[8];
} screen_looks;

// The Doctor comes by itself with an out-of-memory, and goes when the training goes on.
typedef struct doctor_visit {
    screen_id before; // where it found us
    bool came_itself, has_seen_oom;
    bool oom_waits; // for the view to go on: the Doctor comes then
} doctor_visit;

typedef struct help_view {
    size_t top; // rows scrolled
    char filter[TABLE_FILTER_MAX];
} help_view;

// What takes the training's place once it stands, or ends it: work that waits until a frame has said so.
typedef struct next_training {
    pending work;
    char preset[PATH_MAX]; // to be opened
    hr_preset *opened;     // the next one, while it is tried and the training ends
    bool anew;             // from its beginning under `knobs`: the same preset, or a lesson's
    hr_knobs knobs;
    bool stands; // it was tried: the training may end for it
} next_training;

// Of OVERLAY_OFFER.
typedef struct resume_offer {
    hr_save_about about;
    autosave_file file;
} resume_offer;

typedef struct remembered {
    const char *path; // NULL: nothing is remembered
    char *text;       // what that file says; owned
} remembered;

// What a key was refused because of another knob, and how both would stand: the same key again turns both.
typedef struct refused_turn {
    bool any;
    hr_knob_id knob;
    int direction;
    hr_knobs both;
} refused_turn;

struct app {
    feed feed; // what comes from outside
    // screens
    bench_state bench;
    memory_state memory;
    step_view step; // Timeline, Program and Model
    doctor_visit doctor;
    doctor_state evidence; // of the Doctor's verdict, and its fixes
    learn_state learn;     // Learn
    refused_turn refused;
    runs_view runs;   // Runs
    uint32_t sure_of; // of what was asked for with a doubt: the same key again does it; 0: nothing
    table_view table[PANE_FOCUS_COUNT]; // of panes that have one
    // what is open
    screen_id screen;
    pane_id focus;
    bool expanded;
    overlay overlay;
    help_view help;
    preset_list presets;
    preset_about about;
    resume_offer offer;
    size_t column; // of the columns being chosen
    prompt prompt;
    console_view console;
    const char *recipe;    // to begin with the training; NULL: none, or it has begun
    completion completion; // of the line that is being typed
    char knob_looked_for[TABLE_FILTER_MAX];
    unsigned tour;  // the step that waits to be done, from 1; 0: no tour
    bool card_seen; // some time, on this machine
    // shell
    int rows, columns;
    screen_looks looks;
    layout_class shown; // by the last frame
    next_training next;
    remembered remembered;
    bool asked;        // the command line named the preset
    bool edits_preset; // in $EDITOR, once the terminal can be lent
    bool interrupted, redraws, quits;
    int ended_by; // the signal that ended us; 0: none
    int click_y, click_x;
    uint64_t started_ns, now_ns; // monotonic, set by the loop
};

// ---- app.c ----------------------------------------------------------------------------------------------------

// NULL when host memory is short. Borrows the preset. No engine yet: the first frame does not wait for one.
app *app_create(const hr_preset *preset, const hr_knobs *knobs);
void app_destroy(app *a); // stops the engine
// Takes what engine and planner have said. True when anything changed; *more when some of it is still waiting.
bool app_drain(app *a, bool *more);
// Stops what is shown, or shows what came meanwhile. The training goes on either way.
void app_freeze(app *a, bool frozen);
// Does the pending work, unless what is to come is still being tried, or the training has yet to end for it: call it again
// until nothing is pending.
void app_work(app *a);
// What the open lesson holds is known to the feed; before a knob is turned, and once a frame.
void app_follow_lesson(app *a);
// Forgets what is pending while it is still being tried. False: nothing is.
bool app_cancel_next(app *a);
layout_wish app_wish(const app *a);
layout app_layout(const app *a);
// Of the presets that match their filter; NULL beyond the last.
const hr_preset_entry *app_preset_entry(const app *a, size_t index);

// ---- plans.c --------------------------------------------------------------------------------------------------

// Asks what the screen that is shown wants to know, unless it was asked: a key may have brought it, or other knobs.
void app_ask_for_screen(app *a);
// Takes what the planner has said, and asks what the screen that is shown wants to know.
bool app_take_plans(app *a, bool *more);
void app_take_fit(app *a, const hr_answer *answer);

// ---- keys.c, act.c ------------------------------------------------------------------------------------------

void app_key(app *a, int key);
void app_paste(app *a, const char *text); // into the line that is being typed; never taken as keys
bool app_is_typing(const app *a);         // keys go into a line
const prompt *app_prompt(const app *a);   // that line
void app_request(app *a, request r);
// NULL when the request can be done now; otherwise the reason, as a sentence.
const char *app_why_not(const app *a, request r);
void app_show_screen(app *a, screen_id screen);

// ---- act_training.c, act_knobs.c ----------------------------------------------------------------------------

// Opens a preset by name, or a file; asks first when that would end a training that has begun.
void app_open_preset(app *a, const char *name);
// The same preset from its beginning under these knobs, which are valid: what a training cannot be turned to.
void app_begin_anew(app *a, const hr_knobs *knobs);
bool app_begins_anew(const app *a); // what is to be opened is what is open
// The same of another preset, found by its name.
void app_begin_preset(app *a, const char *name, const hr_knobs *knobs);
// Reads what that preset says of itself, unless that is what `about` has.
void app_read_about(app *a, const char *name);
void app_tell_about(app *a);    // logs what the preset that is open says of itself
void app_switch_preset(app *a); // pending_preset; it has been asked
bool app_turn(feed *f, hr_knob_id id, const char *text);
// Turns all knobs that differ; one step of undo. True also when none differs. False: refused, and nothing was turned; or
// the engine was busy and took only the first of them.
bool app_turn_all(feed *f, const hr_knobs *to);
bool app_turn_pairs(feed *f, const char *pairs); // the same for "a.b=1 c.d=2"

// ---- command.c ------------------------------------------------------------------------------------------------

// Does a line: a command, the name of a request, or "key=value".
void app_command(app *a, const char *line);

// ---- shell/draw.c --------------------------------------------------------------------------------------------

void app_draw(app *a);
// The request under a click on the footer; REQUEST_NONE elsewhere.
request footer_request_at(const app *a, int x);

// The screen whose tab is under a click; SCREEN_COUNT elsewhere.
screen_id tabs_screen_at(const app *a, int x);

#endif
