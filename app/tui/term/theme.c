// SPDX-License-Identifier: Apache-2.0
#include "app/tui/term/theme.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = COLOR_DEFAULT, BLACK_256 = 16, WHITE_256 = 231 };

// ---- the table ------------------------------------------------------------------------------------------------

typedef enum theme_id {
    THEME_DARK,
    THEME_LIGHT,
    THEME_SAFE,
    THEME_SAFE_LIGHT,
    THEME_MONO,
    THEME_COUNT
} theme_id;

enum { COLORED_COUNT = THEME_MONO };

struct theme_row {
    const char *name;
    bool light;
};

static const theme_row themes[THEME_COUNT] = {
    [THEME_DARK] = {"dark", false}, [THEME_LIGHT] = {"light", true},
    [THEME_SAFE] = {"safe", false}, [THEME_SAFE_LIGHT] = {"safe-light", true},
    [THEME_MONO] = {"mono", false},
};

static const char *const names[] = {"auto", "dark", "light", "safe", "safe-light", "mono"};
_Static_assert(sizeof names / sizeof *names == THEME_COUNT + 1, "every theme has its name here");

typedef struct role_row {
    int16_t full[COLORED_COUNT]; // foreground in the 256-colour palette: dark, light, safe, safe-light
    int16_t low[2];              // in 8 and 16 colours, on a dark and on a light background
    uint8_t full_attributes, low_attributes, mono;
} role_row;

// Red on black has too little contrast in every palette of 8 colours, and yellow, green and cyan on white: there the
// attributes carry the meaning.
static const role_row roles[ROLE_COUNT] = {
    [ROLE_TEXT] = {{D, D, D, D}, {D, D}, 0, 0, 0},
    [ROLE_DIM] = {{246, 241, 246, 241}, {D, D}, 0, 0, STYLE_DIM},
    [ROLE_BAR] = {{D, D, D, D}, {D, D}, STYLE_BOLD, STYLE_BOLD, STYLE_BOLD},
    [ROLE_RULE] = {{109, 24, 109, 24}, {6, 4}, 0, 0, 0},
    [ROLE_FOCUS] = {{123, 20, 123, 20}, {6, 4}, STYLE_BOLD, STYLE_BOLD, STYLE_BOLD},
    [ROLE_SELECT] = {{D, D, D, D}, {D, D}, STYLE_REVERSE, STYLE_REVERSE, STYLE_REVERSE},
    [ROLE_KEY] = {{123, 20, 123, 20}, {6, 4}, STYLE_BOLD, STYLE_BOLD, STYLE_BOLD},
    [ROLE_GOOD] = {{114, 22, 69, 26}, {2, D}, 0, 0, 0},
    [ROLE_WARN] = {{221, 94, 226, 94}, {3, D}, STYLE_BOLD, STYLE_BOLD, STYLE_BOLD},
    [ROLE_BAD] =
        {{210, 124, 210, 52}, {D, 1}, STYLE_BOLD, STYLE_BOLD | STYLE_REVERSE, STYLE_BOLD | STYLE_REVERSE},
    [ROLE_LIMIT] = {{210, 124, 210, 52}, {D, 1}, 0, STYLE_BOLD, STYLE_BOLD},
    [ROLE_POOL] = {{246, 241, 246, 241}, {D, D}, 0, 0, STYLE_DIM},
    [ROLE_BASELINE] = {{229, 58, 229, 58}, {3, D}, 0, 0, STYLE_UNDERLINE},
    [ROLE_LINE] = {{117, 25, 117, 25}, {6, 4}, 0, 0, 0},
};

typedef struct band_row {
    int16_t full[COLORED_COUNT]; // dark, light, safe, safe-light
    int16_t of16[2], of8[2];     // on a dark and on a light background
} band_row;

// In the order of the stack from below: neighbours differ in every column, in `full` in lightness as well as in hue.
static const band_row bands[BAND_COUNT] = {
    [HR_CATEGORY_WEIGHTS] = {{39, 25, 27, 21}, {12, 4}, {6, 4}},
    [HR_CATEGORY_STATE] = {{141, 55, 219, 126}, {13, 13}, {5, 5}},
    [HR_CATEGORY_OPTIMIZER] = {{208, 130, 95, 166}, {3, 1}, {3, 1}},
    [HR_CATEGORY_CASTS] = {{153, 60, 195, 17}, {14, 8}, {7, 0}},
    [HR_CATEGORY_ACCUMULATORS] = {{187, 89, 163, 165}, {15, 0}, {2, 5}},
    [HR_CATEGORY_INPUT] = {{87, 23, 49, 102}, {6, 12}, {6, 4}},
    [HR_CATEGORY_GRADIENTS] = {{221, 58, 226, 52}, {11, 9}, {3, 1}},
    [HR_CATEGORY_ACTIVATIONS] = {{77, 28, 35, 137}, {2, 5}, {2, 5}},
    [HR_CATEGORY_TEMPORARIES] = {{213, 126, 141, 55}, {5, 4}, {5, 0}},
    [HR_CATEGORY_RETAINED] = {{203, 124, 160, 124}, {9, 1}, {3, 1}},
    [HR_CATEGORY_OUTSIDE] = {{250, 240, 109, 200}, {7, 8}, {7, 4}},
    [BAND_UNKNOWN] = {{245, 245, 208, 238}, {10, 0}, {6, 0}},
};

// ---- making ---------------------------------------------------------------------------------------------------

static bool background_is_light(void)
{
    const char *value = getenv("COLORFGBG"); // "0;15": foreground;background
    const char *last = value == NULL ? NULL : strrchr(value, ';');
    long background = last == NULL ? 0 : strtol(last + 1, NULL, 10);
    return background == 7 || background >= 9;
}

static const theme_row *row_of(const char *name)
{
    if (name == NULL || strcmp(name, "auto") == 0) {
        return &themes[background_is_light() ? THEME_LIGHT : THEME_DARK];
    }
    for (size_t i = 0; i < THEME_COUNT; i++) {
        if (strcmp(themes[i].name, name) == 0) {
            return &themes[i];
        }
    }
    return NULL;
}

bool theme_make(theme *t, const char *name, int colors, bool no_color)
{
    const theme_row *row = row_of(name);
    if (row == NULL) {
        return false;
    }
    t->row = row;
    t->light = row->light;
    t->tier = colors >= 256 ? TIER_256 : colors >= 16 ? TIER_16 : colors >= 8 ? TIER_8 : TIER_MONO;
    if (no_color || row == &themes[THEME_MONO]) {
        t->tier = TIER_MONO;
    }
    return true;
}

const char *theme_name(const theme *t)
{
    return t->row->name;
}

const char *theme_next(const char *name)
{
    for (size_t i = 0; i + 1 < THEME_COUNT; i++) {
        if (name != NULL && strcmp(themes[i].name, name) == 0) {
            return themes[i + 1].name;
        }
    }
    return themes[0].name;
}

const char *const *theme_names(size_t *count)
{
    *count = sizeof names / sizeof *names;
    return names;
}

// ---- colours --------------------------------------------------------------------------------------------------

static size_t column_of(const theme *t)
{
    return (size_t)(t->row - themes);
}

style theme_role(const theme *t, role r)
{
    const role_row *row = &roles[r];
    if (t->tier == TIER_MONO) {
        return (style){COLOR_DEFAULT, COLOR_DEFAULT, row->mono};
    }
    if (t->tier < TIER_256) {
        return (style){row->low[t->light], COLOR_DEFAULT, row->low_attributes};
    }
    return (style){row->full[column_of(t)], COLOR_DEFAULT, row->full_attributes};
}

style theme_band(const theme *t, unsigned band)
{
    const band_row *row = &bands[band < BAND_COUNT ? band : BAND_UNKNOWN];
    if (t->tier == TIER_MONO) {
        return (style){COLOR_DEFAULT, COLOR_DEFAULT, band % 2 == 0 ? STYLE_BOLD : 0};
    }
    int16_t foreground = t->tier == TIER_256  ? row->full[column_of(t)]
                         : t->tier == TIER_16 ? row->of16[t->light]
                                              : row->of8[t->light];
    return (style){foreground, COLOR_DEFAULT, 0};
}

// Relative luminance of WCAG 2.1, https://www.w3.org/TR/WCAG21/#dfn-relative-luminance.
static double luminance(int index)
{
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    int rgb[3];
    double sum = 0;
    theme_rgb(index, rgb);
    for (size_t i = 0; i < 3; i++) {
        double c = rgb[i] / 255.0;
        sum += weights[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

style theme_letter(const theme *t, unsigned band)
{
    style s = theme_band(t, band);
    if (t->tier == TIER_256) {
        // Black and white are equally far from a luminance of sqrt(0.05 * 1.05) − 0.05.
        return (style){luminance(s.foreground) < 0.179 ? WHITE_256 : BLACK_256, s.foreground, 0};
    }
    s.attributes |= t->tier == TIER_MONO ? 0 : STYLE_REVERSE;
    return s;
}

bool theme_fills_by_letter(const theme *t)
{
    return t->tier < TIER_256;
}

void theme_rgb(int index, int rgb[3])
{
    static const int steps[] = {0, 95, 135, 175, 215, 255};
    static const unsigned char first[16][3] = {
        {0, 0, 0},     {205, 0, 0},     {0, 205, 0},     {205, 205, 0},   {0, 0, 238}, {205, 0, 205},
        {0, 205, 205}, {229, 229, 229}, {127, 127, 127}, {255, 0, 0},     {0, 255, 0}, {255, 255, 0},
        {92, 92, 255}, {255, 0, 255},   {0, 255, 255},   {255, 255, 255},
    };
    for (int i = 0; i < 3; i++) {
        static const int place[] = {36, 6, 1};
        rgb[i] = index < 16    ? first[index][i]
                 : index < 232 ? steps[(index - 16) / place[i] % 6]
                               : 8 + 10 * (index - 232);
    }
}

void theme_ground(const theme *t, int ink[3], int paper[3])
{
    for (int i = 0; i < 3; i++) {
        ink[i] = t->light ? 28 : 218;
        paper[i] = t->light ? 255 : 18;
    }
}
