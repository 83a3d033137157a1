// SPDX-License-Identifier: Apache-2.0
// Streaming attention as graphs of cuDNN. The library has no node for attention with a causal mask; it recognises the
// whole of products, scale, mask and softmax, written out, and computes it with an engine that never holds the scores.
#ifndef DEVICE_CUDA_ATTENTION_SPEC_H
#define DEVICE_CUDA_ATTENTION_SPEC_H

#include "graph.h"

// Places of the tensors that lie in memory, in graph_spec.tensor.
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_Y, ATTENTION_LSE, ATTENTION_REAL };
enum {
    ATTENTION_BWD_Q,
    ATTENTION_BWD_K,
    ATTENTION_BWD_V,
    ATTENTION_BWD_Y,
    ATTENTION_BWD_DY,
    ATTENTION_BWD_LSE,
    ATTENTION_BWD_DQ,
    ATTENTION_BWD_DK,
    ATTENTION_BWD_DV,
    ATTENTION_BWD_SUM, // float32 [N, heads, Lq, 1]: Σ dy·y
    ATTENTION_BWD_REAL // behind it, with ATTENTION_DQ_OURS, a float32 sum of dq, [N, heads, Lq, d]
};

// Last of those in memory, where weights are dropped: the numbers that decide which. [1]
typedef struct attention_seed {
    uint8_t seed, offset;
} attention_seed;

// How dq comes to be, and what lies in memory meanwhile.
typedef enum attention_dq {
    ATTENTION_DQ_WHOLE,  // in one piece, always the same; scores of all heads in the library's workspace
    ATTENTION_DQ_THEIRS, // blocks add to it in no order; its float32 sum is in the library's workspace
    // The same with a sum of ours: what engines for Hopper want. They set it to zero themselves from cuDNN 9.6.0 on
    // (cudnn-frontend, scaled_dot_product_flash_attention.h), and an older one is none of ours.
    ATTENTION_DQ_OURS
} attention_dq;

// attr.rate above 0 drops weights by a mask that the library draws; *seed says where its numbers are.
void attention_spec(const op_query *q, graph_spec *out, attention_seed *seed);
void attention_bwd_spec(const op_query *q, attention_dq dq, graph_spec *out, attention_seed *seed);

#endif
