// SPDX-License-Identifier: Apache-2.0
// What a run or a plan is judged by, one row each: Runs, its difference and `headroom compare` say the same. Values
// are doubles (bytes are exact up to 2^53); NaN is unknown.
#ifndef TUI_MEASURES_H
#define TUI_MEASURES_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/report.h"

#include "app/tui/base/format.h"

typedef enum measure_kind {
    MEASURE_AS_BYTES,
    MEASURE_AS_FRACTION,
    MEASURE_AS_SECONDS,
    MEASURE_AS_RATE,
    MEASURE_AS_LOSS,
    MEASURE_AS_COUNT
} measure_kind;

// X(ID, "term", kind, "path in headroom.report/1")
#define MEASURE_MAP(X)                                                                                       \
    X(PEAK, "peak_in_use_bytes", BYTES, "memory.peak_in_use_bytes")                                          \
    X(LIMIT, "limit_bytes", BYTES, "memory.limit_bytes")                                                     \
    X(POOL, "peak_pool_bytes", BYTES, "memory.peak_pool_bytes")                                              \
    X(REQUESTED, "peak_requested_bytes", BYTES, "memory.peak_requested_bytes")                               \
    X(WASTE, "waste_bytes", BYTES, "memory.waste_bytes")                                                     \
    X(LARGEST_FREE, "largest_free_bytes", BYTES, "memory.largest_free_bytes")                                \
    X(FRAGMENTATION, "fragmentation", FRACTION, "memory.fragmentation")                                      \
    X(STATIC, "static_bytes", BYTES, "memory.static_bytes")                                                  \
    X(SAVED, "saved_for_backward_bytes", BYTES, "memory.saved_for_backward_bytes")                           \
    X(LIBRARY, "library_saved_bytes", BYTES, "memory.library_saved_bytes")                                   \
    X(HOST, "host_bytes", BYTES, "host.peak_bytes")                                                          \
    X(H2D, "h2d_bytes_per_step", BYTES, "transfer.h2d_bytes_per_step")                                       \
    X(STRIPPED, "stripped_bytes", BYTES, "deploy.stripped_bytes")                                            \
    X(DEPLOYED, "deployed_bytes", BYTES, "deploy.deployed_bytes")                                            \
    X(SECONDS, "step_seconds", SECONDS, "step.seconds")                                                      \
    X(EXAMPLES, "examples_per_second", RATE, "train.examples_per_second")                                    \
    X(LOSS_FIRST, "loss_first", LOSS, "train.loss_first")                                                    \
    X(LOSS_LAST, "loss_last", LOSS, "train.loss_last")                                                       \
    X(ACCURACY, "eval_accuracy", FRACTION, "train.eval_accuracy")                                            \
    X(STEPS, "steps", COUNT, "train.steps")                                                                  \
    X(INSTRUCTIONS, "instructions", COUNT, "step.instructions")                                              \
    X(FLOPS, "flops", COUNT, "step.flops")                                                                   \
    X(PARAMETERS, "parameters", COUNT, "model.parameters")

typedef enum measure_id {
#define X(id, term, kind, path) MEASURE_##id,
    MEASURE_MAP(X)
#undef X
        MEASURE_ALL
} measure_id;

typedef struct measure_row {
    const char *term, *path;
    measure_kind kind;
} measure_row;

typedef struct measures {
    double value[MEASURE_ALL];
} measures;

const measure_row *measure_row_of(measure_id id);
measures measures_unknown(void);
// Where no step program stands behind the report, all but the limit is unknown.
// Is so little of the pool free at its peak, below a fiftieth, that its fragmentation says nothing? Shown in grey then.
bool measures_little_is_free(const hr_report_memory *memory);
measures measures_of_report(const hr_report *report);

// Is there something to say of it? One is known, and what is deployed is not the same: few changes of knobs touch that.
bool measures_tell(measure_id id, const measures *a, const measures *b);

// One unit for all byte values of both: of the peaks, or of what else is known where there is none. b may be NULL.
byte_unit measures_unit(const measures *a, const measures *b);

// All return `text`. Sizes in `unit`, or with their own where it would show nothing; "—" is unknown.
const char *measure_format(measure_id id, double value, byte_unit unit, char text[FORMAT_MAX]);
const char *measure_format_delta(measure_id id, double before, double after, byte_unit unit,
                                 char text[FORMAT_MAX]);
// "-24.1%" of `before`, or "x12", as many times; "" where a share says nothing: an unknown, nothing before, or no change.
const char *measure_format_percent(double before, double after, char text[FORMAT_MAX]);

// "b needs 24.28 MiB less at the peak (-41.0%) and takes 20.0 ms less a step (-50.0%)." What is unknown is not
// mentioned. Returns text.
const char *measures_verdict(const measures *a, const measures *b, char *text, size_t size);
// The same where not both fit: "b runs out of memory by capacity, a fits." A cause is NULL for the one that fits, "" where
// it is not known. Returns text.
const char *measures_verdict_oom(const char *a_cause, const char *b_cause, char *text, size_t size);

#endif
