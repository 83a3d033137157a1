// SPDX-License-Identifier: Apache-2.0
#include "app/tui/term/glyphs.h"

#include <langinfo.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(id, text) [GLYPHS_##id] = text,
    GLYPH_SET_MAP(X)
#undef X
};

const char *glyphs_name(glyph_set set)
{
    return names[set];
}

// What stands for a character outside ASCII; the first line of those also where they would be two columns wide.
static const struct {
    wchar_t glyph;
    char ascii;
    bool ambiguous;
} folds[] = {
    {L'─', '-', true},  {L'│', '|', true},  {L'┄', '-', true},  {L'·', '.', true},  {L'…', '~', true},
    {L'—', '-', true},  {L'±', '~', true},  {L'×', 'x', true},  {L'Δ', 'd', true},  {L'→', '>', true},
    {L'←', '<', true},  {L'↑', '^', true},  {L'↓', 'v', true},  {L'▲', '^', true},  {L'●', '*', true},
    {L'◆', '#', true},  {L'◇', '+', true},  {L'○', 'o', true},  {L'▾', 'v', false}, {L'▴', '^', false},
    {L'−', '-', false}, {L'◂', '<', false}, {L'▸', '>', false}, {L'✓', 'v', false}, {L'┈', '.', false},
    {L'▏', '|', false},
};

glyphs glyphs_make(glyph_set set)
{
    return glyphs_make_beside(set, set);
}

glyphs glyphs_make_beside(glyph_set set, glyph_set richest)
{
    glyphs g = {.set = set,
                .keeps_lines = richest == GLYPHS_FULL,
                .rule = L'─',
                .separator = L'│',
                .dashed = L'┄',
                .pool = L'┈'};
    g.area_braille = set == GLYPHS_BRAILLE;
    g.line_braille = set == GLYPHS_BRAILLE || set == GLYPHS_FULL;
    g.fills_by_letter = set == GLYPHS_ASCII;
    g.rule = glyphs_fold(&g, g.rule);
    g.separator = glyphs_fold(&g, g.separator);
    g.dashed = glyphs_fold(&g, g.dashed);
    g.pool = set == GLYPHS_ASCII ? L'.' : set == GLYPHS_BRAILLE ? L'⠒' : g.pool;
    return g;
}

// A font of Linux' own console has 512 characters at most (setfont(8)): no braille, and of the eighths only the half.
static bool is_console(void)
{
    const char *type = getenv("TERM");
    const char *inner = type == NULL ? "" : strncmp(type, "screen.", 7) == 0 ? type + 7 : type;
    return strncmp(inner, "linux", 5) == 0;
}

glyph_set glyphs_detect(void)
{
    const char *codeset = nl_langinfo(CODESET);
    if (strcmp(codeset, "UTF-8") != 0 || wcwidth(L'⣿') != 1 || is_console()) {
        return GLYPHS_ASCII;
    }
    return wcwidth(L'█') == 1 && wcwidth(L'─') == 1 ? GLYPHS_FULL : GLYPHS_BRAILLE;
}

wchar_t glyphs_fold(const glyphs *g, wchar_t c)
{
    if (c < 0x80 || g->set == GLYPHS_FULL || g->set == GLYPHS_BLOCK) {
        return c;
    }
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        if (folds[i].glyph == c) {
            bool folds_it = g->set == GLYPHS_ASCII || (folds[i].ambiguous && !g->keeps_lines);
            return folds_it ? (wchar_t)folds[i].ascii : c;
        }
    }
    return g->set == GLYPHS_ASCII ? L'?' : c;
}

wchar_t glyphs_bar(const glyphs *g, int eighths)
{
    if (eighths <= 0) {
        return L' ';
    }
    int full = eighths > 8 ? 8 : eighths;
    if (g->set == GLYPHS_ASCII) {
        return full >= 6 ? L'#' : full >= 3 ? L':' : L'.';
    }
    if (g->area_braille) {
        static const unsigned rows[] = {0xc0, 0xf0, 0xfc, 0xff};
        return glyphs_dots(rows[(full - 1) / 2]);
    }
    return (wchar_t)(L'▁' + full - 1);
}

wchar_t glyphs_dots(unsigned dots)
{
    // Unicode numbers the dots 1-2-3-7 down the left column and 4-5-6-8 down the right one.
    static const unsigned char bit[8] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
    unsigned pattern = 0;
    for (unsigned i = 0; i < 8; i++) {
        pattern |= dots >> i & 1 ? bit[i] : 0u;
    }
    return pattern == 0 ? L' ' : (wchar_t)(0x2800 + pattern);
}

wchar_t utf8_next(const char **text)
{
    static const struct {
        unsigned char mask, lead;
        unsigned smallest;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *at = (const unsigned char *)*text;
    for (unsigned length = 1; length <= 4; length++) {
        if ((*at & forms[length - 1].mask) != forms[length - 1].lead) {
            continue;
        }
        unsigned code = *at & (unsigned char)~forms[length - 1].mask;
        for (unsigned i = 1; i < length; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                *text += 1;
                return 0xfffd;
            }
            code = code << 6 | (at[i] & 0x3fu);
        }
        *text += length;
        bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        bool legal = code >= forms[length - 1].smallest && code <= 0x10ffff && !control && !surrogate;
        return legal ? (wchar_t)code : 0xfffd;
    }
    *text += 1;
    return 0xfffd;
}

size_t utf8_put(wchar_t c, char text[4])
{
    static const struct {
        unsigned below, lead;
    } forms[] = {{0x80, 0x00}, {0x800, 0xc0}, {0x10000, 0xe0}, {0x110000, 0xf0}};
    unsigned code = (unsigned)c;
    size_t length = 1;
    while (length < 4 && code >= forms[length - 1].below) {
        length++;
    }
    for (size_t i = length - 1; i > 0; i--) {
        text[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    text[0] = (char)(forms[length - 1].lead | code);
    return length;
}

int glyphs_columns(wchar_t c)
{
    return wcwidth(c) == 2 ? 2 : 1;
}

int glyphs_width(const glyphs *g, const char *text)
{
    int width = 0;
    while (*text != '\0') {
        width += glyphs_columns(glyphs_fold(g, utf8_next(&text)));
    }
    return width;
}
