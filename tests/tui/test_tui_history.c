// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "app/tui/feed/history.h"
#include "tests/tui/suite.h"

static const uint64_t ms = 1000000;

static heap_now heap_of(uint64_t bytes)
{
    heap_now heap = {.in_use_bytes = bytes, .pool_bytes = 1000};
    heap.band_bytes[HR_CATEGORY_ACTIVATIONS] = bytes;
    return heap;
}

static void add(history *h, uint64_t time_ns, uint64_t bytes, uint8_t marks)
{
    heap_now heap = heap_of(bytes);
    history_add(h, time_ns, &heap, marks);
}

START_TEST(a_peak_of_one_event_is_seen_at_every_zoom)
{
    history *h = calloc(1, sizeof *h);
    for (uint64_t i = 0; i < 5000; i++) {
        add(h, i * 10 * ms, i == 2345 ? 900 : 100, 0);
    }
    for (unsigned level = 1; level < HISTORY_LEVELS; level++) {
        ck_assert_uint_eq(history_peak_bytes(h, level, HISTORY_LENGTH), 900);
    }
    ck_assert_uint_eq(history_peak_bytes(h, 0, 10), 100);
    free(h);
}
END_TEST

START_TEST(a_bucket_keeps_highest_lowest_bands_and_marks)
{
    history *h = calloc(1, sizeof *h);
    add(h, 0, 50, 0);
    add(h, 20 * ms, 80, MARK_KNOB);
    add(h, 40 * ms, 20, 0);
    const history_bucket *b = history_at(h, 0, 0);
    ck_assert_ptr_nonnull(b);
    ck_assert_uint_eq(b->max_bytes, 80);
    ck_assert_uint_eq(b->min_bytes, 20);
    ck_assert_uint_eq(b->band_bytes[HR_CATEGORY_ACTIVATIONS], 80);
    ck_assert_uint_eq(b->marks, MARK_KNOB);
    ck_assert_ptr_null(history_at(h, 0, 1));
    free(h);
}
END_TEST

START_TEST(memory_is_held_through_silence)
{
    history *h = calloc(1, sizeof *h);
    add(h, 0, 70, 0);
    add(h, 125 * ms * 10, 10, 0);
    for (uint32_t back = 1; back <= 9; back++) {
        ck_assert_uint_eq(history_at(h, 0, back)->max_bytes, 70);
        ck_assert_uint_eq(history_at(h, 0, back)->min_bytes, 70);
    }
    ck_assert_uint_eq(history_at(h, 0, 0)->max_bytes, 70); // held until the event
    ck_assert_uint_eq(history_at(h, 0, 0)->min_bytes, 10);
    add(h, UINT64_MAX / 2, 5, 0); // a silence longer than the whole ring
    ck_assert_uint_eq(history_at(h, 0, HISTORY_LENGTH - 1)->max_bytes, 10);
    ck_assert_ptr_null(history_at(h, 0, HISTORY_LENGTH));
    free(h);
}
END_TEST

START_TEST(time_that_runs_backwards_counts_into_the_newest_bucket)
{
    history *h = calloc(1, sizeof *h);
    add(h, 10000 * ms, 10, 0);
    add(h, 0, 99, 0);
    ck_assert_uint_eq(history_at(h, 0, 0)->max_bytes, 99);
    ck_assert_ptr_null(history_at(h, 0, 1));
    free(h);
}
END_TEST

START_TEST(a_profile_of_any_length_keeps_the_peak_of_the_step)
{
    profile *p = calloc(1, sizeof *p);
    for (uint32_t events = 1; events < 20000; events = events * 3 + 1) {
        profile_clear(p);
        for (uint32_t i = 0; i < events; i++) {
            heap_now heap = heap_of(i == events * 2 / 3 ? 5000 : i % 100);
            profile_add(p, &heap, (uint8_t)(i * 3 / events));
        }
        ck_assert_uint_le(p->count, PROFILE_LENGTH);
        ck_assert_uint_eq(profile_column(p, 0, 1)->in_use_bytes, 5000);
        for (uint32_t x = 0; x < 300; x++) {
            ck_assert_ptr_nonnull(profile_column(p, x, 300));
        }
    }
    profile_clear(p);
    ck_assert_ptr_null(profile_column(p, 0, 1));
    free(p);
}
END_TEST

START_TEST(a_series_of_any_length_keeps_its_mean_and_its_ends)
{
    series *s = calloc(1, sizeof *s);
    for (int i = 0; i < 100000; i++) {
        series_add(s, i);
    }
    ck_assert_uint_le(s->count, SERIES_LENGTH);
    ck_assert_double_lt(s->mean[0], 400);
    ck_assert_double_gt(s->mean[s->count - 1], 99000);
    for (uint32_t i = 1; i < s->count; i++) {
        ck_assert_double_gt(s->mean[i], s->mean[i - 1]);
    }
    free(s);
}
END_TEST

SUITE_MAIN("tui history", a_peak_of_one_event_is_seen_at_every_zoom,
           a_bucket_keeps_highest_lowest_bands_and_marks, memory_is_held_through_silence,
           time_that_runs_backwards_counts_into_the_newest_bucket,
           a_profile_of_any_length_keeps_the_peak_of_the_step,
           a_series_of_any_length_keeps_its_mean_and_its_ends)
