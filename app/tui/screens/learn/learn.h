// SPDX-License-Identifier: Apache-2.0
// Learn: what the words mean, and the situations that can be opened.
#ifndef TUI_SCREENS_LEARN_H
#define TUI_SCREENS_LEARN_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/preset.h"

#include "app/tui/pane/pane.h"

enum { ABOUT_MAX = 1024 };

// What a preset says of itself, read once while it is the selected one.
typedef struct preset_about {
    char name[HR_KNOB_TEXT_MAX];
    char text[ABOUT_MAX]; // its description; "": it says nothing
} preset_about;

typedef struct learn_state {
    const feed *feed;
    const table_view *table;   // of [situations]
    const preset_about *about; // of the selected one, once the shell has read it
    hr_preset_entry *entries;  // owned: presets/articles
    size_t count;
    bool looked; // whether the folder was read
} learn_state;

extern const pane_ops pane_terms, pane_meaning, pane_situations;
void place_learn(layout *l, rect body, const layout_wish *wish);

// When the screen is shown: reads the folder, once.
HR_MUST_CHECK hr_status learn_open(learn_state *s, hr_err *err);
void learn_close(learn_state *s);

const hr_preset_entry *learn_situation(const learn_state *s); // the selected one; NULL: there is none

#endif
