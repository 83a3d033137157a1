// SPDX-License-Identifier: Apache-2.0
// Out-of-memories whose cause is known by construction: what they are said to be, and whether what is said to help does.
// HEADROOM_OOM_CASES and HEADROOM_OOM_SEED draw more of them, and others.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "headroom/replay.h"

#include "insight/diagnose.h"
#include "insight/replay.h"
#include "unit/oom_cases.h"

enum { CASES = 40, CAUSES = HR_OOM_CAUSE_COUNT };

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *said = getenv(name);
    return said == NULL ? otherwise : strtoull(said, NULL, 10);
}

typedef struct tally {
    uint32_t said[CAUSES][CAUSES]; // [what it is][what it is said to be]
    uint32_t cases, right;
    uint32_t fixes, fits;
    char wrong[2000];
} tally;

static void set(hr_knobs *knobs, const char *key, const char *value)
{
    char pair[128];
    hr_err err = {0};
    (void)snprintf(pair, sizeof pair, "%s=%s", key, value);
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s: %s", pair, err.sentence);
}

static hr_knobs knobs_of(const oom_case *c, uint64_t limit_bytes)
{
    char bytes[HR_BYTES_TEXT_MAX];
    hr_knobs knobs;
    hr_replay_knobs_init(&knobs);
    set(&knobs, "allocator.kind", c->kind);
    set(&knobs, "device.vram", hr_bytes_exact(limit_bytes, bytes));
    if (strcmp(c->kind, "bfc") == 0) {
        set(&knobs, "allocator.growth", c->growth ? "on" : "off");
    }
    return knobs;
}

static bool is_refused(hr_replay *replay, const hr_knobs *knobs)
{
    hr_replay_result result;
    ck_assert_int_eq(hr_replay_run(replay, knobs, NULL, &result, NULL), HR_OK);
    const bool refused = result.failures_total > 0;
    hr_replay_result_deinit(&result);
    return refused;
}

// Whether each of the fixes serves the whole trace, which is not served without it, and, where nothing was refused,
// without going back to the device.
static void run_fixes(hr_replay *replay, const hr_knobs *knobs, const hr_report_oom *oom, tally *sum)
{
    ck_assert(oom->fix_count == 0 || !hr_oom_cause_refuses(oom->cause) || is_refused(replay, knobs));
    for (uint32_t k = 0; k < oom->fix_count; k++) {
        hr_knobs turned = *knobs;
        hr_replay_result result;
        ck_assert_int_eq(hr_knobs_set_pair(&turned, oom->fixes[k].knobs, NULL), HR_OK);
        ck_assert_int_eq(hr_replay_run(replay, &turned, NULL, &result, NULL), HR_OK);
        sum->fixes++;
        sum->fits +=
            result.failures_total == 0 && result.memory.peak_in_use_bytes == oom->fixes[k].peak_bytes;
        hr_replay_result_deinit(&result);
    }
}

static hr_replay *replay_of(const oom_case *c)
{
    trace t = oom_trace(c, true);
    hr_replay *replay = NULL;
    ck_assert_int_eq(replay_of_trace(&t, &replay, NULL), HR_OK);
    trace_deinit(&t);
    return replay;
}

static hr_oom_cause explain_replay(const oom_case *c, tally *sum, char *sentence, size_t size)
{
    hr_report report;
    hr_err err = {0};
    hr_replay *replay = replay_of(c);
    const hr_knobs knobs = knobs_of(c, c->limit_bytes);
    ck_assert_msg(hr_replay_explain(replay, &knobs, "case", &report, &err) == HR_OK, "%s", err.sentence);
    const hr_oom_cause cause = report.oom.cause;
    (void)snprintf(sentence, size, "%s", report.oom.sentence);
    run_fixes(replay, &knobs, &report.oom, sum);
    hr_report_deinit(&report);
    hr_replay_close(replay);
    return cause;
}

// A record of what the driver said: the heap of a play that had no more, or no leave to take more.
static hr_oom_cause explain_record(const oom_case *c, char *sentence, size_t size)
{
    replay_player p;
    hr_report_oom oom;
    oom_evidence shown;
    trace t = oom_trace(c, true);
    replay_setup setup = {.config = allocator_config_of(c->kind, c->limit_bytes), .keeps_failure_heap = true};
    ck_assert_int_eq(replay_start(&p, &t, &setup, NULL), HR_OK);
    ck_assert_int_eq(replay_play(&p, UINT32_MAX, NULL), HR_OK);
    heap_snapshot *heap = p.failure_heap;
    ck_assert_ptr_nonnull(heap);
    heap->refusal.recorded = true;
    if (c->cause == HR_OOM_LIMIT) {
        heap->refusal.told = true;
        heap->refusal.device_free_bytes = c->card_bytes - heap->counters.pool_bytes;
        heap->counters.limit_bytes = 0;
    } else if (strcmp(c->kind, "caching") == 0) { // others have the rest of the card
        heap->refusal.told = true;
        heap->refusal.device_free_bytes = c->limit_bytes - heap->counters.pool_bytes;
        heap->refusal.device_bytes = c->card_bytes + HR_GIB;
        heap->counters.limit_bytes = 0;
    } else {
        heap->counters.limit_bytes = c->card_bytes;
    }
    ck_assert_int_eq(evidence_of(&t, 0, p.failures[0].event, heap, &shown, NULL), HR_OK);
    diagnose_record(heap, &shown, &oom);
    (void)snprintf(sentence, size, "%s", oom.sentence);
    replay_close(&p);
    trace_deinit(&t);
    return oom.cause;
}

static void explain_case(const oom_case *c, tally *sum)
{
    char sentence[sizeof((hr_report_oom *)NULL)->sentence];
    const bool recorded = c->cause == HR_OOM_OUTSIDE || c->cause == HR_OOM_LIMIT;
    const hr_oom_cause said = recorded ? explain_record(c, sentence, sizeof sentence)
                                       : explain_replay(c, sum, sentence, sizeof sentence);
    sum->cases++;
    sum->right += said == c->cause;
    sum->said[c->cause][said]++;
    const size_t used = strlen(sum->wrong);
    if (said != c->cause && used < sizeof sum->wrong) {
        (void)snprintf(sum->wrong + used, sizeof sum->wrong - used, "\n  seed %" PRIu64 ", %s on %s: %s",
                       c->seed, hr_oom_cause_name(c->cause), c->kind, sentence);
    }
}

static const char *matrix_of(const tally *sum, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "\nwhat it is, and how often it is said to be what");
    for (int is = 1; is < CAUSES && used < size; is++) {
        used += (size_t)snprintf(out + used, size - used, "\n  %-14s", hr_oom_cause_name((hr_oom_cause)is));
        for (int said = 0; said < CAUSES && used < size; said++) {
            if (sum->said[is][said] > 0) {
                used += (size_t)snprintf(out + used, size - used, " %s %u",
                                         hr_oom_cause_name((hr_oom_cause)said), sum->said[is][said]);
            }
        }
    }
    return out;
}

START_TEST(a_cause_that_is_known_is_named_and_what_is_said_to_help_does)
{
    static tally sum;
    char matrix[2000];
    uint64_t seed = setting("HEADROOM_OOM_SEED", 1);
    const uint64_t count = setting("HEADROOM_OOM_CASES", CASES);
    for (uint64_t k = 0; k < count; k++) {
        const oom_case c = oom_next_case((hr_oom_cause)(1 + k % (CAUSES - 1)), &seed);
        explain_case(&c, &sum);
    }
    (void)matrix_of(&sum, matrix, sizeof matrix);
    if (getenv("HEADROOM_OOM_CASES") != NULL) {
        printf("{\"cases\": %u, \"right\": %u, \"fixes\": %u, \"fit\": %u}%s%s\n", sum.cases, sum.right,
               sum.fixes, sum.fits, matrix, sum.wrong);
    }
    ck_assert_msg(sum.right * 100 >= sum.cases * 98, "%u of %u are right%s%s", sum.right, sum.cases, matrix,
                  sum.wrong);
    ck_assert_msg(sum.fits == sum.fixes, "%u of %u fixes fit", sum.fits, sum.fixes);
    ck_assert_uint_gt(sum.fixes, 0);
}
END_TEST

// No later: holes take their share as well.
START_TEST(what_stays_of_each_step_fills_it_in_the_steps_that_are_said)
{
    enum { CASES_OF_IT = 12 };
    uint64_t seed = setting("HEADROOM_OOM_SEED", 5);
    for (int k = 0; k < CASES_OF_IT; k++) {
        oom_case c = oom_next_case(HR_OOM_NEAR_FULL, &seed);
        hr_replay *replay = replay_of(&c);
        const hr_knobs knobs = knobs_of(&c, c.limit_bytes);
        hr_report report;
        ck_assert_int_eq(hr_replay_explain(replay, &knobs, "case", &report, NULL), HR_OK);
        ck_assert_int_eq(report.oom.cause, HR_OOM_NEAR_FULL);
        const char *said = strstr(report.oom.sentence, "full in ");
        ck_assert_ptr_nonnull(said);
        c.steps += (uint32_t)strtoul(said + strlen("full in at most "), NULL, 10);
        ck_assert_msg(oom_play(&c, true, c.limit_bytes).failures > 0, "seed %" PRIu64 ": %s", c.seed,
                      report.oom.sentence);
        hr_report_deinit(&report);
        hr_replay_close(replay);
    }
}
END_TEST

// Six weights, of each of five steps one block that stays, and one that the next step gives back; all of one size and name.
static trace leaking_trace(void)
{
    enum { WEIGHTS = 6, STEPS = 5, BYTES = 8 * HR_MIB };
    trace t = {.format = "made"};
    oom_maker m = {.t = &t};
    uint64_t before = 0;
    trace_builder_init(&m.builder, &t);
    for (int k = 0; k < WEIGHTS; k++) {
        (void)oom_take(&m, "w", BYTES);
    }
    for (int k = 0; k < STEPS; k++) {
        oom_add(&m, TRACE_STEP, 0, NULL, 0);
        (void)oom_take(&m, "w", BYTES);
        if (before != 0) {
            oom_give(&m, before);
        }
        before = oom_take(&m, "w", BYTES);
    }
    oom_add(&m, TRACE_STEP, 0, NULL, 0);
    const uint64_t late = oom_take(&m, "late", 64 * HR_MIB);
    oom_give(&m, before);
    oom_give(&m, late);
    trace_builder_deinit(&m.builder);
    t.rows = m.row;
    return t;
}

START_TEST(a_leak_is_neither_weights_nor_what_goes_later)
{
    replay_player p;
    oom_evidence shown;
    trace t = leaking_trace();
    replay_setup setup = {.config = allocator_config_of("caching", 140 * HR_MIB), .keeps_failure_heap = true};
    ck_assert_int_eq(replay_start(&p, &t, &setup, NULL), HR_OK);
    ck_assert_int_eq(replay_play(&p, UINT32_MAX, NULL), HR_OK);
    ck_assert_ptr_nonnull(p.failure_heap);
    ck_assert_int_eq(evidence_of(&t, 0, p.failures[0].event, p.failure_heap, &shown, NULL), HR_OK);
    ck_assert_uint_eq(shown.leak.step_bytes, 8 * HR_MIB);
    ck_assert_uint_eq(shown.leak.blocks, 5);
    ck_assert_uint_eq(shown.leak.without.held_bytes, 40 * HR_MIB);
    ck_assert_uint_eq(shown.leak.most_bytes, 48 * HR_MIB); // of the first step as much as of the others
    replay_close(&p);
    trace_deinit(&t);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("oom cases");
    TCase *cases = tcase_create("oom cases");
    tcase_set_timeout(cases, 600);
    tcase_add_test(cases, a_cause_that_is_known_is_named_and_what_is_said_to_help_does);
    tcase_add_test(cases, what_stays_of_each_step_fills_it_in_the_steps_that_are_said);
    tcase_add_test(cases, a_leak_is_neither_weights_nor_what_goes_later);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
