// SPDX-License-Identifier: Apache-2.0
// What Learn keeps: the situations that can be opened.
#ifndef TUI_SCREENS_LEARN_H
#define TUI_SCREENS_LEARN_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/preset.h"

typedef struct app app;

typedef struct situations {
    hr_preset_entry *entries; // owned: presets/articles
    size_t count;
    bool looked; // whether the folder was read
} situations;

void learn_open(app *a); // when the screen is shown: reads the folder, once
void learn_close(situations *s);

const hr_preset_entry *learn_situation(const app *a); // the selected one; NULL: there is none

#endif
