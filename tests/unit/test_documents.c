// SPDX-License-Identifier: Apache-2.0
// What documents name is there: a path of this tree between two ` in them, and a test that a checklist sends to. Runs from
// the top of the source tree.
#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_BYTES = 1 << 20, PATH_TEXT = 256 };

static const char *const documents[] = {"CONTRIBUTING.md", "ARCHITECTURE.md", "README.md", "STYLE.md"};

static char *read_document(const char *path)
{
    char *text = calloc(1, TEXT_BYTES);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL && text != NULL, "%s: run from the top of the source tree", path);
    ck_assert_uint_lt(fread(text, 1, TEXT_BYTES - 1, file), TEXT_BYTES - 1);
    fclose(file);
    return text;
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

// "engine/knobs/table.c", but not a pattern, a placeholder (NAME, FOLDER) or what a build makes.
static bool is_path_of_ours(const char *word, size_t length)
{
    static const char *const folders[] = {"app/",     "engine/", "tests/", "scripts/",     "docs/",
                                          "presets/", "cmake/",  ".ci/",   "screenshots/", "packaging/"};
    bool found = false;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        found = found || strncmp(word, folders[k], strlen(folders[k])) == 0;
    }
    return found && length < PATH_TEXT && strcspn(word, "*{}<> ,:|NFT") >= length;
}

START_TEST(what_is_named_is_there)
{
    char *text = read_document(documents[_i]);
    for (char *at = strchr(text, '`'); at != NULL; at = strchr(at, '`')) {
        char path[PATH_TEXT];
        const char *word = at + 1;
        const size_t length = strcspn(word, "`");
        if (is_path_of_ours(word, length)) {
            (void)snprintf(path, sizeof path, "%.*s", (int)length, word);
            ck_assert_msg(exists(path), "%s names %s, which is not there", documents[_i], path);
        }
        at += length + 1;
        at += *at == '`';
    }
    free(text);
}
END_TEST

// "Tests: `unit/knobs`, `memory/NAME`…" is tests/unit/test_knobs.c, and one that is to be written.
START_TEST(tests_that_a_checklist_names_are_there)
{
    char *text = read_document("CONTRIBUTING.md");
    unsigned count = 0;
    for (char *line = strstr(text, "\nTests: "); line != NULL; line = strstr(line + 1, "\nTests: ")) {
        const char *end = strstr(line, "\n\n");
        for (char *word = strchr(line, '`'); word != NULL && word < end; word = strchr(word, '`')) {
            char folder[PATH_TEXT], name[PATH_TEXT], path[2 * PATH_TEXT + 32];
            int length = 0;
            const bool named =
                sscanf(word, "`%63[a-z]/%63[a-z0-9_]`%n", folder, name, &length) == 2 && length > 0;
            (void)snprintf(path, sizeof path, "tests/%s/test_%s.c", folder, name);
            if (named) {
                ck_assert_msg(exists(path), "CONTRIBUTING.md sends to `%s/%s`: there is no %s", folder, name,
                              path);
                count++;
            }
            word += strcspn(word + 1, "`") + 2;
        }
    }
    ck_assert_uint_gt(count, 10);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("documents");
    tcase_add_loop_test(tests, what_is_named_is_there, 0, sizeof documents / sizeof *documents);
    tcase_add_test(tests, tests_that_a_checklist_names_are_there);
    Suite *suite = suite_create("documents");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
