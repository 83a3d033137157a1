// SPDX-License-Identifier: Apache-2.0
// A scripted engine in place of hr_session_*, hr_planning_* (fake_planning.c) and hr_preset_*: the separable CNN of the demo with
// made-up but plausible tensors, the same to the byte on every run. The workbench cannot tell the difference.
#ifndef TESTS_TUI_FAKE_ENGINE_H
#define TESTS_TUI_FAKE_ENGINE_H

#include <stdbool.h>

#include "headroom/category.h"
#include "headroom/engine.h"
#include "headroom/session.h"

// The preset "demo": batch 128, 64 MiB, Adam, eager. Static storage; closing it does nothing.
const hr_preset *fake_preset(void);
// One that is open, and cannot be opened again.
const hr_preset *fake_broken_preset(void);

// Knobs that hr_lesson_try has played.
unsigned fake_lessons_played(void);
// Looks at a play until it is done; 1, as from the start: at once.
void fake_lessons_take(unsigned looks);
// Plays fail for this reason from now on; NULL: none does.
void fake_lessons_fail(const char *why);

// Manual engines have no thread and no clock: a host started from now on moves in fake_engine_advance only.
void fake_engine_set_manual(bool manual);
// Takes the commands that wait and does `pieces` steps, builds or evaluations.
void fake_engine_advance(hr_session *host, unsigned pieces);
// Of the guest beside it: forgets what was; says a line; "ORDER TEXT" of the last order; how often it was interrupted.
void fake_guest_begin(void);
void fake_guest_say(hr_guest_line kind, const char *line);
const char *fake_guest_order(void);
unsigned fake_guest_interrupts(void);

// Makes it silent, or ends it.
void fake_engine_end(hr_session *session, hr_session_life life, const hr_session_end *end);
// Its end, once asked for, takes so many looks.
void fake_engine_save_long(hr_session *session, unsigned looks);
// Puts one event into the stream as if the engine had said it.
void fake_engine_say(hr_session *host, const hr_event *event);

// The next knob that it is told is refused with this.
void fake_engine_refuse(hr_session *session, const hr_err *err);

typedef enum fake_move_kind { FAKE_TAKEN, FAKE_RELEASED, FAKE_WORKED } fake_move_kind;

// One thing that build and step do. Borrowed: it lasts as long as the call.
typedef struct fake_move {
    fake_move_kind kind;
    hr_phase phase;
    const char *name;  // of the tensor; of work: the layer, "step" when it is of none
    const char *shape; // of work: the operation
    hr_category category;
    uint64_t bytes;                                     // requested
    uint64_t in_use_bytes, pool_bytes, requested_bytes; // after it; the pool never beyond the limit
} fake_move;

typedef struct fake_watcher {
    void (*seen)(void *context, const fake_move *move);
    void *context;
} fake_watcher;

// Builds and runs one step under these knobs, as if memory had no end, and tells every move.
void fake_engine_watch(const hr_knobs *knobs, const fake_watcher *watcher);
uint64_t fake_engine_limit(const hr_knobs *knobs);
bool fake_engine_plan(const hr_knobs *knobs, hr_whatif *out); // false: no host memory

typedef struct fake_layer {
    const char *name, *shape;
    uint64_t parameters, output_bytes_per_sample;
} fake_layer;

bool fake_engine_layer(size_t index, fake_layer *out); // false beyond the last

#endif
