// SPDX-License-Identifier: Apache-2.0
// A line that is being typed: text, cursor, what was typed before.
#ifndef TUI_PROMPT_H
#define TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

enum { PROMPT_MAX = 512, PROMPT_PAST = 64 };

typedef struct prompt {
    char text[PROMPT_MAX]; // UTF-8, NUL-terminated
    size_t length, cursor; // bytes; the cursor stands before a character
    bool selected;         // the first character typed takes the place of the whole text
    char past[PROMPT_PAST][PROMPT_MAX];
    size_t past_count;      // lines ever remembered
    size_t past_back;       // how far back the shown line is; 0: a new one
    char typed[PROMPT_MAX]; // before ↑ was pressed: lines that begin so are recalled
} prompt;

void prompt_begin(prompt *p, const char *text);
void prompt_begin_selected(prompt *p, const char *text);
// Takes a key (enum input, or a character). False when the key means nothing to a line.
bool prompt_key(prompt *p, int key);
// Pasted text: what is no character, line ends among them, comes as one blank. What does not fit is left out.
void prompt_paste(prompt *p, const char *text);
// Adds the line to those that ↑ brings back, unless it is the newest of them.
void prompt_remember(prompt *p);
size_t prompt_past(const prompt *p);                         // how many are kept
const char *prompt_past_line(const prompt *p, size_t index); // 0: the oldest kept
// Replaces the word before the cursor.
void prompt_complete(prompt *p, size_t word_start, const char *word);

#endif
