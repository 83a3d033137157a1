// SPDX-License-Identifier: Apache-2.0
// The streams that caching and PyTorch's own allocator are both asked (C and C++).
#ifndef TESTS_MEMORY_CACHING_STREAMS_H
#define TESTS_MEMORY_CACHING_STREAMS_H

#include <stdbool.h>
#include <stdio.h>

#include "number_driver.h"
#include "requests.h"

typedef struct caching_stream {
    request_mix mix;      // its limit is what the driver has
    double fraction;      // of it, that PyTorch may take; 1: all
    const char *conf;     // PYTORCH_ALLOC_CONF
    number_policy policy; // of the driver
} caching_stream;

#define CACHING_MIB(n) ((n) * (UINT64_C(1) << 20))
// clang-format off
static const caching_stream caching_streams[] = {
    // name, seed, operations, live, streams, profile, driver                                    fraction, configuration, how the driver reuses addresses
    {{"small", 21, 200000, 4000, 1, REQUESTS_SMALL, CACHING_MIB(64)}, 1, "", NUMBERS_NEVER_TWICE},
    {{"spread", 22, 100000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "", NUMBERS_NEVER_TWICE},
    {{"training", 23, 200000, 3000, 1, REQUESTS_TRAINING, CACHING_MIB(1024)}, 1, "", NUMBERS_NEVER_TWICE},
    {{"large", 24, 50000, 60, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "", NUMBERS_NEVER_TWICE},
    {{"three streams", 25, 100000, 600, 3, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "", NUMBERS_NEVER_TWICE},
    {{"fraction", 26, 50000, 600, 2, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.5, "", NUMBERS_NEVER_TWICE},
    {{"max_split", 27, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "max_split_size_mb:64", NUMBERS_NEVER_TWICE},
    {{"max_split and rounding", 28, 50000, 200, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "max_split_size_mb:32,max_non_split_rounding_mb:64", NUMBERS_NEVER_TWICE},
    {{"collects", 29, 50000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.4, "garbage_collection_threshold:0.6", NUMBERS_NEVER_TWICE},
    {{"collects, max_split", 30, 50000, 300, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.75,
     "garbage_collection_threshold:0.5,max_split_size_mb:100", NUMBERS_NEVER_TWICE},
    {{"divisions", 31, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "roundup_power2_divisions:4", NUMBERS_NEVER_TWICE},
    {{"divisions by size", 32, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1,
     "roundup_power2_divisions:[1:2,4:8,16:4,>:1]", NUMBERS_NEVER_TWICE},
    {{"larger segments", 33, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "large_segment_size_mb:64", NUMBERS_NEVER_TWICE},
    {{"expandable, small", 34, 100000, 4000, 1, REQUESTS_SMALL, CACHING_MIB(64)}, 1, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"expandable, spread", 35, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"expandable, large", 36, 50000, 60, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"expandable, two streams", 37, 50000, 300, 2, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"expandable, fraction", 38, 50000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.5, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"refuses early", 39, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "throw_on_cudamalloc_oom:True", NUMBERS_NEVER_TWICE},
    {{"refuses early, expandable", 44, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "throw_on_cudamalloc_oom:True,expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"a fraction refuses late", 45, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True", NUMBERS_NEVER_TWICE},
    {{"expandable, max_split", 40, 50000, 200, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "expandable_segments:True,max_split_size_mb:64", NUMBERS_NEVER_TWICE},
    {{"expandable, smaller handles", 41, 50000, 600, 2, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1,
     "expandable_segments:True,large_segment_size_mb:12,roundup_power2_divisions:[1:4,8:2,>:8]", NUMBERS_NEVER_TWICE},
    {{"expandable, fraction, full", 42, 50000, 60, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.3, "expandable_segments:True", NUMBERS_NEVER_TWICE},
    {{"smaller segments, four streams", 43, 50000, 300, 4, REQUESTS_SPREAD, CACHING_MIB(1024)}, 1,
     "large_segment_size_mb:11,max_split_size_mb:11,max_non_split_rounding_mb:30", NUMBERS_NEVER_TWICE},
    {{"one stream, full: lowest gap", 51, 60000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "",
     NUMBERS_LOWEST_GAP},
    {{"one stream, full: last freed", 51, 60000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "",
     NUMBERS_LAST_FREED},
    {{"full: lowest gap", 52, 60000, 300, 3, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "",
     NUMBERS_LOWEST_GAP},
    {{"full: last freed", 52, 60000, 300, 3, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "",
     NUMBERS_LAST_FREED},
    {{"training, full: lowest gap", 53, 60000, 3000, 2, REQUESTS_TRAINING, CACHING_MIB(300)}, 1, "",
     NUMBERS_LOWEST_GAP},
    {{"training, full: last freed", 53, 60000, 3000, 2, REQUESTS_TRAINING, CACHING_MIB(300)}, 1, "",
     NUMBERS_LAST_FREED},
    {{"large, full: lowest gap", 54, 30000, 60, 1, REQUESTS_LARGE, CACHING_MIB(3000)}, 1, "",
     NUMBERS_LOWEST_GAP},
    {{"large, full: last freed", 54, 30000, 60, 1, REQUESTS_LARGE, CACHING_MIB(3000)}, 1, "",
     NUMBERS_LAST_FREED},
    {{"collects, full: lowest gap", 55, 40000, 300, 2, REQUESTS_SPREAD, CACHING_MIB(1500)}, 0.4, "garbage_collection_threshold:0.6",
     NUMBERS_LOWEST_GAP},
    {{"collects, full: last freed", 55, 40000, 300, 2, REQUESTS_SPREAD, CACHING_MIB(1500)}, 0.4, "garbage_collection_threshold:0.6",
     NUMBERS_LAST_FREED},
    {{"collects much, max_split: lowest gap", 56, 40000, 200, 2, REQUESTS_LARGE, CACHING_MIB(5000)}, 0.75, "garbage_collection_threshold:0.3,max_split_size_mb:60",
     NUMBERS_LOWEST_GAP},
    {{"collects much, max_split: last freed", 56, 40000, 200, 2, REQUESTS_LARGE, CACHING_MIB(5000)}, 0.75, "garbage_collection_threshold:0.3,max_split_size_mb:60",
     NUMBERS_LAST_FREED},
    {{"max_split, rounding, full: lowest gap", 57, 30000, 100, 2, REQUESTS_LARGE, CACHING_MIB(3000)}, 1, "max_split_size_mb:32,max_non_split_rounding_mb:64",
     NUMBERS_LOWEST_GAP},
    {{"max_split, rounding, full: last freed", 57, 30000, 100, 2, REQUESTS_LARGE, CACHING_MIB(3000)}, 1, "max_split_size_mb:32,max_non_split_rounding_mb:64",
     NUMBERS_LAST_FREED},
    {{"divisions, larger segments, full: lowest gap", 58, 40000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(600)}, 1, "roundup_power2_divisions:4,large_segment_size_mb:44",
     NUMBERS_LOWEST_GAP},
    {{"divisions, larger segments, full: last freed", 58, 40000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(600)}, 1, "roundup_power2_divisions:4,large_segment_size_mb:44",
     NUMBERS_LAST_FREED},
    {{"expandable, streams, full: lowest gap", 59, 40000, 300, 4, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "expandable_segments:True",
     NUMBERS_LOWEST_GAP},
    {{"expandable, streams, full: last freed", 59, 40000, 300, 4, REQUESTS_SPREAD, CACHING_MIB(640)}, 1, "expandable_segments:True",
     NUMBERS_LAST_FREED},
    {{"expandable, fraction, reused: lowest gap", 60, 40000, 60, 3, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.6, "expandable_segments:True,roundup_power2_divisions:8",
     NUMBERS_LOWEST_GAP},
    {{"expandable, fraction, reused: last freed", 60, 40000, 60, 3, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.6, "expandable_segments:True,roundup_power2_divisions:8",
     NUMBERS_LAST_FREED},
};
// clang-format on

// ---- random ones ------------------------------------------------------------------------------------------------

enum { CACHING_CONF_MAX = 200 };

typedef struct caching_random {
    caching_stream stream;
    char name[32], conf[CACHING_CONF_MAX];
} caching_random;

static inline uint64_t caching_draw(uint64_t *state, uint64_t below)
{
    return requests_random(state) % below;
}

static inline void caching_add(caching_random *r, const char *text)
{
    strncat(r->conf, text, CACHING_CONF_MAX - 1 - strlen(r->conf));
}

static inline void caching_add_number(caching_random *r, uint64_t n)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    caching_add(r, digits);
}

static inline void caching_add_option(caching_random *r, const char *option)
{
    caching_add(r, r->conf[0] == '\0' ? "" : ",");
    caching_add(r, option);
}

static inline void caching_random_divisions(caching_random *r, uint64_t *state)
{
    bool by_size = caching_draw(state, 2) == 0;
    caching_add_option(r, by_size ? "roundup_power2_divisions:[1:4,8:2,64:" : "roundup_power2_divisions:");
    caching_add_number(r, UINT64_C(1) << caching_draw(state, 5));
    caching_add(r, by_size ? ",>:8]" : "");
}

static inline void caching_random_conf(caching_random *r, uint64_t *state)
{
    uint64_t segment_mib = caching_draw(state, 4) == 0 ? 12 + 2 * caching_draw(state, 30) : 20;
    if (segment_mib != 20) {
        caching_add_option(r, "large_segment_size_mb:");
        caching_add_number(r, segment_mib);
    }
    if (caching_draw(state, 3) == 0) {
        caching_add_option(r, "expandable_segments:True");
    } else if (r->stream.fraction < 1 && caching_draw(state, 3) != 0) {
        caching_add_option(r, "garbage_collection_threshold:0.");
        caching_add_number(r, 2 + caching_draw(state, 8));
    }
    if (caching_draw(state, 3) == 0) {
        caching_add_option(r, "max_split_size_mb:");
        caching_add_number(r, segment_mib + 1 + caching_draw(state, 80));
    }
    if (caching_draw(state, 4) == 0) {
        caching_add_option(r, "max_non_split_rounding_mb:");
        caching_add_number(r, segment_mib + 1 + caching_draw(state, 80));
    }
    if (caching_draw(state, 3) == 0) {
        caching_random_divisions(r, state);
    }
    if (caching_draw(state, 6) == 0) {
        caching_add_option(r, "throw_on_cudamalloc_oom:True");
    }
}

// One of so many configurations, sizes and drivers, most of which run short now and then: the driver has between a
// third and three halves of what lives when the stream is at its fullest.
static inline void caching_random_stream(uint64_t seed, caching_random *r)
{
    static const uint64_t mean_bytes[] = {2048, 2486000, 500000, 105000000};
    static const uint32_t live_max[] = {20000, 500, 2000, 80};
    uint64_t state = seed;
    request_mix *m = &r->stream.mix;
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "random %llu", (unsigned long long)seed);
    m->name = r->name;
    m->seed = requests_random(&state);
    m->profile = (request_profile)caching_draw(&state, 4);
    m->operations = 2000 + (uint32_t)caching_draw(&state, 10000);
    m->live_max = 20 + (uint32_t)caching_draw(&state, live_max[m->profile]);
    m->streams = caching_draw(&state, 2) == 0 ? 1 : 2 + (uint32_t)caching_draw(&state, 4);
    uint64_t alive = m->live_max < 150 ? m->live_max : 150; // a phase of 500 operations adds no more
    m->limit_bytes = alive * mean_bytes[m->profile] / 100 * (33 + caching_draw(&state, 120));
    m->limit_bytes = (m->limit_bytes < CACHING_MIB(8) ? CACHING_MIB(8) : m->limit_bytes) / 512 * 512;
    r->stream.policy = (number_policy)caching_draw(&state, 3);
    r->stream.fraction = caching_draw(&state, 2) == 0 ? 1 : 0.3 + 0.1 * (double)caching_draw(&state, 7);
    r->stream.conf = r->conf;
    caching_random_conf(r, &state);
}

#endif
