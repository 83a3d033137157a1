// SPDX-License-Identifier: Apache-2.0
#include "app/tui/term/screenshot_shapes.h"

#include <stdbool.h>
#include <stddef.h>

enum { W = SHAPE_WIDTH, H = SHAPE_HEIGHT, DOT = 4 };

// ---- lines ----------------------------------------------------------------------------------------------------

enum { LEFT = 1, RIGHT = 2, UP = 4, DOWN = 8, HEAVY = 16 };

static const struct {
    wchar_t glyph;
    unsigned arms;
} lines[] = {
    {L'─', LEFT | RIGHT},
    {L'│', UP | DOWN},
    {L'┌', RIGHT | DOWN},
    {L'┐', LEFT | DOWN},
    {L'└', RIGHT | UP},
    {L'┘', LEFT | UP},
    {L'├', UP | DOWN | RIGHT},
    {L'┤', UP | DOWN | LEFT},
    {L'┬', LEFT | RIGHT | DOWN},
    {L'┴', LEFT | RIGHT | UP},
    {L'┼', LEFT | RIGHT | UP | DOWN},
    {L'━', LEFT | RIGHT | HEAVY},
    {L'┃', UP | DOWN | HEAVY},
    {L'╭', RIGHT | DOWN},
    {L'╮', LEFT | DOWN},
    {L'╰', RIGHT | UP},
    {L'╯', LEFT | UP},
    {L'╴', LEFT},
    {L'╶', RIGHT},
    {L'╵', UP},
    {L'╷', DOWN},
};

static int put(shape_rect *rects, int count, int x, int y, int w, int h)
{
    if (w > 0 && h > 0) {
        rects[count++] = (shape_rect){x, y, w, h};
    }
    return count;
}

// One bar from side to side, and what of the upright stands above and below it.
static int line_of(unsigned arms, shape_rect *rects)
{
    int half = arms & HEAVY ? 2 : 1, count = 0;
    int left = arms & LEFT ? 0 : W / 2 - half, right = arms & RIGHT ? W : W / 2 + half;
    bool across = (arms & (LEFT | RIGHT)) != 0;
    int top = H / 2 - (across ? half : 0), below = H / 2 + (across ? half : 0);
    count = across ? put(rects, count, left, top, right - left, 2 * half) : 0;
    count = arms & UP ? put(rects, count, W / 2 - half, 0, 2 * half, top) : count;
    return arms & DOWN ? put(rects, count, W / 2 - half, below, 2 * half, H - below) : count;
}

static int dashes(int count, int length, shape_rect *rects)
{
    for (int i = 0; i < count; i++) {
        int middle = (2 * i + 1) * W / (2 * count);
        rects[i] = (shape_rect){middle - length / 2, H / 2 - 1, length, 2};
    }
    return count;
}

// ---- blocks and dots ------------------------------------------------------------------------------------------

static int quadrants(unsigned set, shape_rect *rects)
{
    int count = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (set >> i & 1) {
            rects[count++] = (shape_rect){(int)(i % 2) * W / 2, (int)(i / 2) * H / 2, W / 2, H / 2};
        }
    }
    return count;
}

static int block_of(wchar_t glyph, shape_rect *rects, int *percent)
{
    // U+2596…U+259F; bit 0 upper left, 1 upper right, 2 lower left, 3 lower right
    static const unsigned char sets[] = {4, 8, 1, 13, 9, 7, 11, 2, 6, 14};
    int number = (int)(glyph - 0x2580);
    if (number == 0) {
        return put(rects, 0, 0, 0, W, H / 2);
    }
    if (number <= 8) { // eighths from below
        return put(rects, 0, 0, H - number * H / 8, W, number * H / 8);
    }
    if (number < 16) { // seven to one eighths from the left
        return put(rects, 0, 0, 0, (16 - number) * W / 8, H);
    }
    if (number == 16) {
        return put(rects, 0, W / 2, 0, W / 2, H);
    }
    if (number < 20) {
        *percent = (number - 16) * 25;
        return put(rects, 0, 0, 0, W, H);
    }
    if (number == 20) {
        return put(rects, 0, 0, 0, W, H / 8);
    }
    return number == 21 ? put(rects, 0, W - W / 8, 0, W / 8, H) : quadrants(sets[number - 22], rects);
}

static int braille_of(wchar_t glyph, shape_rect *rects)
{
    static const unsigned char row[8] = {0, 1, 2, 0, 1, 2, 3, 3}, column[8] = {0, 0, 0, 1, 1, 1, 0, 1};
    int count = 0;
    for (unsigned i = 0; i < 8; i++) {
        if (glyph >> i & 1) {
            int x = column[i] * W / 2 + (W / 2 - DOT) / 2, y = row[i] * H / 4 + (H / 4 - DOT) / 2;
            rects[count++] = (shape_rect){x, y, DOT, DOT};
        }
    }
    return count;
}

int screenshot_shape(wchar_t glyph, shape_rect rects[SHAPE_RECTS_MAX], int *percent)
{
    *percent = 100;
    if (glyph >= 0x2580 && glyph <= 0x259f) {
        return block_of(glyph, rects, percent);
    }
    if (glyph > 0x2800 && glyph <= 0x28ff) {
        return braille_of(glyph, rects);
    }
    if (glyph == L'┄' || glyph == L'┈' || glyph == L'╌') {
        return glyph == L'╌'   ? dashes(2, 6, rects)
               : glyph == L'┄' ? dashes(3, 4, rects)
                               : dashes(4, 2, rects);
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (lines[i].glyph == glyph) {
            return line_of(lines[i].arms, rects);
        }
    }
    return 0;
}
