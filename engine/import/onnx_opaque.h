// SPDX-License-Identifier: Apache-2.0
// Nodes that no layer of ours computes, where they may be let pass (graph.lets_pass).
#ifndef IMPORT_ONNX_OPAQUE_H
#define IMPORT_ONNX_OPAQUE_H

#include "onnx_walk.h"

// The node in hand as a layer of which only shapes are known, each output one of its own; refused where the file does not say them.
// With w->walk_again set, what is read so far is of no use: other nodes have been marked opaque.
bool onnx_take_opaque(walk *w);
// The same of a node that has just been refused, where that may be.
bool onnx_let_pass(walk *w);

#endif
