// SPDX-License-Identifier: Apache-2.0
#include "insight/calibrate_programs.h"

static const char images[] =
    "model:\n"
    "  name: images\n"
    "  input: {shape: [32, 32, 3]}\n"
    "  classes: 10\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 32, kernel: 3, padding: 1}\n"
    "    - {name: stem_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: same, kind: conv2d, filters: 32, kernel: 3, padding: 1}\n"
    "    - {name: same_bn, kind: batch_norm}\n"
    "    - {name: sum, kind: add, inputs: [stem_bn, previous], activation: relu}\n"
    "    - {name: pool, kind: max_pool, size: 2}\n"
    "    - {name: wide, kind: conv2d, filters: 96, kernel: 3, padding: 1}\n"
    "    - {name: wide_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: down, kind: conv2d, filters: 128, kernel: 3, stride: 2, padding: 1}\n"
    "    - {name: down_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: mix, kind: conv2d, filters: 256, kernel: 1}\n"
    "    - {name: mix_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: last, kind: conv2d, filters: 128, kernel: 3, padding: 1}\n"
    "    - {name: last_act, kind: gelu}\n"
    "    - {kind: global_avg_pool}\n"
    "    - {kind: dense, units: 10}\n";

// Many channels on small maps: large weights, and little room for tiles.
static const char deep[] = "model:\n"
                           "  name: deep\n"
                           "  input: {shape: [28, 28, 64]}\n"
                           "  classes: 10\n"
                           "  loss: softmax_cross_entropy\n"
                           "  layers:\n"
                           "    - {kind: conv2d, filters: 128, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 256, kernel: 3, stride: 2, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 256, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 512, kernel: 3, stride: 2, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 512, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: global_avg_pool}\n"
                           "    - {kind: dense, units: 10}\n";

static const char depthwise[] = "model:\n"
                                "  name: depthwise\n"
                                "  input: {shape: [48, 48, 3]}\n"
                                "  classes: 10\n"
                                "  loss: softmax_cross_entropy\n"
                                "  layers:\n"
                                "    - {kind: conv2d, filters: 24, kernel: 3, stride: 2, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: conv2d, filters: 96, kernel: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, stride: 2, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: conv2d, filters: 64, kernel: 1}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, padding: 1}\n"
                                "    - {kind: batch_norm}\n"
                                "    - {kind: global_avg_pool}\n"
                                "    - {kind: dense, units: 10}\n";

#define SEQUENCE(name_, form_)                                                                               \
    "model:\n"                                                                                               \
    "  name: " name_ "\n"                                                                                    \
    "  input: {type: int32, classes: 4096, shape: [128]}\n"                                                  \
    "  classes: 4096\n"                                                                                      \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  defaults:\n"                                                                                          \
    "    attention: {heads: 4, causal: true, form: " form_ "}\n"                                             \
    "  layers:\n"                                                                                            \
    "    - {name: wte, kind: embedding, units: 256}\n"                                                       \
    "    - {name: wpe, kind: position_embedding}\n"                                                          \
    "    - {name: ln1, kind: layer_norm}\n"                                                                  \
    "    - {name: attn, kind: attention}\n"                                                                  \
    "    - {name: mid, kind: add, inputs: [wpe, previous]}\n"                                                \
    "    - {name: ln2, kind: layer_norm}\n"                                                                  \
    "    - {name: fc, kind: dense, units: 1024, activation: gelu_tanh}\n"                                    \
    "    - {name: proj, kind: dense, units: 256}\n"                                                          \
    "    - {name: drop, kind: dropout, rate: 0.1}\n"                                                         \
    "    - {name: out, kind: add, inputs: [mid, previous]}\n"                                                \
    "    - {name: head, kind: dense, units: 4096, bias: false, transpose: true, share: wte}\n"

static const char streaming[] = SEQUENCE("streaming", "streaming");
static const char materialised[] = SEQUENCE("materialised", "materialised");

static const char dense[] = "model:\n"
                            "  name: dense\n"
                            "  input: {shape: [784]}\n"
                            "  classes: 10\n"
                            "  loss: softmax_cross_entropy\n"
                            "  layers:\n"
                            "    - {kind: dense, units: 1024, activation: relu}\n"
                            "    - {kind: dense, units: 1024, activation: relu}\n"
                            "    - {kind: dense, units: 128, activation: tanh}\n"
                            "    - {kind: dense, units: 10}\n";

// A transformer as Llama is one, narrow.
static const char gated[] = "model:\n"
                            "  name: gated\n"
                            "  input: {type: int32, classes: 128, shape: [16]}\n"
                            "  classes: 128\n"
                            "  loss: softmax_cross_entropy\n"
                            "  defaults:\n"
                            "    dense: {bias: false}\n"
                            "    attention: {heads: 4, kv_heads: 2, rotary: 1e4, causal: true, bias: false}\n"
                            "  layers:\n"
                            "    - {name: wte, kind: embedding, units: 32}\n"
                            "    - {name: n1, kind: rms_norm}\n"
                            "    - {name: attn, kind: attention}\n"
                            "    - {name: mid, kind: add, inputs: [wte, previous]}\n"
                            "    - {name: n2, kind: rms_norm}\n"
                            "    - {name: gate, kind: dense, units: 64, activation: silu}\n"
                            "    - {name: up, kind: dense, units: 64, input: n2}\n"
                            "    - {name: product, kind: multiply, inputs: [gate, previous]}\n"
                            "    - {name: down, kind: dense, units: 32}\n"
                            "    - {name: out, kind: add, inputs: [mid, previous]}\n"
                            "    - {name: head, kind: dense, units: 128, transpose: true, share: wte}\n";

static const char experts[] = "model:\n"
                              "  name: experts\n"
                              "  input: {type: int32, classes: 64, shape: [16]}\n"
                              "  classes: 64\n"
                              "  loss: softmax_cross_entropy\n"
                              "  layers:\n"
                              "    - {name: wte, kind: embedding, units: 32}\n"
                              "    - {name: n1, kind: rms_norm}\n"
                              "    - {name: mix, kind: mixture_of_experts, units: 64, experts: 4, top_k: 2,\n"
                              "       capacity_factor: 1.25, balance: 0.02, activation: silu}\n"
                              "    - {name: out, kind: add, inputs: [wte, previous]}\n"
                              "    - {name: n2, kind: layer_norm}\n"
                              "    - {name: head, kind: dense, units: 64}\n";

static const char recurrent[] = "model:\n"
                                "  name: recurrent\n"
                                "  input: {type: int32, classes: 256, shape: [24]}\n"
                                "  classes: 256\n"
                                "  loss: softmax_cross_entropy\n"
                                "  layers:\n"
                                "    - {kind: embedding, units: 48}\n"
                                "    - {kind: dropout, rate: 0.5}\n"
                                "    - {kind: lstm, units: 48}\n"
                                "    - {kind: lstm, units: 96}\n"
                                "    - {kind: dense, units: 256}\n";

// What small networks of phones have, few channels on maps that are large beside them.
static const char narrow[] =
    "model:\n"
    "  name: narrow\n"
    "  input: {shape: [48, 48, 3]}\n"
    "  classes: 10\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 8, kernel: 3, stride: 2, padding: 1}\n"
    "    - {name: stem_bn, kind: batch_norm, activation: hard_swish}\n"
    "    - {name: up, kind: conv2d, filters: 32, kernel: 1}\n"
    "    - {name: up_bn, kind: batch_norm, activation: relu6}\n"
    "    - {name: deep, kind: depthwise_conv2d, kernel: 5, padding: 2}\n"
    "    - {name: deep_bn, kind: batch_norm, activation: silu}\n"
    "    - {name: squeeze, kind: global_avg_pool}\n"
    "    - {name: reduce, kind: dense, units: 8, activation: relu}\n"
    "    - {name: gate, kind: dense, units: 32, activation: sigmoid}\n"
    "    - {name: scale, kind: multiply, inputs: [deep_bn, gate]}\n"
    "    - {name: down, kind: conv2d, filters: 16, kernel: 1}\n"
    "    - {name: down_bn, kind: batch_norm}\n"
    "    - {name: same, kind: conv2d, filters: 16, kernel: 3, padding: 1}\n"
    "    - {name: same_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: both, kind: concat, inputs: [down_bn, same_bn]}\n"
    "    - {name: pool, kind: avg_pool, size: 2}\n"
    "    - {name: groups, kind: conv2d, filters: 32, kernel: 3, padding: 1, groups: 4}\n"
    "    - {name: groups_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: less, kind: max_pool, size: 2}\n"
    "    - {name: wide, kind: conv2d, filters: 48, kernel: 3, padding: 1}\n"
    "    - {name: wide_act, kind: gelu}\n"
    "    - {kind: global_avg_pool}\n"
    "    - {kind: dense, units: 10}\n";

// A class for every pixel.
static const char pixels[] = "model:\n"
                             "  name: pixels\n"
                             "  input: {shape: [24, 24, 3]}\n"
                             "  labels: {type: uint8, classes: 3}\n"
                             "  loss: softmax_cross_entropy\n"
                             "  layers:\n"
                             "    - {name: high, kind: conv2d, filters: 8, kernel: 3, padding: 1}\n"
                             "    - {name: high_bn, kind: batch_norm, activation: relu}\n"
                             "    - {name: down, kind: max_pool, size: 2}\n"
                             "    - {name: low, kind: conv2d, filters: 16, kernel: 3, padding: 1}\n"
                             "    - {name: low_bn, kind: batch_norm, activation: relu}\n"
                             "    - {name: up, kind: conv2d_transpose, filters: 8, kernel: 2, stride: 2}\n"
                             "    - {name: both, kind: concat, inputs: [high_bn, up]}\n"
                             "    - {name: mix, kind: conv2d, filters: 4, kernel: 3, padding: 1}\n"
                             "    - {name: mix_bn, kind: batch_norm, activation: relu}\n"
                             "    - {name: out, kind: conv2d, filters: 3, kernel: 1}\n";

// Attention in windows, whose scores are kept.
static const char windows[] = "model:\n"
                              "  name: windows\n"
                              "  input: {shape: [32, 32, 3]}\n"
                              "  classes: 10\n"
                              "  loss: softmax_cross_entropy\n"
                              "  layers:\n"
                              "    - {name: patches, kind: conv2d, filters: 16, kernel: 2, stride: 2}\n"
                              "    - {name: norm1, kind: layer_norm}\n"
                              "    - {name: roll, kind: roll, shift: -2}\n"
                              "    - {name: attention, kind: window_attention, size: 4, heads: 4, shift: 2}\n"
                              "    - {name: back, kind: roll, shift: 2}\n"
                              "    - {name: sum, kind: add, inputs: [previous, patches]}\n"
                              "    - {name: wide, kind: dense, units: 64, activation: gelu_tanh}\n"
                              "    - {name: narrow, kind: dense, units: 16}\n"
                              "    - {name: out, kind: add, inputs: [previous, sum]}\n"
                              "    - {name: merge, kind: patch_merging, size: 2}\n"
                              "    - {name: less, kind: dense, units: 32, bias: false}\n"
                              "    - {name: norm2, kind: layer_norm}\n"
                              "    - {name: again, kind: window_attention, size: 4, heads: 4}\n"
                              "    - {kind: global_avg_pool}\n"
                              "    - {kind: dense, units: 10}\n";

// Small and large batches: the first show what it costs to start, the last what it costs to go on.
const calibration_program calibration_programs[CALIBRATION_MODELS] = {
    {"images", images, 1, "momentum"},
    {"images", images, 6, "sgd"},
    {"images", images, 24, "adam"},
    {"deep", deep, 1, "momentum"},
    {"deep", deep, 2, "sgd"},
    {"deep", deep, 5, "adam"},
    {"depthwise", depthwise, 2, "adam"},
    {"depthwise", depthwise, 8, "sgd"},
    {"depthwise", depthwise, 32, "momentum"},
    {"narrow", narrow, 1, "adamw"},
    {"narrow", narrow, 6, "sgd"},
    {"narrow", narrow, 32, "momentum"},
    {"pixels", pixels, 1, "adam"},
    {"pixels", pixels, 8, "sgd"},
    {"pixels", pixels, 48, "momentum"},
    {"streaming", streaming, 1, "adam"},
    {"streaming", streaming, 2, "sgd"},
    {"streaming", streaming, 4, "adamw"},
    {"materialised", materialised, 1, "lion"},
    {"materialised", materialised, 2, "rmsprop"},
    {"materialised", materialised, 4, "adam"},
    {"windows", windows, 1, "sgd"},
    {"windows", windows, 6, "momentum"},
    {"windows", windows, 24, "adamw"},
    {"gated", gated, 1, "adamw"},
    {"gated", gated, 8, "sgd"},
    {"gated", gated, 48, "momentum"},
    {"experts", experts, 1, "adam"},
    {"experts", experts, 8, "sgd"},
    {"experts", experts, 48, "adamw"},
    {"recurrent", recurrent, 1, "rmsprop"},
    {"recurrent", recurrent, 6, "momentum"},
    {"recurrent", recurrent, 24, "lion"},
    {"dense", dense, 4, "sgd"},
    {"dense", dense, 32, "momentum"},
    {"dense", dense, 192, "adam"},
};
const char *const calibration_policies[RATE_WIDTHS] = {"float32", "mixed_bfloat16"};
const char *const calibration_types[RATE_WIDTHS] = {"float32", "bfloat16"};
