// SPDX-License-Identifier: Apache-2.0
// The manual: one page a command, and one for each thing that is written by hand.
#ifndef APP_CLI_MANUAL_H
#define APP_CLI_MANUAL_H

#include "app/command.h"

enum { MANUAL_NAME_MAX = 48 };

// Calls `see` with the name of every page, "headroom-plan.1".
void manual_list_pages(void (*see)(const char *file, void *context), void *context);

// manual_commands.c: section 1.
void manual_print_command(const app_command *command);
// manual_formats.c: presets (5), Lua's names (3), terms (7).
void manual_print_presets(void);
void manual_print_lua(void);
void manual_print_terms(void);

#endif
