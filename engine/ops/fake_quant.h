// SPDX-License-Identifier: Apache-2.0
// Quantization that is only pretended: values are rounded to 256 levels and stay what they are, so that training sees the
// error of eight bits (Jacob et al. 2018). The arithmetic is that of TensorFlow's fake_quant_with_min_max_vars, in float32 on
// every device and with every product rounded by itself, so that all of them round alike.
//
// A range is two numbers that are not negative, {−smallest, largest}: zero always lies in it, and is one of the levels.
// Weights have 255 levels that are symmetric around it, activations 256.
#ifndef OPS_FAKE_QUANT_H
#define OPS_FAKE_QUANT_H

#include <math.h>
#include <stdbool.h>

// The moving average of an activation's range, and where a range begins (tfmot's 8-bit scheme).
#define FAKE_QUANT_DECAY   0.999
#define FAKE_QUANT_INITIAL 6.0F

// Levels from `low` to `high`, `scale` apart; zero is the one of number `zero`.
typedef struct fake_quant_levels {
    float low, high, scale, inverse, zero;
} fake_quant_levels;

static inline fake_quant_levels fake_quant_between(float below, float above, float lowest, float highest)
{
    const float scale = (above + below) / (highest - lowest);
    const float at = scale > 0.0F ? lowest + below / scale : lowest;
    const float nudged = at < lowest ? lowest : at > highest ? highest : roundf(at);
    fake_quant_levels l = {.low = (lowest - nudged) * scale,
                           .high = (highest - nudged) * scale,
                           .scale = scale,
                           .inverse = scale > 0.0F ? 1.0F / scale : 0.0F};
    l.zero = floorf(-l.low * l.inverse + 0.5F);
    return l;
}

static inline fake_quant_levels fake_quant_of_range(const float range[2])
{
    return fake_quant_between(range[0], range[1], 0.0F, 255.0F);
}

// Of weights whose largest absolute value is `largest`.
static inline fake_quant_levels fake_quant_of_weights(float largest)
{
    return fake_quant_between(largest, largest, 1.0F, 255.0F);
}

// x at the nearest level; NaN where x is no number.
static inline float fake_quant_value(const fake_quant_levels *l, float x)
{
    const float below_top = x > l->high ? l->high : x;
    const float inside = below_top < l->low ? l->low : below_top;
    return floorf((inside - l->low) * l->inverse - l->zero + 0.5F) * l->scale;
}

// Does the gradient of x go through?
static inline bool fake_quant_passes(const fake_quant_levels *l, float x)
{
    return x >= l->low && x <= l->high;
}

// `range` after a batch from −below to above. A decay of 0 keeps the widest range that there was. A batch
// that reaches to infinity moves nothing, and values that are no numbers count for nothing.
static inline float fake_quant_moved(float range, float batch, double decay)
{
    const float wider = batch > range ? batch : range;
    const float moved = decay == 0.0 ? wider : range - (range - batch) * (1.0F - (float)decay);
    return isfinite(batch) ? moved : range;
}

#endif
