// SPDX-License-Identifier: Apache-2.0
// The Memory screen: the heap as a map, the events of one step, the chunk under the cursor. All three show the heap
// after the selected event: ↑↓ walks through time, ←→ from chunk to chunk, whichever pane has the focus.
#ifndef TUI_SCREENS_MEMORY_H
#define TUI_SCREENS_MEMORY_H

#include "app/tui/screens/screens.h"

enum { MEMORY_TEXT = 1024 };

// ---- memory.c -------------------------------------------------------------------------------------------------

// Of the tensor as the step is planned; "tensor 12" where the plan is of other knobs, "weights" where it has no number.
const char *memory_tensor_name(const feed *f, uint32_t tensor, uint8_t category, uint64_t requested_bytes,
                               char text[HR_NAME_MAX]);
const hr_step_plan_tensor *memory_tensor(const feed *f, uint32_t tensor, uint8_t category,
                                         uint64_t requested_bytes); // NULL: not known
// "step 412, planned": what is looked at.
const char *memory_step_text(const heap_scene *v, char text[MEMORY_TEXT]);
char memory_letter(uint8_t category);

// What moves in these panes.
bool memory_move(app *a, int rows, int columns);
void memory_enter(app *a);
void memory_zoom(app *a, int direction);
void memory_settle(app *a);

// ---- the panes ------------------------------------------------------------------------------------------------

extern const pane_ops pane_heap, pane_events, pane_block;

extern const table_source memory_events;  // memory_events.c
size_t memory_selected_row(const app *a); // of the list of events
const char *memory_event_text(const app *a, size_t row,
                              char text[MEMORY_TEXT]); // "alloc A conv1/out 12.5 MiB"

#endif
