// SPDX-License-Identifier: Apache-2.0
// What a person learns of a two-byte policy on the cpu device is what a card does: it takes less than float32.
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

static const char *const models[] = {"demo",
                                     "presets/articles/003_gpu_optimized_cnn.yaml",
                                     "resnet50_tiny",
                                     "unet_tiny",
                                     "mobilenet_v2_tiny",
                                     "gpt2_124m_tiny",
                                     "bert_base_tiny",
                                     "vit_b16_tiny",
                                     "lstm_lm_medium_tiny"};
static const char *const policies[] = {"mixed_float16", "float16", "mixed_bfloat16", "bfloat16"};

enum { MODELS = sizeof models / sizeof *models, POLICIES = sizeof policies / sizeof *policies };

static uint64_t peak_of(const hr_planner *planner, hr_knobs knobs, const char *policy, const char *device)
{
    hr_whatif answer;
    hr_err err = {0};
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PRECISION_POLICY, policy, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, device, NULL), HR_OK);
    ck_assert_msg(hr_planner_plan(planner, &knobs, &answer, &err) == HR_OK, "%s", err.sentence);
    return answer.peak_in_use_bytes;
}

START_TEST(two_bytes_take_less_than_four)
{
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(models[_i], false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=1GiB", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "threads.count=2", NULL), HR_OK);
    const uint64_t wide = peak_of(planner, knobs, "float32", "cpu");
    for (int k = 0; k < POLICIES; k++) {
        const uint64_t half = peak_of(planner, knobs, policies[k], "cpu");
        // Of a tiny model a library's scratch is a good part of the peak: oneDNN's for a patch layer's weights in bfloat16.
        ck_assert_msg(half <= wide + wide / 50, "%s takes %llu B in %s and %llu B in float32", models[_i],
                      (unsigned long long)half, policies[k], (unsigned long long)wide);
    }
    hr_planner_close(planner);
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    char cache[] = "/tmp/headroom-half-XXXXXX";
    if (mkdtemp(cache) == NULL) {
        return EXIT_FAILURE;
    }
    setenv("XDG_CACHE_HOME", cache, 1);
    hr_preset_search_beside(".");
    Suite *suite = suite_create("half_peaks");
    TCase *tc = tcase_create("peaks");
    if (HEADROOM_HAVE_ONEDNN) {
        tcase_add_loop_test(tc, two_bytes_take_less_than_four, 0, MODELS);
    }
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    (void)rmdir(cache);
    return failed == 0 ? 0 : 1;
}
