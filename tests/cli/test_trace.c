// SPDX-License-Identifier: Apache-2.0
// The reported peak is the one that a program of another language finds in the run's trace.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { NO_PYTHON = 77 };

// What peak_from_trace.py finds in `path`; NULL where there is no Python.
static json_t *recompute(const char *path)
{
    char command[256], line[512] = "";
    if (system("command -v python3 >/dev/null") != 0) {
        return NULL;
    }
    snprintf(command, sizeof command, "python3 tests/cli/peak_from_trace.py %s", path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, pipe));
    ck_assert_int_eq(pclose(pipe), 0);
    json_t *found = json_loads(line, 0, NULL);
    ck_assert_msg(found != NULL, "%s", line);
    return found;
}

static const char *const runs[] = {
    "demo --steps 3 -s device.kind=reference -s batch.size=2",
    "demo --steps 3 -s device.kind=reference -s batch.size=2 -s execution.mode=graph -s allocator.growth=on",
    "demo --steps 3 -s device.kind=plan",
#if HEADROOM_HAVE_ONEDNN
    "demo --steps 3",
    "demo --steps 3 -s allocator.growth=on -s batch.size=48",
    "mlp --steps 3 -s batch.size=16 -s execution.mode=graph",
#if !HEADROOM_SANITIZED
    // 78 steps are an epoch of the generated set: an evaluation falls between two steps.
    "cifar10_separable_cnn --steps 80",
#endif
#endif
};

START_TEST(the_peak_of_a_trace_is_the_reported_one)
{
    char path[128], words[384];
    snprintf(path, sizeof path, "%s/trace.csv", program_home());
    snprintf(words, sizeof words, "run %s --json --trace %s", runs[_i], path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    json_t *found = recompute(path);
    const json_t *memory = json_object_get(report, "memory");
    static const char *const counters[] = {"peak_in_use_bytes", "peak_requested_bytes", "peak_pool_bytes"};
    for (size_t k = 0; found != NULL && k < COUNT(counters); k++) {
        ck_assert_msg(json_equal(json_object_get(found, counters[k]), json_object_get(memory, counters[k])),
                      "%s: %s", words, counters[k]);
    }
    json_decref(found);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(rows_name_their_tensors)
{
    char path[128], words[256], line[256];
    unsigned rows = 0;
    snprintf(path, sizeof path, "%s/trace.csv", program_home());
    snprintf(words, sizeof words, "run demo -s device.kind=reference -s batch.size=2 --steps 1 --trace %s",
             path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_str_eq(line, "time_ns,step,event,address,requested_bytes,allocated_bytes,tensor,stream\n");
    while (fgets(line, sizeof line, file) != NULL) {
        bool about_memory = strstr(line, ",alloc,") != NULL || strstr(line, ",free,") != NULL;
        ck_assert_msg(!about_memory || (strstr(line, ",,") == NULL && strchr(line, '#') == NULL), "%s", line);
        rows += about_memory ? 1 : 0;
    }
    fclose(file);
    ck_assert_uint_gt(rows, 50);
}
END_TEST

START_TEST(a_trace_takes_the_place_of_a_trace_and_of_nothing_else)
{
    static const char kept[] = "time_ns,step,event\nsomebody's table\n";
    char path[128], words[256], found[sizeof kept] = "";
    snprintf(path, sizeof path, "%s/kept.csv", program_home());
    snprintf(words, sizeof words, "run demo -s device.kind=plan --steps 1 --trace %s", path);
    FILE *file = fopen(path, "w");
    fputs(kept, file);
    fclose(file);
    outcome o = program_run(words);
    assert_exit(&o, words, 5);
    ck_assert_ptr_nonnull(
        strstr(o.err, "kept.csv: needed a csv file of headroom or no file, had: something else"));
    ck_assert_ptr_nonnull(strstr(o.err, "\n  try: --trace "));
    outcome_deinit(&o);
    file = fopen(path, "r");
    ck_assert_uint_eq(fread(found, 1, sizeof found, file), sizeof kept - 1);
    ck_assert_mem_eq(found, kept, sizeof kept - 1);
    fclose(file);
    ck_assert_int_eq(remove(path), 0);
    for (int k = 0; k < 2; k++) {
        o = program_run(words);
        assert_exit(&o, words, 0);
        outcome_deinit(&o);
    }
}
END_TEST

// Requested bytes that live at once, from rows of lower,upper,size,id.
static long long highest_sum(FILE *file)
{
    enum { EVENTS_MAX = 4096 };
    static long long change[EVENTS_MAX];
    long long sum = 0, highest = 0;
    char line[128];
    memset(change, 0, sizeof change);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_str_eq(line, "lower,upper,size,id\n");
    while (fgets(line, sizeof line, file) != NULL) {
        long long lower, upper, size;
        ck_assert_int_eq(sscanf(line, "%lld,%lld,%lld", &lower, &upper, &size), 3);
        ck_assert(0 <= lower && lower < upper && upper < EVENTS_MAX && size > 0);
        change[lower] += size;
        change[upper] -= size;
    }
    for (int k = 0; k < EVENTS_MAX; k++) {
        sum += change[k];
        highest = sum > highest ? sum : highest;
    }
    return highest;
}

START_TEST(the_lifetimes_of_a_run_add_up_to_its_peak)
{
    char path[128], words[256];
    snprintf(path, sizeof path, "%s/lifetimes.csv", program_home());
    snprintf(words, sizeof words, "run demo -s device.kind=plan --steps 3 --json --trace lifetimes:%s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    const json_t *memory = json_object_get(report, "memory");
    ck_assert_int_eq(highest_sum(file), json_integer_value(json_object_get(memory, "peak_requested_bytes")));
    fclose(file);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_as_chrome_json_shows_its_steps_and_what_tensors_are)
{
    char path[128], words[256];
    unsigned steps = 0, told = 0, unnamed = 0;
    snprintf(path, sizeof path, "%s/run.json", program_home());
    snprintf(words, sizeof words, "run demo -s device.kind=reference -s batch.size=2 --steps 3 --trace %s",
             path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    size_t index;
    const json_t *e;
    json_array_foreach(json_object_get(root, "traceEvents"), index, e)
    {
        const char *phase = json_string_value(json_object_get(e, "ph"));
        const char *name = json_string_value(json_object_get(e, "name"));
        const json_t *args = json_object_get(e, "args");
        steps += strcmp(phase, "X") == 0 && strncmp(name, "step ", 5) == 0 ? 1 : 0;
        unnamed += name != NULL && name[0] == '#' ? 1 : 0;
        if (strcmp(phase, "b") == 0 && json_object_get(args, "op") != NULL) {
            ck_assert_ptr_nonnull(json_object_get(args, "dtype"));
            ck_assert_int_eq(json_string_value(json_object_get(args, "shape"))[0], '[');
            told++;
        }
    }
    ck_assert_uint_eq(steps, 3);
    ck_assert_uint_eq(unnamed, 0);
    ck_assert_uint_gt(told, 60);
    json_decref(root);
}
END_TEST

START_TEST(a_file_of_no_known_kind_is_refused_before_the_run)
{
    outcome o = program_run("run demo -s device.kind=plan --steps 1 --trace run.txt");
    assert_exit(&o, "--trace run.txt", 2);
    ck_assert_ptr_nonnull(strstr(o.err, "--trace run.txt: needed a file ending in .csv, "));
    ck_assert_ptr_nonnull(strstr(o.err, "\n  try: --trace csv:run.txt\n"));
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    if (system("command -v python3 >/dev/null") != 0) {
        puts("skipped: no python3 to recompute the peak with");
        return NO_PYTHON;
    }
    TCase *tests = tcase_create("trace");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, the_peak_of_a_trace_is_the_reported_one, 0, (int)COUNT(runs));
    tcase_add_test(tests, rows_name_their_tensors);
    tcase_add_test(tests, a_trace_takes_the_place_of_a_trace_and_of_nothing_else);
    tcase_add_test(tests, the_lifetimes_of_a_run_add_up_to_its_peak);
    tcase_add_test(tests, a_run_as_chrome_json_shows_its_steps_and_what_tensors_are);
    tcase_add_test(tests, a_file_of_no_known_kind_is_refused_before_the_run);
    Suite *suite = suite_create("trace");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
