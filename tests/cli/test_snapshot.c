// SPDX-License-Identifier: Apache-2.0
// A run written as a PyTorch memory snapshot is one: Python's own pickle loads it, and check_snapshot.py, a program of
// another language, finds PyTorch's keys in it and walks its history backwards as PyTorch's viewer does.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { NO_PYTHON = 77 };

// The exit code of check_snapshot.py; its last line goes to `said`.
static int check_file(const char *path, char *said, size_t size)
{
    char command[384];
    snprintf(command, sizeof command, "python3 tests/cli/check_snapshot.py %s 2>&1", path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    said[0] = '\0';
    for (char line[1024]; fgets(line, sizeof line, pipe) != NULL;) {
        snprintf(said, size, "%s", line);
    }
    return pclose(pipe);
}

static const char *const runs[] = {
    "demo --steps 3 -s device.kind=reference -s batch.size=2",
    "demo --steps 2 -s device.kind=plan -s allocator.growth=on -s execution.mode=graph",
    "demo --steps 2 -s device.kind=plan -s allocator.kind=static -s execution.mode=graph",
    "mlp --steps 40 -s device.kind=plan",
    "demo --steps 2 -s device.kind=plan -s allocator.kind=async",
    "demo --steps 2 -s device.kind=plan -s allocator.kind=direct -s device.vram=1GiB",
    "demo --steps 2 -s device.kind=plan -s allocator.kind=caching -s batch.size=64",
    "demo --steps 2 -s device.kind=plan -s allocator.kind=caching -s allocator.expandable_segments=on",
};

START_TEST(a_run_as_a_snapshot_is_one)
{
    char path[256], words[512], said[1024];
    snprintf(path, sizeof path, "%s/run.pickle", program_home());
    snprintf(words, sizeof words, "run %s --json --trace %s", runs[_i], path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    int status = check_file(path, said, sizeof said);
    ck_assert_msg(status == 0, "%s: %s", words, said);
    json_t *report = assert_json(&o, words), *found = json_loads(said, 0, NULL);
    ck_assert_msg(found != NULL, "%s", said);
    const json_t *device = json_array_get(json_object_get(found, "devices"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(device, "start_bytes")), 0);
    ck_assert(json_equal(json_object_get(device, "start_segments"), json_object_get(device, "start_bytes")));
    ck_assert_int_gt(json_integer_value(json_object_get(device, "entries")), 100);
    const json_t *peak = json_object_get(json_object_get(report, "memory"), "peak_requested_bytes");
    ck_assert(json_equal(json_object_get(device, "peak_requested_bytes"), peak));
    json_decref(found);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

// The checker is worth something only if it finds what is wrong.
START_TEST(what_is_no_snapshot_is_found_out)
{
    static const struct {
        const char *file, *why;
    } wrong[] = {
        {"global", "has the opcode STACK_GLOBAL"},
        {"plain_5", "protocol 5"},
        {"plain_4", "sums"},
        {"by_hand", "allocator_settings is missing"},
        {"legacy_2", "the pickle is no dictionary"},
    };
    for (size_t k = 0; k < COUNT(wrong); k++) {
        char path[256], said[1024];
        snprintf(path, sizeof path, "tests/fuzz/corpus/torch_snapshot/%s.pickle", wrong[k].file);
        ck_assert_int_ne(check_file(path, said, sizeof said), 0);
        ck_assert_msg(strstr(said, wrong[k].why) != NULL, "%s", said);
    }
}
END_TEST

int main(void)
{
    if (system("command -v python3 >/dev/null") != 0) {
        puts("skipped: no python3 to load the snapshot with");
        return NO_PYTHON;
    }
    TCase *tests = tcase_create("snapshot");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, a_run_as_a_snapshot_is_one, 0, (int)COUNT(runs));
    tcase_add_test(tests, what_is_no_snapshot_is_found_out);
    Suite *suite = suite_create("snapshot");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
