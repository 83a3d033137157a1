// SPDX-License-Identifier: Apache-2.0
// Every precision policy trains on every device that has it, and the plan is the run to the byte; what a training
// remembers of its loss scale survives a rebuild and a save.
#include <check.h>
#include <math.h>
#include <string.h>

#include "headroom/devices.h"

#include "unit/small_engine.h"

static const char *const policies[] = {"float32",        "float64", "mixed_float16",
                                       "mixed_bfloat16", "float16", "bfloat16"};
static const char *const devices[] = {"reference", "cpu", "plan"};
static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
enum { POLICIES = 6, DEVICES = 3, MODES = 2, STEPS = 3 };

static bool is_built(const char *device)
{
    return HEADROOM_HAVE_ONEDNN || strcmp(device, "cpu") != 0;
}

static hr_report after_steps(const char *const *pairs, bool plan_only)
{
    const hr_engine_options options = {.plan_only = plan_only};
    hr_engine *e = create(pairs, &options);
    run_steps(e, STEPS);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    return r;
}

static void same_memory(const hr_report_memory *plan, const hr_report_memory *run, const char *where)
{
    ck_assert_msg(plan->peak_in_use_bytes == run->peak_in_use_bytes &&
                      plan->peak_requested_bytes == run->peak_requested_bytes &&
                      plan->peak_pool_bytes == run->peak_pool_bytes &&
                      plan->saved_for_backward_bytes == run->saved_for_backward_bytes &&
                      plan->static_bytes == run->static_bytes && plan->heap_hash == run->heap_hash &&
                      plan->largest_free_bytes == run->largest_free_bytes &&
                      memcmp(plan->at_peak.by_category, run->at_peak.by_category,
                             sizeof plan->at_peak.by_category) == 0,
                  "%s: the plan says %llu B, the run took %llu", where,
                  (unsigned long long)plan->peak_in_use_bytes, (unsigned long long)run->peak_in_use_bytes);
}

START_TEST(the_plan_of_every_policy_is_its_run)
{
    const char *policy = policies[_i];
    for (int d = 0; d < DEVICES; d++) {
        const bool refused = strcmp(policy, "float64") == 0 && strcmp(devices[d], "cpu") == 0;
        for (int m = 0; m < MODES && !refused && is_built(devices[d]); m++) {
            char policy_pair[64], device_pair[64], where[96];
            (void)snprintf(policy_pair, sizeof policy_pair, "precision.policy=%s", policy);
            (void)snprintf(device_pair, sizeof device_pair, "device.kind=%s", devices[d]);
            (void)snprintf(where, sizeof where, "%s on %s, %s", policy, devices[d], modes[m]);
            const char *const pairs[] = {policy_pair, device_pair, modes[m], NULL};
            hr_report plan = after_steps(pairs, true), run = after_steps(pairs, false);
            same_memory(&plan.memory, &run.memory, where);
            ck_assert_msg(run.device.simulated || isfinite(run.train.loss_last), "%s", where);
            hr_report_deinit(&plan);
            hr_report_deinit(&run);
        }
    }
}
END_TEST

// ---- what a loss scale leaves behind --------------------------------------------------------------------------

typedef struct told {
    double scale; // that Keras' rule gives after what was told
    uint64_t scales, skipped;
} told;

static void listen(void *context, const hr_event *event)
{
    told *t = context;
    if (event->kind != HR_EVENT_SCALE) {
        return;
    }
    const hr_event_scale *s = &event->u.scale;
    t->scales++;
    t->skipped += s->happened == 0;
    t->scale = s->happened == 0 ? t->scale / 2 : t->scale;
    ck_assert_uint_eq(s->skipped, t->skipped);
    ck_assert_double_eq(s->scale, t->scale);
}

START_TEST(every_change_of_the_scale_is_told_and_only_updates_are_counted)
{
    const char *const pairs[] = {"precision.policy=mixed_float16", NULL};
    told t = {.scale = 32768};
    const hr_engine_options options = {.sink = listen, .sink_context = &t};
    hr_engine *e = create(pairs, &options);
    run_steps(e, 8);
    hr_report r = report_of(e);
    ck_assert_uint_ge(t.scales, 1);
    ck_assert_uint_eq(r.train.steps, 8);
    ck_assert_uint_eq(r.train.updates, 8 - t.skipped);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(weights_survive_a_change_of_policy)
{
    const char *const pairs[] = {NULL};
    const hr_engine_options options = {0};
    hr_engine *e = create(pairs, &options);
    run_steps(e, STEPS);
    const double before = hr_engine_loss(e);
    for (int k = POLICIES - 1; k >= 0; k--) { // float32 last
        ck_assert_int_eq(turn(e, HR_KNOB_PRECISION_POLICY, policies[k]), HR_OK);
        run_steps(e, 1);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        ck_assert_msg(fabs(hr_engine_loss(e) - before) < 1.0, "%s: from %g to %g", policies[k], before,
                      hr_engine_loss(e));
    }
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_of_every_policy_is_resumed_bit_for_bit)
{
    char path[128], save[160], resume[160], policy[64], through[HR_SHA256_TEXT_MAX],
        resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("w.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    (void)snprintf(policy, sizeof policy, "precision.policy=%s", policies[_i]);
    const hr_engine_options options = {0};
    const char *const first[] = {policy, save, NULL}, *const second[] = {policy, resume, NULL};
    hr_engine *e = create(first, &options);
    run_steps(e, 2); // saves at its end
    run_steps(e, 2);
    weights_of(e, through);
    hr_engine_destroy(e);
    e = create(first, &options);
    run_steps(e, 2);
    hr_engine_destroy(e);
    e = create(second, &options);
    run_steps(e, 4);
    ck_assert_uint_eq(hr_engine_steps(e), 4);
    weights_of(e, resumed);
    ck_assert_str_eq(resumed, through);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("precision_runs");
    TCase *tc = tcase_create("engine");
    tcase_add_checked_fixture(tc, open_preset, close_preset);
    tcase_add_loop_test(tc, the_plan_of_every_policy_is_its_run, 0, POLICIES);
    tcase_add_test(tc, every_change_of_the_scale_is_told_and_only_updates_are_counted);
    tcase_add_test(tc, weights_survive_a_change_of_policy);
    tcase_add_loop_test(tc, a_save_of_every_policy_is_resumed_bit_for_bit, 0, POLICIES);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
