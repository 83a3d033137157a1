// SPDX-License-Identifier: Apache-2.0
// The rows of keras_rows.c that stand in files of their own.
#ifndef IMPORT_KERAS_ROWS_H
#define IMPORT_KERAS_ROWS_H

#include "keras.h"

// keras_images.c
uint32_t keras_convolution(keras_walk *w);
uint32_t keras_steps(keras_walk *w); // Conv1D
uint32_t keras_pool_of_steps(keras_walk *w);
uint32_t keras_transposed(keras_walk *w);
uint32_t keras_pool(keras_walk *w);
uint32_t keras_global_pool(keras_walk *w);
uint32_t keras_zero_pad(keras_walk *w);
uint32_t keras_upsample(keras_walk *w);
// keras_sequences.c
uint32_t keras_embedding(keras_walk *w);
uint32_t keras_recurrence(keras_walk *w);
uint32_t keras_attention(keras_walk *w);
uint32_t keras_mean_of_places(keras_walk *w);

#endif
