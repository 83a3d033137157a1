// SPDX-License-Identifier: Apache-2.0
// What can stand at the cursor of the line that is being typed, each with what it would do.
#ifndef TUI_COMPLETE_H
#define TUI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#include "app/tui/view/prompt.h"

typedef struct app app;

enum { CANDIDATES_MAX = 128, CANDIDATE_TEXT_MAX = 96, CANDIDATE_NOTE_MAX = 128, CANDIDATE_NONE = 128 };

typedef struct candidate {
    char text[CANDIDATE_TEXT_MAX];
    char note[CANDIDATE_NOTE_MAX];
    bool goes_on;  // a word is expected behind it
    char after[8]; // what stands behind it where it is the only one
} candidate;

typedef struct completion {
    candidate candidate[CANDIDATES_MAX]; // that begin with what is typed, in the order of their table
    size_t count;
    size_t start;                  // byte of the line where their word begins
    size_t chosen;                 // by Tab: stands in the line; CANDIDATE_NONE: none yet
    char hint[CANDIDATE_NOTE_MAX]; // what is expected behind the cursor; "": nothing more
} completion;

// Looks at the line (":" or a knob's value) and finds what can stand at its cursor.
void complete_look(app *a);
// Tab: what all candidates have in common, or else one after the other (direction −1: before the other).
void complete_next(app *a, int direction);

#endif
