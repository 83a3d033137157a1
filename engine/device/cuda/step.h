// SPDX-License-Identifier: Apache-2.0
// A program on the card, and a step of it under way.
//
// A step is a list of calls: one instruction in one round with its addresses, or the upload of a round's scalars. An
// eager step enqueues every call as it comes. What a call needs of the host lies in pinned memory at a place of its own for
// every round, so a call can also be enqueued later: that is how a step is captured into a graph, and how a step that
// began as a replay of one goes on when an address differs (capture.c).
//
//   calls   0 …                    first …                last …
//           the batch is there      | what is captured     | a later batch is copied
//
// Batches lie where the pipeline made them, in another buffer in every step, and are copied from there: what copies a
// batch, or moves up those that are held ahead, is enqueued as it comes also then, where a step is one round. The graph is
// launched when the list comes to `last`. Captured steps of several rounds copy batches to a place of their own (`stages`),
// because all of them have to be there when the step is launched.
#ifndef DEVICE_CUDA_STEP_H
#define DEVICE_CUDA_STEP_H

#include "headroom/event.h"

#include "device_impl.h"

enum { CUDA_WAITS_MAX = 192 };
enum { CALL_ADDRESSES = OP_MAX_IN + OP_MAX_OUT + 1, CALL_WORKSPACE = OP_MAX_IN + OP_MAX_OUT };

typedef struct cuda_call {
    uint32_t instr; // HR_NO_ID: the round's scalars
    uint32_t round;
    CUdeviceptr address[CALL_ADDRESSES]; // inputs, outputs from OP_MAX_IN on, workspace
} cuda_call;

typedef struct cuda_prepared {
    const cuda_impl *impl; // NULL: nothing runs
    void *state;
    CUfunction stage[CUDA_STAGES_MAX]; // of impl->stages, or impl->kernel alone
    op_query query;
    uint64_t workspace_bytes;
    uint64_t host_at;     // in a round's pinned memory
    uint32_t scalar_slot; // HR_NO_ID: none
    bool plain;           // it was to have operands in a library's order, and what was made ready has not
    bool as_is;           // of REORDER: its peer is such a one
    const char *name;     // its implementation: of target_impl_name
    char *reason;         // why not what was planned; NULL: it is, or no reason was given
} cuda_prepared;

// Calls of one kernel that are held back, to be one launch (group.c).
typedef struct cuda_group {
    const cuda_impl *impl;
    uint32_t count;
    cuda_run runs[CUDA_GROUP_MAX];
} cuda_group;

// Of an instruction that is timed. What went with others into one launch has its share, by bytes, of its head's time.
typedef struct cuda_timed {
    CUevent begin, end;
    uint32_t head;  // the first of its launch; HR_NO_ID: it has not run
    uint64_t bytes; // of a head: those of all that its launch took
} cuda_timed;

typedef enum step_mode {
    STEP_IDLE,
    STEP_EAGER,
    STEP_DEFERRED, // to be captured at its end
    STEP_REPLAY,   // as captured, so far
} step_mode;

typedef struct cuda_loaded {
    cuda_device *device;
    const program *source; // borrowed until unload
    cuda_prepared *instrs;
    uint8_t *pinned; // [rounds][round_bytes]: scalars first
    uint64_t round_bytes;
    bool brings;  // the step copies a batch
    bool stages;  // it is copied into `pinned` first
    CUevent read; // the batch of the round under way was read
    uint32_t rounds, scalar_count;
    CUevent *events; // by slot of RECORD and WAIT
    uint32_t event_count;
    CUevent fork, join[HR_LANE_COUNT];
    bool uses[HR_LANE_COUNT];
    cuda_timed *times; // [instr_count]; NULL: nothing is timed
    // The step under way, or the last one.
    step_mode mode;
    uint32_t round;
    cuda_call *calls; // [call_room]
    uint32_t call_room, call_count;
    uint32_t first, last; // calls that a graph takes: all of them where no batch is held ahead
    hr_status failed;     // what was put off could not be enqueued
    cuda_group group;
    // What steps have had in common (capture.c).
    uint32_t last_count;    // calls of the last whole step
    bool alike;             // this step's calls are the last one's, so far
    uint32_t steady;        // steps in a row that were alike
    uint32_t capture_after; // of them before a step is captured
    bool never;             // it cannot be captured
    CUgraphExec replay;     // of calls[0 .. last_count)
    uint64_t replays;       // steps that were launched so
    hr_err refused;         // why it cannot be captured; HR_OK: it was not refused
    uint32_t moved; // the first instruction whose addresses differ from the step before; HR_NO_ID: of none
    char waits[CUDA_WAITS_MAX]; // why no step has been captured so far, in words
} cuda_loaded;

// program.c
hr_status cuda_load(void *context, const program *p, void **kernels, hr_err *err);
void cuda_unload(void *context, void *kernels);
void cuda_prepared_of(void *kernels, uint32_t at, device_prepared *out);
// step.c
hr_status cuda_begin_round(void *context, void *kernels, uint32_t round, step_io *io, hr_err *err);
hr_status cuda_run_instr(void *context, void *kernels, uint32_t at, void *const *address, step_io *io,
                         hr_err *err);
hr_status cuda_batch_read(void *context, void *kernels, hr_err *err);
hr_status cuda_end_step(void *context, void *kernels, step_io *io, hr_err *err);
void cuda_abandon_step(void *context, void *kernels);
HR_MUST_CHECK hr_status cuda_enqueue(cuda_loaded *l, const cuda_call *call, step_io *io, hr_err *err);
// times.c: device_ops' `time` and `took`, and the events that they stand on.
hr_status cuda_time(void *context, void *kernels, hr_err *err);
hr_status cuda_took(void *kernels, uint32_t at, uint64_t *ns, hr_err *err);
void cuda_drop_times(cuda_loaded *l);
// Around what `count` instructions enqueue together.
HR_MUST_CHECK hr_status cuda_mark_begin(cuda_loaded *l, const cuda_run *runs, uint32_t count, hr_err *err);
HR_MUST_CHECK hr_status cuda_mark_end(cuda_loaded *l, const cuda_run *runs, hr_err *err);
// What is held back is launched, and the compute lane goes on after the others.
HR_MUST_CHECK hr_status cuda_join(cuda_loaded *l, hr_err *err);
// group.c
HR_MUST_CHECK hr_status cuda_group_add(cuda_group *g, const cuda_impl *impl, const cuda_run *r, hr_err *err);
HR_MUST_CHECK hr_status cuda_group_launch(cuda_group *g, hr_err *err);
// capture.c. All that the step under way holds back is enqueued.
HR_MUST_CHECK hr_status cuda_catch_up(cuda_loaded *l, hr_err *err);
// What was put off is enqueued, and the step goes on eagerly.
HR_MUST_CHECK hr_status cuda_divert(cuda_loaded *l, step_io *io, hr_err *err);
HR_MUST_CHECK hr_status cuda_launch_step(cuda_loaded *l, step_io *io, hr_err *err); // all that was put off
void cuda_forget_graph(cuda_loaded *l);
void cuda_captured(void *kernels, device_capture *out);

// Whose stream it runs on: nothing but the compute lane's order stands between a batch or a result and its readers.
hr_lane cuda_lane_of(const instr *i);
uint8_t *cuda_host_of(const cuda_loaded *l, uint32_t at, uint32_t round);

#endif
