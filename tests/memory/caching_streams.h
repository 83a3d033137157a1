// SPDX-License-Identifier: Apache-2.0
// The streams that caching and PyTorch's own allocator are both asked (C and C++).
#ifndef TESTS_MEMORY_CACHING_STREAMS_H
#define TESTS_MEMORY_CACHING_STREAMS_H

#include "requests.h"

typedef struct caching_stream {
    request_mix mix;  // its limit is what the driver has
    double fraction;  // of it, that PyTorch may take; 1: all
    const char *conf; // PYTORCH_ALLOC_CONF
} caching_stream;

#define CACHING_MIB(n) ((n) * (UINT64_C(1) << 20))
// clang-format off
static const caching_stream caching_streams[] = {
    // name, seed, operations, live, streams, profile, driver                                    fraction, configuration
    {{"small", 21, 200000, 4000, 1, REQUESTS_SMALL, CACHING_MIB(64)}, 1, ""},
    {{"spread", 22, 100000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, ""},
    {{"training", 23, 200000, 3000, 1, REQUESTS_TRAINING, CACHING_MIB(1024)}, 1, ""},
    {{"large", 24, 50000, 60, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, ""},
    {{"three streams", 25, 100000, 600, 3, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, ""},
    {{"fraction", 26, 50000, 600, 2, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.5, ""},
    {{"max_split", 27, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "max_split_size_mb:64"},
    {{"max_split and rounding", 28, 50000, 200, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "max_split_size_mb:32,max_non_split_rounding_mb:64"},
    {{"collects", 29, 50000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.4, "garbage_collection_threshold:0.6"},
    {{"collects, max_split", 30, 50000, 300, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.75,
     "garbage_collection_threshold:0.5,max_split_size_mb:100"},
    {{"divisions", 31, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "roundup_power2_divisions:4"},
    {{"divisions by size", 32, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1,
     "roundup_power2_divisions:[1:2,4:8,16:4,>:1]"},
    {{"larger segments", 33, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "large_segment_size_mb:64"},
    {{"expandable, small", 34, 100000, 4000, 1, REQUESTS_SMALL, CACHING_MIB(64)}, 1, "expandable_segments:True"},
    {{"expandable, spread", 35, 50000, 600, 1, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "expandable_segments:True"},
    {{"expandable, large", 36, 50000, 60, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "expandable_segments:True"},
    {{"expandable, two streams", 37, 50000, 300, 2, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1, "expandable_segments:True"},
    {{"expandable, fraction", 38, 50000, 300, 1, REQUESTS_SPREAD, CACHING_MIB(4096)}, 0.5, "expandable_segments:True"},
    {{"refuses early", 39, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1, "throw_on_cudamalloc_oom:True"},
    {{"refuses early, expandable", 44, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "throw_on_cudamalloc_oom:True,expandable_segments:True"},
    {{"a fraction refuses late", 45, 50000, 200, 1, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True"},
    {{"expandable, max_split", 40, 50000, 200, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 1,
     "expandable_segments:True,max_split_size_mb:64"},
    {{"expandable, smaller handles", 41, 50000, 600, 2, REQUESTS_SPREAD, CACHING_MIB(2048)}, 1,
     "expandable_segments:True,large_segment_size_mb:12,roundup_power2_divisions:[1:4,8:2,>:8]"},
    {{"expandable, fraction, full", 42, 50000, 60, 2, REQUESTS_LARGE, CACHING_MIB(4096)}, 0.3, "expandable_segments:True"},
    {{"smaller segments, four streams", 43, 50000, 300, 4, REQUESTS_SPREAD, CACHING_MIB(1024)}, 1,
     "large_segment_size_mb:11,max_split_size_mb:11,max_non_split_rounding_mb:30"},
};
// clang-format on

#endif
