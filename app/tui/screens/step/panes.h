// SPDX-License-Identifier: Apache-2.0
// Views of the planned step: Timeline, Program, Model. What they have in common.
#ifndef TUI_SCREENS_STEP_PANES_H
#define TUI_SCREENS_STEP_PANES_H

#include "app/tui/pane/graph.h"
#include "app/tui/screens/step/step.h"

enum { TIMELINE_AXIS = 7, TIMELINE_COLUMNS_MAX = 512 };

extern const pane_ops pane_stack, pane_minimap, pane_alive, pane_listing, pane_turned, pane_layers,
    pane_layer, pane_work, pane_ranks;

// One unit for the moments of a step plan, and one for its tensors: they are that much smaller.
byte_unit step_unit(const step_view *step);
byte_unit step_tensor_unit(const step_view *step);
// A cell of a table of tensors: under "tensor", "bytes", "dtype" and "shape" what they say, elsewhere the number, whole, or
// "—" for an unknown one.
void step_tensor_cell(const step_view *step, const hr_step_plan_tensor *t, const char *term, double number,
                      char text[TABLE_CELL_MAX]);
// "+2.64"; "" for nothing, and a sign alone has little: "+0.00".
const char *step_delta(double bytes, byte_unit unit, char text[FORMAT_MAX]);
// Where there is no step plan: says so, and why. True when there is one with instructions.
bool step_is_there(const canvas *c, const feed *f);
const char *step_nothing(const feed *f); // the same, for "."
// "does not fit: refused at 45, 2.1 MiB are missing", or "".
const char *step_verdict(const feed *f, char *text, size_t size);
// The bands of a moment: what is asked for by category, and above it what rounding and lying idle add.
void step_bands(const hr_step_plan_instr *i, uint64_t band_bytes[BAND_COUNT]);
void step_say(const pane_view *v, char text[PANE_TEXT_MAX]); // the moment at the cursor
// The finest history level that holds the whole run in so many columns.
unsigned minimap_level(const feed *f, int columns);

void place_timeline(layout *l, rect body, const layout_wish *wish);
void place_program(layout *l, rect body, const layout_wish *wish);
void place_model(layout *l, rect body, const layout_wish *wish);

// ---- layers.c -------------------------------------------------------------------------------------------------

byte_unit layer_unit(const step_view *step); // one for all layers
pane_request model_settle(const pane_view *v, void *own);
void model_say(const pane_view *v, char text[PANE_TEXT_MAX]); // the selected layer

#endif
