// SPDX-License-Identifier: Apache-2.0
// Colours and attributes by role: one table of themes, each in four tiers (256, 16, 8 colours, none). The terminal's
// own background is never painted over; colour is never the only carrier of a meaning: every band has its letter.
//
// `safe` and `safe-light` have band colours of which any two, not only neighbours, stay apart (CIE 1976 ΔE*ab >= 20)
// for people with protanopia, deuteranopia or tritanopia, after the matrices of Machado, Oliveira and Fernandes (2009),
// https://doi.org/10.1109/TVCG.2009.113. `mono` is bold, dim, reverse and underline.
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/tui/base/bands.h"

// X(ID)
#define ROLE_MAP(X)                                                                                          \
    X(TEXT)   /* values and prose */                                                                         \
    X(DIM)    /* labels, axes */                                                                             \
    X(BAR)    /* the title line */                                                                           \
    X(RULE)   /* pane titles */                                                                              \
    X(FOCUS)  /* the focused pane's title */                                                                 \
    X(SELECT) /* the selected row */                                                                         \
    X(KEY)    /* a key in the footer */                                                                      \
    X(GOOD)                                                                                                  \
    X(WARN)                                                                                                  \
    X(BAD)                                                                                                   \
    X(LIMIT) /* the capacity line */                                                                         \
    X(POOL)                                                                                                  \
    X(BASELINE) /* what was pinned */                                                                        \
    X(LINE)     /* the loss */

typedef enum role {
#define X(id) ROLE_##id,
    ROLE_MAP(X)
#undef X
        ROLE_COUNT
} role;

typedef enum color_tier { TIER_MONO, TIER_8, TIER_16, TIER_256, TIER_COUNT } color_tier;

enum { COLOR_DEFAULT = -1, STYLE_BOLD = 1, STYLE_DIM = 2, STYLE_REVERSE = 4, STYLE_UNDERLINE = 8 };

typedef struct style {
    int16_t foreground, background; // palette index, or COLOR_DEFAULT
    uint8_t attributes;             // STYLE_*
} style;

typedef struct theme_row theme_row;

typedef struct theme {
    color_tier tier;
    bool light;
    const theme_row *row;
} theme;

// `name` is one of theme_names (NULL: "auto", which reads COLORFGBG and is then called what it chose); false when
// unknown. `colors` is what the terminal has; `no_color` wins over everything.
bool theme_make(theme *t, const char *name, int colors, bool no_color);
const char *theme_name(const theme *t);
// The name after `name` in the order of the table, around; the first one after a name that is unknown.
const char *theme_next(const char *name);
// "auto" and every theme. Static storage.
const char *const *theme_names(size_t *count);

style theme_role(const theme *t, role r);
// A band of the stacked graph: its colour as foreground.
style theme_band(const theme *t, unsigned band);
// A letter printed on that colour.
style theme_letter(const theme *t, unsigned band);
// Whether bands have to be filled with their letters, because this tier has not a colour for each.
bool theme_fills_by_letter(const theme *t);

// Red, green and blue (0…255) of an index of the 256-colour palette; below 16 as xterm has them by default.
void theme_rgb(int index, int rgb[3]);
// What stands for the terminal's own colours in a screenshot.
void theme_ground(const theme *t, int ink[3], int paper[3]);

#endif
