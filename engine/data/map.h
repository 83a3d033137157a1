// SPDX-License-Identifier: Apache-2.0
// From the number of a sample to its values in a batch: fetched from the source, decoded, and written in the types in
// which batches travel. Asked for by number, from any number of threads at once, each with scratch of its own; what is
// written depends on the question alone.
#ifndef DATA_MAP_H
#define DATA_MAP_H

#include "headroom/status.h"

#include "data/augment.h"
#include "data/bad.h"
#include "data/slot.h"
#include "data/source.h"

typedef struct data_cache data_cache;

typedef struct data_map {
    const data_source *source; // borrowed
    data_form to;              // of batches: the source's form, narrowed
    data_cache *slices; // has all training samples as fetched, instead of the source; borrowed; NULL: none
    data_cache *raw, *made; // of training samples as fetched, and as written; borrowed; NULL: none
    bool has_made;          // there is one of samples as written: scratch has room for such a sample
    data_augment augment;   // of training images
    bool augment_once;      // as in epoch 0 for good: what is made is kept
    data_cache *copies; // instead of augmenting, `copy_count` of each training image; borrowed; NULL: none
    uint32_t copy_count;
    const float *
        answers; // of training samples, written to the last slot, which the source does not know; borrowed; NULL: none
    data_bad *bad;    // what cannot be read is replaced, and counted there; borrowed; NULL: it is an error
    bool past_caches; // batches are larger than the processor's caches, and written past them
} data_map;

typedef struct data_ask {
    data_set set;
    uint32_t sample;
    uint64_t epoch;
} data_ask;

// Of one thread.
uint64_t data_map_scratch_bytes(const data_map *m);
// Writes one sample to to->slot, or with m->bad the one that replaces it. DATA errors while reading, READ and
// WRITE errors of a cache's file.
HR_MUST_CHECK hr_status data_map_write(const data_map *m, const data_ask *ask, uint8_t *scratch,
                                       const data_room *to, hr_err *err);

// The same in two parts: what is fetched lies in the source, in a cache or in the scratch, and may be kept elsewhere
// before it is made into values.
HR_MUST_CHECK hr_status data_map_fetch(const data_map *m, const data_ask *ask, uint8_t *scratch,
                                       data_raw *out, hr_err *err);
HR_MUST_CHECK hr_status data_map_make(const data_map *m, const data_ask *ask, const data_raw *raw,
                                      uint8_t *scratch, const data_room *to, hr_err *err);
// Whether its values are in the cache, or its image among the copies, so that there is nothing to fetch.
bool data_map_keeps(const data_map *m, const data_ask *ask);
// Of images: fetched and decoded, not augmented. *out points into the scratch.
HR_MUST_CHECK hr_status data_map_decode(const data_map *m, const data_ask *ask, uint8_t *scratch,
                                        data_raw *out, hr_err *err);

#endif
