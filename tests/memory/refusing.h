// SPDX-License-Identifier: Apache-2.0
// A numbers backing that refuses ranges, reservations and mappings on demand.
#ifndef TESTS_MEMORY_REFUSING_H
#define TESTS_MEMORY_REFUSING_H

#include "heap.h"

typedef struct refusing {
    backing numbers;
    uint64_t asked;      // ranges, reservations and mappings so far
    uint64_t fail_at;    // the n-th of them (1-based) is refused; 0: none
    bool always;         // and all behind it
    uint64_t every;      // every n-th is refused; 0: none
    uint64_t held_bytes; // taken and mapped
    uint64_t reserved_bytes;
} refusing;

static inline bool refusing_refuses(refusing *r)
{
    r->asked++;
    return (r->every != 0 && r->asked % r->every == 0) ||
           (r->fail_at != 0 && (r->asked == r->fail_at || (r->always && r->asked > r->fail_at)));
}

static inline uint64_t refusing_take(void *context, uint64_t bytes)
{
    refusing *r = context;
    uint64_t address = refusing_refuses(r) ? 0 : r->numbers.take(r->numbers.context, bytes);
    r->held_bytes += address != 0 ? bytes : 0;
    return address;
}

static inline void refusing_give_back(void *context, uint64_t address, uint64_t bytes)
{
    refusing *r = context;
    r->held_bytes -= bytes;
    r->numbers.give_back(r->numbers.context, address, bytes);
}

static inline uint64_t refusing_reserve(void *context, uint64_t bytes)
{
    refusing *r = context;
    uint64_t address = refusing_refuses(r) ? 0 : r->numbers.reserve(r->numbers.context, bytes);
    r->reserved_bytes += address != 0 ? bytes : 0;
    return address;
}

static inline void refusing_release(void *context, uint64_t address, uint64_t bytes)
{
    refusing *r = context;
    r->reserved_bytes -= bytes;
    r->numbers.release(r->numbers.context, address, bytes);
}

static inline bool refusing_map(void *context, uint64_t address, uint64_t bytes)
{
    refusing *r = context;
    bool mapped = !refusing_refuses(r) && r->numbers.map(r->numbers.context, address, bytes);
    r->held_bytes += mapped ? bytes : 0;
    return mapped;
}

static inline void refusing_unmap(void *context, uint64_t address, uint64_t bytes)
{
    refusing *r = context;
    r->held_bytes -= bytes;
    r->numbers.unmap(r->numbers.context, address, bytes);
}

static inline void refusing_close(void *context)
{
    refusing *r = context;
    backing_close(&r->numbers);
}

static inline backing refusing_open(refusing *r, uint64_t capacity_bytes, bool maps)
{
    ck_assert_int_eq(backing_numbers_open(capacity_bytes, 4096, &r->numbers, NULL), HR_OK);
    backing b = r->numbers;
    b.context = r;
    b.take = refusing_take;
    b.give_back = refusing_give_back;
    b.close = refusing_close;
    b.mapping_bytes = maps ? b.mapping_bytes : 0;
    b.reserve = maps ? refusing_reserve : NULL;
    b.release = maps ? refusing_release : NULL;
    b.map = maps ? refusing_map : NULL;
    b.unmap = maps ? refusing_unmap : NULL;
    return b;
}

#endif
