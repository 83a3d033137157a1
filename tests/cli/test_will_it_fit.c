// SPDX-License-Identifier: Apache-2.0
// `cards --fit` and the first lines of a plan: what they say of a card is what a plan on that card says.
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "program.h"

static json_t *json_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}

static char *text_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    char *text = strdup(o.out);
    outcome_deinit(&o);
    return text;
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s", key);
    return json_integer_value(value);
}

static bool plan_fits(const char *subject, const char *card, json_int_t batch)
{
    char words[256];
    (void)snprintf(words, sizeof words, "plan %s -s device.card=%s -s batch.size=%lld --json", subject, card,
                   (long long)batch);
    outcome o = program_run(words);
    const int exit_code = o.exit_code;
    ck_assert_msg(exit_code == 0 || exit_code == 1, "%s: %s", words, o.err);
    outcome_deinit(&o);
    return exit_code == 0;
}

// ---- cards --fit ----------------------------------------------------------------------------------------------

static const char *const subjects[] = {"resnet50 -s batch.size=64", "mlp -s optimizer.kind=sgd", "demo"};

static void assert_is_planned(const json_t *row, const char *subject)
{
    char words[256];
    const char *card = json_string_value(json_object_get(row, "name"));
    const json_int_t batch = number(row, "largest_batch"), missing_bytes = number(row, "missing_bytes");
    const bool fits = json_is_true(json_object_get(row, "fits"));
    (void)snprintf(words, sizeof words, "plan %s -s device.card=%s --json", subject, card);
    json_t *report = json_of(words, fits ? 0 : 1);
    const json_t *memory = json_object_get(report, "memory");
    ck_assert(fits ? missing_bytes == 0 : missing_bytes > 0);
    ck_assert(!fits || number(row, "peak_in_use_bytes") == number(memory, "peak_in_use_bytes"));
    json_decref(report);
    ck_assert(batch == 0 || plan_fits(subject, card, batch));
    ck_assert(!plan_fits(subject, card, batch + 1));
}

START_TEST(a_row_is_the_plan_on_that_card)
{
    char words[160], planned[160];
    (void)snprintf(words, sizeof words, "cards --fit %s --family turing --json", subjects[_i]);
    (void)snprintf(planned, sizeof planned, "%s -s device.kind=plan -s device.vram=none", subjects[_i]);
    json_t *rows = json_of(words, 0);
    ck_assert_uint_ge(json_array_size(rows), 4);
    for (size_t k = 0; k < json_array_size(rows); k += 3) {
        assert_is_planned(json_array_get(rows, k), planned);
    }
    json_decref(rows);
}
END_TEST

START_TEST(every_field_is_a_term)
{
    json_t *rows = json_of("cards --fit demo --min-vram 80GiB --json", 0);
    const char *key;
    json_t *member;
    json_object_foreach(json_array_get(rows, 0), key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "no term explains the field '%s'", key);
    }
    json_decref(rows);
}
END_TEST

// A recorded step of 23 GB: each row is what the plan of the trace says on that card.
START_TEST(a_row_of_a_trace_is_its_replay_on_that_card)
{
    char path[128], words[256];
    size_t fitting = 0;
    (void)snprintf(path, sizeof path, "%s/large.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("Thread,Time,Action,Pointer,Size,Stream\n"
                           "1,10:00:00:000001,allocate,0x1000,13000000000,0\n"
                           "1,10:00:00:000002,allocate,0x2000,10000000000,0\n",
                           file),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    (void)snprintf(words, sizeof words, "cards --fit %s --family ampere --json", path);
    json_t *rows = json_of(words, 0);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const bool fits = json_is_true(json_object_get(row, "fits"));
        (void)snprintf(words, sizeof words, "plan %s -s device.card=%s --json", path,
                       json_string_value(json_object_get(row, "name")));
        json_t *plan = json_of(words, fits ? 0 : 1);
        const json_t *memory =
            json_object_get(json_array_get(json_object_get(plan, "allocators"), 0), "memory");
        ck_assert_int_eq(number(row, "limit_bytes"), number(memory, "limit_bytes"));
        ck_assert(!fits || number(row, "peak_in_use_bytes") == number(memory, "peak_in_use_bytes"));
        ck_assert_int_eq(number(row, "missing_bytes"),
                         fits ? 0 : number(row, "peak_in_use_bytes") - number(row, "limit_bytes"));
        fitting += fits;
        json_decref(plan);
    }
    ck_assert(fitting > 0 && fitting < json_array_size(rows));
    json_decref(rows);
    (void)snprintf(words, sizeof words, "cards --fit %s --family turing", path);
    char *none = text_of(words, 1);
    ck_assert_msg(strstr(none, " on bfc fits 0 of ") != NULL, "%s", none);
    free(none);
}
END_TEST

static void write_trace(char path[128], const char *rows)
{
    (void)snprintf(path, 128, "%s/small.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fprintf(file, "Thread,Time,Action,Pointer,Size,Stream\n%s", rows), 0);
    ck_assert_int_eq(fclose(file), 0);
}

// No number stands for one that there is not.
START_TEST(a_trace_without_requests_is_not_planned)
{
    static const char *const commands[] = {"plan", "cards --fit", "cards --json --fit"};
    static const char *const traces[] = {"", "1,10:00:00:000001,free,0x1000,100,0\n"};
    for (size_t k = 0; k < 6; k++) {
        char path[128], words[256];
        write_trace(path, traces[k % 2]);
        (void)snprintf(words, sizeof words, "%s %s", commands[k / 2], path);
        outcome o = program_run(words);
        assert_exit(&o, words, 2);
        ck_assert_msg(strstr(o.err, "needed requests for memory to plan, had none") != NULL, "%s", o.err);
        outcome_deinit(&o);
    }
}
END_TEST

// More than any allocator serves: what lives at once is what it needs.
START_TEST(a_trace_that_nothing_serves_needs_what_it_asks_for)
{
    char path[128], words[256];
    write_trace(path, "1,10:00:00:000001,allocate,0x1000,9000000000000000000,0\n");
    (void)snprintf(words, sizeof words, "cards --fit %s --family turing --json", path);
    json_t *rows = json_of(words, 1);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        ck_assert_int_eq(number(json_array_get(rows, k), "peak_in_use_bytes"), 9000000000000000000);
        ck_assert(json_is_false(json_object_get(json_array_get(rows, k), "fits")));
    }
    ck_assert_uint_gt(json_array_size(rows), 0);
    json_decref(rows);
}
END_TEST

// A share of each card; the one without an end has none.
START_TEST(a_trace_fits_shares_of_cards)
{
    char path[128], words[256], line[256];
    write_trace(path, "1,10:00:00:000001,allocate,0x1000,8000000000,0\n");
    (void)snprintf(words, sizeof words, "cards --fit %s -s allocator.fraction=0.3 --json", path);
    json_t *rows = json_of(words, 0);
    size_t fitting = 0;
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const bool fits = json_is_true(json_object_get(row, "fits"));
        ck_assert(json_is_null(json_object_get(row, "limit_bytes")) ||
                  fits == (number(row, "limit_bytes") >= 8000000000));
        fitting += fits;
    }
    ck_assert(fitting > 0 && fitting < json_array_size(rows));
    json_decref(rows);
    (void)snprintf(words, sizeof words, "cards --fit %s -s allocator.fraction=0.3", path);
    char *said = text_of(words, 0);
    (void)snprintf(line, sizeof line, "headroom plan TRACE -s device.card=NAME -s allocator.fraction=0.3\n");
    ck_assert_msg(strstr(said, line) != NULL, "%s", said);
    free(said);
}
END_TEST

START_TEST(a_trace_fits_under_one_allocator)
{
    char path[128], words[256];
    write_trace(path, "1,10:00:00:000001,allocate,0x1000,1000,0\n");
    (void)snprintf(words, sizeof words, "cards --fit %s -s allocator.kind=bfc,caching", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, "is about one allocator, had 2") != NULL &&
                      strstr(o.err, "-s allocator.kind=bfc\n") != NULL,
                  "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_exit_code_says_whether_any_card_holds_it)
{
    char *none = text_of("cards --fit gpt2_1558m --family turing", 1);
    ck_assert_msg(strstr(none, "gpt2_1558m at batch.size=") == none && strstr(none, "fits 0 of ") != NULL,
                  "%s", none);
    free(none);
    char *some = text_of("cards --fit mlp --family turing -r", 0);
    for (const char *line = some; *line != '\0'; line += strcspn(line, "\n") + 1) {
        ck_assert_msg(strcspn(line, "\n") <= 84, "%s", line);
    }
    free(some);
}
END_TEST

// The host is the same on every card.
START_TEST(what_the_host_lacks_fits_nowhere)
{
    json_t *rows = json_of("cards --fit demo -s pipeline.ram_limit=1MiB --min-vram 80GiB --json", 1);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        ck_assert(json_is_false(json_object_get(row, "fits")));
        ck_assert_int_gt(number(row, "missing_bytes"), 0);
        ck_assert_int_lt(number(row, "largest_batch"), 128);
    }
    json_decref(rows);
}
END_TEST

START_TEST(what_does_not_go_together_is_said)
{
    static const struct {
        const char *words, *says, *hint;
    } rows[] = {
        {"cards rtx3060-12g --fit demo", "--fit is about many cards",
         "headroom plan demo -s device.card=rtx3060-12g"},
        {"cards -s batch.size=3", "about the preset of --fit", "headroom cards --fit demo"},
        {"cards --fit nosuch", "no preset is called 'nosuch'", "headroom presets"},
        {"cards --fit demo -s device.vram=4GiB", "--fit takes every card as it is", "headroom plan demo"},
        {"cards --fit demo -s batch.size=0", "batch.size", "-s batch.size"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        outcome o = program_run(rows[k].words);
        assert_exit(&o, rows[k].words, 2);
        ck_assert_msg(strstr(o.err, rows[k].says) != NULL && strstr(o.err, rows[k].hint) != NULL, "%s",
                      o.err);
        outcome_deinit(&o);
    }
}
END_TEST

// ---- the answer of a plan -------------------------------------------------------------------------------------

START_TEST(a_plan_begins_with_the_answer)
{
    static const struct {
        const char *words;
        int exit_code;
        const char *begins, *has;
    } rows[] = {
        {"plan resnet50 -s device.kind=plan -s device.card=rtx4090-24g -s batch.size=64", 0,
         "fits: ", "\n  the largest batch.size that fits is 189\n"},
        {"plan resnet50 -s device.kind=plan -s device.card=rtx4090-24g", 1,
         "does not fit: ", "\n  the largest batch.size that fits is 189\n"},
        {"plan resnet50 -s device.kind=plan -s device.card=unlimited", 0,
         "no limit: ", "\n  the smallest card that holds it is "},
        {"plan gpt2_1558m -s device.kind=plan -s device.card=rtx3060-8g", 1,
         "does not fit: ", "\n  not even batch.size=1 fits\n"},
        {"plan mlp_tiny -s device.kind=plan -s device.vram=347680B -s execution.retain=predictions --steps "
         "500",
         1, "does not fit: fragmentation: ", "\n\nmlp_tiny: batch 32"},
        {"plan demo -s device.kind=plan -s pipeline.ram_limit=1MiB", 1, "does not fit: the host would hold ",
         " more than pipeline.ram_limit\n"},
        {"plan resnet50 -s execution.mode=graph -s checkpoint.strategy=budget:6GiB", 0, "fits: ",
         "\n  headroom fit resnet50 --max batch.size -s execution.mode=graph -s "
         "checkpoint.strategy=budget:6GiB\n"},
    };
    char *text = text_of(rows[_i].words, rows[_i].exit_code);
    ck_assert_msg(strncmp(text, rows[_i].begins, strlen(rows[_i].begins)) == 0, "%s", text);
    ck_assert_msg(strstr(text, rows[_i].has) != NULL, "%s", text);
    free(text);
}
END_TEST

// The sequence that is named fits, and the next one does not.
START_TEST(the_longest_sequence_is_the_longest)
{
    static const char line[] = "\n  the longest model.sequence that fits is ";
    const char *of = "plan qwen3_0_6b -s device.card=rtx4090-24g";
    char *text = text_of(of, 0), words[160];
    ck_assert_msg(strstr(text, line) != NULL, "%s", text);
    const unsigned long longest = strtoul(strstr(text, line) + sizeof line - 1, NULL, 10);
    ck_assert_uint_gt(longest, 4096);
    for (unsigned long k = 0; k < 2; k++) {
        (void)snprintf(words, sizeof words, "%s -s model.sequence=%lu", of, longest + k);
        free(text_of(words, (int)k));
    }
    free(text);
    static const char *const none[] = {"resnet50 -s batch.size=8",
                                       "bert_base"}; // without a sequence; with 512 positions
    for (size_t k = 0; k < 2; k++) {
        (void)snprintf(words, sizeof words, "plan %s -s device.card=rtx4090-24g", none[k]);
        text = text_of(words, 0);
        ck_assert_msg(strstr(text, "model.sequence") == NULL, "%s", text);
        free(text);
    }
}
END_TEST

// What a smaller card would need is typed as it stands, and fits.
START_TEST(what_a_smaller_card_needs_makes_it_fit)
{
    static const char needs[] = " GiB it would need ";
    char *text = text_of("plan resnet50 -s device.kind=plan -s device.card=rtx4090-24g -s batch.size=64", 0);
    const char *line = strstr(text, "\n  on a card of ");
    ck_assert_msg(line != NULL, "%s", text);
    const unsigned long gib = strtoul(line + strlen("\n  on a card of "), NULL, 10);
    const char *pair = strstr(line, needs) + strlen(needs);
    char words[256];
    (void)snprintf(
        words, sizeof words,
        "plan resnet50 -s device.kind=plan -s device.card=rtx4090-24g,vram=%luGiB -s batch.size=64", gib);
    free(text_of(words, 1));
    (void)snprintf(words + strlen(words), sizeof words - strlen(words), " -s %.*s", (int)strcspn(pair, " \n"),
                   pair);
    char *fits = text_of(words, 0);
    ck_assert_int_eq(strncmp(fits, "fits: ", 6), 0);
    free(fits);
    free(text);
}
END_TEST

// Libraries of NVIDIA's keep what they have made of their own.
static outcome planned_as(const char *words)
{
    outcome o = program_run_with("ASAN_OPTIONS=detect_leaks=0", words);
    assert_exit(&o, words, 0);
    return o;
}

static double seconds_of(const char *words)
{
    char all[512];
    (void)snprintf(all, sizeof all, "%s --json", words);
    outcome o = planned_as(all);
    json_t *report = assert_json(&o, all);
    const json_t *seconds = json_object_get(json_object_get(report, "step"), "seconds");
    ck_assert(json_is_real(seconds));
    const double value = json_real_value(seconds);
    json_decref(report);
    outcome_deinit(&o);
    return value;
}

// "execution.mode=graph batch.size=4 (a step takes 3 % less)": its pairs as options behind `words`. Returns the share that
// is said, 0 where none is.
static double take_needs(const char *needs, char *words, size_t size)
{
    static const char takes[] = "(a step takes ";
    while (*needs != '(' && *needs != '\n' && *needs != '\0') {
        const size_t length = strcspn(needs, " \n");
        const size_t used = strlen(words);
        (void)snprintf(words + used, size - used, " -s %.*s", (int)length, needs);
        needs += length + (needs[length] == ' ' ? 1 : 0);
    }
    if (strncmp(needs, takes, sizeof takes - 1) != 0) {
        return 0;
    }
    char *rest;
    const double percent = strtod(needs + sizeof takes - 1, &rest);
    ck_assert_msg(strncmp(rest, " % less)", 8) == 0 || strncmp(rest, " % more)", 8) == 0, "%s", needs);
    return (rest[3] == 'l' ? -percent : percent) / 100;
}

// A smaller card of the same kind is asked for the same implementations, so that nothing but what is turned tells.
START_TEST(what_a_smaller_card_needs_takes_as_long_as_is_said)
{
    static const char *const kinds[] = {"plan", "cuda"};
    static const char needs[] = " GiB it would need ";
    char words[512];
    (void)snprintf(words, sizeof words,
                   "plan resnet18 -s device.kind=%s -s device.card=h100-80g -s batch.size=64", kinds[_i]);
    outcome o = planned_as(words);
    const char *line = strstr(o.out, needs);
    ck_assert_msg(line != NULL, "%s", o.out);
    const double before = seconds_of(words);
    const double said = take_needs(line + sizeof needs - 1, words, sizeof words);
    const double more = seconds_of(words) / before - 1;
    ck_assert_msg(fabs(said - more) <= 0.0051, "%s: said %g, takes %g more", words, said, more);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("will it fit");
    TCase *c = tcase_create("will it fit");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, a_row_is_the_plan_on_that_card, 0, 3);
    tcase_add_test(c, every_field_is_a_term);
    tcase_add_test(c, a_row_of_a_trace_is_its_replay_on_that_card);
    tcase_add_test(c, a_trace_without_requests_is_not_planned);
    tcase_add_test(c, a_trace_that_nothing_serves_needs_what_it_asks_for);
    tcase_add_test(c, a_trace_fits_shares_of_cards);
    tcase_add_test(c, a_trace_fits_under_one_allocator);
    tcase_add_test(c, the_exit_code_says_whether_any_card_holds_it);
    tcase_add_test(c, what_the_host_lacks_fits_nowhere);
    tcase_add_test(c, what_does_not_go_together_is_said);
    tcase_add_loop_test(c, a_plan_begins_with_the_answer, 0, 7);
    tcase_add_test(c, what_a_smaller_card_needs_makes_it_fit);
    tcase_add_loop_test(c, what_a_smaller_card_needs_takes_as_long_as_is_said, 0, HEADROOM_HAVE_CUDA ? 2 : 1);
    tcase_add_test(c, the_longest_sequence_is_the_longest);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
