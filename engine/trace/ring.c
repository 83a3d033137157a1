// SPDX-License-Identifier: Apache-2.0
// Every slot is a sequence lock. The producer makes the slot's stamp odd, writes the words, then makes the stamp the
// even number that belongs to the record; the consumer keeps a copy only when it read that same number before and
// after it. Words are stored with release and loaded with acquire order, which carries what fences would otherwise
// carry (Boehm, "Can seqlocks get along with programming language memory models?", 2012) and which the thread
// sanitizer understands; on x86 they are plain moves.
#include "trace/ring.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/host_mem.h"

enum { WORDS = sizeof(hr_event) / sizeof(uint64_t), CACHE_LINE_BYTES = 64, MAX_EVENTS = 1 << 24 };

_Static_assert(WORDS * sizeof(uint64_t) == sizeof(hr_event), "an event is whole words");

typedef struct slot {
    atomic_uint_least64_t stamp; // 2n + 2 when it holds record n, odd while record n is written
    atomic_uint_least64_t word[WORDS];
} slot;

struct trace_ring {
    slot *slots;
    uint64_t mask;
    // A cache line apart, so that neither thread slows the other by writing its own count.
    uint8_t before_put[CACHE_LINE_BYTES];
    atomic_uint_least64_t put; // records written so far; the producer's
    uint8_t before_taken[CACHE_LINE_BYTES];
    uint64_t taken; // records read or lost so far; the consumer's
};

hr_status trace_ring_create(uint32_t capacity_events, trace_ring **out, hr_err *err)
{
    *out = NULL;
    uint64_t capacity = 1;
    while (capacity < capacity_events) {
        capacity *= 2;
    }
    trace_ring *ring = capacity <= MAX_EVENTS ? hr_calloc(1, sizeof *ring) : NULL;
    if (ring != NULL) {
        ring->mask = capacity - 1;
        ring->slots = hr_calloc(capacity, sizeof *ring->slots);
    }
    if (ring == NULL || ring->slots == NULL) {
        hr_free(ring);
        return HR_FAIL(err, NOMEM, "event ring: needed %llu slots of %zu bytes, had none",
                       (unsigned long long)capacity, sizeof(slot));
    }
    *out = ring;
    return HR_OK;
}

void trace_ring_destroy(trace_ring *ring)
{
    if (ring != NULL) {
        hr_free(ring->slots);
        hr_free(ring);
    }
}

void trace_ring_put(trace_ring *ring, const hr_event *event)
{
    uint64_t words[WORDS];
    memcpy(words, event, sizeof words);
    uint64_t n = atomic_load_explicit(&ring->put, memory_order_relaxed);
    slot *s = &ring->slots[n & ring->mask];
    atomic_store_explicit(&s->stamp, 2 * n + 1, memory_order_relaxed);
    for (int i = 0; i < WORDS; i++) {
        atomic_store_explicit(&s->word[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&s->stamp, 2 * n + 2, memory_order_release);
    atomic_store_explicit(&ring->put, n + 1, memory_order_release);
}

// Copies record n; false when the producer has begun to overwrite it.
static bool copy_record(trace_ring *ring, uint64_t n, hr_event *out)
{
    slot *s = &ring->slots[n & ring->mask];
    uint64_t words[WORDS];
    if (atomic_load_explicit(&s->stamp, memory_order_acquire) != 2 * n + 2) {
        return false;
    }
    for (int i = 0; i < WORDS; i++) {
        words[i] = atomic_load_explicit(&s->word[i], memory_order_acquire);
    }
    if (atomic_load_explicit(&s->stamp, memory_order_relaxed) != 2 * n + 2) {
        return false;
    }
    memcpy(out, words, sizeof words);
    return true;
}

size_t trace_ring_take(trace_ring *ring, hr_event *out, size_t max, uint64_t *lost_events)
{
    size_t got = 0;
    uint64_t lost = 0, capacity = ring->mask + 1;
    while (got < max) {
        uint64_t put = atomic_load_explicit(&ring->put, memory_order_acquire);
        if (put == ring->taken) {
            break;
        }
        if (put - ring->taken > capacity) {
            lost += put - capacity - ring->taken;
            ring->taken = put - capacity;
        }
        if (copy_record(ring, ring->taken, &out[got])) {
            got++;
        } else {
            lost++;
        }
        ring->taken++;
    }
    if (lost_events != NULL) {
        *lost_events = lost;
    }
    return got;
}
