// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Counter-based: the same (key, counter) gives the same numbers in any order, on any thread.
#ifndef BASE_PHILOX_H
#define BASE_PHILOX_H

#include <stdint.h>

typedef struct philox_key {
    uint32_t word[2];
} philox_key;

// key from (seed, purpose): hash of the name, so that "init/conv1/weights" and "shuffle" never share numbers.
philox_key philox_key_of(uint64_t seed, const char *purpose);
void philox(philox_key key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4]);
// Uniform in [0, 1) with 24 bits, exact in float.
float philox_uniform(uint32_t word);
// Uniform integer in [0, n), n > 0, from two words (multiply-shift on 64 bits; bias < 2^-32 for n < 2^32).
uint64_t philox_below(uint32_t high, uint32_t low, uint64_t n);

#endif
