// SPDX-License-Identifier: Apache-2.0
// The words of a PyTorch memory snapshot: keys of its dictionaries and the values they are matched with.
#ifndef FORMATS_TORCH_KEYS_H
#define FORMATS_TORCH_KEYS_H

// X(NAME, "key", kind of its value)
#define TORCH_KEY_MAP(X)                                                                                     \
    X(ACTION, "action", TEXT)                                                                                \
    X(ADDR, "addr", WHOLE)                                                                                   \
    X(DEVICE_FREE, "device_free", WHOLE) /* of an oom, in the place of addr */                               \
    X(SIZE, "size", WHOLE)                                                                                   \
    X(STREAM, "stream", WHOLE)                                                                               \
    X(TIME_US, "time_us", WHOLE)                                                                             \
    X(FRAMES, "frames", LIST)                                                                                \
    X(USER_METADATA, "user_metadata", TEXT)                                                                  \
    X(NAME, "name", TEXT)                                                                                    \
    X(FILENAME, "filename", TEXT)                                                                            \
    X(LINE, "line", WHOLE)                                                                                   \
    X(ADDRESS, "address", WHOLE)                                                                             \
    X(STATE, "state", TEXT)                                                                                  \
    X(REQUESTED_SIZE, "requested_size", WHOLE)                                                               \
    X(HISTORY, "history", LIST)      /* of a block, 2.0 and older: latest first */                           \
    X(REAL_SIZE, "real_size", WHOLE) /* … its requested size */                                            \
    X(DEVICE, "device", WHOLE)                                                                               \
    X(TOTAL_SIZE, "total_size", WHOLE)                                                                       \
    X(SEGMENT_TYPE, "segment_type", TEXT)                                                                    \
    X(IS_EXPANDABLE, "is_expandable", BOOL)                                                                  \
    X(BLOCKS, "blocks", LIST)                                                                                \
    X(SEGMENTS, "segments", LIST)                                                                            \
    X(DEVICE_TRACES, "device_traces", LIST)

// X(NAME, "value of action", trace_kind)
#define TORCH_ACTION_MAP(X)                                                                                  \
    X(ALLOC, "alloc", TRACE_ALLOC)                                                                           \
    X(FREE_REQUESTED, "free_requested", TRACE_RETIRE)                                                        \
    X(FREE_COMPLETED, "free_completed", TRACE_FREE)                                                          \
    X(SEGMENT_ALLOC, "segment_alloc", TRACE_GROW)                                                            \
    X(SEGMENT_MAP, "segment_map", TRACE_GROW)                                                                \
    X(SEGMENT_FREE, "segment_free", TRACE_SHRINK)                                                            \
    X(SEGMENT_UNMAP, "segment_unmap", TRACE_SHRINK)                                                          \
    X(OOM, "oom", TRACE_REFUSED)

// X(NAME, "value of state", torch_state)
#define TORCH_STATE_MAP(X)                                                                                   \
    X(ALLOCATED, "active_allocated", TORCH_LIVE)                                                             \
    X(PENDING_FREE, "active_pending_free", TORCH_PENDING)                                                    \
    X(AWAITING_FREE, "active_awaiting_free", TORCH_PENDING) /* as documented; written as the one above */    \
    X(INACTIVE, "inactive", TORCH_FREE)

// Their numbers among the texts, which begin with these words in this order.
typedef enum torch_word {
#define X(name, ...) TORCH_KEY_##name,
    TORCH_KEY_MAP(X)
#undef X
        TORCH_KEYS,
    TORCH_WORDS_BEFORE_ACTIONS = TORCH_KEYS - 1,
#define X(name, ...) TORCH_ACTION_##name,
    TORCH_ACTION_MAP(X)
#undef X
#define X(name, ...) TORCH_STATE_##name,
        TORCH_STATE_MAP(X)
#undef X
            TORCH_TYPE_SMALL,
    TORCH_WORDS
} torch_word;

#endif
