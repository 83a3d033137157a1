// SPDX-License-Identifier: Apache-2.0
// compress.lora in runs: a plan is the run over every tiny model; adapters learn, from a function that is the base's; saves of
// the base begin them, saves of their own go on bit for bit, and are not resumed without them.
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

START_TEST(a_plan_is_the_run_with_adapters)
{
    static const char *const ways[][4] = {
        {"execution.mode=eager", "compress.lora_targets=auto"},
        {"execution.mode=graph", "compress.lora_targets=all", "compress.lora_alpha=16"},
        {"execution.mode=graph", "compress.lora_targets=all", "checkpoint.strategy=blocks",
         "optimizer.ema=0.9"},
        {"execution.mode=eager", "compress.lora_targets=all", "precision.policy=mixed_bfloat16",
         "batch.accumulate=2"},
        {"execution.mode=eager", "compress.lora_targets=all", "compress.lora_base=nf4",
         "precision.policy=mixed_bfloat16"},
        {"execution.mode=graph", "compress.lora_targets=all", "compress.lora_base=int8",
         "checkpoint.strategy=blocks"},
        {"execution.mode=graph", "compress.lora_targets=auto", "compress.lora_base=int4",
         "batch.accumulate=2"},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    hr_preset_entry *entries = NULL;
    size_t count = 0, judged = 0, tiny = 0;
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
        set_all(&knobs,
                (const char *[]){"compress.lora=3", "batch.size=3", way[0], way[1], way[2], way[3], NULL});
        const exactness is = exactness_of(preset, &knobs, &peak_bytes, why, sizeof why);
        ck_assert_msg(is == EXACTNESS_HOLDS, "%s %s %s: %s", entries[k].name, way[0], way[1], why);
        hr_preset_close(preset);
    }
    hr_preset_list_free(entries);
    ck_assert_uint_ge(tiny, 16);
    ck_assert_uint_ge(judged, WAYS);
}
END_TEST

// ---- engines --------------------------------------------------------------------------------------------------------

// B is zero: the first step's loss is the base's to the bit; and one batch is learned by what adds to it.
START_TEST(adapters_begin_as_the_base_and_learn)
{
    static const struct {
        const char *model, *pairs[6];
    } rows[] = {
        {"demo", {"compress.lora_targets=dense", "execution.mode=eager"}},
        {"demo", {"compress.lora_targets=all", "execution.mode=graph"}},
        {"gpt2_124m_tiny", {"compress.lora_targets=auto", "execution.mode=graph"}},
        {"gpt2_124m_tiny", {"compress.lora_targets=all", "execution.mode=eager", "compress.lora_alpha=16"}},
        {"gpt2_124m_tiny", {"compress.lora_targets=all", "precision.policy=mixed_bfloat16"}},
        {"resnet18_cifar_tiny", {"compress.lora_targets=conv"}},
        {"lstm_lm_medium_tiny", {"compress.lora_targets=all"}},
    };
    const size_t k = (size_t)_i;
    const char *const common[] = {"pipeline.resident=on", "batch.size=4", "optimizer.kind=adam",
                                  "optimizer.learning_rate=0.01"};
    const char *with[12] = {"compress.lora=4"}, *base[12];
    size_t n = 0;
    for (; n < 4; n++) {
        base[n] = with[n + 1] = common[n];
    }
    for (size_t p = 0; p < 6 && rows[k].pairs[p] != NULL; p++) {
        with[n + 1 + p] = rows[k].pairs[p];
        base[n + p] = rows[k].pairs[p];
        with[n + 2 + p] = base[n + 1 + p] = NULL;
    }
    hr_report adapted = train(rows[k].model, 40, with), plain = train(rows[k].model, 1, base);
    ck_assert_double_eq(adapted.train.loss_first, plain.train.loss_first);
    ck_assert_msg(adapted.train.loss_last < 0.98 * adapted.train.loss_first, "%s: %g, then %g", rows[k].model,
                  adapted.train.loss_first, adapted.train.loss_last);
    hr_report_deinit(&adapted);
    hr_report_deinit(&plain);
}
END_TEST

// ---- saves ----------------------------------------------------------------------------------------------------------

static char saves[2][64], save_pair[2][96], resume_pair[2][96];

static void name_saves(void)
{
    for (int k = 0; k < 2; k++) {
        (void)snprintf(saves[k], sizeof saves[k], "/tmp/headroom-lora-%d-%ld.safetensors", k, (long)getpid());
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

// The base's weights are those of the save: the loss of the next step is the same with adapters that add nothing.
START_TEST(a_save_of_the_base_begins_adapters)
{
    hr_report base = train("gpt2_124m_tiny", 4, (const char *[]){save_pair[0], NULL});
    hr_report on = train("gpt2_124m_tiny", 5, (const char *[]){resume_pair[0], NULL});
    hr_report adapted = train("gpt2_124m_tiny", 5, (const char *[]){resume_pair[0], "compress.lora=4", NULL});
    ck_assert_double_eq(adapted.train.loss_first, on.train.loss_first);
    ck_assert_str_ne(adapted.train.weights_sha256, on.train.weights_sha256);
    hr_report_deinit(&base);
    hr_report_deinit(&on);
    hr_report_deinit(&adapted);
}
END_TEST

START_TEST(a_run_with_adapters_goes_on_bit_for_bit)
{
    hr_report half = train("gpt2_124m_tiny", 3, (const char *[]){save_pair[1], "compress.lora=4", NULL});
    hr_report resumed = train("gpt2_124m_tiny", 6, (const char *[]){resume_pair[1], "compress.lora=4", NULL});
    hr_report whole = train("gpt2_124m_tiny", 6, (const char *[]){"compress.lora=4", NULL});
    ck_assert_str_eq(resumed.train.weights_sha256, whole.train.weights_sha256);
    hr_report_deinit(&half);
    hr_report_deinit(&resumed);
    hr_report_deinit(&whole);
}
END_TEST

START_TEST(adapters_are_not_left_behind)
{
    static const struct {
        const char *pairs[2], *sentence, *hint;
    } rows[] = {
        {{NULL}, "has adapters of rank 4 (h0_attn/query_lora_a) that model", "-s compress.lora=4"},
        {{"compress.lora=4", "compress.lora_targets=dense"}, "has adapters of rank 4", "-s compress.lora=4"},
        {{"compress.lora=8"}, "h0_attn/query_lora_a needs 64x8, had 64x4", "-s compress.lora=4"},
    };
    hr_report had = train("gpt2_124m_tiny", 2, (const char *[]){save_pair[1], "compress.lora=4", NULL});
    hr_report_deinit(&had);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_engine *e = start("gpt2_124m_tiny",
                             (const char *[]){resume_pair[1], rows[k].pairs[0], rows[k].pairs[1], NULL});
        advance(e, 1);
        const hr_err *err = hr_engine_error(e);
        ck_assert_int_eq(err->status, HR_SAVE);
        ck_assert_msg(strstr(err->sentence, rows[k].sentence) != NULL, "%s", err->sentence);
        ck_assert_msg(strstr(err->hint, rows[k].hint) != NULL, "%s", err->hint);
        hr_engine_destroy(e);
    }
}
END_TEST

// What was learned is the base then.
START_TEST(adapters_may_begin_while_it_learns)
{
    hr_report base = train("gpt2_124m_tiny", 4, (const char *[]){save_pair[0], NULL});
    hr_report resumed = train("gpt2_124m_tiny", 6, (const char *[]){resume_pair[0], "compress.lora=4", NULL});
    hr_engine *e = start("gpt2_124m_tiny", (const char *[]){NULL});
    hr_report turned;
    hr_err err = {0};
    const hr_command knob = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_COMPRESS_LORA, .text = "4"};
    advance(e, 4);
    ck_assert_msg(hr_engine_command(e, &knob, &err) == HR_OK, "%s", err.sentence);
    advance(e, 6);
    ck_assert_int_eq(hr_engine_report(e, &turned, NULL), HR_OK);
    ck_assert_str_eq(turned.train.weights_sha256, resumed.train.weights_sha256);
    hr_engine_destroy(e);
    hr_report_deinit(&base);
    hr_report_deinit(&resumed);
    hr_report_deinit(&turned);
}
END_TEST

START_TEST(turning_them_while_it_learns_is_refused_and_alpha_is_not)
{
    static const struct {
        hr_knob_id id;
        const char *value;
        hr_status status;
    } rows[] = {
        {HR_KNOB_COMPRESS_LORA, "8", HR_STATE},
        {HR_KNOB_COMPRESS_LORA, "none", HR_STATE},
        {HR_KNOB_COMPRESS_LORA_TARGETS, "dense", HR_STATE},
        {HR_KNOB_COMPRESS_LORA_ALPHA, "8", HR_OK},
    };
    hr_engine *e = start("gpt2_124m_tiny", (const char *[]){"compress.lora=4", NULL});
    advance(e, 2);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_err err = {0};
        hr_command knob = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = rows[k].id};
        (void)snprintf(knob.text, sizeof knob.text, "%s", rows[k].value);
        ck_assert_int_eq(hr_engine_command(e, &knob, &err), rows[k].status);
        ck_assert_msg(rows[k].status == HR_OK ||
                          strstr(err.sentence, "what 2 updates have learned would be lost"),
                      "%s", err.sentence);
    }
    advance(e, 4);
    ck_assert_uint_eq(hr_engine_steps(e), 4);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lora runs");
    TCase *tc = tcase_create("runs");
    tcase_set_timeout(tc, 300);
    tcase_add_unchecked_fixture(tc, name_saves, remove_saves);
    tcase_add_test(tc, a_plan_is_the_run_with_adapters);
    tcase_add_loop_test(tc, adapters_begin_as_the_base_and_learn, 0, 7);
    tcase_add_test(tc, a_save_of_the_base_begins_adapters);
    tcase_add_test(tc, a_run_with_adapters_goes_on_bit_for_bit);
    tcase_add_test(tc, adapters_are_not_left_behind);
    tcase_add_test(tc, adapters_may_begin_while_it_learns);
    tcase_add_test(tc, turning_them_while_it_learns_is_refused_and_alpha_is_not);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
