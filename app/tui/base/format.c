// SPDX-License-Identifier: Apache-2.0
#include "app/tui/base/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/report.h"
#include "headroom/units.h"

static const char *unknown(char text[FORMAT_MAX])
{
    snprintf(text, FORMAT_MAX, "—");
    return text;
}

byte_unit byte_unit_for(uint64_t largest_bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    byte_unit unit = {names[0], 1, 0};
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if ((double)largest_bytes < unit.bytes * 1024 * (i > 2 ? 4 : 1)) {
            break;
        }
        unit.name = names[i];
        unit.bytes *= 1024;
        unit.decimals = 2;
    }
    if (unit.decimals > 0 && (double)largest_bytes >= unit.bytes * 100) {
        unit.decimals = 1;
    }
    return unit;
}

const char *format_bytes(uint64_t bytes, byte_unit unit, char text[FORMAT_MAX])
{
    if (bytes == HR_NONE) {
        return unknown(text);
    }
    snprintf(text, FORMAT_MAX, "%.*f", unit.decimals, (double)bytes / unit.bytes);
    return text;
}

const char *format_cell_bytes(uint64_t bytes, byte_unit unit, char text[FORMAT_MAX])
{
    const double value = (double)bytes;
    if (bytes == HR_NONE || bytes == 0 || value >= 0.5 * pow(10, -unit.decimals) * unit.bytes) {
        unit.decimals = value >= 1e4 * unit.bytes && unit.decimals > 1 ? 1 : unit.decimals;
        return format_bytes(bytes, unit, text);
    }
    const byte_unit own = byte_unit_for(bytes);
    snprintf(text, FORMAT_MAX, value < 10 * own.bytes && own.decimals > 0 ? "%.1f %s" : "%.0f %s",
             value / own.bytes, own.name);
    return text;
}

const char *format_delta_bytes(double delta_bytes, byte_unit unit, char text[FORMAT_MAX])
{
    double value = delta_bytes / unit.bytes;
    if (isnan(value)) {
        return unknown(text);
    }
    if (fabs(value) < 0.5 * pow(10, -unit.decimals)) {
        snprintf(text, FORMAT_MAX, "±0");
    } else {
        snprintf(text, FORMAT_MAX, "%+.*f", unit.decimals, value);
    }
    return text;
}

const char *format_delta(double delta, const char *unit, char text[FORMAT_MAX])
{
    if (isnan(delta)) {
        return unknown(text);
    }
    double size = fabs(delta);
    snprintf(text, FORMAT_MAX, size >= 100 ? "%+.0f%s" : size >= 10 ? "%+.1f%s" : "%+.2f%s", delta, unit);
    return text;
}

const char *format_percent(double fraction, char text[FORMAT_MAX])
{
    if (isnan(fraction)) {
        return unknown(text);
    }
    if (fraction < 1 && fraction >= 0.9995) {
        return strcpy(text, ">99.9%"); // rounded it would be all
    }
    snprintf(text, FORMAT_MAX, "%.1f%%", 100 * fraction);
    return text;
}

const char *format_seconds(double seconds, char text[FORMAT_MAX])
{
    if (isnan(seconds)) {
        return unknown(text);
    }
    double value = seconds;
    const char *unit = "s";
    if (seconds < 1e-3) {
        value = seconds * 1e6, unit = "us";
    } else if (seconds < 1) {
        value = seconds * 1e3, unit = "ms";
    }
    snprintf(text, FORMAT_MAX, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
    return text;
}

const char *format_rate(double per_second, const char *unit, char text[FORMAT_MAX])
{
    if (isnan(per_second)) {
        return unknown(text);
    }
    snprintf(text, FORMAT_MAX,
             per_second < 10    ? "%.2f %s"
             : per_second < 100 ? "%.1f %s"
                                : "%.0f %s",
             per_second, unit);
    return text;
}

const char *format_loss(double loss, char text[FORMAT_MAX])
{
    if (isnan(loss)) {
        return unknown(text);
    }
    if (loss != 0 && (fabs(loss) < 1e-3 || fabs(loss) >= 1e4)) {
        snprintf(text, FORMAT_MAX, "%.2e", loss);
    } else {
        snprintf(text, FORMAT_MAX, fabs(loss) < 10 ? "%.4f" : "%.2f", loss);
    }
    return text;
}

const char *format_loss_short(double loss, char text[FORMAT_MAX])
{
    const double size = fabs(loss);
    if (isnan(loss) || loss == 0 || (size >= 1e-3 && size < 1e3)) {
        return format_loss(loss, text);
    }
    if (size >= 1e3 && size < 1e5) {
        snprintf(text, FORMAT_MAX, "%.0f", loss);
        return text;
    }
    char digits[FORMAT_MAX], *exponent;
    snprintf(digits, sizeof digits, "%.1e", loss);
    exponent = strchr(digits, 'e');
    if (exponent == NULL) { // infinite
        return strcpy(text, digits);
    }
    snprintf(text, FORMAT_MAX, "%.*se%d", (int)(exponent - digits), digits, atoi(exponent + 1));
    return text;
}

const char *format_count(double count, char text[FORMAT_MAX])
{
    static const char suffixes[] = "MGTPE";
    size_t at = 0;
    if (isnan(count)) {
        return unknown(text);
    }
    if (count < 1e8) {
        snprintf(text, FORMAT_MAX, "%.0f", count);
        return text;
    }
    double value = count / 1e6;
    for (; value >= 999.95 && suffixes[at + 1] != '\0'; at++) {
        value /= 1000;
    }
    snprintf(text, FORMAT_MAX, "%.4g%c", value, suffixes[at]);
    return text;
}

const char *format_clock(uint64_t elapsed_ns, char text[FORMAT_MAX])
{
    uint64_t seconds = elapsed_ns / UINT64_C(1000000000);
    if (seconds < 3600) {
        snprintf(text, FORMAT_MAX, "%02" PRIu64 ":%02" PRIu64, seconds / 60, seconds % 60);
    } else {
        snprintf(text, FORMAT_MAX, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, seconds / 3600, seconds / 60 % 60,
                 seconds % 60);
    }
    return text;
}

const char *format_window(double seconds, char text[FORMAT_MAX])
{
    if (seconds < 120) {
        snprintf(text, FORMAT_MAX, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    } else if (seconds < 7200) {
        snprintf(text, FORMAT_MAX, "%.0f min", seconds / 60);
    } else {
        snprintf(text, FORMAT_MAX, "%.1f h", seconds / 3600);
    }
    return text;
}
