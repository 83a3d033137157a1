// SPDX-License-Identifier: Apache-2.0
// What our caching allocator answers to a stream, over the driver of numbers that PyTorch's own is asked over
// (tests/bench/peers/fake_cuda.c).
#ifndef TESTS_MEMORY_CACHING_PEER_H
#define TESTS_MEMORY_CACHING_PEER_H

#include "headroom/units.h"

#include "caching_streams.h"
#include "formats/torch_oom.h"
#include "insight/caching_config.h"
#include "memory/allocator.h"
#include "memory/heap_snapshot.h"

#define PEER_MAPPING_BYTES (2 * HR_MIB)
#define PEER_TAKEN         (UINT64_C(1) << 40)
#define PEER_RESERVED      (UINT64_C(1) << 44)

// Also outside of Check's tests.
#define PEER_MUST(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

typedef struct caching_answer {
    request_answer requests;
    uint64_t peak_allocated_bytes, peak_reserved_bytes, peak_requested_bytes;
    uint64_t retries, device_allocs;
    uint64_t first_failure_bytes;
    text first_message; // the caller's
} caching_answer;

typedef struct peer_driver {
    number_places memory, reservations;
    uint64_t held_bytes, has_bytes;
} peer_driver;

static inline bool peer_hold(peer_driver *d, uint64_t bytes)
{
    bool has = d->held_bytes + bytes <= d->has_bytes;
    d->held_bytes += has ? bytes : 0;
    return has;
}

static inline uint64_t peer_take(void *context, uint64_t bytes)
{
    peer_driver *d = context;
    return peer_hold(d, bytes) ? numbers_take(&d->memory, bytes) : 0;
}

static inline void peer_give_back(void *context, uint64_t address, uint64_t bytes)
{
    peer_driver *d = context;
    PEER_MUST(numbers_give(&d->memory, address) == bytes);
    d->held_bytes -= bytes;
}

static inline uint64_t peer_reserve(void *context, uint64_t bytes)
{
    return numbers_take(&((peer_driver *)context)->reservations, (bytes + HR_GIB) & ~(HR_GIB - 1));
}

static inline void peer_release(void *context, uint64_t address, uint64_t bytes)
{
    PEER_MUST(numbers_give(&((peer_driver *)context)->reservations, address) ==
              ((bytes + HR_GIB) & ~(HR_GIB - 1)));
}

static inline bool peer_map(void *context, uint64_t address, uint64_t bytes)
{
    PEER_MUST(address >= PEER_RESERVED && address % PEER_MAPPING_BYTES == 0 &&
              bytes % PEER_MAPPING_BYTES == 0);
    return peer_hold(context, bytes);
}

static inline void peer_unmap(void *context, uint64_t address, uint64_t bytes)
{
    (void)address;
    ((peer_driver *)context)->held_bytes -= bytes;
}

typedef struct peer_asked {
    const caching_stream *stream;
    const peer_driver *driver;
    allocator *allocator;
    bool limit_is_fraction;
    caching_answer *answer;
} peer_asked;

static inline void peer_keep_message(peer_asked *a, uint64_t bytes)
{
    const caching_stream *s = a->stream;
    torch_driver d = {.total_bytes = s->mix.limit_bytes,
                      .free_bytes = s->mix.limit_bytes - a->driver->held_bytes,
                      .allowed_bytes = a->limit_is_fraction ? a->allocator->counters.limit_bytes : 0,
                      .refuses_early = strstr(s->conf, "throw_on_cudamalloc_oom:True") != NULL,
                      .expandable_segments = strstr(s->conf, "expandable_segments:True") != NULL};
    heap_snapshot snapshot;
    PEER_MUST(heap_snapshot_of(a->allocator, &snapshot, NULL) == HR_OK);
    torch_oom_write(&snapshot, &d, &a->answer->first_message);
    a->answer->first_failure_bytes = bytes;
    heap_snapshot_deinit(&snapshot);
}

static inline uint64_t peer_ask(void *context, uint64_t bytes, uint32_t stream)
{
    peer_asked *a = context;
    uint64_t address = 0;
    allocator_request request = {.bytes = bytes, .tensor = HR_NO_ID, .stream = stream};
    hr_status status = allocator_serve(a->allocator, &request, &address, NULL);
    PEER_MUST(status == HR_OK || status == HR_OOM);
    if (status == HR_OOM && a->answer->first_message.length == 0) {
        peer_keep_message(a, bytes);
    }
    return address;
}

static inline void peer_give(void *context, uint64_t address)
{
    allocator_free(((peer_asked *)context)->allocator, address);
}

static inline allocator_config peer_config(const caching_stream *s, caching_order order)
{
    allocator_config config = allocator_config_of("caching", 0);
    torch_conf conf = torch_conf_default();
    PEER_MUST(s->conf[0] == '\0' || torch_conf_parse(s->conf, &conf, NULL) == HR_OK);
    const double fraction = conf.fraction < 1 ? conf.fraction : s->fraction;
    config.limit_bytes = (uint64_t)(fraction * (double)s->mix.limit_bytes);
    config.device_bytes = s->mix.limit_bytes;
    config.limit_is_fraction = fraction < 1;
    config.caching = caching_options_of(&conf);
    config.caching.order = order;
    return config;
}

static inline void peer_keep_counts(void *context, const char *name, uint64_t value)
{
    caching_answer *a = context;
    a->retries = strcmp(name, "num_alloc_retries") == 0 ? value : a->retries;
    a->device_allocs = strcmp(name, "num_device_alloc") == 0 ? value : a->device_allocs;
}

// `begin` (NULL: nothing) may look at the allocator before the first request. The heap is sound in the end.
static inline caching_answer caching_peer_answer(const caching_stream *s, caching_order order,
                                                 void (*begin)(allocator *a))
{
    caching_answer answer = {0};
    peer_driver d = {.memory = numbers_from(PEER_TAKEN, s->policy),
                     .reservations = numbers_from(PEER_RESERVED, s->policy),
                     .has_bytes = s->mix.limit_bytes};
    backing source = {.context = &d,
                      .granularity_bytes = 512,
                      .alignment_bytes = 512,
                      .mapping_bytes = PEER_MAPPING_BYTES,
                      .take = peer_take,
                      .give_back = peer_give_back,
                      .reserve = peer_reserve,
                      .release = peer_release,
                      .map = peer_map,
                      .unmap = peer_unmap};
    allocator_config config = peer_config(s, order);
    allocator *a = NULL;
    PEER_MUST(allocator_create(&config, &source, NULL, &a, NULL) == HR_OK);
    peer_asked about = {s, &d, a, config.limit_is_fraction, &answer};
    if (begin != NULL) {
        begin(a);
    }
    request_subject subject = {&about, config.caching.expandable_segments ? PEER_RESERVED : PEER_TAKEN,
                               peer_ask, peer_give};
    answer.requests = requests_play(&s->mix, &subject);
    const heap_counters counters = allocator_get_stats(a);
    answer.peak_allocated_bytes = counters.peak_in_use_bytes;
    answer.peak_reserved_bytes = counters.peak_pool_bytes;
    answer.peak_requested_bytes = counters.peak_requested_bytes;
    a->ops->statistics(a, peer_keep_counts, &answer);
    PEER_MUST(allocator_check(a, NULL) == HR_OK);
    allocator_destroy(a);
    numbers_deinit(&d.memory);
    numbers_deinit(&d.reservations);
    return answer;
}

#endif
