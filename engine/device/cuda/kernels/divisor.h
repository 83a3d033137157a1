// SPDX-License-Identifier: Apache-2.0
// Division by a number that a whole launch shares: one product and one shift below 2^31 (Granlund, Montgomery: "Division
// by invariant integers using multiplication", PLDI 1994). Read by C, which makes it, and by CUDA C++ (map.cuh), which
// divides by it.
#ifndef KERNELS_DIVISOR_H
#define KERNELS_DIVISOR_H

#include <stdint.h>

typedef struct divisor {
    int64_t by;            // at least 1
    uint32_t magic, shift; // for numbers below 2^31, of a divisor below 2^31; else 0
} divisor;

static inline divisor divisor_of(int64_t by)
{
    divisor d = {by, 0, 0};
    if (by <= INT32_MAX) {
        while ((INT64_C(1) << d.shift) < by) {
            d.shift++;
        }
        const uint64_t above = (UINT64_C(1) << d.shift) - (uint64_t)by;
        d.magic = (uint32_t)((above << 32) / (uint64_t)by + 1);
    }
    return d;
}

#endif
