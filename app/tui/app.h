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
#include "app/tui/complete.h"
#include "app/tui/death.h"
#include "app/tui/feed/autosave.h"
#include "app/tui/feed/knob_edit.h"
#include "app/tui/feed/run_log.h"
#include "app/tui/feed/run_state.h"
#include "app/tui/feed/whatif.h"
#include "app/tui/fit.h"
#include "app/tui/heap_scene.h"
#include "app/tui/requests.h"
#include "app/tui/screens/learn.h"
#include "app/tui/step_view.h"
#include "app/tui/term/glyphs.h"
#include "app/tui/term/theme.h"
#include "app/tui/tui.h"
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
    OVERLAY_OFFER,   // "resume what ended without q?"
} overlay;

typedef enum message_kind { MESSAGE_NONE, MESSAGE_NOTE, MESSAGE_ERROR } message_kind;

typedef struct message {
    message_kind kind; // a note goes with the next key, an error stays until Esc
    char text[2 * HR_ERR_TEXT_MAX];
} message;

// What memory counters show; the same rows are pinned by a baseline and explained by help.
// X(ID, "label", "term")
#define COUNTER_MAP(X)                                                                                       \
    X(PEAK, "peak", "peak_in_use_bytes")                                                                     \
    X(IN_USE, "in_use", "in_use_bytes")                                                                      \
    X(POOL, "pool", "pool_bytes")                                                                            \
    X(REQUESTED, "requested", "requested_bytes")                                                             \
    X(WASTE, "waste", "waste_bytes")                                                                         \
    X(LARGEST_FREE, "largest_free", "largest_free_bytes")                                                    \
    X(FRAGMENTATION, "fragmentation", "fragmentation")                                                       \
    X(EVER, "peak since start", "peak")                                                                      \
    X(WINDOW, "peak on screen", "peak")                                                                      \
    X(STATIC, "static", "static_bytes")                                                                      \
    X(SAVED, "saved_for_backward", "saved_for_backward_bytes")                                               \
    X(HOST, "host", "host_bytes")

typedef enum counter_id {
#define X(id, label, term) COUNTER_##id,
    COUNTER_MAP(X)
#undef X
        COUNTER_COUNT
} counter_id;

typedef struct baseline {
    bool pinned;
    double counter[COUNTER_COUNT]; // bytes, or a fraction
    double step_seconds, loss_per_second;
} baseline;

enum { PRESET_FOLDERS = 3 };

typedef struct preset_list {
    hr_preset_entry *entries[PRESET_FOLDERS]; // owned
    size_t count[PRESET_FOLDERS];
    size_t selected, top;          // of those that match
    char filter[TABLE_FILTER_MAX]; // part of a name or title, any case; "": all
} preset_list;

enum { ABOUT_MAX = 1024 };

// What a preset says of itself, read once while it is the selected one.
typedef struct preset_about {
    char name[HR_KNOB_TEXT_MAX];
    char text[ABOUT_MAX]; // its description; "": it says nothing
} preset_about;

typedef enum pending {
    PENDING_NONE,
    PENDING_PRESET,  // pending_preset takes the training's place once it stands
    PENDING_RESTART, // a worker that is silent gives way to another one once that would stand
    PENDING_QUIT
} pending;

typedef enum judgement { JUDGED_WAITS, JUDGED_STANDS, JUDGED_REFUSED } judgement;

struct app {
    // engine
    const hr_preset *preset;
    hr_preset *owned;    // `preset`, when it was opened here
    hr_preset *opened;   // the next one, while it is tried and the training ends
    hr_planning *judge;  // tries it; NULL: nothing is tried now
    bool next_stands;    // it was tried: the training may end for it
    hr_session *session; // NULL: none could be started, or none yet
    hr_session_life life;
    hr_session_end end;      // of the last one, when life is not LIVE
    death death;             // of the last one that a fault ended
    char autosave[PATH_MAX]; // kept by the worker for a restart; "": none
    bool asked;              // the command line named the preset
    hr_save_about offered;   // of OVERLAY_OFFER
    autosave_file offered_file;
    bool keeps;           // the session ends without having been ended: its autosave stays, up to date
    bool keeps_told;      // the worker was told
    bool pruned;          // of the autosaves of others, by this session
    uint64_t kept_step;   // of the last save that a person asked for; HR_NONE: none
    int ended_by;         // the signal that ended us; 0: none
    uint64_t saved_step;  // of what stands there, as the last worker said; HR_NONE: nothing yet
    bool was_killed;      // what was watched
    bool scripted;        // the engine in this process, moved by the script
    const char *watched;  // socket or trace of somebody else's training; NULL: it is our own
    bool unknown;         // nobody has said what is watched: preset and knobs stand for nothing
    hr_status end_status; // of the save that ended the last training
    hr_err end_error;
    hr_knobs knobs;   // as turned
    hr_knobs applied; // as the engine last said
    bool cut
        [HR_KNOB_COUNT]; // of `applied`: an event had room for the beginning only, the session knows the rest
    hr_knobs stepped;    // of the newest finished step
    bool stepped_is_old; // a knob has changed since
    bool judges_turn;    // one was turned: what its plan says is to be said
    bool follows_engine; // it has refused a turn: until the next one `knobs` goes with what it says
    hr_report report;    // what is shown
    bool has_report;
    hr_report newest_report; // came while the view was frozen; owned
    bool has_newest_report;
    uint64_t report_version; // of `report`
    uint64_t report_taken, error_version;
    run_state live, frozen;
    bool is_frozen;
    bool oom_waits; // for the view to go on: the Doctor comes then
    heap_record heap;
    uint64_t heap_version, heap_asked; // of the last snapshot; lost events of which one was asked for
    heap_scene heap_scene;             // what the Memory screen shows
    // knobs
    knob_edit_log turned;
    baseline baseline;
    fit_points fit;
    situations situations;    // of Learn
    run_log runs;             // also which of them is the baseline
    run_log *frozen_runs;     // as they were when the view was frozen; owned
    hr_planning *planning;    // NULL: nothing can be said of other knobs
    const hr_preset *planned; // whose model it has
    whatif whatif;            // what was asked of it …
    whatif_answers answers;   // … and what it has said
    uint64_t question;
    hr_step_plan step_plan; // of a step under the knobs, as planned; owned
    bool has_step_plan;
    uint64_t step_plan_version;
    step_view step; // what Timeline, Program and Model show of it
    // view
    int rows, columns;
    theme theme;
    glyphs glyphs;
    glyph_set richest_glyphs;
    bool no_color;                   // whatever the theme
    screen_id screen, before_doctor; // before_doctor: where the training's end of memory found us
    bool doctor_came_itself, expanded, has_seen_oom;
    pane_id focus;
    table_view table[PANE_FOCUS_COUNT]; // of panes that have one
    size_t column;                      // of the columns being chosen
    unsigned zoom;                      // 0: the last step; k: history level k − 1
    size_t knob, counter;
    size_t log_back, help_top; // rows scrolled
    char help_filter[TABLE_FILTER_MAX], knob_looked_for[TABLE_FILTER_MAX];
    bool edits_preset; // in $EDITOR, once the terminal can be lent
    unsigned tour;     // the step that waits to be done, from 1; 0: no tour
    bool card_seen;    // some time, on this machine
    overlay overlay;
    preset_list presets;
    preset_about about;
    prompt prompt;
    completion completion; // of the line that is being typed
    layout_class shown;    // by the last frame
    message message;
    pending pending; // work that waits until a frame has said so, and for the end of the training
    bool ending;     // the training was told to end, and saves first
    char pending_preset[HR_KNOB_TEXT_MAX];
    const char *remember_path;                                 // NULL: nothing is remembered
    char *remembered;                                          // what that file says; owned
    char chosen_theme[24], chosen_glyphs[24], chosen_mouse[8]; // by the user, now or before; "": nothing was
    bool interrupted, redraws, quits;
    uint32_t sure_of_run; // that did not fit, and whose knobs the next `a` turns back; 0: none
    int click_y, click_x;
    uint64_t started_ns, now_ns; // monotonic, set by the loop
};

// ---- app.c ----------------------------------------------------------------------------------------------------

// NULL when host memory is short. Borrows the preset. No engine yet: the first frame does not wait for one.
app *app_create(const hr_preset *preset, const hr_knobs *knobs);
// Ends the training, and with it the engine. The status is that of its save, also when asked again: HR_OK when there
// was none to make.
hr_status app_stop_engine(app *a, hr_err *err);
// The same without waiting: true once app_stop_engine will not. Until then only keys that leave are taken, and end it at
// once.
bool app_let_end(app *a);
void app_end_at_once(app *a); // while it ends; what it saves is lost
void app_destroy(app *a);     // stops the engine
void app_start_engine(app *a);
void app_resume_engine(app *a, uint64_t steps); // the same from a->autosave, which holds so many steps
// Whether leaving would lose steps that no save has.
bool app_may_lose(const app *a);
// Looks whether the worker lives; true when that changed. After its end everything shown stays.
bool app_check_life(app *a);
// Ends the worker, when it still lives, and starts another one that goes on from the last save.
void app_restart_engine(app *a);
bool app_engine_lives(const app *a); // it was started, and has not ended
// NULL, or why what is only watched cannot be commanded.
const char *app_why_not_command(const app *a);
// Takes what engine and planner have said. True when anything changed; *more when some of it is still waiting.
bool app_drain(app *a, bool *more);
// Stops what is shown, or shows what came meanwhile. The training goes on either way.
void app_freeze(app *a, bool frozen);
// Does the pending work, unless what is to come is still being tried, or the training has yet to end for it: call it again
// until nothing is pending.
void app_work(app *a);
// Forgets what is pending while it is still being tried. False: nothing is.
bool app_cancel_next(app *a);
void app_say(app *a, message_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
void app_say_error(app *a, const hr_err *err);
const run_state *app_run_state(const app *a); // what is shown: live or frozen
const run_log *app_runs(const app *a);        // the same; live also where host memory was short for a copy
hr_knob_id app_knob(const app *a);            // the selected one
layout_wish app_wish(const app *a);
layout app_layout(const app *a);
byte_unit app_unit(const app *a);
// A counter's value in bytes (or a fraction); NaN when unknown.
double app_counter(const app *a, counter_id id);
const char *app_counter_term(counter_id id);
const char *app_counter_label(counter_id id);
// The step as it is planned under the knobs, or was under those before; NULL: none yet.
const hr_step_plan *app_step_plan(const app *a);
const whatif_cell *app_whatif(const app *a, hr_knob_id id, int side); // NULL: no answer yet
// Of the presets that match their filter; NULL beyond the last.
const hr_preset_entry *app_preset_entry(const app *a, size_t index);
// Columns that the memory graph has now, for the peak "on screen".
uint32_t app_graph_columns(const app *a);

// ---- plans.c --------------------------------------------------------------------------------------------------

// A scripted one is in this process: its answers are made while they are taken, and are always the same.
void app_start_planner(app *a);
void app_stop_planner(app *a);
// Another training: what was answered is not about it, and the preset is read again.
void app_forget_plans(app *a);
// Asks what the neighbours of the present knobs would do, the selected knob's first, and what the step looks like.
void app_ask_whatif(app *a);
// Another knob is selected: asks again with that one first, unless its neighbours are known.
void app_ask_knob(app *a);
// Whether a step has ended under the knobs as they are.
bool app_has_stepped(const app *a);
// The plan of turned knobs that wait for a paused or idle training to go on: until then it stands for them. NULL: none
// wait, or it is not known yet.
const hr_whatif *app_waiting_plan(const app *a);
// Asks what the screen that is shown wants to know, unless it was asked: a key may have brought it, or other knobs.
void app_ask_for_screen(app *a);
// Takes what the planner has said, and asks what the screen that is shown wants to know.
bool app_take_plans(app *a, bool *more);

// ---- judge.c --------------------------------------------------------------------------------------------------

// Whether a training of these would stand. WAITS: call it again with the same ones, at the latest when the judge's descriptor
// is readable. A refusal has been said.
judgement app_judge(app *a, const hr_preset *preset, const hr_knobs *knobs);
void app_forget_judge(app *a);

// ---- keys.c, act.c ------------------------------------------------------------------------------------------

void app_key(app *a, int key);
void app_paste(app *a, const char *text); // into the line that is being typed; never taken as keys
bool app_is_typing(const app *a);         // keys go into a line
void app_request(app *a, request r);
// NULL when the request can be done now; otherwise the reason, as a sentence.
const char *app_why_not(const app *a, request r);
void app_show_screen(app *a, screen_id screen);

// ---- act_training.c, act_knobs.c ----------------------------------------------------------------------------

// Opens a preset by name, or a file; asks first when that would end a training that has begun.
void app_open_preset(app *a, const char *name);
// Reads what that preset says of itself, unless that is what `about` has.
void app_read_about(app *a, const char *name);
void app_tell_about(app *a);    // logs what the preset that is open says of itself
void app_switch_preset(app *a); // pending_preset; it has been asked
bool app_turn(app *a, hr_knob_id id, const char *text);
// Turns all knobs that differ; one step of undo. True also when none differs. False: refused, and nothing was turned; or
// the engine was busy and took only the first of them.
bool app_turn_all(app *a, const hr_knobs *to);
bool app_turn_pairs(app *a, const char *pairs);                                 // the same for "a.b=1 c.d=2"
bool app_send(app *a, hr_command_kind kind, hr_knob_id knob, const char *text); // KNOB, SAVE
bool app_send_plain(app *a, hr_command_kind kind, uint64_t count);              // RUN, PAUSE

// ---- command.c ------------------------------------------------------------------------------------------------

// Does a line: a command, the name of a request, or "key=value".
void app_command(app *a, const char *line);

// ---- screens/draw.c -------------------------------------------------------------------------------------------

void app_draw(app *a);
// The request under a click on the footer; REQUEST_NONE elsewhere.
request footer_request_at(const app *a, int x);

// The screen whose tab is under a click; SCREEN_COUNT elsewhere.
screen_id tabs_screen_at(const app *a, int x);

#endif
