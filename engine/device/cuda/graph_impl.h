// SPDX-License-Identifier: Apache-2.0
// Private to the files of the graph interface.
#ifndef DEVICE_CUDA_GRAPH_IMPL_H
#define DEVICE_CUDA_GRAPH_IMPL_H

#include <pthread.h>

#include "cudnn.h"
#include "engine_times.h"
#include "graph.h"
#include "graph_library.h"

// A graph's descriptors, destroyed together, last made first.
enum { GRAPH_PARTS_MAX = GRAPH_TENSORS_MAX + 2 * GRAPH_NODES_MAX + 1 };
typedef struct graph_parts {
    cudnnBackendDescriptor_t part[GRAPH_PARTS_MAX];
    uint32_t count;
} graph_parts;

// The finalized operation graph is the last part. DEVICE error when cuDNN does not know such a graph.
HR_MUST_CHECK hr_status graph_build(const graph_spec *spec, graph_parts *parts, hr_err *err);
void graph_parts_destroy(graph_parts *parts);
cudnnBackendDescriptor_t graph_of_parts(const graph_parts *parts);

typedef enum config_state { CONFIG_UNTRIED, CONFIG_PLANNED, CONFIG_REFUSED } config_state;

enum { GRAPH_REFUSAL_MAX = 160 };

typedef struct graph_config {
    cudnnBackendDescriptor_t descriptor;
    uint64_t workspace_bytes;
    int64_t engine;
    bool compiled, nondeterministic, tensor_cores, narrow_sums;
    bool narrow_inputs;            // it rounds them
    config_state state;            // has it become a plan?
    cudnnBackendDescriptor_t plan; // that runs, of every graph that is made of it; NULL: not made
} graph_config;

// What cuDNN says of one graph: mode A's configurations, then, when they were asked for, those of FALLBACK.
typedef struct graph_list {
    uint64_t key[2];
    graph_parts parts;
    graph_config *config;
    uint32_t count;
    bool fell_back;
    bool compiles, float32;          // of the graph: see graph.h; operands are float32
    uint32_t users;                  // graphs that run, made of it
    char refusal[GRAPH_REFUSAL_MAX]; // cuDNN's, of the last configuration that became no plan; "": none
} graph_list;

// Of workspace.search: what engines take, and what was done to know it.
typedef struct graph_search {
    bool wanted;
    cuda_device *card; // that engines are timed on; NULL: nowhere, only what is kept is used
    engine_times times;
    uint32_t measured, unmeasured; // graphs, since the library was opened
    uint64_t took_ns;
    bool unsaved;
    char refusal[GRAPH_REFUSAL_MAX]; // why one was not measured, or times are not kept; "": none
} graph_search;

struct graph_library {
    pthread_mutex_t lock;
    bool ready;    // cuDNN and properties are known, and its libraries are one
    hr_err reason; // why not
    graph_options options;
    cuda_properties properties;
    bool looked_at;                  // cuDNN's libraries have been, behind the first question
    cudnnBackendDescriptor_t device; // NULL until the first question
    cudnnHandle_t handle;            // NULL until the first plan that runs
    CUstream stream;                 // of handle
    bool bound;                      // handle has a stream
    graph_list **lists;
    uint32_t list_count, list_capacity;
    graph_search search;
};

// l->lock, and last words: a question may make cuDNN open more of its libraries.
void graph_enter(graph_library *l, last_words *w);
void graph_leave(graph_library *l, const last_words *w);

HR_MUST_CHECK hr_status graph_library_device(graph_library *l, hr_err *err); // makes l->device

// An attribute of a finalized descriptor, cudnnBackendGetAttribute.
HR_MUST_CHECK hr_status graph_get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                  void *values, hr_err *err);

// The graph's list, asked for once; the library's, good until the next call. Empty where cuDNN names no engine. l->lock is
// held.
HR_MUST_CHECK hr_status graph_list_of(graph_library *l, const graph_spec *spec, graph_list **out,
                                      hr_err *err);
// Adds what FALLBACK names, once.
HR_MUST_CHECK hr_status graph_list_fall_back(graph_library *l, graph_list *list, hr_err *err);
void graph_list_destroy(graph_list *list);

// The list and, in it, the configuration that graph_choose describes. l->lock is held.
HR_MUST_CHECK hr_status graph_find(graph_library *l, const graph_spec *spec, uint64_t limit_bytes,
                                   graph_list **list, uint32_t *position, hr_err *err);
// "eng36 k2=3".
void graph_config_name(const graph_config *c, char *name, size_t size);
// Of its engine's knobs and their values.
uint64_t graph_config_knobs(const graph_config *c);
// Makes c->plan, once: an engine that is compiled takes up to a second.
HR_MUST_CHECK hr_status graph_plan(graph_library *l, graph_list *list, graph_config *c, hr_err *err);

// ---- graph_search.c: l->lock is held but for open and close -----------------------------------------------------

HR_MUST_CHECK hr_status graph_search_open(graph_library *l, const graph_options *options, hr_err *err);
void graph_search_close(graph_library *l);
// Puts the fastest of a list first by what was measured of them, here or before; those without a time stay behind in the
// heuristics' order. What cannot be measured is counted, with the reason. NOMEM and DEVICE_LOST errors.
HR_MUST_CHECK hr_status graph_search_order(graph_library *l, const graph_spec *spec, graph_list *list,
                                           hr_err *err);

// ---- graphs while l->lock is held -------------------------------------------------------------------------------

// Of one configuration, whatever the limit. DEVICE error when it becomes no plan.
HR_MUST_CHECK hr_status graph_of_config(graph_library *l, const graph_spec *spec, graph_list *list,
                                        uint32_t position, graph **out, hr_err *err);
HR_MUST_CHECK hr_status graph_run_locked(graph *g, CUstream stream, const CUdeviceptr *address,
                                         CUdeviceptr workspace, hr_err *err);
void graph_drop(graph *g);

#endif
