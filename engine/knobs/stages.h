// SPDX-License-Identifier: Apache-2.0
// pipeline.stages: in which order samples go through cache, shuffle and map on their way into a batch, as tf.data's chain of calls
// says it.
//
//   interleave, cache, shuffle, map, batch, prefetch      (default)
//
// interleave stands in front of all others: it is the order of a source's files. slices, in front of all others, copies the whole
// training set when the run begins, as from_tensor_slices does. What stands before map holds samples as their files have them, what
// stands behind it holds values. A shuffle before the cache is drawn once: what is cached comes in one order ever after.
//
// Epochs follow one another in any case. What stands behind repeat does not see where one ends: batch fills up with samples of the
// next, and shuffle draws from both. A cache there would take samples without end, so there is none. Behind batch, repeat changes
// nothing.
#ifndef KNOBS_STAGES_H
#define KNOBS_STAGES_H

#include <stdbool.h>

#include "headroom/knobs.h"

typedef struct stage_order {
    bool slices, interleave, cache, shuffle, prefetch;
    bool cache_before_map, shuffle_before_map, cache_before_shuffle;
    bool batches_repeat, shuffle_repeats; // what they take is repeated
} stage_order;

// False when pipeline.stages is no such order.
bool stage_order_of(const hr_knobs *knobs, stage_order *out);

// Whether batches are filled up with samples of the next epoch: none is partial, and batch.remainder has nothing to say.
bool stages_fill_batches(const hr_knobs *knobs);

#endif
