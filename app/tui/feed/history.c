// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/history.h"

#include <stdbool.h>
#include <string.h>

// ---- by time --------------------------------------------------------------------------------------------------

uint64_t history_width_ns(unsigned level)
{
    return UINT64_C(125000000) << (2 * level);
}

static history_bucket *newest_of(history_level *level)
{
    return &level->ring[level->newest % HISTORY_LENGTH];
}

static void bucket_start(history_bucket *bucket, const heap_now *heap)
{
    bucket->max_bytes = bucket->min_bytes = heap->in_use_bytes;
    bucket->pool_bytes = heap->pool_bytes;
    bucket->marks = 0;
    memcpy(bucket->band_bytes, heap->band_bytes, sizeof bucket->band_bytes);
}

static void bucket_add(history_bucket *bucket, const heap_now *heap, uint8_t marks)
{
    if (heap->in_use_bytes >= bucket->max_bytes) {
        bucket->max_bytes = heap->in_use_bytes;
        memcpy(bucket->band_bytes, heap->band_bytes, sizeof bucket->band_bytes);
    }
    if (heap->in_use_bytes < bucket->min_bytes) {
        bucket->min_bytes = heap->in_use_bytes;
    }
    if (heap->pool_bytes > bucket->pool_bytes) {
        bucket->pool_bytes = heap->pool_bytes;
    }
    bucket->marks |= marks;
}

// Opens buckets up to `index`, all holding what the heap `held` meanwhile.
static void level_open(history_level *level, uint64_t index, const heap_now *held)
{
    uint64_t gap = index - level->newest;
    uint64_t opened = gap < HISTORY_LENGTH ? gap : HISTORY_LENGTH;
    for (uint64_t i = opened; i > 0; i--) {
        bucket_start(&level->ring[(index - i + 1) % HISTORY_LENGTH], held);
    }
    level->newest = index;
    level->count = opened > HISTORY_LENGTH - level->count ? HISTORY_LENGTH : level->count + (uint32_t)opened;
}

void history_add(history *h, uint64_t time_ns, const heap_now *heap, uint8_t marks)
{
    for (unsigned i = 0; i < HISTORY_LEVELS; i++) {
        history_level *level = &h->level[i];
        uint64_t index = time_ns / history_width_ns(i);
        if (level->count == 0) {
            level->newest = index;
            level->count = 1;
            bucket_start(newest_of(level), heap);
        } else if (index > level->newest) {
            level_open(level, index, &h->last);
        }
        bucket_add(newest_of(level), heap, marks);
    }
    h->last = *heap;
}

const history_bucket *history_at(const history *h, unsigned level, uint32_t back)
{
    const history_level *l = &h->level[level];
    return back < l->count ? &l->ring[(l->newest - back) % HISTORY_LENGTH] : NULL;
}

uint64_t history_peak_bytes(const history *h, unsigned level, uint32_t columns)
{
    uint64_t peak = 0;
    for (uint32_t back = 0; back < columns; back++) {
        const history_bucket *bucket = history_at(h, level, back);
        if (bucket != NULL && bucket->max_bytes > peak) {
            peak = bucket->max_bytes;
        }
    }
    return peak;
}

// ---- by event -------------------------------------------------------------------------------------------------

void profile_clear(profile *p)
{
    p->count = p->pending = 0;
    p->stride = 1;
}

static const profile_point *higher(const profile_point *a, const profile_point *b)
{
    return b->in_use_bytes > a->in_use_bytes ? b : a;
}

static void profile_halve(profile *p)
{
    for (uint32_t i = 0; i < PROFILE_LENGTH / 2; i++) {
        p->point[i] = *higher(&p->point[2 * i], &p->point[2 * i + 1]);
    }
    p->count = PROFILE_LENGTH / 2;
    p->stride *= 2;
}

void profile_add(profile *p, const heap_now *heap, uint8_t phase)
{
    p->stride = p->stride == 0 ? 1 : p->stride;
    bool joins = p->pending > 0 && p->pending < p->stride;
    if (!joins && p->count == PROFILE_LENGTH) {
        profile_halve(p);
    }
    if (joins && heap->in_use_bytes < p->point[p->count - 1].in_use_bytes) {
        p->pending++;
        return;
    }
    p->pending = joins ? p->pending + 1 : 1;
    profile_point *point = &p->point[joins ? p->count - 1 : p->count++];
    point->in_use_bytes = heap->in_use_bytes;
    point->phase = phase;
    memcpy(point->band_bytes, heap->band_bytes, sizeof point->band_bytes);
}

const profile_point *profile_column(const profile *p, uint32_t column, uint32_t columns)
{
    if (p->count == 0 || column >= columns) {
        return NULL;
    }
    uint32_t first = (uint32_t)((uint64_t)column * p->count / columns);
    uint32_t end = (uint32_t)((uint64_t)(column + 1) * p->count / columns);
    const profile_point *best = &p->point[first];
    for (uint32_t i = first + 1; i < end; i++) {
        best = higher(best, &p->point[i]);
    }
    return best;
}

// ---- by step --------------------------------------------------------------------------------------------------

void series_add(series *s, double value)
{
    if (s->stride == 0) {
        s->stride = 1;
    }
    if (s->pending > 0 && s->pending < s->stride) {
        double *mean = &s->mean[s->count - 1];
        *mean += (value - *mean) / ++s->pending;
        return;
    }
    if (s->count == SERIES_LENGTH) {
        for (uint32_t i = 0; i < SERIES_LENGTH / 2; i++) {
            s->mean[i] = (s->mean[2 * i] + s->mean[2 * i + 1]) / 2;
        }
        s->count = SERIES_LENGTH / 2;
        s->stride *= 2;
    }
    s->mean[s->count++] = value;
    s->pending = 1;
}
