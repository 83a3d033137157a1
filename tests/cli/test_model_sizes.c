// SPDX-License-Identifier: Apache-2.0
// The knobs model.*: a plan is the run under any size of a model that has it; a size turned while a model learns goes on from
// what was learned, or is refused before anything is touched.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/philox.h"
#include "exactness.h"

enum { ROUNDS = HEADROOM_SANITIZED ? 1 : 3, WORDS_MAX = 256 };

static hr_preset *open_model(const char *name)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    hr_preset_search_beside(".");
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    return preset;
}

static void set(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static uint32_t pick(uint32_t seed, uint32_t which, uint32_t n)
{
    uint32_t word[4];
    philox(philox_key_of(seed, "test"), which, 0, word);
    return word[0] % n;
}

// ---- plan = run ---------------------------------------------------------------------------------------------------

static void turn_sizes(hr_knobs *knobs, uint32_t seed, char words[WORDS_MAX])
{
    const hr_knob_row *rows = hr_knob_rows(NULL);
    words[0] = '\0';
    for (uint32_t k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        if (!hr_knob_is_size(id) || !hr_knob_is_set(knobs, id)) {
            continue;
        }
        const long long own = hr_knob_int(knobs, id);
        const long long next = 1 + own / 2 + (long long)pick(seed, k, (uint32_t)own + 1);
        char pair[64];
        (void)snprintf(pair, sizeof pair, "%s=%lld", rows[k].key, next);
        set(knobs, pair);
        (void)snprintf(words + strlen(words), WORDS_MAX - strlen(words), "%s ", pair);
    }
}

START_TEST(a_plan_is_the_run_under_other_sizes)
{
    static const char *const ways[] = {"execution.mode=eager", "execution.mode=graph",
                                       "checkpoint.strategy=blocks"};
    hr_preset_entry *entries = NULL;
    size_t count = 0, sized = 0, held = 0;
    hr_preset_search_beside(".");
    ck_assert_int_eq(hr_preset_list("models", &entries, &count, NULL), HR_OK);
    for (uint32_t k = 0; k < count; k++) {
        if (strstr(entries[k].name, "_tiny") == NULL) {
            continue;
        }
        hr_preset *preset = open_model(entries[k].name);
        for (uint32_t round = 0; round < ROUNDS; round++) {
            char why[512], words[WORDS_MAX];
            uint64_t peak_bytes;
            hr_knobs knobs = *hr_preset_knobs(preset);
            turn_sizes(&knobs, 8 * k + round, words);
            set(&knobs, ways[(k + round) % 3]);
            set(&knobs, "device.kind=cpu");
            set(&knobs, "device.vram=4GiB");
            set(&knobs, "batch.size=3");
            set(&knobs, "threads.count=1");
            if (words[0] == '\0') {
                break;
            }
            const exactness is = exactness_of(preset, &knobs, &peak_bytes, why, sizeof why);
            ck_assert_msg(is != EXACTNESS_BROKEN, "%s %s%s: %s", entries[k].name, words,
                          ways[(k + round) % 3], why);
            sized++;
            held += is == EXACTNESS_HOLDS;
        }
        hr_preset_close(preset);
    }
    hr_preset_list_free(entries);
    ck_assert_uint_ge(sized, 8 * ROUNDS);
    ck_assert_uint_gt(held, sized / 2); // an odd image does not pass a U-Net
}
END_TEST

// ---- turned while it learns ----------------------------------------------------------------------------------------

static hr_engine *start(const char *model, const char *const *pairs)
{
    hr_engine *e = NULL;
    hr_err err = {0};
    hr_preset *preset = open_model(model);
    hr_knobs knobs = *hr_preset_knobs(preset);
    set(&knobs, "device.kind=cpu");
    set(&knobs, "device.vram=1GiB");
    set(&knobs, "threads.count=1");
    for (; *pairs != NULL; pairs++) {
        set(&knobs, *pairs);
    }
    ck_assert_msg(hr_engine_create(preset, &knobs, NULL, &e, &err) == HR_OK, "%s", err.sentence);
    hr_preset_close(preset); // the engine holds what it needs of it
    return e;
}

static void run_to(hr_engine *e, uint64_t steps)
{
    hr_command run = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps - hr_engine_steps(e)};
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_msg(hr_engine_steps(e) == steps, "%s", hr_engine_error(e)->sentence);
}

static hr_status turn(hr_engine *e, hr_knob_id id, const char *value, hr_err *err)
{
    hr_command knob = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = id};
    (void)snprintf(knob.text, sizeof knob.text, "%s", value);
    return hr_engine_command(e, &knob, err);
}

static void report_of(hr_engine *e, hr_report *r)
{
    ck_assert_int_eq(hr_engine_report(e, r, NULL), HR_OK);
}

// A shorter sequence in the middle is what a save and a resume under that sequence are, weights and bytes.
START_TEST(learning_goes_on_under_another_sequence)
{
    char save[] = "/tmp/headroom-sizes-XXXXXX", save_pair[64], resume_pair[64];
    hr_report turned, resumed;
    const int fd = mkstemp(save);
    ck_assert_int_ge(fd, 0);
    close(fd);
    unlink(save);
    (void)snprintf(save_pair, sizeof save_pair, "train.save=%s", save);
    (void)snprintf(resume_pair, sizeof resume_pair, "train.resume=%s", save);
    hr_engine *e = start("llama3_2_1b_tiny", (const char *const[]){save_pair, NULL});
    run_to(e, 3);
    ck_assert_int_eq(turn(e, HR_KNOB_TRAIN_SAVE, "", NULL), HR_OK);
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_SEQUENCE, "7", NULL), HR_OK);
    run_to(e, 6);
    report_of(e, &turned);
    hr_engine *other =
        start("llama3_2_1b_tiny", (const char *const[]){resume_pair, "model.sequence=7", NULL});
    run_to(other, 6);
    report_of(other, &resumed);
    ck_assert_str_eq(turned.train.weights_sha256, resumed.train.weights_sha256);
    ck_assert_uint_eq(turned.memory.peak_in_use_bytes, resumed.memory.peak_in_use_bytes);
    ck_assert_uint_eq(turned.memory.saved_for_backward_bytes, resumed.memory.saved_for_backward_bytes);
    hr_report_deinit(&turned);
    hr_report_deinit(&resumed);
    hr_engine_destroy(e);
    hr_engine_destroy(other);
    unlink(save);
}
END_TEST

START_TEST(weights_that_would_be_lost_are_not)
{
    hr_err err = {0};
    hr_report before, after;
    hr_engine *e = start("gpt2_124m_tiny", (const char *const[]){NULL});
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_DEPTH, "1", NULL), HR_OK); // nothing was learned yet
    run_to(e, 2);
    report_of(e, &before);
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_DEPTH, "2", &err), HR_STATE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "model.depth=2: h1_"));
    ck_assert_ptr_nonnull(strstr(err.hint, "headroom gpt2_124m_tiny -s model.depth=2"));
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_SEQUENCE, "65", &err), HR_MODEL); // it has 64 positions
    ck_assert_ptr_nonnull(strstr(err.hint, "model.sequence=64"));
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_WIDTH, "32", &err), HR_KNOB);
    ck_assert_int_eq(hr_knob_int(hr_engine_knobs(e), HR_KNOB_MODEL_DEPTH), 1);
    report_of(e, &after);
    ck_assert_str_eq(before.train.weights_sha256, after.train.weights_sha256);
    run_to(e, 4);
    hr_report_deinit(&before);
    hr_report_deinit(&after);
    hr_engine_destroy(e);
}
END_TEST

// Nothing is learned where nothing is computed; and what is said of a step is all of one model.
START_TEST(a_plan_turns_any_size_and_tells_of_one_model)
{
    hr_report turned, built;
    hr_engine *e = start("gpt2_124m_tiny", (const char *const[]){"device.kind=plan", NULL});
    run_to(e, 2);
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_DEPTH, "1", NULL), HR_OK);
    ck_assert_int_eq(turn(e, HR_KNOB_MODEL_SEQUENCE, "16", NULL), HR_OK);
    report_of(e, &turned); // of the build that is there
    run_to(e, 3);
    report_of(e, &built);
    ck_assert_uint_eq(turned.model.parameters - built.model.parameters, 49984); // a block of 64 features
    ck_assert_uint_gt(turned.model.layer_count, built.model.layer_count);
    ck_assert_uint_gt(turned.step.instructions, built.step.instructions);
    ck_assert_uint_eq(turned.memory.static_bytes / 16, turned.model.parameters);
    ck_assert_uint_eq(built.memory.static_bytes / 16, built.model.parameters);
    hr_report_deinit(&turned);
    hr_report_deinit(&built);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model sizes");
    TCase *tc = tcase_create("sizes");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, a_plan_is_the_run_under_other_sizes);
    tcase_add_test(tc, learning_goes_on_under_another_sequence);
    tcase_add_test(tc, weights_that_would_be_lost_are_not);
    tcase_add_test(tc, a_plan_turns_any_size_and_tells_of_one_model);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
