// SPDX-License-Identifier: Apache-2.0
// A model: named layers, expanded into operations over parameters and values, with shapes per sample.
//
// Values carry shapes with dim[0] = 1 for the batch, and within a layer more where rows or windows of a sample are counted
// as samples; whoever builds a program for batch N multiplies dim[0] of every `batched` value by N. Parameters are in canonical order: layer by layer, as the layer declares them.
//
// Names are unique: "conv1/weights", "conv1/out" for a layer's result, "conv1/conv" for what stands before its
// activation; inputs, labels, probs and losses belong to no layer (HR_NO_ID). An activation is a node of its own:
// op_attr.act is always HR_ACT_NONE here. A parameter that several layers share stands once, with the layer that
// declared it. A model is immutable and may be read by any thread.
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/category.h"
#include "headroom/preset.h"
#include "headroom/status.h"

#include "ops/held.h"
#include "ops/op.h"

// What names of a teacher's layers, values and parameters begin with.
#define MODEL_TEACHER "teacher/"

typedef enum model_init {
    MODEL_INIT_ZEROS,
    MODEL_INIT_ONES,
    MODEL_INIT_GLOROT_UNIFORM,
    MODEL_INIT_HE_UNIFORM,
    MODEL_INIT_NORMAL,           // of deviation init_scale
    MODEL_INIT_TRUNCATED_NORMAL, // the same within two deviations
    MODEL_INIT_UNIFORM,          // from -init_scale to init_scale
    MODEL_INIT_CONSTANT,         // init_scale itself
    MODEL_INIT_FORGET_BIAS       // ones in the second quarter, zeros elsewhere
} model_init;

// Of compress.low_rank: which factor of weights that are gone; their name is the factor's without its last word.
typedef enum model_factor {
    MODEL_FACTOR_NONE,
    MODEL_FACTOR_U,
    MODEL_FACTOR_V,
    MODEL_FACTOR_CORE
} model_factor;

typedef struct model_param {
    const char *name; // "conv1/weights"
    hr_shape shape;
    hr_category category; // WEIGHTS, or STATE (running statistics)
    bool trainable;
    bool adapter; // of compress.lora: what was trained without it lacks this
    held_as held; // of its base, which does not train (compress.lora_base)
    model_factor factor;
    model_init init;
    double init_scale;
    uint64_t fan_in, fan_out;
    uint32_t layer; // that owns it; layers that share it come later
} model_param;

typedef struct model_value {
    const char *name; // "conv1/out"
    hr_shape shape;
    hr_dtype dtype;
    bool batched;
    uint32_t layer;
} model_value;

typedef struct model_ref {
    bool is_param;
    uint32_t index;
} model_ref;

typedef struct model_node {
    hr_op op;
    op_attr attr;
    uint32_t layer;
    bool
        teaches; // of the teacher, or the distance from it: computed as in an evaluation, of which it is no part
    uint32_t in_count, out_count;
    model_ref in[OP_MAX_IN];
    uint32_t out[OP_MAX_OUT]; // values
} model_node;

typedef struct model_layer {
    const char *name;
    const char *kind;
    uint32_t output;     // value
    uint64_t parameters; // its own: those it shares count where they were declared
} model_layer;

// What the host brings with every batch: slot k is INPUT's attr.slot k. The model's inputs come first, then labels.
typedef struct model_slot {
    uint32_t value;        // float32, int32 (ids) or uint8 (masks); batched
    bool is_label, binary; // binary: a float32 label of zeros and ones
    bool answers; // the teacher's logits of a training sample (compress.distill_cache): no data set has them
    uint32_t classes; // ids and masks are 0 … classes - 1; 0 for float32
} model_slot;

typedef struct model_loss {
    uint32_t value;      // [1]
    uint32_t prediction; // what the loss judges: logits, or the values themselves
    uint32_t
        labels; // value of a slot, or the teacher's logits; HR_NO_ID: of a layer's own loss, which has none
    double weight;    // in training; 0: no gradient begins there
    double evaluated; // in an evaluation; 0: it is no part of one
    bool classifies;  // accuracy has a meaning
    bool teaches;     // the distance from a teacher
} model_loss;

enum { MODEL_MAX_SLOTS = 4, MODEL_MAX_LOSSES = 4 }; // losses that may be written

typedef struct hr_model {
    const char *name;
    model_slot slots[MODEL_MAX_SLOTS];
    const model_loss
        *losses; // those that were written, then those of layers, then the distance from the teacher
    uint32_t slot_count, loss_count; // at least one input, one label and one loss that was written
    const model_param *params;
    const model_value *values;
    const model_node
        *nodes; // forward, in program order; the losses that were written stand last, but for the teacher's
    const model_layer *layers;
    uint32_t param_count, value_count, node_count, layer_count;
    uint32_t own_params,
        own_layers; // those behind them are the teacher's ("teacher/conv1/weights"), which never train
    const char *teacher_weights; // the save that the teacher's preset names; NULL: none, or no teacher
    uint64_t parameters, trainable_parameters; // without the teacher's
    uint64_t most_parameters; // that a save of it may have: before compress.low_rank there were more
} hr_model;

// Reads the preset's model with the sizes that model.* of `knobs` give. Every problem is reported into the preset's file
// with line and column; MODEL error with the first, KNOB where a size is set that the model does not have. *problems as
// in hr_preset_open; may be NULL. The model does not need the preset any longer. Any thread: one model is read at a time.
HR_MUST_CHECK hr_status model_create(const hr_preset *preset, const hr_knobs *knobs, hr_model **out,
                                     char **problems, hr_err *err);
void model_destroy(hr_model *model);

// The name of a first half of an adapter (compress.lora), in whatever model.
bool model_is_adapter_name(const char *name);

// How many of its slots a data set fills. The teacher's answers, which evaluations have no use for, come behind them.
uint32_t model_data_slots(const hr_model *model);
// One image, or its pixels flat, and one class: what sources of images have bytes for.
bool model_takes_images(const hr_model *model);
// Whether a value of a sample depends on the others of its batch.
bool model_normalises_batches(const hr_model *model);

// How compress.quantize makes whole numbers of a parameter: not at all; of a matrix [I,O] that dense layers alone read, as it lies, with
// scales of its columns; of a table [V,D] that lookups, or products with it turned, alone read, with scales of its rows.
typedef enum model_quantized { MODEL_AS_IT_IS, MODEL_BY_COLUMN, MODEL_BY_ROW } model_quantized;

model_quantized model_param_quantized(const hr_model *model, uint32_t param);

// Writes the seeded initial values of parameter `index` (float32, plain layout) to values[0..elements).
// Philox(seed, "init/" + name, element): the same on every machine and thread count. The recipe for scripts stands
// at the top of init.c.
void model_init_param(const hr_model *model, uint32_t index, uint64_t seed, float *values);

#endif
