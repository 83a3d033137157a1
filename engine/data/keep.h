// SPDX-License-Identifier: Apache-2.0
// What a training chain keeps of samples between the source and a batch, as pipeline.stages, cache and shuffle say it: a copy of
// everything, a cache before or behind map, the elements of a shuffle's buffer, or numbers alone. data_keep_plan is the one place that
// decides it, for plans and runs.
#ifndef DATA_KEEP_H
#define DATA_KEEP_H

#include "headroom/knobs.h"
#include "headroom/status.h"

#include "data/cache.h"
#include "data/map.h"
#include "data/pool.h"
#include "data/tuned.h"

typedef struct data_keep_plan {
    uint32_t interleave;                  // files read in turn; 0 or 1: none
    uint32_t shuffle;                     // samples in the buffer; 0 or 1: none
    data_tuned tuned;                     // threads, and batches made ready
    bool same_order;                      // the shuffle is drawn once
    bool batches_repeat, shuffle_repeats; // what they take is repeated (stages.h)
    bool has_pool;
    data_pool_form pool;
    bool has_cache, cache_made;
    bool has_slices;
    data_augment augment; // of images; empty for other data
    uint32_t copies;      // of each image; 0: none
    uint64_t slices_bytes, pool_bytes, copies_bytes, cache_bytes,
        cache_file_bytes; // of host memory, and of a file
} data_keep_plan;

// A source as it describes itself decides, `raw_bytes` of all its training samples, and the form of batches.
data_keep_plan data_keep_plan_of(const hr_knobs *knobs, const data_source *source, uint64_t raw_bytes,
                                 const data_form *batches);

typedef struct data_keep {
    data_keep_plan plan;
    data_map map; // with the cache
    data_cache *slices, *cache, *copies;
    bool slices_are_lent, cache_is_lent; // of another that closes them
    data_pool *pool;
} data_keep;

// Of a map its source, the form of batches, and bad: borrowed. Copies are made on `threads` threads. NOMEM and
// WRITE errors, and with copies those of reading: `out` is to be closed then, too. Slices and a cache of samples as they were fetched are
// those of `from` (NULL: none), where they are the same: lent, until data_keep_take_over makes them those of `out`.
HR_MUST_CHECK hr_status data_keep_open(const hr_knobs *knobs, const data_map *map, const data_keep *from,
                                       uint32_t threads, data_keep *out, hr_err *err);
void data_keep_take_over(data_keep *k, data_keep *from); // then `from` is to be closed first
void data_keep_close(data_keep *k);

#endif
