// SPDX-License-Identifier: Apache-2.0
// What comes from outside: a session's life and what it says, and what the planner answers. One thread owns it; the engine is
// reached through hr_session_* and hr_planning_* alone. Nothing here knows a screen; screens take it as const.
#ifndef TUI_FEED_FEED_H
#define TUI_FEED_FEED_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"
#include "headroom/lesson.h"
#include "headroom/planning.h"
#include "headroom/session.h"
#include "headroom/step_plan.h"

#include "app/tui/base/format.h"
#include "app/tui/feed/death.h"
#include "app/tui/feed/fit.h"
#include "app/tui/feed/heap_record.h"
#include "app/tui/feed/knob_edit.h"
#include "app/tui/feed/recipe.h"
#include "app/tui/feed/run_log.h"
#include "app/tui/feed/run_state.h"
#include "app/tui/feed/whatif.h"

typedef enum message_kind { MESSAGE_NONE, MESSAGE_NOTE, MESSAGE_ERROR } message_kind;

typedef struct message {
    message_kind kind; // a note goes with the next key, an error stays until Esc
    char text[2 * HR_ERR_TEXT_MAX];
} message;

typedef enum judgement { JUDGED_WAITS, JUDGED_STANDS, JUDGED_REFUSED } judgement;

typedef struct feed {
    const hr_preset *preset;
    hr_preset *owned;          // `preset`, when it was opened here
    hr_planning *judge;        // tries it; NULL: nothing is tried now
    hr_session *session;       // NULL: none could be started, or none yet
    const hr_guest_ops *guest; // Lua beside the engine; NULL: none
    recipe_log recipe;
    hr_session_life life;
    hr_session_end end;      // of the last one, when life is not LIVE
    death death;             // of the last one that a fault ended
    char autosave[PATH_MAX]; // kept by the worker for a restart; "": none
    bool keeps;              // the session ends without having been ended: its autosave stays, up to date
    bool keeps_told;         // the worker was told
    bool pruned;             // of the autosaves of others, by this session
    bool awaits_save;        // a person asked for one, and it was not told yet
    uint64_t kept_step;      // of the last save that a person asked for; HR_NONE: none
    uint64_t saved_step;     // of what stands in `autosave`, as a worker said; HR_NONE: nothing yet
    bool was_killed;         // what was watched
    bool scripted;           // the engine in this process, moved by the script
    const char *watched;     // socket or trace of another user's or process' training; NULL: it is our own
    bool unknown;            // what is watched has not said its preset: preset and knobs stand for nothing
    hr_status end_status;    // of the save that ended the last training
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
    heap_record heap;
    uint64_t heap_version, heap_asked; // of the last snapshot; lost events of which one was asked for
    knob_edit_log turned;
    fit_points fit;
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
    hr_event_rank rank[HR_RANK_POINTS]; // of the layer last asked for, in order
    uint32_t rank_count, rank_step;     // all of them have come, else 0; at which step
    uint32_t rank_next;                 // the point that comes next; 0: none is waited for
    uint64_t rank_seq;                  // of the record before it: they follow one another
    uint64_t rank_version;              // grows with each answer
    message message;
    bool ending; // the training was told to end, and saves first
    const hr_lesson
        *lesson; // the training is this one's, and its knobs stay as it says; NULL: all turn. Borrowed
    size_t knob; // of the panel, the selected one: whose neighbours are asked about first
} feed;

// ---- feed.c ---------------------------------------------------------------------------------------------------

const run_state *feed_run_state(const feed *f); // what is shown: live or frozen
const run_log *feed_runs(const feed *f);        // the same; live also where host memory was short for a copy
hr_knob_id feed_knob(const feed *f);            // the selected one
byte_unit feed_unit(const feed *f);
// The step as it is planned under the knobs, or was under those before; NULL: none yet.
const hr_step_plan *feed_step_plan(const feed *f);
const whatif_cell *feed_whatif(const feed *f, hr_knob_id id, int side); // NULL: no answer yet
// NULL, or why what is only watched cannot be commanded.
const char *feed_why_not_command(const feed *f);
// NULL, or why this knob cannot be turned: of a recorded step only those of its card and its allocator can, in a lesson those
// that it unlocks.
const char *feed_why_not_turn(const feed *f, hr_knob_id id);
bool feed_engine_lives(const feed *f); // it was started, and has not ended

// ---- say.c ----------------------------------------------------------------------------------------------------

void feed_say(feed *f, message_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
void feed_say_error(feed *f, const hr_err *err);

// ---- send.c ---------------------------------------------------------------------------------------------------

bool feed_send(feed *f, const hr_command *command); // false: it was not taken, and why has been said
bool feed_send_text(feed *f, hr_command_kind kind, hr_knob_id knob, const char *text); // KNOB, SAVE
bool feed_send_plain(feed *f, hr_command_kind kind, uint64_t count);                   // RUN, PAUSE

// ---- life.c, death.c ------------------------------------------------------------------------------------------

// Starts zeroed. Borrows the preset. No engine yet.
void feed_init(feed *f, const hr_preset *preset, const hr_knobs *knobs);
void feed_deinit(feed *f);       // stops the engine
void feed_select_first(feed *f); // the first knob of the panel that can be turned
void feed_start_engine(feed *f);
void feed_resume_engine(feed *f, uint64_t steps); // the same from f->autosave, which holds so many steps
// Ends the training, and with it the engine. The status is that of its save, also when asked again: HR_OK when there
// was none to make.
hr_status feed_stop_engine(feed *f, hr_err *err);
// The same without waiting: true once feed_stop_engine will not. Until then only keys that leave are taken, and end it at
// once.
bool feed_let_end(feed *f);
void feed_end_at_once(feed *f); // while it ends; what it saves is lost
// Ends the worker, when it still lives, and starts another one that goes on from the last save.
void feed_restart_engine(feed *f);
// Whether leaving would lose steps that no save has.
bool feed_may_lose(const feed *f);
// Looks whether the worker lives; true when that changed. After its end everything shown stays.
bool feed_check_life(feed *f);
// After f->end was filled. `where`: the instruction in words.
void feed_note_death(feed *f, const char *where);
// NULL: to start the worker as the knobs are now is worth trying.
const char *feed_why_not_again(const feed *f);

// ---- drain.c --------------------------------------------------------------------------------------------------

// Takes what the session has said: first its events, then all else. True when anything changed; *more when some of it is
// still waiting.
bool feed_drain_events(feed *f, bool *more);
bool feed_drain_rest(feed *f);
// Keeps what is shown as it is, or shows what came meanwhile. The training goes on either way.
void feed_freeze(feed *f, bool frozen);

// ---- plans.c --------------------------------------------------------------------------------------------------

// A scripted one is in this process: its answers are made while they are taken, and are always the same.
void feed_start_planner(feed *f);
void feed_stop_planner(feed *f);
// Another training: what was answered is not about it, and the preset is read again.
void feed_forget_plans(feed *f);
// Asks what the neighbours of the present knobs would do, the selected knob's first, and what the step looks like.
void feed_ask_whatif(feed *f);
// Another knob is selected: asks again with that one first, unless its neighbours are known.
void feed_ask_knob(feed *f);
// Whether a step has ended under the knobs as they are.
bool feed_has_stepped(const feed *f);
// The plan of turned knobs that wait for a paused or idle training to go on: until then it stands for them. NULL: none
// wait, or it is not known yet.
const hr_whatif *feed_waiting_plan(const feed *f);
// Says so when the knobs that wait do not fit, once; true when it did.
bool feed_judge_turn(feed *f);
void feed_note_learned(feed *f); // steps may have been done: turns that would lose them are refused
void feed_take_turn(feed *f, const hr_answer *answer); // of HR_QUESTION_TURNS
void feed_refine_step_plan(feed *f);                   // a better one than the estimate is wanted
void feed_ask_diff(feed *f, const hr_knobs *before, const hr_knobs *after);
void feed_ask_fit(feed *f);

// ---- judge.c --------------------------------------------------------------------------------------------------

// Whether a training of these would stand. WAITS: call it again with the same ones, at the latest when the judge's descriptor
// is readable. A refusal has been said.
judgement feed_judge(feed *f, const hr_preset *preset, const hr_knobs *knobs);
void feed_forget_judge(feed *f);

#endif
