// SPDX-License-Identifier: Apache-2.0
// The workbench: one preset on one engine, its memory drawn live, its knobs under the keys.
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include <stdbool.h>
#include <stdio.h>

#include "headroom/guest.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/status.h"

typedef struct tui_options {
    bool ascii;        // no character beyond ASCII, whatever the locale can show
    bool no_color;     // as NO_COLOR does
    bool mouse;        // clicks and the wheel; off leaves the terminal's own selection alone
    const char *theme; // one of theme_names; NULL: what is remembered, or auto
    const char
        *watched; // socket or trace of another training (headroom/session.h); NULL: it trains one of its own
    bool unknown; // what is watched has not said what it is: preset and knobs stand for nothing
    bool asked;   // a person named the preset
    const hr_guest_ops *guest; // Lua beside the engine; NULL: none
    const char *recipe;        // a file that begins with the training; NULL: none
    const char *state_path;    // file of what is remembered (remember.h); NULL: nothing is
    const char *lessons_path;  // of the lessons that were done; NULL: none are remembered
} tui_options;

typedef struct tui_script {
    const char *path; // of the script (script_driver.h)
    const char *type; // of the terminal that it plays on
    int rows, columns;
    const char *cast; // a file for what the terminal was sent; NULL: none
    FILE *last;       // gets the screen as text at its end; NULL: none
} tui_script;

// Plays a script on a workbench without a terminal, on the device `plan` and in this process: the same files on every
// machine. Nothing is remembered, and of the environment nothing is asked. Borrows everything. Errors of script_drive;
// READ: no script; TERMINAL: no such type.
HR_MUST_CHECK hr_status tui_play(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options,
                                 const tui_script *script, hr_err *err);
// The same of a script as text, 80 columns wide: what its last screen shows, in lines. The caller frees *picture (free).
HR_MUST_CHECK hr_status tui_picture(const hr_preset *preset, const hr_knobs *knobs, const char *script,
                                    char **picture, hr_err *err);
// USAGE error: no theme is called so. NULL is fine.
HR_MUST_CHECK hr_status tui_check_theme(const char *name, hr_err *err);

// Runs the workbench on stdin and stdout until it is left. Borrows everything. Returns the exit code: 0; 2 for
// an unknown theme; 4, with advice on stderr, when the terminal cannot show it.
int tui_run(const hr_preset *preset, const hr_knobs *knobs, const tui_options *options);

#endif
