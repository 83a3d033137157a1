// SPDX-License-Identifier: Apache-2.0
// workspace.search on the emulated card, whose engines take what CARD_ENGINE_SECONDS says: what is fastest is taken and kept, the
// next run and the plan without the card take it too, and what keeps an engine from being timed is told.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "program.h"

enum { SETTING_MAX = 1024, WORDS_MAX = 512, PATH_BYTES = 512 };

// Engine 1 with tile 0 needs no workspace, and is not there for every graph; engine 2 adds in any order; 0 and 2 are on tensor cores.
#define TIMES "CARD_ENGINE_SECONDS=0.0:100,0.1:500,1.0:200,1.1:400,2.0:300"
#define CARD  "-s batch.size=1 -s device.kind=cuda -s device.card= -s device.vram=1GiB "
#define MODEL "resnet18_cifar_tiny " CARD // 32 graphs, which take the emulated card two seconds to time
#define SMALL "cifar10_separable_cnn_tiny " CARD // two, for what does not depend on how many
#define ON    "-s workspace.search=on "

static outcome run_with(const char *settings, const char *words)
{
    char all[SETTING_MAX];
    (void)snprintf(all, sizeof all,
                   "LD_LIBRARY_PATH=" CARD_FOLDER "\nASAN_OPTIONS=detect_leaks=0\n" TIMES "\n%s", settings);
    return program_run_with(all, words);
}

static json_t *report_of(const char *settings, const char *words)
{
    outcome o = run_with(settings, words);
    ck_assert_msg(o.exit_code == 0, "%s: exit code %d\n%s%s", settings, o.exit_code, o.out, o.err);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static json_t *step_of(json_t *report, const char *key)
{
    json_t *value = json_object_get(json_object_get(report, "step"), key);
    ck_assert_msg(value != NULL, "step.%s", key);
    return value;
}

static int64_t search_of(json_t *report, const char *key)
{
    return json_integer_value(json_object_get(step_of(report, "search"), key));
}

static int64_t peak_of(json_t *report)
{
    return json_integer_value(json_object_get(json_object_get(report, "memory"), "peak_in_use_bytes"));
}

static double loss_of(json_t *report)
{
    return json_number_value(json_object_get(json_object_get(report, "train"), "loss_last"));
}

// How many instructions `listing` says that an engine computes: "cudnn eng1 k2=1".
static uint32_t computed_by(const char *listing, const char *engine)
{
    uint32_t count = 0;
    for (const char *at = strstr(listing, engine); at != NULL; at = strstr(at + 1, engine)) {
        count++;
    }
    return count;
}

static char *listing_of(const char *settings, const char *knobs)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words, "plan " MODEL "%s --listing", knobs);
    outcome o = run_with(settings, words);
    assert_exit(&o, words, 0);
    char *out = o.out;
    o.out = NULL;
    outcome_deinit(&o);
    return out;
}

static void file_of_times(char path[PATH_BYTES])
{
    (void)snprintf(path, PATH_BYTES,
                   "%s/.local/share/headroom/presets/cards/emulated-card.cudnn-9.19.0.engines.json",
                   program_home());
}

// Each test is a process of its own: who needs times has them measured where nobody has, or somebody forgot them.
static void need_times(void)
{
    char path[PATH_BYTES];
    struct stat info;
    file_of_times(path);
    if (stat(path, &info) != 0) {
        json_decref(report_of("CARD_SEED=1", "run " MODEL ON "--steps 1 --json"));
    }
}

static void forget_times(void)
{
    char path[PATH_BYTES];
    file_of_times(path);
    (void)remove(path);
}

// ---- what is measured -----------------------------------------------------------------------------------------------

START_TEST(the_fastest_is_taken_and_remembered)
{
    const char *words = "run " MODEL ON "--steps 2 --json";
    forget_times();
    json_t *blind = report_of("CARD_SEED=1", "plan " MODEL ON "--json"); // before anything was measured
    json_t *off = report_of("CARD_SEED=1", "plan " MODEL "--json"), *first = report_of("CARD_SEED=1", words),
           *second = report_of("CARD_SEED=1", words),
           *plan = report_of("CARD_SEED=1", "plan " MODEL ON "--json");
    ck_assert(json_is_null(step_of(off, "search")));
    const int64_t known = search_of(first, "graphs_known");
    ck_assert_int_gt(known, 10);
    ck_assert_int_eq(search_of(first, "graphs_measured"), known);
    ck_assert_int_eq(search_of(first, "graphs_unmeasured"), 0);
    ck_assert_int_eq(search_of(second, "graphs_known"), known);
    ck_assert_int_eq(search_of(second, "graphs_measured"), 0);
    ck_assert_int_eq(search_of(plan, "graphs_known"), known);
    ck_assert_int_eq(search_of(plan, "graphs_unmeasured"), 0);
    ck_assert_int_eq(search_of(blind, "graphs_known"), 0);
    ck_assert_int_eq(search_of(blind, "graphs_unmeasured"), known);
    ck_assert(json_is_null(json_object_get(step_of(first, "search"), "refusal")));
    ck_assert_int_eq(json_integer_value(step_of(first, "unplanned")), 0);
    ck_assert_int_eq(json_integer_value(step_of(second, "unplanned")), 0);
    ck_assert_double_eq(loss_of(first), loss_of(second));
    ck_assert_int_eq(peak_of(first), peak_of(second));
    ck_assert_int_eq(peak_of(plan), peak_of(first));
    json_decref(blind);
    json_decref(off);
    json_decref(first);
    json_decref(second);
    json_decref(plan);
}
END_TEST

// Its engines are compiled when a plan is made of them, and q, k and v lie between one another.
START_TEST(attention_is_timed_too)
{
#define ATTENTION "gpt2_124m_tiny -s precision.policy=mixed_bfloat16 " CARD ON
    forget_times();
    json_t *first = report_of("CARD_SEED=1", "run " ATTENTION "--steps 1 --json"),
           *second = report_of("CARD_SEED=1", "run " ATTENTION "--steps 1 --json"),
           *plan = report_of("CARD_SEED=1", "plan " ATTENTION "--json");
    ck_assert_int_eq(search_of(first, "graphs_known"), 2); // both passes, of layers that are alike
    ck_assert_int_eq(search_of(first, "graphs_measured"), 2);
    ck_assert_int_eq(search_of(second, "graphs_measured"), 0);
    ck_assert(json_is_null(json_object_get(step_of(first, "search"), "refusal")));
    ck_assert_int_eq(json_integer_value(step_of(second, "unplanned")), 0);
    ck_assert_double_eq(loss_of(first), loss_of(second));
    ck_assert_int_eq(peak_of(plan), peak_of(first));
    forget_times();
    json_decref(first);
    json_decref(second);
    json_decref(plan);
}
END_TEST

// `first` is the heuristics' first for most of them, `fastest` begins the name of what TIMES has before it.
static const struct {
    const char *knobs, *first, *fastest;
} choices[] = {
    {"-s precision.tf32=on -s execution.deterministic=off ", "cudnn eng2", "cudnn eng0"},
    {"-s precision.tf32=on -s execution.deterministic=on ", "cudnn eng0 k2=1", "cudnn eng0"},
    {"-s precision.tf32=off -s execution.deterministic=on ", "cudnn eng1 k2=1", "cudnn eng1"},
};

enum { CHOICES = sizeof choices / sizeof *choices };

START_TEST(knobs_choose_from_what_was_measured)
{
    need_times();
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words, ON "%s", choices[_i].knobs);
    char *off = listing_of("CARD_SEED=1", choices[_i].knobs), *on = listing_of("CARD_SEED=1", words);
    const uint32_t convolutions = computed_by(off, "cudnn eng"), first = computed_by(off, choices[_i].first);
    ck_assert_uint_gt(first, convolutions / 4);
    ck_assert_uint_eq(computed_by(on, "cudnn eng"), convolutions);
    ck_assert_uint_lt(computed_by(on, choices[_i].first), first / 2);
    ck_assert_uint_gt(computed_by(on, choices[_i].fastest), convolutions / 2);
    free(off);
    free(on);
}
END_TEST

START_TEST(the_limit_chooses_from_what_was_measured)
{
    need_times();
    char *all = listing_of("CARD_SEED=1", ON "-s precision.tf32=on "),
         *none = listing_of("CARD_SEED=1", ON "-s precision.tf32=on -s workspace.limit=0B ");
    ck_assert_uint_gt(computed_by(all, "cudnn eng0"), 0); // it needs workspace
    ck_assert_uint_eq(computed_by(none, "cudnn eng0"), 0);
    ck_assert_uint_gt(computed_by(none, "cudnn eng1"), 0);
    free(all);
    free(none);
}
END_TEST

// ---- what cannot be -------------------------------------------------------------------------------------------------

static void expect_told(const char *settings, int64_t unmeasured, const char *refusal)
{
    forget_times();
    json_t *report = report_of(settings, "run " SMALL ON "--steps 1 --json");
    const char *told = json_string_value(json_object_get(step_of(report, "search"), "refusal"));
    ck_assert_int_eq(search_of(report, "graphs_unmeasured"), unmeasured);
    ck_assert_msg(told != NULL && strstr(told, refusal) != NULL, "%s", told == NULL ? "nothing" : told);
    ck_assert_int_eq(json_integer_value(step_of(report, "unplanned")), 0);
    json_decref(report);
}

START_TEST(a_convolution_that_has_no_memory_is_told_and_computed)
{
    expect_told("CARD_FAIL=cuMemAlloc_v2:2:2", 1, "cuMemAlloc_v2");
}
END_TEST

// The fifth memory is the first workspace: what the others took orders this run, and the next one times all of them again.
START_TEST(an_engine_that_has_no_memory_is_timed_by_the_next_run)
{
    expect_told("CARD_FAIL=cuMemAlloc_v2:5:2", 0, "cuMemAlloc_v2");
    json_t *next = report_of("CARD_SEED=1", "run " SMALL ON "--steps 1 --json"),
           *last = report_of("CARD_SEED=1", "run " SMALL ON "--steps 1 --json");
    ck_assert_int_eq(search_of(next, "graphs_measured"), 1);
    ck_assert(json_is_null(json_object_get(step_of(next, "search"), "refusal")));
    ck_assert_int_eq(search_of(last, "graphs_measured"), 0);
    json_decref(next);
    json_decref(last);
}
END_TEST

START_TEST(times_that_cannot_be_kept_are_told)
{
    expect_told("XDG_DATA_HOME=/dev/null", 0, "/dev/null");
}
END_TEST

START_TEST(a_damaged_file_is_refused_and_left_alone)
{
    char path[PATH_BYTES], words[] = "run " SMALL ON "--steps 1";
    file_of_times(path);
    json_decref(report_of("CARD_SEED=1", "run " SMALL ON "--steps 1 --json"));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("{}", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    outcome o = run_with("CARD_SEED=1", words);
    ck_assert_int_ne(o.exit_code, 0);
    ck_assert_ptr_nonnull(strstr(o.err, path));
    ck_assert_ptr_nonnull(strstr(o.err, "workspace.search=off"));
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(info.st_size, 2);
    outcome_deinit(&o);
    forget_times();
}
END_TEST

START_TEST(people_read_it_too)
{
    forget_times();
    outcome o = run_with("CARD_SEED=1", "run " SMALL ON "--steps 1");
    assert_exit(&o, "run", 0);
    ck_assert_msg(strstr(o.out, "measured times of") != NULL && strstr(o.out, "timed now") != NULL, "%s",
                  o.out);
    outcome_deinit(&o);
}
END_TEST

static void one_home_for_all(void)
{
    (void)program_home();
}

int main(void)
{
    Suite *suite = suite_create("cuda_search");
    TCase *c = tcase_create("cuda_search");
    tcase_set_timeout(c, 240);
    tcase_add_unchecked_fixture(c, one_home_for_all, program_remove_home);
    tcase_add_test(c, the_fastest_is_taken_and_remembered);
    tcase_add_loop_test(c, knobs_choose_from_what_was_measured, 0, HEADROOM_SANITIZED ? 1 : CHOICES);
    tcase_add_test(c, the_limit_chooses_from_what_was_measured);
    tcase_add_test(c, attention_is_timed_too); // forgets the times of the others
    tcase_add_test(c, a_convolution_that_has_no_memory_is_told_and_computed);
    tcase_add_test(c, an_engine_that_has_no_memory_is_timed_by_the_next_run);
    tcase_add_test(c, times_that_cannot_be_kept_are_told);
    tcase_add_test(c, a_damaged_file_is_refused_and_left_alone);
    tcase_add_test(c, people_read_it_too);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
