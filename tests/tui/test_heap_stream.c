// SPDX-License-Identifier: Apache-2.0
// The heap that the workbench keeps against the engine's own: whole trainings, turned knobs and lost events, under every
// allocator.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"
#include "headroom/session.h"

#include "app/tui/feed/heap_record.h"
#include "tests/tui/suite.h"

typedef struct watcher {
    hr_session *session;
    heap_record record;
    hr_knobs knobs;
    uint64_t heap_version, steps, losses;
    unsigned skipped; // of the events to come
} watcher;

static void watcher_open(watcher *w, const char *const *pairs)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    memset(w, 0, sizeof *w);
    ck_assert_msg(hr_preset_open("presets/demo.yaml", false, &preset, NULL, &err) == HR_OK, "%s",
                  err.sentence);
    w->knobs = *hr_preset_knobs(preset);
    hr_preset_close(preset);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&w->knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    hr_session_options options = {.preset = "presets/demo.yaml", .knobs = &w->knobs};
    ck_assert_msg(hr_session_start_inline(&options, &w->session, &err) == HR_OK, "%s", err.sentence);
}

static void watcher_close(watcher *w)
{
    (void)hr_session_stop(w->session, NULL);
    heap_record_deinit(&w->record);
}

static void feed(watcher *w, const hr_event *e)
{
    if (w->skipped > 0 && e->kind >= HR_EVENT_ALLOC && e->kind <= HR_EVENT_SHRINK) {
        w->skipped--;
        w->losses++;
        heap_record_lost(&w->record, 1);
        return;
    }
    heap_record_knobs(&w->record, &w->knobs);
    heap_record_feed(&w->record, e);
    w->steps += e->kind == HR_EVENT_STEP;
}

static void drain(watcher *w)
{
    hr_event events[64];
    uint64_t lost;
    size_t count;
    do {
        count = hr_session_events(w->session, events, 64, &lost);
        ck_assert_uint_eq(lost, 0);
        for (size_t i = 0; i < count; i++) {
            feed(w, &events[i]);
        }
    } while (count > 0);
}

static void send(watcher *w, hr_command_kind kind, uint64_t count, hr_knob_id knob, const char *text)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count, .knob = knob};
    snprintf(c.text, sizeof c.text, "%s", text);
    ck_assert(hr_session_send(w->session, &c));
}

static void run(watcher *w, uint64_t steps)
{
    uint64_t until = w->steps + steps;
    send(w, HR_COMMAND_RUN, steps, 0, "");
    for (int i = 0; i < 200 && w->steps < until; i++) {
        (void)hr_session_advance(w->session, 1);
        drain(w);
    }
    ck_assert_uint_eq(w->steps, until);
}

static bool take_heap(watcher *w, hr_session_heap *heap)
{
    hr_session_ask_heap(w->session);
    for (int i = 0; i < 20; i++) {
        (void)hr_session_advance(w->session, 1);
        drain(w);
        if (hr_session_heap_now(w->session, &w->heap_version, heap)) {
            return true;
        }
    }
    return false;
}

static void heaps_must_agree(watcher *w, const char *what)
{
    hr_session_heap heap;
    heap_mirror snapshot = {.joins = w->record.now.joins};
    ck_assert(take_heap(w, &heap));
    ck_assert(heap.count > 0);
    ck_assert_msg(heap_mirror_restore(&snapshot, &heap), "%s: the snapshot contradicts itself", what);
    ck_assert_msg(heap_mirror_equal(&snapshot, &w->record.now),
                  "%s: %zu blocks in %zu regions, and %zu in %zu in the snapshot", what,
                  w->record.now.block_count, w->record.now.region_count, snapshot.block_count,
                  snapshot.region_count);
    ck_assert_uint_eq(w->record.damage, 0);
    heap_mirror_deinit(&snapshot);
    hr_session_heap_deinit(&heap);
}

#define PLANNED "device.kind=plan", "device.vram=128MiB", "batch.size=32"

static const char *const trainings[][8] = {
    {PLANNED, "allocator.kind=bfc", "allocator.growth=on"},
    {PLANNED, "allocator.kind=bfc", "allocator.growth=off"},
    {PLANNED, "allocator.kind=caching"},
    {PLANNED, "allocator.kind=caching", "allocator.expandable_segments=on"},
    {PLANNED, "allocator.kind=async", "execution.mode=graph"},
    {PLANNED, "allocator.kind=direct"},
    {PLANNED, "allocator.kind=static", "execution.mode=graph"},
};

START_TEST(the_heap_of_a_training_is_the_engines_also_behind_a_turned_knob)
{
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++) {
        watcher w;
        watcher_open(&w, trainings[i]);
        run(&w, 2);
        heaps_must_agree(&w, trainings[i][3]);
        ck_assert_int_eq(w.record.step.kind, HEAP_STEP_TRAINED);
        ck_assert_uint_eq(w.record.step.number, 2);
        ck_assert_uint_gt(w.record.closed, 20);
        ck_assert_ptr_nonnull(strstr(trainings[i][3], w.record.step.allocator));
        send(&w, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "48");
        run(&w, 2);
        heaps_must_agree(&w, trainings[i][3]);
        watcher_close(&w);
    }
}
END_TEST

START_TEST(a_turn_to_another_allocator_leaves_nothing_of_the_one_before)
{
    watcher w;
    watcher_open(&w, trainings[2]);
    run(&w, 2);
    static const char *const kinds[] = {"async", "bfc", "direct", "caching"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        send(&w, HR_COMMAND_KNOB, 0, HR_KNOB_ALLOCATOR_KIND, kinds[i]);
        ck_assert_int_eq(hr_knobs_set(&w.knobs, HR_KNOB_ALLOCATOR_KIND, kinds[i], NULL), HR_OK);
        run(&w, 2);
        heaps_must_agree(&w, kinds[i]);
        ck_assert_str_eq(w.record.step.allocator, kinds[i]);
    }
    watcher_close(&w);
}
END_TEST

START_TEST(lost_events_are_made_good_by_the_sessions_heap)
{
    watcher w;
    hr_session_heap heap;
    watcher_open(&w, trainings[0]);
    run(&w, 2);
    w.skipped = 9;
    run(&w, 1);
    ck_assert_uint_eq(w.losses, 9);
    ck_assert(take_heap(&w, &heap));
    if (w.record.broken) {
        ck_assert(heap_record_restore(&w.record, &heap));
    }
    hr_session_heap_deinit(&heap);
    run(&w, 2);
    ck_assert_int_eq(w.record.step.kind, HEAP_STEP_TRAINED);
    ck_assert_uint_eq(w.record.step.number, 5);
    w.record.damage = 0; // of the events behind the gap
    heaps_must_agree(&w, "behind a gap");
    watcher_close(&w);
}
END_TEST

START_TEST(a_step_that_does_not_fit_leaves_the_heap_and_its_refusal)
{
    watcher w;
    watcher_open(&w, trainings[0]);
    run(&w, 2);
    size_t closed = w.record.closed;
    send(&w, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "512");
    send(&w, HR_COMMAND_RUN, 1, 0, "");
    for (int i = 0; i < 20; i++) {
        (void)hr_session_advance(w.session, 1);
        drain(&w);
    }
    ck_assert(w.record.refused.any);
    ck_assert(!w.record.refused.is_recorded);
    ck_assert_uint_gt(w.record.refused.requested_bytes, w.record.refused.largest_free_bytes);
    ck_assert_uint_eq(w.record.closed, closed);
    ck_assert_uint_eq(w.record.damage, 0);
    send(&w, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "16");
    run(&w, 1);
    ck_assert(!w.record.refused.any);
    watcher_close(&w);
}
END_TEST

SUITE_MAIN("heap stream", the_heap_of_a_training_is_the_engines_also_behind_a_turned_knob,
           a_turn_to_another_allocator_leaves_nothing_of_the_one_before,
           lost_events_are_made_good_by_the_sessions_heap,
           a_step_that_does_not_fit_leaves_the_heap_and_its_refusal)
