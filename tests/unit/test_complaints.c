// SPDX-License-Identifier: Apache-2.0
// The complaints in the field (DESIGN; numbered as its list of allocators' complaints has them): each that a trace, a record or
// a preset can be built of gets the cause that it had, with what shows it. Of the others, why they have none:
//
//   7   an option that a version ignores: nothing runs out, and a snapshot does not say what was asked for
//   8   options that crash together: refused before anything is asked for (unit/knobs)
//   17  memory that stays with the process after the training: nothing is refused; below, as such
//   21  recovering, moving blocks, snapshots too large to view: wishes, not causes
//   22  a dump of minutes: what is said first here is five lines
//
// Of a preset 5, 16 and 18 are played. 13, two copies of one thing, cannot be: every persistent tensor of a program is made once, in
// its place, a save is read into it through host memory, and a batch that is on the device once more is one that waits (16).
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/replay.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "insight/diagnose.h"
#include "insight/replay.h"
#include "insight/scenario.h"
#include "unit/scenario_play.h"
#include "unit/small_engine.h"

// ---- traces of our own ----------------------------------------------------------------------------------------

static const struct {
    int number;
    const char *scenario, *pairs[4];
    hr_oom_cause cause;
    const char *shows; // in the sentence or in a line of evidence
    const char *helps; // among the fixes; NULL: whatever is
    const char *never; // in none of them
} complaints[] = {
    {1, "pinned_holes", {"allocator.kind=caching"}, HR_OOM_FRAGMENTATION, "stand", "max_split", NULL},
    {2, "train_and_evaluate", {"allocator.kind=caching"}, HR_OOM_FRAGMENTATION, "in one", NULL, NULL},
    {3,
     "train_and_evaluate",
     {"allocator.kind=caching"},
     HR_OOM_FRAGMENTATION,
     "the largest piece",
     NULL,
     NULL},
    {4,
     "train_and_evaluate",
     {"allocator.kind=caching", "allocator.expandable_segments=on", "device.vram=3GiB"},
     HR_OOM_CAPACITY,
     "asks for",
     NULL,
     "expandable_segments"},
    {5, "near_full", {"allocator.kind=caching"}, HR_OOM_RETRIES, "5 times", "expandable_segments", NULL},
    {6,
     "two_streams",
     {"allocator.kind=caching"},
     HR_OOM_RETRIES,
     "times the device had nothing left",
     NULL,
     NULL},
    {9,
     "retained_predictions",
     {"allocator.kind=caching"},
     HR_OOM_LEAK,
     "+196.3 MiB/step",
     NULL,
     "allocator"},
    {9, "retained_predictions", {"allocator.kind=bfc"}, HR_OOM_LEAK, "lm_head/out", NULL, "allocator"},
    {11, "largest_hole", {"allocator.kind=bfc"}, HR_OOM_FRAGMENTATION, "563.5 MiB are free", NULL, NULL},
    {12,
     "growth_boundary",
     {"allocator.kind=bfc"},
     HR_OOM_FRAGMENTATION,
     "in one",
     "allocator.growth=off",
     NULL},
    {13, "two_copies", {"allocator.kind=bfc"}, HR_OOM_DOUBLE_COPY, "fc1/weights:initial", NULL, "allocator"},
    {14,
     "region_collection",
     {"allocator.kind=bfc", "allocator.growth=on"},
     HR_OOM_RETRIES,
     "went back",
     "allocator.growth=off",
     NULL},
    {17, "pool_stays", {"allocator.kind=caching"}, HR_OOM_NONE, "", NULL, NULL},
    {19,
     "region_collection",
     {"allocator.kind=bfc", "allocator.growth=on", "allocator.garbage_collection=off"},
     HR_OOM_FRAGMENTATION,
     "in one",
     "allocator.garbage_collection=on",
     NULL},
};

static bool is_shown(const hr_report_oom *oom, const char *words)
{
    bool found = strstr(oom->sentence, words) != NULL;
    for (uint32_t k = 0; k < oom->evidence_count; k++) {
        found = found || strstr(oom->evidence[k].line, words) != NULL;
    }
    return found;
}

static bool has_fix(const hr_report_oom *oom, const char *words)
{
    bool found = false;
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        found = found || strstr(oom->fixes[k].knobs, words) != NULL;
    }
    return found;
}

static void check_fixes(hr_replay *replay, const hr_knobs *knobs, const hr_report_oom *oom)
{
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        hr_knobs turned = *knobs;
        hr_replay_result result;
        ck_assert_int_eq(hr_knobs_set_pair(&turned, oom->fixes[k].knobs, NULL), HR_OK);
        ck_assert_int_eq(hr_replay_run(replay, &turned, NULL, &result, NULL), HR_OK);
        ck_assert_msg(result.failures_total == 0, "%s does not fit", oom->fixes[k].knobs);
        hr_replay_result_deinit(&result);
    }
}

START_TEST(a_complaint_that_can_be_played_gets_its_cause)
{
    hr_err err = {0};
    hr_replay *replay = NULL;
    hr_knobs knobs;
    hr_report r;
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    ck_assert_msg(hr_replay_open(complaints[_i].scenario, &replay, &err) == HR_OK, "%s", err.sentence);
    hr_replay_knobs_init(&knobs);
    for (int k = 0; k < 4 && complaints[_i].pairs[k] != NULL; k++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, complaints[_i].pairs[k], &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_replay_explain(replay, &knobs, complaints[_i].scenario, &r, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(r.oom.cause == complaints[_i].cause, "%d, %s: %s", complaints[_i].number,
                  complaints[_i].scenario, r.oom.sentence);
    ck_assert_msg(is_shown(&r.oom, complaints[_i].shows), "%d: '%s' is not in: %s", complaints[_i].number,
                  complaints[_i].shows, r.oom.sentence);
    ck_assert_msg(complaints[_i].helps == NULL || has_fix(&r.oom, complaints[_i].helps),
                  "%d: %s does not help", complaints[_i].number, complaints[_i].helps);
    ck_assert_msg(complaints[_i].never == NULL || !has_fix(&r.oom, complaints[_i].never),
                  "%d: %s is said to help", complaints[_i].number, complaints[_i].never);
    check_fixes(replay, &knobs, &r.oom);
    hr_report_deinit(&r);
    hr_replay_close(replay);
}
END_TEST

// ---- snapshots of PyTorch's ---------------------------------------------------------------------------------------

static const struct {
    const char *scenario;
    hr_oom_cause cause;
    const char *shows;
} snapshots[] = {
    {"retained_predictions", HR_OOM_LEAK, "+196.3 MiB/step"}, // without a mark where a step ends
    {"train_and_evaluate", HR_OOM_FRAGMENTATION, "in one"},
    {"pinned_holes", HR_OOM_FRAGMENTATION, "in one"},
    {"two_copies", HR_OOM_DOUBLE_COPY, "fc1/weights:initial"},
};

// What an observer of out-of-memories writes: the scenario up to the request that is refused, as PyTorch has it.
static void write_snapshot(const char *scenario, const char *path)
{
    const hr_scenario *row = hr_scenario_find(scenario, NULL);
    const allocator_config config = allocator_config_of("caching", row->limit_bytes);
    char vram[64], bytes[HR_BYTES_TEXT_MAX];
    trace t;
    hr_replay *replay = NULL;
    hr_knobs knobs;
    hr_replay_result result;
    hr_err err = {0};
    const hr_replay_options options = {.trace_file = path};
    ck_assert_int_eq(scenario_trace(row, &t, NULL), HR_OK);
    const played p = play_trace(&t, &config);
    ck_assert_uint_gt(p.failures, 0);
    t.events.count = (uint32_t)p.first_failure + 1;
    ck_assert_int_eq(replay_of_trace(&t, &replay, NULL), HR_OK);
    hr_replay_knobs_init(&knobs);
    (void)snprintf(vram, sizeof vram, "device.vram=%s", hr_bytes_exact(row->limit_bytes, bytes));
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, vram, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "allocator.kind=caching", NULL), HR_OK);
    ck_assert_msg(hr_replay_run(replay, &knobs, &options, &result, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(result.failures_total, 1);
    hr_replay_result_deinit(&result);
    hr_replay_close(replay);
}

START_TEST(a_complaint_in_a_snapshot_gets_its_cause)
{
    char place[] = "/tmp/headroom_complaint_XXXXXX", path[64];
    hr_err err = {0};
    hr_replay *replay = NULL;
    hr_knobs knobs;
    hr_report r;
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    ck_assert_ptr_nonnull(mkdtemp(place));
    (void)snprintf(path, sizeof path, "%s/oom.pickle", place);
    write_snapshot(snapshots[_i].scenario, path);
    const hr_status status = hr_replay_open(path, &replay, &err);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(remove(place), 0);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    hr_replay_knobs_of(replay, &knobs);
    ck_assert_msg(hr_replay_explain(replay, &knobs, "snapshot", &r, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(r.oom.cause == snapshots[_i].cause, "%s", r.oom.sentence);
    ck_assert_msg(is_shown(&r.oom, snapshots[_i].shows), "%s", r.oom.sentence);
    hr_report_deinit(&r);
    hr_replay_close(replay);
}
END_TEST

START_TEST(a_card_that_was_asked_about_leaves_the_record_as_it_was)
{
    hr_replay *replay = NULL;
    hr_knobs knobs;
    hr_report r;
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    ck_assert_int_eq(hr_replay_open("tests/data/refused/near_full.pickle", &replay, NULL), HR_OK);
    hr_replay_knobs_of(replay, &knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.card=h100-80g", NULL), HR_OK);
    ck_assert_int_eq(hr_replay_explain(replay, &knobs, "snapshot", &r, NULL), HR_OK);
    ck_assert_int_eq(r.oom.cause, HR_OOM_OUTSIDE); // who has the other 79 GiB
    hr_report_deinit(&r);
    hr_replay_knobs_of(replay, &knobs);
    ck_assert_int_eq(hr_replay_explain(replay, &knobs, "snapshot", &r, NULL), HR_OK);
    ck_assert_int_eq(r.oom.cause, HR_OOM_ROUNDING);
    ck_assert_uint_eq(replay->recorded->snapshot.refusal.device_bytes, 0);
    hr_report_deinit(&r);
    hr_replay_close(replay);
}
END_TEST

// Each request for host memory fails once, and nothing is lost.
START_TEST(without_host_memory_nothing_is_said)
{
    hr_replay *replay = NULL;
    hr_knobs knobs;
    bool failed = true;
    ck_assert_int_eq(setenv("HEADROOM_DATA", "presets", 1), 0);
    ck_assert_int_eq(hr_replay_open("small_tensors", &replay, NULL), HR_OK);
    hr_replay_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=64MiB", NULL), HR_OK);
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1; failed; nth += 1 + nth / 16) {
        hr_err err = {0};
        hr_report r;
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_replay_explain(replay, &knobs, "trace", &r, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert(status == HR_OK || (failed && err.sentence[0] != '\0'));
        if (status == HR_OK) {
            ck_assert_int_ne(r.oom.cause, HR_OOM_NONE);
            hr_report_deinit(&r);
        }
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_replay_close(replay);
}
END_TEST

// ---- logs -----------------------------------------------------------------------------------------------------

static const struct {
    int number;
    const char *log;
    hr_oom_cause cause;
    const char *shows;
} logs[] = {
    // Two blocks of 5.31 GiB of a pool of 10.57: nothing but the size says that it is one variable.
    {13,
     "W Allocator (GPU_0_bfc) ran out of memory trying to allocate 5.31GiB (rounded to 5701569280)\n"
     "I BFCAllocator dump for GPU_0_bfc\n"
     "I Next region of size 11349451264\n"
     "I InUse at 7f0000000000 of size 5701569280 next 2\n"
     "I Free  at 7f0153d70b00 of size 5647881984 next 18446744073709551615\n"
     "I Sum Total of in-use chunks: 5.31GiB\n"
     "I Stats: \nLimit:         11349451264\nInUse:          5701569280\n",
     HR_OOM_DOUBLE_COPY, "5.31 GiB"},
    {15,
     "I Found device 0 with properties: pciBusID: 0000:00:00.0 name: Xavier computeCapability: 7.2\n"
     "coreClock: 1.109GHz coreCount: 6 deviceMemorySize: 7.59GiB deviceMemoryBandwidth: 66.10GiB/s\n"
     "W Allocator (GPU_0_bfc) ran out of memory trying to allocate 64.00MiB (rounded to 67108864)\n"
     "I BFCAllocator dump for GPU_0_bfc\n"
     "I Next region of size 70254592\n"
     "I InUse at 7f0000000000 of size 33554432 next 2\n"
     "I Free  at 7f0002000000 of size 36700160 next 18446744073709551615\n"
     "I Sum Total of in-use chunks: 32.00MiB\n"
     "I Stats: \nLimit:            70254592\nInUse:            33554432\n",
     HR_OOM_LIMIT, "of a card of 7.59 GiB"},
    // A pool of 6 MiB that may have 10 GiB, and is refused 6 MiB more.
    {20,
     "W Allocator (GPU_0_bfc) ran out of memory trying to allocate 6.00MiB (rounded to 6291456)\n"
     "I BFCAllocator dump for GPU_0_bfc\n"
     "I Next region of size 6291456\n"
     "I InUse at 7f0000000000 of size 6291456 next 18446744073709551615\n"
     "I Sum Total of in-use chunks: 6.00MiB\n"
     "I Stats: \nLimit:         10737418240\nInUse:             6291456\n",
     HR_OOM_OUTSIDE, "the card had no more to give"},
};

static hr_report explain_log(const char *log)
{
    char path[] = "/tmp/headroom_complaint_XXXXXX";
    hr_err err = {0};
    hr_replay *replay = NULL;
    hr_knobs knobs;
    hr_report r;
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, log, strlen(log)), (ssize_t)strlen(log));
    ck_assert_int_eq(close(fd), 0);
    const hr_status status = hr_replay_open(path, &replay, &err);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    hr_replay_knobs_init(&knobs);
    ck_assert_msg(hr_replay_explain(replay, &knobs, "log", &r, &err) == HR_OK, "%s", err.sentence);
    hr_replay_close(replay);
    return r;
}

START_TEST(a_complaint_that_was_logged_gets_its_cause)
{
    hr_report r = explain_log(logs[_i].log);
    ck_assert_msg(r.oom.cause == logs[_i].cause, "%d: %s", logs[_i].number, r.oom.sentence);
    ck_assert_msg(is_shown(&r.oom, logs[_i].shows), "%d: %s", logs[_i].number, r.oom.sentence);
    hr_report_deinit(&r);
}
END_TEST

static const struct {
    const char *lines;
    bool is_limit; // of a card that is known to be larger
} cards[] = {
    {"totalMemory: 7.59GiB freeMemory: 7.01GiB\n", true},
    {"deviceMemorySize: 7.59GiB\ndeviceMemorySize: 7.59GiB\n", true},
    {"srun: job 17 Memory: 64.00GiB\n", false},
    {"srun: job 17 Memory: 64.00GiB\ndeviceMemorySize: 7.59GiB\n", true},
    {"deviceMemorySize: 7.59GiB\ndeviceMemorySize: 3.87GiB\n", false}, // of which it is, no line says
};

START_TEST(the_size_of_a_card_is_what_tensorflow_says_of_its_own)
{
    const char *const dump = strstr(logs[1].log, "W Allocator");
    char log[2000];
    (void)snprintf(log, sizeof log, "%s%s", cards[_i].lines, dump);
    hr_report r = explain_log(log);
    ck_assert_msg((r.oom.cause == HR_OOM_LIMIT) == cards[_i].is_limit, "%s", r.oom.sentence);
    ck_assert_msg(!cards[_i].is_limit || is_shown(&r.oom, "of a card of 7.59 GiB"), "%s", r.oom.sentence);
    hr_report_deinit(&r);
}
END_TEST

// ---- 10: what others hold of the card -------------------------------------------------------------------------

START_TEST(memory_of_others_is_told_from_the_pool)
{
    heap_snapshot p = {.source = "cuda:0"};
    hr_report_oom oom;
    heap_chunk *c = vec_push(&p.chunks);
    ck_assert_ptr_nonnull(c);
    *c = (heap_chunk){.address = HR_GIB,
                      .size_bytes = 60 * HR_GIB,
                      .requested_bytes = 60 * HR_GIB,
                      .region_address = HR_GIB,
                      .region_bytes = 60 * HR_GIB,
                      .tensor = HR_NO_ID,
                      .region_kind = HEAP_REGION_LARGE,
                      .in_use = true};
    heap_snapshot_count(&p);
    p.refusal = (heap_refusal){.any = true,
                               .requested_bytes = 4 * HR_GIB,
                               .rounded_bytes = 4 * HR_GIB,
                               .tensor = HR_NO_ID,
                               .recorded = true,
                               .told = true,
                               .device_free_bytes = 300 * HR_MIB,
                               .device_bytes = 80 * HR_GIB};
    diagnose_record(&p, &(oom_evidence){0}, &oom);
    ck_assert_msg(oom.cause == HR_OOM_OUTSIDE, "%s", oom.sentence);
    ck_assert_ptr_nonnull(strstr(oom.sentence, "other processes have 19.71 GiB"));
    p.refusal.device_bytes = 62 * HR_GIB; // a context's worth: nobody else
    diagnose_record(&p, &(oom_evidence){0}, &oom);
    ck_assert_msg(oom.cause == HR_OOM_CAPACITY, "%s", oom.sentence);
    heap_snapshot_deinit(&p);
}
END_TEST

// ---- 16, 18: batches that wait --------------------------------------------------------------------------------

START_TEST(batches_that_wait_are_said_to_be_the_devices_or_the_hosts)
{
    const hr_engine_options options = {.plan_only = true};
    hr_engine *e =
        create((const char *[]){"device.kind=plan", "device.vram=1GiB", "pipeline.device_prefetch=0", NULL},
               &options);
    run_steps(e, 1);
    hr_report r = report_of(e);
    const uint64_t peak_bytes = r.memory.peak_in_use_bytes;
    char vram[64], bytes[HR_BYTES_TEXT_MAX];
    (void)snprintf(vram, sizeof vram, "device.vram=%s",
                   hr_bytes_exact((peak_bytes / 4096 + 8) * 4096, bytes));
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    e = create((const char *[]){"device.kind=plan", vram, "pipeline.device_prefetch=64", NULL}, &options);
    run_steps(e, 1);
    r = report_of(e);
    ck_assert_msg(r.oom.cause == HR_OOM_PIPELINE && !r.oom.of_host, "%s", r.oom.sentence);
    ck_assert_ptr_nonnull(strstr(r.oom.sentence, "pipeline.device_prefetch holds"));
    ck_assert(has_fix(&r.oom, "pipeline.device_prefetch="));
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    e = create((const char *[]){"device.kind=plan", "device.vram=1GiB", "pipeline.ram_limit=1KiB", NULL},
               &options);
    run_steps(e, 1);
    r = report_of(e);
    ck_assert_msg(r.oom.cause == HR_OOM_PIPELINE && r.oom.of_host, "%s", r.oom.sentence);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// ---- 5: a preset near the limit -------------------------------------------------------------------------------

static hr_engine *played_on(const hr_preset *demo, const hr_knobs *knobs)
{
    const hr_engine_options options = {.plan_only = true};
    hr_engine *e = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_engine_create(demo, knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    run_steps(e, 4);
    return e;
}

static hr_report explained(const hr_preset *demo, const hr_knobs *knobs)
{
    hr_engine *e = played_on(demo, knobs);
    hr_report r;
    hr_err err = {0};
    ck_assert_msg(hr_engine_explain(e, &r, &err) == HR_OK, "%s", err.sentence);
    hr_engine_destroy(e);
    return r;
}

START_TEST(a_preset_that_goes_back_to_its_device_is_told_and_what_loses_no_time)
{
    hr_preset *demo = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open("demo", false, &demo, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(demo);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs,
                                        "device.kind=plan allocator.kind=caching batch.size=1024 "
                                        "device.vram=424MiB",
                                        &err),
                     HR_OK);
    hr_report r = explained(demo, &knobs);
    ck_assert_msg(r.oom.cause == HR_OOM_RETRIES, "%s", r.oom.sentence);
    ck_assert(is_shown(&r.oom, "went back to the device") && has_fix(&r.oom, "expandable_segments=on"));
    for (uint32_t k = 0; k < r.oom.fix_count; k++) {
        hr_knobs turned = knobs;
        ck_assert_int_eq(hr_knobs_set_pairs(&turned, r.oom.fixes[k].knobs, &err), HR_OK);
        hr_report with = explained(demo, &turned);
        ck_assert_msg(with.oom.cause == HR_OOM_NONE, "%s: %s", r.oom.fixes[k].knobs, with.oom.sentence);
        ck_assert_uint_eq(with.memory.peak_in_use_bytes, r.oom.fixes[k].peak_bytes);
        hr_report_deinit(&with);
    }
    hr_report_deinit(&r);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs, "device.vram=1GiB", &err), HR_OK);
    r = explained(demo, &knobs);
    ck_assert_int_eq(r.oom.cause, HR_OOM_NONE);
    hr_report_deinit(&r);
    hr_preset_close(demo);
}
END_TEST

// Of a session that ran out and of one that goes back to its device: each request for host memory fails once. What could not be
// tried is no fix; what is said stays true.
START_TEST(without_host_memory_a_session_says_less_and_nothing_false)
{
    static const char *const turns[] = {
        "device.kind=plan allocator.kind=caching batch.size=1024 device.vram=424MiB",
        "device.kind=plan allocator.kind=caching batch.size=1024 device.vram=200MiB"};
    hr_preset *demo = NULL;
    hr_report whole;
    bool failed = true;
    ck_assert_int_eq(hr_preset_open("demo", false, &demo, NULL, NULL), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(demo);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs, turns[_i], NULL), HR_OK);
    hr_engine *e = played_on(demo, &knobs);
    ck_assert_int_eq(hr_engine_explain(e, &whole, NULL), HR_OK);
    ck_assert_int_ne(whole.oom.cause, HR_OOM_NONE);
    const int64_t live = hr_host_mem_live();
    for (uint64_t nth = 1; failed; nth += 1 + nth / 4) {
        hr_err err = {0};
        hr_report r;
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_engine_explain(e, &r, &err);
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert(status == HR_OK || (failed && err.sentence[0] != '\0'));
        if (status == HR_OK) {
            ck_assert_int_eq(r.oom.cause, whole.oom.cause);
            ck_assert_str_eq(r.oom.sentence, whole.oom.sentence);
            ck_assert_uint_le(r.oom.fix_count, HR_FIXES_MAX);
            hr_report_deinit(&r);
        }
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_report_deinit(&whole);
    hr_engine_destroy(e);
    hr_preset_close(demo);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("complaints");
    TCase *cases = tcase_create("complaints");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, a_complaint_that_can_be_played_gets_its_cause, 0,
                        sizeof complaints / sizeof *complaints);
    tcase_add_loop_test(cases, a_complaint_that_was_logged_gets_its_cause, 0, sizeof logs / sizeof *logs);
    tcase_add_loop_test(cases, the_size_of_a_card_is_what_tensorflow_says_of_its_own, 0,
                        sizeof cards / sizeof *cards);
    tcase_add_loop_test(cases, a_complaint_in_a_snapshot_gets_its_cause, 0,
                        sizeof snapshots / sizeof *snapshots);
    tcase_add_test(cases, a_card_that_was_asked_about_leaves_the_record_as_it_was);
    tcase_add_test(cases, without_host_memory_nothing_is_said);
    tcase_add_test(cases, memory_of_others_is_told_from_the_pool);
    suite_add_tcase(suite, cases);
    TCase *engines = tcase_create("engines");
    tcase_add_checked_fixture(engines, open_preset, close_preset);
    tcase_add_test(engines, batches_that_wait_are_said_to_be_the_devices_or_the_hosts);
    tcase_add_test(engines, a_preset_that_goes_back_to_its_device_is_told_and_what_loses_no_time);
    tcase_add_loop_test(engines, without_host_memory_a_session_says_less_and_nothing_false, 0, 2);
    suite_add_tcase(suite, engines);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
