// SPDX-License-Identifier: Apache-2.0
// Promises of the manual: every command, option, knob, layer, term and name of Lua stands in it, its source is one that roff
// reads as it was meant, and the pages below docs/ say what the program says.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { NAME_TEXT = 128, PAGE_BYTES = 1 << 20 };

static outcome print_page(const char *file)
{
    char words[NAME_TEXT + 8];
    (void)snprintf(words, sizeof words, "manual %s", file);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    return o;
}

static void each_page(void (*see)(const char *file, const char *text))
{
    outcome list = program_run("manual");
    char *rest = NULL;
    unsigned count = 0;
    assert_exit(&list, "manual", 0);
    for (char *line = strtok_r(list.out, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char file[NAME_TEXT];
        if (line[0] == ' ') {
            continue;
        }
        ck_assert_int_eq(sscanf(line, "%127s", file), 1);
        outcome page = print_page(file);
        see(file, page.out);
        outcome_deinit(&page);
        count++;
    }
    ck_assert_uint_gt(count, 15);
    outcome_deinit(&list);
}

// ---- its source -----------------------------------------------------------------------------------------------

static bool is_macro(const char *line)
{
    static const char *const macros[] = {".TH ",  ".SH ",  ".SS ",  ".PP\n", ".TP\n", ".br\n",
                                         ".nf\n", ".fi\n", ".RS\n", ".RE\n", ".BR "};
    for (size_t k = 0; k < sizeof macros / sizeof *macros; k++) {
        if (strncmp(line, macros[k], strlen(macros[k])) == 0) {
            return true;
        }
    }
    return false;
}

static void check_source(const char *file, const char *text)
{
    ck_assert_msg(strncmp(text, ".TH ", 4) == 0, "%s begins with its title", file);
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        ck_assert_msg(*line != '\'' && (*line != '.' || is_macro(line)), "%s: %.40s", file, line);
    }
    for (const char *c = strchr(text, '\\'); c != NULL; c = strchr(c + 2, '\\')) {
        ck_assert_msg(strchr("-ef(&", c[1]) != NULL, "%s: an escape that nobody wrote: %.20s", file, c);
    }
}

START_TEST(every_page_is_plain_text_between_macros)
{
    each_page(check_source);
}
END_TEST

// ---- what stands in it ----------------------------------------------------------------------------------------

// The page's words as they are read: escapes undone.
static char *plain(const char *text)
{
    char *out = malloc(strlen(text) + 1), *to = out;
    ck_assert_ptr_nonnull(out);
    for (const char *c = text; *c != '\0'; c++) {
        if (c[0] == '\\' && c[1] == '-') {
            *to++ = *++c;
        } else if (c[0] == '\\' && c[1] == 'f') {
            c += 2;
        } else {
            *to++ = *c;
        }
    }
    *to = '\0';
    return out;
}

static void assert_item(const char *page, const char *name)
{
    char line[NAME_TEXT];
    (void)snprintf(line, sizeof line, "\n%s\n", name);
    ck_assert_msg(strstr(page, line) != NULL, "the manual has no '%s'", name);
}

// Every name that `words`, a list in JSON, has under `key` is an item of the page.
static void assert_names(const char *words, const char *key, const char *file)
{
    outcome list = program_run(words);
    outcome page = print_page(file);
    json_t *rows = assert_json(&list, words);
    char *text = plain(page.out);
    size_t k = 0;
    json_t *row = NULL;
    ck_assert_uint_gt(json_array_size(rows), 20);
    json_array_foreach(rows, k, row)
    {
        assert_item(text, json_string_value(json_object_get(row, key)));
    }
    free(text);
    json_decref(rows);
    outcome_deinit(&list);
    outcome_deinit(&page);
}

START_TEST(every_knob_and_every_term_has_its_paragraph)
{
    assert_names("knobs --json", "key", "headroom-presets.5");
    assert_names("terms --json", "name", "headroom-terms.7");
}
END_TEST

// The page of a command has each option that its help has: "  -s, --set KEY=VALUE   turn a knob".
static void check_options(const char *file, const char *text)
{
    char command[NAME_TEXT] = "", words[NAME_TEXT + 4];
    if (strstr(file, ".1") == NULL || sscanf(file, "headroom-%127[a-z]", command) != 1) {
        return;
    }
    (void)snprintf(words, sizeof words, "%s -h", command);
    outcome help = program_run(words);
    char *page = plain(text);
    assert_exit(&help, words, 0);
    for (const char *at = strstr(help.out, "\n  "); at != NULL; at = strstr(at + 1, "\n  ")) {
        char option[NAME_TEXT];
        const char *dashes = strstr(at, "--");
        const char *end = dashes == NULL ? NULL : strpbrk(dashes, " \n");
        if ((at[3] == '-' || strncmp(at, "\n      --", 9) == 0) && end != NULL) {
            (void)snprintf(option, sizeof option, "%.*s", (int)(end - dashes), dashes);
            ck_assert_msg(strstr(page, option) != NULL, "%s has no %s", file, option);
        }
    }
    free(page);
    outcome_deinit(&help);
}

START_TEST(every_option_of_a_command_stands_on_its_page)
{
    each_page(check_options);
}
END_TEST

START_TEST(layers_and_names_of_lua_have_their_paragraphs)
{
    outcome presets = print_page("headroom-presets.5"), lua = print_page("headroom-lua.3");
    char *text = plain(presets.out);
    assert_item(text, "conv2d");
    assert_item(text, "attention");
    ck_assert_ptr_nonnull(strstr(text, "kernel:\nN or [height, width], 1 to 65535 (needed)"));
    ck_assert_ptr_nonnull(strstr(text, "padding:\nsame, valid or N, 0 to 65535; default valid"));
    free(text);
    text = plain(lua.out);
    assert_item(text, ".SS hr.plan({steps = N, knob = value, …})");
    assert_item(text, ".SS hr.args");
    free(text);
    outcome_deinit(&presets);
    outcome_deinit(&lua);
}
END_TEST

// ---- docs/ ----------------------------------------------------------------------------------------------------

static const struct {
    const char *file, *words;
    const char *begins; // where the program's words begin
} pages[] = {{"docs/knobs.md", "knobs --markdown", "\n\n| "},
             {"docs/terms.md", "terms --markdown", "\n\n| "},
             {"docs/lua.md", "script --markdown", "\n\nA recipe is "},
             {"scripts/recipes/library/hr.lua", "script --stub", NULL}};

START_TEST(published_pages_are_current)
{
    char *text = calloc(1, PAGE_BYTES);
    FILE *file = fopen(pages[_i].file, "r");
    outcome now = program_run(pages[_i].words);
    assert_exit(&now, pages[_i].words, 0);
    ck_assert_msg(file != NULL && text != NULL, "%s: run scripts/dev/pages", pages[_i].file);
    ck_assert_uint_lt(fread(text, 1, PAGE_BYTES - 1, file), PAGE_BYTES - 1);
    const char *said = pages[_i].begins == NULL ? text : strstr(text, pages[_i].begins);
    ck_assert_ptr_nonnull(said);
    ck_assert_msg(strcmp(pages[_i].begins == NULL ? said : said + 2, now.out) == 0,
                  "%s is not what the program says: run scripts/dev/pages", pages[_i].file);
    fclose(file);
    free(text);
    outcome_deinit(&now);
}
END_TEST

// The twelve lines of a step that ARCHITECTURE.md explains are those that the program prints.
START_TEST(the_listing_that_is_explained_is_current)
{
    char *text = calloc(1, PAGE_BYTES);
    FILE *file = fopen("ARCHITECTURE.md", "r");
    const char *words = "plan mlp -s device.kind=plan -s execution.mode=graph --listing";
    outcome now = program_run(words);
    unsigned count = 0;
    assert_exit(&now, words, 0);
    ck_assert(file != NULL && text != NULL);
    ck_assert_uint_lt(fread(text, 1, PAGE_BYTES - 1, file), PAGE_BYTES - 1);
    char *at = strstr(text, words);
    at = at == NULL ? NULL : strstr(at, "\n```\n");
    ck_assert_msg(at != NULL, "ARCHITECTURE.md shows no listing of headroom %s", words);
    char *end = strstr(at + 5, "\n```\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    char *rest = NULL;
    for (char *line = strtok_r(at + 5, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_msg(strstr(now.out, line) != NULL, "ARCHITECTURE.md: the listing has no line %s", line);
        count++;
    }
    ck_assert_uint_eq(count, 12);
    fclose(file);
    free(text);
    outcome_deinit(&now);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manual");
    TCase *tcase = tcase_create("manual");
    tcase_add_unchecked_fixture(tcase, NULL, program_remove_home);
    tcase_add_test(tcase, every_page_is_plain_text_between_macros);
    tcase_add_test(tcase, every_knob_and_every_term_has_its_paragraph);
    tcase_add_test(tcase, every_option_of_a_command_stands_on_its_page);
    tcase_add_test(tcase, layers_and_names_of_lua_have_their_paragraphs);
    tcase_add_loop_test(tcase, published_pages_are_current, 0, sizeof pages / sizeof *pages);
    tcase_add_test(tcase, the_listing_that_is_explained_is_current);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
