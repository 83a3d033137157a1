// SPDX-License-Identifier: Apache-2.0
// Colours and attributes by role, in four tiers (256, 16, 8 colours, none). The terminal's own background is never
// painted over; colour is never the only carrier of a meaning.
#ifndef TUI_THEME_H
#define TUI_THEME_H

#include <stdbool.h>
#include <stdint.h>

#include "app/tui/history.h"

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

typedef struct theme {
    color_tier tier;
    bool light;
} theme;

// `name` is "auto", "dark", "light" or "mono" (NULL: auto, which reads COLORFGBG); false when unknown. `colors` is
// what the terminal has; `no_color` wins over everything.
bool theme_make(theme *t, const char *name, int colors, bool no_color);
style theme_role(const theme *t, role r);
// A band of the stacked graph: its colour as foreground.
style theme_band(const theme *t, unsigned band);
// A letter printed on that colour.
style theme_letter(const theme *t, unsigned band);
// Red, green and blue (0…255) of an index of the 256-colour palette.
void theme_rgb(int index, int rgb[3]);

#endif
