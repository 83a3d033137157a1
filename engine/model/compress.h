// SPDX-License-Identifier: Apache-2.0
// What compress.* makes of a model that was read: layers get more parameters, or others. The result is a model like any
// other: its parameters are in canonical order, new ones behind those of their layer, and a value that was read keeps its name.
#ifndef MODEL_COMPRESS_H
#define MODEL_COMPRESS_H

#include "headroom/knobs.h"

#include "knobs/lora.h"
#include "knobs/low_rank.h"
#include "model/builder.h"

// A model on its way. Nodes that were read are handed out one by one; what takes their place is appended to the builder.
typedef struct compressor {
    model_builder *b;
    const hr_knobs *knobs;
    const char *model; // its name
    lora_choice lora;  // auto decided
    low_rank_choice low_rank;
    uint32_t read_params; // parameters that were read
    uint32_t (*made)[3];  // [read_params] what was made for each, HR_NO_ID; shared like the parameter itself
    bool *gone;           // [read_params] no node reads it any more
    bool *touched;        // [layers] a node of it is another
} compressor;

// Rewrites the builder's nodes and parameters as the knobs say; nothing where they say nothing. KNOB error where the model
// has no layer for it; the model is then not valid.
HR_MUST_CHECK hr_status model_compress(model_builder *b, const hr_knobs *knobs, const char *model,
                                       hr_err *err);

// ---- of the techniques: one file each --------------------------------------------------------------------------------

enum { COMPRESS_NAME_MAX = 96 };

// "query_weights" → "query_lora_a": the name of parameter `param` within its layer, its last word another one. Returns text.
const char *compress_param_name(const compressor *c, uint32_t param, const char *word,
                                char text[COMPRESS_NAME_MAX]);
// "LAYER/query" → "query_base". Returns text.
const char *compress_value_name(const compressor *c, uint32_t value, const char *word,
                                char text[COMPRESS_NAME_MAX]);
// A parameter of the layer that owns `like`.
uint32_t compress_param(compressor *c, uint32_t like, const char *word, const model_param *param);
// Appends a node of one result with a name of compress_value_name.
uint32_t compress_node(compressor *c, const model_node *node, uint32_t like, const char *word);
// Appends a node whose result is a value that is there.
void compress_keep(compressor *c, const model_node *node);

// Does the node stand for a product with weights of its own, [features, units] or [kh, kw, channels, filters]?
bool compress_is_product(const model_node *node);

// Freezes what was read. KNOB error where compress.lora_targets means nothing of this model.
HR_MUST_CHECK hr_status compress_lora_begin(compressor *c, hr_err *err);
void compress_lora_node(compressor *c, const model_node *node);
// Decides which weights are gone. KNOB error where the rank is above every layer's, or makes none smaller.
HR_MUST_CHECK hr_status compress_low_rank_begin(compressor *c, hr_err *err);
void compress_low_rank_node(compressor *c, const model_node *node);

#endif
