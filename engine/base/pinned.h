// SPDX-License-Identifier: Apache-2.0
// Host memory that a device reads without another copy of it, page-locked for its driver: the functions that give it. Independent of
// the device that opened it, so that batches may outlive a build. One thread at a time.
#ifndef BASE_PINNED_H
#define BASE_PINNED_H

#include <stdint.h>

#include "headroom/status.h"

typedef struct pinned_memory {
    hr_status (*take)(void *context, uint64_t bytes, void **out, hr_err *err); // zeroed; NOMEM error
    void (*give_back)(void *context, void *memory);                            // nothing reads it any more
    void (*close)(void *context);                                              // behind the last give_back
    void *context;
} pinned_memory; // all zero: there is none

#endif
