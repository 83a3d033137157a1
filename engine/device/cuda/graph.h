// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph API, as data: tensors and nodes go in, an engine with its workspace comes out, and later a plan that
// runs. What a graph needs is asked of cuDNN for the properties of a card: no card, no driver and no handle are needed
// for it, so a plan on a laptop and the run on the card ask the same question.
//
// Terms are cuDNN's: an engine configuration is one way to compute the graph; heuristics order them, best first.
//
// A graph with a convolution takes ready-made engines only: those that cuDNN compiles when the plan is made are seen only
// where a driver is, and a plan made elsewhere would be another. Other graphs (attention) have no ready-made ones.
#ifndef DEVICE_CUDA_GRAPH_H
#define DEVICE_CUDA_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_device.h"

enum {
    GRAPH_RANK_MAX = 5,
    GRAPH_TENSORS_MAX = 48,
    GRAPH_NODES_MAX = 32,
    GRAPH_OPERANDS_MAX = 4,
    GRAPH_NAME_MAX = 40,
    GRAPH_I64 = HR_DTYPE_COUNT // a type of seeds alone
};

typedef struct graph_tensor {
    uint32_t dtype; // hr_dtype; HR_I32 for indices, HR_U8 for what a comparison gives; GRAPH_I64
    uint8_t rank;
    bool inside;   // between two nodes: never in memory (cuDNN: virtual)
    bool by_value; // a float32 of the host
    float value;   // of by_value
    int64_t dim[GRAPH_RANK_MAX], stride[GRAPH_RANK_MAX]; // in elements; images are logical N, C, H, W
} graph_tensor;

typedef enum graph_kind {
    GRAPH_CONV,             // x, w → y
    GRAPH_CONV_BWD_DATA,    // dy, w → dx
    GRAPH_CONV_BWD_WEIGHTS, // x, dy → dw
    GRAPH_MATMUL,           // a, b → c
    GRAPH_POINTWISE, // a, [b], [c] → y; `mode` (cudnnPointwiseMode_t, forward ones); BINARY_SELECT: c ? a : b
    GRAPH_REDUCE,    // x → y; `mode` (cudnnReduceTensorOp_t)
    GRAPH_INDEX,     // x → y: the index on `axis` (pointwise GEN_INDEX)
    GRAPH_TRANSPOSE, // x → y: the same memory order, other dims (RESHAPE)
    GRAPH_RANDOM,    // seed, offset → y: ones with the probability `ones`, else zeros
    GRAPH_KIND_COUNT
} graph_kind;

typedef struct graph_node {
    graph_kind kind;
    uint8_t in[GRAPH_OPERANDS_MAX], out; // indices of tensors
    uint8_t in_count;
    int32_t mode, axis;
    float clip_low, clip_high; // pointwise RELU forward; high 0: none
    float ones;                // RANDOM
    int32_t spatial;           // convolutions: 2
    int64_t pad_before[2], pad_after[2], stride[2], dilation[2];
} graph_node;

typedef struct graph_spec {
    graph_tensor tensor[GRAPH_TENSORS_MAX];
    graph_node node[GRAPH_NODES_MAX];
    uint32_t tensor_count, node_count;
    bool as_named; // in the heuristics' order, also with workspace.search
} graph_spec;

typedef struct graph_choice {
    uint64_t workspace_bytes;
    uint32_t position; // in the heuristics' order, or that of measured times
    uint8_t behind;    // of those before it, how many only the limit kept from being taken; at most 255
    bool deterministic;
    bool none; // of graph_choose_named
    char name
        [GRAPH_NAME_MAX]; // "eng36 k2=3": engine and knobs that are not 0, as many as have room; for people
} graph_choice;

// The first engine in the heuristics' order (with workspace.search: in that of measured times) that obeys the limit and the device's knobs (tf32, deterministic) and sums in
// float32: so a smaller limit never gets a larger workspace, and the workspace that was given, taken as the limit, gets
// the same engine again. DEVICE error when there is none. Asks cuDNN once for a graph and a card (milliseconds, half a
// second the first time) and remembers its list while the device is open; what lasts longer is the target's memo
// (program/target.h). Thread-safe.
HR_MUST_CHECK hr_status graph_choose(cuda_device *device, const graph_spec *spec, uint64_t limit_bytes,
                                     graph_choice *out, hr_err *err);

// What PyTorch runs a convolution with that it has not timed (torch.backends.cudnn.benchmark off): the first engine that the
// heuristics name, within the limit, that becomes a plan, or else FALLBACK's; none that rounds its inputs, with `tf32`
// tensor cores for float32 too (ATen/native/cudnn/Conv_v8.cpp, filterEngineConfigs and run_single_conv). workspace_bytes is its
// plan's. None wants more than the card has. `spec` has `as_named`. Where cuDNN has no engine for it, with
// whatever workspace, `none` is all that is said; a DEVICE error is the limit's. Otherwise as graph_choose.
HR_MUST_CHECK hr_status graph_choose_named(cuda_device *device, const graph_spec *spec, bool tf32,
                                           uint64_t limit_bytes, graph_choice *out, hr_err *err);

typedef struct graph graph; // a plan that runs

// Makes the plan of what graph_choose gives for this limit; graphs that are alike share it. What does not become a plan on
// the card is passed over from then on, by graph_choose too. Not on a device that plans. The device must stay open until
// graph_destroy.
HR_MUST_CHECK hr_status graph_prepare(cuda_device *device, const graph_spec *spec, uint64_t limit_bytes,
                                      graph **out, hr_err *err);
const char *graph_name(const graph *g); // of the engine that its plan is made of, as graph_choice has it
void graph_destroy(graph *g);           // NULL is fine
// address[k] belongs to tensor k; unread for those inside and by value. Enqueues on the stream. The engine thread's: as
// long as addresses stay the same, nothing is made anew.
HR_MUST_CHECK hr_status graph_run(graph *g, CUstream stream, const CUdeviceptr *address,
                                  CUdeviceptr workspace, hr_err *err);

#endif
