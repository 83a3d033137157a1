// SPDX-License-Identifier: Apache-2.0
// One whole training step on the reference device in float64 against PyTorch in float64: logits, loss, every
// gradient, every updated weight and every running statistic to 1e-9 (‖a − b‖ / ‖b‖ per tensor), dropout and all.
#include <check.h>

#include "numeric/fixture.h"
#include "numeric/step_harness.h"

static const double tolerance = 1e-9;

static const struct {
    const char *fixture;
    const char *mode;
} steps[] = {
    {"resnet18_cifar_1.json", "execution.mode=graph"},
    {"resnet18_cifar_1.json", "execution.mode=eager"},
    {"separable_cnn.json", "execution.mode=graph"},
    {"separable_cnn.json", "execution.mode=eager"},
    {"mlp.json", "execution.mode=graph"},
    {"step_gpt2_124m_tiny.json", "execution.mode=graph"},
    {"step_gpt2_124m_tiny.json", "execution.mode=eager"},
    {"step_bert_base_tiny.json", "execution.mode=graph"},
    {"step_bert_base_tiny.json", "execution.mode=eager"},
    {"step_llama3_2_1b_tiny.json", "execution.mode=graph"},
    {"step_llama3_2_1b_tiny.json", "execution.mode=eager"},
    {"step_qwen3_0_6b_tiny.json", "execution.mode=graph"},
    {"step_gemma_2b_tiny.json", "execution.mode=eager"},
    {"step_mixtral_8x7b_tiny.json", "execution.mode=graph"},
    {"step_mixtral_8x7b_tiny.json", "execution.mode=eager"},
    {"step_whisper_small_tiny.json", "execution.mode=graph"},
    {"step_whisper_small_tiny.json", "execution.mode=eager"},
    {"step_t5_base_tiny.json", "execution.mode=graph"},
    {"step_t5_base_tiny.json", "execution.mode=eager"},
    {"step_lstm_lm_medium_tiny.json", "execution.mode=graph"},
    {"step_lstm_lm_medium_tiny.json", "execution.mode=eager"},
    {"step_vit_b16_tiny.json", "execution.mode=graph"},
    {"step_vit_b16_tiny.json", "execution.mode=eager"},
    {"step_unet_tiny.json", "execution.mode=graph"},
    {"step_unet_tiny.json", "execution.mode=eager"},
    {"step_mobilenet_v2_tiny.json", "execution.mode=graph"},
    {"step_mobilenet_v2_tiny.json", "execution.mode=eager"},
    {"step_resnet50_tiny.json", "execution.mode=graph"},
    {"step_resnext50_tiny.json", "execution.mode=graph"},
    {"step_densenet121_tiny.json", "execution.mode=eager"},
    {"step_efficientnet_b0_tiny.json", "execution.mode=graph"},
    {"step_mobilenet_v3_large_tiny.json", "execution.mode=eager"},
    {"step_regnet_y_1_6gf_tiny.json", "execution.mode=graph"},
    {"step_convnext_t_tiny.json", "execution.mode=graph"},
    {"step_swin_t_tiny.json", "execution.mode=graph"},
    {"step_swin_t_tiny.json", "execution.mode=eager"},
};

START_TEST(a_step_is_pytorchs)
{
    json_t *fixture = fixture_open(steps[_i].fixture);
    const char *const knobs[] = {"device.kind=reference", "precision.policy=float64", steps[_i].mode, NULL};
    step_result ours = step_run(fixture, &device_reference, knobs);
    json_t *tensors = json_object_get(fixture, "tensors");
    ck_assert_uint_gt(json_object_size(tensors), 0);
    const char *name;
    json_t *stored;
    json_object_foreach(tensors, name, stored)
    {
        const step_value *v = step_find(&ours, name);
        ck_assert_msg(v != NULL, "%s: no tensor %s", steps[_i].fixture, name);
        ck_assert_uint_eq(v->count, (uint64_t)json_integer_value(json_object_get(stored, "elements")));
        const double distance = fixture_distance(stored, v->values, v->count);
        ck_assert_msg(distance <= tolerance, "%s, %s: %s is %g from PyTorch's", steps[_i].fixture,
                      steps[_i].mode, name, distance);
    }
    step_result_deinit(&ours);
    json_decref(fixture);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reference_step");
    TCase *all = tcase_create("PyTorch in float64");
    tcase_set_timeout(all, 120);
    // ResNet-18, first in the list, takes ten seconds a step under a sanitizer.
    tcase_add_loop_test(all, a_step_is_pytorchs, HEADROOM_SANITIZED ? 2 : 0,
                        (int)(sizeof steps / sizeof steps[0]));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
