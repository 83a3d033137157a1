// SPDX-License-Identifier: Apache-2.0
// What is deployed of a save: what its plan says, averages where they are held, zeros counted, nothing half done when memory is short, and a file that
// was changed is refused.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 7, activation: relu}\n"                                                      \
    "    - {name: inner, kind: dense, units: 7}\n"                                                           \
    "    - {name: twin, kind: dense, units: 7, share: inner}\n"                                              \
    "    - {kind: dense, units: 10}\n"

#include <math.h>
#include <sys/stat.h>

#include "headroom/deploy.h"

#include "base/host_mem.h"
#include "unit/small_engine.h"

static char images[160], save_path[128], out_path[128];

// Two steps, saved, with two pairs.
static hr_knobs trained(const char *more, const char *other)
{
    char save[160];
    hr_err err = {0};
    hr_knobs knobs = *hr_preset_knobs(preset);
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("w.safetensors", save_path));
    (void)file_in("q.safetensors", out_path);
    const char *const pairs[] = {write_images(16, 24, images), more, other, save, NULL};
    hr_engine *e = create(pairs, NULL);
    run_steps(e, 2);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_engine_destroy(e);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[0], &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, more, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, other, &err), HR_OK);
    return knobs;
}

static hr_deploy deployed(const hr_knobs *knobs, const hr_deploy_request *request)
{
    hr_err err = {0};
    hr_deploy d;
    ck_assert_msg(hr_deploy_run(preset, knobs, request, &d, &err) == HR_OK, "%s", err.sentence);
    return d;
}

static void refused(const hr_knobs *knobs, const hr_deploy_request *request, const char *sentence)
{
    hr_err err = {0};
    hr_deploy d;
    ck_assert_int_ne(hr_deploy_run(preset, knobs, request, &d, &err), HR_OK);
    ck_assert_msg(strstr(err.sentence, sentence) != NULL, "'%s' lacks '%s'", err.sentence, sentence);
    ck_assert_ptr_null(d.tensors);
}

START_TEST(averages_are_what_is_deployed)
{
    hr_knobs plain = trained("optimizer.ema=none", "train.seed=1");
    hr_deploy a = deployed(&plain, &(hr_deploy_request){.save = save_path});
    hr_knobs averaging = trained("optimizer.ema=0.5", "train.seed=1");
    hr_deploy b = deployed(&averaging, &(hr_deploy_request){.save = save_path, .out = out_path});
    ck_assert(!a.averaged && b.averaged);
    ck_assert_uint_eq(a.stripped.ram_bytes, b.stripped.ram_bytes);
    ck_assert_uint_eq(b.save.ram_bytes, 4 * b.stripped.ram_bytes); // Adam's two, and the averages
    ck_assert(b.before.loss != a.before.loss);
    hr_deploy c = deployed(&plain, &(hr_deploy_request){.save = out_path});
    ck_assert(c.before.loss == b.before.loss); // they are the weights now
    hr_deploy_deinit(&a);
    hr_deploy_deinit(&b);
    hr_deploy_deinit(&c);
}
END_TEST

static const char *const kinds[] = {
    "optimizer.ema=none", "optimizer.ema=0.5",   "precision.policy=float16", "precision.policy=float64",
    "compress.lora=2",    "compress.low_rank=3", "compress.distill=self",    "compress.prune=constant:0.5"};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(a_plan_says_what_is_deployed)
{
    const hr_engine_options options = {.plan_only = true};
    hr_knobs knobs = trained(kinds[_i], "train.seed=1");
    for (int mode = 0; mode < HR_QUANTIZE_COUNT; mode++) {
        hr_err err = {0};
        hr_engine *e = NULL;
        hr_knobs planned = knobs;
        hr_deploy d =
            deployed(&knobs, &(hr_deploy_request){.save = save_path, .quantize = (hr_quantize)mode});
        ck_assert_int_eq(
            hr_knobs_set(&planned, HR_KNOB_COMPRESS_QUANTIZE, hr_quantize_name((hr_quantize)mode), &err),
            HR_OK);
        ck_assert_msg(hr_engine_create(preset, &planned, &options, &e, &err) == HR_OK, "%s", err.sentence);
        hr_report r = report_of(e);
        ck_assert_uint_eq(r.deploy.stripped_bytes, d.stripped.ram_bytes);
        ck_assert_uint_eq(r.deploy.deployed_bytes, d.deployed.ram_bytes);
        ck_assert((mode == HR_QUANTIZE_NONE) == (d.deployed.ram_bytes == d.stripped.ram_bytes));
        hr_report_deinit(&r);
        hr_engine_destroy(e);
        hr_deploy_deinit(&d);
    }
}
END_TEST

START_TEST(zeros_are_counted)
{
    hr_knobs knobs = trained("optimizer.learning_rate=0", "train.seed=1");
    hr_deploy d = deployed(&knobs, &(hr_deploy_request){.save = save_path});
    for (size_t k = 0; k < d.tensor_count; k++) { // biases begin at zero, and do not learn
        const bool is_bias = strstr(d.tensors[k].name, "/bias") != NULL;
        ck_assert_uint_eq(d.tensors[k].zeros, is_bias ? d.tensors[k].elements : 0);
        ck_assert(isnan(d.tensors[k].max_error));
    }
    hr_deploy_deinit(&d);
}
END_TEST

// What evaluates and does not train was not trained: that it ends is no second error.
START_TEST(a_refused_training_ends_without_another_error)
{
    hr_knobs knobs = trained("optimizer.ema=none", "optimizer.ema=none");
    hr_deploy d = deployed(
        &knobs, &(hr_deploy_request){.save = save_path, .out = out_path, .quantize = HR_QUANTIZE_INT8});
    char resume[160], save[160], path[128];
    hr_err err = {0};
    (void)snprintf(resume, sizeof resume, "train.resume=%s", out_path);
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("never.safetensors", path));
    hr_engine *e = create((const char *[]){images, resume, save, NULL}, NULL);
    run_steps(e, 4);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence, "which evaluate and do not train"));
    const hr_command quit = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_QUIT};
    ck_assert_msg(hr_engine_command(e, &quit, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_ne(access(path, F_OK), 0);
    hr_engine_destroy(e);
    hr_deploy_deinit(&d);
}
END_TEST

static void change_byte(long at, int whence)
{
    FILE *f = fopen(out_path, "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, at, whence), 0);
    const int was = fgetc(f);
    ck_assert_int_eq(fseek(f, at, whence), 0);
    ck_assert_int_ne(fputc(was ^ 1, f), EOF);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_quantised_file_that_was_changed_is_refused)
{
    hr_knobs knobs = trained("optimizer.ema=none", "train.seed=1");
    const hr_deploy_request write = {.save = save_path, .out = out_path, .quantize = (hr_quantize)_i};
    const hr_deploy_request read = {.save = out_path};
    hr_deploy d = deployed(&knobs, &write);
    hr_deploy_deinit(&d);
    change_byte(-30, SEEK_END);
    refused(&knobs, &read, "is damaged");
    d = deployed(&knobs, &write);
    ck_assert_int_eq(truncate(out_path, (off_t)d.deployed.file_bytes - 8), 0);
    hr_deploy_deinit(&d);
    refused(&knobs, &read, "is broken");
}
END_TEST

static uint64_t bytes_of(const char *path)
{
    struct stat facts;
    ck_assert_int_eq(stat(path, &facts), 0);
    return (uint64_t)facts.st_size;
}

START_TEST(the_save_weighs_what_lies_there)
{
    hr_err err = {0};
    hr_knobs knobs = trained("compress.low_rank=none", "train.seed=1");
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "compress.low_rank=2", &err), HR_OK);
    hr_deploy d = deployed(&knobs, &(hr_deploy_request){.save = save_path});
    ck_assert_uint_eq(d.save.file_bytes, bytes_of(save_path));
    ck_assert_uint_eq(d.save.ram_bytes, 3 * 4 * (3072 * 7 + 7 + 7 * 7 + 7 + 7 * 10 + 10)); // Adam's two slots
    ck_assert_uint_lt(d.stripped.ram_bytes, d.save.ram_bytes / 6);
    hr_deploy_deinit(&d);
}
END_TEST

START_TEST(what_shaped_the_model_is_in_the_deployed_file)
{
    hr_err err = {0};
    hr_engine *e = NULL;
    hr_knobs knobs = trained("compress.low_rank=2", "train.seed=1");
    hr_deploy d = deployed(&knobs, &(hr_deploy_request){.save = save_path, .out = out_path});
    ck_assert_uint_eq(d.deployed.file_bytes, bytes_of(out_path));
    hr_deploy_deinit(&d);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "compress.low_rank=none", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_TRAIN_RESUME, out_path, &err), HR_OK);
    ck_assert_int_eq(hr_engine_create(preset, &knobs, NULL, &e, &err), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_str_eq(hr_engine_error(e)->hint, "-s compress.low_rank=2");
    hr_engine_destroy(e);
}
END_TEST

// A mode that a list lacks is no choice, has no name, or evaluates as if it were none.
START_TEST(modes_are_the_choices_of_the_knob_and_evaluate)
{
    const hr_knob_row *row = &hr_knob_rows(NULL)[HR_KNOB_COMPRESS_QUANTIZE];
    hr_knobs knobs = trained("optimizer.ema=none", "train.seed=1");
    for (int k = 0; k < HR_QUANTIZE_COUNT; k++) {
        ck_assert_str_eq(row->choices[k], hr_quantize_name((hr_quantize)k));
        hr_deploy d = deployed(&knobs, &(hr_deploy_request){.save = save_path, .quantize = (hr_quantize)k});
        ck_assert_int_eq(d.after.loss != d.before.loss, k != HR_QUANTIZE_NONE);
        hr_deploy_deinit(&d);
    }
    ck_assert_str_eq(row->choices[HR_QUANTIZE_COUNT], "qat"); // training's own
    ck_assert_ptr_null(row->choices[HR_QUANTIZE_COUNT + 1]);
}
END_TEST

START_TEST(what_a_layer_reads_without_its_adapter_is_not_merged)
{
    hr_knobs knobs = trained("compress.lora=2", "compress.lora_targets=list:twin");
    refused(&knobs, &(hr_deploy_request){.save = save_path, .merges = true},
            "inner/weights has an adapter, and layer inner reads it without: they cannot be merged");
    hr_deploy d = deployed(&knobs, &(hr_deploy_request){.save = save_path, .adapters = true});
    ck_assert_uint_eq(d.tensor_count, 2);
    hr_deploy_deinit(&d);
    knobs = trained("compress.lora=2", "compress.lora_targets=list:inner,twin");
    d = deployed(&knobs, &(hr_deploy_request){.save = save_path, .merges = true});
    ck_assert_double_eq_tol(d.after.loss, d.before.loss, 1e-5 * d.before.loss);
    hr_deploy_deinit(&d);
}
END_TEST

START_TEST(factors_of_whole_weights_are_told_from_what_was_trained)
{
    hr_err err = {0};
    hr_knobs knobs = trained("optimizer.ema=none", "compress.low_rank=none");
    hr_deploy whole = deployed(&knobs, &(hr_deploy_request){.save = save_path});
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "compress.low_rank=2", &err), HR_OK);
    hr_deploy factors = deployed(&knobs, &(hr_deploy_request){.save = save_path});
    knobs = trained("optimizer.ema=none", "compress.low_rank=2");
    hr_deploy own = deployed(&knobs, &(hr_deploy_request){.save = save_path});
    ck_assert(!whole.decomposed && factors.decomposed && !own.decomposed);
    hr_deploy_deinit(&whole);
    hr_deploy_deinit(&factors);
    hr_deploy_deinit(&own);
}
END_TEST

// What is trained, and what of it is written.
static const struct {
    const char *pairs[2];
    hr_quantize quantize;
    bool merges, adapters;
} written[] = {
    {{"optimizer.ema=none", "compress.lora=none"}, HR_QUANTIZE_INT4_WEIGHTS, false, false},
    {{"compress.lora=2", "compress.lora_base=nf4"}, HR_QUANTIZE_INT8, true, false},
    {{"compress.lora=2", "compress.lora_base=none"}, HR_QUANTIZE_NONE, false, true},
};

START_TEST(memory_that_is_short_leaves_nothing_behind)
{
    hr_knobs knobs = trained(written[_i].pairs[0], written[_i].pairs[1]);
    const hr_deploy_request write = {.save = save_path,
                                     .out = out_path,
                                     .quantize = written[_i].quantize,
                                     .merges = written[_i].merges,
                                     .adapters = written[_i].adapters};
    hr_status status = HR_NOMEM;
    uint64_t nth = 1;
    for (; status != HR_OK && nth < 100000; nth += 1 + nth / 16) {
        hr_err err = {0};
        hr_deploy d;
        const int64_t live = hr_host_mem_live();
        hr_host_mem_fail_at(nth);
        status = hr_deploy_run(preset, &knobs, &write, &d, &err);
        hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || d.tensors == NULL, "request %d", (int)nth);
        ck_assert_msg(status == HR_OK || access(out_path, F_OK) != 0, "request %d: %s", (int)nth,
                      err.sentence);
        if (status == HR_OK) {
            hr_deploy_deinit(&d);
        }
        ck_assert_msg(hr_host_mem_live() == live, "request %d leaves something", (int)nth);
    }
    ck_assert_int_eq(status, HR_OK);
    ck_assert_uint_gt(nth, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deploy");
    TCase *tests = tcase_create("saves");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_test(tests, a_refused_training_ends_without_another_error);
    tcase_add_test(tests, averages_are_what_is_deployed);
    tcase_add_loop_test(tests, a_plan_says_what_is_deployed, 0, KINDS);
    tcase_add_test(tests, zeros_are_counted);
    tcase_add_loop_test(tests, a_quantised_file_that_was_changed_is_refused, 1, HR_QUANTIZE_COUNT);
    tcase_add_test(tests, the_save_weighs_what_lies_there);
    tcase_add_test(tests, what_shaped_the_model_is_in_the_deployed_file);
    tcase_add_test(tests, modes_are_the_choices_of_the_knob_and_evaluate);
    tcase_add_test(tests, what_a_layer_reads_without_its_adapter_is_not_merged);
    tcase_add_test(tests, factors_of_whole_weights_are_told_from_what_was_trained);
    tcase_add_loop_test(tests, memory_that_is_short_leaves_nothing_behind, 0, 3);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
