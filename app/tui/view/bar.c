// SPDX-License-Identifier: Apache-2.0
#include "app/tui/view/bar.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *bar_text(const glyphs *g, double share, int width, char *text, size_t size)
{
    static const wchar_t eighth[] = {L'▏', L'▎', L'▍', L'▌', L'▋', L'▊', L'▉', L'█'};
    bool smooth = g->set == GLYPHS_FULL || g->set == GLYPHS_BLOCK;
    double clamped = share > 0 ? fmin(share, 1) : 0; // NaN is nothing
    int eighths = (int)lround(clamped * width * 8);
    size_t used = 0;
    for (int left = eighths; left > 0 && used + 5 < size; left -= 8) {
        wchar_t glyph = smooth ? eighth[left >= 8 ? 7 : left - 1] : L'#';
        if (g->set == GLYPHS_BRAILLE) {
            glyph = left > 4 ? L'⣿' : L'⡇';
        } else if (!smooth && left < 4 && eighths > 8) {
            break;
        }
        used += utf8_put(glyph, text + used);
    }
    text[used] = '\0';
    return text;
}

const char *bar_cell(const glyphs *g, double share, int width, char *text, size_t size)
{
    bar_text(g, share, width, text, size);
    const int blanks = width - glyphs_width(g, text);
    const size_t length = strlen(text);
    if (blanks > 0) {
        snprintf(text + length, size - length, "%*s", blanks, "");
    }
    return text;
}
