// SPDX-License-Identifier: Apache-2.0
// The kinds of layers: one row per kind with the attributes a person may write and the function that expands it
// into operations. The reader is generic over these rows; a new kind is a name in LAYER_KIND_MAP and its row, with
// the expand function, in its family's file (layers_*.c).
#ifndef MODEL_LAYER_KIND_H
#define MODEL_LAYER_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/builder.h"

// X(name), in the order people are shown them.
#define LAYER_KIND_MAP(X)                                                                                    \
    X(dense)                                                                                                 \
    X(conv2d)                                                                                                \
    X(depthwise_conv2d)                                                                                      \
    X(separable_conv2d)                                                                                      \
    X(conv1d)                                                                                                \
    X(conv2d_transpose)                                                                                      \
    X(upsample)                                                                                              \
    X(zero_pad)                                                                                              \
    X(max_pool)                                                                                              \
    X(avg_pool)                                                                                              \
    X(max_pool1d)                                                                                            \
    X(avg_pool1d)                                                                                            \
    X(global_avg_pool)                                                                                       \
    X(layer_norm)                                                                                            \
    X(rms_norm)                                                                                              \
    X(group_norm)                                                                                            \
    X(batch_norm)                                                                                            \
    X(relu)                                                                                                  \
    X(relu6)                                                                                                 \
    X(gelu)                                                                                                  \
    X(silu)                                                                                                  \
    X(tanh)                                                                                                  \
    X(sigmoid)                                                                                               \
    X(hard_sigmoid)                                                                                          \
    X(hard_swish)                                                                                            \
    X(leaky_relu)                                                                                            \
    X(softplus)                                                                                              \
    X(mish)                                                                                                  \
    X(softmax)                                                                                               \
    X(dropout)                                                                                               \
    X(stochastic_depth)                                                                                      \
    X(matmul)                                                                                                \
    X(add)                                                                                                   \
    X(multiply)                                                                                              \
    X(scale)                                                                                                 \
    X(layer_scale)                                                                                           \
    X(concat)                                                                                                \
    X(slice)                                                                                                 \
    X(stack)                                                                                                 \
    X(reduce)                                                                                                \
    X(embedding)                                                                                             \
    X(position_embedding)                                                                                    \
    X(class_token)                                                                                           \
    X(attention)                                                                                             \
    X(window_attention)                                                                                      \
    X(relative_bias)                                                                                         \
    X(lstm)                                                                                                  \
    X(gru)                                                                                                   \
    X(mixture_of_experts)                                                                                    \
    X(flatten)                                                                                               \
    X(reshape)                                                                                               \
    X(permute)                                                                                               \
    X(roll)                                                                                                  \
    X(pixel_shuffle)                                                                                         \
    X(pixel_unshuffle)                                                                                       \
    X(patch_merging)                                                                                         \
    X(channel_shuffle)                                                                                       \
    X(opaque)

typedef enum layer_kind_id {
#define X(name) LAYER_##name,
    LAYER_KIND_MAP(X)
#undef X
        LAYER_KIND_COUNT
} layer_kind_id;

typedef enum attr_type {
    ATTR_TYPE_INT,
    ATTR_TYPE_PAIR, // N or [height, width]
    ATTR_TYPE_REAL,
    ATTR_TYPE_CHOICE,  // one of the row's words, stored as its index
    ATTR_TYPE_PADDING, // same, valid or N
    ATTR_TYPE_EDGES,   // N, [height, width] or [top, bottom, left, right]
    ATTR_TYPE_SHAPE,   // [a, b, …], per sample
} attr_type;

typedef enum attr_id {
    ATTR_NONE, // ends a kind's list
    ATTR_UNITS,
    ATTR_FILTERS,
    ATTR_KERNEL,
    ATTR_SIZE,
    ATTR_STRIDE,
    ATTR_DILATION,    // pixels from tap to tap
    ATTR_POOL_STRIDE, // written `stride` too; 0: as size
    ATTR_PADDING,
    ATTR_EDGES, // written `padding` too
    ATTR_TAPS,  // of one dimension, written as those of two: kernel, size, stride, dilation, padding
    ATTR_PLACES,
    ATTR_STEP,
    ATTR_POOL_STEP, // 0: as size
    ATTR_SPREAD,
    ATTR_ENDS, // padding, and causal too
    ATTR_GROUPS,
    ATTR_NORM_GROUPS, // written `groups` too
    ATTR_MULTIPLIER,
    ATTR_BIAS,         // layer_bias
    ATTR_KEY_BIAS,     // of an attention's keys: 0 as the others, 1 false, 2 true
    ATTR_OUTPUT_BIAS,  // the same of its output
    ATTR_ACTIVATION,   // layer_act
    ATTR_INIT,         // layer_init
    ATTR_TABLE_INIT,   // written `init` too: of embeddings
    ATTR_INIT_SCALE,   // standard deviation of normal, limit of uniform; 0: the kind's own
    ATTR_OUTPUT_SCALE, // init_scale of an attention's output; 0: the same
    ATTR_EPSILON,
    ATTR_MOMENTUM,
    ATTR_SHAPE,
    ATTR_COUNT_PADDING,
    ATTR_TRANSPOSE,
    ATTR_VOCABULARY,
    ATTR_HEADS,
    ATTR_KV_HEADS,   // 0: as many as heads
    ATTR_HEAD_DIM,   // features of a head; 0: those of the input shared out
    ATTR_ROTARY,     // base of rotary positions; 0: none
    ATTR_QK_EPSILON, // of the RMS norm of each query and key; 0: none
    ATTR_SCALE,      // of scores; 0: 1 over the root of a head's features
    ATTR_BUCKETS,    // of distances
    ATTR_DISTANCE,   // from which on all are in the last bucket
    ATTR_FORM,       // 0 streaming, 1 materialised
    ATTR_CAUSAL,
    ATTR_PACKED,  // of packed_form
    ATTR_DROPOUT, // rate inside a layer
    ATTR_RATE,
    ATTR_APPROXIMATE,
    ATTR_SLOPE, // below zero
    ATTR_AXIS,  // Keras: 0 is the batch, negative from the end
    ATTR_FROM,
    ATTR_COUNT,
    ATTR_COPIES, // written `count` too
    ATTR_ROWS,   // of a table of places; 0: as many as there are places
    ATTR_FACTOR,
    ATTR_INITIAL,  // of every gain
    ATTR_OF,       // reduce: 0 sum, 1 mean
    ATTR_IN_PLACE, // x += y, dropout_(x): execution.as=pytorch writes over x
    ATTR_EXPERTS,
    ATTR_TOP_K,           // experts of a token
    ATTR_CAPACITY_FACTOR, // slots of an expert over its share of the choices
    ATTR_GATED,
    ATTR_NORMALISE,  // gates of a token sum to 1
    ATTR_BALANCE,    // weight of the loss that spreads tokens over experts; 0: none
    ATTR_PARAMETERS, // elements that an opaque layer learns
    ATTR_AXES,       // of a permutation: 1, 2, …, in their new order
    ATTR_SHIFT,      // places down and to the right
    ATTR_SIZE_OR_TO, // written `size` too; 0: as `to` says
    ATTR_TO,         // pixels of the result; 0: as `size` says
    ATTR_MODE,       // 0 nearest, 1 bilinear
    ATTR_CORNERS,
    ATTR_SHIFTED, // written `shift` too: places that an image went up and to the left
    ATTR_ID_COUNT
} attr_id;

typedef struct attr_pair {
    int32_t h, w;
} attr_pair;

typedef struct attr_padding {
    bool same;   // TensorFlow's: as many outputs as the stride allows, the odd pixel at the bottom and right
    bool causal; // in front alone, so much that no result has seen a later place (rows with that choice)
    int32_t amount; // otherwise: on each of the four sides
} attr_padding;

typedef struct attr_edges {
    int32_t top, bottom, left, right;
} attr_edges;

typedef union attr_value {
    int64_t integer; // INT, CHOICE
    double real;
    attr_pair pair;
    attr_padding padding;
    attr_edges edges;
    hr_shape shape; // without the batch
} attr_value;

enum { ATTR_MAX_CHOICES = 14 };

typedef struct attr_row {
    const char *name;
    attr_type type;
    bool required;
    double min, max; // INT, PAIR, REAL, PADDING amount, EDGES, SHAPE dimensions; inclusive
    double fallback; // when not written: the number, both of a pair, a choice's index; padding: valid
    const char *choices[ATTR_MAX_CHOICES + 1]; // of PADDING: the words beside same and valid
} attr_row;

enum { LAYER_MAX_INPUTS = 6, LAYER_MAX_ATTRS = 16 };

// One layer as it was written, defaults filled in.
typedef struct layer_spec {
    uint32_t input[LAYER_MAX_INPUTS]; // values
    uint32_t input_count;
    attr_value value[ATTR_ID_COUNT]; // those of the kind's list
} layer_spec;

typedef enum layer_needs {
    LAYER_NEEDS_ANY,      // real numbers of any shape
    LAYER_NEEDS_IMAGE,    // [height, width, channels]
    LAYER_NEEDS_SEQUENCE, // [places, features]
    LAYER_NEEDS_BIASED,   // sequences, and the last may be one bias for all samples
    LAYER_NEEDS_IDS       // int32
} layer_needs;

typedef struct layer_kind {
    const char *name;
    uint32_t min_inputs, max_inputs; // one may be written `input: NAME`, and is the layer above by default
    layer_needs needs;
    uint8_t attrs[LAYER_MAX_ATTRS + 1]; // attr_id, ended by ATTR_NONE
    // Returns the layer's output "NAME/out", HR_NO_ID when the layer is broken.
    uint32_t (*expand)(model_builder *b, const layer_spec *spec);
} layer_kind;

const layer_kind *layer_kind_at(layer_kind_id id);
layer_kind_id layer_kind_find(const char *name); // LAYER_KIND_COUNT when there is none
// What its files call the width of its result, FILTERS or UNITS; NONE where they have none.
attr_id layer_kind_width(const layer_kind *kind);
const attr_row *attr_row_of(attr_id id);

#endif
