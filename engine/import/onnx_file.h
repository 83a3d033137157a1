// SPDX-License-Identifier: Apache-2.0
// An ONNX file of strangers as a graph: nodes, their attributes, inputs, and of each weight name, type and shape. What a
// weight holds stays in the file; where it lies there is kept, so that small tensors of numbers (shapes, masks) can be read
// when they are needed (onnx_numbers.h). External data are never opened. Field numbers are those of onnx.proto3 (ONNX 1.x).
//
// Limits: what a graph takes of host memory and its count of nodes; texts longer than ONNX_NAME are cut, values with longer names refused.
#ifndef IMPORT_ONNX_FILE_H
#define IMPORT_ONNX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/host_mem.h"
#include "base/intern.h"

enum { ONNX_RANK = 8, ONNX_NODES = 65536, ONNX_NAME = 200, ONNX_LIST = 4096 };
#define ONNX_DIM_MAX (INT64_C(1) << 40) // of one dimension, and elements of one tensor
#define ONNX_NOTHING UINT32_MAX         // an operand that is left out

typedef enum onnx_type {
    ONNX_FLOAT = 1,
    ONNX_UINT8,
    ONNX_INT8,
    ONNX_UINT16,
    ONNX_INT16,
    ONNX_INT32,
    ONNX_INT64,
    ONNX_STRING,
    ONNX_BOOL,
    ONNX_FLOAT16,
    ONNX_DOUBLE,
    ONNX_UINT32,
    ONNX_UINT64,
    ONNX_BFLOAT16 = 16
} onnx_type;

typedef struct onnx_tensor {
    const char *name;
    int64_t dims[ONNX_RANK];
    uint32_t rank;
    int32_t type;
    uint32_t number;    // among the tensors of the file
    uint32_t field;     // of TensorProto, which holds the values; 0: none
    bool external;      // the values are in another file
    uint64_t at, bytes; // where they lie in this one
} onnx_tensor;

typedef struct onnx_attribute {
    const char *name, *word; // word: of an attribute that is a text
    double real;
    int64_t whole;
    int64_t *wholes;
    uint32_t count; // of wholes
    onnx_tensor *tensor;
    bool graph; // a graph of its own
} onnx_attribute;

typedef struct onnx_node {
    const char *name, *op, *domain;
    uint32_t *inputs, *outputs; // values, by number; ONNX_NOTHING
    uint32_t input_count, output_count, attribute_count;
    onnx_attribute *attributes;
    bool opaque; // it is to be let pass, whatever it is
    struct onnx_node *next;
} onnx_node;

typedef struct onnx_value {
    const char *name;
    uint32_t value;
    int32_t type;
    uint32_t rank;
    int64_t dims[ONNX_RANK];        // -1: see symbols
    const char *symbols[ONNX_RANK]; // "" where it has not even a name
    bool has_shape;
    struct onnx_value *next;
} onnx_value;

typedef struct onnx_weight {
    onnx_tensor tensor;
    uint32_t value; // ONNX_NOTHING: without a name
    struct onnx_weight *next;
} onnx_weight;

typedef struct onnx_graph {
    const char *path; // borrowed
    int fd;
    uint64_t file_bytes;
    arena memory;
    size_t used_bytes; // of memory
    int64_t work;      // elements that were computed with (onnx_numbers.h)
    intern values;
    const char *producer;
    int64_t opset; // of ONNX's own operators; 0: none is said
    onnx_node *nodes;
    onnx_value *inputs, *outputs;
    onnx_value *shapes; // of other values, where lets_pass
    onnx_weight *weights;
    uint32_t node_count, weight_count, tensor_count;
    bool has_graph;
    bool at_node;     // a node was refused, not the file
    bool lets_pass;   // what no layer computes is opaque (onnx_opaque.h)
    hr_status status; // of the first failure
    hr_err *err;
} onnx_graph;

// READ error when the file cannot be read; PRESET error where it is no ONNX file, is cut, or is beyond a limit; NOMEM.
// onnx_close in every case.
HR_MUST_CHECK hr_status onnx_open(const char *path, bool lets_pass, onnx_graph *out, hr_err *err);
void onnx_close(onnx_graph *g);

// Memory that lives as long as the graph, zeroed. NULL with g->status set, when there is none or the limit is reached.
void *onnx_take(onnx_graph *g, size_t count, size_t size);
char *onnx_print(onnx_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "PATH: SENTENCE" as a PRESET error, where nothing failed before.
void onnx_refuse(onnx_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

const onnx_attribute *onnx_find(const onnx_node *node, const char *name); // NULL: it is not written
int64_t onnx_whole(const onnx_node *node, const char *name, int64_t otherwise);
double onnx_real(const onnx_node *node, const char *name, double otherwise);

#endif
