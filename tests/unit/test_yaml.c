// SPDX-License-Identifier: Apache-2.0
// Promises of knobs/yaml.h: a tree with marks out of good files, one exact sentence with a place for each bad one,
// limits that hold, no escape sequence of a stranger on the terminal, and no leak when memory runs out.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "knobs/yaml.h"

static yaml_file *file;
static hr_err err;

static void open_bytes(const char *words, size_t bytes)
{
    ck_assert_int_eq(yaml_open_text("t.yaml", words, bytes, &file, &err), HR_OK);
}

static void open_words(const char *words)
{
    open_bytes(words, strlen(words));
}

static void teardown(void)
{
    yaml_close(file);
    file = NULL;
    ck_assert_int_eq(hr_host_mem_live(), 0);
}

// ---- the tree -------------------------------------------------------------------------------------------------

START_TEST(keys_and_values_carry_their_places)
{
    open_words("a: 1\nb:\n  - x\n  - \"2\"\nc: {d: e}\n");
    const yaml_node *root = yaml_root(file), *b = yaml_find(root, "b"), *c = yaml_find(root, "c");
    ck_assert_int_eq(root->kind, YAML_MAPPING);
    ck_assert_uint_eq(root->count, 3);
    ck_assert_str_eq(root->child->key, "a");
    ck_assert_str_eq(root->child->text, "1");
    ck_assert_uint_eq(root->child->column, 4);
    ck_assert_int_eq(b->kind, YAML_SEQUENCE);
    ck_assert_uint_eq(b->count, 2);
    ck_assert_ptr_null(b->child->key);
    ck_assert(!b->child->quoted && b->child->next->quoted);
    ck_assert_uint_eq(b->child->next->line, 4);
    ck_assert_uint_eq(b->key_line, 2);
    ck_assert_str_eq(yaml_find(c, "d")->text, "e");
    ck_assert_uint_eq(yaml_find(c, "d")->key_column, 5);
    ck_assert_ptr_null(yaml_find(root, "z"));
    ck_assert_int_eq(yaml_status(file, &err), HR_OK);
    ck_assert_str_eq(yaml_name(file), "t.yaml");
}
END_TEST

START_TEST(scalars_stay_as_typed)
{
    open_words("[no, 0x10, 1e3, ~, null, 012, '', on]");
    static const char *const words[] = {"no", "0x10", "1e3", "~", "null", "012", "", "on"};
    const yaml_node *node = yaml_root(file)->child;
    for (size_t i = 0; i < 8; i++, node = node->next) {
        ck_assert_str_eq(node->text, words[i]);
    }
}
END_TEST

START_TEST(an_empty_file_has_no_root_and_no_problem)
{
    open_words("# nothing but a comment\n");
    ck_assert_ptr_null(yaml_root(file));
    ck_assert_uint_eq(yaml_problem_count(file), 0);
}
END_TEST

START_TEST(a_byte_order_mark_and_other_line_ends_do_not_move_marks)
{
    open_words("\xEF\xBB\xBF"
               "a: 1\r\nb: 2\rc: 3\n");
    ck_assert_uint_eq(yaml_find(yaml_root(file), "a")->column, 4);
    ck_assert_uint_eq(yaml_find(yaml_root(file), "b")->line, 2);
    ck_assert_uint_eq(yaml_find(yaml_root(file), "c")->line, 3);
}
END_TEST

START_TEST(a_letter_is_one_column_whatever_its_bytes)
{
    open_words("é: ü\n");
    ck_assert_uint_eq(yaml_root(file)->child->column, 4);
}
END_TEST

// ---- problems -------------------------------------------------------------------------------------------------

static const struct {
    const char *words;
    const char *problems;
} bad[] = {
    {"a: 1\nb: 2\na: 3\n",
     "t.yaml:3:1: key 'a' stands twice in this mapping, on lines 1 and 3\n  a: 3\n  ^\n"},
    {"a: {b: 1, b: 2, b: 3}\n", "t.yaml:1:11: key 'b' stands twice in this mapping, on lines 1 and 1\n"
                                "  a: {b: 1, b: 2, b: 3}\n            ^\n"
                                "t.yaml:1:17: key 'b' stands twice in this mapping, on lines 1 and 1\n"
                                "  a: {b: 1, b: 2, b: 3}\n                  ^\n"},
    {"a:\n\tb: 1\n", "t.yaml:2:1: a tab cannot indent: use spaces\n   b: 1\n  ^\n"},
    {"a: 1\n  b: 2\n",
     "t.yaml:2:4: no 'key: value' can stand here: check the indentation of this line and of the one "
     "above\n    b: 2\n     ^\n"},
    {"a:\n  b: 1\n c: 2\n",
     "t.yaml:3:2: this line does not line up with the keys above it: check its indentation\n   c: 2\n   ^\n"},
    {"a:\n  - 1\n  b: 2\n", "t.yaml:3:3: this line does not line up with the '-' above it: check its "
                            "indentation\n    b: 2\n    ^\n"},
    {"a: [1, 2\nb: 3\n",
     "t.yaml:1:4: this '[' is not closed: needed ',' or ']' behind each item\n  a: [1, 2\n     ^\n"},
    {"a: {b: 2\nc: 3\n", "t.yaml:1:4: this '{' is not closed: needed ',' or '}' behind each value, and "
                         "quotes around text with braces in it\n  a: {b: 2\n     ^\n"},
    {"a: 'b\nc: 3\n", "t.yaml:1:4: this quote is never closed\n  a: 'b\n     ^\n"},
    {"a: 1\nb\n", "t.yaml:2:1: this key has no ':' behind it\n  b\n  ^\n"},
    {"a: @b\n", "t.yaml:1:4: no value can start with this character: quote the text\n  a: @b\n     ^\n"},
    {"a: &x 1\nb: *x\n", "t.yaml:1:4: anchors ('&x') are not used here: write the values out, or use "
                         "'extends'\n  a: &x 1\n     ^\n"
                         "t.yaml:2:4: aliases ('*x') are not used here: write the values out, or use "
                         "'extends'\n  b: *x\n     ^\n"},
    {"a: !!int 3\n",
     "t.yaml:1:4: tags ('tag:yaml.org,2002:int') are not used here: the key says what its value is\n"
     "  a: !!int 3\n     ^\n"},
    {"a: 1\n---\nb: 2\n", "t.yaml:2:1: a second document begins here: a file holds one only\n  ---\n  ^\n"},
    {"%YAML 1.1\n---\na: 1\n", "t.yaml:1:1: directives ('%…') are not used here\n  %YAML 1.1\n  ^\n"},
    {"? [a]\n: 1\n", "t.yaml:1:3: a key must be one word, had a list or a mapping\n  ? [a]\n    ^\n"},
    {"a: \"x\\0y\"\n", "t.yaml:1:4: this text holds a control character, U+0000\n  a: \"x\\0y\"\n     ^\n"},
    {"a: \"\\e[31mx\"\n",
     "t.yaml:1:4: this text holds a control character, U+001B\n  a: \"\\e[31mx\"\n     ^\n"},
    {"\"\\a\": x\n", "t.yaml:1:1: this text holds a control character, U+0007\n  \"\\a\": x\n  ^\n"},
    {"a: \"\\u009bm\"\n",
     "t.yaml:1:4: this text holds a control character, U+009B\n  a: \"\\u009bm\"\n     ^\n"},
    {"ab: caf\xE9\n",
     "t.yaml:1:8: byte 0xE9 at offset 7 is not UTF-8: save the file as UTF-8\n  ab: caf?\n         ^\n"},
    {"é: 1\nb: \xC0\x80\n",
     "t.yaml:2:4: byte 0xC0 at offset 9 is not UTF-8: save the file as UTF-8\n  b: ??\n     ^\n"},
    {"a: \x1b[31m\n",
     "t.yaml:1:4: control character U+001B at offset 3 is not allowed\n  a: ?[31m\n     ^\n"},
};

START_TEST(each_problem_has_its_place_and_sentence)
{
    open_words(bad[_i].words);
    char *problems = yaml_problems_text(file);
    ck_assert_str_eq(problems, bad[_i].problems);
    hr_free(problems);
    ck_assert_int_eq(yaml_status(file, &err), HR_PRESET);
    ck_assert_int_eq(strncmp(bad[_i].problems, err.sentence, strlen(err.sentence)), 0);
    ck_assert_str_eq(err.hint, "headroom config check t.yaml");
}
END_TEST

START_TEST(problems_of_readers_are_sorted_by_place)
{
    open_words("a: 1\nb: 2\n");
    yaml_problem(file, 2, 4, "needs %d", 3);
    yaml_problem(file, 1, 4, "first");
    yaml_problem(file, 2, 4, "behind");
    ck_assert_uint_eq(yaml_problem_count(file), 3);
    char *problems = yaml_problems_text(file);
    ck_assert_str_eq(problems, "t.yaml:1:4: first\n  a: 1\n     ^\nt.yaml:2:4: needs 3\n  b: 2\n     ^\n"
                               "t.yaml:2:4: behind\n  b: 2\n     ^\n");
    hr_free(problems);
}
END_TEST

START_TEST(a_sentence_carries_no_escape_sequence)
{
    open_words("a: x\n");
    yaml_problem(file, 1, 4, "had '%s'", "\x1b[31m\xc2\x9b\n");
    ck_assert_int_eq(yaml_status(file, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence, "t.yaml:1:4: had '?[31m?"
                                   "?'");
}
END_TEST

START_TEST(a_long_line_is_shown_around_the_caret)
{
    char words[2000];
    memset(words, 'x', sizeof words);
    memcpy(words, "a: ", 3);
    memcpy(words + 1000, "Y: ", 3);
    open_bytes(words, sizeof words);
    char *problems = yaml_problems_text(file);
    const char *caret = strchr(problems, '^'), *line = strstr(problems, "\n  x") + 1;
    ck_assert_uint_lt(strlen(problems), 400);
    const char *above = line + (caret - (strchr(line, '\n') + 1));
    ck_assert_int_eq(*above, ':');
    hr_free(problems);
}
END_TEST

START_TEST(only_the_first_problems_are_kept_but_all_are_counted)
{
    open_words("a: 1\n");
    for (unsigned i = 0; i < 1000; i++) {
        yaml_problem(file, 1, 1, "problem %u", i);
    }
    char *problems = yaml_problems_text(file);
    ck_assert_uint_eq(yaml_problem_count(file), 1000);
    ck_assert_ptr_nonnull(strstr(problems, "t.yaml: and 936 more\n"));
    hr_free(problems);
}
END_TEST

// ---- limits ---------------------------------------------------------------------------------------------------

START_TEST(sixteen_levels_are_read_and_seventeen_refused)
{
    open_words("[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]");
    ck_assert_uint_eq(yaml_problem_count(file), 0);
    yaml_close(file);
    open_words("[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]");
    ck_assert_int_eq(yaml_status(file, &err), HR_PRESET);
    ck_assert_str_eq(err.sentence, "t.yaml:1:17: nested more than 16 deep");
    ck_assert_ptr_null(yaml_root(file));
}
END_TEST

static char *repeated(const char *head, const char *piece, size_t count)
{
    size_t length = strlen(piece);
    char *words = malloc(strlen(head) + length * count + 1);
    strcpy(words, head);
    for (size_t i = 0; i < count; i++) {
        memcpy(words + strlen(head) + i * length, piece, length + 1);
    }
    return words;
}

START_TEST(a_mebibyte_is_read_and_a_byte_more_refused)
{
    char *words = repeated("# ", "x", (1 << 20) - 1);
    ck_assert_int_eq(yaml_open_text("t.yaml", words, (1 << 20) + 1, &file, &err), HR_READ);
    ck_assert_ptr_null(file);
    open_bytes(words, 1 << 20);
    free(words);
}
END_TEST

// Each of these is a mebibyte that would take a quadratic reader, or an unbounded tree, far too much.
START_TEST(hostile_files_end_early)
{
    static const struct {
        const char *head, *piece;
    } hostile[] = {{"", "["},      {"", "- "},   {"", "? "},   {"[", "a,"},
                   {"", "a: 1\n"}, {"a: ", "x"}, {"{", "{a: "}};
    char *words = repeated(hostile[_i].head, hostile[_i].piece, (1 << 20) / strlen(hostile[_i].piece) - 8);
    ck_assert_int_eq(yaml_open_text("t.yaml", words, strlen(words), &file, &err), HR_OK);
    free(words);
}
END_TEST

START_TEST(a_missing_file_is_a_read_error)
{
    ck_assert_int_eq(yaml_open("/nowhere/at/all.yaml", &file, &err), HR_READ);
    ck_assert_ptr_null(file);
}
END_TEST

// ---- faults ---------------------------------------------------------------------------------------------------

START_TEST(every_allocation_may_fail)
{
    static const char words[] = "a: 1\nb: [x, {c: d}]\na: 2\ne: &f g\n";
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        char *problems = NULL;
        hr_host_mem_fail_at(nth);
        hr_status status = yaml_open_text("t.yaml", words, sizeof words - 1, &file, &err);
        if (status == HR_OK) {
            status = yaml_status(file, &err);
            problems = yaml_problems_text(file);
        }
        failed = hr_host_mem_fail_at(0) >= nth;
        ck_assert_int_eq(status, status == HR_NOMEM ? HR_NOMEM : HR_PRESET);
        ck_assert(!failed || status == HR_NOMEM || problems == NULL);
        hr_free(problems);
        yaml_close(file);
        file = NULL;
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

START_TEST(any_cut_and_any_changed_byte_is_read_or_refused)
{
    static const char words[] =
        "title: \"a\\tb\"\nbatch: {size: 3, 'x': [1, 2]}\nlist:\n  - a: |\n      é\n  - b\n";
    char copy[sizeof words];
    for (size_t length = 0; length < sizeof words; length++) {
        open_bytes(words, length);
        yaml_close(file);
    }
    srand((unsigned)_i + 1);
    for (int round = 0; round < 200; round++) {
        memcpy(copy, words, sizeof words);
        for (int k = 0; k < 3; k++) {
            copy[(size_t)rand() % (sizeof words - 1)] = (char)rand();
        }
        open_bytes(copy, sizeof words - 1);
        char *problems = yaml_problems_text(file);
        ck_assert((problems[0] != '\0') == (yaml_problem_count(file) > 0));
        hr_free(problems);
        yaml_close(file);
    }
    file = NULL;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("yaml");
    TCase *tc = tcase_create("tree, problems, limits, faults");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_test(tc, keys_and_values_carry_their_places);
    tcase_add_test(tc, scalars_stay_as_typed);
    tcase_add_test(tc, an_empty_file_has_no_root_and_no_problem);
    tcase_add_test(tc, a_byte_order_mark_and_other_line_ends_do_not_move_marks);
    tcase_add_test(tc, a_letter_is_one_column_whatever_its_bytes);
    tcase_add_loop_test(tc, each_problem_has_its_place_and_sentence, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, problems_of_readers_are_sorted_by_place);
    tcase_add_test(tc, a_sentence_carries_no_escape_sequence);
    tcase_add_test(tc, a_long_line_is_shown_around_the_caret);
    tcase_add_test(tc, only_the_first_problems_are_kept_but_all_are_counted);
    tcase_add_test(tc, sixteen_levels_are_read_and_seventeen_refused);
    tcase_add_test(tc, a_mebibyte_is_read_and_a_byte_more_refused);
    tcase_add_loop_test(tc, hostile_files_end_early, 0, 7);
    tcase_add_test(tc, a_missing_file_is_a_read_error);
    tcase_add_test(tc, every_allocation_may_fail);
    tcase_add_loop_test(tc, any_cut_and_any_changed_byte_is_read_or_refused, 0, 5);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
