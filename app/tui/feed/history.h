// SPDX-License-Identifier: Apache-2.0
// What memory and loss did, in fixed space however long the run: events come by the thousand a step, a screen has
// three hundred columns. Nothing here is ever averaged away: a bucket keeps its highest and lowest moment.
#ifndef TUI_HISTORY_H
#define TUI_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include "app/tui/base/bands.h"

enum {
    HISTORY_LEVELS = 5,
    HISTORY_LENGTH = 512,
    PROFILE_LENGTH = 512,
    SERIES_LENGTH = 512,
};

// The heap at one moment, absolute.
typedef struct heap_now {
    uint64_t in_use_bytes, pool_bytes, requested_bytes;
    uint64_t band_bytes[BAND_COUNT]; // as requested, and the rest; sum is in_use_bytes
} heap_now;

// ---- by time: level k has buckets of 125 ms × 4^k ---------------------------------------------------------------

enum { MARK_KNOB = 1, MARK_OOM = 2, MARK_BUILD = 4 };

typedef struct history_bucket {
    uint64_t max_bytes, min_bytes, pool_bytes;
    uint64_t band_bytes[BAND_COUNT]; // at the moment of max_bytes
    uint8_t marks;
} history_bucket;

typedef struct history_level {
    uint64_t newest; // index of the newest bucket: time / width
    uint32_t count;  // buckets held, newest included
    history_bucket ring[HISTORY_LENGTH];
} history_level;

typedef struct history {
    heap_now last; // what the heap holds until the next event
    history_level level[HISTORY_LEVELS];
} history;

uint64_t history_width_ns(unsigned level);
// Time must not run backwards; a moment before the newest bucket counts into the newest. Buckets that were passed
// over held what the heap held before.
void history_add(history *h, uint64_t time_ns, const heap_now *heap, uint8_t marks);
// The bucket `back` before the newest; NULL where there is none.
const history_bucket *history_at(const history *h, unsigned level, uint32_t back);
// Highest in_use within the newest `columns` buckets; 0 when empty.
uint64_t history_peak_bytes(const history *h, unsigned level, uint32_t columns);

// ---- by event: one training step ------------------------------------------------------------------------------

typedef struct profile_point {
    uint64_t in_use_bytes;
    uint64_t band_bytes[BAND_COUNT];
    uint8_t phase;
} profile_point;

// Each point is the highest moment of `stride` events; when full, pairs are joined and the stride doubles.
typedef struct profile {
    uint32_t count, stride, pending;
    profile_point point[PROFILE_LENGTH];
} profile;

void profile_clear(profile *p);
void profile_add(profile *p, const heap_now *heap, uint8_t phase);
// The highest point of column `column` when the step is drawn in `columns`; NULL when empty.
const profile_point *profile_column(const profile *p, uint32_t column, uint32_t columns);

// ---- by step: one number -------------------------------------------------------------------------------------

typedef struct series {
    uint32_t count, stride, pending;
    double mean[SERIES_LENGTH]; // of `stride` values each; the last one of `pending`
} series;

void series_add(series *s, double value);

#endif
