// SPDX-License-Identifier: Apache-2.0
// Sums of the columns of a plain matrix: bias gradients.
#ifndef DEVICE_CPU_SUMS_H
#define DEVICE_CPU_SUMS_H

#include <stdint.h>

#include "base/workers.h"

// total[0..columns) += the columns of `rows` rows that lie `row_floats` apart. Sums of 64 rows are added to
// the total, so that long columns lose no digits.
void sums_add_rows(float *total, const float *y, int64_t row_floats, int64_t rows, int64_t columns);

// sum[f] = the columns of y[rows, f], with the threads' parts in `scratch`.
uint64_t sums_scratch_bytes(const workers *w, int64_t f);
void sums_columns(workers *w, const float *y, int64_t rows, int64_t f, float *sum, float *scratch);

#endif
