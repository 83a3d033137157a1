// SPDX-License-Identifier: Apache-2.0
// A model of thousands of layers: what it saves can be resumed, and no chain of views has to be followed.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: global_avg_pool}\n"                                                                        \
    "    - {kind: dense, units: 2}\n"                                                                        \
    "    - repeat: 4000\n"                                                                                   \
    "      index: i\n"                                                                                       \
    "      layers:\n"                                                                                        \
    "        - {name: \"one_of_the_many_layers_with_long_names_of_their_own_{i}\", kind: dense, units: 2}\n" \
    "    - {kind: dense, units: 10}\n"

#include "program/compile.h"
#include "program/model_from_text.h"
#include "unit/small_engine.h"

// The weights after `steps` steps in all, with one more option.
static void weights_after(const char *option, uint64_t steps, char sha[HR_SHA256_TEXT_MAX])
{
    char total[64];
    (void)snprintf(total, sizeof total, "train.steps=%llu", (unsigned long long)steps);
    hr_engine *e =
        create((const char *const[]){"optimizer.kind=adam", "execution.mode=graph", total, option, NULL},
               &(hr_engine_options){.plan_only = false});
    run_steps(e, 0);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

START_TEST(a_save_of_thousands_of_tensors_can_be_resumed)
{
    char path[128], save[160], resume[160], whole[HR_SHA256_TEXT_MAX], resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("deep.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    weights_after("train.save=", 2, whole);
    weights_after(save, 1, resumed);
    weights_after(resume, 2, resumed);
    ck_assert_str_eq(resumed, whole);
}
END_TEST

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static bool fuses_nothing(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

// A view of a view is a view of the tensor that has the bytes; results in place may stand between.
START_TEST(a_chain_of_views_is_two_links_long)
{
    static const hr_target target = {.name = "nothing", .key = 7, .ask = ask_nothing, .fuses = fuses_nothing};
    static const char *const modes[] = {"eager", "graph"};
    hr_model *model = model_from_text("device: {vram: 1GiB}\n"
                                      "model:\n"
                                      "  name: views\n"
                                      "  input: {shape: [2, 4]}\n"
                                      "  classes: 8\n"
                                      "  loss: softmax_cross_entropy\n"
                                      "  layers:\n"
                                      "    - {kind: dense, units: 4}\n"
                                      "    - repeat: 50\n"
                                      "      layers:\n"
                                      "        - {kind: reshape, shape: [4, 2]}\n"
                                      "        - {kind: reshape, shape: [2, 4]}\n"
                                      "    - {kind: flatten}\n");
    hr_knobs turned;
    program *p = NULL;
    hr_err err = {0};
    hr_knobs_init(&turned);
    ck_assert_int_eq(hr_knobs_set(&turned, HR_KNOB_EXECUTION_MODE, modes[_i], NULL), HR_OK);
    ck_assert_msg(program_compile(model, &turned, PROGRAM_TRAIN, 2, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(program_check(p, &err) == HR_OK, "%s", err.sentence);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        const uint32_t next = p->tensors[p->tensors[k].storage].storage;
        ck_assert_uint_eq(p->tensors[next].storage, next);
    }
    program_destroy(p);
    model_destroy(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deep model");
    TCase *saves = tcase_create("saves"), *views = tcase_create("views");
    tcase_add_checked_fixture(saves, open_preset, close_preset);
    tcase_add_test(saves, a_save_of_thousands_of_tensors_can_be_resumed);
    tcase_add_loop_test(views, a_chain_of_views_is_two_links_long, 0, 2);
    suite_add_tcase(suite, saves);
    suite_add_tcase(suite, views);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
