// SPDX-License-Identifier: Apache-2.0
// Starts the built program and catches what it says. Its home is an empty folder, so that nothing of the person who
// runs the tests changes a result.
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <jansson.h>
#include <sys/types.h>

typedef struct outcome {
    int exit_code; // 128 + signal when one ended it
    char *out;     // stdout, NUL-terminated; owned
    char *err;     // stderr
} outcome;

enum { PROGRAM_MAX_WORDS = 48 };

// Another program than HEADROOM_PROGRAM from now on; `path` is kept.
void program_use(const char *path);
// Runs `headroom` with blank-separated words ("plan demo --json"). Asserts that it could be started.
outcome program_run(const char *words);
// As program_run, with more in its environment, line by line ("LD_DEBUG=files"), and OpenMP left as the program sets it.
outcome program_run_with(const char *setting, const char *words);
// As program_run; sends `signal_number` once stderr has something in it.
outcome program_interrupt(const char *words, int signal_number);
// The same so long after its start, of a command that says nothing meanwhile.
outcome program_interrupt_after(const char *words, double seconds, int signal_number);
// The same, but for what is done then.
outcome program_meddle(const char *words, void (*meddle)(pid_t child, void *context), void *context);
void outcome_deinit(outcome *o);

// Asserts the exit code, showing what the program said when it is another.
void assert_exit(const outcome *o, const char *words, int exit_code);
// stdout as one JSON document; asserts that it is one. The caller decrefs.
json_t *assert_json(const outcome *o, const char *words);
// What a command that ends with 0 prints: the caller's.
json_t *program_json(const char *words);

// The folder that is the program's HOME, made when first asked for; files of a test may go there.
const char *program_home(void);
void program_remove_home(void);

#endif
