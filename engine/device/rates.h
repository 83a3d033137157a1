// SPDX-License-Identifier: Apache-2.0
// What a machine was measured to do: for each kernel of an operation, and for families of operations where none was measured, a
// fixed cost to start, and a cost per FLOP and per byte. An instruction takes
//
//   line + start + flops * seconds_per_flop + bytes * seconds_per_byte
//
// so that more work never takes less; `line` is what every line of a listing takes, an allocation too. Kept in a file below the user's cache, one record per device, library version,
// ISA and thread count (hr_target.key). It is a cache: whatever is wrong with the file, it is as if it were not there.
#ifndef DEVICE_RATES_H
#define DEVICE_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cost.h"

typedef enum rate_width { RATE_FLOAT32, RATE_HALF, RATE_WIDTHS } rate_width;

typedef struct cost_rate {
    double start_seconds, seconds_per_flop, seconds_per_byte; // finite, not negative
    uint64_t instructions;                                    // it was measured on; 0: it was not
} cost_rate;

// Which kernel of which operation, in which width: the same number on every machine and in every build.
typedef struct rate_kinds {
    uint64_t kernel, operation; // `operation`: whatever kernel it has
} rate_kinds;

typedef struct kind_rate {
    uint64_t kind; // of rate_kinds, either
    cost_rate rate;
} kind_rate;

enum { RATE_KINDS_MAX = 512 };

typedef struct cost_rates {
    cost_rate of[COST_FAMILY_COUNT][RATE_WIDTHS];
    double line_seconds;
    double spread; // a step takes between what is planned divided by this and times it, as a rule; at least 1
    uint64_t kind_count;
    kind_rate kinds[RATE_KINDS_MAX]; // by kind
} cost_rates;

// What was measured nearest to it counts: its kernel, its operation, its family, its family in float32, what is element-wise.
// What costs nothing takes its line.
uint64_t rates_ns(const cost_rates *r, const program *p, const instr *i);
rate_width rates_width_of(const program *p, const instr *i);
rate_kinds rates_kinds_of(const program *p, const instr *i);
const cost_rate *rates_find(const cost_rates *r, cost_family family, rate_width width, rate_kinds kinds);

// Where the file is; false when there is no place for it.
bool rates_path(char *path, size_t size);
// The record under `key`; false when there is none to be had. Every number is checked.
bool rates_load(const char *path, uint64_t key, cost_rates *out);
// Adds or replaces the record, the others stay. False when it could not be written: then the old file is whole.
bool rates_save(const char *path, uint64_t key, const cost_rates *r);

#endif
