// SPDX-License-Identifier: Apache-2.0
// Samples that were made once and are kept, by number: in memory, or in a file that has no name and is gone with the process.
// All its room is asked for when it is opened. A file's is then set aside on the disk, which does not run short in the middle of an
// epoch; memory that a system gives without having it is missed only when samples are kept. Any number of threads may look and
// keep at once.
#ifndef DATA_CACHE_H
#define DATA_CACHE_H

#include <stdbool.h>

#include "headroom/status.h"

#include "data/source.h"

typedef struct data_cache data_cache;

typedef struct data_cache_plan {
    const char *name, *instead; // "cache", and what can be typed where there is no room; of static lifetime
    uint64_t samples;
    uint64_t bytes;            // of all of them
    bool is_uneven;            // not all are as large
    const data_source *source; // borrowed: says how large its training samples are, where they are uneven
    bool in_file;
    const char *folder; // of the file
} data_cache_plan;

// Of host memory, and of the file. Beside its bytes a sample takes its label and its state (DATA_CACHE_ENTRY_BYTES), and
// where sizes differ its offset.
enum { DATA_CACHE_ENTRY_BYTES = 5, DATA_CACHE_OFFSET_BYTES = 8 };
// UINT64_MAX where that does not hold them, here and below: no memory does then.
uint64_t data_cache_host_bytes(const data_cache_plan *plan);
uint64_t data_cache_file_bytes(const data_cache_plan *plan);

// NOMEM error; WRITE error when the folder takes no file of that size.
HR_MUST_CHECK hr_status data_cache_open(const data_cache_plan *plan, data_cache **out, hr_err *err);
void data_cache_close(data_cache *c); // NULL is fine
// Whether it is what the plan would open, whatever is kept in it so far.
bool data_cache_is_of(const data_cache *c, const data_cache_plan *plan);

// *found when the sample is kept: *out then points into the cache or into room, which has the sample's size. READ error.
HR_MUST_CHECK hr_status data_cache_find(const data_cache *c, uint32_t sample, uint8_t *room, bool *found,
                                        data_raw *out, hr_err *err);
bool data_cache_has(const data_cache *c, uint32_t sample);
// Keeps a sample, which has the size that it was planned with. WRITE error. One that is kept already stays.
HR_MUST_CHECK hr_status data_cache_keep(data_cache *c, uint32_t sample, const data_raw *raw, hr_err *err);

#endif
