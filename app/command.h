// SPDX-License-Identifier: Apache-2.0
// One row per command of the program; help, completion and dispatch are generated from the table in main.c.
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

typedef struct app_command {
    const char *name;      // "plan"
    const char *arguments; // "PRESET [-s key=value]… [--json]"
    const char *line;      // one line of help
    const char *options;   // whole help: one option a line; NULL: none
    int (*run)(int argc, char **argv); // argv[0] is the command's name; returns the exit code
} app_command;

const app_command *app_commands(unsigned *count);

#endif
