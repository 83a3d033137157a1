// SPDX-License-Identifier: Apache-2.0
// Writes logs as TensorFlow's allocator did in its versions, from a heap that is drawn: an oracle of the reader, written
// from reference/allocators.md 1.12, not from the reader.
#ifndef TESTS_UNIT_TENSORFLOW_LOG_SAMPLE_H
#define TESTS_UNIT_TENSORFLOW_LOG_SAMPLE_H

#include <inttypes.h>

#include "base/text.h"
#include "events/heap.h"
#include "unit/trace_checks.h"

typedef enum log_age { LOG_2016, LOG_2018, LOG_2020, LOG_2023, LOG_2026, LOG_AGES } log_age;
typedef enum log_prefix { PREFIX_NONE, PREFIX_OLD, PREFIX_TIME, PREFIX_ABSL, LOG_PREFIXES } log_prefix;

typedef struct log_style {
    log_age age;
    log_prefix prefix;
    const char *line_end;
    bool debug;    // "by op X action_count N step N"
    bool coloured; // the state of every chunk
    bool chatty;   // other lines in between
    bool twice;    // every line stands twice
} log_style;

enum { SAMPLE_REGIONS_MAX = 4, SAMPLE_CHUNKS_MAX = 40 };

#define SAMPLE_REQUEST UINT64_C(2148444000) // 513 x 1047 x 1000 floats

// TensorFlow's numbers for people.
static inline const char *sample_human(uint64_t bytes, char out[32])
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        snprintf(out, 32, "%" PRIu64 "B", bytes);
        return out;
    }
    size_t unit = 0;
    while (bytes >= UINT64_C(1024) * 1024) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, unit == 0 ? "%.1f%ciB" : "%.2f%ciB", (double)bytes / 1024, units[unit]);
    return out;
}

typedef struct sample_log {
    text out;
    log_style style;
    uint64_t state; // of what is drawn
    text line;
} sample_log;

static inline void sample_line(sample_log *s, const char *level, const char *message)
{
    static const char *const chatter[] = {"Epoch 3/10",
                                          "",
                                          "  warnings.warn('InUse')",
                                          "loss: 0.1 at step 3 of size 5",
                                          "Chunk at the end",
                                          "Free at last",
                                          "Traceback (most recent call last):"};
    if (s->style.chatty && below(&s->state, 3) == 0) {
        text_append(&s->out, "%s%s", chatter[below(&s->state, 7)], s->style.line_end);
    }
    for (int again = s->style.twice; again >= 0; again--) {
        if (s->style.prefix == PREFIX_OLD) {
            text_append(&s->out, "%s tensorflow/core/common_runtime/bfc_allocator.cc:670] ", level);
        } else if (s->style.prefix == PREFIX_TIME) {
            text_append(&s->out,
                        "2021-03-15 17:16:57.%06u: %s tensorflow/core/common_runtime/bfc_allocator.cc:1031] ",
                        (unsigned)below(&s->state, 1000000), level);
        } else if (s->style.prefix == PREFIX_ABSL) {
            text_append(&s->out, "%s0000 00:00:1712345678.901234    4242 bfc_allocator.cc:1066] ", level);
        }
        text_append(&s->out, "%s%s", message, s->style.line_end);
    }
}

#define SAMPLE_LINE(s, level, ...)                                                                           \
    do {                                                                                                     \
        (s)->line.length = 0;                                                                                \
        text_append(&(s)->line, __VA_ARGS__);                                                                \
        sample_line((s), (level), (s)->line.data);                                                           \
    } while (0)

static inline void sample_request(sample_log *s, const heap_snapshot *p)
{
    char human[32];
    const heap_refusal *r = &p->refusal;
    const char *op = intern_text(&p->names, r->tensor);
    sample_human(r->requested_bytes, human);
    const char *end = s->style.line_end;
    if (s->style.age == LOG_2018) {
        SAMPLE_LINE(
            s, "W",
            "Allocator (%s) ran out of memory trying to allocate %s.  Current allocation summary follows.",
            p->source, human);
    } else if (s->style.age == LOG_2020) {
        SAMPLE_LINE(s, "W",
                    "Allocator (%s) ran out of memory trying to allocate %s (rounded to %" PRIu64
                    ").  Current allocation summary follows.",
                    p->source, human, r->rounded_bytes);
    } else if (s->style.age == LOG_2023) {
        SAMPLE_LINE(
            s, "W",
            "Allocator (%s) ran out of memory trying to allocate %s (rounded to %" PRIu64
            ")requested by op %s%sIf the cause is memory fragmentation maybe the environment variable "
            "'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. %sCurrent allocation "
            "summary follows.%sCurrent allocation summary follows.",
            p->source, human, r->rounded_bytes, op, end, end, end);
    } else if (s->style.age == LOG_2026) {
        SAMPLE_LINE(s, "W",
                    "Allocator (%s) ran out of memory trying to allocate %s (rounded to %" PRIu64
                    ") from the lower end requested by op %s%sIf this is caused by memory fragmentation, the "
                    "environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation.%s"
                    "Current allocation summary follows.",
                    p->source, human, r->rounded_bytes, op, end, end);
    }
}

static inline void sample_bins(sample_log *s, const heap_snapshot *p)
{
    char human[32];
    if (s->style.age >= LOG_2020) {
        SAMPLE_LINE(s, "I", "BFCAllocator dump for %s", p->source);
    }
    for (unsigned bin = 0; bin < 21; bin++) {
        SAMPLE_LINE(s, "I",
                    "Bin (%" PRIu64
                    "): \tTotal Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use "
                    "in bin. 0B client-requested in use in bin.",
                    UINT64_C(256) << bin);
    }
    SAMPLE_LINE(s, "I",
                "Bin for %s was 256.00MiB, Chunk State: ", sample_human(p->refusal.rounded_bytes, human));
    SAMPLE_LINE(
        s, "I",
        "  Size: 1.0KiB | Requested Size: 512B | in_use: 0 | bin_num: 2, prev:   Size: 256B | Requested "
        "Size: 256B | in_use: 1 | bin_num: -1");
}

static inline const heap_chunk *sample_next(const heap_snapshot *p, uint32_t k)
{
    const heap_chunk *c = &p->chunks.data[k];
    return k + 1 < p->chunks.count && c[1].region_address == c->region_address ? c + 1 : NULL;
}

static inline void sample_chunk(sample_log *s, const heap_snapshot *p, uint32_t k)
{
    const heap_chunk *c = &p->chunks.data[k], *next = sample_next(p, k);
    const uint64_t handle = next == NULL ? UINT64_MAX : next->handle;
    const char *name = intern_text(&p->names, c->tensor);
    text end = {0};
    if (s->style.debug && s->style.age >= LOG_2020) {
        text_append(&end, " by op %s action_count %" PRIu64 " step 7", name == NULL ? "old" : name, c->since);
    }
    if (s->style.age == LOG_2026) {
        text_append(&end, " tag lower");
        if (!s->style.debug && name != NULL) {
            text_append(&end, " [allocation_annotation %s]", name);
        }
    }
    if (s->style.age >= LOG_2023) {
        text_append(&end, " next %" PRIu64, handle);
        if (c->freed_at != 0) {
            text_append(&end, " freed_at_count %" PRIu64, c->freed_at);
        }
    }
    const char *state = c->in_use ? s->style.age <= LOG_2018 ? "Chunk" : "InUse" : "Free ";
    const char *on = s->style.coloured ? "\x1b[1;31m" : "", *off = s->style.coloured ? "\x1b[0m" : "";
    if (s->style.age == LOG_2020) {
        SAMPLE_LINE(s, "I", "%s%s%s at %" PRIX64 " next %" PRIu64 " of size %" PRIu64 "%s", on, state, off,
                    c->address, handle, c->size_bytes, end.length == 0 ? "" : end.data);
    } else {
        SAMPLE_LINE(s, "I", "%s%s%s at %s%" PRIx64 " of size %" PRIu64 "%s", on, state, off,
                    s->style.age <= LOG_2018 ? "0x" : "", c->address, c->size_bytes,
                    end.length == 0 ? "" : end.data);
    }
    text_deinit(&end);
}

// Before 2018 first what was in use, then what was free, and no regions.
static inline void sample_chunks(sample_log *s, const heap_snapshot *p)
{
    if (s->style.age == LOG_2016) {
        for (int in_use = 1; in_use >= 0; in_use--) {
            for (uint32_t k = 0; k < p->chunks.count; k++) {
                if (p->chunks.data[k].in_use == in_use) {
                    sample_chunk(s, p, k);
                }
            }
        }
        return;
    }
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        if (s->style.age >= LOG_2020 && (k == 0 || c->region_address != c[-1].region_address)) {
            SAMPLE_LINE(s, "I", "Next region of size %" PRIu64, c->region_bytes);
        }
        sample_chunk(s, p, k);
    }
}

static inline void sample_stat(text *to, const char *name, uint64_t value, bool human, const char *end)
{
    char word[32];
    if (human) {
        text_append(to, "%s%20s%s", name, sample_human(value, word), end);
    } else {
        text_append(to, "%s%20" PRIu64 "%s", name, value, end);
    }
}

static inline void sample_stats(sample_log *s, const heap_snapshot *p)
{
    const heap_counters *c = &p->counters;
    const bool human = s->style.age == LOG_2026;
    const char *end = s->style.line_end;
    text block = {0};
    SAMPLE_LINE(s, "I", "     Summary of in-use Chunks by size: ");
    SAMPLE_LINE(s, "I", "3 Chunks of size 256 totalling 768B");
    SAMPLE_LINE(s, "I", "Sum Total of in-use chunks: 768B");
    if (s->style.age == LOG_2020 || s->style.age == LOG_2023) {
        SAMPLE_LINE(s, "I",
                    "total_region_allocated_bytes_: %" PRIu64 " memory_limit_: %" PRIu64
                    " available bytes: 0 curr_region_allocation_bytes_: %" PRIu64,
                    c->pool_bytes, c->limit_bytes, p->next_region_bytes);
    } else if (human) {
        char word[32];
        SAMPLE_LINE(s, "I",
                    "Allocator region growth hint: next region allocation target %s (growth enabled).",
                    sample_human(p->next_region_bytes, word));
    }
    text_append(&block, "Stats: %s", end);
    sample_stat(&block, "Limit:            ", c->limit_bytes, human, end);
    sample_stat(&block, "InUse:            ", c->in_use_bytes, human, end);
    sample_stat(&block, "MaxInUse:         ", c->peak_in_use_bytes, human, end);
    sample_stat(&block, "NumAllocs:        ", c->allocations, false, end);
    sample_stat(&block, "MaxAllocSize:     ", c->largest_allocation_bytes, human, "");
    SAMPLE_LINE(s, "I", "%s", block.data);
    SAMPLE_LINE(s, "W", "****___***xxxx___");
    text_deinit(&block);
}

static inline void sample_dump(sample_log *s, const heap_snapshot *p)
{
    char human[32];
    sample_request(s, p);
    sample_bins(s, p);
    sample_chunks(s, p);
    sample_stats(s, p);
    if (s->style.age == LOG_2016) {
        SAMPLE_LINE(s, "W", "Ran out of memory trying to allocate %s.  See logs for memory state.",
                    sample_human(p->refusal.requested_bytes, human));
    }
}

// ---- a heap ---------------------------------------------------------------------------------------------------

static inline uint64_t sample_size(uint64_t *state)
{
    return 256 * (1 + below(state, UINT64_C(1) << below(state, 18)));
}

static inline void sample_region(heap_snapshot *p, uint64_t *state, uint64_t address, uint32_t *handle)
{
    static const char *const ops[] = {"Fill", "model/conv1/Conv2D", "gradients/AddN"};
    const uint32_t first = p->chunks.count, count = 1 + (uint32_t)below(state, SAMPLE_CHUNKS_MAX);
    uint64_t end = address;
    for (uint32_t k = 0; k < count; k++) {
        const bool was_free = k > 0 && !p->chunks.data[p->chunks.count - 1].in_use;
        heap_chunk *c = vec_push(&p->chunks);
        const char *op = ops[below(state, 3)];
        MUST(c != NULL);
        *c = (heap_chunk){.address = end, .size_bytes = sample_size(state), .region_address = address};
        c->in_use = was_free || below(state, 3) > 0;
        c->requested_bytes = c->in_use ? c->size_bytes : 0;
        c->handle = k == 0 ? HR_NO_ID : ++*handle;
        c->tensor = c->in_use ? intern_add(&p->names, op, strlen(op)) : HR_NO_ID;
        c->since = draw(state) >> 16;
        end += c->size_bytes;
    }
    for (uint32_t k = first; k < p->chunks.count; k++) {
        p->chunks.data[k].region_bytes = end - address;
    }
}

// With holes between its regions, so that a log without regions shows them too.
static inline heap_snapshot sample_heap(uint64_t seed)
{
    heap_snapshot p = {.source = "GPU_0_bfc"};
    uint64_t address = UINT64_C(0x7bc24cfe0000);
    uint32_t handle = 0;
    const uint64_t regions = 1 + below(&seed, SAMPLE_REGIONS_MAX);
    for (uint64_t k = 0; k < regions; k++) {
        sample_region(&p, &seed, address, &handle);
        const heap_chunk *last = &p.chunks.data[p.chunks.count - 1];
        address = last->address + last->size_bytes + 256 * (1 + below(&seed, 99));
    }
    heap_snapshot_count(&p);
    heap_counters *c = &p.counters;
    c->limit_bytes = c->pool_bytes + UINT64_C(12345) * 256;
    c->peak_in_use_bytes = c->in_use_bytes + 512;
    c->peak_pool_bytes = c->pool_bytes > c->peak_in_use_bytes ? c->pool_bytes : c->peak_in_use_bytes;
    c->allocations = 4242;
    c->largest_allocation_bytes = 1048576;
    p.next_region_bytes = UINT64_C(1) << 31;
    p.refusal = (heap_refusal){.any = true,
                               .requested_bytes = SAMPLE_REQUEST,
                               .rounded_bytes = (SAMPLE_REQUEST + 255) / 256 * 256,
                               .tensor = intern_add(&p.names, "model/dense/MatMul", 18)};
    return p;
}

#endif
