// SPDX-License-Identifier: Apache-2.0
// What a device has of cuDNN: the properties of its card, and what cuDNN said about graphs. Opening it opens cuDNN, but
// asks nothing: answers that are remembered elsewhere cost no more.
#ifndef DEVICE_CUDA_GRAPH_LIBRARY_H
#define DEVICE_CUDA_GRAPH_LIBRARY_H

#include "properties.h"

typedef struct graph_options {
    const cuda_properties
        *properties; // of a card that is not there; NULL: of the one that is, or nobody knows
    bool card;       // there is one; its context is current, but where nothing will run
    int32_t ordinal; // of it
    bool tf32, deterministic;
} graph_options;

typedef struct graph_library graph_library;

// Without cuDNN, or without anybody's properties, it opens all the same: every graph then has no engine, and the sentence
// says why. NOMEM errors only.
HR_MUST_CHECK hr_status graph_library_open(const graph_options *options, graph_library **out, hr_err *err);
void graph_library_close(graph_library *l); // NULL is fine
// Of everything that answers depend on: version, properties, knobs.
uint64_t graph_library_key(const graph_library *l);
// "cuDNN 9.19.0", or "no cuDNN".
void graph_library_words(const graph_library *l, char *text, size_t size);
// The properties as cuDNN gives them of the card that is there. DEVICE error without one.
HR_MUST_CHECK hr_status graph_library_property_text(graph_library *l, char text[CUDA_PROPERTIES_MAX],
                                                    hr_err *err);
// The same, read.
HR_MUST_CHECK hr_status graph_library_properties(graph_library *l, cuda_properties *out, hr_err *err);

graph_library *cuda_device_graphs(cuda_device *device); // device.c

#endif
