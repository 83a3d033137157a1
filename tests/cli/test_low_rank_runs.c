// SPDX-License-Identifier: Apache-2.0
// compress.low_rank in runs: a plan is the run over every tiny model; factors learn from the start; a save of the dense model is
// decomposed, says by how much, and goes on near where it was; saves of factors go on bit for bit, at their own ranks only.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exactness.h"
#include "short_runs.h"

enum { EVERY = HEADROOM_SANITIZED ? 3 : 1 };

// ---- plan = run ---------------------------------------------------------------------------------------------------

START_TEST(a_plan_is_the_run_with_factors)
{
    static const char *const ways[][3] = {
        {"compress.low_rank=ratio:0.5", "execution.mode=eager"},
        {"compress.low_rank=2", "execution.mode=graph", "precision.policy=mixed_bfloat16"},
        {"compress.low_rank=ratio:0.7", "execution.mode=graph", "checkpoint.strategy=blocks"},
        {"compress.low_rank=ratio:0.3", "execution.mode=eager", "execution.as=pytorch"},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    hr_preset_entry *entries = NULL;
    size_t count = 0, judged = 0, held = 0, tiny = 0;
    hr_preset_search_beside(".");
    ck_assert_int_eq(hr_preset_list("models", &entries, &count, NULL), HR_OK);
    for (uint32_t k = 0; k < count; k++) {
        if (strstr(entries[k].name, "_tiny") == NULL || ++tiny % EVERY != 0) {
            continue;
        }
        char why[512];
        uint64_t peak_bytes;
        hr_preset *preset = open_model(entries[k].name);
        hr_knobs knobs = *hr_preset_knobs(preset);
        const char *const *way = ways[judged++ % WAYS];
        set_all(&knobs, (const char *[]){"batch.size=3", way[0], way[1], way[2], NULL});
        const exactness is = exactness_without_refused(preset, knobs, &peak_bytes, why, sizeof why);
        ck_assert_msg(is != EXACTNESS_BROKEN, "%s %s %s: %s", entries[k].name, way[0], way[1], why);
        held += is == EXACTNESS_HOLDS;
        hr_preset_close(preset);
    }
    hr_preset_list_free(entries);
    ck_assert_uint_ge(tiny, 16);
    ck_assert_uint_ge(judged, WAYS);
    ck_assert_uint_ge(held, judged - 1);
}
END_TEST

// ---- engines --------------------------------------------------------------------------------------------------------

START_TEST(factors_learn_from_the_start)
{
    static const struct {
        const char *model, *pairs[3];
    } rows[] = {
        {"demo", {"compress.low_rank=8"}},
        {"demo", {"compress.low_rank=ratio:0.5", "execution.mode=graph"}},
        {"gpt2_124m_tiny", {"compress.low_rank=ratio:0.5", "execution.mode=graph"}},
        {"resnet18_cifar_tiny", {"compress.low_rank=ratio:0.4"}},
        {"lstm_lm_medium_tiny", {"compress.low_rank=ratio:0.5", "precision.policy=mixed_bfloat16"}},
    };
    const size_t k = (size_t)_i;
    hr_report r = train(rows[k].model, 40,
                        (const char *[]){"pipeline.resident=on", "batch.size=4", "optimizer.kind=adam",
                                         "optimizer.learning_rate=0.005", rows[k].pairs[0], rows[k].pairs[1],
                                         rows[k].pairs[1] != NULL ? rows[k].pairs[2] : NULL, NULL});
    ck_assert_msg(r.train.loss_last < 0.8 * r.train.loss_first, "%s: %g, then %g", rows[k].model,
                  r.train.loss_first, r.train.loss_last);
    hr_report_deinit(&r);
}
END_TEST

// ---- saves ----------------------------------------------------------------------------------------------------------

static char saves[2][64], save_pair[2][96], resume_pair[2][96];

static void name_saves(void)
{
    for (int k = 0; k < 2; k++) {
        (void)snprintf(saves[k], sizeof saves[k], "/tmp/headroom-low-%d-%ld.safetensors", k, (long)getpid());
        (void)snprintf(save_pair[k], sizeof save_pair[k], "train.save=%s", saves[k]);
        (void)snprintf(resume_pair[k], sizeof resume_pair[k], "train.resume=%s", saves[k]);
    }
}

static void remove_saves(void)
{
    for (int k = 0; k < 2; k++) {
        unlink(saves[k]);
    }
}

static double error_of(const hr_report *r, const char *layer)
{
    for (size_t k = 0; k < r->model.layer_count; k++) {
        if (strcmp(r->model.layers[k].name, layer) == 0) {
            return r->model.layers[k].factor_error;
        }
    }
    ck_abort_msg("no layer %s", layer);
}

// The more rank, the nearer to the weights and to their loss.
START_TEST(a_save_of_the_dense_model_is_decomposed)
{
    const char *const dense[] = {save_pair[0], "optimizer.learning_rate=0.003", NULL};
    hr_report base = train("mlp_tiny", 30, dense);
    hr_report on = train("mlp_tiny", 31, (const char *[]){resume_pair[0], NULL});
    hr_report near =
        train("mlp_tiny", 31, (const char *[]){resume_pair[0], "compress.low_rank=ratio:0.99", NULL});
    hr_report far = train("mlp_tiny", 31, (const char *[]){resume_pair[0], "compress.low_rank=4", NULL});
    hr_report fresh = train("mlp_tiny", 31, (const char *[]){"compress.low_rank=ratio:0.99", NULL});
    ck_assert_double_lt(error_of(&near, "dense"), error_of(&far, "dense"));
    ck_assert_double_gt(error_of(&near, "dense"), 0);
    ck_assert_double_lt(error_of(&far, "dense"), 1);
    ck_assert_double_lt(fabs(near.train.loss_first - on.train.loss_first),
                        fabs(far.train.loss_first - on.train.loss_first));
    ck_assert_double_lt(near.train.loss_first, fresh.train.loss_first);
    ck_assert(isnan(error_of(&fresh, "dense")) && isnan(error_of(&on, "dense")));
    hr_report_deinit(&base);
    hr_report_deinit(&on);
    hr_report_deinit(&near);
    hr_report_deinit(&far);
    hr_report_deinit(&fresh);
}
END_TEST

START_TEST(a_run_with_factors_goes_on_bit_for_bit)
{
    static const char rank[] = "compress.low_rank=ratio:0.5";
    hr_report half = train("resnet18_cifar_tiny", 3, (const char *[]){save_pair[1], rank, NULL});
    hr_report resumed = train("resnet18_cifar_tiny", 6, (const char *[]){resume_pair[1], rank, NULL});
    hr_report whole = train("resnet18_cifar_tiny", 6, (const char *[]){rank, NULL});
    ck_assert_str_eq(resumed.train.weights_sha256, whole.train.weights_sha256);
    hr_report_deinit(&half);
    hr_report_deinit(&resumed);
    hr_report_deinit(&whole);
}
END_TEST

START_TEST(factors_are_not_resumed_at_another_rank)
{
    static const struct {
        const char *rank, *sentence;
    } rows[] = {
        {"compress.low_rank=none",
         "has factors of rank 4 for dense/weights, trained under compress.low_rank"},
        {"compress.low_rank=8", "dense/weights_u needs"},
    };
    hr_report had = train("mlp_tiny", 2, (const char *[]){save_pair[1], "compress.low_rank=4", NULL});
    hr_report_deinit(&had);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_engine *e = start("mlp_tiny", (const char *[]){resume_pair[1], rows[k].rank, NULL});
        advance(e, 1);
        const hr_err *err = hr_engine_error(e);
        ck_assert_int_eq(err->status, HR_SAVE);
        ck_assert_msg(strstr(err->sentence, rows[k].sentence) != NULL, "%s", err->sentence);
        ck_assert_str_eq(err->hint, "-s compress.low_rank=4");
        hr_engine_destroy(e);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("low rank runs");
    TCase *tc = tcase_create("runs");
    tcase_set_timeout(tc, 300);
    tcase_add_unchecked_fixture(tc, name_saves, remove_saves);
    tcase_add_test(tc, a_plan_is_the_run_with_factors);
    tcase_add_loop_test(tc, factors_learn_from_the_start, 0, 5);
    tcase_add_test(tc, a_save_of_the_dense_model_is_decomposed);
    tcase_add_test(tc, a_run_with_factors_goes_on_bit_for_bit);
    tcase_add_test(tc, factors_are_not_resumed_at_another_rank);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
