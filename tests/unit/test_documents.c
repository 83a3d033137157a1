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

static const char *const documents[] = {
    "CONTRIBUTING.md", "ARCHITECTURE.md",          "README.md",
    "STYLE.md",        "engine/session/README.md", "engine/device/cuda/README.md"};

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
    return found && length < PATH_TEXT && strcspn(word, "*{}<> \n,:|NFT") >= length;
}

static void check_document(const char *document)
{
    char *text = read_document(document);
    for (char *at = strchr(text, '`'); at != NULL; at = strchr(at, '`')) {
        char path[PATH_TEXT];
        const char *word = at + 1;
        const size_t length = strcspn(word, "`");
        if (is_path_of_ours(word, length)) {
            (void)snprintf(path, sizeof path, "%.*s", (int)length, word);
            ck_assert_msg(exists(path), "%s names %s, which is not there", document, path);
        }
        at += length + 1;
        at += *at == '`';
    }
    free(text);
}

START_TEST(what_is_named_is_there)
{
    check_document(documents[_i]);
}
END_TEST

// Each decision says its context, what was decided, and the consequence, and is in the list of them.
START_TEST(decisions_are_whole_and_listed)
{
    static const char folder[] = "docs/decisions";
    static const char *const parts[] = {"\n## Context\n", "\n## Decision\n", "\n## Consequence\n"};
    char *list = read_document("docs/decisions/README.md");
    unsigned count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *leaf = readdir(dir); leaf != NULL; leaf = readdir(dir)) {
        char path[2 * PATH_TEXT];
        if (leaf->d_name[0] < '0' || leaf->d_name[0] > '9') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, leaf->d_name);
        check_document(path);
        char *text = read_document(path);
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            ck_assert_msg(strstr(text, parts[k]) != NULL, "%s has no part%s", path, parts[k]);
        }
        ck_assert_msg(strstr(list, leaf->d_name) != NULL, "docs/decisions/README.md does not list %s",
                      leaf->d_name);
        free(text);
        count++;
    }
    closedir(dir);
    ck_assert_uint_gt(count, 40);
    free(list);
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
    tcase_add_test(tests, decisions_are_whole_and_listed);
    tcase_add_test(tests, tests_that_a_checklist_names_are_there);
    Suite *suite = suite_create("documents");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
