// SPDX-License-Identifier: Apache-2.0
// An operation graph of the emulated cuDNN, read out of its descriptors into one flat block without pointers, so that
// enqueued work carries all of it; and what its engines are.
#ifndef CARD_CUDNN_GRAPH_H
#define CARD_CUDNN_GRAPH_H

#include "bag.h"

enum { GRAPH_TENSORS = 64, GRAPH_NODES = 48, GRAPH_OPERANDS = 3, GRAPH_SPATIAL = 3 };

typedef struct graph_tensor {
    int64_t uid, alignment;
    number type;
    int32_t rank;
    bool inside, by_value;
    int64_t dim[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX];
} graph_tensor;

typedef struct graph_node {
    cudnnBackendDescriptorType_t kind; // of the operation
    int32_t in_count, in[GRAPH_OPERANDS], out;
    int32_t mode; // pointwise or reduction
    int64_t axis;
    float alpha[2], beta;
    float low, high, slope; // RELU
    double ones;            // RNG: probability of a one
    bool flips;             // CUDNN_CONVOLUTION
    int64_t spatial, pre[GRAPH_SPATIAL], post[GRAPH_SPATIAL], stride[GRAPH_SPATIAL], dilation[GRAPH_SPATIAL];
} graph_node;

typedef struct graph_data {
    int32_t tensor_count, node_count;
    graph_tensor tensor[GRAPH_TENSORS];
    graph_node node[GRAPH_NODES]; // in an order in which they can run
} graph_data;

int64_t graph_elements(const graph_tensor *t);
int64_t graph_extent(const graph_tensor *t); // places from the first element to behind the last
// One node, its shapes checked: what finalizing an operation does.
cudnnStatus_t graph_check_operation(const bag *operation);
cudnnStatus_t graph_read(const bag *graph, graph_data *out);

// ---- engines ------------------------------------------------------------------------------------------------------

enum { ENGINE_COUNT = 5, ENGINE_CHOICES_MAX = 12 };

typedef struct engine_choice {
    int32_t engine, tile; // the knob TILE_SIZE: 0 or 1
} engine_choice;

// What the heuristics say of a graph, best first. NOT_SUPPORTED when no engine computes it.
cudnnStatus_t engines_choose(const graph_data *p, cudnnBackendHeurMode_t mode, bool on_card,
                             engine_choice choice[ENGINE_CHOICES_MAX], int32_t *count);
bool engine_serves(const graph_data *p, int64_t engine);
// `on_card`: asked of the card itself, by its number or a handle, and not of its properties' text.
uint64_t engine_workspace(const graph_data *p, engine_choice choice, bool on_card);
// Notes of an engine; returns how many.
int32_t engine_numerical_notes(const graph_data *p, int64_t engine, cudnnBackendNumericalNote_t note[4]);
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
// Does it name the card itself, in its own attributes?
bool names_card(const bag *b);
// The card's properties as JSON; returns their length, 0 without a card.
int properties_text(char *text, size_t size);
// The graph that heuristics, an engine, a configuration or a plan is of; the choice that a configuration is.
cudnnStatus_t graph_data_of(const bag *b, graph_data *out);
engine_choice engine_choice_of(const bag *config);
// What a configuration or a plan takes, of whom it was asked.
uint64_t workspace_of(const bag *b, const graph_data *p);

// ---- running ------------------------------------------------------------------------------------------------------

typedef struct graph_call {
    graph_data graph;
    engine_choice choice;
    void *data[GRAPH_TENSORS];
    float value[GRAPH_TENSORS]; // of those by value
    void *workspace;
    uint64_t workspace_bytes;
} graph_call;

void graph_run(void *call); // a graph_call

extern int handles; // that were made and are not gone
// Around what uses a handle. False, for good, once two threads have used one at a time.
bool handle_take(void);
void handle_leave(void);

#endif
