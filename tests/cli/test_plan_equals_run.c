// SPDX-License-Identifier: Apache-2.0
// The plan is the run, to the byte: over a covering array of the knobs and every tiny model. What may not go together
// is refused with its reason. Under a sanitizer every eighth configuration.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "covering.h"
#include "exactness.h"

enum { EVERY = HEADROOM_SANITIZED ? 16 : 1 };

static covering covered;

START_TEST(the_plan_is_the_run)
{
    const configuration *c = &covered.list[_i * EVERY];
    const axis *axes = NULL;
    char text[2048], why[512] = "";
    uint64_t peak_bytes = 0;
    hr_preset *preset = NULL;
    hr_err err = {0};
    (void)covering_axes(&axes);
    hr_status status = hr_preset_open(axes[0].values[c->value[0]], false, &preset, NULL, &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "cpu", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_CARD, "", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_VRAM, "4GiB", NULL), HR_OK);
    configuration_apply(c, &knobs);
    const exactness found = exactness_without_refused(preset, knobs, &peak_bytes, why, sizeof why);
    ck_assert_msg(found == EXACTNESS_HOLDS, "%s: %s", configuration_text(c, text, sizeof text), why);
    ck_assert_uint_gt(peak_bytes, 0);
    hr_preset_close(preset);
}
END_TEST

static unsigned refused;

static void assert_refused(const configuration *pair, const hr_knobs *knobs)
{
    char text[2048];
    hr_err err = {0};
    ck_assert_msg(hr_knobs_validate(knobs, &err) == HR_CONSTRAINT, "%s is not refused",
                  configuration_text(pair, text, sizeof text));
    ck_assert_msg(err.sentence[0] != '\0' && strncmp(err.hint, "-s ", 3) == 0, "%s has no advice",
                  configuration_text(pair, text, sizeof text));
    refused++;
}

START_TEST(what_may_not_go_together_is_refused_with_its_reason)
{
    covering_visit_illegal(&covered, assert_refused);
    ck_assert_uint_gt(refused, 0);
}
END_TEST

// One step of a plan; HR_OK, or why not.
static hr_status plan_once(const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
    const hr_engine_options plan = {.plan_only = true};
    hr_engine *engine = NULL;
    ck_assert_int_eq(hr_engine_create(preset, knobs, &plan, &engine, err), HR_OK);
    ck_assert_int_eq(hr_engine_command(engine, &run, err), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    const hr_status status = hr_engine_steps(engine) == 1 ? HR_OK : hr_engine_error(engine)->status;
    *err = *hr_engine_error(engine);
    hr_engine_destroy(engine);
    return status;
}

// Of every model: no operation needs more than what the first one's advice is.
START_TEST(the_advice_for_a_limit_that_is_too_small_works)
{
    const axis *axes = NULL;
    hr_preset *preset = NULL;
    hr_err err = {0};
    (void)covering_axes(&axes);
    ck_assert_int_eq(hr_preset_open(axes[0].values[_i], false, &preset, NULL, &err), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(preset);
    const char *const pairs[] = {"device.kind=cpu", "device.card=", "device.vram=4GiB", "workspace.limit=0B"};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[n], NULL), HR_OK);
    }
    ck_assert_int_eq(plan_once(preset, &knobs, &err), HR_DEVICE);
    ck_assert_msg(strncmp(err.hint, "-s workspace.limit=", 19) == 0, "%s", err.hint);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, err.hint + 3, NULL), HR_OK);
    ck_assert_msg(plan_once(preset, &knobs, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset);
}
END_TEST

// ---- the axes -------------------------------------------------------------------------------------------------

START_TEST(every_knob_is_an_axis_or_is_left_out_with_a_reason)
{
    const axis *axes = NULL;
    const size_t count = covering_axes(&axes);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        size_t values = 0;
        for (size_t a = 0; a < count; a++) {
            values = axes[a].id == (hr_knob_id)id ? axis_value_count(&axes[a]) : values;
        }
        const char *key = hr_knob_rows(NULL)[id].key;
        ck_assert_msg(
            axis_is_left_out((hr_knob_id)id) || axis_takes_whole_sets((hr_knob_id)id) || values >= 2,
            "%s is no axis: give a text its words in tests/cli/axes.c, or say why it is left out", key);
        ck_assert_msg(!axis_is_left_out((hr_knob_id)id) || values == 0, "%s is left out and an axis", key);
    }
    ck_assert_uint_ge(axis_value_count(&axes[0]), 16);
}
END_TEST

START_TEST(what_is_left_out_is_there_and_has_a_reason)
{
    size_t count = 0;
    const axis_left_out *out = axes_left_out(&count);
    for (size_t k = 0; k < count; k++) {
        hr_knobs knobs;
        hr_knobs_init(&knobs);
        ck_assert_uint_gt(strlen(out[k].why), 10);
        ck_assert(out[k].value == NULL || hr_knobs_set(&knobs, out[k].id, out[k].value, NULL) == HR_OK);
    }
}
END_TEST

START_TEST(every_value_of_every_axis_is_in_a_configuration)
{
    const axis *axes = NULL;
    const size_t count = covering_axes(&axes);
    for (size_t a = 0; a < count; a++) {
        for (size_t v = 0; v < axis_value_count(&axes[a]); v++) {
            size_t with = 0;
            for (size_t k = 0; k < covered.count; k++) {
                with += covered.list[k].value[a] == v;
            }
            ck_assert_msg(with > 0, "no configuration has %s=%s", axes[a].key, axes[a].values[v]);
        }
    }
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    covered = covering_make(1);
    printf("%zu configurations cover %zu pairs, %zu pairs are not legal\n", covered.count,
           covered.pairs - covered.illegal_pairs, covered.illegal_pairs);
    fflush(stdout);
    TCase *tests = tcase_create("plan equals run");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_plan_is_the_run, 0, (int)((covered.count + EVERY - 1) / EVERY));
    const axis *axes = NULL;
    (void)covering_axes(&axes);
    tcase_add_loop_test(tests, the_advice_for_a_limit_that_is_too_small_works, 0,
                        HEADROOM_SANITIZED ? 6 : (int)axis_value_count(&axes[0]));
    tcase_add_test(tests, every_knob_is_an_axis_or_is_left_out_with_a_reason);
    tcase_add_test(tests, what_is_left_out_is_there_and_has_a_reason);
    tcase_add_test(tests, every_value_of_every_axis_is_in_a_configuration);
    tcase_add_test(tests, what_may_not_go_together_is_refused_with_its_reason);
    Suite *suite = suite_create("plan equals run");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    covering_deinit(&covered);
    return failed != 0;
}
