// SPDX-License-Identifier: Apache-2.0
// Command lines: parsed by the option table of app/command.h, the same way for every command.
#ifndef APP_CLI_OPTIONS_H
#define APP_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/status.h"

#include "app/command.h"

enum { CLI_SETS_MAX = 64, CLI_SWEEPS_MAX = 8, CLI_SWEEP_TEXT_MAX = 512, CLI_WORDS_MAX = 8 };

typedef struct cli_args {
    const app_command *command;
    uint64_t given;                      // set of APP_OPTION(id)
    const char *value[APP_OPTION_COUNT]; // of options that have one; the last when repeated
    const char *sets[CLI_SETS_MAX];      // of every --set, in order
    unsigned set_count;
    char as[64];                        // --as, as one of `sets`
    const char *sweeps[CLI_SWEEPS_MAX]; // of every --sweep, in order
    unsigned sweep_count;
    const char *words[CLI_WORDS_MAX]; // what is not an option; NULL beyond word_count
    unsigned word_count;
} cli_args;

// How a command goes on after its arguments were read.
typedef enum cli_next { CLI_GO_ON, CLI_DONE, CLI_WRONG } cli_next;

// Reads argv[1..argc) by the row of command argv[0]. CLI_DONE: help was asked for and printed. USAGE errors: unknown
// options (with what was meant), a missing or superfluous value, more than `max_words` words.
cli_next cli_parse(int argc, char **argv, unsigned max_words, cli_args *args, hr_err *err);
bool cli_given(const cli_args *args, app_option_id id);
// A whole number of at least 1 behind option `id`; `otherwise` when it was not given.
HR_MUST_CHECK hr_status cli_count(const cli_args *args, app_option_id id, uint64_t otherwise, uint64_t *count,
                                  hr_err *err);

// Help: of one command, or, with NULL, of the program. `whole` also explains the options.
void cli_help(const app_command *command, bool whole);
bool cli_asks_for_help(const char *word); // -h, --help

// What the program's exit codes mean; ended by a row without a line.
typedef struct cli_exit_row {
    int code;
    const char *line;
} cli_exit_row;
const cli_exit_row *cli_exit_rows(void);

// The preset a command is about, with the knobs of the command line turned.
typedef struct cli_subject {
    hr_preset *preset;
    hr_knobs knobs;
} cli_subject;

// Opens the preset `name` and applies the --set of args. What is wrong with the preset goes to stderr line by line;
// the first of it is *err.
HR_MUST_CHECK hr_status cli_open(const cli_args *args, const char *name, cli_subject *out, hr_err *err);
void cli_close(cli_subject *subject);

// Every problem of a file once, on stderr: *err then only says where they are, and `edit` what to do about them. In JSON,
// which has one sentence, it stays the first of them.
void cli_show_problems(const cli_args *args, const char *name, const char *problems, const char *edit,
                       hr_err *err);

#endif
