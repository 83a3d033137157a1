// SPDX-License-Identifier: Apache-2.0
// Where the worker keeps what it would go on from: one file beside the remembered looks for each workbench that runs. The
// file of a session that ended without `q` stays, and is offered at the next start:
//
//   autosave-HOST-PID.save ──n──▶ autosave-HOST-PID.left.save     kept, and offered no more
//                          ──y──▶ autosave-HOST-OURS.save         the next session's own
//
// Of those whose workbench is no more the newest three are kept; older ones go when a newer one has been written whole.
#ifndef TUI_AUTOSAVE_H
#define TUI_AUTOSAVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { AUTOSAVES_KEPT = 3, AUTOSAVES_SEEN_MAX = 64 };

typedef struct autosave_file {
    char path[PATH_MAX];
    time_t written;
    uint64_t bytes;
    bool left; // it was offered, and the answer was no
} autosave_file;

// Once a process, before it saves: names its file beside `state_path` ("autosave-HOST-PID.save") and removes what workers of
// this machine that are no more were in the middle of writing. What stands there already is one of the dead from then on. ""
// when `state_path` is NULL or too long.
void autosave_name(const char *state_path, char *path, size_t size);
// The whole ones of this machine whose workbench is no more, beside `path`, the newest first. Returns how many.
size_t autosave_dead(const char *path, autosave_file files[AUTOSAVES_SEEN_MAX]);
// A newer one was written whole at `path`: of the others the newest AUTOSAVES_KEPT stay.
void autosave_prune(const char *path);
// Offers it no more. False when it is there no more.
bool autosave_leave(const autosave_file *file);

#endif
