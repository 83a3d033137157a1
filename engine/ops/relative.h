// SPDX-License-Identifier: Apache-2.0
// Biases that attention's scores get by where a query stands to a key, learned rows of a table [V,heads]. Which row it is
// says the rule:
//
//     BUCKETS  query i of attr.kernel_h places, key j of attr.kernel_w: buckets of the distance j − i as in T5 (Raffel et
//              al. 2020): half of the V rows for keys behind the query, none with OP_FLAG_CAUSAL, which takes all of
//              those for keys before it; of a half the first half counts single places, the others grow with the
//              logarithm of the distance up to attr.base.
//     WINDOW   both are places of a window of kernel_h × kernel_w pixels, row by row, as in Swin (Liu et al. 2021): a row
//              for each of the (2*kernel_h − 1)(2*kernel_w − 1) distances. With attr.pad_top or pad_left the image of
//              stride_h × stride_w windows was shifted by so many pixels, and there is a bias for each of them: pixels
//              that were no neighbours before get RELATIVE_HIDDEN more.
//
// Biases of one window after another: [P*heads, Lq, Lk], P = 1 where nothing was shifted.
#ifndef OPS_RELATIVE_H
#define OPS_RELATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

typedef enum op_relative_rule { OP_RELATIVE_BUCKETS, OP_RELATIVE_WINDOW } op_relative_rule;

#define RELATIVE_HIDDEN (-100.0)
enum { RELATIVE_MAX_BUCKETS = 128 };

typedef struct relative_shape {
    int64_t windows, heads, queries, keys; // windows: P
} relative_shape;

// `table` has passed the row's rule of shapes.
relative_shape relative_shape_of(const op_attr *attr, const hr_shape *table);

// BUCKETS of a table of `rows` rows: a distance of at least from[k] is in bucket k of its half. Returns how many a half
// has, at most RELATIVE_MAX_BUCKETS.
int32_t relative_buckets(const op_attr *attr, int64_t rows, int32_t from[RELATIVE_MAX_BUCKETS]);

// The row of query i and key j; `from` and `buckets` are those of relative_buckets.
int64_t relative_row(const op_attr *attr, const int32_t *from, int32_t buckets, int64_t i, int64_t j);
// WINDOW: were i and j of window `window` no neighbours before the shift?
bool relative_is_hidden(const op_attr *attr, int64_t window, int64_t i, int64_t j);

#endif
