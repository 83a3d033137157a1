// SPDX-License-Identifier: Apache-2.0
// The ":" line: every request by its name, and the commands that take words. One row each: dispatch, completion and
// help are made from them.
#ifndef TUI_COMMAND_H
#define TUI_COMMAND_H

#include <stddef.h>

typedef struct app app;

// What the words of a command are, for completion.
typedef enum command_word {
    WORD_NONE,
    WORD_SETTING, // a knob's key, then its value
    WORD_FIX,
    WORD_FILE,
    WORD_RECIPE,
    WORD_FORM, // of a configuration that is written, then a file
    WORD_PRESET,
    WORD_CARD,
    WORD_THEME,
    WORD_GLYPHS,
    WORD_ON_OFF,
    WORD_COLUMN, // of the focused table
} command_word;

typedef struct command_row {
    const char *name, *arguments; // arguments "": it takes none
    command_word word;
    const char *line; // what it does
    void (*run)(app *a, const char *argument);
    void (*over)(app *a, const char *argument); // of "NAME!": over a file that is there; NULL: it writes none
} command_row;

const command_row *command_rows(size_t *count);
const command_row *command_find(const char *name, size_t length); // also of "NAME!"; NULL: there is none

#endif
