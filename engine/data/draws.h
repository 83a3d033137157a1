// SPDX-License-Identifier: Apache-2.0
// The random words of one generated record, in order: the same on every machine, for any order of records.
#ifndef DATA_DRAWS_H
#define DATA_DRAWS_H

#include <stdint.h>

#include "base/philox.h"

enum { WORDS_PER_DRAW = 4 }; // of one Philox call

typedef struct draws {
    philox_key key;
    uint64_t record, block;
    uint32_t word[WORDS_PER_DRAW], used;
} draws;

static inline draws draws_of(philox_key key, uint64_t record)
{
    return (draws){.key = key, .record = record, .used = WORDS_PER_DRAW};
}

static inline uint32_t draw(draws *d)
{
    if (d->used == WORDS_PER_DRAW) {
        philox(d->key, d->block++, d->record, d->word);
        d->used = 0;
    }
    return d->word[d->used++];
}

// Uniform in [low, high].
static inline int draw_between(draws *d, int low, int high)
{
    uint64_t span = (uint64_t)(high - low) + 1;
    return low + (int)(draw(d) * span >> 32);
}

#endif
