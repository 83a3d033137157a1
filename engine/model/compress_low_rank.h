// SPDX-License-Identifier: Apache-2.0
// compress.low_rank: factors in place of weights (compress_low_rank.c says how).
#ifndef MODEL_COMPRESS_LOW_RANK_H
#define MODEL_COMPRESS_LOW_RANK_H

#include "model/compressor.h"

// Decides which weights are gone. KNOB error where the rank is above every layer's, or makes none smaller.
HR_MUST_CHECK hr_status compress_low_rank_begin(compressor *c, hr_err *err);
void compress_low_rank_node(compressor *c, const model_node *node);

#endif
