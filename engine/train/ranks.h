// SPDX-License-Identifier: Apache-2.0
// What compress.low_rank would make of a layer's weights as they are now, rank by rank: bytes, and the relative error, exactly, from
// singular values (of a larger convolution from its full Tucker-2 core). Engine's thread, between two steps.
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "headroom/deploy.h"
#include "headroom/engine.h"

#include "base/vec.h"
#include "train/store.h"

typedef VEC(hr_event_rank) rank_list;

// Appends a point for each of some ranks up to the full one: powers of two, what lies half way between them, and break-even.
// STATE error where the layer has no weights that a product could stand for, or factors of them. On other errors the points are there without
// errors of their own: DEPENDENCY without LAPACK, STATE without weights or where it would take more than 100 ms, NOMEM.
HR_MUST_CHECK hr_status ranks_of_layer(const hr_engine *e, const char *layer, rank_list *list, hr_err *err);

// Fills out->ranks of all layers that have points, of these weights of the engine's model, however long it takes. DEPENDENCY, NOMEM.
HR_MUST_CHECK hr_status ranks_of_deployed(const hr_engine *e, const store *weights, hr_deploy *out,
                                          hr_err *err);

#endif
