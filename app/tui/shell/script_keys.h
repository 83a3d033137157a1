// SPDX-License-Identifier: Apache-2.0
// Keys as a script names them: "<Right>", "<C-u>", and characters for themselves.
#ifndef TUI_SCRIPT_KEYS_H
#define TUI_SCRIPT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

// The key at *text (enum input, or a character), and moves *text on. Blanks between keys are passed over. INPUT_NONE
// at the end; INPUT_RESIZED for a name that is none, with *text behind it.
int script_key_next(const char **text);
// The names, for a sentence.
const char *script_key_names(void);

// Whether `screen` (text, as paint_dump writes it) shows that this key does something: its name before a word
// ("z undo"), a screen's digit before its name ("5runs"), an arrow.
bool script_key_is_shown(const char *screen, int key);

#endif
