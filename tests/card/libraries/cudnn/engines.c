// SPDX-License-Identifier: Apache-2.0
// Engines of the emulated cuDNN. There are more than one needs to compute with, so that choosing is exercised:
//
//     0  tensor cores: float32 operands become TF32; two tiles, two workspaces
//     1  no tensor cores; one tile needs no workspace, and for some graphs that tile is not there
//     2  sums in no fixed order: weight gradients and backward attention
//     3  more workspace than any card has
//     4  compiled when it is first needed
#include "graph.h"

#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR

typedef struct engine_row {
    bool tensor_cores, in_any_order, compiled;
} engine_row;

static const engine_row engines[ENGINE_COUNT] = {
    {.tensor_cores = true},
    {.tensor_cores = false},
    {.tensor_cores = true, .in_any_order = true},
    {.tensor_cores = true},
    {.tensor_cores = true, .compiled = true},
};

static int32_t count_kind(const graph_data *p, cudnnBackendDescriptorType_t kind)
{
    int32_t count = 0;
    for (int32_t k = 0; k < p->node_count; k++) {
        count += p->node[k].kind == kind;
    }
    return count;
}

static bool sums_many(const graph_data *p)
{
    return count_kind(p, KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER)) > 0 ||
           count_kind(p, KIND(OPERATION_MATMUL)) > 2;
}

static bool is_attention(const graph_data *p)
{
    return count_kind(p, KIND(OPERATION_MATMUL)) > 1;
}

// Of everything that a graph is but its names.
static uint64_t hash_of(const graph_data *p)
{
    uint64_t hash = 1469598103934665603u; // FNV-1a
    for (int32_t k = 0; k < p->tensor_count; k++) {
        const graph_tensor *t = &p->tensor[k];
        hash = (hash ^ (uint64_t)t->type) * 1099511628211u;
        for (int32_t d = 0; d < t->rank; d++) {
            hash = (hash ^ (uint64_t)t->dim[d]) * 1099511628211u;
            hash = (hash ^ (uint64_t)t->stride[d]) * 1099511628211u;
        }
    }
    for (int32_t k = 0; k < p->node_count; k++) {
        hash = (hash ^ (uint64_t)p->node[k].kind) * 1099511628211u;
        hash = (hash ^ (uint64_t)p->node[k].mode) * 1099511628211u;
    }
    return hash ^ hash >> 29;
}

static bool is_half(const graph_tensor *t)
{
    return t->type == NUMBER_F16 || t->type == NUMBER_BF16;
}

// Streaming attention: two-byte types, heads of a multiple of eight features up to 256.
static cudnnStatus_t check_attention(const graph_data *p)
{
    for (int32_t k = 0; k < p->node_count; k++) {
        const graph_node *n = &p->node[k];
        if (n->kind != KIND(OPERATION_MATMUL)) {
            continue;
        }
        for (int32_t i = 0; i < n->in_count; i++) {
            const graph_tensor *t = &p->tensor[n->in[i]];
            if (!t->inside && (!is_half(t) || t->rank != 4)) {
                return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "attention takes two-byte types");
            }
            const int64_t a = t->dim[t->rank - 1], b = t->dim[t->rank - 2];
            if (!t->inside && ((a % 8 != 0 && b % 8 != 0) || (a > 256 && b > 256))) {
                return refuse(CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "attention takes heads of 8, 16, … 256");
            }
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_pattern(const graph_data *p)
{
    const int32_t convolutions = count_kind(p, KIND(OPERATION_CONVOLUTION_FORWARD)) +
                                 count_kind(p, KIND(OPERATION_CONVOLUTION_BACKWARD_DATA)) +
                                 count_kind(p, KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER));
    if (convolutions > 1 || (convolutions == 1 && count_kind(p, KIND(OPERATION_MATMUL)) > 0)) {
        return refuse(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "%d convolutions", (int)convolutions);
    }
    for (int32_t k = 0; k < p->tensor_count; k++) {
        if (p->tensor[k].type == NUMBER_NONE) {
            return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "the type of tensor %lld",
                          (long long)p->tensor[k].uid);
        }
    }
    return is_attention(p) ? check_attention(p) : CUDNN_STATUS_SUCCESS;
}

bool engine_serves(const graph_data *p, int64_t engine)
{
    return engine >= 0 && engine < ENGINE_COUNT && check_pattern(p) == CUDNN_STATUS_SUCCESS &&
           (!engines[engine].in_any_order || sums_many(p));
}

// The true one's answers about a card by its number are others than by its properties' text: engines that the text's lists do
// not have, and for some graphs more workspace, for others none.
static uint64_t first_workspace(uint64_t hash, bool on_card)
{
    const uint64_t by_text = 131 + 256 * (hash % 7);
    return !on_card ? by_text : hash % 2 == 0 ? 0 : 13 * by_text;
}

uint64_t engine_workspace(const graph_data *p, engine_choice choice, bool on_card)
{
    const uint64_t hash = hash_of(p);
    const uint64_t sums = 4 * (uint64_t)graph_elements(&p->tensor[p->node[p->node_count - 1].out]);
    switch (choice.engine) {
    case 0:
        return choice.tile == 0 ? first_workspace(hash, on_card) : 65536 + hash % 1000;
    case 1:
        return choice.tile == 0 ? 0 : sums + 1;
    case 2:
        return 16;
    case 3:
        return (uint64_t)1 << 42;
    default:
        return 1 << 20;
    }
}

cudnnStatus_t engines_choose(const graph_data *p, cudnnBackendHeurMode_t mode, bool on_card,
                             engine_choice choice[ENGINE_CHOICES_MAX], int32_t *count)
{
    static const engine_choice usual[2][7] = {{{3, 0}, {2, 0}, {0, 1}, {4, 0}, {0, 0}, {1, 1}, {1, 0}},
                                              {{3, 0}, {0, 0}, {1, 1}, {2, 0}, {0, 1}, {4, 0}, {1, 0}}};
    const engine_choice *order = usual[on_card];
    *count = 0;
    const cudnnStatus_t status = check_pattern(p);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const uint64_t hash = hash_of(p);
    for (size_t k = 0; k < sizeof usual[0] / sizeof *usual[0]; k++) {
        const bool last = order[k].engine == 1 && order[k].tile == 0;
        const bool wanted = mode == CUDNN_HEUR_MODE_FALLBACK ? order[k].engine == 1 : true;
        if (wanted && engine_serves(p, order[k].engine) && !(last && hash % 5 == 0) &&
            !(order[k].engine == 3 && hash % 2 == 0)) {
            choice[(*count)++] = order[k];
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

int32_t engine_numerical_notes(const graph_data *p, int64_t engine, cudnnBackendNumericalNote_t note[4])
{
    int32_t count = 0;
    if (engines[engine].tensor_cores) {
        note[count++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    }
    const graph_node *first = &p->node[0];
    if (engines[engine].tensor_cores && p->tensor[first->in[0]].type == NUMBER_F32) {
        note[count++] = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    }
    if (engines[engine].in_any_order) {
        note[count++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    return count;
}

int32_t engine_behavior_notes(int64_t engine, cudnnBackendBehaviorNote_t note[4])
{
    if (engines[engine].compiled) {
        note[0] = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    }
    return engines[engine].compiled ? 1 : 0;
}
