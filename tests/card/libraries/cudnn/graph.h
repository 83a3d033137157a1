// SPDX-License-Identifier: Apache-2.0
// An operation graph of the emulated cuDNN, read out of its descriptors into one flat block without pointers, so that
// enqueued work carries all of it; and what its engines are.
#ifndef CARD_CUDNN_GRAPH_H
#define CARD_CUDNN_GRAPH_H

#include "bag.h"

enum { PICTURE_TENSORS = 64, PICTURE_NODES = 48, PICTURE_OPERANDS = 3, PICTURE_SPATIAL = 3 };

typedef struct picture_tensor {
    int64_t uid, alignment;
    number type;
    int32_t rank;
    bool inside, by_value;
    int64_t dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
} picture_tensor;

typedef struct picture_node {
    cudnnBackendDescriptorType_t kind; // of the operation
    int32_t in_count, in[PICTURE_OPERANDS], out;
    int32_t mode; // pointwise or reduction
    int64_t axis;
    float alpha[2], beta;
    float low, high, slope; // RELU
    double ones;            // RNG: probability of a one
    bool flips;             // CUDNN_CONVOLUTION
    int64_t spatial, pre[PICTURE_SPATIAL], post[PICTURE_SPATIAL], stride[PICTURE_SPATIAL],
        dilation[PICTURE_SPATIAL];
} picture_node;

typedef struct picture {
    int32_t tensor_count, node_count;
    picture_tensor tensor[PICTURE_TENSORS];
    picture_node node[PICTURE_NODES]; // in an order in which they can run
} picture;

int64_t picture_elements(const picture_tensor *t);
int64_t picture_extent(const picture_tensor *t); // places from the first element to behind the last
// One node, its shapes checked: what finalizing an operation does.
cudnnStatus_t picture_check_operation(const bag *operation);
cudnnStatus_t picture_read(const bag *graph, picture *out);

// ---- engines ------------------------------------------------------------------------------------------------------

enum { ENGINE_COUNT = 5, ENGINE_CHOICES_MAX = 12 };

typedef struct engine_choice {
    int32_t engine, tile; // the knob TILE_SIZE: 0 or 1
} engine_choice;

// What the heuristics say of a graph, best first. NOT_SUPPORTED when no engine computes it.
cudnnStatus_t engines_choose(const picture *p, cudnnBackendHeurMode_t mode,
                             engine_choice choice[ENGINE_CHOICES_MAX], int32_t *count);
bool engine_serves(const picture *p, int64_t engine);
uint64_t engine_workspace(const picture *p, engine_choice choice);
// Notes of an engine; returns how many.
int32_t engine_numerical_notes(const picture *p, int64_t engine, cudnnBackendNumericalNote_t note[4]);
int32_t engine_behavior_notes(int64_t engine, cudnnBackendBehaviorNote_t note[4]);

// ---- descriptors --------------------------------------------------------------------------------------------------

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const cudnnStatus_t tried = (call);                                                                  \
        if (tried != CUDNN_STATUS_SUCCESS) {                                                                 \
            return tried;                                                                                    \
        }                                                                                                    \
    } while (0)

cudnnStatus_t finalize_check(bag *b);
// The card's properties as JSON; returns their length, 0 without a card.
int properties_text(char *text, size_t size);
// The graph that heuristics, an engine, a configuration or a plan is of; the choice that a configuration is.
cudnnStatus_t picture_of(const bag *b, picture *out);
engine_choice engine_choice_of(const bag *config);

// ---- running ------------------------------------------------------------------------------------------------------

typedef struct picture_call {
    picture graph;
    engine_choice choice;
    void *data[PICTURE_TENSORS];
    float value[PICTURE_TENSORS]; // of those by value
    void *workspace;
    uint64_t workspace_bytes;
} picture_call;

void picture_run(void *call); // a picture_call

extern int handles; // that were made and are not gone
// Around what uses a handle. False, for good, once two threads have used one at a time.
bool handle_take(void);
void handle_leave(void);

#endif
