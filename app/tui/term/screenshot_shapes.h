// SPDX-License-Identifier: Apache-2.0
// Block, braille and line characters as rectangles: what a font would draw for them, exactly.
#ifndef TUI_SCREENSHOT_SHAPES_H
#define TUI_SCREENSHOT_SHAPES_H

#include <wchar.h>

// A cell is SHAPE_WIDTH × SHAPE_HEIGHT units, so that eighths, dots and lines have whole numbers.
enum { SHAPE_WIDTH = 16, SHAPE_HEIGHT = 32, SHAPE_RECTS_MAX = 8 };

typedef struct shape_rect {
    int x, y, w, h; // from the cell's upper left corner
} shape_rect;

// The rectangles of a character, none overlapping another; 0 when it has to be written as text. *percent of their
// colour is shown: 100 but for shades.
int screenshot_shape(wchar_t glyph, shape_rect rects[SHAPE_RECTS_MAX], int *percent);

#endif
