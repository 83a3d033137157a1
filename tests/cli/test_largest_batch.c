// SPDX-License-Identifier: Apache-2.0
// The largest batch under a limit is the largest that runs under it.
#include <check.h>

#include "headroom/preset.h"

#include "largest_batch.h"

static const char *const models[] = {"mobilenet_v2_tiny", "gpt2_124m_tiny"};

static hr_knobs on_cpu(const hr_preset *preset, const char *kind)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "cpu", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_THREADS_COUNT, "1", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_ALLOCATOR_KIND, kind, NULL), HR_OK);
    return knobs;
}

START_TEST(the_largest_batch_runs_to_the_byte_and_one_more_runs_out)
{
    static const char *const kinds[] = {"bfc", "caching"};
    uint64_t limits[LARGEST_BATCH_LIMITS], last = 0;
    char why[512] = "";
    hr_preset *preset = NULL;
    ck_assert_int_eq(hr_preset_open(models[_i], false, &preset, NULL, NULL), HR_OK);
    const hr_knobs knobs = on_cpu(preset, kinds[_i]);
    ck_assert_msg(largest_batch_limits(preset, &knobs, 2, (uint64_t)1 << 30, limits, why, sizeof why), "%s",
                  why);
    for (int k = 0; k < LARGEST_BATCH_LIMITS; k++) {
        largest_batch found;
        ck_assert_msg(largest_batch_holds(preset, &knobs, limits[k], &found, why, sizeof why), "%s: %s",
                      models[_i], why);
        ck_assert_uint_gt(found.batch, last);
        ck_assert(!found.is_last);
        last = found.batch;
    }
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("largest_batch");
    TCase *all = tcase_create("promises");
    hr_preset_search_beside(".");
    tcase_add_loop_test(all, the_largest_batch_runs_to_the_byte_and_one_more_runs_out, 0,
                        (int)(sizeof models / sizeof *models));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
