// SPDX-License-Identifier: Apache-2.0
// What of a training is deployed: a save without what only training needs, its weights as trained or as whole numbers; what that
// takes in memory and on disk, and what it does to accuracy, errors and speed. A file that is written is a save that evaluates; with float
// weights training may go on from it, with fresh slots.
#ifndef HEADROOM_DEPLOY_H
#define HEADROOM_DEPLOY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/report.h"
#include "headroom/status.h"

// X(ID, "name"): how the weights of dense layers are held. int8: one scale for each unit, and in the product each row of the input
// is int8, too; int8_weights: the weights alone; int4_weights: two in a byte, a scale and a zero point for 128 rows of a unit. Tables of
// embeddings likewise, a row being what a unit is.
#define HR_QUANTIZE_MAP(X)                                                                                   \
    X(NONE, "none")                                                                                          \
    X(INT8_WEIGHTS, "int8_weights")                                                                          \
    X(INT8, "int8")                                                                                          \
    X(INT4_WEIGHTS, "int4_weights")

typedef enum hr_quantize {
#define X(id, text) HR_QUANTIZE_##id,
    HR_QUANTIZE_MAP(X)
#undef X
        HR_QUANTIZE_COUNT
} hr_quantize;

const char *hr_quantize_name(hr_quantize mode);
// KNOB error with what was meant for a word that is none.
HR_MUST_CHECK hr_status hr_quantize_parse(const char *word, hr_quantize *out, hr_err *err);

typedef struct hr_deploy_request {
    const char *save; // of the preset's model
    const char *out;  // where to write; NULL: nowhere, the report alone
    hr_quantize quantize;
    bool replaces; // whatever stands at `out`, but `save` itself
    bool ranks;    // also what compress.low_rank would make of each layer
    bool merges;   // what adapters learned goes into the weights: the model is that without compress.lora
    bool adapters; // they alone are deployed; not with merges or quantize
} hr_deploy_request;

// Bytes of tensors, of a safetensors file of them, and of that file behind gzip and zstd as their programs compress.
typedef struct hr_deploy_size {
    uint64_t ram_bytes, file_bytes, gzip_bytes, zstd_bytes;
} hr_deploy_size;

// Of the samples that are held out. NaN and 0 where nothing was evaluated: no device computes, or none are held out.
typedef struct hr_deploy_eval {
    uint64_t samples;
    double loss, accuracy;      // accuracy NaN where nothing is classified
    double examples_per_second; // of the median full batch, whole numbers being made
    uint64_t peak_in_use_bytes;
} hr_deploy_eval;

typedef struct hr_deploy_tensor {
    char name[HR_NAME_MAX];
    const char *type; // as it is deployed: "float32", "int8", "int4"; static
    uint64_t elements, zeros;
    uint64_t bytes, deployed_bytes; // in the save, and with scales as deployed
    double max_error; // the largest |deployed - trained|; NaN: deployed as trained, or not known
} hr_deploy_tensor;

// A layer of which filters that were pruned are gone.
typedef struct hr_deploy_layer {
    char name[HR_NAME_MAX];
    uint64_t filters, deployed_filters;
} hr_deploy_layer;

// A point of a layer, in the order of layers and ranks.
typedef struct hr_deploy_rank {
    char layer[HR_NAME_MAX];
    hr_event_rank at;
} hr_deploy_rank;

typedef struct hr_deploy {
    char model[64];
    hr_quantize quantize;
    bool was_quantized; // the save is a quantised one
    bool averaged;      // weights are the averages that optimizer.ema holds
    bool had_ranges;    // of activations (compress.quantize=qat): they are not deployed, weights alone are
    bool
        decomposed; // the save has whole weights, `before` and `stripped` are of their factors (compress.low_rank)
    bool merged; // request->merges
    const char
        *base; // what weights beside adapters were held as: "nf4"; NULL: as real numbers, or there are none
    uint64_t steps;
    hr_deploy_size save, stripped,
        deployed; // stripped: weights and running statistics as trained. Of a quantised save, deployed alone: the others HR_NONE
    hr_deploy_size with_adapters; // in the weights; HR_NONE where they were not merged
    hr_deploy_eval before,
        after; // with the weights of the save, and with those deployed; not of adapters alone
    hr_deploy_eval after_merge; // before anything else is done to them; NaN where they were not merged
    hr_deploy_tensor *
        tensors; // of the model that is deployed, in canonical order; of adapters alone, what they are; owned
    size_t tensor_count;
    hr_deploy_layer *layers; // that are narrower, owned; none: the model is as it was
    size_t layer_count;
    uint64_t parameters, deployed_parameters;
    char *
        preset; // where that of the narrower model was written, owned; NULL: nowhere, it is the same or nothing was
    bool preset_needs_trust; // to be opened: what it extends lies in another folder
    hr_deploy_rank *ranks;   // where they were asked for; owned
    size_t rank_count;
} hr_deploy;

// Filters that are 0 with all that follows them are not deployed: what is deployed is a narrower model, and its preset is written
// beside request->out, "w.yaml" of "w.safetensors", under the same rule.
//
// The adapters of a save are merged, or deployed alone, where the request says so: SAVE where it has none, MODEL where a layer
// reads adapted weights without their adapter.
//
// Reads the save into an engine of these knobs without a teacher and with the save's own seed, evaluates, and writes request->out whole or not at all; the caller deinits *out.
// USAGE: a request for two things that exclude each other. DEPENDENCY: ranks without LAPACK. SAVE: the save is none, of another model, or quantised and asked to be quantised again. WRITE: a file at `out` is the
// save itself, or none that was deployed, or cannot be written. The errors of a training's first build.
HR_MUST_CHECK hr_status hr_deploy_run(const hr_preset *preset, const hr_knobs *knobs,
                                      const hr_deploy_request *request, hr_deploy *out, hr_err *err);
void hr_deploy_deinit(hr_deploy *deploy);

#endif
