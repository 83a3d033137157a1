// SPDX-License-Identifier: Apache-2.0
// The files that make_fixtures.py writes, and the numbers that both sides make from a seed.
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include <jansson.h>
#include <stdint.h>

// Reads tests/numeric/fixtures/<name>; fails the running test when it cannot. The caller json_decrefs.
json_t *fixture_open(const char *name);

// How far values are from a fixture's {"norm", "entries"}: the larger of ‖a − b‖ / ‖b‖ over the stored entries
// and the relative difference of the whole norms. For {"zero_below"}, a tensor that is zero but for rounding, 0 when the
// norm is not larger, infinite otherwise.
double fixture_distance(const json_t *stored, const double *values, uint64_t count);
// The first of the two alone.
double fixture_entries_distance(const json_t *stored, const double *values, uint64_t count);

// Philox numbers in [0, 1) for (seed, purpose): what philox_uniform of the script gives.
void fixture_uniform(uint64_t seed, const char *purpose, float *values, uint64_t count);

#endif
