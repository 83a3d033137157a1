// SPDX-License-Identifier: Apache-2.0
// What an update by ADAM or ADAM8BIT takes of its number t, for both forms of the rule, where g = 1 - beta^t:
//   w -= rate m / (sqrt(v) + epsilon)
// Keras 3 (optimizers/adam.py): rate = lr sqrt(g2)/g1, epsilon as it is: it stands outside of the bias correction.
// PyTorch (torch/optim/adam.py), OP_FLAG_TORCH: w -= lr (m/g1) / (sqrt(v/g2) + epsilon), which is the same rate with
// epsilon sqrt(g2).
#ifndef OPS_ADAM_H
#define OPS_ADAM_H

#include <math.h>

#include "ops/op.h"

typedef struct adam_step {
    double rate, epsilon;
} adam_step;

static inline adam_step adam_step_of(const op_attr *attr, double learning_rate, uint64_t update)
{
    const double root = sqrt(1.0 - pow(attr->beta2, (double)update));
    return (adam_step){.rate = learning_rate * root / (1.0 - pow(attr->beta1, (double)update)),
                       .epsilon = attr->flags & OP_FLAG_TORCH ? attr->epsilon * root : attr->epsilon};
}

#endif
