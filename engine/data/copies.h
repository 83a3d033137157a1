// SPDX-License-Identifier: Apache-2.0
// pipeline.augment_copies: every training image's variants, made when the run begins and held in host memory beside the original, which
// stays where the source has it:
//
//   epoch        0         1        …  k        k + 1     k + 2    …
//   image        original  variant 1   variant k  original  variant 1
//
// Variant v is what augmentation makes of the image in epoch v.
#ifndef DATA_COPIES_H
#define DATA_COPIES_H

#include "headroom/status.h"

#include "data/cache.h"
#include "data/map.h"

enum { DATA_COPIES_MOST = 64 };

// Of `copies` of each training image; UINT64_MAX: more than can be counted.
uint64_t data_copies_host_bytes(const data_source *source, uint32_t copies);

// All of them, made on `threads` threads by what the map fetches, decodes and draws; the map's own copies are not looked at. NOMEM
// error, and those of reading.
HR_MUST_CHECK hr_status data_copies_open(const data_map *map, uint32_t copies, uint32_t threads,
                                         data_cache **out, hr_err *err);

#endif
