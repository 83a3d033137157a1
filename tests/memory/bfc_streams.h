// SPDX-License-Identifier: Apache-2.0
// The streams that bfc and TensorFlow's own allocator are both asked (C and C++).
#ifndef TESTS_MEMORY_BFC_STREAMS_H
#define TESTS_MEMORY_BFC_STREAMS_H

#include <stdbool.h>

#include "number_driver.h"
#include "requests.h"

typedef struct bfc_stream {
    request_mix mix;
    bool growth, collects, coalesces;
    uint64_t backing_bytes; // the driver refuses beyond
    number_policy policy;   // of the driver
} bfc_stream;

#define STREAM_MIB(n) ((n) * (UINT64_C(1) << 20))
// clang-format off
static const bfc_stream bfc_streams[] = {
    // name, seed, operations, live, streams, profile, limit             growth collects coalesces  driver, how it reuses addresses
    {{"small, one region", 1, 200000, 4000, 1, REQUESTS_SMALL, STREAM_MIB(16)},        false, true, false, STREAM_MIB(16), NUMBERS_NEVER_TWICE},
    {{"spread, one region", 2, 200000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)},     false, true, false, STREAM_MIB(1024), NUMBERS_NEVER_TWICE},
    {{"training, one region", 3, 200000, 3000, 1, REQUESTS_TRAINING, STREAM_MIB(512)}, false, true, false, STREAM_MIB(512), NUMBERS_NEVER_TWICE},
    {{"large, one region", 4, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},        false, true, false, STREAM_MIB(4096), NUMBERS_NEVER_TWICE},
    {{"small, growth", 5, 200000, 4000, 1, REQUESTS_SMALL, STREAM_MIB(16)},            true, false, false, STREAM_MIB(16), NUMBERS_NEVER_TWICE},
    {{"spread, growth", 6, 100000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)},         true, false, false, STREAM_MIB(1024), NUMBERS_NEVER_TWICE},
    {{"spread, growth, collects", 7, 100000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)}, true, true, false, STREAM_MIB(1024), NUMBERS_NEVER_TWICE},
    {{"large, growth, collects", 8, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},  true, true, false, STREAM_MIB(4096), NUMBERS_NEVER_TWICE},
    {{"large, growth, coalesces", 9, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, false, true, STREAM_MIB(4096), NUMBERS_NEVER_TWICE},
    {{"large, driver short", 10, 3000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},     true, true, false, STREAM_MIB(3111), NUMBERS_NEVER_TWICE},
    {{"one region, driver short", 12, 20000, 200, 1, REQUESTS_LARGE, STREAM_MIB(13949)}, false, true, false, STREAM_MIB(13948), NUMBERS_NEVER_TWICE},
    {{"spread, collects: lowest gap", 13, 60000, 400, 1, REQUESTS_SPREAD, STREAM_MIB(700)}, true, true, false, STREAM_MIB(700),
     NUMBERS_LOWEST_GAP},
    {{"spread, collects: last freed", 13, 60000, 400, 1, REQUESTS_SPREAD, STREAM_MIB(700)}, true, true, false, STREAM_MIB(700),
     NUMBERS_LAST_FREED},
    {{"large, collects: lowest gap", 14, 60000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, false, STREAM_MIB(4096),
     NUMBERS_LOWEST_GAP},
    {{"large, collects: last freed", 14, 60000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, false, STREAM_MIB(4096),
     NUMBERS_LAST_FREED},
    {{"large, collects, driver short: lowest gap", 15, 3000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, false, STREAM_MIB(3111),
     NUMBERS_LOWEST_GAP},
    {{"large, collects, driver short: last freed", 15, 3000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, false, STREAM_MIB(3111),
     NUMBERS_LAST_FREED},
    {{"training, collects: lowest gap", 16, 100000, 3000, 1, REQUESTS_TRAINING, STREAM_MIB(400)}, true, true, false, STREAM_MIB(400),
     NUMBERS_LOWEST_GAP},
    {{"training, collects: last freed", 16, 100000, 3000, 1, REQUESTS_TRAINING, STREAM_MIB(400)}, true, true, false, STREAM_MIB(400),
     NUMBERS_LAST_FREED},
    {{"large, collects, coalesces: lowest gap", 17, 40000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, true, STREAM_MIB(4096),
     NUMBERS_LOWEST_GAP},
    {{"large, collects, coalesces: last freed", 17, 40000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, true, true, STREAM_MIB(4096),
     NUMBERS_LAST_FREED},
};
// clang-format on

#endif
