// SPDX-License-Identifier: Apache-2.0
// The workbench: one preset on one engine, its memory drawn live, its knobs under the keys.
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include <stdbool.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"

typedef struct tui_options {
    bool ascii;             // no character beyond ASCII, whatever the locale can show
    bool no_color;          // as NO_COLOR does
    bool mouse;             // clicks and the wheel; off leaves the terminal's own selection alone
    const char *theme;      // one of theme_names; NULL: what is remembered, or auto
    const char *state_path; // file of what is remembered (remember.h); NULL: nothing is
} tui_options;

// Runs the workbench on stdin and stdout until it is left. Borrows everything. Returns the exit code: 0; 2 for
// an unknown theme; 4, with advice on stderr, when the terminal cannot show it.
int tui_run(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options);

#endif
