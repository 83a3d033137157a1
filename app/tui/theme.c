// SPDX-License-Identifier: Apache-2.0
#include "app/tui/theme.h"

#include <stdlib.h>
#include <string.h>

enum { BLACK_256 = 16, WHITE_256 = 231 };

typedef struct role_row {
    int16_t dark, light; // foreground in the 256-colour palette
    int16_t low;         // in 8 and 16 colours
    uint8_t attributes;  // with colours
    uint8_t mono;        // without
} role_row;

static const role_row roles[ROLE_COUNT] = {
    [ROLE_TEXT] = {COLOR_DEFAULT, COLOR_DEFAULT, COLOR_DEFAULT, 0, 0},
    [ROLE_DIM] = {246, 241, COLOR_DEFAULT, 0, STYLE_DIM},
    [ROLE_BAR] = {COLOR_DEFAULT, COLOR_DEFAULT, COLOR_DEFAULT, STYLE_BOLD, STYLE_BOLD},
    [ROLE_RULE] = {109, 24, 6, 0, 0},
    [ROLE_FOCUS] = {123, 20, 6, STYLE_BOLD, STYLE_BOLD},
    [ROLE_SELECT] = {COLOR_DEFAULT, COLOR_DEFAULT, COLOR_DEFAULT, STYLE_REVERSE, STYLE_REVERSE},
    [ROLE_KEY] = {123, 20, 6, STYLE_BOLD, STYLE_BOLD},
    [ROLE_GOOD] = {114, 22, 2, 0, 0},
    [ROLE_WARN] = {221, 94, 3, STYLE_BOLD, STYLE_BOLD},
    [ROLE_BAD] = {210, 124, 1, STYLE_BOLD, STYLE_BOLD | STYLE_REVERSE},
    [ROLE_LIMIT] = {210, 124, 1, 0, STYLE_BOLD},
    [ROLE_POOL] = {246, 241, COLOR_DEFAULT, 0, STYLE_DIM},
    [ROLE_BASELINE] = {229, 58, 3, 0, STYLE_UNDERLINE},
    [ROLE_LINE] = {117, 25, 6, 0, 0},
};

typedef struct band_row {
    int16_t dark, light;
    int16_t low;
} band_row;

// Neighbours in the stack differ in lightness as well as in hue.
static const band_row bands[BAND_COUNT] = {
    [HR_CATEGORY_WEIGHTS] = {39, 25, 4},       [HR_CATEGORY_CASTS] = {153, 60, 7},
    [HR_CATEGORY_GRADIENTS] = {221, 58, 3},    [HR_CATEGORY_OPTIMIZER] = {208, 130, 1},
    [HR_CATEGORY_ACCUMULATORS] = {187, 89, 7}, [HR_CATEGORY_ACTIVATIONS] = {77, 28, 2},
    [HR_CATEGORY_TEMPORARIES] = {213, 126, 5}, [HR_CATEGORY_INPUT] = {87, 23, 6},
    [HR_CATEGORY_STATE] = {141, 55, 5},        [HR_CATEGORY_RETAINED] = {203, 124, 1},
    [HR_CATEGORY_OUTSIDE] = {250, 240, 7},     [BAND_UNKNOWN] = {245, 242, 7},
};

static bool background_is_light(void)
{
    const char *value = getenv("COLORFGBG"); // "0;15": foreground;background
    const char *last = value == NULL ? NULL : strrchr(value, ';');
    long background = last == NULL ? 0 : strtol(last + 1, NULL, 10);
    return background == 7 || background >= 9;
}

bool theme_make(theme *t, const char *name, int colors, bool no_color)
{
    bool automatic = name == NULL || strcmp(name, "auto") == 0;
    bool mono = !automatic && strcmp(name, "mono") == 0;
    bool light = !automatic && strcmp(name, "light") == 0;
    bool dark = !automatic && strcmp(name, "dark") == 0;
    if (!automatic && !mono && !light && !dark) {
        return false;
    }
    t->light = automatic ? background_is_light() : light;
    t->tier = colors >= 256 ? TIER_256 : colors >= 16 ? TIER_16 : colors >= 8 ? TIER_8 : TIER_MONO;
    if (mono || no_color) {
        t->tier = TIER_MONO;
    }
    return true;
}

style theme_role(const theme *t, role r)
{
    const role_row *row = &roles[r];
    if (t->tier == TIER_MONO) {
        return (style){COLOR_DEFAULT, COLOR_DEFAULT, row->mono};
    }
    int16_t foreground = t->tier < TIER_256 ? row->low : t->light ? row->light : row->dark;
    return (style){foreground, COLOR_DEFAULT, row->attributes};
}

style theme_band(const theme *t, unsigned band)
{
    const band_row *row = &bands[band < BAND_COUNT ? band : BAND_UNKNOWN];
    if (t->tier == TIER_MONO) {
        return (style){COLOR_DEFAULT, COLOR_DEFAULT, band % 2 == 0 ? STYLE_BOLD : 0};
    }
    int16_t foreground = t->tier < TIER_256 ? row->low : t->light ? row->light : row->dark;
    return (style){foreground, COLOR_DEFAULT, 0};
}

style theme_letter(const theme *t, unsigned band)
{
    style s = theme_band(t, band);
    if (t->tier == TIER_256) {
        return (style){t->light ? WHITE_256 : BLACK_256, s.foreground, 0};
    }
    s.attributes |= t->tier == TIER_MONO ? 0 : STYLE_REVERSE;
    return s;
}

void theme_rgb(int index, int rgb[3])
{
    static const int steps[] = {0, 95, 135, 175, 215, 255};
    if (index >= 232) {
        rgb[0] = rgb[1] = rgb[2] = 8 + 10 * (index - 232);
    } else {
        int cube = index - 16;
        rgb[0] = steps[cube / 36];
        rgb[1] = steps[cube / 6 % 6];
        rgb[2] = steps[cube % 6];
    }
}
