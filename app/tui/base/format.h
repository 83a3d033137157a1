// SPDX-License-Identifier: Apache-2.0
// Numbers as the screen shows them: fixed width, unknown as "—".
#ifndef TUI_FORMAT_H
#define TUI_FORMAT_H

#include <math.h>
#include <stdint.h>

enum { FORMAT_MAX = 32 };

#define UNKNOWN ((double)NAN)

// One unit for a whole screen, so that numbers under each other can be compared.
typedef struct byte_unit {
    const char *name; // "MiB"
    double bytes;
    int decimals;
} byte_unit;

// At least three digits of `largest_bytes`; GiB and beyond only from four on, so that a small change shows.
byte_unit byte_unit_for(uint64_t largest_bytes);

// All return `text`. HR_NONE and NaN are "—".
const char *format_bytes(uint64_t bytes, byte_unit unit, char text[FORMAT_MAX]); // "45.12"
// In a table: what `unit` would show as nothing has a unit of its own, "256 B"; many digits cost the last decimal.
const char *format_cell_bytes(uint64_t bytes, byte_unit unit, char text[FORMAT_MAX]);
const char *format_delta_bytes(double delta_bytes, byte_unit unit, char text[FORMAT_MAX]); // "+1.20", "±0"
const char *format_delta(double delta, const char *unit, char text[FORMAT_MAX]);           // "-12.3 ms"
const char *format_percent(double fraction, char text[FORMAT_MAX]);                        // "93.1%"
const char *format_seconds(double seconds, char text[FORMAT_MAX]);                         // "82.1 ms"
const char *format_rate(double per_second, const char *unit, char text[FORMAT_MAX]);       // "12.1 it/s"
const char *format_loss(double loss, char text[FORMAT_MAX]);                               // "0.4213"
const char *format_loss_short(double loss, char text[FORMAT_MAX]);    // of an axis: "0.4213", "4.5e-5"
const char *format_count(double count, char text[FORMAT_MAX]);        // "40960", "93.63G"
const char *format_clock(uint64_t elapsed_ns, char text[FORMAT_MAX]); // "02:11", "1:02:11"
const char *format_window(double seconds, char text[FORMAT_MAX]);     // "24 s", "8 min"

#endif
