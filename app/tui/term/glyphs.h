// SPDX-License-Identifier: Apache-2.0
// The characters of the screen in four sets, from what the locale can show and how wide it shows it.
#ifndef TUI_GLYPHS_H
#define TUI_GLYPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

// X(ID, "name")
#define GLYPH_SET_MAP(X)                                                                                     \
    X(FULL, "blocks and braille") /* bands in eighth blocks, lines in braille */                             \
    X(BLOCK, "blocks")            /* a font without braille */                                               \
    X(BRAILLE, "braille")         /* a terminal that shows ambiguous characters two columns wide */          \
    X(ASCII, "ASCII")

typedef enum glyph_set {
#define X(id, text) GLYPHS_##id,
    GLYPH_SET_MAP(X)
#undef X
        GLYPHS_COUNT
} glyph_set;

typedef struct glyphs {
    glyph_set set;
    wchar_t rule, separator, dashed, pool; // ─ │ ┄ and the pool's line
    bool fills_by_letter;                  // bands are filled with their category's letter
    bool keeps_lines;                      // characters that may be two columns wide elsewhere are one here
    bool area_braille, line_braille;
} glyphs;

glyphs glyphs_make(glyph_set set);
// The same for a terminal that shows `richest` too: where that is GLYPHS_FULL, braille keeps lines and borders.
glyphs glyphs_make_beside(glyph_set set, glyph_set richest);
// The richest set that the current locale shows one column wide; ASCII on the console of Linux, whose fonts have no more.
glyph_set glyphs_detect(void);
const char *glyphs_name(glyph_set set);
// `c` itself, or what stands for it in this set: "—" is "-" in ASCII.
wchar_t glyphs_fold(const glyphs *g, wchar_t c);

// A cell filled from below to `eighths` of 8 (0 is a blank).
wchar_t glyphs_bar(const glyphs *g, int eighths);
// A braille cell; bit (row * 2 + column) of `dots` is the dot at row 0…3 from the top, column 0…1. 0 is a blank.
wchar_t glyphs_dots(unsigned dots);

// Reads one character of UTF-8 and moves *text on; bytes that are none, and controls, are U+FFFD.
wchar_t utf8_next(const char **text);
// Writes `c` as UTF-8 whatever the locale, at most 4 bytes; returns how many.
size_t utf8_put(wchar_t c, char text[4]);
// Columns that `c`, already folded, takes: 1 or 2. What has no width of its own is shown as one "?".
int glyphs_columns(wchar_t c);
int glyphs_width(const glyphs *g, const char *text);

#endif
