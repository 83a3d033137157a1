// SPDX-License-Identifier: Apache-2.0
// What a device has of cuDNN: the properties of its card, and what cuDNN said about graphs. Opening it opens cuDNN, but
// asks nothing: answers that are remembered elsewhere cost no more.
#ifndef DEVICE_CUDA_GRAPH_LIBRARY_H
#define DEVICE_CUDA_GRAPH_LIBRARY_H

#include "properties.h"

typedef struct graph_options {
    const cuda_properties *properties; // of a card that is not there; NULL: of the one that is, or unknown
    bool card;                         // there is one; its context is current, but where nothing will run
    int32_t ordinal;                   // of it
    bool tf32, deterministic;
    bool search;            // the fastest engine by measured times, not the heuristics' first
    cuda_device *search_on; // engines without a time are timed on it; NULL: they are not
    const char *title;      // of the card, "NVIDIA H200"; `search` needs both
    const cuda_traits *traits;
    const char *properties_path; // beside which times may lie; NULL: nowhere
} graph_options;

typedef struct graph_library graph_library;

// Without cuDNN or properties of a card it opens all the same: every graph then has no engine, and the sentence
// says why. NOMEM errors; with `search` READ and PRESET, where times are kept that cannot be read.
HR_MUST_CHECK hr_status graph_library_open(const graph_options *options, graph_library **out, hr_err *err);
void graph_library_close(graph_library *l); // NULL is fine
// Does cuDNN answer, as far as can be known before the first question?
bool graph_library_is_ready(const graph_library *l);
// Of everything that answers depend on: version, properties, knobs.
uint64_t graph_library_key(const graph_library *l);
// "cuDNN 9.19.0", or "no cuDNN".
void graph_library_words(const graph_library *l, char *text, size_t size);
// The properties as cuDNN gives them of the card that is there. DEVICE error without one.
HR_MUST_CHECK hr_status graph_library_property_text(graph_library *l, char text[CUDA_PROPERTIES_MAX],
                                                    hr_err *err);
// The same, read.
HR_MUST_CHECK hr_status graph_library_properties(graph_library *l, cuda_properties *out, hr_err *err);

// What became of `search`.
void graph_library_searched(graph_library *l, device_search *out);
// Have kept times changed since it was opened?
bool graph_library_outdated(const graph_library *l);
// Writes times that are not kept yet; what keeps it from that is told by graph_library_searched.
void graph_library_keep(graph_library *l);

graph_library *cuda_device_graphs(cuda_device *device); // device.c

#endif
