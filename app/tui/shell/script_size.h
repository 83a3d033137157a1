// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_SCRIPT_SIZE_H
#define TUI_SCRIPT_SIZE_H

#include <stdbool.h>

// "80x24" as columns and rows, each from 1 to 500.
bool script_size(const char *text, int *rows, int *columns);

#endif
