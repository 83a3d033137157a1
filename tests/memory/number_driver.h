// SPDX-License-Identifier: Apache-2.0
// Where a driver of numbers puts what it is asked for (C and C++): beneath an allocator of ours and beneath the one it
// behaves like, so that both are given the same addresses. Drivers reuse what was freed, and in an order of their own:
// an allocator whose decisions hang on addresses has to agree for every policy.
#ifndef TESTS_MEMORY_NUMBER_DRIVER_H
#define TESTS_MEMORY_NUMBER_DRIVER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum number_policy {
    NUMBERS_NEVER_TWICE,
    NUMBERS_LOWEST_GAP, // the lowest that is large enough
    NUMBERS_LAST_FREED, // the low end of what was freed last and is large enough; gaps are not joined
} number_policy;

typedef struct number_range {
    uint64_t address, bytes;
} number_range;

typedef struct number_ranges {
    number_range *at;
    uint32_t count, capacity;
} number_ranges;

typedef struct number_places {
    number_policy policy;
    uint64_t end;        // nothing was ever given from here on
    number_ranges taken; // by address
    number_ranges freed; // the last one at the end
} number_places;

static inline void numbers_insert(number_ranges *r, uint32_t at, number_range range)
{
    if (r->count == r->capacity) {
        r->capacity = 2 * r->capacity + 64;
        r->at = (number_range *)realloc(r->at, r->capacity * sizeof *r->at);
    }
    memmove(&r->at[at + 1], &r->at[at], (r->count++ - at) * sizeof *r->at);
    r->at[at] = range;
}

static inline void numbers_erase(number_ranges *r, uint32_t at)
{
    memmove(&r->at[at], &r->at[at + 1], (--r->count - at) * sizeof *r->at);
}

// How many begin before the address.
static inline uint32_t numbers_before(const number_ranges *r, uint64_t address)
{
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->at[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static inline number_places numbers_from(uint64_t base, number_policy policy)
{
    number_places p;
    memset(&p, 0, sizeof p);
    p.policy = policy;
    p.end = base;
    return p;
}

static inline void numbers_deinit(number_places *p)
{
    free(p->taken.at);
    free(p->freed.at);
}

// What was freed is a gap for both policies that reuse: the lowest one joins with its neighbours.
static inline uint64_t numbers_reuse(number_places *p, uint64_t bytes)
{
    uint64_t address = 0;
    uint32_t best = p->freed.count;
    for (uint32_t k = p->freed.count; k-- > 0;) {
        if (p->freed.at[k].bytes >= bytes) {
            best = k;
            if (p->policy == NUMBERS_LAST_FREED) {
                break;
            }
        }
    }
    if (best < p->freed.count) {
        number_range *gap = &p->freed.at[best];
        address = gap->address;
        gap->address += bytes;
        gap->bytes -= bytes;
        if (gap->bytes == 0) {
            numbers_erase(&p->freed, best);
        }
    }
    return address;
}

static inline uint64_t numbers_take(number_places *p, uint64_t bytes)
{
    uint64_t address = p->policy == NUMBERS_NEVER_TWICE ? 0 : numbers_reuse(p, bytes);
    if (address == 0) {
        address = p->end;
        p->end += bytes;
    }
    number_range range = {address, bytes};
    numbers_insert(&p->taken, numbers_before(&p->taken, address), range);
    return address;
}

static inline void numbers_put_lowest(number_ranges *freed, number_range range)
{
    uint32_t at = numbers_before(freed, range.address);
    if (at < freed->count && range.address + range.bytes == freed->at[at].address) {
        range.bytes += freed->at[at].bytes;
        numbers_erase(freed, at);
    }
    if (at > 0 && freed->at[at - 1].address + freed->at[at - 1].bytes == range.address) {
        freed->at[at - 1].bytes += range.bytes;
    } else {
        numbers_insert(freed, at, range);
    }
}

// How many bytes were taken at the address; 0 when nothing was.
static inline uint64_t numbers_give(number_places *p, uint64_t address)
{
    uint32_t at = numbers_before(&p->taken, address);
    if (at == p->taken.count || p->taken.at[at].address != address) {
        return 0;
    }
    number_range range = p->taken.at[at];
    numbers_erase(&p->taken, at);
    if (p->policy == NUMBERS_LOWEST_GAP) {
        numbers_put_lowest(&p->freed, range);
    } else if (p->policy == NUMBERS_LAST_FREED) {
        numbers_insert(&p->freed, p->freed.count, range);
    }
    return range.bytes;
}

#endif
