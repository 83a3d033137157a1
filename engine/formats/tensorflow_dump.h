// SPDX-License-Identifier: Apache-2.0
// TensorFlow's out-of-memory dump of a heap, line for line (BFCAllocator::DumpMemoryLog and its callers).
//
//    1 what was refused            5 every region, chunk by chunk       9 statistics
//    2 whose heap it is            6 chunks in use, counted by size    10 a map of 100 columns
//    3 the 21 bins                 7 their sum                         11 what the operation says
//    4 the free chunks of the      8 pool and limit
//      bin that should have served
//
// A snapshot knows less than TensorFlow in one place: a free chunk is shown with 0B as its requested size, where
// TensorFlow shows what was last asked of that record.
#ifndef FORMATS_TENSORFLOW_DUMP_H
#define FORMATS_TENSORFLOW_DUMP_H

#include <stdbool.h>

#include "base/text.h"
#include "events/heap.h"

// X(ID, "what it is")
#define TENSORFLOW_VERSION_MAP(X)                                                                            \
    X(2_13, "2.12 to 2.19")                                                                                  \
    X(2_2, "2.0 to 2.2: no heading, `next` before `of size`, five statistics")                               \
    X(2_4, "2.4 to 2.11: total_region_allocated_bytes_")                                                     \
    X(2_21, "2.20 and 2.21: sizes for people in pool and statistics")                                        \
    X(2026, "2026: ends, tags, sizes for people in the statistics")

typedef enum tensorflow_version {
#define X(id, line) TENSORFLOW_##id,
    TENSORFLOW_VERSION_MAP(X)
#undef X
        TENSORFLOW_VERSIONS
} tensorflow_version;

// All texts are borrowed for the call. Zeroed: the version most logs of today are of, with no more than the snapshot
// says.
typedef struct tensorflow_dump_options {
    tensorflow_version version;
    const char *allocator; // "GPU_0_bfc"; NULL: the snapshot's source
    const char *op;        // "requested by op"; NULL: nothing stands there, as for an op without a name
    const char *shape;     // "32,30,30,1" of the tensor that was asked for; NULL: part 11 is left out
    const char *type;      // "float"
    const char
        *kernel; // "cast_op.cc:109", which says so in part 11; NULL: the bare sentence, as Python shows it
    const char *device; // NULL: "/job:localhost/replica:0/task:0/device:GPU:0"
    const char *time;   // "2020-06-23 19:42:42.505584" before every line; NULL: lines have no prefix
    bool growth;        // 2026 says whether the pool grows
    bool timestamped;   // chunks show their freed_at_count
    bool by_op;         // chunks show names and ages, as builds with TENSORFLOW_MEM_DEBUG do
} tensorflow_dump_options;

// `out->failed` is true when host memory was short.
void tensorflow_dump(const heap_snapshot *p, const tensorflow_dump_options *options, text *out);

#endif
