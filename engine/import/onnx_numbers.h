// SPDX-License-Identifier: Apache-2.0
// Numbers that a graph computes from no input: shapes, positions, masks. Held as double, which is exact for every size that
// is accepted; `real` says which division is meant. A stride of 0 says that they are the same all along a dimension, so
// that an expanded mask takes no memory.
#ifndef IMPORT_ONNX_NUMBERS_H
#define IMPORT_ONNX_NUMBERS_H

#include "onnx_file.h"

enum { ONNX_NUMBERS = 1 << 21 }; // elements that are computed at once

typedef struct numbers {
    const double *at;
    int64_t dims[ONNX_RANK], strides[ONNX_RANK];
    uint32_t rank;
    bool real;
    double
        by_sample; // what each grows by from a sample to the next, of which the first stands here; NaN: not evenly
    const char *
        missing; // the weight whose values are in another file, and of which these are made; NULL: they are known
} numbers;

// All return NULL with g->status set where memory or a limit says so.
numbers *numbers_of(onnx_graph *g,
                    const onnx_tensor *t); // reads the values; those in another file are missing
// Whether b is a turned, both float32 matrices whose values lie in the file: 64 places are compared. False with g->status set where
// the file cannot be read, or all that is computed is beyond the limit: of that, places of the file are dear.
bool numbers_are_turned(onnx_graph *g, const onnx_tensor *a, const onnx_tensor *b);
numbers *numbers_list(onnx_graph *g, const int64_t *values, uint32_t count);
numbers *numbers_scalar(onnx_graph *g, double value, bool real);
numbers *numbers_again(onnx_graph *g, const numbers *n); // another view of the same
// Elements in memory of their own, of n's shape, for a caller to fill in the order of memory; dims with `same` are not
// multiplied out (stride 0). *room has as many as are to be filled.
numbers *numbers_blank(onnx_graph *g, uint32_t rank, const int64_t *dims, const bool *same, double **room);
// n without strides of 0, rows outermost.
numbers *numbers_plain(onnx_graph *g, const numbers *n);

int64_t numbers_count(const numbers *n);
double numbers_first(const numbers *n);
bool numbers_alike(onnx_graph *g, const numbers *n); // one value all over
// Whether so many further elements may be looked at; refused beyond the limit, so that a file takes no long time.
bool numbers_work(onnx_graph *g, int64_t count);
bool numbers_is_one(const numbers *n); // a single element
// The k-th in the order of a flat list.
double numbers_at(const numbers *n, int64_t k);
int64_t numbers_whole(double value); // cut to what an int64 holds

typedef double (*number_of_two)(double a, double b);
typedef double (*number_of_one)(double a);
// Broadcast as ONNX does. `real` of the result is real.
numbers *numbers_map(onnx_graph *g, const numbers *a, const numbers *b, number_of_two f, bool real);
numbers *numbers_each(onnx_graph *g, const numbers *a, number_of_one f, bool real);
// where(c, a, b)
numbers *numbers_choose(onnx_graph *g, const numbers *c, const numbers *a, const numbers *b);
// n under a larger shape; false when it does not broadcast.
bool numbers_expand(numbers *n, uint32_t rank, const int64_t *dims);
// Whether two shapes broadcast, and to what.
bool onnx_broadcast(uint32_t a_rank, const int64_t *a, uint32_t b_rank, const int64_t *b, uint32_t *rank,
                    int64_t out[ONNX_RANK]);

#endif
