// SPDX-License-Identifier: Apache-2.0
// Nodes that depend on no input of the model: what they compute is computed here. Each function reads the operands of the
// node in hand (walk_needs_numbers), gives its outputs, and is false with the graph's status set where it cannot.
#ifndef IMPORT_ONNX_FOLD_H
#define IMPORT_ONNX_FOLD_H

#include "onnx_walk.h"

bool fold_elementwise(walk *w); // of one operand, of two, Where and Clip, by the node's operator
bool fold_constant(walk *w);
bool fold_constant_of_shape(walk *w);
bool fold_range(walk *w);
bool fold_cast(walk *w);
bool fold_gather(walk *w);
bool fold_gather_nd(walk *w);
bool fold_scatter_nd(walk *w);
bool fold_concat(walk *w);
bool fold_slice(walk *w);
bool fold_squeeze(walk *w); // and Unsqueeze
bool fold_reshape(walk *w);
bool fold_flatten(walk *w);
bool fold_transpose(walk *w);
bool fold_expand(walk *w);
bool fold_tile(walk *w);
bool fold_cumsum(walk *w);
bool fold_trilu(walk *w);
bool fold_split(walk *w);
bool fold_reduce(walk *w);

// ---- what folding and the layers of the same operators share: shapes

enum { ONNX_PARTS = 64 };

// The axis of the node as a place of `rank` dimensions; false with a refusal where it is none.
bool node_axis(walk *w, int64_t axis, uint32_t rank, uint32_t *out);
// The axes of the node (an attribute until opset 12, operand k after) as flags. *given: whether there are any.
bool node_axes(walk *w, uint32_t k, uint32_t rank, bool flags[ONNX_RANK], bool *given);
// The shape that Reshape asks for, of a tensor of the given shape.
bool node_reshape(walk *w, uint32_t rank, const int64_t *have, uint32_t *out_rank, int64_t out[ONNX_RANK]);
bool node_squeezed(walk *w, bool adds, uint32_t rank, const int64_t *have, uint32_t *out_rank,
                   int64_t out[ONNX_RANK]);
bool node_permutation(walk *w, uint32_t rank, uint32_t order[ONNX_RANK]);
// The sizes of Split's outputs.
bool node_parts(walk *w, int64_t size, int64_t parts[ONNX_PARTS], uint32_t *count);
// Slice of one dimension of `size`: where it begins, how many places, how far from one to the next.
typedef struct cut {
    int64_t from, count, step;
} cut;
bool node_cuts(walk *w, uint32_t rank, const int64_t *have, cut cuts[ONNX_RANK]);
// The axis along which one place is chosen, and the place.
bool node_picks(walk *w, uint32_t rank, const int64_t *have, uint32_t *axis, int64_t *place);

#endif
