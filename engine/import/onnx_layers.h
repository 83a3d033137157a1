// SPDX-License-Identifier: Apache-2.0
// One function an operator (onnx.c has the table): reads the operands of the node in hand, makes layers, gives its outputs.
// False with the graph's status set where it cannot.
#ifndef IMPORT_ONNX_LAYERS_H
#define IMPORT_ONNX_LAYERS_H

#include "onnx_walk.h"

// ---- onnx_shape.c: views, and pieces of an axis

bool take_identity(walk *w);
bool take_cast(walk *w);
bool take_shape(walk *w);
bool take_reshape(walk *w);
bool take_flatten(walk *w);
bool take_transpose(walk *w);
bool take_squeeze(walk *w);
bool take_blocks(walk *w); // DepthToSpace, SpaceToDepth
bool take_expand(walk *w);
bool take_slice(walk *w);
bool take_split(walk *w);
bool take_pick(walk *w); // Gather of one place

// ---- onnx_roll.c: each that makes a tensor gives NULL without a refusal where it is something else

// Whether the slices a and b, which `later` and `first` lie as, are of one tensor along dim: the places from `from` on, and all
// those before them.
bool pieces_follow(const layer *a, const tensor *later, const layer *b, const tensor *first, uint32_t dim);
// cat(x[from:], x[:from]) along a dimension
tensor *turned_around(walk *w, const tensor *later, const tensor *first, uint32_t dim);
// x[first::step] along a dimension; refused where step does not divide it.
tensor *every_nth(walk *w, tensor *x, uint32_t dim, int64_t first, int64_t step);
// cat of every n-th pixel of an image, column by column, along its channels
tensor *merged_patches(walk *w, const tensor *const *of, uint32_t count, uint32_t dim);

// ---- onnx_concat.c

bool take_concat(walk *w);

// ---- onnx_conv.c

// The node's operand k as weights of so many dimensions, none empty.
const onnx_tensor *conv_weight(walk *w, uint32_t k, uint32_t rank);
bool conv_has_folded_norm(walk *w, const onnx_tensor *weight);
bool conv_has_own_bias(const onnx_tensor *bias);
// A sequence as an image of one row, which is what a batch norm reads; others as they are.
layer *conv_as_image(walk *w, layer *l);
layer *conv_unfolded_norm(walk *w, layer *conv);

// ---- onnx_sequence.c

// Conv, MaxPool and AveragePool of three dimensions.
bool take_conv_steps(walk *w, const tensor *x);
bool take_pool_steps(walk *w, const tensor *x, const char *kind, bool counts_padding);
bool take_recurrent(walk *w); // GRU, LSTM

// ---- onnx_image.c

bool take_conv(walk *w);
bool take_conv_transpose(walk *w);
bool take_max_pool(walk *w);
bool take_average_pool(walk *w);
bool take_global_pool(walk *w);
bool take_resize(walk *w);
bool take_pad(walk *w);
bool take_batch_norm(walk *w);

// ---- onnx_activation.c

bool take_activation(walk *w);
bool take_clip(walk *w);
bool take_leaky_relu(walk *w);
bool take_hard_sigmoid(walk *w);
bool take_gelu(walk *w);
bool take_softplus(walk *w);
bool take_dropout(walk *w);
bool take_softmax(walk *w);
bool take_log_softmax(walk *w);
bool take_step(walk *w); // Neg, Pow, Sqrt, Reciprocal, Erf, IsNaN

// ---- onnx_pointwise.c

bool take_add(walk *w);
bool take_subtract(walk *w);
bool take_multiply(walk *w);
bool take_divide(walk *w);
bool take_where(walk *w);
// x * cos + turned(x) * sin with tables of both (onnx_rotary.c); NULL without a refusal for another sum.
tensor *rotary_sum(walk *w, const tensor *a, const tensor *b);

// ---- onnx_norm.c: norms as operators and in steps, means

bool take_layer_norm(walk *w);
bool take_rms_norm(walk *w);
bool take_mean(walk *w);
// The next step of a norm or an activation that is written in steps; NULL without a refusal: it is none.
tensor *step_add(walk *w, const tensor *x, const value *y);
tensor *step_subtract(walk *w, const tensor *x, const tensor *y);
tensor *step_multiply(walk *w, const tensor *x, const value *y);
tensor *step_divide(walk *w, const tensor *x, const tensor *y);
tensor *step_alone(walk *w, const tensor *x); // Neg, Pow, Sqrt, Reciprocal, Erf, Tanh, IsNaN

// ---- onnx_group_norm.c

bool take_instance_norm(walk *w);
bool take_group_norm(walk *w);
// Steps of an open group norm x; NULL without a refusal: y is no gain or shift of its channels.
tensor *grouped_multiply(walk *w, const tensor *x, const value *y);
tensor *grouped_add(walk *w, const tensor *x, const value *y);

// ---- onnx_dense.c

bool take_gemm(walk *w);
bool take_matmul(walk *w);
bool take_embedding(walk *w); // Gather of rows
// A sum with a parameter: a bias that follows a product, or positions.
tensor *dense_biased(walk *w, const tensor *x, const tensor *bias);

// ---- onnx_attention.c

tensor *attention_scores(walk *w, const tensor *q, const tensor *k);
tensor *attention_heads(walk *w, const tensor *scores, const tensor *v);
#define ONNX_HIDDEN (-1e4) // what is added at most to the score of a place that is not seen
tensor *attention_masked(walk *w, const tensor *scores, const numbers *seen);
tensor *attention_scaled(walk *w, const tensor *scores, double factor);
tensor *attention_softmax(walk *w, const tensor *scores);
tensor *attention_dropped(walk *w, const tensor *scores, double rate);
// Heads and the dense layer behind them are one layer.
tensor *attention_closed(walk *w, const tensor *heads, int64_t units, const onnx_tensor *weight);
bool attention_biased(walk *w, const tensor *x, const onnx_tensor *bias);
bool take_attention(walk *w); // the operator of opset 23

// ---- onnx_window.c

// Scores and a bias of [1, heads, places, places]; NULL without a refusal: it is none by where pixels of a window stand.
tensor *windows_biased(walk *w, const tensor *x, const value *bias);
// A weight under a view as numbers; NULL without a refusal: it is none, or a dimension of it lies in several places.
const numbers *parameter_numbers(walk *w, const tensor *t);
bool windows_output_biased(walk *w, layer *l, const onnx_tensor *bias);
// Refused where a layer of window attention has biases in some of its projections.
bool windows_are_whole(walk *w, const layer *l);

#endif
