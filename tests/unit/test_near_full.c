// SPDX-License-Identifier: Apache-2.0
// A limit that is near is told before it is met, once, with the steps that are left; and never of a step that leaves nothing.
#include "headroom/units.h"

#include "insight/near_full.h"
#include "unit/small_engine.h"

// ---- the judge ------------------------------------------------------------------------------------------------

START_TEST(what_rises_with_every_step_is_told_once_with_the_steps_that_are_left)
{
    near_full n = {.steps = 0};
    near_full_warning w = {0, 0};
    unsigned told = 0;
    for (uint64_t step = 1; step <= 200; step++) {
        const uint64_t floor_bytes = 100 + 8 * step, peak_bytes = 50 + floor_bytes;
        if (near_full_step(&n, floor_bytes, peak_bytes, 1550, &w)) {
            told++;
            ck_assert_uint_eq(step, 75); // 750 behind it: 800 B are left
            ck_assert_uint_eq(w.rise_bytes, 8);
            ck_assert_uint_eq(w.steps, 100);
        }
    }
    ck_assert_uint_eq(told, 1);
}
END_TEST

START_TEST(what_does_not_rise_with_every_step_is_not_told)
{
    uint64_t random = 7;
    for (unsigned kind = 0; kind < 4; kind++) {
        near_full n = {.steps = 0};
        near_full_warning w;
        uint64_t floor_bytes = 1000;
        for (uint64_t step = 0; step < 400; step++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            floor_bytes = kind == 0   ? 1000                            // nothing stays
                          : kind == 1 ? step < 3 ? 100 * step : 1000    // the first steps make what all have
                          : kind == 2 ? floor_bytes + (step % 3 != 0)   // two of three rise
                                      : 1000 + (random >> 60) % 3 * 10; // up and down
            if (kind == 3 && step % 3 == 2) {
                floor_bytes = 1000;
            }
            ck_assert_msg(!near_full_step(&n, floor_bytes, floor_bytes, 1100, &w), "kind %u, step %llu", kind,
                          (unsigned long long)step);
        }
    }
}
END_TEST

START_TEST(without_a_limit_nothing_is_near)
{
    near_full n = {.steps = 0};
    near_full_warning w;
    for (uint64_t step = 0; step < 50; step++) {
        ck_assert(!near_full_step(&n, step, step, HR_NONE, &w));
    }
}
END_TEST

// ---- runs -----------------------------------------------------------------------------------------------------

typedef struct heard {
    unsigned warnings;
    uint64_t steps, at, left; // so far; when it was told, and how many steps were said to be left
} heard;

static void hear(void *context, const hr_event *event)
{
    heard *h = context;
    h->steps += event->kind == HR_EVENT_STEP;
    if (event->kind == HR_EVENT_LOG && strncmp(event->u.note.text, "leak, ", 6) == 0) {
        const char *number = strstr(event->u.note.text, "full in ");
        ck_assert_msg(number != NULL, "%s", event->u.note.text);
        h->warnings++;
        h->at = h->steps;
        h->left = strtoull(number + 8, NULL, 10);
    }
}

START_TEST(a_run_that_leaks_says_when_it_will_be_full)
{
    static const char *const vram[] = {"device.vram=340KiB", "device.vram=400KiB", "device.vram=1MiB"};
    heard h = {0};
    hr_engine_options options = {.plan_only = true, .sink = hear, .sink_context = &h};
    hr_engine *e = create((const char *[]){vram[_i], "execution.retain=predictions", NULL}, &options);
    run_steps(e, 6000);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    ck_assert_uint_eq(h.warnings, 1);
    ck_assert_uint_le(h.left, NEAR_FULL_STEPS + 1);
    // Holes of what was freed may end it a little earlier.
    const uint64_t came = h.steps - h.at + 1;
    ck_assert_msg(came <= h.left && 4 * came >= 3 * h.left, "said %llu, came %llu",
                  (unsigned long long)h.left, (unsigned long long)came);
    hr_engine_destroy(e);
}
END_TEST

// Under a limit that its peak fits into and no more.
static void judge_preset(const char *name)
{
    hr_preset *own = NULL;
    hr_err err = {0};
    hr_report report;
    char vram[64];
    heard h = {0};
    hr_engine_options options = {.plan_only = true, .sink = hear, .sink_context = &h};
    ck_assert_msg(hr_preset_open(name, false, &own, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(own);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs, "device.vram=64GiB", &err), HR_OK);
    for (int pass = 0; pass < 2; pass++) {
        hr_engine *e = NULL;
        ck_assert_msg(hr_engine_create(own, &knobs, &options, &e, &err) == HR_OK, "%s: %s", name,
                      err.sentence);
        run_steps(e, 12);
        report = report_of(e);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s: %s", name, report.oom.sentence);
        ck_assert_msg(h.warnings == 0, "%s is said to leak", name);
        (void)snprintf(vram, sizeof vram, "device.vram=%lluB",
                       (unsigned long long)(report.memory.peak_pool_bytes + 4 * HR_MIB));
        ck_assert_int_eq(hr_knobs_set_pairs(&knobs, vram, &err), HR_OK);
        hr_report_deinit(&report);
        hr_engine_destroy(e);
    }
    hr_preset_close(own);
}

START_TEST(no_shipped_preset_is_said_to_leak)
{
    hr_preset_entry *entries = NULL;
    size_t count = 0, judged = 0;
    ck_assert_int_eq(hr_preset_list("models", &entries, &count, NULL), HR_OK);
    for (size_t k = 0; k < count; k += 1 + 4 * HEADROOM_SANITIZED) {
        if (strstr(entries[k].name, "_tiny") != NULL) {
            judge_preset(entries[k].name);
            judged++;
        }
    }
    judge_preset("demo");
    ck_assert_uint_gt(judged, 2);
    hr_preset_list_free(entries);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("near full");
    TCase *judge = tcase_create("judge"), *runs = tcase_create("runs");
    tcase_add_test(judge, what_rises_with_every_step_is_told_once_with_the_steps_that_are_left);
    tcase_add_test(judge, what_does_not_rise_with_every_step_is_not_told);
    tcase_add_test(judge, without_a_limit_nothing_is_near);
    suite_add_tcase(suite, judge);
    tcase_add_checked_fixture(runs, open_preset, close_preset);
    tcase_set_timeout(runs, 300);
    tcase_add_loop_test(runs, a_run_that_leaks_says_when_it_will_be_full, 0, 3);
    tcase_add_test(runs, no_shipped_preset_is_said_to_leak);
    suite_add_tcase(suite, runs);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
