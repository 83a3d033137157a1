// SPDX-License-Identifier: Apache-2.0
#include "headroom/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", HR_KIB},
    {"MiB", HR_MIB},
    {"GiB", HR_GIB},
    {"TiB", HR_GIB << 10},
    {"kB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
};

bool hr_mul_bytes(uint64_t a, uint64_t b, uint64_t *out)
{
    bool fits = !__builtin_mul_overflow(a, b, out);
    *out = fits ? *out : UINT64_MAX;
    return fits;
}

bool hr_add_bytes(uint64_t a, uint64_t b, uint64_t *out)
{
    bool fits = !__builtin_add_overflow(a, b, out);
    *out = fits ? *out : UINT64_MAX;
    return fits;
}

// Reads a run of decimal digits into *value and returns the text behind it; NULL when there is no digit or the
// value overflows.
static const char *read_digits(const char *text, uint64_t *value)
{
    const char *start = text;
    *value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (!hr_mul_bytes(*value, 10, value) || !hr_add_bytes(*value, (uint64_t)(*text - '0'), value)) {
            return NULL;
        }
    }
    return text == start ? NULL : text;
}

// Reads ".5" as the fraction digits/scale in lowest decimal form; nothing there is 0/1.
static const char *read_fraction(const char *text, uint64_t *digits, uint64_t *scale)
{
    *digits = 0;
    *scale = 1;
    if (*text != '.') {
        return text;
    }
    const char *first = ++text;
    text += strspn(text, "0123456789");
    const char *last = text;
    while (last > first && last[-1] == '0') {
        last--;
    }
    for (const char *at = first; at < last; at++) {
        if (!hr_mul_bytes(*scale, 10, scale)) {
            return NULL;
        }
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    }
    return text == first ? NULL : text;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

// In any case of letters, and alike in every locale.
static bool is_same_name(const char *a, const char *b)
{
    for (; *a != '\0' && lower(*a) == lower(*b); a++, b++) {
    }
    return lower(*a) == lower(*b);
}

static bool find_unit(const char *name, uint64_t *bytes)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (is_same_name(units[i].name, name)) {
            *bytes = units[i].bytes;
            return true;
        }
    }
    return false;
}

// digits / scale of a unit, to the nearest byte. What is too long for whole numbers is exact enough in others: a unit has 40 bits.
static uint64_t part_of(uint64_t unit, uint64_t digits, uint64_t scale)
{
    uint64_t part;
    if (hr_mul_bytes(digits, unit, &part)) {
        return part / scale + (part % scale >= scale - part % scale);
    }
    return (uint64_t)llround((double)digits / (double)scale * (double)unit);
}

bool hr_bytes_parse(const char *text, uint64_t *bytes)
{
    uint64_t whole, digits, scale, unit, sum;
    text = read_digits(text, &whole);
    text = text == NULL ? NULL : read_fraction(text, &digits, &scale);
    if (text == NULL || strcmp(text, " ") == 0 || !find_unit(text + (*text == ' '), &unit)) {
        return false;
    }
    if ((unit == 1 && digits > 0) || !hr_mul_bytes(whole, unit, &sum) ||
        !hr_add_bytes(sum, part_of(unit, digits, scale), &sum) || (sum == 0 && digits > 0)) {
        return false;
    }
    *bytes = sum;
    return true;
}

const char *hr_bytes_exact(uint64_t bytes, char text[HR_BYTES_TEXT_MAX])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < sizeof names / sizeof *names) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, HR_BYTES_TEXT_MAX, "%" PRIu64 "%s", bytes, names[unit]);
    return text;
}

const char *hr_bytes_human(uint64_t bytes, char text[HR_BYTES_TEXT_MAX])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, HR_BYTES_TEXT_MAX, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95) { // what one decimal would round up to 1024.0
        value /= 1024;
        unit++;
    }
    snprintf(text, HR_BYTES_TEXT_MAX, value < 99.995 ? "%.2f %s" : "%.1f %s", value, names[unit]);
    return text;
}

// ---- times ----------------------------------------------------------------------------------------------------

static double two_digits(double value)
{
    const double step = value > 0 ? pow(10, floor(log10(value)) - 1) : 1;
    return round(value / step) * step;
}

const char *hr_seconds_range(double low, double high, char text[HR_SECONDS_RANGE_MAX])
{
    const double unit = high >= 1 ? 1 : high >= 1e-3 ? 1e3 : 1e6;
    (void)snprintf(text, HR_SECONDS_RANGE_MAX, "%.4g-%.4g %s", two_digits(low * unit),
                   two_digits(high * unit),
                   high >= 1      ? "s"
                   : high >= 1e-3 ? "ms"
                                  : "us");
    return text;
}
