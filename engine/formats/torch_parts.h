// SPDX-License-Identifier: Apache-2.0
// What a PyTorch memory snapshot consists of, gathered while its pickle streams by (formats/pickle.h). Keys and shapes are
// those of torch/csrc/cuda/Module.cpp and torch/csrc/cuda/memory_snapshot.cpp. Of an entry remain 32 bytes, of a block
// 48; stacks of frames shrink to the one frame that names the allocation.
#ifndef FORMATS_TORCH_PARTS_H
#define FORMATS_TORCH_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/input.h"
#include "base/intern.h"
#include "base/vec.h"
#include "formats/trace.h"

#define TORCH_NONE        UINT32_MAX
#define TORCH_BYTES_MAX   (UINT64_C(1) << 50)
#define TORCH_TIME_MAX    (UINT64_C(1) << 53)
#define TORCH_FREE_UNTOLD UINT64_MAX

enum { TORCH_FRAMES_MAX = 1 << 18, TORCH_BLOCKS_MAX = 1 << 24, TORCH_RUNS_MAX = 256, TORCH_RECENT = 16 };

// One entry of a device's trace; as large as an event of ours, into which it turns where it lies.
typedef struct torch_row {
    uint64_t address; // of an oom what the device had free, TORCH_FREE_UNTOLD where that is not there
    uint64_t bytes, time_us;
    uint32_t name; // in trace.names
    uint16_t stream;
    uint8_t device;
    uint8_t kind; // trace_kind; TRACE_KINDS: nothing that a trace of ours has
} torch_row;

_Static_assert(sizeof(torch_row) == sizeof(trace_event), "a gigabyte of snapshot holds some three million");

// A device's trace: neighbours among the rows.
typedef struct torch_run {
    uint32_t first, count;
    uint32_t device;
    uint32_t next;  // device's run; TORCH_NONE: none
    uint32_t last;  // of the first: the last one
    uint32_t items; // of the first: lists seen in device_traces so far, empty ones too
} torch_run;

typedef enum torch_state { TORCH_FREE, TORCH_LIVE, TORCH_PENDING } torch_state;

typedef struct torch_block {
    uint64_t address; // 0: the file does not say (2.0 and older)
    uint64_t bytes, requested_bytes;
    uint32_t frame, next; // TORCH_NONE: none
    uint32_t last;        // of the first block of a list: its last one
    uint8_t state;        // torch_state
} torch_block;

typedef struct torch_segment {
    uint64_t address, bytes;
    uint32_t first_block;
    uint16_t stream;
    uint8_t device, kind; // heap_region_kind
} torch_segment;

// Texts by their numbers in `texts`.
typedef struct torch_frame {
    uint32_t name, file;
    uint32_t in_trace; // the number of its line in trace.names; INTERN_NONE: not there yet
    uint32_t line;
    uint8_t rank; // how little it says: 0 the user's Python, 1 PyTorch's Python, 2 anything else
} torch_frame;

// Starts zeroed.
typedef struct torch_parts {
    trace *t;         // names go there
    const char *file; // in errors; borrowed
    intern texts;
    intern streams; // numbered as they come, the default stream 0 first
    struct {
        int64_t stream;
        uint16_t number;
        bool known;
    } recent_streams[TORCH_RECENT];
    VEC(torch_frame) frames;
    intern frame_keys; // equal frames are one
    VEC(torch_block) blocks;
    VEC(torch_segment) segments;
    VEC(torch_row) rows;
    VEC(torch_run) runs;
    uint32_t first_run; // of device_traces, in the order of devices; TORCH_NONE: there is none
    bool has_segments;
} torch_parts;

// READ with the byte where something is not as it should be, NOMEM. The caller deinits in every case.
HR_MUST_CHECK hr_status torch_parts_read(torch_parts *parts, input *in, trace *t, hr_err *err);
void torch_parts_deinit(torch_parts *parts);

// Of the parts (torch_frames.c), for whoever reads them.
// The frame of this name, file (texts) and line; false when host memory is short. *frame is TORCH_NONE beyond the bound.
bool torch_frame_add(torch_parts *parts, uint32_t name, uint32_t file, int64_t line, uint32_t *frame);
// The number in trace.names of what a frame says: "resnet.py:92 forward"; INTERN_NONE when host memory is short.
uint32_t torch_frame_name(torch_parts *parts, uint32_t frame);
// The same for a text of the file, without control characters.
uint32_t torch_text_name(torch_parts *parts, const char *text);
// READ beyond 65535 streams, NOMEM.
HR_MUST_CHECK hr_status torch_stream_number(torch_parts *parts, int64_t stream, uint16_t *number,
                                            hr_err *err);

// The number in trace.names of what a block is for; HR_NO_ID when it does not say.
HR_MUST_CHECK hr_status torch_block_name(torch_parts *parts, const torch_block *b, uint32_t *name,
                                         hr_err *err);
// Fills trace.heaps and sorts the segments by device and address. READ where blocks do not tile their segment or
// segments overlap.
HR_MUST_CHECK hr_status torch_draw_heaps(torch_parts *parts, hr_err *err);

// An allocation that stood before the first event.
typedef struct torch_earlier {
    uint64_t address, bytes;
    uint32_t name;
    uint16_t stream;
    uint8_t device;
} torch_earlier;

typedef struct torch_past {
    VEC(torch_earlier) blocks; // by device and address
    uint64_t reused;           // allocations at a living address: two events each
} torch_past;

// After the heaps were drawn. The caller deinits past->blocks in every case.
HR_MUST_CHECK hr_status torch_find_past(torch_parts *parts, torch_past *past, hr_err *err);

#endif
