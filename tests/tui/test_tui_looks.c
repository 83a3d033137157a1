// SPDX-License-Identifier: Apache-2.0
// Themes and numbers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/report.h"
#include "headroom/units.h"
#include "headroom/words.h"

#include "app/tui/base/format.h"
#include "app/tui/screens/bench/bench.h"
#include "app/tui/shell/panes.h"
#include "app/tui/term/theme.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

// ---- an independent judge of colours --------------------------------------------------------------------------

// IEC 61966-2-1: from a byte of sRGB to linear light.
static double linear_of(int byte)
{
    double c = byte / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

// WCAG 2.1, "relative luminance" and "contrast ratio".
static double luminance(const int rgb[3])
{
    return 0.2126 * linear_of(rgb[0]) + 0.7152 * linear_of(rgb[1]) + 0.0722 * linear_of(rgb[2]);
}

static double contrast(const int a[3], const int b[3])
{
    double p = luminance(a), q = luminance(b);
    return (fmax(p, q) + 0.05) / (fmin(p, q) + 0.05);
}

static double contrast_of(int index, const int ground[3])
{
    int rgb[3];
    theme_rgb(index, rgb);
    return contrast(rgb, ground);
}

// Linear RGB as people see it: the matrices for severity 1.0 of Machado, Oliveira, Fernandes, "A Physiologically-based
// Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, doi:10.1109/TVCG.2009.113.
static const double visions[][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
};
enum { VISION_COUNT = sizeof visions / sizeof *visions };
static const char *const vision_names[VISION_COUNT] = {"normal", "protanopia", "deuteranopia", "tritanopia"};

static double lab_curve(double t)
{
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

// CIE L*a*b* (D65) of an index under a vision.
static void lab_of(int index, const double vision[3][3], double lab[3])
{
    static const double to_xyz[3][3] = {{0.4124564, 0.3575761, 0.1804375},
                                        {0.2126729, 0.7151522, 0.0721750},
                                        {0.0193339, 0.1191920, 0.9503041}};
    static const double white[3] = {0.95047, 1, 1.08883};
    int rgb[3];
    double seen[3], f[3];
    theme_rgb(index, rgb);
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int j = 0; j < 3; j++) {
            sum += vision[i][j] * linear_of(rgb[j]);
        }
        seen[i] = fmin(1, fmax(0, sum));
    }
    for (int i = 0; i < 3; i++) {
        f[i] =
            lab_curve((to_xyz[i][0] * seen[0] + to_xyz[i][1] * seen[1] + to_xyz[i][2] * seen[2]) / white[i]);
    }
    lab[0] = 116 * f[1] - 16;
    lab[1] = 500 * (f[0] - f[1]);
    lab[2] = 200 * (f[1] - f[2]);
}

// CIE 1976 difference of two indices under a vision.
static double difference(int a, int b, size_t vision)
{
    double p[3], q[3];
    lab_of(a, visions[vision], p);
    lab_of(b, visions[vision], q);
    return sqrt((p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) +
                (p[2] - q[2]) * (p[2] - q[2]));
}

// ---- themes ---------------------------------------------------------------------------------------------------

// What terminals have behind the text: black or nearly so, white or nearly so.
static const int grounds[2][2][3] = {{{0, 0, 0}, {30, 30, 30}}, {{255, 255, 255}, {250, 250, 250}}};
static const int tiers[] = {8, 16, 256};

typedef void theme_visit(const theme *t);

// Every theme of the table in every tier that has colours.
static void for_each_theme(theme_visit *visit)
{
    size_t count;
    const char *const *names = theme_names(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof tiers / sizeof *tiers; k++) {
            theme t;
            ck_assert(theme_make(&t, names[i], tiers[k], false));
            visit(&t);
        }
    }
}

static void roles_can_be_read(const theme *t)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        style s = theme_role(t, (role)r);
        ck_assert_int_eq(s.background, COLOR_DEFAULT); // never painted over
        for (int g = 0; g < 2 && s.foreground != COLOR_DEFAULT; g++) {
            double c = contrast_of(s.foreground, grounds[t->light][g]);
            ck_assert_msg(c >= 4.5, "%s tier %d role %d on ground %d: %.2f", theme_name(t), t->tier, r, g, c);
        }
    }
}

START_TEST(every_role_has_contrast_in_every_theme_and_tier)
{
    for_each_theme(roles_can_be_read);
}
END_TEST

static void bands_can_be_seen(const theme *t)
{
    for (unsigned band = 0; band < BAND_COUNT; band++) {
        style s = theme_band(t, band), letter = theme_letter(t, band);
        if (t->tier == TIER_MONO) {
            ck_assert(theme_fills_by_letter(t));
            continue;
        }
        for (int g = 0; g < 2; g++) {
            double c = contrast_of(s.foreground, grounds[t->light][g]);
            ck_assert_msg(c >= 3, "%s tier %d band %u: %.2f", theme_name(t), t->tier, band, c);
        }
        if (letter.background != COLOR_DEFAULT) {
            int on[3];
            theme_rgb(letter.background, on);
            ck_assert_int_eq(letter.background, s.foreground);
            double c = contrast_of(letter.foreground, on);
            ck_assert_msg(c >= 4.5, "%s tier %d letter %u: %.2f", theme_name(t), t->tier, band, c);
        } else {
            ck_assert(letter.attributes & STYLE_REVERSE);
        }
    }
}

START_TEST(every_band_has_contrast_and_its_letter_can_be_read)
{
    for_each_theme(bands_can_be_seen);
}
END_TEST

static void bands_have_colors_of_their_own(const theme *t)
{
    for (unsigned i = 0; i < BAND_COUNT; i++) {
        unsigned a = band_stack[i];
        ck_assert(theme_fills_by_letter(t) || i + 1 == BAND_COUNT ||
                  theme_band(t, a).foreground != theme_band(t, band_stack[i + 1]).foreground);
        for (unsigned j = i + 1; j < BAND_COUNT && !theme_fills_by_letter(t); j++) {
            int p = theme_band(t, a).foreground, q = theme_band(t, band_stack[j]).foreground;
            ck_assert_msg(difference(p, q, 0) >= 12, "%s tier %d bands %u and %u: %.1f", theme_name(t),
                          t->tier, a, band_stack[j], difference(p, q, 0));
        }
    }
}

START_TEST(bands_without_letters_all_have_colors_of_their_own)
{
    for_each_theme(bands_have_colors_of_their_own);
}
END_TEST

// Where bands between are empty any two of them touch.
START_TEST(safe_themes_keep_any_two_bands_apart_for_every_vision)
{
    static const char *const safe[] = {"safe", "safe-light"};
    for (size_t i = 0; i < 2; i++) {
        theme t;
        ck_assert(theme_make(&t, safe[i], 256, false));
        for (size_t vision = 0; vision < VISION_COUNT; vision++) {
            for (unsigned a = 0; a < BAND_COUNT; a++) {
                for (unsigned b = a + 1; b < BAND_COUNT; b++) {
                    double d = difference(theme_band(&t, a).foreground, theme_band(&t, b).foreground, vision);
                    ck_assert_msg(d >= 20, "%s, %s: bands %u and %u: %.1f", safe[i], vision_names[vision], a,
                                  b, d);
                }
            }
            static const role said[] = {ROLE_GOOD, ROLE_WARN, ROLE_BAD};
            for (size_t k = 0; k < 3; k++) {
                int p = theme_role(&t, said[k]).foreground, q = theme_role(&t, said[(k + 1) % 3]).foreground;
                ck_assert_msg(difference(p, q, vision) >= 30, "%s, %s: %.1f", safe[i], vision_names[vision],
                              difference(p, q, vision));
            }
        }
    }
}
END_TEST

// The judge itself: what is known to be confused is found, and known values come out.
START_TEST(the_judge_of_colors_finds_what_is_confused)
{
    static const int black[3] = {0, 0, 0}, white[3] = {255, 255, 255}, grey[3] = {119, 119, 119};
    ck_assert_double_eq_tol(contrast(black, white), 21, 1e-9);
    ck_assert_double_eq_tol(contrast(grey, white), 4.48, 0.005); // #777777, of WCAG's own examples
    ck_assert_double_eq_tol(difference(16, 231, 0), 100, 0.01);
    theme t;
    double least = 100;
    ck_assert(theme_make(&t, "dark", 256, false));
    for (unsigned a = 0; a < BAND_COUNT; a++) {
        for (unsigned b = a + 1; b < BAND_COUNT; b++) {
            least = fmin(least, difference(theme_band(&t, a).foreground, theme_band(&t, b).foreground, 2));
        }
    }
    ck_assert_double_lt(least, 5); // blue weights and violet state, without the green receptor
}
END_TEST

START_TEST(themes_have_names_and_an_order)
{
    size_t count, seen = 0;
    const char *const *names = theme_names(&count);
    ck_assert_str_eq(names[0], "auto");
    const char *name = names[1];
    do {
        theme t;
        ck_assert(theme_make(&t, name, 256, false));
        ck_assert_str_eq(theme_name(&t), name);
        ck_assert_str_eq(name, names[1 + seen]);
        name = theme_next(name);
        seen++;
    } while (strcmp(name, names[1]) != 0 && seen < count);
    ck_assert_uint_eq(seen, count - 1);
    ck_assert_str_eq(theme_next("pink"), names[1]);
    ck_assert_str_eq(theme_next(NULL), names[1]);
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
    ck_assert_str_eq(format_percent(0.99999, text), ">99.9%"); // not all
    ck_assert_str_eq(format_percent(1, text), "100.0%");
    ck_assert_str_eq(format_clock(UINT64_C(3731) * 1000000000, text), "1:02:11");
}
END_TEST

START_TEST(what_is_copied_has_nothing_that_a_terminal_obeys)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    a->focus = PANE_PEAK;
    free(screen_text(a));
    hr_report_tensor *first = &a->feed.report.memory.at_peak.tensors[table_selected(&a->table[PANE_PEAK])];
    snprintf(first->name, sizeof first->name, "a\033]52;c;\a\r\nrm\t\xc2\x9b-\xc3\xa9");
    char text[512];
    ck_assert(table_copy(&a->table[PANE_PEAK], pane_ops_of(PANE_PEAK)->table, pane_rows(a, PANE_PEAK), text,
                         sizeof text));
    static const char wanted[] = "a?]52;c;?"
                                 "?"
                                 "?rm?"
                                 "?"
                                 "?-\xc3\xa9\t";
    ck_assert_int_eq(strncmp(text, wanted, strlen(wanted)), 0);
    ck_assert_ptr_null(strpbrk(text, "\033\a\r\n"));
    char lines[] = "a\tb\n\033[31mc\177";
    ck_assert_str_eq(hr_plain_text(lines, "\t\n"), "a\tb\n?[31mc?");
    char *shown = screen_text(a); // and what is shown neither
    ck_assert_ptr_null(strpbrk(shown, "\033\a\r"));
    free(shown);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui looks", what_is_copied_has_nothing_that_a_terminal_obeys,
           every_role_has_contrast_in_every_theme_and_tier,
           every_band_has_contrast_and_its_letter_can_be_read,
           bands_without_letters_all_have_colors_of_their_own,
           safe_themes_keep_any_two_bands_apart_for_every_vision, the_judge_of_colors_finds_what_is_confused,
           themes_have_names_and_an_order, no_color_means_none_and_an_unknown_theme_is_refused,
           numbers_keep_their_width_and_say_when_unknown)
