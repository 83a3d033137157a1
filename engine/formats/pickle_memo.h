// SPDX-License-Identifier: Apache-2.0
// A pickle's memo: numbered 0, 1, 2 … as Python numbers it, 4 bytes each, in pages that never move.
#ifndef FORMATS_PICKLE_MEMO_H
#define FORMATS_PICKLE_MEMO_H

#include <stdbool.h>
#include <stdint.h>

enum { PICKLE_MEMO_PAGE = 1 << 16, PICKLE_MEMO_PAGES = 768 };

// Starts zeroed.
typedef struct pickle_memo {
    uint32_t *pages[PICKLE_MEMO_PAGES];
    uint32_t count;
} pickle_memo;

static inline bool pickle_memo_is_full(const pickle_memo *m)
{
    return m->count == PICKLE_MEMO_PAGES * PICKLE_MEMO_PAGE;
}

// The place of number n < count.
static inline uint32_t *pickle_memo_at(const pickle_memo *m, uint32_t n)
{
    return &m->pages[n / PICKLE_MEMO_PAGE][n % PICKLE_MEMO_PAGE];
}

// False when host memory is short. Not to be asked when full.
bool pickle_memo_add(pickle_memo *m, uint32_t entry);
void pickle_memo_deinit(pickle_memo *m);

#endif
