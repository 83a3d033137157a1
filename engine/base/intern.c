// SPDX-License-Identifier: Apache-2.0
#include "base/intern.h"

#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"

enum { FIRST_BUCKETS = 16 };

void intern_deinit(intern *n)
{
    vec_deinit(&n->bytes);
    vec_deinit(&n->starts);
    hr_free(n->buckets);
    *n = (intern){0};
}

const char *intern_text(const intern *n, uint32_t number)
{
    return number < n->starts.count ? n->bytes.data + n->starts.data[number] : NULL;
}

uint32_t intern_count(const intern *n)
{
    return n->starts.count;
}

static size_t length_of(const intern *n, uint32_t number)
{
    size_t end = number + 1 < n->starts.count ? n->starts.data[number + 1] : n->bytes.count;
    return end - n->starts.data[number] - 1;
}

// The bucket that holds the text, or the empty one where it belongs.
static uint32_t *bucket_of(const intern *n, const char *bytes, size_t count)
{
    uint32_t mask = n->bucket_count - 1;
    uint32_t at = (uint32_t)hash64(bytes, count, 0) & mask;
    for (; n->buckets[at] != 0; at = (at + 1) & mask) {
        uint32_t number = n->buckets[at] - 1;
        if (length_of(n, number) == count && memcmp(intern_text(n, number), bytes, count) == 0) {
            break;
        }
    }
    return &n->buckets[at];
}

static bool grow_buckets(intern *n)
{
    uint32_t count = n->bucket_count == 0 ? FIRST_BUCKETS : n->bucket_count * 2;
    uint32_t *buckets = count == 0 ? NULL : hr_calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return false;
    }
    hr_free(n->buckets);
    n->buckets = buckets;
    n->bucket_count = count;
    for (uint32_t k = 0; k < n->starts.count; k++) {
        *bucket_of(n, intern_text(n, k), length_of(n, k)) = k + 1;
    }
    return true;
}

static uint32_t append(intern *n, const char *bytes, size_t count)
{
    uint32_t start = n->bytes.count;
    if (count >= UINT32_MAX - start) {
        return INTERN_NONE;
    }
    uint32_t end = start + (uint32_t)count + 1;
    uint32_t *slot = vec_push(&n->starts);
    if (slot == NULL) {
        return INTERN_NONE;
    }
    if (!vec_reserve_((void **)&n->bytes.data, &n->bytes.capacity, end, 1)) {
        n->starts.count--;
        return INTERN_NONE;
    }
    *slot = start;
    memcpy(n->bytes.data + start, bytes, count);
    n->bytes.data[end - 1] = '\0';
    n->bytes.count = end;
    return n->starts.count - 1;
}

uint32_t intern_add(intern *n, const char *bytes, size_t count)
{
    count = strnlen(bytes, count);
    if (2 * ((uint64_t)n->starts.count + 1) > n->bucket_count && !grow_buckets(n)) {
        return INTERN_NONE;
    }
    uint32_t *bucket = bucket_of(n, bytes, count);
    if (*bucket != 0) {
        return *bucket - 1;
    }
    uint32_t number = append(n, bytes, count);
    if (number != INTERN_NONE) {
        *bucket = number + 1;
    }
    return number;
}

uint32_t intern_find(const intern *n, const char *bytes, size_t count)
{
    uint32_t bucket = n->bucket_count == 0 ? 0 : *bucket_of(n, bytes, strnlen(bytes, count));
    return bucket == 0 ? INTERN_NONE : bucket - 1;
}
