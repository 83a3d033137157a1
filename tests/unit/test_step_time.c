// SPDX-License-Identifier: Apache-2.0
// The simulated time of a step: one number, whoever says it: the executor's clock, the report, a what-if.
#include <math.h>

#include "unit/small_engine.h"

typedef struct heard {
    uint64_t duration_ns, last_ns; // of the last step; of the last memory event
    bool goes_back;
} heard;

static void listen(void *context, const hr_event *event)
{
    heard *h = context;
    if (event->kind == HR_EVENT_STEP) {
        h->duration_ns = event->u.step.duration_ns;
    }
    if (event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE || event->kind == HR_EVENT_STEP) {
        h->goes_back = h->goes_back || event->time_ns < h->last_ns;
        h->last_ns = event->time_ns;
    }
}

// Seconds of a step under `pairs`, which three ways of asking agree on; NaN when there is no card.
static double step_seconds(const char *const *pairs)
{
    heard h = {0};
    hr_engine_options options = {.sink = listen, .sink_context = &h};
    hr_engine *e = create(pairs, &options);
    hr_planner *planner = NULL;
    hr_whatif w;
    hr_err err = {0};
    run_steps(e, 2);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    const double seconds = r.step.seconds;
    ck_assert_int_eq(hr_planner_open(preset, &planner, NULL), HR_OK);
    ck_assert_msg(hr_planner_plan(planner, hr_engine_knobs(e), &w, &err) == HR_OK, "%s", err.sentence);
    ck_assert(!r.step.measured && !h.goes_back);
    if (isnan(seconds)) {
        ck_assert_double_nan(w.step_seconds);
        ck_assert_uint_eq(h.duration_ns, 0);
    } else {
        ck_assert_double_eq_tol(seconds, (double)h.duration_ns * 1e-9, 1e-15);
        ck_assert_double_eq_tol(seconds, w.step_seconds, 1e-15);
    }
    hr_planner_close(planner);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    return seconds;
}

#define CARD         "device.kind=plan", "device.card=rtx3070-8g", "device.vram=1GiB"
#define SECONDS(...) step_seconds((const char *const[]){__VA_ARGS__, NULL})

START_TEST(report_whatif_and_clock_agree)
{
    ck_assert_double_gt(SECONDS(CARD), 0);
    ck_assert_double_gt(SECONDS(CARD, "execution.mode=graph"), 0);
    ck_assert_double_gt(SECONDS(CARD, "execution.mode=graph", "allocator.kind=static"), 0);
}
END_TEST

START_TEST(without_a_card_it_takes_what_an_unlimited_one_does)
{
    ck_assert_double_eq(SECONDS("device.kind=plan"), SECONDS("device.kind=plan", "device.card=unlimited"));
}
END_TEST

START_TEST(every_round_counts)
{
    const double one = SECONDS(CARD, "execution.mode=graph", "batch.accumulate=2");
    const double five = SECONDS(CARD, "execution.mode=graph", "batch.accumulate=5");
    const double nine = SECONDS(CARD, "execution.mode=graph", "batch.accumulate=9");
    ck_assert_double_gt(five, one);
    ck_assert_double_eq_tol((five - one) / 3, (nine - five) / 4, 1e-12);
}
END_TEST

// Copies run beside the arithmetic: what is fetched too late is waited for, what is fetched early is not.
START_TEST(a_late_fetch_costs_time_and_an_early_one_does_not)
{
#define AWAY CARD, "execution.mode=graph", "batch.size=512", "offload.activations=on"
    const double here = SECONDS(CARD, "execution.mode=graph", "batch.size=512");
    const double late = SECONDS(AWAY, "offload.prefetch=1"), early = SECONDS(AWAY, "offload.prefetch=8");
    ck_assert_double_eq(early, here);
    ck_assert_double_gt(late, early);
}
END_TEST

// Nor less where the host issues small kernels more slowly than the card computes them.
START_TEST(larger_batches_take_longer_on_every_card)
{
    static const char *const cards[] = {"device.card=rtx3060-12g", "device.card=a100-80g",
                                        "device.card=h200-141g"};
    for (int k = 0; k < 3; k++) {
        double first = 0, last = 0;
        for (int size = 32; size <= 4096; size *= 2) {
            char batch[32];
            (void)snprintf(batch, sizeof batch, "batch.size=%d", size);
            const double seconds = SECONDS("device.kind=plan", cards[k], "device.vram=4GiB", batch);
            ck_assert_double_ge(seconds, last);
            first = size == 32 ? seconds : first;
            last = seconds;
        }
        ck_assert_double_gt(last, 2 * first);
    }
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("step_time");
    TCase *all = tcase_create("promises");
    tcase_add_checked_fixture(all, open_preset, close_preset);
    tcase_add_test(all, report_whatif_and_clock_agree);
    tcase_add_test(all, without_a_card_it_takes_what_an_unlimited_one_does);
    tcase_add_test(all, every_round_counts);
    tcase_add_test(all, a_late_fetch_costs_time_and_an_early_one_does_not);
    tcase_add_test(all, larger_batches_take_longer_on_every_card);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
