// SPDX-License-Identifier: Apache-2.0
// Glyphs, themes and numbers.
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/report.h"
#include "headroom/units.h"

#include "app/tui/format.h"
#include "app/tui/glyphs.h"
#include "app/tui/theme.h"
#include "tests/tui/suite.h"

static double luminance(const int rgb[3])
{
    static const double weights[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double c = rgb[i] / 255.0;
        sum += weights[i] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(int a, int b)
{
    int x[3], y[3];
    theme_rgb(a, x);
    theme_rgb(b, y);
    double p = luminance(x), q = luminance(y);
    return (fmax(p, q) + 0.05) / (fmin(p, q) + 0.05);
}

START_TEST(text_and_letters_have_contrast_in_dark_and_light)
{
    static const char *const names[] = {"dark", "light"};
    for (int i = 0; i < 2; i++) {
        theme t;
        ck_assert(theme_make(&t, names[i], 256, false));
        int background = i == 0 ? 16 : 231;
        for (int r = 0; r < ROLE_COUNT; r++) {
            int color = theme_role(&t, (role)r).foreground;
            ck_assert_msg(color == COLOR_DEFAULT || contrast(color, background) >= 4.5, "%s role %d: %.1f",
                          names[i], r, contrast(color, background));
        }
        for (unsigned band = 0; band < BAND_COUNT; band++) {
            style s = theme_letter(&t, band);
            ck_assert_msg(contrast(s.foreground, s.background) >= 4.5, "%s band %u: %.1f", names[i], band,
                          contrast(s.foreground, s.background));
        }
    }
}
END_TEST

START_TEST(no_color_means_none_and_an_unknown_theme_is_refused)
{
    theme t;
    ck_assert(theme_make(&t, "dark", 256, true));
    for (unsigned band = 0; band < BAND_COUNT; band++) {
        ck_assert_int_eq(theme_band(&t, band).foreground, COLOR_DEFAULT);
        ck_assert_int_eq(theme_letter(&t, band).background, COLOR_DEFAULT);
    }
    ck_assert(!theme_make(&t, "pink", 256, false));
    setenv("COLORFGBG", "0;15", 1);
    ck_assert(theme_make(&t, NULL, 256, false));
    ck_assert(t.light);
    unsetenv("COLORFGBG");
}
END_TEST

START_TEST(ascii_stays_ascii)
{
    glyphs g = glyphs_make(GLYPHS_ASCII);
    const char *text = "b pin · ←→ turn — … Δ ±0 × ✓ ▲ 日本";
    while (*text != '\0') {
        ck_assert_int_lt(glyphs_fold(&g, utf8_next(&text)), 0x80);
    }
    for (int i = 0; i <= 8; i++) {
        ck_assert_int_lt(glyphs_bar(&g, i), 0x80);
    }
    ck_assert_int_lt(g.rule, 0x80);
    ck_assert_int_lt(g.pool, 0x80);
}
END_TEST

START_TEST(broken_utf8_and_controls_are_marked_and_never_overrun)
{
    static const char *const broken[] = {"\xff",     "\xc3",         "\xe2\x82", "\xf0\x9f",
                                         "\xc0\xaf", "\xed\xa0\x80", "\x1b",     "\x7f"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const char *at = broken[i], *end = at + strlen(at);
        ck_assert_int_eq(utf8_next(&at), 0xfffd);
        ck_assert(at <= end);
    }
    const char *euro = "€";
    ck_assert_int_eq(utf8_next(&euro), 0x20ac);
}
END_TEST

START_TEST(numbers_keep_their_width_and_say_when_unknown)
{
    char text[FORMAT_MAX];
    byte_unit unit = byte_unit_for(64 * HR_MIB);
    ck_assert_str_eq(unit.name, "MiB");
    ck_assert_str_eq(format_bytes(45 * HR_MIB + HR_MIB / 8, unit, text), "45.12");
    ck_assert_str_eq(format_bytes(HR_NONE, unit, text), "—");
    ck_assert_str_eq(format_delta_bytes(-1.5 * (double)HR_MIB, unit, text), "-1.50");
    ck_assert_str_eq(format_delta_bytes(100, unit, text), "±0");
    ck_assert_str_eq(byte_unit_for(141 * HR_GIB).name, "GiB");
    ck_assert_str_eq(byte_unit_for(4 * HR_GIB).name, "GiB");
    ck_assert_str_eq(byte_unit_for(4 * HR_GIB - 1).name, "MiB");
    ck_assert_str_eq(byte_unit_for(HR_MIB).name, "MiB");
    ck_assert_str_eq(format_bytes(141 * HR_GIB, byte_unit_for(141 * HR_GIB), text), "141.0");
    ck_assert_str_eq(format_seconds(0.0821, text), "82.1 ms");
    ck_assert_str_eq(format_seconds(UNKNOWN, text), "—");
    ck_assert_str_eq(format_loss(0.42131, text), "0.4213");
    ck_assert_str_eq(format_percent(0.931, text), "93.1%");
    ck_assert_str_eq(format_clock(UINT64_C(3731) * 1000000000, text), "1:02:11");
}
END_TEST

SUITE_MAIN("tui looks", text_and_letters_have_contrast_in_dark_and_light,
           no_color_means_none_and_an_unknown_theme_is_refused, ascii_stays_ascii,
           broken_utf8_and_controls_are_marked_and_never_overrun,
           numbers_keep_their_width_and_say_when_unknown)
