// SPDX-License-Identifier: Apache-2.0
// The windows of pooling to a given size (ADAPTIVE_POOL), as PyTorch's adaptive_avg_pool2d has them: of `of` places in a row,
// the result at place i of `to` sees those from floor(i * of / to) up to ceil((i + 1) * of / to). Windows may overlap. What
// place i of those `of` is seen by is said by the same two, with `of` and `to` exchanged.
#ifndef OPS_ADAPTIVE_H
#define OPS_ADAPTIVE_H

#include <stdint.h>

static inline int64_t adaptive_begin(int64_t i, int64_t of, int64_t to)
{
    return i * of / to;
}

static inline int64_t adaptive_end(int64_t i, int64_t of, int64_t to)
{
    return ((i + 1) * of + to - 1) / to;
}

static inline int64_t adaptive_places(int64_t i, int64_t of, int64_t to)
{
    return adaptive_end(i, of, to) - adaptive_begin(i, of, to);
}

#endif
