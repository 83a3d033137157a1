// SPDX-License-Identifier: Apache-2.0
// Bytes as people read and type them. JSON and the engine carry plain integers; only these functions convert.
#ifndef HEADROOM_UNITS_H
#define HEADROOM_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_KIB (UINT64_C(1) << 10)
#define HR_MIB (UINT64_C(1) << 20)
#define HR_GIB (UINT64_C(1) << 30)

enum { HR_BYTES_TEXT_MAX = 24 };

// Parses "512MiB", "3 GiB", "1.5GiB", "8gib", "4096", "4096B" (binary units; "MB"/"GB" are decimal; in any case of letters). To the
// nearest byte: what hr_bytes_human prints can be typed. False on anything else, on "1.5B", on "0.0001KiB", which would be nothing, and
// on overflow; *bytes is then untouched.
bool hr_bytes_parse(const char *text, uint64_t *bytes);

// The exact shortest form that hr_bytes_parse reads back: "64MiB", "100KiB", "12345B". Returns text.
const char *hr_bytes_exact(uint64_t bytes, char text[HR_BYTES_TEXT_MAX]);

// For reading: "3.61 GiB", "112.5 KiB", "980 B"; at most 10 characters. Returns text.
const char *hr_bytes_human(uint64_t bytes, char text[HR_BYTES_TEXT_MAX]);

enum { HR_SECONDS_RANGE_MAX = 32 };
// "95-120 ms": both rounded to two digits, in the unit of the larger. Returns text.
const char *hr_seconds_range(double low, double high, char text[HR_SECONDS_RANGE_MAX]);

// a*b and a+b without wrapping: false on overflow, and *out is then UINT64_MAX. All sizes go through these.
bool hr_mul_bytes(uint64_t a, uint64_t b, uint64_t *out);
bool hr_add_bytes(uint64_t a, uint64_t b, uint64_t *out);

#endif
