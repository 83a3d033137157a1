// SPDX-License-Identifier: Apache-2.0
// Who may know whom: every #include of engine/ and app/ against the arrows that the build's hr_folder(...) and
// hr_app_folder(...) lines draw, and the few rules of the house that a compiler does not see. Runs from the top of the source tree.
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/host_mem.h"

enum { FOLDERS_MAX = 64, KNOWN_MAX = 16, NAME_TEXT = 64, PATH_TEXT = 512, SOURCE_LIMIT_BYTES = 4 << 20 };

typedef struct folder {
    char name[NAME_TEXT]; // "device_plan": what an #include begins with; of app/ the path
    char path[NAME_TEXT]; // "engine/device/plan", "app/tui/term"
    char knows[KNOWN_MAX][NAME_TEXT];
    unsigned known_count;
} folder;

static folder folders[FOLDERS_MAX];
static unsigned folder_count;

// ---- the arrows, from the build -------------------------------------------------------------------------------

// One "name [PATH dir] [KNOWS folders…] [USES libraries…])" of a folder below `top`.
static void add_folder(const char *top, char *line)
{
    ck_assert_uint_lt(folder_count, FOLDERS_MAX);
    folder *f = &folders[folder_count++];
    enum { NAME, PATH, KNOWS, USES } part = NAME;
    char *rest = NULL;
    for (char *word = strtok_r(line, " ()\n", &rest); word != NULL; word = strtok_r(NULL, " ()\n", &rest)) {
        if (strcmp(word, "PATH") == 0) {
            part = PATH;
        } else if (strcmp(word, "KNOWS") == 0) {
            part = KNOWS;
        } else if (strcmp(word, "USES") == 0) {
            part = USES;
        } else if (part == NAME) {
            snprintf(f->name, sizeof f->name, "%s", word);
            snprintf(f->path, sizeof f->path, "%s/%s", top, word);
        } else if (part == PATH) {
            snprintf(f->path, sizeof f->path, "%s/%s", top, word);
        } else if (part == KNOWS) {
            ck_assert_uint_lt(f->known_count, KNOWN_MAX);
            snprintf(f->knows[f->known_count++], NAME_TEXT, "%s", word);
        }
    }
}

static void read_arrows_of(const char *path)
{
    static const char call[] = "hr_folder(", app_call[] = "hr_app_folder(";
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: run from the top of the source tree", path);
    char line[1024];
    while (fgets(line, sizeof line, file) != NULL) {
        char *start = line + strspn(line, " ");
        if (strncmp(start, call, sizeof call - 1) == 0) {
            add_folder("engine", start + sizeof call - 1);
        } else if (strncmp(start, app_call, sizeof app_call - 1) == 0) {
            add_folder("app", start + sizeof app_call - 1);
        }
    }
    fclose(file);
}

static void read_arrows(void)
{
    folder_count = 0;
    memset(folders, 0, sizeof folders);
    read_arrows_of("CMakeLists.txt");
    read_arrows_of("cmake/onednn.cmake");
    read_arrows_of("cmake/cuda.cmake");
    read_arrows_of("app/CMakeLists.txt");
}

static const folder *folder_named(const char *name, size_t length)
{
    for (unsigned i = 0; i < folder_count; i++) {
        if (strlen(folders[i].name) == length && memcmp(folders[i].name, name, length) == 0) {
            return &folders[i];
        }
    }
    return NULL;
}

// The folder with the longest path that `source` ("engine/device/plan/x.c") lies below.
static const folder *folder_of_source(const char *source)
{
    const folder *found = NULL;
    for (unsigned i = 0; i < folder_count; i++) {
        char below[NAME_TEXT + 16];
        int length = snprintf(below, sizeof below, "%s/", folders[i].path);
        bool longer = found == NULL || strlen(folders[i].path) > strlen(found->path);
        if (strncmp(source, below, (size_t)length) == 0 && longer) {
            found = &folders[i];
        }
    }
    return found;
}

static bool knows(const folder *f, const char *name, size_t length)
{
    if (strlen(f->name) == length && memcmp(f->name, name, length) == 0) {
        return true;
    }
    for (unsigned i = 0; i < f->known_count; i++) {
        if (strlen(f->knows[i]) == length && memcmp(f->knows[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

// ---- one #include ---------------------------------------------------------------------------------------------

// Headers of libraries, by how they begin, and the only places that may see them.
static const struct {
    const char *header, *places[4];
} libraries[] = {
    {"dnnl", {"engine/device/cpu/"}},
    {"omp.h", {"engine/device/cpu/"}},
    {"cuda", {"engine/device/cuda/"}},
    {"cudnn", {"engine/device/cuda/"}},
    {"cublas", {"engine/device/cuda/"}},
    {"nvml", {"engine/device/cuda/"}},
    {"yaml.h", {"engine/knobs/"}},
    {"archive", {"engine/base/archives", "engine/base/reader", "engine/base/compressed"}},
    {"jansson.h", {"engine/train/", "engine/device/cuda/", "engine/import/", "app/cli/"}},
    {"lua", {"app/lua/"}},
    {"lauxlib.h", {"app/lua/"}},
    {"ncurses", {"app/tui/term/"}},
    {"curses.h", {"app/tui/term/"}},
    {"panel.h", {"app/tui/term/"}},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool library_is_allowed(const char *source, const char *header)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (!begins(header, libraries[i].header)) {
            continue;
        }
        for (size_t j = 0; j < 4 && libraries[i].places[j] != NULL; j++) {
            if (begins(source, libraries[i].places[j])) {
                return true;
            }
        }
        return false;
    }
    return true; // libc and the compiler
}

static bool is_beside(const char *source, const char *header)
{
    char path[PATH_TEXT];
    struct stat status;
    int folder_length = (int)(strrchr(source, '/') - source);
    snprintf(path, sizeof path, "%.*s/%s", folder_length, source, header);
    return strstr(header, "..") == NULL && stat(path, &status) == 0;
}

// Whether `source` may say #include "header" (or <header> when `angled`).
static bool may_include(const char *source, const char *header, bool angled)
{
    if (angled) {
        return library_is_allowed(source, header);
    }
    const bool is_made = strcmp(header, "cuda_modules.inc") == 0 && begins(source, "engine/device/cuda/");
    if (begins(header, "headroom/") || is_beside(source, header) || is_made) {
        return true;
    }
    const folder *f = folder_of_source(source);
    if (begins(source, "app/")) {
        const folder *to = folder_of_source(header);
        return begins(header, "app/") && (f == NULL || (to != NULL && knows(f, to->name, strlen(to->name))));
    }
    return f != NULL && knows(f, header, strcspn(header, "/"));
}

// ---- the walk -------------------------------------------------------------------------------------------------

typedef void (*source_check)(const char *source, const char *text);

static unsigned sources_seen;

static bool is_source(const char *name)
{
    size_t length = strlen(name);
    return length > 2 && name[length - 2] == '.' && (name[length - 1] == 'c' || name[length - 1] == 'h');
}

static void check_source(const char *path, source_check check)
{
    char *text;
    size_t bytes;
    hr_err err;
    ck_assert_msg(file_read(path, SOURCE_LIMIT_BYTES, &text, &bytes, &err) == HR_OK, "%s", err.sentence);
    check(path, text);
    hr_free(text);
    sources_seen++;
}

static void walk(const char *dir, source_check check)
{
    DIR *d = opendir(dir);
    ck_assert_msg(d != NULL, "%s", dir);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[PATH_TEXT];
        struct stat status;
        ck_assert_int_lt(snprintf(path, sizeof path, "%s/%s", dir, entry->d_name), PATH_TEXT);
        if (entry->d_name[0] == '.' || lstat(path, &status) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            walk(path, check);
        } else if (is_source(entry->d_name)) {
            check_source(path, check);
        }
    }
    closedir(d);
}

static void check_includes(const char *source, const char *text)
{
    static const char directive[] = "#include ";
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!begins(line, directive)) {
            continue;
        }
        const char *open = line + sizeof directive - 1;
        bool angled = *open == '<';
        char header[NAME_TEXT * 2];
        snprintf(header, sizeof header, "%.*s", (int)strcspn(open + 1, ">\"\n"), open + 1);
        ck_assert_msg(may_include(source, header, angled), "%s may not include %s", source, header);
    }
}

// Calls of `name` that are neither part of a longer name nor of a member ("->free(").
static bool calls(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) != NULL; at += length) {
        char before = at == text ? ' ' : at[-1];
        bool own_word = !isalnum((unsigned char)before) && before != '_' && before != '.' && before != '>' &&
                        before != '"' && before != '*';
        if (own_word && at[length] == '(') {
            return true;
        }
    }
    return false;
}

static void check_memory(const char *source, const char *text)
{
    static const char *const banned[] = {"malloc", "calloc",  "realloc", "free",
                                         "strdup", "strndup", "asprintf"};
    if (strcmp(source, "engine/base/host_mem.c") == 0) {
        return;
    }
    bool given_text =
        strstr(text, "#include <jansson.h>") != NULL; // json_dumps hands out what free takes back
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++) {
        if (given_text && strcmp(banned[i], "free") == 0) {
            continue;
        }
        ck_assert_msg(!calls(text, banned[i]), "%s calls %s; host memory comes from base/host_mem.h", source,
                      banned[i]);
    }
}

static void check_manners(const char *source, const char *text)
{
    static const char *const banned[] = {"printf", "puts",  "putchar", "perror",
                                         "exit",   "abort", "setjmp",  "alloca"};
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++) {
        ck_assert_msg(!calls(text, banned[i]), "%s calls %s; the engine never prints and never exits", source,
                      banned[i]);
    }
}

static void check_licence(const char *source, const char *text)
{
    ck_assert_msg(begins(text, "// SPDX-License-Identifier: Apache-2.0\n"), "%s has no SPDX line", source);
}

// ---- tests ----------------------------------------------------------------------------------------------------

START_TEST(every_include_follows_an_arrow)
{
    sources_seen = 0;
    walk("engine", check_includes);
    walk("app", check_includes);
    ck_assert_uint_gt(sources_seen, 50);
}
END_TEST

START_TEST(wrong_includes_are_noticed)
{
    ck_assert(may_include("engine/ops/conv.c", "base/vec.h", false));
    ck_assert(may_include("engine/device/plan/plan.c", "device/device.h", false));
    ck_assert(may_include("app/cli/plan.c", "headroom/engine.h", false));
    ck_assert(!may_include("engine/ops/conv.c", "memory/allocator.h", false));
    ck_assert(!may_include("engine/base/text.c", "events/ring.h", false));
    ck_assert(!may_include("engine/memory/bfc.c", "program/program.h", false));
    ck_assert(!may_include("engine/device/plan/plan.c", "device_cpu/kernels.h", false));
    ck_assert(!may_include("engine/train/engine.c", "app/command.h", false));
    ck_assert(!may_include("app/tui/shell/loop.c", "memory/allocator.h", false));
    ck_assert(may_include("app/tui/shell/loop.c", "app/tui/term/paint.h", false));
    ck_assert(may_include("app/tui/term/theme.h", "app/tui/base/bands.h", false));
    ck_assert(!may_include("app/tui/term/paint.c", "app/tui/shell/app.h", false));
    ck_assert(!may_include("app/tui/view/table_view.c", "app/tui/shell/requests.h", false));
    ck_assert(may_include("app/tui/screens/pipeline/flow.c", "app/tui/feed/feed.h", false));
    ck_assert(!may_include("app/tui/screens/pipeline/flow.c", "app/tui/shell/app.h", false));
    ck_assert(!may_include("app/tui/screens/pipeline/flow.c", "app/tui/shell/act.h", false));
    ck_assert(!may_include("app/tui/base/format.c", "app/tui/term/paint.h", false));
    ck_assert(!may_include("app/tui/shell/loop.c", "ncurses.h", true));
    ck_assert(!may_include("app/cli/plan.c", "../../engine/base/text.h", false));
    ck_assert(!may_include("app/cli/plan.c", "ncurses.h", true));
    ck_assert(!may_include("engine/train/engine.c", "dnnl.h", true));
    ck_assert(!may_include("engine/model/read.c", "yaml.h", true));
    ck_assert(!may_include("app/tui/shell/loop.c", "lua.h", true));
    ck_assert(may_include("app/tui/shell/loop.c", "stdio.h", true));
}
END_TEST

static bool reaches(const folder *from, const folder *to, unsigned depth)
{
    ck_assert_uint_lt(depth, FOLDERS_MAX);
    for (unsigned i = 0; i < from->known_count; i++) {
        const folder *next = folder_named(from->knows[i], strlen(from->knows[i]));
        ck_assert_msg(next != NULL, "%s knows %s, which is no folder", from->name, from->knows[i]);
        if (next == to || reaches(next, to, depth + 1)) {
            return true;
        }
    }
    return false;
}

START_TEST(arrows_never_run_in_a_circle)
{
    ck_assert_uint_ge(folder_count, 12);
    for (unsigned i = 0; i < folder_count; i++) {
        ck_assert_msg(!reaches(&folders[i], &folders[i], 0), "%s reaches itself", folders[i].name);
    }
    const folder *base = folder_named("base", 4);
    ck_assert(base != NULL && base->known_count == 0);
}
END_TEST

START_TEST(every_engine_folder_is_in_the_build)
{
    DIR *d = opendir("engine");
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "include") != 0) {
            ck_assert_msg(folder_named(entry->d_name, strlen(entry->d_name)) != NULL, "engine/%s",
                          entry->d_name);
        }
    }
    closedir(d);
}
END_TEST

START_TEST(host_memory_has_one_door)
{
    walk("engine", check_memory);
}
END_TEST

START_TEST(engine_never_prints_and_never_exits)
{
    walk("engine", check_manners);
}
END_TEST

START_TEST(every_source_names_its_licence)
{
    walk("engine", check_licence);
    walk("app", check_licence);
    walk("tests", check_licence);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("layers");
    tcase_add_checked_fixture(tests, read_arrows, NULL);
    tcase_add_test(tests, every_include_follows_an_arrow);
    tcase_add_test(tests, wrong_includes_are_noticed);
    tcase_add_test(tests, arrows_never_run_in_a_circle);
    tcase_add_test(tests, every_engine_folder_is_in_the_build);
    tcase_add_test(tests, host_memory_has_one_door);
    tcase_add_test(tests, engine_never_prints_and_never_exits);
    tcase_add_test(tests, every_source_names_its_licence);
    Suite *suite = suite_create("layers");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
