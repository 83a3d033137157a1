// SPDX-License-Identifier: Apache-2.0
// Trained weights become the factors of compress.low_rank: of a dense layer and a 1x1 convolution the truncated SVD, the roots of
// the singular values on either side; of a larger convolution HOSVD of its channels (Tucker-2): orthogonal columns outside, all
// else in the core. Engine's thread.
#ifndef TRAIN_DECOMPOSE_H
#define TRAIN_DECOMPOSE_H

#include "headroom/report.h"

#include "model/model.h"
#include "train/store.h"

// Of one layer, all its products together: the squares of what was lost, and of the weights.
typedef struct decomposed {
    char name[HR_NAME_MAX]; // of the layer
    double lost, whole;
} decomposed;

// The relative error of the layer's weights, in the Frobenius norm.
double decomposed_error(const decomposed *d);

typedef VEC(decomposed) decomposed_list;

// Adds to the store every factor that the model has and the store lacks, where the store has the weights in their shape; the
// weights stay. Appends a row for each layer, in the model's order.
HR_MUST_CHECK hr_status decompose_store(store *s, const hr_model *m, decomposed_list *list, hr_err *err);

// Of a convolution's weights [kh, kw, channels, filters]: energy[a * ranks + b] is what row a and column b of the full Tucker-2
// core have of all positions, squared; with a and b below r they sum to what rank r keeps. ranks: at most either channels.
HR_MUST_CHECK hr_status decompose_energy(const stored_tensor *weights, int64_t ranks, double *energy,
                                         hr_err *err);

// "dense/weights_u" → "dense/weights". Returns name.
const char *factor_weights_name(const char *factor, char name[HR_NAME_MAX]);

#endif
