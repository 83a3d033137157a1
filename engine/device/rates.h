// SPDX-License-Identifier: Apache-2.0
// What a machine was measured to do: for each family of operations and each width of type a fixed cost to start, and
// a cost per FLOP and per byte. An instruction takes
//
//   start + flops * seconds_per_flop + bytes * seconds_per_byte
//
// so that more work never takes less. Kept in a file below the user's cache, one record per device, library version,
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

typedef struct cost_rates {
    cost_rate of[COST_FAMILY_COUNT][RATE_WIDTHS];
} cost_rates;

// 0 for what costs nothing. A family that was not measured in two-byte types counts as in float32, one that was not
// measured at all as element-wise.
uint64_t rates_ns(const cost_rates *r, const program *p, const instr *i);
rate_width rates_width_of(const program *p, const instr *i);

// Where the file is; false when there is no place for it.
bool rates_path(char *path, size_t size);
// The record under `key`; false when there is none to be had. Every number is checked.
bool rates_load(const char *path, uint64_t key, cost_rates *out);
// Adds or replaces the record, the others stay. False when it could not be written: then the old file is whole.
bool rates_save(const char *path, uint64_t key, const cost_rates *r);

#endif
