// SPDX-License-Identifier: Apache-2.0
// The streams that bfc and TensorFlow's own allocator are both asked (C and C++).
#ifndef TESTS_MEMORY_BFC_STREAMS_H
#define TESTS_MEMORY_BFC_STREAMS_H

#include <stdbool.h>

#include "requests.h"

typedef struct bfc_stream {
    request_mix mix;
    bool growth, collects, coalesces;
    uint64_t backing_bytes; // the driver refuses beyond
} bfc_stream;

#define STREAM_MIB(n) ((n) * (UINT64_C(1) << 20))
// clang-format off
static const bfc_stream bfc_streams[] = {
    // name, seed, operations, live, streams, profile, limit             growth collects coalesces  driver
    {{"small, one region", 1, 200000, 4000, 1, REQUESTS_SMALL, STREAM_MIB(16)},        false, true, false, STREAM_MIB(16)},
    {{"spread, one region", 2, 200000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)},     false, true, false, STREAM_MIB(1024)},
    {{"training, one region", 3, 200000, 3000, 1, REQUESTS_TRAINING, STREAM_MIB(512)}, false, true, false, STREAM_MIB(512)},
    {{"large, one region", 4, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},        false, true, false, STREAM_MIB(4096)},
    {{"small, growth", 5, 200000, 4000, 1, REQUESTS_SMALL, STREAM_MIB(16)},            true, false, false, STREAM_MIB(16)},
    {{"spread, growth", 6, 100000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)},         true, false, false, STREAM_MIB(1024)},
    {{"spread, growth, collects", 7, 100000, 600, 1, REQUESTS_SPREAD, STREAM_MIB(1024)}, true, true, false, STREAM_MIB(1024)},
    {{"large, growth, collects", 8, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},  true, true, false, STREAM_MIB(4096)},
    {{"large, growth, coalesces", 9, 100000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)}, true, false, true, STREAM_MIB(4096)},
    {{"large, driver short", 10, 3000, 60, 1, REQUESTS_LARGE, STREAM_MIB(4096)},     true, true, false, STREAM_MIB(3111)},
    {{"one region, driver short", 12, 20000, 200, 1, REQUESTS_LARGE, STREAM_MIB(13949)}, false, true, false, STREAM_MIB(13948)},
};
// clang-format on

#endif
