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

#define STREAM_MIB * (UINT64_C(1) << 20)
// clang-format off
static const bfc_stream bfc_streams[] = {
    // name, seed, operations, live, streams, profile, limit             growth collects coalesces  driver
    {{"small, one region", 1, 200000, 4000, 1, REQUESTS_SMALL, 16 STREAM_MIB},        false, true, false, 16 STREAM_MIB},
    {{"spread, one region", 2, 200000, 600, 1, REQUESTS_SPREAD, 1024 STREAM_MIB},     false, true, false, 1024 STREAM_MIB},
    {{"training, one region", 3, 200000, 3000, 1, REQUESTS_TRAINING, 512 STREAM_MIB}, false, true, false, 512 STREAM_MIB},
    {{"large, one region", 4, 100000, 60, 1, REQUESTS_LARGE, 4096 STREAM_MIB},        false, true, false, 4096 STREAM_MIB},
    {{"small, growth", 5, 200000, 4000, 1, REQUESTS_SMALL, 16 STREAM_MIB},            true, false, false, 16 STREAM_MIB},
    {{"spread, growth", 6, 100000, 600, 1, REQUESTS_SPREAD, 1024 STREAM_MIB},         true, false, false, 1024 STREAM_MIB},
    {{"spread, growth, collects", 7, 100000, 600, 1, REQUESTS_SPREAD, 1024 STREAM_MIB}, true, true, false, 1024 STREAM_MIB},
    {{"large, growth, collects", 8, 100000, 60, 1, REQUESTS_LARGE, 4096 STREAM_MIB},  true, true, false, 4096 STREAM_MIB},
    {{"large, growth, coalesces", 9, 100000, 60, 1, REQUESTS_LARGE, 4096 STREAM_MIB}, true, false, true, 4096 STREAM_MIB},
    {{"large, driver short", 10, 3000, 60, 1, REQUESTS_LARGE, 4096 STREAM_MIB},     true, true, false, 3111 STREAM_MIB},
    {{"one region, driver short", 12, 20000, 200, 1, REQUESTS_LARGE, 13949 STREAM_MIB}, false, true, false, 13948 STREAM_MIB},
};
// clang-format on

#endif
