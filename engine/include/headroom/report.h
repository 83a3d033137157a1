// SPDX-License-Identifier: Apache-2.0
// What a plan or a run has to say: one struct, the same for both. What of it is shown: headroom/report_fields.h.
#ifndef HEADROOM_REPORT_H
#define HEADROOM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/category.h"
#include "headroom/knobs.h"
#include "headroom/status.h"
#include "headroom/time_basis.h"

enum { HR_NAME_MAX = 96, HR_SHAPE_TEXT_MAX = 64, HR_SHA256_TEXT_MAX = 65 };

// "does not apply" for integers; NaN for doubles. JSON prints null for both.
#define HR_NONE UINT64_MAX

typedef struct hr_report_layer {
    char name[HR_NAME_MAX];
    char kind[32];
    char output_shape[HR_SHAPE_TEXT_MAX]; // per sample: "30x30x32"
    uint64_t parameters;
    double
        factor_error; // compress.low_rank: relative, of the weights that were resumed; NaN: none were decomposed
} hr_report_layer;

typedef struct hr_report_tensor {
    char name[HR_NAME_MAX];
    hr_category category;
    char dtype[12];
    char shape[HR_SHAPE_TEXT_MAX];
    uint64_t bytes; // requested
} hr_report_tensor;

enum { HR_IMPL_MAX = 64, HR_LIBRARIES_MAX = 6, HR_FALLBACKS_MAX = 3, HR_WORKSPACES_MAX = 5 };
enum { HR_PREPARED_MAX = 6, HR_REPORT_STAGES_MAX = 15, HR_REASON_MAX = 192 };

typedef struct hr_report_implementation {
    char name[24];         // the first word of what the listing says: "cudnn", "own"
    uint32_t instructions; // that it computes
} hr_report_implementation;

// Of one kind of operation, what kernels of our own compute because a library refused it.
typedef struct hr_report_fallback {
    char kind[16]; // "convolutions"
    char first[HR_NAME_MAX];
    uint32_t instructions, of; // of all of that kind
    // Why, instructions: more workspace than workspace.limit; no engine; none shown where there is no driver; not there.
    // A fault of its version that is known.
    uint32_t beyond_limit, without_engine, without_driver, without_library, known_fault;
} hr_report_fallback;

// As PyTorch: convolutions of PyTorch's for which cuDNN has no engine, and so no workspace.
typedef struct hr_report_unserved {
    char first[HR_NAME_MAX];
    uint32_t instructions, without_driver; // of them: none is shown where there is no driver
} hr_report_unserved;

// Instructions of which the device made another implementation ready than was planned: alike ones are one row.
typedef struct hr_report_prepared {
    char first[HR_NAME_MAX]; // "h0/attention"
    char planned[HR_IMPL_MAX], implementation[HR_IMPL_MAX];
    uint32_t instructions;
    char reason[HR_REASON_MAX]; // of the first of them, as the library has it; "": it gave none
} hr_report_prepared;

typedef struct hr_report_capture {
    bool wanted;                 // steps are captured into a CUDA graph where the device can
    uint64_t replays;            // steps that were launched as one
    char refused[HR_REASON_MAX]; // why none could be captured; "": one was, or is soon
} hr_report_capture;

// Of workspace.search.
typedef struct hr_report_search {
    bool wanted;
    uint32_t known; // graphs whose engines' times are known for this card and version of the library
    uint32_t measured, unmeasured; // of them by this process; and those of this model without times
    double seconds;                // measuring
    char refused[HR_REASON_MAX];   // why one was not measured, or times are not kept; "": none
} hr_report_search;

typedef struct hr_report_workspace {
    uint32_t instruction;
    char name[HR_NAME_MAX]; // "conv1/conv2d"
    char implementation[HR_IMPL_MAX];
    uint64_t bytes;
} hr_report_workspace;

typedef struct hr_report_memory {
    uint64_t limit_bytes;
    uint64_t peak_pool_bytes;
    uint64_t peak_in_use_bytes;
    uint64_t peak_requested_bytes;
    uint64_t waste_bytes; // in_use − requested at the peak
    uint64_t saved_for_backward_bytes;
    uint64_t library_saved_bytes;
    uint64_t static_bytes;
    uint64_t largest_free_bytes; // at the peak
    double fragmentation;        // at the peak
    uint64_t heap_hash;          // at the last step boundary
    struct {
        uint32_t instruction;
        char name[HR_NAME_MAX];
        hr_phase phase;
        uint64_t by_category[HR_CATEGORY_COUNT]; // requested bytes
        hr_report_tensor *tensors;               // largest first
        size_t tensor_count;
        hr_report_workspace workspace; // the largest that is alive then; bytes 0: none is
        // Under which workspace.limit another one computes it, with how much; HR_NONE: none needs less.
        uint64_t less_limit_bytes, less_bytes;
        char less_implementation[HR_IMPL_MAX];
        uint64_t opaque_bytes; // alive for the gradients of opaque layers alone; HR_NONE: the model has none
    } at_peak;
    hr_report_workspace workspaces[HR_WORKSPACES_MAX]; // of the step, largest first
    uint32_t workspace_count;
} hr_report_memory;

// X(ID, "name")
#define HR_OOM_CAUSE_MAP(X)                                                                                  \
    X(NONE, "none")                                                                                          \
    X(CAPACITY, "capacity")                                                                                  \
    X(FRAGMENTATION, "fragmentation")                                                                        \
    X(ROUNDING, "rounding")                                                                                  \
    X(OTHER_STREAM, "other_stream")                                                                          \
    X(OUTSIDE, "outside")                                                                                    \
    X(LIMIT, "limit")                                                                                        \
    X(LEAK, "leak")                                                                                          \
    X(PIPELINE, "pipeline")                                                                                  \
    X(DOUBLE_COPY, "double_copy")                                                                            \
    X(RETRIES, "retries")                                                                                    \
    X(NEAR_FULL, "near_full")

typedef enum hr_oom_cause {
#define X(id, text) HR_OOM_##id,
    HR_OOM_CAUSE_MAP(X)
#undef X
        HR_OOM_CAUSE_COUNT
} hr_oom_cause;

const char *hr_oom_cause_name(hr_oom_cause cause);
// False: nothing was refused, and it is told of all the same, or HR_OOM_NONE.
bool hr_oom_cause_refuses(hr_oom_cause cause);

// X(ID, name, words): what a turn of knobs costs of what is learned, the least first.
#define HR_TURN_COST_MAP(X)                                                                                  \
    X(NOTHING, "same", "same numbers")                                                                       \
    X(DIGITS, "digits", "other last digits")                                                                 \
    X(ORDER, "order", "another order of the samples")                                                        \
    X(SPLIT, "split", "batch split: batch norm sees fewer samples")                                          \
    X(PRECISION, "precision", "lower precision")                                                             \
    X(OPTIMIZER, "optimizer", "another optimizer")                                                           \
    X(SAMPLES, "samples", "fewer samples an update")                                                         \
    X(MODEL, "model", "another model or training")                                                           \
    X(LIMIT, "limit", "another limit or card")

typedef enum hr_turn_cost {
#define X(id, name, words) HR_TURN_COST_##id,
    HR_TURN_COST_MAP(X)
#undef X
        HR_TURN_COST_COUNT
} hr_turn_cost;

const char *hr_turn_cost_name(hr_turn_cost cost);

// A change of knobs under which a dry run says that the step fits.
typedef struct hr_report_fix {
    char knobs[128];      // "execution.mode=graph allocator.growth=off": pairs, one space between two
    char cost[72];        // "same numbers, +8 % step time" (hr_turn_words)
    hr_time_basis basis;  // of seconds
    uint64_t peak_bytes;  // in use
    uint64_t limit_bytes; // with it; HR_NONE: there is none
    uint64_t
        host_bytes; // that the host holds with it; HR_NONE: pipeline.ram_limit is none, or it is not known
    double seconds; // of a step, from the cost model; NaN when the device cannot tell
} hr_report_fix;

enum { HR_FIXES_MAX = 3, HR_HOLES_MAX = 8, HR_EVIDENCE_MAX = 12 };

// What shows it, one line each, with its numbers: what grew and by how much, what pins a hole, what others hold.
typedef struct hr_report_evidence {
    char line[160];
} hr_report_evidence;

// Where it is `of_host` the numbers are the host's: `tensor` is the stage that crosses pipeline.ram_limit, which is limit_bytes,
// it asks for requested_bytes, and those before it hold in_use_bytes. What all stages would hold stands in the report's `host`.
typedef struct hr_report_oom {
    hr_oom_cause cause; // HR_OOM_RETRIES: nothing was refused, it cost time; HR_OOM_NEAR_FULL: not yet
    bool of_host;       // the host's memory, not the device's
    char tensor[HR_NAME_MAX];
    uint32_t instruction; // index in the program, HR_NO_ID while building
    char instruction_name[HR_NAME_MAX];
    uint64_t requested_bytes;
    uint64_t free_bytes;         // what the allocator could still have handed out: limit − in_use
    uint64_t largest_free_bytes; // the largest piece of it in one piece
    uint64_t in_use_bytes, pool_bytes, limit_bytes;
    uint64_t needed_bytes; // the smallest limit that was tried and holds it; HR_NONE: none, or not known
    uint64_t by_category[HR_CATEGORY_COUNT];
    uint64_t hole_bytes[HR_HOLES_MAX]; // the largest runs of free chunks in the pool, largest first
    uint32_t hole_count;               // of all of them; 0: none, or not known
    char sentence[448];                // the verdict in words, with the numbers
    char hint[256];                    // the knobs to turn, as a command's options: the first fix
    hr_report_evidence evidence[HR_EVIDENCE_MAX];
    uint32_t evidence_count;
    hr_report_fix
        fixes[HR_FIXES_MAX]; // what costs least of what is learned first (hr_turn_cost), of that the fastest
    uint32_t fix_count;
} hr_report_oom;

typedef struct hr_report_stage {
    char name[32];
    uint64_t peak_bytes;
    double busy_seconds,
        wait_seconds; // of hr_event_stage; NaN where it is planned, or no stage of the pipeline
} hr_report_stage;

typedef struct hr_report {
    char preset[64];
    struct {
        char kind[16], card[HR_KNOB_TEXT_MAX], isa[64];
        uint32_t threads;
        bool simulated;
    } device;
    struct {
        uint64_t parameters, trainable_parameters;
        bool normalises_batches; // over the samples of a batch
        hr_report_layer *layers;
        size_t layer_count;
    } model;
    struct {
        uint32_t instructions;
        uint64_t effective_batch; // samples of one update: batch.size times batch.accumulate
        uint64_t flops;
        double seconds; // median of the training steps
        double seconds_low,
            seconds_high;    // of an estimate, between which it lies as a rule; NaN of what was measured
        hr_time_basis basis; // of seconds that were not measured; UNKNOWN of others
        bool measured;
        hr_report_implementation
            implementations[HR_LIBRARIES_MAX]; // in the order of their first instructions
        hr_report_fallback fallbacks[HR_FALLBACKS_MAX];
        uint32_t implementation_count, fallback_count;
        hr_report_unserved unserved;
        hr_report_prepared prepared[HR_PREPARED_MAX]; // none: what runs is what was planned
        uint32_t prepared_count;
        uint32_t unplanned; // instructions of all of them, those without a row included
        hr_report_capture capture;
        hr_report_search search;
    } step;
    hr_report_memory memory;
    struct {
        uint64_t peak_in_use_bytes; // HR_NONE when no evaluation ran
    } evaluation;
    struct {
        uint64_t
            peak_in_use_bytes; // of the heap of a teacher that answers first (compress.distill_cache); HR_NONE: none does
    } answers;
    struct {
        uint64_t stripped_bytes; // weights and running statistics of the model alone, without a teacher's
        uint64_t
            deployed_bytes; // the same, in dense layers and tables the whole numbers of compress.quantize, and without the filters that
        // compress.prune_structure=filter has taken at the end
    } deploy;
    struct {
        uint64_t outside_bytes, process_bytes,
            others_bytes; // HR_NONE without a card, or where it is not told
    } driver;
    uint64_t h2d_bytes_per_step;
    bool resident; // one batch stays on the device: the data does not change
    struct {
        uint64_t peak_bytes;
        hr_report_stage stages[HR_REPORT_STAGES_MAX]; // those of the pipeline, and what is offloaded
        uint32_t stage_count;
        bool measured; // of a pipeline that runs; otherwise planned
        // Estimated, of a plan: to make the batches of a step, and the share of a step in which it waits for them; NaN: of
        // a run, or not known.
        double input_seconds, stall;
        char unknown[HR_REASON_MAX]; // why the pipeline's stages are not known; "": they are
        uint64_t bad_samples;        // of pipeline.bad=skip: given out in place of others, and passed over
        char refused[HR_REASON_MAX]; // why batches are not in pinned memory; "": they are, or none is wanted
    } host;
    struct {
        uint64_t steps, updates;
        uint64_t skipped_steps; // of this counter epoch, not finite; HR_NONE without a dynamic loss scale
        double loss_scale;      // after the last step; NaN where none is used
        double examples_per_second, loss_first, loss_last, eval_accuracy;
        double loss_student, loss_distill; // loss_last's parts (hr_event_losses); NaN where no teacher is
        double
            sparsity; // zeros of all pruned kernels (compress.prune); NaN where none is, or nothing was trained
        uint64_t first_masks; // the update, counted from where masks are new, that makes them first; 0: none
        char weights_sha256[HR_SHA256_TEXT_MAX]; // "" when nothing was trained
        char data[64];                           // "generated", "cifar10", "mnist"
    } train;
    struct {
        double seconds_median, seconds_max;
        uint64_t distinct_peaks;
    } plan; // --repeat; seconds NaN elsewhere
    hr_report_oom oom;
} hr_report;

// Frees what the report points to and zeroes it. NULL is fine.
void hr_report_deinit(hr_report *report);

#endif
