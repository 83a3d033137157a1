// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom pack`: offsets under which nothing overlaps, a height that is theirs, a bound that is proven, and
// exit codes that say whether it fits.
#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "headroom/terms.h"

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATH_TEXT_MAX = 128, WORDS_MAX = 512, BUFFERS = 60 };

typedef struct buffer {
    json_int_t lower, upper, size;
} buffer;

static char path[PATH_TEXT_MAX];
static buffer buffers[BUFFERS];

static uint64_t draw(uint64_t *state, uint64_t low, uint64_t high)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (*state >> 33) % (high - low + 1);
}

static void write_buffers(uint64_t seed)
{
    snprintf(path, sizeof path, "%s/lifetimes.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("id,lower,upper,size\n", file);
    for (int k = 0; k < BUFFERS; k++) {
        uint64_t lower = draw(&seed, 0, 100), upper = lower + draw(&seed, 1, 30), size = draw(&seed, 1, 50);
        buffers[k] = (buffer){(json_int_t)lower, (json_int_t)upper, (json_int_t)size};
        fprintf(file, "b%d,%d,%d,%d\n", k, (int)lower, (int)upper, (int)size);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static json_t *pack_json(const char *options, int exit_code)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "pack %s --json %s", path, options);
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *document = assert_json(&o, words);
    ck_assert_str_eq(json_string_value(json_object_get(document, "schema")), "headroom.pack/1");
    outcome_deinit(&o);
    return document;
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is no number", key);
    return json_integer_value(value);
}

static bool overlap(json_int_t a, json_int_t a_end, json_int_t b, json_int_t b_end)
{
    return a < b_end && b < a_end;
}

// The most that lives at one instant.
static json_int_t live_peak(void)
{
    json_int_t peak = 0;
    for (int t = 0; t < 200; t++) {
        json_int_t live = 0;
        for (int k = 0; k < BUFFERS; k++) {
            live += buffers[k].lower <= t && t < buffers[k].upper ? buffers[k].size : 0;
        }
        peak = live > peak ? live : peak;
    }
    return peak;
}

static void check_offsets(const json_t *document)
{
    const json_t *offsets = json_object_get(document, "offsets");
    json_int_t at[BUFFERS], height = 0;
    ck_assert_uint_eq(json_array_size(offsets), BUFFERS);
    for (int k = 0; k < BUFFERS; k++) {
        char id[16];
        snprintf(id, sizeof id, "b%d", k);
        ck_assert_str_eq(json_string_value(json_object_get(json_array_get(offsets, (size_t)k), "id")), id);
        at[k] = number(json_array_get(offsets, (size_t)k), "offset");
        height = at[k] + buffers[k].size > height ? at[k] + buffers[k].size : height;
        for (int other = 0; other < k; other++) {
            ck_assert(
                !overlap(buffers[k].lower, buffers[k].upper, buffers[other].lower, buffers[other].upper) ||
                !overlap(at[k], at[k] + buffers[k].size, at[other], at[other] + buffers[other].size));
        }
    }
    ck_assert_int_eq(number(document, "height_bytes"), height);
    ck_assert_int_ge(number(document, "lower_bound_bytes"), live_peak());
    ck_assert_int_ge(height, number(document, "lower_bound_bytes"));
    ck_assert_int_eq(json_is_true(json_object_get(document, "optimal")),
                     height == number(document, "lower_bound_bytes"));
}

START_TEST(nothing_overlaps_and_the_height_is_that_of_the_offsets)
{
    write_buffers((uint64_t)_i + 1);
    json_t *d = pack_json("--seconds 0.2 --seed 3", 0);
    check_offsets(d);
    ck_assert(json_is_null(json_object_get(d, "fits")));
    json_decref(d);
}
END_TEST

START_TEST(a_capacity_is_met_or_not_and_the_exit_code_says_so)
{
    char options[64];
    write_buffers(7);
    json_t *d = pack_json("--capacity 1MiB", 0);
    check_offsets(d);
    ck_assert(json_is_true(json_object_get(d, "fits")));
    json_decref(d);
    snprintf(options, sizeof options, "--seconds 1 --capacity %d", (int)live_peak() - 1);
    d = pack_json(options, 1); // below the bound: nothing fits
    check_offsets(d);
    ck_assert(json_is_false(json_object_get(d, "fits")));
    json_decref(d);
}
END_TEST

START_TEST(every_field_is_a_term)
{
    const char *key;
    json_t *member;
    write_buffers(5);
    json_t *d = pack_json("--seconds 0.1", 0);
    json_object_foreach(d, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "%s", key);
    }
    json_object_foreach(json_array_get(json_object_get(d, "offsets"), 0), key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "%s", key);
    }
    json_decref(d);
}
END_TEST

START_TEST(any_trace_can_be_packed)
{
    snprintf(path, sizeof path, "%s/rmm.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("Thread,Time,Action,Pointer,Size,Stream\n"
          "1,10:00:00:000001,allocate,0x1000,1000,0\n"
          "1,10:00:00:000002,free,0x1000,1000,0\n"
          "1,10:00:00:000003,allocate,0x2000,3000,0\n"
          "1,10:00:00:000004,allocate,0x3000,500,0\n",
          file);
    ck_assert_int_eq(fclose(file), 0);
    json_t *d = pack_json("", 0);
    ck_assert_int_eq(number(d, "height_bytes"), 3500);
    ck_assert(json_is_true(json_object_get(d, "optimal")));
    ck_assert_uint_eq(json_array_size(json_object_get(d, "offsets")), 3);
    json_decref(d);
}
END_TEST

START_TEST(a_page_for_people_says_height_bound_and_gap)
{
    char words[WORDS_MAX];
    write_buffers(9);
    snprintf(words, sizeof words, "pack %s --seconds 0.1 --ascii", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    static const char *const printed[] = {
        ": 60 buffers, ", "\n  height ", "\n  lower bound ", "\n  gap ", "proven: no packing is lower",
        "0 B |"};
    for (size_t k = 0; k < COUNT(printed); k++) {
        ck_assert_msg(strstr(o.out, printed[k]) != NULL, "%s\n%s", printed[k], o.out);
    }
    for (const char *c = o.out; *c != '\0'; c++) {
        ck_assert((unsigned char)*c < 0x80 && (*c >= ' ' || *c == '\n'));
    }
    outcome_deinit(&o);
}
END_TEST

// Many buffers of all sizes: no search proves in half a second what is best. The answer is whole all the same.
START_TEST(an_interrupted_search_gives_its_best)
{
    char command[WORDS_MAX];
    uint64_t seed = 11;
    json_error_t problem;
    snprintf(path, sizeof path, "%s/many.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("id,lower,upper,size\n", file);
    for (int k = 0; k < 1500; k++) {
        uint64_t lower = draw(&seed, 0, 3000);
        fprintf(file, "%d,%d,%d,%d\n", k, (int)lower, (int)(lower + draw(&seed, 1, 900)),
                (int)draw(&seed, 1, 9999));
    }
    ck_assert_int_eq(fclose(file), 0);
    snprintf(command, sizeof command,
             "timeout --preserve-status -s INT 0.5 " HEADROOM_PROGRAM
             " pack %s --seconds 60 --json >%s/best.json "
             "2>/dev/null",
             path, program_home());
    int status = system(command);
    snprintf(path, sizeof path, "%s/best.json", program_home());
    json_t *d = json_load_file(path, 0, &problem);
    ck_assert_msg(d != NULL, "%s", problem.text);
    bool proven = json_is_true(json_object_get(d, "optimal"));
    ck_assert_int_eq(WEXITSTATUS(status), proven ? 0 : 130);
    ck_assert_uint_eq(json_array_size(json_object_get(d, "offsets")), 1500);
    json_decref(d);
}
END_TEST

static const struct {
    const char *words;
    int exit_code;
    const char *said;
} wrong[] = {
    {"pack", 2, "pack needs a file of lifetimes or a trace, had none"},
    {"pack /nowhere/at/all.csv", 5, "/nowhere/at/all.csv"},
    {"pack /dev/null", 5, "needed one of"},
    {"pack x.csv --seconds soon", 2, "--seconds needs a number from 0, had 'soon'"},
    {"pack x.csv --seconds -1", 2, "--seconds needs a number from 0, had '-1'"},
    {"pack x.csv --capacity 0", 2, "--capacity needs a size, had '0'"},
    {"pack x.csv --capacity much", 2, "--capacity needs a size, had 'much'"},
    {"pack x.csv --seed -1", 2, "--seed needs a whole number from 0, had '-1'"},
};

START_TEST(bad_input_has_its_sentence)
{
    outcome o = program_run(wrong[_i].words);
    assert_exit(&o, wrong[_i].words, wrong[_i].exit_code);
    ck_assert_msg(strstr(o.err, wrong[_i].said) != NULL, "headroom %s: %s", wrong[_i].words, o.err);
    ck_assert_str_eq(o.out, "");
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_line_that_is_wrong_is_named)
{
    char words[WORDS_MAX];
    snprintf(path, sizeof path, "%s/wrong.csv", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("id,lower,upper,size\n1,0,5,10\n2,7,3,10\n", file);
    ck_assert_int_eq(fclose(file), 0);
    snprintf(words, sizeof words, "pack %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 5);
    ck_assert_msg(strstr(o.err, ":3") != NULL || strstr(o.err, "line 3") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pack command");
    tcase_add_loop_test(tests, nothing_overlaps_and_the_height_is_that_of_the_offsets, 0, 5);
    tcase_add_test(tests, a_capacity_is_met_or_not_and_the_exit_code_says_so);
    tcase_add_test(tests, every_field_is_a_term);
    tcase_add_test(tests, any_trace_can_be_packed);
    tcase_add_test(tests, a_page_for_people_says_height_bound_and_gap);
    tcase_add_test(tests, an_interrupted_search_gives_its_best);
    tcase_add_loop_test(tests, bad_input_has_its_sentence, 0, COUNT(wrong));
    tcase_add_test(tests, a_line_that_is_wrong_is_named);
    Suite *suite = suite_create("pack command");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
