// SPDX-License-Identifier: Apache-2.0
// What a training's weights are like: norms, extremes, zeros and a histogram of each.
#ifndef HEADROOM_WEIGHT_STATS_H
#define HEADROOM_WEIGHT_STATS_H

#include "headroom/engine.h"

enum { HR_WEIGHT_BINS = 16 };

typedef struct hr_weight {
    char name[HR_NAME_MAX], shape[HR_SHAPE_TEXT_MAX], dtype[12];
    uint64_t elements, nonfinite;       // those that are not finite count in nothing below
    double norm;                        // root of the sum of squares
    double mean, least, most;           // NaN where none is finite
    double zeros;                       // share of the elements
    uint64_t histogram[HR_WEIGHT_BINS]; // of equal width from least to most
} hr_weight;

typedef struct hr_weight_stats {
    hr_weight *weights; // in canonical order
    size_t count;
} hr_weight_stats;

// Of the model's own weights, as they are between two advances; the caller deinits it. STATE error where there are none, as on the
// device plan and before the first build.
HR_MUST_CHECK hr_status hr_engine_weight_stats(const hr_engine *engine, hr_weight_stats *out, hr_err *err);
void hr_weight_stats_deinit(hr_weight_stats *weights);

#endif
