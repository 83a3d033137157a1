// SPDX-License-Identifier: Apache-2.0
// Every word that stands on a screen as a name is in the glossary, whichever pane it stands in: nothing is listed here,
// so that a new pane, column, counter or footer word is looked at without being told of.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/feed/run_export.h"
#include "app/tui/shell/panes.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static bool is_term(const char *word)
{
    return hr_term_find(word) != NULL;
}

// A label begins with what it counts: "peak since start" is a peak.
static bool begins_with_term(const char *label)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(label, " "), label);
    return is_term(label) || is_term(word);
}

START_TEST(every_title_heading_and_help_word_of_every_pane_is_a_term)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 20);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        const pane_ops *ops = pane_ops_of((pane_id)pane);
        a->focus = (pane_id)pane;
        ck_assert_msg(begins_with_term(pane_title((pane_id)pane)), "title %s", pane_title((pane_id)pane));
        const pane_view v = pane_view_of(a, (pane_id)pane);
        const char *of_row = ops->term_of_row == NULL ? NULL : ops->term_of_row(&v);
        ck_assert(of_row == NULL || is_term(of_row));
        const char *term = ops->term;
        if (term != NULL) {
            ck_assert_msg(is_term(term), "? of %s: %s", pane_title((pane_id)pane), term);
        }
        for (unsigned i = 0; ops->table != NULL && i < ops->table->column_count; i++) {
            ck_assert_msg(is_term(ops->table->columns[i].term), "%s: heading %s", pane_title((pane_id)pane),
                          ops->table->columns[i].term);
        }
    }
    screen_close(a);
}
END_TEST

START_TEST(help_explains_the_column_that_a_table_is_sorted_by)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 20);
    app_show_screen(a, SCREEN_RUNS);
    const table_source *s = pane_ops_of(PANE_RUNS)->table;
    for (int column = TABLE_OWN_ORDER; column < (int)s->column_count; column++) {
        char begins[64];
        a->table[PANE_RUNS].sort = column;
        snprintf(begins, sizeof begins,
                 "\n%s: ", column < 0 ? pane_title(PANE_RUNS) : s->columns[column].term);
        screen_keys(a, "?");
        char *text = screen_text(a);
        for (char *at = strstr(text, "\n "); at != NULL; at = strstr(at, "\n ")) {
            memmove(at + 1, at + 2, strlen(at + 1)); // the blank that help begins with
        }
        ck_assert_msg(strstr(text, begins) != NULL, "%s is not in\n%s", begins, text);
        free(text);
        screen_keys(a, "?");
    }
    screen_close(a);
}
END_TEST

START_TEST(every_counter_and_every_measure_is_a_term)
{
    for (int id = 0; id < COUNTER_COUNT; id++) {
        ck_assert_msg(is_term(counter_term((counter_id)id)), "%s", counter_term((counter_id)id));
        ck_assert_msg(begins_with_term(counter_label((counter_id)id)), "%s", counter_label((counter_id)id));
    }
    for (int id = 0; id < MEASURE_ALL; id++) {
        ck_assert_msg(is_term(measure_row_of((measure_id)id)->term), "%s",
                      measure_row_of((measure_id)id)->term);
    }
}
END_TEST

START_TEST(every_result_of_a_run_is_a_term)
{
    for (int result = RUN_RUNNING; result <= RUN_FAILED; result++) {
        ck_assert_msg(is_term(run_result_name((run_result)result)), "%s",
                      run_result_name((run_result)result));
    }
}
END_TEST

static void check_keys(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t k;
    if (json_is_array(value)) {
        json_array_foreach(value, k, member)
        {
            check_keys(member);
        }
        return;
    }
    json_object_foreach((json_t *)(size_t)value, key, member)
    {
        ck_assert_msg(is_term(key), "no term %s", key);
        if (strcmp(key, "knobs") != 0) { // those are explained by the table of knobs
            check_keys(member);
        }
    }
}

START_TEST(every_field_of_exported_runs_is_a_term)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 20);
    app_key(a, '<');
    screen_advance(a, 20);
    memcpy(a->feed.runs.runs[0].preset, "a\"\xe4\\\n\xc3\xa9",
           sizeof "a\"\xe4\\\n\xc3\xa9"); // a file may be called so
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert(run_export_json(&a->feed.runs, out));
    fclose(out);
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(document);
    ck_assert_uint_eq(json_array_size(json_object_get(document, "runs")), 2);
    check_keys(document);
    const json_t *first = json_array_get(json_object_get(document, "runs"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "preset")), "a\"\xef\xbf\xbd\\\n\xc3\xa9");
    json_decref(document);
    free(text);
    out = open_memstream(&text, &size);
    ck_assert(run_export_csv(&a->feed.runs, out));
    fclose(out);
    *strchr(text, '\n') = '\0';
    for (char *rest = text, *word; (word = strtok_r(rest, ",", &rest)) != NULL;) {
        ck_assert_msg(is_term(word), "no term %s", word);
    }
    free(text);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui words", every_title_heading_and_help_word_of_every_pane_is_a_term,
           help_explains_the_column_that_a_table_is_sorted_by, every_counter_and_every_measure_is_a_term,
           every_result_of_a_run_is_a_term, every_field_of_exported_runs_is_a_term)
