// SPDX-License-Identifier: Apache-2.0
// A trace in memory: requests and releases in order, whoever recorded them, ready to be played again on any
// allocator (insight/replay.h). Readers (formats/formats.h) fill it through the functions below, which turn addresses
// into block numbers, so that a replay looks nothing up.
//
//   rows of a file ─ reader ─▶ events: alloc block 0, alloc block 1, free block 0, alloc block 0, …
//                    └──────▶ heap: what the file shows of the heap itself, if it does
#ifndef FORMATS_TRACE_H
#define FORMATS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/intern.h"
#include "base/vec.h"
#include "events/heap.h"

// X(NAME, "name in traces", what it carries)
#define TRACE_KIND_MAP(X)                                                                                    \
    X(ALLOC, "alloc")     /* bytes, block, name */                                                           \
    X(FREE, "free")       /* block */                                                                        \
    X(RETIRE, "retire")   /* block: freed by the program, a stream has not got there yet; FREE follows */    \
    X(GROW, "grow")       /* bytes from the driver: what really happened, for comparison */                  \
    X(SHRINK, "shrink")   /* bytes back to the driver */                                                     \
    X(REFUSED, "refused") /* bytes, name: ran out of memory when it was recorded */                          \
    X(STEP, "step")       /* a training step ended */

typedef enum trace_kind {
#define X(name, text) TRACE_##name,
    TRACE_KIND_MAP(X)
#undef X
        TRACE_KINDS
} trace_kind;

#define TRACE_BEFORE UINT32_MAX // the row of an allocation that stood before the file began

typedef struct trace_event {
    uint64_t time_ns; // since the first event; 0 where a file has no times
    uint64_t bytes;
    uint32_t block; // 0 …; one number is one living block, and is used again once it is free. HR_NO_ID: none
    uint32_t name;  // in trace.names; HR_NO_ID: none
    uint32_t row;   // of the file, from 0, headings and comments not counted
    uint16_t stream;
    uint8_t device; // 0 …
    uint8_t kind;   // trace_kind
} trace_event;

_Static_assert(sizeof(trace_event) == 32, "ten million events are 320 MB");

enum { TRACE_DEVICES_MAX = 64 };

// Starts zeroed.
typedef struct trace {
    const char *format; // name of the format it came from (formats/formats.h)
    VEC(trace_event) events;
    intern names;
    uint32_t block_count;  // most that ever live at once
    uint32_t device_count; // highest device + 1
    uint64_t rows;         // of the file
    uint64_t lost_frees;   // of blocks that nobody allocated: left out
    uint64_t reused;       // allocations at a living address: the block there was freed first
    uint32_t dumps; // of heaps that the file begins to show, where it may show several: one of them is read
    bool has_times;
    heap_snapshot *heaps[TRACE_DEVICES_MAX]; // at the end of the trace; NULL: the file does not show it
} trace;

void trace_deinit(trace *t);

// What a reader adds to. Between blocks and addresses of each device stands a table that grows with what lives.
typedef struct trace_builder {
    trace *t;
    struct trace_live *live; // open addressing by (device, address)
    uint32_t live_capacity, live_count;
    VEC(uint32_t) spare_blocks;
    uint64_t first_time_ns;
    bool has_first_time;
} trace_builder;

void trace_builder_init(trace_builder *b, trace *t);
void trace_builder_deinit(trace_builder *b);

// One row, as the file has it. `event.block` is filled here from device and address (ALLOC, FREE and RETIRE);
// time_ns is absolute. A free of what is not alive is counted and left out; 0-byte allocations are left out.
// NOMEM when host memory is short, READ beyond 2^32 − 2 events.
HR_MUST_CHECK hr_status trace_add(trace_builder *b, trace_event event, uint64_t address, hr_err *err);
// How many bytes live at the address; 0 when nothing does.
uint64_t trace_live_bytes(const trace_builder *b, uint8_t device, uint64_t address);

// Checks what every reader promises: blocks are allocated before they are freed and once only, names and devices are
// within their tables, times do not run backwards. CHECK error names the first offence.
HR_MUST_CHECK hr_status trace_check(const trace *t, hr_err *err);

#endif
