// SPDX-License-Identifier: Apache-2.0
// A step of the heap that is looked at: a copy of its events, and the heap after the first `at` of them. Walks both
// ways; stands still while the training goes on.
#ifndef TUI_SCREENS_MEMORY_SCENE_H
#define TUI_SCREENS_MEMORY_SCENE_H

#include "headroom/step_plan.h"

#include "app/tui/feed/heap_record.h"

// What a pane made of a moment, kept for as long as it looks at the same one.
typedef struct heap_drawn {
    void *data; // owned
    size_t bytes;
    uint64_t of[8]; // which moment, and how it is looked at
} heap_drawn;

// Starts zeroed.
typedef struct heap_scene {
    heap_mirror heap;     // after `at` changes
    heap_change *changes; // owned
    size_t count, room, at;
    size_t peak; // changes up to the first moment of the largest in_use
    heap_step step;
    heap_refused refused;
    uint64_t version; // changes with every other step
    uint64_t seen, seen_plan;
    uint64_t address; // of the chunk under the map's cursor
    bool is_kept;     // the cursor was moved there, and stays when a new step comes
    unsigned zoom;    // of the map: 2^zoom times nearer
    heap_drawn *map;  // owned; NULL: host memory is short
} heap_scene;

void heap_scene_deinit(heap_scene *v);
void heap_scene_clear(heap_scene *v);
// Takes the last whole step where there is one. False: host memory is short; nothing is shown then.
bool heap_scene_take(heap_scene *v, const heap_record *r);
// Takes the step that was planned and refused, as far as it went. Events that contradict each other are left out.
bool heap_scene_plan(heap_scene *v, const hr_step_plan *p, const hr_knobs *knobs,
                     const heap_refused *refused);
// Walks to the heap after `at` changes (at most all), and the cursor to the chunk that the last of them concerned.
void heap_scene_seek(heap_scene *v, size_t at);

// Rows of the list of events: the beginning, every change, and a refused request that is none of them.
size_t heap_scene_rows(const heap_scene *v);
const heap_change *heap_scene_row(const heap_scene *v,
                                  size_t row); // NULL: the beginning, or the request beside them
bool heap_scene_row_is_refused(const heap_scene *v, size_t row);

// The change (0 … count − 1) that made the piece what it is at this moment, or that ends it later; SIZE_MAX: it was so
// before the step, or stays so behind it.
size_t heap_scene_made(const heap_scene *v, const heap_piece *piece);
size_t heap_scene_ended(const heap_scene *v, const heap_piece *piece);
// The piece under the cursor, or the one behind where none is. False: the heap is empty.
bool heap_scene_piece(const heap_scene *v, heap_piece *piece);
// Moves the cursor from piece to piece.
void heap_scene_move(heap_scene *v, int pieces);

#endif
