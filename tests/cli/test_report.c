// SPDX-License-Identifier: Apache-2.0
// Promises of "headroom.report/1": one shape for plan and run, every field a term, and the figures of the separable
// CNN that the reference derives by hand.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static json_t *report_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

// "memory.at_peak.by_category" in a document.
static json_t *at(const json_t *document, const char *path)
{
    char key[64];
    json_t *found = (json_t *)(size_t)document;
    for (const char *part = path; found != NULL && *part != '\0'; part += part[0] == '.') {
        size_t length = strcspn(part, ".");
        ck_assert_uint_lt(length, sizeof key);
        memcpy(key, part, length);
        key[length] = '\0';
        found = json_object_get(found, key);
        part += length;
    }
    ck_assert_msg(found != NULL, "%s", path);
    return found;
}

static json_int_t number(const json_t *document, const char *path)
{
    ck_assert_msg(json_is_integer(at(document, path)), "%s", path);
    return json_integer_value(at(document, path));
}

// ---- shape ----------------------------------------------------------------------------------------------------

// Every key of DESIGN "Commands, files, numbers", with the types it may have: o object, a array, s string, i integer,
// r real or integer, b boolean, n null.
static const struct {
    const char *path, *types;
} shape[] = {
    {"schema", "s"},
    {"preset", "s"},
    {"device.kind", "s"},
    {"device.card", "sn"},
    {"device.isa", "sn"},
    {"device.threads", "i"},
    {"device.simulated", "b"},
    {"model.parameters", "i"},
    {"model.trainable_parameters", "i"},
    {"model.layers", "a"},
    {"step.instructions", "in"},
    {"step.effective_batch", "in"},
    {"step.flops", "in"},
    {"step.seconds", "rn"},
    {"step.seconds_low", "rn"},
    {"step.seconds_high", "rn"},
    {"step.seconds_source", "sn"},
    {"step.seconds_basis", "sn"},
    {"memory.limit_bytes", "i"},
    {"memory.peak_pool_bytes", "in"},
    {"memory.peak_in_use_bytes", "in"},
    {"memory.peak_requested_bytes", "in"},
    {"memory.waste_bytes", "in"},
    {"memory.saved_for_backward_bytes", "in"},
    {"memory.library_saved_bytes", "in"},
    {"memory.static_bytes", "in"},
    {"memory.largest_free_bytes", "in"},
    {"memory.fragmentation", "rn"},
    {"memory.heap_hash", "sn"},
    {"step.implementations", "a"},
    {"step.fallbacks", "a"},
    {"step.prepared", "a"},
    {"step.unplanned", "i"},
    {"step.capture", "on"},
    {"memory.workspaces", "a"},
    {"memory.at_peak", "on"},
    {"evaluation.peak_in_use_bytes", "in"},
    {"answers.peak_in_use_bytes", "in"},
    {"deploy.stripped_bytes", "i"},
    {"deploy.deployed_bytes", "i"},
    {"driver.outside_bytes", "in"},
    {"driver.process_bytes", "in"},
    {"driver.others_bytes", "in"},
    {"transfer.h2d_bytes_per_step", "in"},
    {"host.peak_bytes", "in"},
    {"host.stages", "a"},
    {"train.steps", "i"},
    {"train.skipped_steps", "in"},
    {"train.loss_scale", "rn"},
    {"train.updates", "i"},
    {"train.examples_per_second", "rn"},
    {"train.loss_first", "rn"},
    {"train.loss_last", "rn"},
    {"train.eval_accuracy", "rn"},
    {"train.sparsity", "rn"},
    {"train.weights_sha256", "sn"},
    {"plan.seconds_median", "rn"},
    {"plan.seconds_max", "rn"},
    {"plan.distinct_peaks", "in"},
    {"oom", "on"},
};

static const struct {
    const char *path, *types;
} shape_at_peak[] = {{"memory.at_peak.instruction", "in"},
                     {"memory.at_peak.name", "s"},
                     {"memory.at_peak.phase", "s"},
                     {"memory.at_peak.workspace", "on"},
                     {"memory.at_peak.by_category.weights", "i"},
                     {"memory.at_peak.by_category.outside", "i"},
                     {"memory.at_peak.tensors", "a"}};

static const struct {
    const char *path, *types;
} shape_oom[] = {{"oom.cause", "s"},        {"oom.tensor", "s"},
                 {"oom.instruction", "in"}, {"oom.requested_bytes", "i"},
                 {"oom.free_bytes", "i"},   {"oom.largest_free_bytes", "i"},
                 {"oom.fixes", "a"}};

static char type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return 'o';
    case JSON_ARRAY:
        return 'a';
    case JSON_STRING:
        return 's';
    case JSON_INTEGER:
        return 'i';
    case JSON_REAL:
        return 'r';
    case JSON_TRUE:
    case JSON_FALSE:
        return 'b';
    case JSON_NULL:
        break;
    }
    return 'n';
}

static void assert_type(const json_t *report, const char *words, const char *path, const char *types)
{
    char type = type_of(at(report, path));
    bool fits = strchr(types, type) != NULL || (type == 'i' && strchr(types, 'r') != NULL);
    ck_assert_msg(fits, "headroom %s: %s is '%c', expected one of '%s'", words, path, type, types);
}

static const struct {
    const char *words;
    int exit_code;
} reports[] = {
    {"plan demo --json", 0},
    {"plan demo --json --repeat 4", 0},
    {"plan demo --json -s device.kind=plan -s device.card=rtx3070-8g", 0},
    {"plan demo --json -s batch.size=1024", 1},
    {"run demo --json -s device.kind=reference -s batch.size=2 --steps 1", 0},
    {"run demo --json -s device.kind=plan --steps 2", 0},
    {"run demo --json -s batch.size=1024 --steps 1", 1},
};

START_TEST(plan_and_run_share_one_shape)
{
    json_t *report = report_of(reports[_i].words, reports[_i].exit_code);
    ck_assert_str_eq(json_string_value(at(report, "schema")), "headroom.report/1");
    for (size_t k = 0; k < COUNT(shape); k++) {
        assert_type(report, reports[_i].words, shape[k].path, shape[k].types);
    }
    for (size_t k = 0; json_is_object(at(report, "memory.at_peak")) && k < COUNT(shape_at_peak); k++) {
        assert_type(report, reports[_i].words, shape_at_peak[k].path, shape_at_peak[k].types);
    }
    ck_assert_int_eq(json_is_object(at(report, "oom")), reports[_i].exit_code == 1);
    for (size_t k = 0; json_is_object(at(report, "oom")) && k < COUNT(shape_oom); k++) {
        assert_type(report, reports[_i].words, shape_oom[k].path, shape_oom[k].types);
    }
    json_decref(report);
}
END_TEST

// Each fix is the knobs of a plan that fits with the peak it names.
START_TEST(every_fix_is_a_plan_that_fits)
{
    static const char *const cases[] = {"demo -s batch.size=1024", "gpt2_124m -s device.vram=3GiB",
                                        "resnet50 -s batch.size=1024 -s device.card=rtx4090-24g",
                                        "gpt2_1558m -s device.card=rtx3060-12g"};
    char words[512];
    snprintf(words, sizeof words, "plan %s --json", cases[_i]);
    json_t *out = report_of(words, 1);
    const json_t *fixes = at(out, "oom.fixes");
    size_t count = json_array_size(fixes);
    ck_assert_uint_ge(count, 1);
    for (size_t k = 0; k < count; k++) {
        const json_t *fix = json_array_get(fixes, k);
        const json_t *knobs = json_object_get(fix, "knobs");
        snprintf(words, sizeof words, "plan %s --json", cases[_i]);
        ck_assert_uint_ge(json_array_size(knobs), 1);
        for (size_t n = 0; n < json_array_size(knobs); n++) {
            const char *pair = json_string_value(json_array_get(knobs, n));
            strcat(strcat(words, " -s "), pair);
            ck_assert(k > 0 || strstr(json_string_value(at(out, "oom.try")), pair) != NULL);
        }
        json_t *report = report_of(words, 0);
        ck_assert_int_eq(number(report, "memory.peak_in_use_bytes"), number(fix, "peak_bytes"));
        const json_t *seconds = at(report, "step.seconds");
        ck_assert(json_equal((json_t *)(size_t)seconds, json_object_get(fix, "seconds")));
        json_decref(report);
    }
    json_decref(out);
}
END_TEST

// ---- words ----------------------------------------------------------------------------------------------------

static void assert_terms(const json_t *value)
{
    const char *key;
    size_t index;
    json_t *member;
    json_object_foreach((json_t *)(size_t)value, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "no term explains the field '%s'", key);
        assert_terms(member);
    }
    json_array_foreach(value, index, member)
    {
        assert_terms(member);
    }
}

START_TEST(every_field_is_a_term)
{
    json_t *report = report_of(reports[_i].words, reports[_i].exit_code);
    assert_terms(report);
    json_decref(report);
}
END_TEST

START_TEST(every_field_of_an_error_is_a_term)
{
    json_t *error = report_of("plan dmo --json", 2);
    assert_terms(error);
    json_decref(error);
}
END_TEST

// ---- figures --------------------------------------------------------------------------------------------------

START_TEST(the_separable_cnn_has_the_parameters_of_the_article)
{
    static const json_int_t parameters[] = {155, 0, 2400, 0, 692288, 650};
    json_t *report = report_of("plan cifar10_separable_cnn --json", 0);
    const json_t *layers = at(report, "model.layers");
    ck_assert_int_eq(number(report, "model.parameters"), 695493);
    ck_assert_int_eq(number(report, "model.trainable_parameters"), 695493);
    ck_assert_uint_eq(json_array_size(layers), COUNT(parameters));
    for (size_t k = 0; k < COUNT(parameters); k++) {
        ck_assert_int_eq(number(json_array_get(layers, k), "parameters"), parameters[k]);
    }
    json_decref(report);
}
END_TEST

START_TEST(eager_saves_232320_bytes_a_sample_and_graph_less)
{
    static const json_int_t batches[] = {1, 16, 48, 128};
    char words[128];
    snprintf(words, sizeof words, "plan cifar10_separable_cnn --json -s batch.size=%d", (int)batches[_i]);
    json_t *eager = report_of(words, 0);
    strcat(words, " -s execution.mode=graph");
    json_t *graph = report_of(words, 0);
    ck_assert_int_eq(number(eager, "memory.saved_for_backward_bytes"), 232320 * batches[_i]);
    ck_assert_int_lt(number(graph, "memory.saved_for_backward_bytes"), 232320 * batches[_i]);
    ck_assert_int_lt(number(graph, "memory.peak_in_use_bytes"), number(eager, "memory.peak_in_use_bytes"));
    json_decref(eager);
    json_decref(graph);
}
END_TEST

START_TEST(optimizers_keep_none_one_and_two_numbers_a_parameter)
{
    static const char *const kinds[] = {"sgd", "momentum", "adam"};
    static const json_int_t bytes[] = {0, 2781972, 5563944};
    char words[128];
    snprintf(words, sizeof words, "plan cifar10_separable_cnn --json -s optimizer.kind=%s", kinds[_i]);
    json_t *report = report_of(words, 0);
    ck_assert_int_eq(number(report, "memory.at_peak.by_category.optimizer"), bytes[_i]);
    ck_assert_int_eq(number(report, "memory.at_peak.by_category.weights"), 2781972);
    json_decref(report);
}
END_TEST

static const char *const consistent[] = {
    "plan demo --json", "plan mlp --json", "plan resnet18_cifar --json -s execution.mode=graph",
    "run demo --json -s device.kind=reference -s batch.size=2 --steps 2"};

START_TEST(counters_agree_with_each_other)
{
    json_t *report = report_of(consistent[_i], 0);
    const json_t *by_category = at(report, "memory.at_peak.by_category");
    json_int_t in_use = number(report, "memory.peak_in_use_bytes");
    json_int_t requested = number(report, "memory.peak_requested_bytes");
    json_int_t sum = 0;
    const char *name;
    json_t *bytes;
    json_object_foreach((json_t *)(size_t)by_category, name, bytes)
    {
        sum += json_integer_value(bytes);
    }
    ck_assert_int_eq(sum, requested);
    ck_assert_int_eq(number(report, "memory.waste_bytes"), in_use - requested);
    ck_assert_int_le(in_use, number(report, "memory.peak_pool_bytes"));
    ck_assert_int_le(number(report, "memory.peak_pool_bytes"), number(report, "memory.limit_bytes"));
    const json_t *tensors = at(report, "memory.at_peak.tensors");
    json_int_t alive = 0;
    for (size_t k = 0; k < json_array_size(tensors); k++) {
        alive += number(json_array_get(tensors, k), "bytes");
    }
    ck_assert_int_eq(alive, requested);
    json_decref(report);
}
END_TEST

// The table is that of the step, and the limit that it names does away with what is at the peak, with nothing else.
START_TEST(the_limit_that_is_named_removes_the_workspace_at_the_peak)
{
    static const char *const cases[] = {
        "plan unet_tiny --json -s device.kind=plan -s device.card=rtx3070-8g",
        "plan resnet18_tiny --json -s device.kind=plan -s device.card=rtx3070-8g -s execution.mode=graph"};
    char words[256];
    json_t *with = report_of(cases[_i], 0);
    const json_t *rows = at(with, "memory.workspaces");
    json_int_t before = INT64_MAX;
    ck_assert_uint_ge(json_array_size(rows), 1);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        ck_assert_str_eq(json_string_value(at(row, "implementation")), "estimate");
        ck_assert_int_le(number(row, "bytes"), before);
        ck_assert_int_lt(number(row, "instruction"), number(with, "step.instructions"));
        before = number(row, "bytes");
    }
    const json_t *largest = at(with, "memory.at_peak.workspace");
    snprintf(words, sizeof words, "%s -s workspace.limit=%lldB", cases[_i],
             (long long)number(largest, "less_limit_bytes"));
    json_t *without = report_of(words, 0);
    const json_t *first = json_array_get(at(without, "memory.workspaces"), 0);
    ck_assert_int_lt(number(largest, "less_limit_bytes"), number(largest, "bytes"));
    ck_assert(first == NULL || number(first, "bytes") <= number(largest, "less_limit_bytes"));
    json_decref(without);
    json_decref(with);
}
END_TEST

START_TEST(a_run_says_what_it_measured_and_a_plan_does_not_pretend)
{
    json_t *run = report_of("run demo --json -s device.kind=reference -s batch.size=2 --steps 2", 0);
    json_t *plan = report_of("plan demo --json -s device.kind=reference -s batch.size=2", 0);
    json_t *simulated =
        report_of("run demo --json -s device.kind=plan -s device.card=rtx3070-8g --steps 2", 0);
    ck_assert_str_eq(json_string_value(at(run, "step.seconds_source")), "measured");
    ck_assert_str_eq(json_string_value(at(run, "train.data")), "generated");
    ck_assert_uint_eq(strlen(json_string_value(at(run, "train.weights_sha256"))), 64);
    ck_assert(json_real_value(at(run, "train.loss_first")) > 0);
    ck_assert(json_is_null(at(run, "step.seconds_basis")));
    ck_assert_str_eq(json_string_value(at(plan, "step.seconds_basis")), "usual_loops");
    ck_assert(json_is_null(at(plan, "train.loss_last")) && json_is_null(at(plan, "train.weights_sha256")));
    ck_assert_str_eq(json_string_value(at(simulated, "step.seconds_source")), "simulated");
    ck_assert_str_eq(json_string_value(at(simulated, "step.seconds_basis")), "datasheet");
    ck_assert(json_is_null(at(simulated, "train.loss_last")));
    json_decref(run);
    json_decref(plan);
    json_decref(simulated);
}
END_TEST

START_TEST(two_runs_of_one_seed_end_in_the_same_weights)
{
    static const char words[] =
        "run demo --json -s device.kind=reference -s batch.size=2 --steps 2 -s train.seed=%d";
    char sha[3][65], command[160];
    static const int seeds[] = {7, 7, 8};
    for (size_t k = 0; k < COUNT(seeds); k++) {
        snprintf(command, sizeof command, words, seeds[k]);
        json_t *report = report_of(command, 0);
        snprintf(sha[k], sizeof sha[k], "%s", json_string_value(at(report, "train.weights_sha256")));
        json_decref(report);
    }
    ck_assert_str_eq(sha[0], sha[1]);
    ck_assert_str_ne(sha[0], sha[2]);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("report");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, plan_and_run_share_one_shape, 0, (int)COUNT(reports));
    tcase_add_loop_test(tests, every_fix_is_a_plan_that_fits, 0, 4);
    tcase_add_loop_test(tests, every_field_is_a_term, 0, (int)COUNT(reports));
    tcase_add_test(tests, every_field_of_an_error_is_a_term);
    tcase_add_test(tests, the_separable_cnn_has_the_parameters_of_the_article);
    tcase_add_loop_test(tests, eager_saves_232320_bytes_a_sample_and_graph_less, 0, 4);
    tcase_add_loop_test(tests, optimizers_keep_none_one_and_two_numbers_a_parameter, 0, 3);
    tcase_add_loop_test(tests, counters_agree_with_each_other, 0, (int)COUNT(consistent));
    tcase_add_loop_test(tests, the_limit_that_is_named_removes_the_workspace_at_the_peak, 0, 2);
    tcase_add_test(tests, a_run_says_what_it_measured_and_a_plan_does_not_pretend);
    tcase_add_test(tests, two_runs_of_one_seed_end_in_the_same_weights);
    Suite *suite = suite_create("report");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
