// SPDX-License-Identifier: Apache-2.0
// What the cases of op_cases are drawn with: one file per family of operations, one row per operation in op_cases.c.
#ifndef TESTS_OP_DRAW_H
#define TESTS_OP_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "numeric/op_harness.h"

enum { OP_DRAW_LANES = 16 };

typedef struct op_draw {
    uint64_t state;
    int64_t size; // of what is small; channels go up to twice that
    bool wide;    // channels in multiples of OP_DRAW_LANES
} op_draw;

// The size at which central differences are drawn: each element is two runs, and what only a device's blocks need is left out.
enum { OP_DRAW_DIFFERENCES = 3 };

// A trial of `op`, ready to run.
typedef op_trial (*op_draw_case)(hr_op op, op_draw *d);

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

int64_t op_draw_int(op_draw *d, int64_t low, int64_t high); // both inclusive
int64_t op_draw_channels(op_draw *d, int64_t largest);      // at least one
// Sides of an image [N,H,W,C], or, with `rank`, of x[...,C]; returns dims.
const int64_t *op_draw_image(op_draw *d, int64_t dims[OP_MAX_RANK]);
const int64_t *op_draw_rows(op_draw *d, uint32_t rank, int64_t features, int64_t dims[OP_MAX_RANK]);
// Appends a float64 input with values in [low, high).
void op_draw_in(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low, double high);
// Appends int32 numbers in [low, high], both inclusive.
void op_draw_numbers(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], int64_t low, int64_t high);
// A window that meets an image of h by w at least once, padded by less than itself.
op_attr op_draw_window(uint64_t *state, int64_t h, int64_t w, int64_t largest);

op_trial op_case_concat(hr_op op, op_draw *d);
op_trial op_case_slice(hr_op op, op_draw *d);
op_trial op_case_stack(hr_op op, op_draw *d);
op_trial op_case_reduce(hr_op op, op_draw *d);
op_trial op_case_zeros(hr_op op, op_draw *d);
op_trial op_case_resized(hr_op op, op_draw *d);
op_trial op_case_bilinear(hr_op op, op_draw *d);
op_trial op_case_permute(hr_op op, op_draw *d);
op_trial op_case_roll(hr_op op, op_draw *d);
op_trial op_case_avg_pool(hr_op op, op_draw *d);
op_trial op_case_transposed(hr_op op, op_draw *d);
op_trial op_case_relu6(hr_op op, op_draw *d);
op_trial op_case_product(hr_op op, op_draw *d);
op_trial op_case_factor(hr_op op, op_draw *d);
op_trial op_case_loss(hr_op op, op_draw *d);
op_trial op_case_binary(hr_op op, op_draw *d);

op_trial op_case_norm_of_rows(hr_op op, op_draw *d);
op_trial op_case_activation(hr_op op, op_draw *d);
op_trial op_case_embedding(hr_op op, op_draw *d);
op_trial op_case_repetition(hr_op op, op_draw *d);
op_trial op_case_matmul(hr_op op, op_draw *d);
op_trial op_case_softmax(hr_op op, op_draw *d);
op_trial op_case_attention(hr_op op, op_draw *d);
op_trial op_case_rotary(hr_op op, op_draw *d);
op_trial op_case_group_norm(hr_op op, op_draw *d);
op_trial op_case_relative(hr_op op, op_draw *d);
op_trial op_case_dropout(hr_op op, op_draw *d);
op_trial op_case_drop_path(hr_op op, op_draw *d);
op_trial op_case_fake_quant(hr_op op, op_draw *d);
op_trial op_case_update(hr_op op, op_draw *d);
op_trial op_case_adafactor(hr_op op, op_draw *d);
op_trial op_case_adam8bit(hr_op op, op_draw *d);
op_trial op_case_around_update(hr_op op, op_draw *d);
op_trial op_case_prune(hr_op op, op_draw *d);
op_trial op_case_prune_channels(hr_op op, op_draw *d);
op_trial op_case_lstm(hr_op op, op_draw *d);
op_trial op_case_gru(hr_op op, op_draw *d);
op_trial op_case_route(hr_op op, op_draw *d);
op_trial op_case_way(hr_op op, op_draw *d);
op_trial op_case_quantize(hr_op op, op_draw *d);
op_trial op_case_quantized(hr_op op, op_draw *d);
op_trial op_case_looked_up(hr_op op, op_draw *d);
op_trial op_case_held(hr_op op, op_draw *d);
op_trial op_case_expert_dense(hr_op op, op_draw *d);

#endif
