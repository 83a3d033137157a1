// SPDX-License-Identifier: Apache-2.0
// The Memory screen: the heap as a map, the events of one step, the chunk under the cursor. All three show the heap
// after the selected event: ↑↓ walks through time, ←→ from chunk to chunk, whichever pane has the focus.
#ifndef TUI_SCREENS_MEMORY_H
#define TUI_SCREENS_MEMORY_H

#include "app/tui/pane/pane.h"
#include "app/tui/screens/memory/scene.h"

enum { MEMORY_TEXT = 1024 };

// What the three panes share.
typedef struct memory_state {
    const feed *feed;
    table_view *events; // of [events]: its row is the moment that is shown
    heap_scene scene;
} memory_state;

// ---- words.c --------------------------------------------------------------------------------------------------

// Of the tensor as the step is planned; "tensor 12" where the plan is of other knobs, "weights" where it has no number.
const char *memory_tensor_name(const feed *f, uint32_t tensor, uint8_t category, uint64_t requested_bytes,
                               char text[HR_NAME_MAX]);
const hr_step_plan_tensor *memory_tensor(const feed *f, uint32_t tensor, uint8_t category,
                                         uint64_t requested_bytes); // NULL: not known
// "step 412, planned": what is looked at.
const char *memory_step_text(const heap_scene *v, char text[MEMORY_TEXT]);
char memory_letter(uint8_t category);

// ---- memory.c -------------------------------------------------------------------------------------------------

// What moves in these panes.
pane_request memory_move(const pane_view *v, void *own, int rows, int columns);
pane_request memory_enter(const pane_view *v, void *own);
pane_request memory_zoom(const pane_view *v, void *own, int direction);
pane_request memory_settle(const pane_view *v, void *own);

// ---- the panes ------------------------------------------------------------------------------------------------

extern const pane_ops pane_heap, pane_events, pane_block;
void place_memory(layout *l, rect body, const layout_wish *wish);

extern const table_source memory_events;             // events.c
size_t memory_selected_row(const memory_state *mem); // of the list of events
const char *memory_event_text(const memory_state *mem, size_t row,
                              char text[MEMORY_TEXT]); // "alloc A conv1/out 12.5 MiB"

#endif
