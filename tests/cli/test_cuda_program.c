// SPDX-License-Identifier: Apache-2.0
// Whole trainings on the cuda device over the emulated card: the plan is the run, losses are the reference's, and the
// weights are the same however memory is handled. Of the covering array as much as the emulation has time for.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "bits.h"
#include "card/reach.h"
#include "covering.h"
#include "exactness.h"

enum {
    GROUPS = HEADROOM_SANITIZED
                 ? 3
                 : 24,      // of the covering array, which grows with the models; of each one configuration
    MOST_FLOPS = 100000000, // of an update: the emulation computes some tens of millions a second
    ALL_DONE = 77
};

static covering covered;

static hr_preset *open_model(const char *name)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    return preset;
}

static void turn(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_knobs knobs_on(const hr_preset *preset, const char *device)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, device, NULL), HR_OK);
    turn(&knobs, "device.card=");
    turn(&knobs, "device.vram=4GiB");
    return knobs;
}

// ---- the plan is the run ----------------------------------------------------------------------------------------------

static hr_preset *preset_of(const configuration *c)
{
    const axis *axes = NULL;
    (void)covering_axes(&axes);
    return open_model(axes[0].values[c->value[0]]);
}

// Of an update; 0 where it is refused, which costs nothing.
static uint64_t flops_of(const configuration *c)
{
    hr_preset *preset = preset_of(c);
    hr_knobs knobs = knobs_on(preset, "plan");
    configuration_apply(c, &knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_DEVICE_KIND, "plan", NULL), HR_OK);
    hr_engine *engine = NULL;
    hr_report report;
    uint64_t flops = 0;
    if (hr_engine_create(preset, &knobs, &(hr_engine_options){.plan_only = true}, &engine, NULL) == HR_OK) {
        const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 1};
        ck_assert_int_eq(hr_engine_command(engine, &run, NULL), HR_OK);
        for (bool idle = false; !idle;) {
            hr_engine_advance(engine, &idle);
        }
        ck_assert_int_eq(hr_engine_report(engine, &report, NULL), HR_OK);
        flops = report.step.flops;
        hr_report_deinit(&report);
        hr_engine_destroy(engine);
    }
    hr_preset_close(preset);
    return flops;
}

// Of a group the first that there is time for, or the one that takes least.
static const configuration *chosen(size_t group)
{
    const size_t first = group * covered.count / GROUPS, end = (group + 1) * covered.count / GROUPS;
    const configuration *least = &covered.list[first];
    uint64_t least_flops = UINT64_MAX;
    for (size_t k = first; k < end && least_flops > MOST_FLOPS; k++) {
        const uint64_t flops = flops_of(&covered.list[k]);
        if (flops < least_flops) {
            least = &covered.list[k];
            least_flops = flops;
        }
    }
    return least;
}

START_TEST(the_plan_is_the_run)
{
    const configuration *c = chosen((size_t)_i);
    char text[2048], why[512] = "";
    uint64_t peak_bytes = 0;
    hr_preset *preset = preset_of(c);
    hr_knobs knobs = knobs_on(preset, "cuda");
    configuration_apply(c, &knobs);
    const exactness found = exactness_without_refused(preset, knobs, &peak_bytes, why, sizeof why);
    ck_assert_msg(found == EXACTNESS_HOLDS, "%s: %s", configuration_text(c, text, sizeof text), why);
    ck_assert_uint_gt(peak_bytes, 0);
    hr_preset_close(preset);
}
END_TEST

// A driver that cannot map memory: the run's dry run knows, and so does a plan for the card that is here. Not of direct,
// whose tensors then lie where the driver puts them, one by one.
static const char *const unmapped[] = {"allocator.kind=bfc", "allocator.kind=caching"};
enum { UNMAPPED = sizeof unmapped / sizeof *unmapped };

START_TEST(the_plan_is_the_run_where_nothing_maps)
{
    char why[512] = "";
    uint64_t peak_bytes = 0;
    ck_assert_int_eq(setenv("CARD_PIECE", "0", 1), 0);
    hr_preset *preset = open_model("cifar10_separable_cnn_tiny");
    hr_knobs knobs = knobs_on(preset, "cuda");
    turn(&knobs, "batch.size=4");
    turn(&knobs, unmapped[_i]);
    ck_assert_msg(exactness_of(preset, &knobs, &peak_bytes, why, sizeof why) == EXACTNESS_HOLDS, "%s: %s",
                  why, unmapped[_i]);
    hr_preset_close(preset);
}
END_TEST

// ---- losses -----------------------------------------------------------------------------------------------------------

enum { LOSSES = 3 };

// Of every step; *report is the caller's.
static void train(const hr_preset *preset, const hr_knobs *knobs, double losses[LOSSES], hr_report *report)
{
    hr_engine *engine = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_engine_create(preset, knobs, &(hr_engine_options){0}, &engine, &err) == HR_OK, "%s",
                  err.sentence);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = LOSSES};
    ck_assert_int_eq(hr_engine_command(engine, &run, &err), HR_OK);
    uint64_t seen = 0;
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
        if (hr_engine_steps(engine) > seen) {
            losses[seen++] = hr_engine_loss(engine);
        }
    }
    ck_assert_msg(seen == LOSSES, "%s", hr_engine_error(engine)->sentence);
    ck_assert_int_eq(hr_engine_report(engine, report, &err), HR_OK);
    hr_engine_destroy(engine);
}

static const struct {
    const char *policy;
    double tolerance; // of the loss
} policies[] = {{"float32", 2e-5}, {"mixed_float16", 1e-2}, {"mixed_bfloat16", 5e-2}};
enum { POLICIES = sizeof policies / sizeof *policies };

// Its rows of logits are padded.
static const char odd_words[] = "tests/data/models/words_1027.yaml";

static const char *const judged[] = {"mlp_tiny", "cifar10_separable_cnn_tiny", "gpt2_124m_tiny",
                                     "lstm_lm_medium_tiny", odd_words};
enum { JUDGED = sizeof judged / sizeof *judged };

// The reference device has the same weights, data and masks, and computes in float32 what it keeps in two bytes.
START_TEST(losses_are_those_of_the_reference_device)
{
    const char *model = judged[_i / POLICIES];
    const int policy = _i % POLICIES;
    double got[LOSSES] = {0}, wanted[LOSSES] = {0};
    hr_report report = {0};
    hr_preset *preset = open_model(model);
    for (int judge = 0; judge < 2; judge++) {
        hr_knobs knobs = knobs_on(preset, judge ? "reference" : "cuda");
        ck_assert_int_eq(
            hr_knobs_set(&knobs, HR_KNOB_PRECISION_POLICY, judge ? "float32" : policies[policy].policy, NULL),
            HR_OK);
        turn(&knobs, "batch.size=4");
        turn(&knobs, "execution.mode=graph");
        train(preset, &knobs, judge ? wanted : got, &report);
        hr_report_deinit(&report);
    }
    for (int k = 0; k < LOSSES; k++) {
        ck_assert(isfinite(got[k]));
        ck_assert_msg(fabs(got[k] - wanted[k]) <= policies[policy].tolerance * fabs(wanted[k]),
                      "%s, %s: loss %d is %.9g, the reference's %.9g", model, policies[policy].policy, k + 1,
                      got[k], wanted[k]);
    }
    hr_preset_close(preset);
}
END_TEST

// ---- weights as whole numbers -----------------------------------------------------------------------------------------

static const char *const bases[] = {"compress.lora_base=int8", "compress.lora_base=int4",
                                    "compress.lora_base=nf4"};
enum { BASES = sizeof bases / sizeof *bases };

static hr_knobs adapted(const hr_preset *preset, const char *device, const char *base, const char *policy)
{
    hr_knobs knobs = knobs_on(preset, device);
    turn(&knobs, "batch.size=2");
    turn(&knobs, "compress.lora=4");
    turn(&knobs, "compress.lora_targets=all");
    turn(&knobs, base);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PRECISION_POLICY, policy, NULL), HR_OK);
    return knobs;
}

START_TEST(adapters_beside_whole_numbers_are_planned_and_learn)
{
    const int policy = _i % POLICIES;
    double got[LOSSES] = {0}, wanted[LOSSES] = {0};
    char why[512] = "";
    uint64_t peak_bytes = 0;
    hr_report report = {0};
    hr_preset *preset = open_model("gpt2_124m_tiny");
    const hr_knobs knobs = adapted(preset, "cuda", bases[_i / POLICIES], policies[policy].policy);
    const hr_knobs judge = adapted(preset, "reference", bases[_i / POLICIES], "float32");
    ck_assert_msg(exactness_of(preset, &knobs, &peak_bytes, why, sizeof why) == EXACTNESS_HOLDS, "%s", why);
    train(preset, &knobs, got, &report);
    hr_report_deinit(&report);
    train(preset, &judge, wanted, &report);
    hr_report_deinit(&report);
    for (int k = 0; k < LOSSES; k++) {
        ck_assert_msg(fabs(got[k] - wanted[k]) <= policies[policy].tolerance * fabs(wanted[k]),
                      "%s, %s: loss %d is %.9g, the reference's %.9g", bases[_i / POLICIES],
                      policies[policy].policy, k + 1, got[k], wanted[k]);
    }
    hr_preset_close(preset);
}
END_TEST

// ---- bits -------------------------------------------------------------------------------------------------------------

static const char *const bits_of[] = {"cifar10_separable_cnn_tiny", "gpt2_124m_tiny", "lstm_lm_medium_tiny"};
enum { BITS_OF = sizeof bits_of / sizeof *bits_of };

START_TEST(memory_is_handled_in_many_ways_and_the_weights_are_the_same)
{
    bits_check(bits_of[_i], (const char *const[]){"device.kind=cuda", "batch.size=2", NULL}, _i,
               HEADROOM_SANITIZED ? 12 : 3);
}
END_TEST

// ---- padded rows ------------------------------------------------------------------------------------------------------

static const char *const padded_ways[][3] = {
    {"execution.inplace=off"},
    {"allocator.kind=static"},
    {"allocator.kind=static", "execution.cuda_graph=on"},
    {"offload.activations=on", "offload.prefetch=0"},
    {"checkpoint.strategy=every:1"},
    {"optimizer.fused_backward=on"},
};
enum { PADDED_WAYS = sizeof padded_ways / sizeof *padded_ways };

static void train_padded(const hr_preset *preset, const char *const *pairs, char sha256[HR_SHA256_TEXT_MAX])
{
    double losses[LOSSES];
    char why[512] = "";
    uint64_t peak_bytes = 0;
    hr_report report = {0};
    hr_knobs knobs = knobs_on(preset, "cuda");
    turn(&knobs, "execution.mode=graph");
    turn(&knobs, "precision.policy=mixed_bfloat16");
    for (; *pairs != NULL; pairs++) {
        turn(&knobs, *pairs);
    }
    ck_assert_msg(exactness_of(preset, &knobs, &peak_bytes, why, sizeof why) == EXACTNESS_HOLDS, "%s", why);
    train(preset, &knobs, losses, &report);
    snprintf(sha256, HR_SHA256_TEXT_MAX, "%s", report.train.weights_sha256);
    hr_report_deinit(&report);
}

START_TEST(padded_rows_are_planned_and_handled_in_many_ways)
{
    char usual[HR_SHA256_TEXT_MAX], other[HR_SHA256_TEXT_MAX];
    hr_preset *preset = open_model(odd_words);
    train_padded(preset, (const char *const[]){NULL}, usual);
    train_padded(preset, padded_ways[_i], other);
    ck_assert_str_eq(usual, other);
    hr_preset_close(preset);
}
END_TEST

// ---- the driver's own pool --------------------------------------------------------------------------------------------

static hr_report report_with(const hr_preset *preset, const char *kind)
{
    double losses[LOSSES];
    hr_report report = {0};
    hr_knobs knobs = knobs_on(preset, "cuda");
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_ALLOCATOR_KIND, kind, NULL), HR_OK);
    train(preset, &knobs, losses, &report);
    return report;
}

// It decides where things lie and how much it holds; what is asked of it, and what comes of that, is the same.
START_TEST(the_drivers_pool_trains_the_same)
{
    hr_preset *preset = open_model("mlp_tiny");
    hr_report own = report_with(preset, "async"), drivers = report_with(preset, "async_driver");
    ck_assert_str_eq(own.train.weights_sha256, drivers.train.weights_sha256);
    ck_assert_uint_eq(own.memory.peak_requested_bytes, drivers.memory.peak_requested_bytes);
    ck_assert_mem_eq(own.memory.at_peak.by_category, drivers.memory.at_peak.by_category,
                     sizeof own.memory.at_peak.by_category);
    ck_assert_uint_gt(drivers.memory.peak_pool_bytes, 0);
    ck_assert_uint_ne(drivers.driver.process_bytes, HR_NONE);
    hr_report_deinit(&own);
    hr_report_deinit(&drivers);
    hr_preset_close(preset);
}
END_TEST

// What is measured is kept in the user's data folder: here one of the tests' own.
static char data_folder[] = "/tmp/cuda_program_XXXXXX";

static void remove_data_folder(void)
{
    char command[sizeof data_folder + 16];
    (void)snprintf(command, sizeof command, "rm -rf %s", data_folder);
    (void)!system(command);
}

int main(void)
{
    card_reach card;
    if (!card_is_emulated(&card)) {
        puts("skipped: libcuda.so.1 is not the emulated card");
        return ALL_DONE;
    }
    hr_preset_search_beside(".");
    if (mkdtemp(data_folder) == NULL || setenv("XDG_DATA_HOME", data_folder, 1) != 0) {
        return EXIT_FAILURE;
    }
    covered = covering_make(1);
    Suite *suite = suite_create("cuda program");
    TCase *tests = tcase_create("whole trainings");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, the_plan_is_the_run_where_nothing_maps, 0, UNMAPPED);
    tcase_add_loop_test(tests, the_plan_is_the_run, 0, GROUPS);
    tcase_add_loop_test(tests, losses_are_those_of_the_reference_device, 0,
                        (HEADROOM_SANITIZED ? 1 : JUDGED) * POLICIES);
    tcase_add_loop_test(tests, adapters_beside_whole_numbers_are_planned_and_learn, 0, BASES * POLICIES);
    tcase_add_loop_test(tests, memory_is_handled_in_many_ways_and_the_weights_are_the_same, 0, BITS_OF);
    tcase_add_loop_test(tests, padded_rows_are_planned_and_handled_in_many_ways, 0, PADDED_WAYS);
    tcase_add_test(tests, the_drivers_pool_trains_the_same);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    covering_deinit(&covered);
    remove_data_folder();
    return failed != 0;
}
