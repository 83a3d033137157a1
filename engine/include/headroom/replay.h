// SPDX-License-Identifier: Apache-2.0
// Replays: a trace that somebody recorded, played again on any allocator, over pure numbers.
//
//   file ─ hr_replay_open ─▶ hr_replay ─ hr_replay_run(knobs) ─▶ counters, failures, the heap where it first failed
//
// One hr_replay may be run any number of times, by one thread at a time. Runs are deterministic.
#ifndef HEADROOM_REPLAY_H
#define HEADROOM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/report.h"
#include "headroom/scenario.h"
#include "headroom/status.h"

// ---- the trace ------------------------------------------------------------------------------------------------

typedef struct hr_replay hr_replay;

typedef struct hr_replay_about {
    const char *format;      // "pytorch_snapshot"
    const char *format_line; // what that is, for people
    uint64_t rows;           // of the file
    uint64_t allocations, steps;
    uint64_t events;     // that are played: allocations, frees, steps
    uint64_t blocks;     // most that ever live at once
    uint64_t lost_frees; // frees of what nobody allocated: left out
    uint64_t refused;    // requests that failed when it was recorded
    uint32_t device_count;
    uint32_t device; // results are about it: the one that was refused where the file shows its heap
                     // then, else the one that holds most at once
    uint64_t peak_requested_bytes; // of that device: no allocator can do with less
    struct {                       // what the file says happened on that device; HR_NONE, NaN: nothing
        uint64_t peak_pool_bytes, peak_in_use_bytes, limit_bytes, in_use_bytes, largest_free_bytes;
        double fragmentation;
    } recorded;
    const hr_scenario *scenario; // NULL: it was a file
    uint64_t damaged_regions;    // of the recorded heap: the file was cut
    bool is_heap;                // the file shows one heap, not how it came about: a replay packs it anew
} hr_replay_about;

// `name` is a scenario's (headroom/scenario.h), or a file's. READ error with the kinds of file there are when it is none
// of them.
HR_MUST_CHECK hr_status hr_replay_open(const char *name, hr_replay **out, hr_err *err);
void hr_replay_close(hr_replay *replay); // NULL is fine
// Whether there is such a file and it begins as one of the traces that can be read; a log of TensorFlow's is any text, and
// recognised where it is called NAME.log.
bool hr_replay_recognises(const char *path);
const hr_replay_about *hr_replay_get_about(const hr_replay *replay);

// ---- a heap ---------------------------------------------------------------------------------------------------

// Every chunk of an allocator at one instant.
typedef struct hr_heap hr_heap;

typedef struct hr_heap_cell {
    double used, requested; // shares of the bytes that the cell stands for; requested ≤ used ≤ 1
} hr_heap_cell;

// A block at the side of a hole.
typedef struct hr_heap_pin {
    const char *name; // borrowed from the heap; "": it has none; NULL: the region ends there
    uint64_t bytes;
    uint64_t joined_bytes; // the hole that would be there without it
    uint64_t age;          // requests served since it was; HR_NONE: not known
} hr_heap_pin;

typedef struct hr_heap_hole {
    uint64_t address, bytes;
    hr_heap_pin before, after;
} hr_heap_hole;

void hr_heap_destroy(hr_heap *heap); // NULL is fine
uint64_t hr_heap_pool_bytes(const hr_heap *heap);
size_t hr_heap_chunk_count(const hr_heap *heap);
// The pool as a line of cells, by address.
void hr_heap_map(const hr_heap *heap, hr_heap_cell *cells, size_t count);
// The largest runs of free chunks, largest first, at most `max`. *count is how many. NOMEM.
HR_MUST_CHECK hr_status hr_heap_holes(const hr_heap *heap, hr_heap_hole *holes, size_t max, size_t *count,
                                      hr_err *err);
// Why the request that it refused found no room: the cause, and a sentence with the numbers. Names in it are as a file
// has them. HR_OOM_NONE and "" when nothing was refused.
hr_oom_cause hr_heap_diagnose(const hr_heap *heap, char *sentence, size_t size);

// The heap as a framework writes it down: "tensorflow", "pytorch". NULL behind the last.
const char *hr_heap_style(size_t index);
// USAGE error with the styles there are; NOMEM.
HR_MUST_CHECK hr_status hr_heap_write(const hr_heap *heap, const char *style, FILE *out, hr_err *err);

// The heap that the file shows of about.device, as it was at the end of the trace; NULL: it shows none. Borrowed.
const hr_heap *hr_replay_recorded_heap(const hr_replay *replay);
// The request that it could not serve; 0: there was none.
uint64_t hr_heap_refused_bytes(const hr_heap *heap);

// ---- a run ----------------------------------------------------------------------------------------------------

typedef struct hr_replay_options {
    // Asked now and then; true ends the run with INTERRUPTED. NULL: never.
    bool (*stop)(void *context);
    void *stop_context;
    bool wants_peak_heap;
    bool
        only_whether; // all is served: a run ends at the first failure, and its figures are of what was played
    // What the replay does, written to a file: "out.csv", "NAME:FILE" (headroom/trace.h). NULL: nowhere.
    const char *trace_file;
} hr_replay_options;

// Of one device. Peaks are the first attainment of the largest in_use; requested, waste, largest_free and
// fragmentation are those of that instant.
typedef struct hr_replay_memory {
    uint64_t limit_bytes; // HR_NONE: as much as needed
    uint64_t peak_pool_bytes, peak_in_use_bytes, peak_requested_bytes, waste_bytes, largest_free_bytes;
    double fragmentation;
    uint64_t end_pool_bytes; // when the trace is over
    uint64_t peak_event;  // row of the trace; HR_NONE: nothing was served, or it stood before the trace began
    uint64_t allocations; // served
    uint64_t failures;
} hr_replay_memory;

typedef struct hr_replay_failure {
    uint64_t event; // row of the trace, from 0; HR_NONE: before the first one (a plan that does not fit)
    uint64_t step;  // steps that had ended
    uint32_t device;
    uint64_t requested_bytes;
    uint64_t free_bytes;         // limit − in_use
    uint64_t largest_free_bytes; // in one piece, in the pool
    uint64_t in_use_bytes, pool_bytes, limit_bytes;
    char name[HR_NAME_MAX]; // of the block; "" when it has none
} hr_replay_failure;

enum { HR_REPLAY_FAILURES_MAX = 16, HR_REPLAY_STATISTICS_MAX = 160 };

typedef struct hr_replay_result {
    char name[16];           // allocator.kind
    hr_replay_memory memory; // of about.device
    hr_replay_memory *devices;
    uint32_t device_count;
    hr_replay_failure failures[HR_REPLAY_FAILURES_MAX]; // the first ones, of all devices
    uint32_t failure_count;
    uint64_t failures_total;
    uint64_t served; // requests that failed when it was recorded and were served here
    struct {
        char name[48]; // as the framework calls it
        uint64_t value;
    } statistics[HR_REPLAY_STATISTICS_MAX];
    uint32_t statistic_count;
    hr_heap *failure_heap; // at the first failure; NULL: there was none
    hr_heap *peak_heap;    // when it was wanted
} hr_replay_result;

// The knobs a replay begins with: defaults, and what a replay is not about out of the way.
void hr_replay_knobs_init(hr_knobs *knobs);
// Those of a trace: the allocator whose memory it was (of PyTorch's snapshots `caching`; others do not say, and theirs is the
// table's), and the limit that it brings itself, or the card without an end.
void hr_replay_knobs_of(const hr_replay *replay, hr_knobs *knobs);
// USAGE error where nothing of it asks for memory: then there is nothing to plan.
HR_MUST_CHECK hr_status hr_replay_check_requests(const hr_replay *replay, const char *name, hr_err *err);
// A trace's name, path and such knobs in a preset's place; any other word as hr_preset_open has it. Errors of
// hr_replay_open and hr_replay_check_requests too.
HR_MUST_CHECK hr_status hr_replay_open_preset(const char *word, bool trust, hr_preset **out, char **problems,
                                              hr_err *err);
// Whether a replay listens to the knob at all: allocator.*, and of device.* what makes the limit.
bool hr_replay_knob_applies(hr_knob_id id);
// KNOB error, where a recorded step has no such knob, whose requests are what they were, or a replay no such value.
HR_MUST_CHECK hr_status hr_replay_check_turn(hr_knob_id id, const char *value, hr_err *err);
// Whether an allocator of this kind does.
bool hr_replay_knob_concerns(hr_knob_id id, const char *allocator_kind);
// Whether there is a replay on allocators of this kind: on all but the driver's own pool.
bool hr_replay_plays(const char *allocator_kind);

// Plays the whole trace on the allocator of the knobs. A request that fails is noted, the replay goes on, and the free
// of what was never served is ignored. A request that failed in the recording is asked for again and given back at
// once. Streams matter where the allocator knows any; a block that waits for a stream is in use until that got there.
// The limit is hr_device_limit_bytes; without device.vram and device.card that of the scenario, or the one that a recorded
// heap ran into. Other traces then have none: the pool becomes as large as needed (bfc without growth: about the
// smallest single region that serves everything).
// KNOB, CONSTRAINT, PRESET (card), NOMEM, INTERRUPTED errors; out of memory is a result. *out is empty on failure.
HR_MUST_CHECK hr_status hr_replay_run(hr_replay *replay, const hr_knobs *knobs,
                                      const hr_replay_options *options, hr_replay_result *out, hr_err *err);
void hr_replay_result_deinit(hr_replay_result *result);

// ---- why -------------------------------------------------------------------------------------------------------

// What a replay says under these knobs, as the report of a plan: with the verdict and its fixes, each proved by a replay, where it
// does not fit. The caller deinits *out. Errors of hr_replay_run.
HR_MUST_CHECK hr_status hr_replay_report(hr_replay *replay, const hr_knobs *knobs, const char *name,
                                         hr_report *out, hr_err *err);
// Why it ran out, with what shows it and what would serve it, as the report of a plan: where the file shows the heap that
// refused, what happened then, and fixes only where a replay is refused too; else what a replay under these knobs says. Nothing refused: HR_OOM_NONE, HR_OOM_RETRIES, or HR_OOM_NEAR_FULL, where what stays of
// each step will fill it.
// The caller deinits *out. Errors of hr_replay_run.
HR_MUST_CHECK hr_status hr_replay_explain(hr_replay *replay, const hr_knobs *knobs, const char *name,
                                          hr_report *out, hr_err *err);
// The knobs under which it is explained: `set`, with the limit that the recorded refusal ran into where no device.vram is
// set. KNOB errors.
HR_MUST_CHECK hr_status hr_replay_knobs_at_refusal(const hr_replay *replay, const hr_knobs *set,
                                                   hr_knobs *knobs, hr_err *err);

// ---- what would serve it --------------------------------------------------------------------------------------

// A change of one knob with which a replay serves the whole trace on every device.
typedef struct hr_replay_fix {
    char pair[HR_KNOB_TEXT_MAX]; // "allocator.kind=async"
    hr_replay_memory memory;
} hr_replay_fix;

// Settings that a training can be started with, of this allocator or another one, which serve it: at most `max`. What a
// rule about knobs refuses beside the others is none. Errors of hr_replay_run.
HR_MUST_CHECK hr_status hr_replay_remedies(hr_replay *replay, const hr_knobs *knobs,
                                           const hr_replay_options *options, hr_replay_fix *fixes,
                                           uint32_t max, uint32_t *count, hr_err *err);
// The smallest card there is that serves it, device.vram apart.
HR_MUST_CHECK hr_status hr_replay_smallest_card(hr_replay *replay, const hr_knobs *knobs,
                                                const hr_replay_options *options, hr_replay_fix *fix,
                                                bool *serves, hr_err *err);

#endif
