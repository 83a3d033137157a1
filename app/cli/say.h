// SPDX-License-Identifier: Apache-2.0
// What every command says in the same way: errors, numbers, and the end of its output.
#ifndef APP_CLI_SAY_H
#define APP_CLI_SAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/knobs.h"
#include "headroom/status.h"

enum { SAY_COUNT_TEXT_MAX = 32 };

// Prints the two lines of `err` on stderr, the first broken at blanks to the width of a terminal there, and, with `json`, headroom.error/1 on stdout. Returns the exit code.
int say_error(const hr_err *err, bool json);

// Prints untrusted text: characters that a terminal obeys come out as '?', but for those of `kept`.
void say_foreign(FILE *to, const char *text, const char *kept);

// The same as a word of a command that can be copied into a shell: in quotes where it needs them.
void say_word(FILE *to, const char *text);

// "a.b=1 c.d=2" as options that can be copied: "-s a.b=1 -s c.d=2".
void say_options(const char *pairs);

// Flushes stdout. A reader that closed its end early is no error; a full disk is: then the exit code is 5.
int say_done(int exit_code);

// "695,493"; HR_NONE is "-". Returns text.
const char *say_count(uint64_t count, char text[SAY_COUNT_TEXT_MAX]);

// " as PyTorch": whose rules decide what a step holds (execution.as); "" for our own.
const char *say_framework(const hr_knobs *knobs);

enum { SAY_TRY_TEXT_MAX = 64 };

// What brings back a loss that is no number: "-s optimizer.learning_rate=0.0001", a tenth of the present one.
const char *say_slower(const hr_knobs *knobs, char text[SAY_TRY_TEXT_MAX]);

// Prints `words`, which may be untrusted, from column `indent` on, broken at blanks and line ends so that no line is longer than 80 columns. The cursor
// stands at `indent` already.
void say_paragraph(const char *words, unsigned indent);

#endif
