// SPDX-License-Identifier: Apache-2.0
// What is known of attention before it is a layer: scores on their way to a softmax, and heads on their way to the dense layer
// behind them (onnx_attention.c); of windows of an image, how these lie in it (onnx_window.c).
#ifndef IMPORT_ONNX_SCORES_H
#define IMPORT_ONNX_SCORES_H

#include "onnx_walk.h"

// Windows of h by w pixels, `down` below one another and `across` beside one another; h 0: there are none.
typedef struct windows {
    int64_t h, w, down, across;
    int64_t shift[2]; // by which the image was rolled up and to the left before it was cut
    bool biased;      // scores have a bias by where two pixels stand to one another
    const onnx_tensor *table;
} windows;

typedef struct scores {
    tensor *q, *k; // NULL: changed otherwise than here
    double scale, dropout;
    bool causal, softmax;
    windows windows; // where they are biased
} scores;

// What one of queries, keys and values comes from.
typedef struct projection {
    layer *dense;
    const layer *norm;
    int64_t heads;
    double factor, rotary;
} projection;

typedef struct heads {
    projection of[3];
    int64_t heads, kv_heads, head_dim;
    bool causal, streams;
    double dropout, scale; // scale: of scores; 0: 1 over the root of head_dim
    windows windows;
} heads;

// [batch, heads, places, features], also where batch and heads are one dimension.
tensor *scores_by_head(walk *w, const tensor *x);
// The same scores, changed.
tensor *scores_changed(walk *w, const tensor *x, const scores *to);

// ---- onnx_window.c

// How the windows lie whose pixels are the places of [windows, heads, places, features]; false: they are none.
bool windows_find(const tensor *x, windows *out);
// Biased scores and a mask of [1, windows, 1, places, places]
tensor *windows_masked(walk *w, const tensor *x, const numbers *hidden);
// A tensor that lies as an image of windows of heads.
tensor *windows_heads(walk *w, const heads *h);
tensor *windows_closed(walk *w, const tensor *x, int64_t units, const onnx_tensor *weight);

#endif
