// SPDX-License-Identifier: Apache-2.0
// A model that was read on its way to another one: what techniques of compress.* make it with, and how parameters come back
// into canonical order.
#ifndef MODEL_COMPRESSOR_H
#define MODEL_COMPRESSOR_H

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

// False when memory is short; to be ended in any case.
bool compressor_begin(compressor *c);
// Hands out each node that was read, for `change` to append what takes its place, and puts parameters in order: those of one layer
// as they came, new ones behind. The builder is broken where memory was short.
void compressor_rewrite(compressor *c, void (*change)(compressor *, const model_node *));
void compressor_end(compressor *c);

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

#endif
