// SPDX-License-Identifier: Apache-2.0
// PyTorch's allocator configuration, PYTORCH_ALLOC_CONF: "key:value,key:[a:b,c:d]", blanks left out, booleans exactly
// True and False (c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp, as of 2026).
#ifndef KNOBS_TORCH_CONF_H
#define KNOBS_TORCH_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

// X(NAME, "option", changes): changes 0: what it asks for is validated and has no effect on which memory is taken.
#define TORCH_OPTION_MAP(X)                                                                                  \
    X(BACKEND, "backend", 1)                                                                                 \
    X(EXPANDABLE_SEGMENTS, "expandable_segments", 1)                                                         \
    X(EXPANDABLE_SEGMENTS_RESERVE, "expandable_segments_reserve", 0)                                         \
    X(EXPANDABLE_SEGMENTS_RESERVE_BY_CLASS, "expandable_segments_reserve_by_class", 0)                       \
    X(GARBAGE_COLLECTION_THRESHOLD, "garbage_collection_threshold", 1)                                       \
    X(GRAPH_CAPTURE_RECORD_STREAM_REUSE, "graph_capture_record_stream_reuse", 0)                             \
    X(LARGE_SEGMENT_SIZE, "large_segment_size_mb", 1)                                                        \
    X(MAX_NON_SPLIT_ROUNDING, "max_non_split_rounding_mb", 1)                                                \
    X(MAX_SPLIT_SIZE, "max_split_size_mb", 1)                                                                \
    X(PER_PROCESS_MEMORY_FRACTION, "per_process_memory_fraction", 1)                                         \
    X(PINNED_FREE_CATCH_ALL, "pinned_free_catch_all", 0)                                                     \
    X(PINNED_NUM_REGISTER_THREADS, "pinned_num_register_threads", 0)                                         \
    X(PINNED_RESERVE_SEGMENT_SIZE, "pinned_reserve_segment_size_mb", 0)                                      \
    X(PINNED_USE_BACKGROUND_THREADS, "pinned_use_background_threads", 0)                                     \
    X(PINNED_USE_CUDA_HOST_REGISTER, "pinned_use_cuda_host_register", 0)                                     \
    X(RELEASE_LOCK_ON_CUDAMALLOC, "release_lock_on_cudamalloc", 0)                                           \
    X(ROUNDUP_POWER2_DIVISIONS, "roundup_power2_divisions", 1)                                               \
    X(THROW_ON_CUDAMALLOC_OOM, "throw_on_cudamalloc_oom", 1)

typedef enum torch_option {
#define X(name, text, changes) TORCH_##name,
    TORCH_OPTION_MAP(X)
#undef X
        TORCH_OPTIONS
} torch_option;

enum { TORCH_DIVISIONS = 16 }; // for 1 MiB, 2 MiB, 4 MiB …

typedef struct torch_conf {
    uint32_t said;                         // bit for each option that was given
    uint64_t large_segment_bytes;          // 20 MiB
    uint64_t max_split_bytes;              // UINT64_MAX: no limit
    uint64_t max_non_split_rounding_bytes; // large_segment_bytes
    double gc_threshold;                   // 0: off
    double fraction;                       // 1
    uint32_t divisions[TORCH_DIVISIONS];   // 0 and 1: none
    bool expandable_segments, throws_early;
} torch_conf;

torch_conf torch_conf_default(void);
// KNOB error that says what PyTorch would say, with the option that was meant where one is near. An option that is
// given twice counts as it was given last.
HR_MUST_CHECK hr_status torch_conf_parse(const char *typed, torch_conf *out, hr_err *err);
// The value of roundup_power2_divisions alone: "4", or "[256:1,512:2,>:8]".
HR_MUST_CHECK hr_status torch_conf_parse_divisions(const char *typed, uint32_t divisions[TORCH_DIVISIONS],
                                                   hr_err *err);
const char *torch_option_name(torch_option option);
// Options that were given and are without effect here, one after the other from *next = 0; NULL behind the last.
const char *torch_conf_without_effect(const torch_conf *c, int *next);

static inline bool torch_conf_says(const torch_conf *c, torch_option option)
{
    return (c->said >> option & 1) != 0;
}

#endif
