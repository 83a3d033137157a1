// SPDX-License-Identifier: Apache-2.0
// The adapters of a model as its nodes have them: each once, with its weights and its factor, shared as the weights are; and whether
// weights are read without.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/adapters.h"
#include "program/model_checks.h"

#define TEXT(knobs)                                                                                          \
    "device: {vram: 1GiB}\n" knobs "model:\n"                                                                \
    "  name: small\n"                                                                                        \
    "  input: {shape: [6, 6, 3]}\n"                                                                          \
    "  classes: 4\n"                                                                                         \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  layers:\n"                                                                                            \
    "    - {name: image, kind: conv2d, filters: 8, kernel: 3, stride: 2, activation: relu}\n"                \
    "    - {name: grouped, kind: conv2d, filters: 8, kernel: 3, groups: 2, padding: same}\n"                 \
    "    - {kind: flatten}\n"                                                                                \
    "    - {name: first, kind: dense, units: 32}\n"                                                          \
    "    - {name: second, kind: dense, units: 32}\n"                                                         \
    "    - {name: third, kind: dense, units: 32, share: second}\n"                                           \
    "    - {name: last, kind: dense, units: 4}\n"

static const model_adapter *adapter_of(const hr_model *m, const model_adapter_list *list, const char *name)
{
    return model_adapter_of(list, (uint32_t)(param_of(m, name) - m->params));
}

static void assert_adapter(const hr_model *m, const model_adapter *adapter, const char *a, const char *b,
                           double scale)
{
    ck_assert_ptr_nonnull(adapter);
    ck_assert_str_eq(m->params[adapter->a].name, a);
    ck_assert_str_eq(m->params[adapter->b].name, b);
    ck_assert_double_eq(adapter->scale, scale);
}

START_TEST(each_adapter_stands_once_with_what_it_adds_to)
{
    hr_err err = {0};
    model_adapter_list list;
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_alpha: 3, lora_targets: all}\n"));
    ck_assert_int_eq(model_adapters_of(m, &list, &err), HR_OK);
    ck_assert_uint_eq(list.count, 4);
    assert_adapter(m, adapter_of(m, &list, "image/weights"), "image/lora_a", "image/lora_b", 1.5);
    assert_adapter(m, adapter_of(m, &list, "second/weights"), "second/lora_a", "second/lora_b", 1.5);
    ck_assert_ptr_null(adapter_of(m, &list, "grouped/weights"));
    for (uint32_t k = 0; k < list.count; k++) {
        ck_assert_uint_eq(list.data[k].plain_node, HR_NO_ID);
    }
    vec_deinit(&list);
    model_destroy(m);
}
END_TEST

START_TEST(a_factor_of_one_is_no_node_and_no_adapters_are_none)
{
    hr_err err = {0};
    model_adapter_list list;
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_targets: 'list:last'}\n"));
    ck_assert_int_eq(model_adapters_of(m, &list, &err), HR_OK);
    ck_assert_uint_eq(list.count, 1);
    assert_adapter(m, adapter_of(m, &list, "last/weights"), "last/lora_a", "last/lora_b", 1);
    vec_deinit(&list);
    model_destroy(m);
    m = model_from_text(TEXT(""));
    ck_assert_int_eq(model_adapters_of(m, &list, &err), HR_OK);
    ck_assert_uint_eq(list.count, 0);
    vec_deinit(&list);
    model_destroy(m);
}
END_TEST

START_TEST(weights_that_another_layer_reads_without_are_told)
{
    static const char *const targets[][2] = {{"second", "third"}, {"third", "second"}};
    hr_err err = {0};
    model_adapter_list list;
    hr_model *m = model_from_text(_i == 0 ? TEXT("compress: {lora: 2, lora_targets: 'list:second'}\n")
                                          : TEXT("compress: {lora: 2, lora_targets: 'list:third'}\n"));
    ck_assert_int_eq(model_adapters_of(m, &list, &err), HR_OK);
    const model_adapter *adapter = adapter_of(m, &list, "second/weights");
    ck_assert_ptr_nonnull(adapter);
    ck_assert_uint_ne(adapter->plain_node, HR_NO_ID);
    ck_assert_str_eq(m->layers[m->nodes[adapter->plain_node].layer].name, targets[_i][1]);
    vec_deinit(&list);
    model_destroy(m);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    hr_model *m = model_from_text(TEXT("compress: {lora: 2, lora_targets: all}\n"));
    hr_status status = HR_NOMEM;
    const int64_t live = hr_host_mem_live();
    uint64_t nth = 1;
    for (; status != HR_OK && nth < 20; nth++) {
        hr_err err = {0};
        model_adapter_list list;
        hr_host_mem_fail_at(nth);
        status = model_adapters_of(m, &list, &err);
        hr_host_mem_fail_at(0);
        vec_deinit(&list);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    ck_assert_int_eq(status, HR_OK);
    ck_assert_uint_gt(nth, 3);
    model_destroy(m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adapters");
    TCase *tcase = tcase_create("adapters");
    tcase_add_test(tcase, each_adapter_stands_once_with_what_it_adds_to);
    tcase_add_test(tcase, a_factor_of_one_is_no_node_and_no_adapters_are_none);
    tcase_add_loop_test(tcase, weights_that_another_layer_reads_without_are_told, 0, 2);
    tcase_add_test(tcase, each_allocation_may_fail);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
