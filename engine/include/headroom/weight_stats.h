// SPDX-License-Identifier: Apache-2.0
// What a training's weights are like: norms, extremes, zeros and a histogram of each; and their elements, which can be set. On
// devices that compute; engine's thread, between two advances.
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

// The elements of one weight, row by row.
typedef struct hr_weight_values {
    double *values;
    uint64_t count;
} hr_weight_values;
// As above; also STATE, with the name that was meant, where no weight is called so. The caller deinits *out.
HR_MUST_CHECK hr_status hr_engine_weight_values(const hr_engine *engine, const char *name,
                                                hr_weight_values *out, hr_err *err);
void hr_weight_values_deinit(hr_weight_values *values);
// From the next step on training goes on from these elements, rounded to the weight's type; what the optimizer keeps beside it stays.
// STATE as above, and of weights that are held as whole numbers (compress.lora_base) or have not as many elements: then
// `values` is not read. Nothing has changed.
HR_MUST_CHECK hr_status hr_engine_set_weight(hr_engine *engine, const char *name, const double *values,
                                             uint64_t count, hr_err *err);

#endif
