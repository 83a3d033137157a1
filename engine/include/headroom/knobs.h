// SPDX-License-Identifier: Apache-2.0
// The knob table: every setting is one row, and YAML keys, --set, Lua fields, widgets, completion, help and the
// JSON schema are generated from it. Beside the rows stand the constraints between them.
#ifndef HEADROOM_KNOBS_H
#define HEADROOM_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

// X(ID, "group.key"): the enum only; the rows with type, range, default and help stand in engine/knobs/table.c.
#define HR_KNOB_MAP(X)                                                                                       \
    X(DEVICE_KIND, "device.kind")                                                                            \
    X(DEVICE_CARD, "device.card")                                                                            \
    X(DEVICE_VRAM, "device.vram")                                                                            \
    X(DEVICE_LOGICAL, "device.logical")                                                                      \
    X(ALLOCATOR_KIND, "allocator.kind")                                                                      \
    X(ALLOCATOR_GROWTH, "allocator.growth")                                                                  \
    X(ALLOCATOR_FRACTION, "allocator.fraction")                                                              \
    X(ALLOCATOR_GARBAGE_COLLECTION, "allocator.garbage_collection")                                          \
    X(ALLOCATOR_RELEASE_THRESHOLD, "allocator.release_threshold")                                            \
    X(ALLOCATOR_MAX_SPLIT, "allocator.max_split")                                                            \
    X(ALLOCATOR_MAX_NON_SPLIT_ROUNDING, "allocator.max_non_split_rounding")                                  \
    X(ALLOCATOR_LARGE_SEGMENT, "allocator.large_segment")                                                    \
    X(ALLOCATOR_GC_THRESHOLD, "allocator.gc_threshold")                                                      \
    X(ALLOCATOR_EXPANDABLE_SEGMENTS, "allocator.expandable_segments")                                        \
    X(ALLOCATOR_ROUNDUP, "allocator.roundup")                                                                \
    X(ALLOCATOR_CONF, "allocator.conf")                                                                      \
    X(ALLOCATOR_VERSION, "allocator.version")                                                                \
    X(BATCH_SIZE, "batch.size")                                                                              \
    X(BATCH_ACCUMULATE, "batch.accumulate")                                                                  \
    X(BATCH_REMAINDER, "batch.remainder")                                                                    \
    X(PRECISION_POLICY, "precision.policy")                                                                  \
    X(PRECISION_LOSS_SCALE, "precision.loss_scale")                                                          \
    X(PRECISION_LOSS_SCALE_FLOOR, "precision.loss_scale_floor")                                              \
    X(PRECISION_TF32, "precision.tf32")                                                                      \
    X(PRECISION_HEALTH, "precision.health")                                                                  \
    X(CHECKPOINT_STRATEGY, "checkpoint.strategy")                                                            \
    X(OFFLOAD_ACTIVATIONS, "offload.activations")                                                            \
    X(OFFLOAD_OPTIMIZER, "offload.optimizer")                                                                \
    X(OFFLOAD_PREFETCH, "offload.prefetch")                                                                  \
    X(EXECUTION_AS, "execution.as")                                                                          \
    X(EXECUTION_ANSWER, "execution.answer")                                                                  \
    X(EXECUTION_MEMORY_FORMAT, "execution.memory_format")                                                    \
    X(EXECUTION_CUDNN_TF32, "execution.cudnn_tf32")                                                          \
    X(EXECUTION_MODE, "execution.mode")                                                                      \
    X(EXECUTION_FUSE, "execution.fuse")                                                                      \
    X(EXECUTION_INPLACE, "execution.inplace")                                                                \
    X(EXECUTION_DETERMINISTIC, "execution.deterministic")                                                    \
    X(EXECUTION_CUDA_GRAPH, "execution.cuda_graph")                                                          \
    X(EXECUTION_TAPE, "execution.tape")                                                                      \
    X(EXECUTION_RETAIN, "execution.retain")                                                                  \
    X(OPTIMIZER_KIND, "optimizer.kind")                                                                      \
    X(OPTIMIZER_LEARNING_RATE, "optimizer.learning_rate")                                                    \
    X(OPTIMIZER_MOMENTUM, "optimizer.momentum")                                                              \
    X(OPTIMIZER_FORM, "optimizer.form")                                                                      \
    X(OPTIMIZER_IMPLEMENTATION, "optimizer.implementation")                                                  \
    X(OPTIMIZER_BETA1, "optimizer.beta1")                                                                    \
    X(OPTIMIZER_BETA2, "optimizer.beta2")                                                                    \
    X(OPTIMIZER_EPSILON, "optimizer.epsilon")                                                                \
    X(OPTIMIZER_FUSED_BACKWARD, "optimizer.fused_backward")                                                  \
    X(OPTIMIZER_WEIGHT_DECAY, "optimizer.weight_decay")                                                      \
    X(OPTIMIZER_CLIP_NORM, "optimizer.clip_norm")                                                            \
    X(OPTIMIZER_EMA, "optimizer.ema")                                                                        \
    X(OPTIMIZER_SCHEDULE, "optimizer.schedule")                                                              \
    X(OPTIMIZER_SCHEDULE_UPDATES, "optimizer.schedule_updates")                                              \
    X(OPTIMIZER_SCHEDULE_FACTOR, "optimizer.schedule_factor")                                                \
    X(OPTIMIZER_WARMUP, "optimizer.warmup")                                                                  \
    X(WORKSPACE_LIMIT, "workspace.limit")                                                                    \
    X(WORKSPACE_SEARCH, "workspace.search")                                                                  \
    X(THREADS_COUNT, "threads.count")                                                                        \
    X(PIPELINE_SOURCE, "pipeline.source")                                                                    \
    X(PIPELINE_PATH, "pipeline.path")                                                                        \
    X(PIPELINE_RESIZE, "pipeline.resize")                                                                    \
    X(PIPELINE_BAD, "pipeline.bad")                                                                          \
    X(PIPELINE_FILTER, "pipeline.filter")                                                                    \
    X(PIPELINE_SAMPLES, "pipeline.samples")                                                                  \
    X(PIPELINE_ARRAY, "pipeline.array")                                                                      \
    X(PIPELINE_MODE, "pipeline.mode")                                                                        \
    X(PIPELINE_STAGES, "pipeline.stages")                                                                    \
    X(PIPELINE_INTERLEAVE, "pipeline.interleave")                                                            \
    X(PIPELINE_INTERLEAVE_BLOCK, "pipeline.interleave_block")                                                \
    X(PIPELINE_AUGMENT, "pipeline.augment")                                                                  \
    X(PIPELINE_AUGMENT_COPIES, "pipeline.augment_copies")                                                    \
    X(PIPELINE_CACHE, "pipeline.cache")                                                                      \
    X(PIPELINE_CACHE_PATH, "pipeline.cache_path")                                                            \
    X(PIPELINE_SHUFFLE, "pipeline.shuffle")                                                                  \
    X(PIPELINE_SHUFFLE_OF, "pipeline.shuffle_of")                                                            \
    X(PIPELINE_MAP_THREADS, "pipeline.map_threads")                                                          \
    X(PIPELINE_NORMALISE, "pipeline.normalise")                                                              \
    X(PIPELINE_TRANSFER, "pipeline.transfer")                                                                \
    X(PIPELINE_PREFETCH, "pipeline.prefetch")                                                                \
    X(PIPELINE_AUTOTUNE, "pipeline.autotune")                                                                \
    X(PIPELINE_PINNED, "pipeline.pinned")                                                                    \
    X(PIPELINE_DEVICE_PREFETCH, "pipeline.device_prefetch")                                                  \
    X(PIPELINE_RESIDENT, "pipeline.resident")                                                                \
    X(PIPELINE_RAM_LIMIT, "pipeline.ram_limit")                                                              \
    X(COMPRESS_PRUNE, "compress.prune")                                                                      \
    X(COMPRESS_PRUNE_STRUCTURE, "compress.prune_structure")                                                  \
    X(COMPRESS_LORA, "compress.lora")                                                                        \
    X(COMPRESS_LORA_ALPHA, "compress.lora_alpha")                                                            \
    X(COMPRESS_LORA_TARGETS, "compress.lora_targets")                                                        \
    X(COMPRESS_LORA_BASE, "compress.lora_base")                                                              \
    X(COMPRESS_LOW_RANK, "compress.low_rank")                                                                \
    X(COMPRESS_DISTILL, "compress.distill")                                                                  \
    X(COMPRESS_DISTILL_ALPHA, "compress.distill_alpha")                                                      \
    X(COMPRESS_DISTILL_TEMPERATURE, "compress.distill_temperature")                                          \
    X(COMPRESS_DISTILL_WEIGHTS, "compress.distill_weights")                                                  \
    X(COMPRESS_DISTILL_CACHE, "compress.distill_cache")                                                      \
    X(COMPRESS_QUANTIZE, "compress.quantize")                                                                \
    X(MODEL_SEQUENCE, "model.sequence")                                                                      \
    X(MODEL_RESOLUTION, "model.resolution")                                                                  \
    X(MODEL_WIDTH, "model.width")                                                                            \
    X(MODEL_DEPTH, "model.depth")                                                                            \
    X(TRAIN_STEPS, "train.steps")                                                                            \
    X(TRAIN_SEED, "train.seed")                                                                              \
    X(TRAIN_SAVE, "train.save")                                                                              \
    X(TRAIN_SAVE_EVERY, "train.save_every")                                                                  \
    X(TRAIN_RESUME, "train.resume")

typedef enum hr_knob_id {
#define X(id, key) HR_KNOB_##id,
    HR_KNOB_MAP(X)
#undef X
        HR_KNOB_COUNT
} hr_knob_id;

typedef enum hr_knob_type {
    HR_KNOB_INT,
    HR_KNOB_REAL,
    HR_KNOB_BYTES,
    HR_KNOB_CHOICE, // value.integer is the index into row.choices; `on`/`off` is the choice {"off","on"}
    HR_KNOB_TEXT,
} hr_knob_type;

enum { HR_KNOB_TEXT_MAX = 256, HR_KNOB_CHOICES_MAX = 12, HR_KNOB_STEPS_MAX = 7, HR_KNOB_NEEDS_MAX = 2 };

// Flat on purpose: a set of knobs is copied, stored for undo, and sent in a command.
typedef struct hr_knob_value {
    bool set; // false: the row's default (for DEVICE_VRAM and WORKSPACE_LIMIT: none)
    union {
        int64_t integer;
        double real;
        uint64_t bytes;
    } u;
    char text[HR_KNOB_TEXT_MAX]; // HR_KNOB_TEXT only
} hr_knob_value;

typedef struct hr_knobs {
    hr_knob_value value[HR_KNOB_COUNT];
} hr_knobs;

typedef struct hr_knob_row {
    hr_knob_id id;
    const char *key; // "batch.size"
    hr_knob_type type;
    const char *unit;                             // "samples", "B", "" …; never NULL
    double min, max;                              // INT, REAL, BYTES; inclusive
    const char *choices[HR_KNOB_CHOICES_MAX + 1]; // CHOICE; NULL-terminated
    // What a key turns it through, in order, where no rule of its type would find it; NULL-terminated, empty: the rule.
    const char *steps[HR_KNOB_STEPS_MAX + 1];
    const char *preset_default; // as typed; "" means unset
    const char *unset;          // the word for a number that is not set; NULL: "none"
    bool hot;                   // may change between steps without a rebuild
    bool models;             // the model is another one under another value (its parameters, not its sizes)
    const char *line;        // one line of help
    const char *explanation; // a paragraph
    const char *allocator;   // the only allocator.kind of a replay that it concerns; NULL: any
    const char *applies;     // sentence: when it applies; NULL always
    // Without which it does nothing: each knob has one of these words, or none of them. What the sentence says beside it is not here.
    struct {
        const char *words; // "adam adamw", or "!none": each but these; NULL: no more of them
        hr_knob_id knob;
    } needs[HR_KNOB_NEEDS_MAX];
} hr_knob_row;

const hr_knob_row *hr_knob_rows(size_t *count); // indexed by hr_knob_id; count may be NULL
// NULL when unknown; *suggestion (may be NULL) is then the nearest key or NULL.
const hr_knob_row *hr_knob_find(const char *key, const char **suggestion);

// A choice between off and on; it is also set with true, false, yes and no.
bool hr_knob_is_switch(const hr_knob_row *row);

void hr_knobs_init(hr_knobs *knobs); // every row at its default
// Parses `text` as the row's type and stores it; "" (for a number also its word, "none") unsets a row that has no default.
// KNOB error with range or choices otherwise; nothing changed.
HR_MUST_CHECK hr_status hr_knobs_set(hr_knobs *knobs, hr_knob_id id, const char *text, hr_err *err);
// "key=value", as after --set.
HR_MUST_CHECK hr_status hr_knobs_set_pair(hr_knobs *knobs, const char *pair, hr_err *err);
// "key=value key=value", one blank between two, as fixes and points of Fit have them. Those before a wrong one are set.
HR_MUST_CHECK hr_status hr_knobs_set_pairs(hr_knobs *knobs, const char *pairs, hr_err *err);
// Batches that the device holds ahead of the step: pipeline.device_prefetch, as its row says where it is auto.
uint32_t hr_knob_batches_ahead(const hr_knobs *knobs);
// The word for a number that is not set.
const char *hr_knob_unset_word(const hr_knob_row *row);
// The value as it would be typed (an unset number: its word). Returns text.
const char *hr_knob_format(const hr_knobs *knobs, hr_knob_id id, char text[HR_KNOB_TEXT_MAX]);

int64_t hr_knob_int(const hr_knobs *knobs, hr_knob_id id);
double hr_knob_real(const hr_knobs *knobs, hr_knob_id id);
uint64_t hr_knob_bytes(const hr_knobs *knobs, hr_knob_id id, uint64_t when_unset);
const char *hr_knob_text(const hr_knobs *knobs,
                         hr_knob_id id); // TEXT value, or the CHOICE's word; "" when unset
bool hr_knob_is(const hr_knobs *knobs, hr_knob_id id, const char *choice);
bool hr_knob_is_set(const hr_knobs *knobs, hr_knob_id id);
// One of model.*: a symbolic size, that the model's file names or that does not exist. Then it is unset, and acts on nothing.
bool hr_knob_is_size(hr_knob_id id);
// Whether each size is set in both to the same number, or in neither.
bool hr_knobs_same_sizes(const hr_knobs *a, const hr_knobs *b);
// The same of all that a model is made of: sizes, and knobs whose row says `models`.
bool hr_knobs_same_model(const hr_knobs *a, const hr_knobs *b);
// Another value of it is another model.
bool hr_knob_shapes_model(hr_knob_id id);
// False: it does nothing as the others stand.
bool hr_knob_acts(const hr_knobs *knobs, hr_knob_id id);

// Is a technique of compress.* on: is what is deployed not what trains?
bool hr_knobs_compress(const hr_knobs *knobs);
// Does what is deployed, and what evaluates, have whole-number weights (compress.quantize)? Not of qat, which trains for any.
bool hr_knobs_quantize(const hr_knobs *knobs);

// One row of the constraints between knobs.
typedef struct hr_constraint {
    bool (*broken)(const hr_knobs *knobs);
    const char *reason; // whole sentence; "{batch.size}" stands for that knob's value (hr_constraint_say)
    hr_knob_id turn;    // the knob to change
    const char *hint;   // "-s precision.policy=float32"
} hr_constraint;

const hr_constraint *hr_constraints(size_t *count);
// The reason with the values that these knobs have; NULL: "another value" where one would
// stand. An empty value is "nothing".
void hr_constraint_say(const hr_constraint *c, const hr_knobs *knobs, char *text, size_t size);
// CONSTRAINT error with the first broken one's reason and knob.
HR_MUST_CHECK hr_status hr_knobs_validate(const hr_knobs *knobs, hr_err *err);

#endif
