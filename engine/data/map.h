// SPDX-License-Identifier: Apache-2.0
// From the number of a sample to its values in a batch: fetched from the source, decoded, and written in the types in
// which batches travel. Asked for by number, from any number of threads at once, each with scratch of its own; what is
// written depends on the question alone.
#ifndef DATA_MAP_H
#define DATA_MAP_H

#include "headroom/status.h"

#include "data/slot.h"
#include "data/source.h"

typedef struct data_map {
    const data_source *source; // borrowed
    data_form to;              // of batches: the source's form, narrowed
} data_map;

typedef struct data_ask {
    data_set set;
    uint32_t sample;
    uint64_t epoch;
} data_ask;

// Of one thread.
uint64_t data_map_scratch_bytes(const data_map *m);
// Writes one sample to to->slot. DATA errors while reading.
HR_MUST_CHECK hr_status data_map_write(const data_map *m, const data_ask *ask, uint8_t *scratch,
                                       const data_room *to, hr_err *err);

#endif
