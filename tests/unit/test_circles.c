// SPDX-License-Identifier: Apache-2.0
// Circles of files: one calls into another that calls back, so that neither is understood without the other. Read off
// the build's own object files, as the linker sees them; those that remain are named here, each with its reason.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 1024, NAME_TEXT = 96, SYMBOL_TEXT = 128, SYMBOLS_MAX = 65536, FILES_WANTED = 150 };

// A circle is known by any of its files; a circle of other files than these is a finding, and so is a row that none needs.
static const struct {
    const char *file, *why;
} named[] = {
    {"engine/device/cpu/half",
     "a tile of a two-byte operation runs the float32 kernel that the table picks for it"},
    {"engine/device/cpu/half_multiply",
     "a staged product loads its panels and ends its passes as a plain one"},
    {"engine/device/cuda/capture", "a step is captured by issuing it"},
    {"engine/device/cuda/graph", "choosing an engine asks the library that plans with it"},
    {"engine/formats/pickle", "a machine and its instructions"},
    {"engine/formats/tensorflow_log", "the last kind that is tried refuses in the name of all of them"},
    {"engine/memory/caching_pools",
     "PyTorch's ladder: what is freed on the way down goes back to the pools it came from"},
    {"tui/shell/app",
     "the shell: what a key asks for may draw, and what is drawn says what can be asked for"},
};

typedef struct symbol {
    char name[SYMBOL_TEXT];
    uint16_t file;
} symbol;

static char files[FILES_MAX][NAME_TEXT];
static unsigned file_count;
static bool calls[FILES_MAX][FILES_MAX];
static symbol *defined, *wanted;
static size_t defined_count, wanted_count;

// Objects of files that are no more lie in a build folder for long.
static bool has_source(const char *name)
{
    char path[NAME_TEXT + 8];
    (void)snprintf(path, sizeof path, "%s.c", name);
    const bool engine = access(path, R_OK) == 0;
    (void)snprintf(path, sizeof path, "app/%s.c", name);
    return engine || access(path, R_OK) == 0;
}

// ".../hr_train.dir/engine/train/save.c.o" is "engine/train/save". FILES_MAX: its source is no more.
static unsigned file_named(const char *object, size_t length)
{
    char name[NAME_TEXT] = "";
    const char *start = strstr(object, ".dir/");
    ck_assert_ptr_nonnull(start);
    start += strlen(".dir/");
    size_t left = length - (size_t)(start - object);
    const char *end = memchr(start, '.', left);
    left = end == NULL ? left : (size_t)(end - start);
    ck_assert_uint_lt(left, sizeof name);
    memcpy(name, start, left);
    if (file_count > 0 && strcmp(files[file_count - 1], name) == 0) {
        return file_count - 1;
    }
    if (!has_source(name)) {
        return FILES_MAX;
    }
    for (unsigned k = 0; k < file_count; k++) {
        if (strcmp(files[k], name) == 0) {
            return k;
        }
    }
    ck_assert_uint_lt(file_count, FILES_MAX);
    memcpy(files[file_count], name, sizeof name);
    return file_count++;
}

static void keep(symbol *table, size_t *count, const char *name, unsigned file)
{
    ck_assert_uint_lt(*count, SYMBOLS_MAX);
    (void)snprintf(table[*count].name, SYMBOL_TEXT, "%s", name);
    table[(*count)++].file = (uint16_t)file;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const symbol *)a)->name, ((const symbol *)b)->name);
}

// Lines of nm -A: "object:address T name" of what is defined, "object:  U name" of what is wanted.
static void read_objects(void)
{
    FILE *nm =
        popen("find '" BUILD_FOLDER "' -path '*/hr_*.dir/*' -name '*.o' -print0 | xargs -0 nm -A", "r");
    char line[1024];
    ck_assert_ptr_nonnull(nm);
    while (fgets(line, sizeof line, nm) != NULL) {
        char *colon = strchr(line, ':'), kind = '\0', name[SYMBOL_TEXT];
        if (colon == NULL || (sscanf(colon + 1, "%*x %c %127s", &kind, name) != 2 &&
                              sscanf(colon + 1, " %c %127s", &kind, name) != 2)) {
            continue;
        }
        const unsigned file = file_named(line, (size_t)(colon - line));
        if (file == FILES_MAX) {
            continue;
        }
        if (kind == 'U') {
            keep(wanted, &wanted_count, name, file);
        } else if (strchr("TDBR", kind) != NULL) {
            keep(defined, &defined_count, name, file);
        }
    }
    ck_assert_int_eq(pclose(nm), 0);
}

static void link_files(void)
{
    qsort(defined, defined_count, sizeof *defined, by_name);
    for (size_t k = 0; k < wanted_count; k++) {
        const symbol *of = bsearch(&wanted[k], defined, defined_count, sizeof *defined, by_name);
        if (of != NULL && of->file != wanted[k].file) {
            calls[wanted[k].file][of->file] = true;
        }
    }
}

static void setup(void)
{
    defined = calloc(SYMBOLS_MAX, sizeof *defined);
    wanted = calloc(SYMBOLS_MAX, sizeof *wanted);
    ck_assert(defined != NULL && wanted != NULL);
    read_objects();
    link_files();
}

static void teardown(void)
{
    free(defined);
    free(wanted);
}

// Marks what can be reached from `from`, along the calls or against them.
static void reach(unsigned from, bool back, bool *reached)
{
    for (unsigned to = 0; to < file_count; to++) {
        if ((back ? calls[to][from] : calls[from][to]) && !reached[to]) {
            reached[to] = true;
            reach(to, back, reached);
        }
    }
}

static bool is_row(size_t n, const char *file)
{
    const size_t length = strlen(named[n].file);
    return named[n].file[length - 1] == '/' ? strncmp(file, named[n].file, length) == 0
                                            : strcmp(file, named[n].file) == 0;
}

static bool is_justified(const char *file, bool *needed)
{
    bool found = false;
    for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
        found |= is_row(n, file);
        needed[n] |= is_row(n, file);
    }
    return found;
}

// The circle of `file`, if it is in one, has a row; otherwise its files are listed.
static void check_circle(unsigned file, bool *needed)
{
    bool onward[FILES_MAX] = {false}, back[FILES_MAX] = {false}, justified = false;
    reach(file, false, onward);
    if (!onward[file]) {
        return;
    }
    reach(file, true, back);
    for (unsigned k = 0; k < file_count; k++) {
        justified |= onward[k] && back[k] && is_justified(files[k], needed);
    }
    for (unsigned k = 0; k < file_count && !justified; k++) {
        if (onward[k] && back[k]) {
            fprintf(stderr, "%s\n", files[k]);
        }
    }
    ck_assert_msg(justified, "a circle of files that has no row, listed above");
}

START_TEST(files_call_in_one_direction)
{
    bool needed[sizeof named / sizeof *named] = {false};
    ck_assert_uint_gt(file_count, FILES_WANTED);
    for (unsigned k = 0; k < file_count; k++) {
        check_circle(k, needed);
    }
    for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
        ck_assert_msg(needed[n], "%s is in no circle any more: take its row away", named[n].file);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("circles");
    TCase *c = tcase_create("circles");
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_add_test(c, files_call_in_one_direction);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
