// SPDX-License-Identifier: Apache-2.0
// What the lines of a script can be, for help (script_driver.c).
#ifndef TUI_SCRIPT_WORDS_H
#define TUI_SCRIPT_WORDS_H

#include <stddef.h>

typedef struct script_word {
    const char *word;
    const char *example; // of what stands behind it
    const char *line;    // what it does
} script_word;

// The word at `index`; NULL beyond the last.
const script_word *script_word_row(size_t index);

#endif
