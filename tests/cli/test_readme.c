// SPDX-License-Identifier: Apache-2.0
// Promise: the numbers that README.md shows of plans are those that the program says today. Runs from the top of the source tree.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { TEXT_BYTES = 1 << 17, WORDS_MAX = 512 };

static char readme[TEXT_BYTES];

static void read_readme(void)
{
    FILE *file = fopen("README.md", "r");
    ck_assert_msg(file != NULL, "run from the top of the source tree");
    const size_t bytes = fread(readme, 1, sizeof readme - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(bytes > 0 && bytes < sizeof readme - 1);
    readme[bytes] = '\0';
}

static double number(const json_t *document, const char *object, const char *key)
{
    const json_t *value = json_object_get(json_object_get(document, object), key);
    ck_assert_msg(json_is_number(value), "%s.%s", object, key);
    return json_number_value(value);
}

// ---- the table of what there is to turn -------------------------------------------------------------------------

// Every `KEY=VALUE` of the row's first cell; a row that begins with + is on top of graph.
static void words_of_row(const char *row, char words[WORDS_MAX])
{
    const char *end = strchr(row + 1, '|');
    size_t used = (size_t)snprintf(words, WORDS_MAX, "plan resnet50 --json%s",
                                   row[2] == '+' ? " -s execution.mode=graph" : "");
    const char *at = memchr(row, '`', (size_t)(end - row));
    while (at != NULL && at < end) {
        const size_t length = strcspn(at + 1, "`");
        used += (size_t)snprintf(words + used, WORDS_MAX - used, " -s %.*s", (int)length, at + 1);
        ck_assert_uint_lt(used, WORDS_MAX);
        at = memchr(at + length + 2, '`', (size_t)(end - (at + length + 2)));
    }
}

static void assert_row(const char *row)
{
    char words[WORDS_MAX], cells[160];
    words_of_row(row, words);
    json_t *plan = program_json(words);
    const double gib = 1 << 30;
    (void)snprintf(cells, sizeof cells, "| %.2f GiB | %.2f GiB | %.0f ms |",
                   number(plan, "memory", "peak_in_use_bytes") / gib,
                   number(plan, "memory", "saved_for_backward_bytes") / gib,
                   number(plan, "step", "seconds") * 1e3);
    const char *said = strchr(row + 1, '|');
    ck_assert_msg(strncmp(said, cells, strlen(cells)) == 0, "%s is %s, README.md has %.*s", words, cells,
                  (int)strcspn(said, "\n"), said);
    json_decref(plan);
}

START_TEST(the_table_of_knobs_is_what_they_plan)
{
    int rows = 0;
    const char *row = strstr(readme, "| knobs | peak | kept for backward | step |");
    ck_assert_ptr_nonnull(row);
    row = strchr(strchr(row, '\n') + 1, '\n') + 1;
    for (; *row == '|'; row = strchr(row, '\n') + 1) {
        assert_row(row);
        rows++;
    }
    ck_assert_int_ge(rows, 8);
}
END_TEST

// ---- beside PyTorch ---------------------------------------------------------------------------------------------

static const char as_pytorch[] = "bert_base,execution.as=pytorch,allocator.kind=caching";

// Its other side is what --as pytorch plans, and it names all that is turned.
START_TEST(the_comparison_with_pytorch_is_with_its_allocator)
{
    char words[WORDS_MAX];
    ck_assert_ptr_nonnull(strstr(readme, as_pytorch));
    json_t *plan = program_json("plan bert_base --as pytorch --json");
    (void)snprintf(words, sizeof words, "compare bert_base %s --json", as_pytorch);
    json_t *both = program_json(words);
    const json_t *knobs = json_object_get(both, "knobs");
    ck_assert_uint_eq(json_array_size(knobs), 2);
    size_t k;
    json_t *measure, *peak = NULL;
    json_array_foreach(json_object_get(both, "measures"), k, measure)
    {
        const char *name = json_string_value(json_object_get(measure, "name"));
        peak = strcmp(name, "peak_in_use_bytes") == 0 ? measure : peak;
    }
    ck_assert_ptr_nonnull(peak);
    ck_assert(json_number_value(json_object_get(peak, "b")) == number(plan, "memory", "peak_in_use_bytes"));
    json_decref(both);
    json_decref(plan);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("readme");
    TCase *cases = tcase_create("numbers");
    tcase_set_timeout(cases, 120);
    tcase_add_unchecked_fixture(cases, read_readme, NULL);
    tcase_add_test(cases, the_table_of_knobs_is_what_they_plan);
    tcase_add_test(cases, the_comparison_with_pytorch_is_with_its_allocator);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
