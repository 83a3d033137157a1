// SPDX-License-Identifier: Apache-2.0
// compress.low_rank: factors in place of weights (compress_low_rank.c says how).
#ifndef MODEL_COMPRESS_LOW_RANK_H
#define MODEL_COMPRESS_LOW_RANK_H

#include "model/compressor.h"

// What weights become under a choice. Both ranks are the same where there is no core.
typedef struct low_rank_ranks {
    int64_t in, out;
    uint64_t full, elements; // of the weights, of the factors
    double break_even;       // rank at which both are as many
    int64_t most;            // full rank
} low_rank_ranks;

// Of [features, units] or [kh, kw, channels, filters].
low_rank_ranks low_rank_ranks_of(const low_rank_choice *choice, const hr_shape *weights);
bool low_rank_shrinks(const low_rank_ranks *r); // otherwise they stay as they are

// Decides which weights are gone. KNOB error where the rank is above every layer's, or makes none smaller.
HR_MUST_CHECK hr_status compress_low_rank_begin(compressor *c, hr_err *err);
void compress_low_rank_node(compressor *c, const model_node *node);

#endif
