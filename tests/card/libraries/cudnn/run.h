// SPDX-License-Identifier: Apache-2.0
// How a graph of the emulated cuDNN is computed: literally, node after node. Every tensor is widened into an image of
// its memory, [0, extent) floats by its strides; sums are in double.
#ifndef CARD_CUDNN_RUN_H
#define CARD_CUDNN_RUN_H

#include "graph.h"

typedef struct image {
    const graph_tensor *shape;
    float *at;
    bool borrowed; // of the tensor that a reshape looks at
} image;

typedef struct runner {
    const graph_call *call;
    bool tf32;         // products round float32 operands
    bool in_any_order; // sums differ from run to run
    image image[GRAPH_TENSORS];
} runner;

// Walks all elements of a shape: index[] and where they lie. Begin with a zeroed cursor.
typedef struct cursor {
    int64_t index[CUDNN_DIM_MAX];
} cursor;

bool cursor_next(const graph_tensor *shape, cursor *c); // false: all were seen
// Where the cursor points in t, whose dimensions of 1 stand for all.
int64_t cursor_place(const graph_tensor *t, const cursor *c);

void run_convolution(const runner *r, const graph_node *n);
void run_matmul(const runner *r, const graph_node *n);
void run_pointwise(const runner *r, const graph_node *n);
void run_reduction(const runner *r, const graph_node *n);
void run_random(const runner *r, const graph_node *n);
// Zeros; the program ends when there is no host memory.
double *run_sums(int64_t count);
void run_sums_free(double *sum);
// What a sum becomes: nothing, or the last bit that another order of additions would change.
double run_shaken(const runner *r, double sum);
// An operand of a product as the engine takes it.
double run_operand(const runner *r, const image *t, int64_t place);

#endif
