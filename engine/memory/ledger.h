// SPDX-License-Identifier: Apache-2.0
// What holds the bytes: requested bytes by category, and the state at the first attainment of the largest in_use.
#ifndef MEMORY_LEDGER_H
#define MEMORY_LEDGER_H

#include <stdint.h>

#include "headroom/category.h"

#include "memory/allocator.h"

typedef struct ledger_peak {
    uint64_t in_use_bytes, requested_bytes, pool_bytes;
    uint64_t largest_free_bytes;
    double fragmentation;
    uint64_t by_category[HR_CATEGORY_COUNT];
    uint32_t instr; // HR_NO_ID: while building
} ledger_peak;

typedef struct ledger {
    uint64_t by_category[HR_CATEGORY_COUNT];
    uint64_t requested_bytes;
    uint64_t peak_requested_bytes; // own maximum, may be at another instant than peak
    ledger_peak peak;
} ledger;

void ledger_init(ledger *l);
// Called right after a served allocation and right before a free.
void ledger_alloc(ledger *l, const allocator *a, hr_category category, uint64_t requested_bytes,
                  uint32_t instr);
void ledger_free(ledger *l, hr_category category, uint64_t requested_bytes);
// Forgets the peak and starts it anew from the present state (the first training step begins here).
void ledger_reset_peak(ledger *l, const allocator *a);

#endif
