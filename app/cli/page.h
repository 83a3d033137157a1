// SPDX-License-Identifier: Apache-2.0
// The page that a command prints on: how wide it is, and what it may be drawn with.
#ifndef APP_CLI_PAGE_H
#define APP_CLI_PAGE_H

#include <stdbool.h>

#include "app/cli/options.h"

unsigned page_columns(void); // 80 in a pipe; in a terminal what it has, from 80 to 200
// Block characters: the locale has them, and --ascii is not given.
bool page_draws_blocks(const cli_args *args);
// A cell that is filled to `share`: `none` below a thousandth, full above 0.999, three shades between.
const char *page_shade(double share, bool blocks, const char *none);

#endif
