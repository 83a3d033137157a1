// SPDX-License-Identifier: Apache-2.0
// Which elements a DROPOUT keeps, and which weights an ATTENTION: as if they were a tensor [N,heads,Lq,Lk]. Every device draws through this contract, so that a mask is the same on all of
// them, in any order, on any thread, again in backward, in a recomputation and in any split into micro-batches.
//
//   key      Philox(seed, "dropout") with the layer's salt and the update's number mixed in
//   counter  (call, global index of the sample)
//   element e of a sample, counted over its dimensions without the batch, is word e / 16 % 4 of call
//   e / 64 * 16 + e % 16: sixteen neighbours come from sixteen calls, one per lane of a vector or thread of a warp
//   kept     where the word is not below `threshold`, the rate in units of 2^-32
#ifndef OPS_DROPOUT_H
#define OPS_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/philox.h"
#include "ops/op.h"

enum { DROPOUT_BLOCK = 64, DROPOUT_LANES = 16 }; // elements of 16 calls

typedef struct dropout_draw {
    philox_key key;
    uint32_t threshold;
    double scale; // 1 / (1 - rate): what a kept element is multiplied with
} dropout_draw;

// attr.rate lies in [0, 1).
dropout_draw dropout_begin(const op_attr *attr, uint64_t seed, uint64_t update);
bool dropout_keeps(const dropout_draw *d, uint64_t sample, uint64_t element);
// What DROP_PATH multiplies a sample with.
double dropout_factor(const dropout_draw *d, uint64_t sample);
// MODEL error for a rate that is none.
HR_MUST_CHECK hr_status dropout_check_rate(const op_attr *attr, hr_err *err);

#endif
