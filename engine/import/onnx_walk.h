// SPDX-License-Identifier: Apache-2.0
// The walk through a graph: what stands for each of its values while our layers are made of its nodes.
//
// A tensor is a layer's output and the axes that it has in memory; ONNX's dimensions are a view of those. Images lie as
// [height, width, channels] here, so that Transpose, Reshape, Flatten and their like move no byte until a layer needs another
// order than there is: then one layer moves them (onnx_order.c). Where a node is one step of what is one layer here (a norm or a GELU in steps, attention), its layer
// is open: only the step that follows may read it.
//
//   value ─▶ numbers                    known from no input
//         ─▶ weight ─▶ tensor           a parameter, or a view of it
//         ─▶ tensor ─▶ layer ─▶ inputs
//
// The batch has a size of its own, ONNX_BATCH, a prime that no other dimension is likely to hold: so it is found again in
// products of sizes.
//
// Functions that give a pointer give NULL with g->status set: refused, or no memory. All live in the graph's memory.
#ifndef IMPORT_ONNX_WALK_H
#define IMPORT_ONNX_WALK_H

#include "base/text.h"
#include "onnx_numbers.h"

enum { ONNX_AXES = 12, ONNX_PARAMS = 12, LAYER_INPUTS = 6, LAYER_ATTRIBUTES = 16, ONNX_BATCH = 1000003 };

typedef struct mem_axis {
    int64_t size;
    bool copied; // a place that is only pretended (Expand)
} mem_axis;

typedef struct axes {
    mem_axis *at[ONNX_AXES];
    uint32_t count;
} axes;

// What a layer is of which the rest is still to come. The comments say what its node has computed of `of`.
typedef enum layer_open {
    OPEN_NOT,
    OPEN_PARAMETER,
    OPEN_SCORES, // q k^T and what followed
    OPEN_HEADS,  // attention without its output projection
    OPEN_NEGATIVE,
    OPEN_TURNED, // the halves of a head that changed places
    OPEN_TABLE,  // a product with a table of numbers
    OPEN_ROTARY,
    OPEN_SQUARE,  // x² · factor
    OPEN_MEAN,    // its mean over the last dimension, + epsilon
    OPEN_ROOT,    // the root of that
    OPEN_INVERSE, // one by that
    OPEN_CENTRED, // x - mean(x)
    OPEN_NORMED,  // divided by the root
    OPEN_GAINED,  // times a weight
    OPEN_GROUPED, // a group norm without gain and shift
    OPEN_GROUPED_GAIN,
    OPEN_CUBE,     // x³ · factor
    OPEN_CUBIC,    // (x + x³ · 0.044715) · factor
    OPEN_BELL,     // erf(x / √2) or tanh of the cubic
    OPEN_ONE_BELL, // + 1
    OPEN_TWICE,    // x · that: twice a GELU
    OPEN_IS_NAN
} layer_open;

typedef struct layer_attribute {
    const char *key, *text;
} layer_attribute;

struct tensor;

typedef struct layer {
    const char *kind, *name, *path; // path: of the module; "" unknown
    const char *op;                 // of an opaque layer
    layer_open open;
    struct layer *inputs[LAYER_INPUTS];
    uint32_t input_count;
    int64_t shape[ONNX_RANK]; // the batch first
    uint32_t rank;
    layer_attribute attributes[LAYER_ATTRIBUTES];
    uint32_t attribute_count;
    const onnx_tensor *params[ONNX_PARAMS];
    uint32_t param_count;
    const char *activation;
    bool bias, stored;                   // stored: the weight lies as [units, features]
    bool needs_bias;                     // of window attention: its output has to have one, as its inputs do
    int64_t units, from, count, classes; // classes: of an input of ids
    double factor, epsilon;
    const struct tensor *of;    // of an open layer
    const struct layer *centre; // of a mean: whose squares it is the mean of
    const numbers *table;
    struct scores *scores;
    struct heads *heads;
    const struct taken *taken;  // onnx_roll.c
    struct layer *views, *view; // reshapes of this one, and the next of those
    struct layer *moves, *move; // layers that give it in another order, and the next of those
    struct layer *next, *gone;  // gone: the layer that took it as its activation
    const struct layer *share;
    bool seen, transposed;
    uint32_t readers;
} layer;

typedef struct tensor {
    layer *layer;
    axes axes; // as they lie in memory, the batch first, none of size 1
    axes dims[ONNX_RANK];
    uint32_t rank;
} tensor;

typedef struct value {
    const numbers *numbers;
    const onnx_tensor *weight;
    tensor *tensor;
    bool twin; // an Identity of a weight: how an exporter writes one of equal values
} value;

typedef struct walk {
    onnx_graph *g;
    const onnx_node *node;
    value *values;
    onnx_node **makers;        // of each value; NULL: no node
    const onnx_value **shapes; // that the file says of each value, where it lets pass; NULL: it says none
    const char *batch_symbol;  // of the first input; "" where it has none
    bool walk_again;           // nodes were marked opaque that were read otherwise
    uint32_t *reads;           // of each value, how many nodes read it
    layer *first, **last;
    text notes;
    struct joined *joined; // onnx_concat.c
    bool takes_missing;    // whether the node in hand makes numbers of others without looking at them
    uint32_t folded_norms;
    int64_t fixed_batch; // which the file says; 0: a symbol
    // A sequence whose length the file leaves open: its name, NULL where there is none; the length it is read under, which no
    // other dimension is likely to have, and the one that model.sequence begins with.
    const char *open_sequence;
    int64_t sequence, sequence_begins;
    bool
        too_long; // that may be longer than a table of positions: if it is refused, a shorter one may be read
} walk;

// ---- values

// "node 'NAME' (OP): SENTENCE"
void *walk_refuse(walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void walk_note(walk *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The node's operand k; an empty value where it is left out.
value walk_value(walk *w, uint32_t k);
bool walk_has(const walk *w, uint32_t k);
// The operand as a tensor: of a weight, the parameter.
tensor *walk_tensor(walk *w, uint32_t k);
tensor *walk_tensor_of(walk *w, const value *v);
// As numbers, or NULL without a refusal: it depends on an input, or is a weight.
const numbers *walk_numbers(walk *w, uint32_t k);
// The same of small weights as well: a list of whole numbers or a single number. Refused where it is none.
const numbers *walk_needs_numbers(walk *w, uint32_t k);
// Refused where the values are in another file and it is not `otherwise`.
bool walk_is_known(walk *w, const numbers *n, bool otherwise);
bool onnx_is_single(const onnx_tensor *t); // one element
// A single number that v is all over; false where it is none.
bool walk_number(walk *w, const value *v, double *out);
bool walk_give(walk *w, uint32_t k, tensor *t);
bool walk_give_numbers(walk *w, uint32_t k, const numbers *n);

// ---- axes

int64_t axes_size(const axes *a);
int64_t dim_size(const tensor *t, uint32_t dim);
void tensor_shape(const tensor *t, int64_t shape[ONNX_RANK]);
bool axes_equal(const axes *a, const axes *b);
void axes_add(axes *a, mem_axis *x);
void axes_join(axes *a, const axes *b);
bool axes_have(const axes *a, const mem_axis *x);
uint32_t axes_place(const axes *a, const mem_axis *x); // a->count: it is none of them
mem_axis *axis_new(walk *w, int64_t size, bool copied);
tensor *tensor_new(walk *w, layer *l, uint32_t rank);
tensor *tensor_again(walk *w, const tensor *t);
// The axes in the order of dimensions.
axes tensor_axes(const tensor *t);
// Whether both are one layer's output under one view.
bool tensors_are_one(const tensor *a, const tensor *b);
bool tensor_is_expanded(const tensor *t);
// A tensor whose memory is the layer's output; order[k] is the place of dimension k in memory, NULL: as it lies.
tensor *tensor_plain(walk *w, layer *l, const uint32_t *order);

// ---- another order (onnx_order.c): t itself where it lies so already, else the output of a layer that moves it

// The axes in this order in memory.
const tensor *walk_moved(walk *w, const tensor *t, const axes *order);
// These axes last, whatever their order among themselves.
const tensor *walk_last(walk *w, const tensor *t, const axes *features);
// One axis for this dimension; t as it is where it has places that are only pretended.
const tensor *walk_whole(walk *w, const tensor *t, uint32_t dim);
// The layer whose output has the groups of axes as its dimensions, the batch first.
layer *walk_arrange(walk *w, const tensor *t, const axes *groups, uint32_t count);
layer *walk_arrange_dims(walk *w, const tensor *t);
layer *walk_image(walk *w, const tensor *t);
// The layer whose last dimension are these axes, whatever their order among themselves, and the axes before them. *t becomes
// the tensor that lies so.
layer *walk_rows(walk *w, const tensor **t, const axes *features, axes *head);

// ---- another shape (onnx_pieces.c)

// The same tensor under another shape; moved where it does not lie as that needs it.
tensor *tensor_pieces(walk *w, const tensor *t, uint32_t rank, const int64_t *shape);
// Both with the same axes in the same order in memory: the one that does not lie as its dimensions are is moved.
bool tensor_align(walk *w, const tensor **a, const tensor **b);
// Places from … from + count - 1 of a dimension.
tensor *tensor_piece(walk *w, tensor *x, uint32_t dim, int64_t from, int64_t count);

// ---- layers

layer *layer_new(walk *w, const char *kind, uint32_t rank, const int64_t *shape); // in no list
layer *walk_emit(walk *w, const char *kind, layer *input, uint32_t rank, const int64_t *shape);
void layer_param(walk *w, layer *l, const onnx_tensor *t);
void layer_whole(walk *w, layer *l, const char *key, int64_t what);
void layer_real(walk *w, layer *l, const char *key, double what);
void layer_word(walk *w, layer *l, const char *key, const char *what);
void layer_pair(walk *w, layer *l, const char *key, const int64_t *two);
const char *layer_attribute_text(const layer *l, const char *key); // NULL: it has none
// An open layer in x's place.
tensor *walk_open(walk *w, const tensor *x, layer_open open, const tensor *of);
bool walk_is_closed(walk *w, const tensor *x); // refused where it is open
layer *walk_reshaped(walk *w, layer *l, uint32_t rank, const int64_t *shape);
// A layer that changes neither shape nor order.
tensor *walk_alike(walk *w, const char *kind, const tensor *x);

#endif
