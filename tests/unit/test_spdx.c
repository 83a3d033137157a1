// SPDX-License-Identifier: Apache-2.0
// Every file says its licence in one of its first lines, or is named in REUSE.toml. Runs from the top of the source tree.
#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATTERNS_MAX = 64, PATTERN_TEXT = 96, PATH_TEXT = 512, LINE_TEXT = 512, FIRST_LINES = 4 };

static const char licence[] = "SPDX-License-Identifier: Apache-2.0";

typedef struct patterns {
    char text[PATTERNS_MAX][PATTERN_TEXT];
    bool met[PATTERNS_MAX];
    unsigned count;
} patterns;

static patterns excused, ignored;
static unsigned seen;

static void keep(patterns *to, const char *text, size_t length)
{
    ck_assert_uint_lt(to->count, PATTERNS_MAX);
    ck_assert_uint_lt(length, PATTERN_TEXT);
    (void)snprintf(to->text[to->count++], PATTERN_TEXT, "%.*s", (int)length, text);
}

// The quoted words of REUSE.toml's `path`.
static void read_excused(void)
{
    char line[LINE_TEXT];
    FILE *file = fopen("REUSE.toml", "r");
    ck_assert_msg(file != NULL, "REUSE.toml: run from the top of the source tree");
    while (fgets(line, sizeof line, file) != NULL) {
        char *word = line + strspn(line, " ");
        if (*word == '"') {
            keep(&excused, word + 1, strcspn(word + 1, "\""));
        }
    }
    fclose(file);
    ck_assert_uint_gt(excused.count, 5);
}

// The names of .gitignore, without slashes and stars: "build", ".swp".
static void read_ignored(void)
{
    char line[LINE_TEXT];
    FILE *file = fopen(".gitignore", "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *word = line + strspn(line, "/*");
        const size_t length = strcspn(word, "/\n");
        if (line[0] != '#' && length > 0) {
            keep(&ignored, word, length);
        }
    }
    fclose(file);
}

static bool ends_with(const char *text, const char *tail)
{
    const size_t length = strlen(text), end = strlen(tail);
    return length >= end && strcmp(text + length - end, tail) == 0;
}

// "FOLDER/**", "**ENDING", or a name.
static bool matches(const char *pattern, const char *path)
{
    if (strncmp(pattern, "**", 2) == 0) {
        return ends_with(path, pattern + 2);
    }
    return ends_with(pattern, "/**") ? strncmp(path, pattern, strlen(pattern) - 2) == 0
                                     : strcmp(path, pattern) == 0;
}

static bool is_excused(const char *path)
{
    bool found = false;
    for (unsigned k = 0; k < excused.count; k++) {
        const bool met = matches(excused.text[k], path);
        excused.met[k] |= met;
        found |= met;
    }
    return found;
}

// Also what an editor or a person keeps hidden here.
static bool is_ignored(const char *leaf)
{
    static const char *const ours[] = {".ci", ".clang-format", ".clang-tidy", ".editorconfig", ".gitignore"};
    bool hidden = leaf[0] == '.';
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        hidden = hidden && strcmp(leaf, ours[k]) != 0;
    }
    for (unsigned k = 0; k < ignored.count && !hidden; k++) {
        hidden = strcmp(leaf, ignored.text[k]) == 0 ||
                 (ignored.text[k][0] == '.' && ends_with(leaf, ignored.text[k]));
    }
    return hidden;
}

static void check_file(const char *path)
{
    char line[LINE_TEXT];
    FILE *file = fopen(path, "r");
    bool said = false;
    ck_assert_ptr_nonnull(file);
    for (int k = 0; k < FIRST_LINES && !said && fgets(line, sizeof line, file) != NULL; k++) {
        said = strstr(line, licence) != NULL;
    }
    fclose(file);
    ck_assert_msg(said, "%s does not say its licence: begin it with \"%s\", or name it in REUSE.toml", path,
                  licence);
    seen++;
}

static void walk(const char *folder)
{
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *leaf = readdir(dir); leaf != NULL; leaf = readdir(dir)) {
        char path[PATH_TEXT];
        struct stat info;
        const bool top = strcmp(folder, ".") == 0;
        (void)snprintf(path, sizeof path, "%s%s%s", top ? "" : folder, top ? "" : "/", leaf->d_name);
        if (is_ignored(leaf->d_name) || lstat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            walk(path);
        } else if (S_ISREG(info.st_mode) && !is_excused(path)) {
            check_file(path);
        }
    }
    closedir(dir);
}

START_TEST(every_file_says_its_licence)
{
    read_excused();
    read_ignored();
    walk(".");
    ck_assert_uint_gt(seen, 1000);
    for (unsigned k = 0; k < excused.count; k++) {
        ck_assert_msg(excused.met[k], "REUSE.toml names %s, and nothing is called so", excused.text[k]);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("spdx");
    tcase_add_test(tests, every_file_says_its_licence);
    Suite *suite = suite_create("spdx");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
