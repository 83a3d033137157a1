// SPDX-License-Identifier: Apache-2.0
#include "memory/chunks.h"

#include "base/host_mem.h"

// Below DOUBLING_MAX records the array doubles; above it grows by an eighth, which bounds the slack.
enum { FIRST_RECORDS = 32, DOUBLING_MAX = 1024, FIRST_BUCKET_BITS = 5, MAX_BUCKET_BITS = 31 };

// Fibonacci hashing: the high bits of a product with 2^64 / golden ratio (Knuth, TAOCP 3, 6.4).
static uint32_t bucket_of(const chunks *c, uint64_t address)
{
    return (uint32_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - c->bucket_bits));
}

void chunks_deinit(chunks *c)
{
    hr_free(c->records);
    hr_free(c->buckets);
    *c = (chunks){0};
}

static bool grow_records(chunks *c, uint32_t fresh)
{
    uint32_t step = c->capacity < DOUBLING_MAX ? c->capacity : c->capacity / 8;
    if (step < FIRST_RECORDS) {
        step = FIRST_RECORDS;
    }
    if (step < fresh) {
        step = fresh;
    }
    if (c->capacity > CHUNK_NONE - 1 - step) {
        return false;
    }
    chunk *records = hr_realloc(c->records, c->capacity + step, sizeof *records);
    if (records == NULL) {
        return false;
    }
    c->records = records;
    c->capacity += step;
    return true;
}

static bool grow_buckets(chunks *c)
{
    uint32_t bits = c->buckets == NULL ? FIRST_BUCKET_BITS : c->bucket_bits + 1;
    if (bits > MAX_BUCKET_BITS) {
        return true; // longer chains from here on
    }
    uint32_t count = UINT32_C(1) << bits;
    uint32_t *buckets = hr_calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        buckets[i] = CHUNK_NONE;
    }
    chunks old = *c;
    c->buckets = buckets;
    c->bucket_bits = bits;
    c->indexed = 0;
    for (uint32_t i = 0; old.buckets != NULL && i < UINT32_C(1) << old.bucket_bits; i++) {
        for (uint32_t id = old.buckets[i]; id != CHUNK_NONE;) {
            uint32_t after = c->records[id].chained;
            chunks_index(c, id);
            id = after;
        }
    }
    hr_free(old.buckets);
    return true;
}

bool chunks_reserve(chunks *c, uint32_t fresh)
{
    if (c->capacity - c->used + c->spare_count < fresh && !grow_records(c, fresh)) {
        return false;
    }
    return (c->buckets != NULL && c->indexed < UINT32_C(1) << c->bucket_bits) || grow_buckets(c);
}

uint32_t chunks_add(chunks *c)
{
    if (c->spare == 0) {
        return c->used++;
    }
    uint32_t id = c->spare - 1;
    c->spare = c->records[id].next;
    c->spare_count--;
    return id;
}

void chunks_release(chunks *c, uint32_t id)
{
    c->records[id].next = c->spare;
    c->spare = id + 1;
    c->spare_count++;
}

void chunks_index(chunks *c, uint32_t id)
{
    uint32_t *bucket = &c->buckets[bucket_of(c, c->records[id].address)];
    c->records[id].chained = *bucket;
    *bucket = id;
    c->indexed++;
}

uint32_t chunks_unindex(chunks *c, uint64_t address)
{
    if (c->buckets == NULL) {
        return CHUNK_NONE;
    }
    uint32_t *link = &c->buckets[bucket_of(c, address)];
    while (*link != CHUNK_NONE && c->records[*link].address != address) {
        link = &c->records[*link].chained;
    }
    uint32_t id = *link;
    if (id != CHUNK_NONE) {
        *link = c->records[id].chained;
        c->indexed--;
    }
    return id;
}

uint32_t chunks_find(const chunks *c, uint64_t address)
{
    uint32_t id = c->buckets == NULL ? CHUNK_NONE : c->buckets[bucket_of(c, address)];
    while (id != CHUNK_NONE && c->records[id].address != address) {
        id = c->records[id].chained;
    }
    return id;
}

size_t chunks_metadata_bytes(const chunks *c)
{
    size_t buckets = c->buckets == NULL ? 0 : (size_t)1 << c->bucket_bits;
    return c->capacity * sizeof *c->records + buckets * sizeof *c->buckets;
}
