// SPDX-License-Identifier: Apache-2.0
// Language models deployed as whole numbers, tables of embeddings among them: what a plan says is what the export weighs, losses stay near, the
// judge agrees, a file that is written evaluates, and a plan is the run.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/deploy.h"

#include "exactness.h"
#include "short_runs.h"

// Of the first the output layer shares the table, the second has two tables, the third a table beside recurrent cells.
static const char *const models[] = {"gpt2_124m_tiny", "bert_base_tiny", "lstm_lm_medium_tiny"};
enum { MODELS = sizeof models / sizeof *models, WAYS = MODELS * (HR_QUANTIZE_COUNT - 1) };

static char save[64], out[64], words[64], save_pair[96], words_pair[96];

static void name_save(void)
{
    (void)snprintf(save, sizeof save, "/tmp/headroom-tables-%ld.safetensors", (long)getpid());
    (void)snprintf(out, sizeof out, "/tmp/headroom-tables-%ld-q.safetensors", (long)getpid());
    (void)snprintf(words, sizeof words, "/tmp/headroom-tables-%ld.txt", (long)getpid());
    (void)snprintf(words_pair, sizeof words_pair, "pipeline.path=%s", words);
    FILE *f = fopen(words, "w");
    ck_assert_ptr_nonnull(f);
    for (int k = 0; k < 400; k++) {
        ck_assert_int_gt(fprintf(f, "%d and %d are %d. ", k % 7, k % 5, k % 7 + k % 5), 0);
    }
    ck_assert_int_eq(fclose(f), 0);
    (void)snprintf(save_pair, sizeof save_pair, "train.save=%s", save);
}

static void remove_save(void)
{
    unlink(save);
    unlink(out);
    unlink(words);
}

// Words, of which few are held out; what BERT answers with is drawn, over few places.
static const char *data_of(const char *model)
{
    return strcmp(model, "bert_base_tiny") == 0 ? "model.sequence=4" : words_pair;
}

static const char *model_of(int way)
{
    return models[way % MODELS];
}

static hr_quantize mode_of(int way)
{
    return (hr_quantize)(1 + way / MODELS);
}

static void trained(const char *model)
{
    hr_report r = train(model, 20, (const char *[]){save_pair, data_of(model), NULL});
    hr_report_deinit(&r);
}

static hr_deploy deployed(const char *model, const char *device, hr_deploy_request request)
{
    hr_deploy d = {.tensors = NULL};
    hr_err err = {0};
    hr_preset *preset = open_model(model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    request.replaces = true;
    set_all(&knobs, (const char *[]){data_of(model), device, NULL});
    ck_assert_msg(hr_deploy_run(preset, &knobs, &request, &d, &err) == HR_OK, "%s: %s", model, err.sentence);
    hr_preset_close(preset);
    return d;
}

static uint64_t planned_bytes(const char *model, hr_quantize mode)
{
    const hr_engine_options options = {.plan_only = true};
    char pair[64];
    hr_engine *e = NULL;
    hr_err err = {0};
    hr_report r;
    hr_preset *preset = open_model(model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    (void)snprintf(pair, sizeof pair, "compress.quantize=%s", hr_quantize_name(mode));
    set_all(&knobs, (const char *[]){pair, data_of(model), NULL});
    ck_assert_msg(hr_engine_create(preset, &knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(hr_engine_report(e, &r, NULL), HR_OK);
    const uint64_t bytes = r.deploy.deployed_bytes;
    hr_report_deinit(&r);
    hr_engine_destroy(e);
    hr_preset_close(preset);
    return bytes;
}

static const hr_deploy_tensor *tensor_named(const hr_deploy *d, const char *part)
{
    for (size_t k = 0; k < d->tensor_count; k++) {
        if (strstr(d->tensors[k].name, part) != NULL) {
            return &d->tensors[k];
        }
    }
    ck_abort_msg("no tensor with '%s' in its name", part);
    return NULL;
}

START_TEST(what_is_planned_is_what_is_deployed_and_answers_nearly_alike)
{
    const hr_quantize mode = mode_of(_i);
    trained(model_of(_i));
    hr_deploy d = deployed(model_of(_i), "device.kind=cpu",
                           (hr_deploy_request){.save = save, .out = out, .quantize = mode});
    hr_deploy judged =
        deployed(model_of(_i), "device.kind=reference", (hr_deploy_request){.save = save, .quantize = mode});
    ck_assert_uint_eq(planned_bytes(model_of(_i), mode), d.deployed.ram_bytes);
    ck_assert(d.after.loss != d.before.loss);
    const double most = mode == HR_QUANTIZE_INT4_WEIGHTS ? 0.05 : 0.01;
    ck_assert_msg(fabs(d.after.loss - d.before.loss) < most * d.before.loss, "%g, %g", d.after.loss,
                  d.before.loss);
    ck_assert_msg(fabs(d.after.loss - judged.after.loss) < 1e-4 * judged.after.loss, "%.9g, %.9g",
                  d.after.loss, judged.after.loss);
    hr_deploy again = deployed(model_of(_i), "device.kind=cpu", (hr_deploy_request){.save = out});
    ck_assert_msg(fabs(again.before.loss - d.after.loss) < 1e-4 * d.after.loss, "%.9g, %.9g",
                  again.before.loss, d.after.loss);
    hr_deploy_deinit(&again);
    hr_deploy_deinit(&judged);
    hr_deploy_deinit(&d);
}
END_TEST

// wte is [256,64], a scale a row; wpe is added as it lies, and stays.
START_TEST(the_report_says_which_tables)
{
    static const uint64_t bytes[] = {0, 256 * 64 + 4 * 256, 256 * 64 + 4 * 256, 256 * 32 + 5 * 256};
    const hr_quantize mode = (hr_quantize)_i;
    trained(models[0]);
    hr_deploy d = deployed(models[0], "device.kind=cpu", (hr_deploy_request){.save = save, .quantize = mode});
    const hr_deploy_tensor *table = tensor_named(&d, "wte"), *places = tensor_named(&d, "wpe");
    ck_assert_str_eq(table->type, mode == HR_QUANTIZE_INT4_WEIGHTS ? "int4" : "int8");
    ck_assert_uint_eq(table->bytes, 4 * 256 * 64);
    ck_assert_uint_eq(table->deployed_bytes, bytes[mode]);
    ck_assert(table->max_error > 0 && table->max_error < 0.05);
    ck_assert_str_eq(places->type, "float32");
    ck_assert_uint_eq(places->deployed_bytes, places->bytes);
    ck_assert(isnan(places->max_error));
    hr_deploy_deinit(&d);
}
END_TEST

static const char *const policies[] = {"precision.policy=mixed_bfloat16", "precision.policy=bfloat16",
                                       "precision.policy=float64"};
enum { POLICIES = sizeof policies / sizeof *policies };

// float64 is the judge's alone.
START_TEST(a_plan_is_the_run_and_policies_evaluate)
{
    char why[512], pair[64];
    uint64_t peak_bytes = 0;
    hr_preset *preset = open_model(model_of(_i));
    (void)snprintf(pair, sizeof pair, "compress.quantize=%s", hr_quantize_name(mode_of(_i)));
    for (int k = -1; k < POLICIES; k++) {
        hr_knobs knobs = *hr_preset_knobs(preset);
        const char *policy = k < 0 ? "precision.policy=float32" : policies[k];
        const char *device = k == POLICIES - 1 ? "device.kind=reference" : "device.kind=cpu";
        // Epochs, and with them evaluations, in three steps of two samples.
        set_all(&knobs, (const char *[]){pair, policy, device, "batch.size=2", "pipeline.samples=4",
                                         data_of(model_of(_i)), NULL});
        const exactness is = exactness_of(preset, &knobs, &peak_bytes, why, sizeof why);
        ck_assert_msg(is == EXACTNESS_HOLDS, "%s %s %s: %s", model_of(_i), pair, policy, why);
    }
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table runs");
    TCase *tc = tcase_create("runs");
    tcase_set_timeout(tc, 300);
    tcase_add_unchecked_fixture(tc, name_save, remove_save);
    tcase_add_loop_test(tc, what_is_planned_is_what_is_deployed_and_answers_nearly_alike, 0, WAYS);
    tcase_add_loop_test(tc, the_report_says_which_tables, 1, HR_QUANTIZE_COUNT);
    tcase_add_loop_test(tc, a_plan_is_the_run_and_policies_evaluate, 0, WAYS);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
