// SPDX-License-Identifier: Apache-2.0
// How many threads make a batch and how many batches are made ready: as the knobs say it, or, where pipeline.autotune decides
// while it runs, the most it may decide.
//
// A plan is the run to the byte although autotune goes by the clock, because buffers are taken for the most when the chain is
// opened, and what is decided is how many of them are used. The most is a function of the knobs, the data set, the cores and
// the machine's memory.
#ifndef DATA_TUNED_H
#define DATA_TUNED_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

#include "data/map.h"
#include "data/source.h"

enum { DATA_THREADS_MAX = 64 };
enum { DATA_PREFETCH = 2 }; // batches made ready where pipeline.prefetch=auto and nobody decides
// Batches that autotune makes ready at most: as headroom decides, where more hide nothing, and as tensorflow does.
enum { TUNED_PREFETCH_MOST = 8, TUNED_PREFETCH_MOST_TENSORFLOW = 64 };

typedef enum tuned_by { TUNED_BY_NOBODY, TUNED_BY_HEADROOM, TUNED_BY_TENSORFLOW } tuned_by;

typedef struct data_tuned {
    tuned_by by;
    bool threads_auto, prefetch_auto; // are decided while it runs
    uint32_t threads, prefetch;       // of what is not; the most of what is
    uint64_t budget_bytes;            // for all that the pipeline holds
} data_tuned;

// Threads that make the samples of a batch where none are decided: as many as pipeline.map_threads says, or as are worth it.
uint32_t data_threads(const hr_knobs *knobs, const data_form *model);

// `prefetches`: the chain has that stage. `others_bytes`: what it holds beside batches and what they are made with.
data_tuned data_tuned_of(const hr_knobs *knobs, const data_map *map, bool prefetches, uint64_t others_bytes);

#endif
