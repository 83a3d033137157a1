// SPDX-License-Identifier: Apache-2.0
// Seeded streams of requests, the same in C and in C++, so that an allocator of ours and the one it behaves like can
// be asked the same things. The answer of a stream is a hash of every address in order, failures as 0.
#ifndef TESTS_MEMORY_REQUESTS_H
#define TESTS_MEMORY_REQUESTS_H

#include <stdint.h>
#include <stdlib.h>

typedef enum request_profile {
    REQUESTS_SMALL,    // 1 B … 4 KiB
    REQUESTS_SPREAD,   // 1 B … 64 MiB, evenly over the powers of two
    REQUESTS_TRAINING, // forty sizes that come again and again, as a model's tensors do
    REQUESTS_LARGE,    // 64 KiB … 200 MiB
} request_profile;

typedef struct request_mix {
    const char *name;
    uint64_t seed;
    uint32_t operations, live_max, streams;
    request_profile profile;
    uint64_t limit_bytes;
} request_mix;

typedef struct request_answer {
    uint64_t hash;
    uint32_t served, failed;
} request_answer;

// What is asked: addresses are relative to `base`; 0 is a failure.
typedef struct request_subject {
    void *context;
    uint64_t base;
    uint64_t (*alloc)(void *context, uint64_t bytes, uint32_t stream);
    void (*free)(void *context, uint64_t address);
} request_subject;

static inline uint64_t requests_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint64_t requests_size(const request_mix *m, uint64_t *state)
{
    uint64_t x = requests_random(state);
    uint64_t training = (x % 40) * 2654435761u;
    switch (m->profile) {
    case REQUESTS_SMALL:
        return 1 + x % 4096;
    case REQUESTS_SPREAD:
        return 1 + (x >> 8) % (UINT64_C(1) << (x % 27));
    case REQUESTS_TRAINING:
        return 1 + (training >> 3) % (UINT64_C(1) << (8 + training % 17));
    case REQUESTS_LARGE:
        return 65536 + x % (200u << 20);
    }
    return 1;
}

// Phases of 500 operations that grow and shrink what lives, and now and then everything is freed at once.
static inline request_answer requests_play(const request_mix *m, const request_subject *s)
{
    uint64_t *live = (uint64_t *)malloc(m->live_max * sizeof *live);
    request_answer a = {UINT64_C(0xcbf29ce484222325), 0, 0};
    uint64_t state = m->seed;
    uint32_t count = 0;
    for (uint32_t k = 0; k < m->operations; k++) {
        uint64_t x = requests_random(&state);
        uint32_t share = k / 500 % 2 == 0 ? 65 : 38;
        if (k % 20000 == 19999) {
            while (count > 0) {
                s->free(s->context, live[--count]);
            }
        } else if (count == 0 || (x % 100 < share && count < m->live_max)) {
            uint64_t bytes = requests_size(m, &state);
            uint64_t address = s->alloc(s->context, bytes, (uint32_t)(x >> 32) % m->streams);
            a.hash = (a.hash ^ (address == 0 ? 0 : address - s->base + 1)) * UINT64_C(0x100000001b3);
            if (address == 0) {
                a.failed++;
            } else {
                a.served++;
                live[count++] = address;
            }
        } else {
            uint32_t at = (uint32_t)((x >> 8) % count);
            s->free(s->context, live[at]);
            live[at] = live[--count];
        }
    }
    while (count > 0) {
        s->free(s->context, live[--count]);
    }
    free(live);
    return a;
}

#endif
