// SPDX-License-Identifier: Apache-2.0
// Where the cursors stand, so that a key that moved none of them says so.
#ifndef TUI_ACT_PLACE_H
#define TUI_ACT_PLACE_H

#include "app/tui/shell/app.h"

typedef struct act_place {
    bool frozen;
    unsigned zooms[3];
    size_t turns[2]; // of knobs
    size_t at[9];    // knob, counter, column, and what lists and overlays stand at
    size_t row[PANE_FOCUS_COUNT];
    uint32_t instr;
    size_t change;
    uint64_t address;
} act_place;

act_place act_place_of(const app *a);
// Says which end was reached, where a request that moves has moved nothing and no reason was given.
void act_say_stood(app *a, request r, const act_place *before);

#endif
