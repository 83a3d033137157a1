// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_TERM_RECT_H
#define TUI_TERM_RECT_H

// Of the screen, or of another rectangle: rows from above, columns from the left.
typedef struct rect {
    int y, x, h, w;
} rect;

#endif
