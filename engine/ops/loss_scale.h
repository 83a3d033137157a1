// SPDX-License-Identifier: Apache-2.0
// What every device must do alike to keep float16 gradients in range.
#ifndef OPS_LOSS_SCALE_H
#define OPS_LOSS_SCALE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

// FINITE counts what float16 would flush to zero and what it cannot hold (its smallest number is 5.96e-8).
#define OP_HALF_FLUSHED 6e-8
#define OP_HALF_LARGEST 65504.0

enum { OP_SCALE_INITIAL = 1 << 15, OP_SCALE_GROWTH_STEPS = 2000 };

// SCALE_UPDATE as Keras 3's LossScaleOptimizer does it: after attr.count finite steps in a row the scale doubles, at a
// step that is not finite it halves, and both begin the count anew. With a floor (attr.epsilon) as in the older
// tf.mixed_precision.DynamicLossScale: never below it, and doubled only where the result is finite.
static inline void op_scale_update(const op_attr *attr, bool finite, float *scale, int32_t *clean)
{
    const float floor_scale = (float)attr->epsilon;
    if (!finite) {
        const float half = *scale * 0.5F;
        *scale = half > floor_scale ? half : floor_scale;
        *clean = 0;
    } else if (*clean == attr->count - 1) {
        const float grown = *scale * 2.0F;
        *scale = floor_scale > 0.0F && !isfinite(grown) ? *scale : grown;
        *clean = 0;
    } else {
        (*clean)++;
    }
}

#endif
