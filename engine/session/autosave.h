// SPDX-License-Identifier: Apache-2.0
// Keeps a save of the training up to date, between two steps: at most every 20 seconds and at most for 1 % of the time,
// and whenever the training comes to rest. The first one does not wait for 20 seconds: it is due as soon as it would be
// 1 % of the time at the rate of a common disk, for a small model after the first step.
#ifndef SESSION_AUTOSAVE_H
#define SESSION_AUTOSAVE_H

#include "session/callbacks.h"
#include "train/inside.h"

typedef struct autosave {
    const char *path; // borrowed; "": none is kept
    save_origin origin;
    uint64_t begin_ns;
    uint64_t due_ns; // not before, while it runs, but for the first one
    uint64_t steps;  // that the save holds; HR_NONE: there is none
    bool writing;    // a SAVED event is of this save
    bool failed;     // the last attempt did
} autosave;

void autosave_begin(autosave *a, const char *path, const save_origin *origin);
void autosave_note(autosave *a, uint64_t steps, trace_heartbeat *heartbeat); // the file holds these steps
// Saves when it is due. An error is told once, until a save succeeds again.
void autosave_keep(autosave *a, hr_engine *engine, const session_callbacks *out);
// Saves, unless what it would save stands there already or there is nothing to save.
HR_MUST_CHECK hr_status autosave_now(autosave *a, hr_engine *engine, const session_callbacks *out,
                                     hr_err *err);

#endif
