// SPDX-License-Identifier: Apache-2.0
// What Timeline, Program and Model share of the planned step: one cursor for all three, what part of the step is in
// sight, and what is made once per step plan so that a frame need not look at every instruction's record.
#ifndef TUI_SCREENS_STEP_H
#define TUI_SCREENS_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/step_plan.h"

#include "app/tui/base/format.h"
#include "app/tui/feed/history.h"
#include "app/tui/feed/step_read.h"
#include "app/tui/pane/pane.h"

enum { STEP_LINE_MAX = 160, STEP_ZOOM_RUN = -HISTORY_LEVELS };

// ---- what a turn changes --------------------------------------------------------------------------------------

// X(ID, "what it is about")
#define STEP_QUESTION_MAP(X)                                                                                 \
    X(LAST, "the last turn") /* this step_plan beside the one before */                                      \
    X(LESS, "turning it down")                                                                               \
    X(MORE, "turning it up")

typedef enum step_question {
#define X(id, text) STEP_##id,
    STEP_QUESTION_MAP(X)
#undef X
        STEP_QUESTION_COUNT
} step_question;

typedef struct step_turned {
    char sign;            // '-' goes, '+' comes, '~' stays and changes
    uint32_t before, now; // instructions; HR_NO_ID where there is none
} step_turned;

typedef struct step_changes {
    step_turned *rows; // owned
    size_t count;
    size_t come, go, change;
    bool compared; // there were two step plans
    char what[96]; // knobs that differ between them: "execution.mode graph"
    // The planner's answer about the selected knob's next value.
    char *text;        // owned, lines as they came; NULL: none
    uint32_t *line_at; // owned: where each begins
    size_t line_count;
    step_question question; // what is shown
    bool asked, answered;   // of the question about a turn
    hr_knobs asked_of;      // its knobs …
    hr_knob_id asked_knob;  // … and the one turned
    step_question asked_question;
    uint64_t version; // grows with every change of what is shown
} step_changes;

// ---- the view -------------------------------------------------------------------------------------------------

// The instructions in sight, drawn in `columns`.
typedef struct step_window {
    uint32_t first, count;
    uint32_t columns;
} step_window;

typedef struct step_view {
    const feed *feed;
    table_view *tables;   // of all panes, by their ids
    const glyphs *glyphs; // of bars in cells
    uint32_t cursor;      // instruction; 0 where there is none
    size_t listed;   // row that the listing had selected when it was last brought together with the cursor
    uint32_t marked; // HR_NO_ID
    int zoom; // 0: the whole step; above: its 2^zoom-th part; below: the run, history level −1 − zoom
    step_window window;
    // Made once per step plan.
    uint64_t *height;          // [instr_count] in_use; where it is not known what is asked for
    uint64_t highest;          // of all of them
    uint64_t largest;          // tensor
    uint64_t largest_layer;    // parameters and activations
    bool has_ranks, has_masks; // some layer has: compress.low_rank and lora, compress.prune
    uint32_t *by_size;         // [tensor_count] tensors, largest first
    // Tensors alive at an instruction, in that order.
    uint32_t *alive; // [tensor_count]
    size_t alive_count;
    uint32_t alive_at; // HR_NO_ID: not made yet
    uint32_t jumped;   // tensor that Enter has just gone to; HR_NO_ID
    // The selected layer's tensors and instructions.
    uint32_t *of_layer; // [tensor_count + instr_count]
    size_t layer_tensors, layer_instrs;
    uint32_t layer; // whose they are; HR_NO_ID: not made yet
    hr_step_plan before;
    hr_knobs knobs; // of the step plan
    step_changes changes;
} step_view;

void step_view_init(step_view *v); // but for what it borrows
void step_view_deinit(step_view *v);

// ---- what the planner says ------------------------------------------------------------------------------------

// Takes a new step plan over into the feed (and empties *taken): the one before is kept to be compared, the cursor stays where it was
// as well as it can. A step plan is not trusted: what points nowhere points at nothing afterwards. The same step plan once
// more changes nothing.
void step_take(step_view *step, feed *f, hr_step_plan *taken);
// Another model: nothing is left to compare.
void step_forget(step_view *step, feed *f);
// Whether the planner is to be asked what a turn of the selected knob changes in the listing: true once per question.
bool step_wants_diff(step_view *step, hr_knobs *before, hr_knobs *after);
// Its answer, lines beginning with '-' or '+'; copied. NULL: it cannot be said.
void step_take_diff(step_view *step, const char *text);

// ---- reading --------------------------------------------------------------------------------------------------

const hr_step_plan_instr *
step_cursor_instr(const step_view *step); // NULL: there is no step plan, or it is empty
// "27.4 ms e"; "not timed" where the device cannot tell.
const char *step_time(const step_view *step, double seconds, char text[FORMAT_MAX]);

// Columns of a window: which instructions one shows, and the highest of them.
typedef struct step_column {
    uint32_t first, count, highest;
} step_column;

step_column step_column_of(const step_view *v, const step_window *w, uint32_t column);
uint32_t step_column_at(const step_window *w, uint32_t instr); // clamped to the window

// ---- moving ---------------------------------------------------------------------------------------------------

void step_go(step_view *step, uint32_t instr); // clamped
void step_move(step_view *step, int instrs);
void step_move_columns(step_view *step, int columns);
pane_request step_zoom(const pane_view *v, void *own, int direction); // −1 nearer, 1 farther
pane_request step_mark(const pane_view *v, void *own);                // the cursor, or takes the mark away
void step_place_window(step_view *step, int columns);
bool step_shows_run(const step_view *step); // zoomed out beyond the step

// ---- before a frame -------------------------------------------------------------------------------------------

void step_settle_alive(step_view *step);
void step_settle_layer(step_view *step, uint32_t layer);
void step_forget_stale(step_view *step); // an answer about other knobs

// ---- step_compare.c -------------------------------------------------------------------------------------------

// Fills rows and counts. *at, an instruction of `before`, becomes the one that answers to it now. Host memory short:
// nothing is said to differ.
void step_compare(const hr_step_plan *before, const hr_step_plan *now, step_changes *out, uint32_t *at);
// Whether two step plans show the same.
bool step_is_same(const hr_step_plan *one, const hr_step_plan *other);

uint64_t step_layer_bytes(const hr_step_plan_layer *layer); // of all that it has
double step_number(uint64_t number);                        // NaN for HR_NONE
// "1.23 G": three digits and a letter.
const char *step_count(double value, char *text, size_t size);

#endif
