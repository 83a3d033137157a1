// SPDX-License-Identifier: Apache-2.0
// compress.lora: adapters beside frozen weights (compress_lora.c says how).
#ifndef MODEL_COMPRESS_LORA_H
#define MODEL_COMPRESS_LORA_H

#include "model/compressor.h"

// Freezes what was read. KNOB error where compress.lora_targets means nothing of this model.
HR_MUST_CHECK hr_status compress_lora_begin(compressor *c, hr_err *err);
void compress_lora_node(compressor *c, const model_node *node);

#endif
