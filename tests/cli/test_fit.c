// SPDX-License-Identifier: Apache-2.0
// `headroom fit`: what it answers is what a plan says, and what a run then holds.
#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "program.h"

enum { WORDS_MAX = 1024 };

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s", key);
    return json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_string(value), "%s", key);
    return json_string_value(value);
}

// A point's pairs with blanks between them, for the next call to overwrite.
static const char *pairs_of(const json_t *point)
{
    static char pairs[512];
    const json_t *pair;
    size_t k, used = 0;
    pairs[0] = '\0';
    json_array_foreach(json_object_get(point, "knobs"), k, pair)
    {
        used += (size_t)snprintf(pairs + used, sizeof pairs - used, "%s%s", k > 0 ? " " : "",
                                 json_string_value(pair));
        ck_assert_uint_lt(used, sizeof pairs);
    }
    return pairs;
}

static json_t *json_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}

// "-s key=value" for each of the pairs, behind what is in `words`.
static void add_pairs(char words[WORDS_MAX], const char *pairs)
{
    size_t used = strlen(words);
    while (*pairs != '\0') {
        const size_t length = strcspn(pairs, " ");
        used += (size_t)snprintf(words + used, WORDS_MAX - used, " -s %.*s", (int)length, pairs);
        ck_assert_uint_lt(used, WORDS_MAX);
        pairs += length + (pairs[length] == ' ');
    }
}

static json_int_t peak_of(const char *command, const char *subject, const char *pairs, int exit_code)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words, "%s %s", command, subject);
    add_pairs(words, pairs);
    json_t *report = json_of(words, exit_code);
    const json_int_t peak = number(json_object_get(report, "memory"), "peak_in_use_bytes");
    json_decref(report);
    return peak;
}

// ---- the answer -----------------------------------------------------------------------------------------------

static const struct {
    const char *fit, *subject; // the question, and the same knobs for a plan
} cases[] = {
    {"fit demo --card rtx3070-8g --vram 40MiB --json",
     "demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=40MiB"},
    {"fit resnet50_tiny --card rtx3070-8g --vram 12MiB --keep precision,optimizer.kind --json",
     "resnet50_tiny -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=12MiB"},
    {"fit gpt2_124m_tiny --card t4-16g --vram 3MiB -s batch.size=8 --json",
     "gpt2_124m_tiny -s device.kind=plan -s device.card=t4-16g -s device.vram=3MiB -s batch.size=8"},
};

static void assert_point_is_planned(const json_t *point, const char *subject)
{
    if (json_is_true(json_object_get(point, "fits"))) {
        const json_int_t peak = peak_of("plan --json", subject, pairs_of(point), 0);
        ck_assert_int_eq(number(point, "peak_in_use_bytes"), peak);
        ck_assert_int_eq(number(point, "missing_bytes"), 0);
    } else {
        ck_assert_int_gt(number(point, "missing_bytes"), 0);
        char words[WORDS_MAX];
        (void)snprintf(words, sizeof words, "plan %s", subject);
        add_pairs(words, pairs_of(point));
        outcome o = program_run(words);
        assert_exit(&o, words, 1);
        outcome_deinit(&o);
    }
}

// Neither needs less and is as fast, of what is said to be on the frontier and fits.
static void assert_is_frontier(const json_t *points)
{
    const json_t *one, *other;
    size_t i, j;
    json_array_foreach(points, i, one)
    {
        json_array_foreach(points, j, other)
        {
            const bool both = json_is_true(json_object_get(one, "frontier")) &&
                              json_is_true(json_object_get(one, "fits")) &&
                              json_is_true(json_object_get(other, "fits"));
            const double slower = json_number_value(json_object_get(one, "step_seconds")) -
                                  json_number_value(json_object_get(other, "step_seconds"));
            ck_assert(!both || slower <= 0 ||
                      number(one, "peak_in_use_bytes") < number(other, "peak_in_use_bytes"));
        }
    }
}

START_TEST(every_point_is_a_plan_and_the_fastest_is_the_fastest)
{
    json_t *document = json_of(cases[_i].fit, 0);
    const json_t *points = json_object_get(document, "points"), *point;
    const json_t *fastest = json_object_get(document, "fastest");
    size_t k;
    json_array_foreach(points, k, point)
    {
        if (k % 37 == 0) {
            assert_point_is_planned(point, cases[_i].subject);
        }
        ck_assert(!json_is_true(json_object_get(point, "fits")) ||
                  json_number_value(json_object_get(fastest, "step_seconds")) <=
                      json_number_value(json_object_get(point, "step_seconds")));
    }
    assert_point_is_planned(fastest, cases[_i].subject);
    assert_point_is_planned(json_object_get(document, "fastest_same"), cases[_i].subject);
    ck_assert(json_is_null(json_object_get(json_object_get(document, "fastest_same"), "changes")));
    assert_is_frontier(points);
    json_decref(document);
}
END_TEST

// Where nothing was measured and no card is named, too: by an estimate that says what it is.
static const struct {
    const char *fit, *basis;
} unmeasured[] = {
    {"fit mlp -s device.kind=reference --json", "usual_loops"},
    {"fit mlp -s device.kind=plan --json", "usual_card"},
    {"fit mlp -s device.kind=plan --card rtx3070-8g --json", "datasheet"},
};

START_TEST(a_time_that_nobody_measured_is_estimated_and_the_fastest_is_first)
{
    json_t *document = json_of(unmeasured[_i].fit, 0);
    const json_t *point, *fastest = json_object_get(document, "fastest");
    const double least = json_number_value(json_object_get(fastest, "step_seconds"));
    size_t k;
    ck_assert_double_gt(least, 0);
    json_array_foreach(json_object_get(document, "points"), k, point)
    {
        ck_assert_str_eq(text(point, "step_seconds_basis"), unmeasured[_i].basis);
        ck_assert(!json_is_true(json_object_get(point, "fits")) ||
                  json_number_value(json_object_get(point, "step_seconds")) >= least);
    }
    json_decref(document);
}
END_TEST

// A search of some ten seconds; what it had found is the answer.
START_TEST(an_interruption_prints_what_was_found)
{
    static const char words[] = "fit gpt2_124m --card rtx3060-12g --json";
    outcome o = program_interrupt_after(words, 2, SIGINT);
    assert_exit(&o, words, 130);
    if (o.out[0] != '\0') { // otherwise it came before the first plan
        json_t *document = assert_json(&o, words);
        ck_assert(json_is_true(json_object_get(document, "interrupted")));
        ck_assert_uint_ge(json_array_size(json_object_get(document, "points")), 1);
        json_decref(document);
    }
    outcome_deinit(&o);
}
END_TEST

// A search of a minute and more: what nobody has tried is not said to be impossible.
START_TEST(an_interruption_claims_nothing_of_what_was_not_tried)
{
    static const char cards[] = "fit gpt2_355m --cards --json";
    static const char largest[] = "fit gpt2_355m --max batch.size --card gtx1650-4g";
    outcome o = program_interrupt_after(cards, 1, SIGINT);
    assert_exit(&o, cards, 130);
    json_t *document = o.out[0] != '\0' ? assert_json(&o, cards) : NULL, *card;
    size_t k;
    json_array_foreach(json_object_get(document, "cards"), k, card)
    {
        ck_assert_msg(!json_is_false(json_object_get(card, "fits")), "%s", text(card, "name"));
    }
    json_decref(document);
    outcome_deinit(&o);
    o = program_interrupt_after(largest, 1, SIGINT);
    assert_exit(&o, largest, 130);
    ck_assert_msg(strstr(o.out, "not even") == NULL, "%s", o.out);
    ck_assert_msg(o.out[0] == '\0' || strstr(o.out, "the search was cut short") != NULL, "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_is_kept_is_turned_nowhere)
{
    json_t *document =
        json_of("fit demo --card rtx3070-8g --keep batch,precision,execution.mode,optimizer --json", 0);
    const json_t *points = json_object_get(document, "points"), *point;
    size_t k;
    ck_assert_uint_gt(json_array_size(points), 10);
    json_array_foreach(points, k, point)
    {
        static const char *const kept[] = {"batch.", "precision.", "execution.mode", "optimizer."};
        for (size_t j = 0; j < sizeof kept / sizeof *kept; j++) {
            const char *at = strstr(pairs_of(point), kept[j]);
            ck_assert_msg(at == NULL || (at != pairs_of(point) && at[-1] != ' '), "%s", pairs_of(point));
        }
        ck_assert(json_is_null(json_object_get(point, "changes")));
    }
    json_decref(document);
}
END_TEST

// On the processor: what a run holds is what was answered.
START_TEST(an_answer_that_is_run_holds_what_was_planned)
{
    static const char *const limits[] = {"24MiB", "40MiB", "64MiB"};
    char words[WORDS_MAX], subject[WORDS_MAX];
    (void)snprintf(words, sizeof words, "fit demo --vram %s --json", limits[_i]);
    (void)snprintf(subject, sizeof subject, "demo -s device.vram=%s", limits[_i]);
    json_t *document = json_of(words, 0);
    static const char *const answers[] = {"fastest", "fastest_same"};
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        const json_t *answer = json_object_get(document, answers[k]);
        const json_int_t peak = peak_of("run --steps 2 --json", subject, pairs_of(answer), 0);
        ck_assert_int_eq(number(answer, "peak_in_use_bytes"), peak);
    }
    json_decref(document);
}
END_TEST

START_TEST(what_cannot_fit_ends_with_1_and_says_the_least)
{
    const char *words = "fit demo --vram 1MiB";
    outcome o = program_run(words);
    assert_exit(&o, words, 1);
    ck_assert_ptr_nonnull(strstr(o.out, "nothing that was planned fits; the nearest lacks "));
    outcome_deinit(&o);
    words = "fit demo --vram 1MiB --max batch.size";
    o = program_run(words);
    assert_exit(&o, words, 1);
    ck_assert_ptr_nonnull(strstr(o.out, "the nearest lacks "));
    ck_assert_ptr_nonnull(strstr(o.out, "try: headroom fit demo --cards, or a smaller model"));
    outcome_deinit(&o);
    json_t *document = json_of("fit demo --vram 1MiB --json", 1);
    ck_assert(json_is_null(json_object_get(document, "fastest")));
    json_decref(document);
}
END_TEST

// ---- how large, on which card ---------------------------------------------------------------------------------

START_TEST(the_largest_of_a_way_fits_and_one_more_does_not)
{
    static const struct {
        const char *fit, *subject, *key;
    } rows[] = {
        {"fit demo --card rtx3070-8g --vram 64MiB --max batch.size --json",
         "demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=64MiB", "batch.size"},
        {"fit gpt2_124m_tiny --card rtx3070-8g --vram 6MiB --max model.sequence --json",
         "gpt2_124m_tiny -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=6MiB",
         "model.sequence"},
    };
    json_t *document = json_of(rows[_i].fit, 0);
    const json_t *points = json_object_get(document, "points"), *point;
    json_int_t last = INT64_MAX;
    size_t k;
    ck_assert_str_eq(text(document, "knob"), rows[_i].key);
    json_array_foreach(points, k, point)
    {
        char pairs[WORDS_MAX];
        const json_int_t largest = number(point, "largest");
        ck_assert_int_le(largest, last);
        last = largest;
        ck_assert_ptr_null(strstr(pairs_of(point), rows[_i].key));
        if (k < 3 && largest > 0) {
            (void)snprintf(pairs, sizeof pairs, "%s %s=%lld", pairs_of(point), rows[_i].key,
                           (long long)largest);
            const json_int_t peak = peak_of("plan --json", rows[_i].subject, pairs + (*pairs == ' '), 0);
            ck_assert_int_eq(number(point, "peak_in_use_bytes"), peak);
            (void)snprintf(pairs, sizeof pairs, "%s %s=%lld", pairs_of(point), rows[_i].key,
                           (long long)largest + 1);
            outcome o;
            char words[WORDS_MAX];
            (void)snprintf(words, sizeof words, "plan %s", rows[_i].subject);
            add_pairs(words, pairs + (*pairs == ' '));
            o = program_run(words);
            ck_assert_int_ne(o.exit_code, 0); // no room, or no such size
            outcome_deinit(&o);
        }
    }
    json_decref(document);
}
END_TEST

// Each command below the table plans what fits, under the knob that was asked about.
// On a card the caching allocator may take more than the one that is asked about.
START_TEST(the_limit_that_is_named_is_the_largests)
{
    json_t *document = json_of(
        "fit mlp_tiny --card rtx3070-8g --max batch.size --keep precision,optimizer,offload --json", 0);
    json_t *asked =
        json_of("plan mlp_tiny -s device.kind=plan -s device.card=rtx3070-8g -s device.vram= --json", 0);
    const json_t *largest = json_array_get(json_object_get(document, "points"), 0);
    ck_assert_str_eq(pairs_of(largest), "execution.mode=graph allocator.kind=caching");
    ck_assert_int_eq(number(document, "limit_bytes"), number(largest, "limit_bytes"));
    ck_assert_int_gt(number(document, "limit_bytes"),
                     number(json_object_get(asked, "memory"), "limit_bytes"));
    json_decref(asked);
    json_decref(document);
}
END_TEST

START_TEST(the_largest_is_a_command)
{
    static const char *const words[] = {
        "fit demo --card rtx3070-8g --vram 48MiB --max batch.size",
        "fit gpt2_124m_tiny --card rtx3070-8g --vram 3MiB --keep batch,precision --max model.sequence"};
    outcome o = program_run(words[_i]);
    int commands = 0;
    assert_exit(&o, words[_i], 0);
    for (const char *at = strstr(o.out, "\n  headroom "); at != NULL; at = strstr(at + 1, "\n  headroom ")) {
        char command[WORDS_MAX];
        at += strlen("\n  headroom ");
        (void)snprintf(command, sizeof command, "%.*s", (int)strcspn(at, "\n"), at);
        ck_assert_msg(strstr(command, _i == 0 ? " -s batch.size=" : " -s execution.mode=") != NULL, "%s",
                      command);
        outcome planned = program_run(command);
        assert_exit(&planned, command, 0);
        outcome_deinit(&planned);
        commands++;
    }
    ck_assert_int_ge(commands, 1);
    outcome_deinit(&o);
}
END_TEST

// Some GiB: from card to card another way is the first that fits.
#define LARGE "demo -s batch.size=16384"

START_TEST(a_card_holds_the_way_that_is_said)
{
    json_t *document = json_of("fit " LARGE " --cards --keep precision,optimizer,offload --json", 0);
    const json_t *cards = json_object_get(document, "cards"), *card;
    size_t k, fitting = 0;
    ck_assert_uint_gt(json_array_size(cards), 50);
    json_array_foreach(cards, k, card)
    {
        char subject[WORDS_MAX];
        const bool fits = json_is_true(json_object_get(card, "fits"));
        fitting += fits;
        if (k % 29 == 0 && fits) {
            (void)snprintf(subject, sizeof subject,
                           LARGE " -s device.kind=plan -s device.vram=none -s device.card=%s",
                           text(card, "name"));
            ck_assert_int_eq(number(card, "peak_in_use_bytes"),
                             peak_of("plan --json", subject, pairs_of(card), 0));
        }
    }
    ck_assert_uint_gt(fitting, 50);
    json_decref(document);
}
END_TEST

// ---- words ----------------------------------------------------------------------------------------------------

START_TEST(a_wrong_question_says_what_to_ask)
{
    static const struct {
        const char *words, *sentence, *hint;
    } rows[] = {
        {"fit demo --keep colour", "can keep execution, checkpoint, precision", "--keep batch,precision"},
        {"fit demo --keep batch,", "nothing that fit turns is called ''", "--keep batch,precision"},
        {"fit demo --max batch.sise", "--max needs a size of the batch",
         "headroom fit demo --max batch.size"},
        {"fit demo --max allocator.kind", "--max needs a size of the batch",
         "headroom fit demo --max batch.size"},
        {"fit demo --max model.sequence", "--max needs a size of the batch or of this model",
         "--max batch.size"},
        {"fit demo --max batch.size -s device.kind=plan -s device.vram=none",
         "there is no limit, and so no largest batch.size", "--max batch.size --card "},
        {"fit demo --max batch.size --cards", "--max and --cards are two questions", "--cards"},
        {"fit demo --card rtx3070", "rtx3070", "device.card"},
        {"fit demo --vram much", "device.vram", "--vram 64MiB"},
        {"fit nothing_like_it", "no preset is called", "headroom presets"},
    };
    outcome o = program_run(rows[_i].words);
    assert_exit(&o, rows[_i].words, 2);
    ck_assert_msg(strstr(o.err, rows[_i].sentence) != NULL, "%s", o.err);
    ck_assert_msg(strstr(o.err, rows[_i].hint) != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

static void assert_fields_are_terms(json_t *value)
{
    const char *key;
    json_t *member;
    size_t k;
    json_object_foreach(value, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "no term explains the field '%s'", key);
        assert_fields_are_terms(member);
    }
    json_array_foreach(value, k, member)
    {
        assert_fields_are_terms(member);
    }
}

// An estimate says that it is one, wherever a time is.
static void assert_times_have_bases(json_t *value)
{
    const char *key;
    json_t *member;
    size_t k;
    json_object_foreach(value, key, member)
    {
        const char *basis = strcmp(key, "step_seconds") == 0 ? "step_seconds_basis" : "seconds_basis";
        const bool is_time = strcmp(key, "step_seconds") == 0 ||
                             (strcmp(key, "seconds") == 0 && json_object_get(value, "cost") != NULL);
        if (is_time && json_is_number(member)) {
            ck_assert_str_ne(text(value, basis), "unknown");
        }
        assert_times_have_bases(member);
    }
    json_array_foreach(value, k, member)
    {
        assert_times_have_bases(member);
    }
}

START_TEST(every_time_says_what_it_is_made_from)
{
    static const struct {
        const char *words;
        int exit_code;
    } rows[] = {{"fit demo --json", 0},
                {"fit demo --max batch.size --json", 0},
                {"fit demo --cards --keep batch,offload --json", 0},
                {"plan demo -s batch.size=256 --json", 1},
                {"explain demo -s execution.retain=losses --json", 1}};
    json_t *document = json_of(rows[_i].words, rows[_i].exit_code);
    assert_times_have_bases(document);
    json_decref(document);
}
END_TEST

START_TEST(every_field_is_a_term)
{
    static const char *const words[] = {"fit demo --json", "fit demo --max batch.size --json",
                                        "fit demo --cards --keep batch,offload --json"};
    json_t *document = json_of(words[_i], 0);
    assert_fields_are_terms(document);
    json_decref(document);
}
END_TEST

START_TEST(no_line_but_a_command_is_wider_than_80_columns)
{
    static const char *const words[] = {"fit demo --card rtx3070-8g", "fit resnet18_cifar --vram 1GiB",
                                        "fit demo --vram 64MiB --card rtx3070-8g --max batch.size",
                                        "fit " LARGE " --cards --keep offload"};
    outcome o = program_run(words[_i]);
    assert_exit(&o, words[_i], 0);
    for (const char *line = o.out; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        ck_assert_msg(length <= 80 || strncmp(line, "  headroom ", 11) == 0, "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, an_interruption_prints_what_was_found);
    tcase_add_test(tc, an_interruption_claims_nothing_of_what_was_not_tried);
    tcase_add_loop_test(tc, every_point_is_a_plan_and_the_fastest_is_the_fastest, 0,
                        HEADROOM_SANITIZED ? 1 : (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tc, a_time_that_nobody_measured_is_estimated_and_the_fastest_is_first, 0,
                        sizeof unmeasured / sizeof *unmeasured);
    tcase_add_test(tc, what_is_kept_is_turned_nowhere);
    tcase_add_loop_test(tc, an_answer_that_is_run_holds_what_was_planned, 0, 3);
    tcase_add_test(tc, what_cannot_fit_ends_with_1_and_says_the_least);
    tcase_add_loop_test(tc, the_largest_of_a_way_fits_and_one_more_does_not, 0, 2);
    tcase_add_test(tc, the_limit_that_is_named_is_the_largests);
    tcase_add_loop_test(tc, the_largest_is_a_command, 0, 2);
    tcase_add_test(tc, a_card_holds_the_way_that_is_said);
    tcase_add_loop_test(tc, a_wrong_question_says_what_to_ask, 0, 10);
    tcase_add_loop_test(tc, every_time_says_what_it_is_made_from, 0, 5);
    tcase_add_loop_test(tc, every_field_is_a_term, 0, 3);
    tcase_add_loop_test(tc, no_line_but_a_command_is_wider_than_80_columns, 0, HEADROOM_SANITIZED ? 1 : 4);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
