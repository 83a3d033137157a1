// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_VIEW_BAR_H
#define TUI_VIEW_BAR_H

#include <stddef.h>

#include "app/tui/term/glyphs.h"

// A bar that lies on its side: `share` of `width` cells. Returns text, at most 3 bytes a cell.
const char *bar_text(const glyphs *g, double share, int width, char *text, size_t size);
// The same with blanks up to `width`: in a column of numbers, which stand right, it begins left.
const char *bar_cell(const glyphs *g, double share, int width, char *text, size_t size);

#endif
