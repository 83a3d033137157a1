// SPDX-License-Identifier: Apache-2.0
// A table's order: by what it asks of its source, and with the same rows followed and marked when they move.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/panes.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

// ---- a source that counts what it is asked --------------------------------------------------------------------

enum { ROWS = 200 };

static size_t asked[ROWS];
static uint64_t rows_version;

static size_t all_rows(const void *of)
{
    (void)of;
    return ROWS;
}

// Two times a hundred names, the larger ones first.
static void name_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    (void)of;
    (void)column;
    asked[row]++;
    snprintf(text, TABLE_CELL_MAX, "%s_%02zu", row % 2 == 0 ? "Layer" : "grad", 99 - row / 2);
}

static uint64_t version(const void *of)
{
    (void)of;
    return rows_version;
}

static const table_column columns[] = {{.term = "tensor"}};
static const table_source names = {
    .columns = columns, .column_count = 1, .count = all_rows, .cell = name_cell, .version = version};

static size_t most_asked(size_t *sum)
{
    size_t most = 0;
    *sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        most = asked[i] > most ? asked[i] : most;
        *sum += asked[i];
    }
    memset(asked, 0, sizeof asked);
    return most;
}

static const char *text_at(const table_view *v, size_t at)
{
    static char text[TABLE_CELL_MAX];
    name_cell(NULL, v->order[at], 0, text);
    return text;
}

static void ck_sorted(const table_view *v, int direction)
{
    char before[TABLE_CELL_MAX];
    for (size_t i = 1; i < v->count; i++) {
        snprintf(before, sizeof before, "%s", text_at(v, i - 1));
        ck_assert_msg(strcasecmp(before, text_at(v, i)) * direction <= 0, "%s, %s", before, text_at(v, i));
    }
}

START_TEST(a_sort_by_text_asks_for_each_cell_once)
{
    table_view v;
    size_t sum;
    table_view_init(&v);
    v.sort = 0;
    table_settle(&v, &names, NULL);
    ck_assert_uint_eq(most_asked(&sum), 1);
    ck_assert_uint_eq(v.count, ROWS);
    ck_assert_str_eq(text_at(&v, 0), "grad_00");
    ck_assert_str_eq(text_at(&v, ROWS - 1), "Layer_99");
    ck_sorted(&v, 1);
    table_reverse(&v);
    table_settle(&v, &names, NULL);
    ck_sorted(&v, -1);
    table_view_deinit(&v);
}
END_TEST

START_TEST(a_filter_that_grows_looks_at_what_is_left)
{
    table_view v;
    size_t sum;
    table_view_init(&v);
    v.sort = 0;
    table_settle(&v, &names, NULL);
    table_set_filter(&v, "g");
    table_settle(&v, &names, NULL);
    ck_assert_uint_eq(v.count, ROWS / 2);
    most_asked(&sum);
    table_set_filter(&v, "GRAD_1");
    table_settle(&v, &names, NULL);
    most_asked(&sum);
    ck_assert_uint_eq(sum, ROWS / 2); // none of the layers, and nothing is sorted again
    ck_assert_uint_eq(v.count, 10);
    ck_sorted(&v, 1);
    table_set_filter(&v, "g"); // shorter: all of them
    table_settle(&v, &names, NULL);
    ck_assert_uint_eq(v.count, ROWS / 2);
    ck_sorted(&v, 1);
    table_view_deinit(&v);
}
END_TEST

// What is typed step by step finds what it finds at once, whatever it means as a regular expression.
START_TEST(a_filter_shows_the_same_however_it_was_typed)
{
    static const char *const filters[] = {"grad_1", "grad_1|layer_2", "!grad", "lay.*9$", "_0*",
                                          "l(",     "9?_1",           ""};
    for (size_t k = 0; k < sizeof filters / sizeof *filters; k++) {
        table_view typed, at_once;
        table_view_init(&typed);
        table_view_init(&at_once);
        typed.sort = at_once.sort = 0;
        typed.reversed = at_once.reversed = k % 2 == 1;
        for (size_t length = 0; length <= strlen(filters[k]); length++) {
            char filter[TABLE_FILTER_MAX];
            snprintf(filter, sizeof filter, "%.*s", (int)length, filters[k]);
            table_set_filter(&typed, filter);
            rows_version += length == 3; // rows may change in between
            table_settle(&typed, &names, NULL);
        }
        table_set_filter(&at_once, filters[k]);
        table_settle(&at_once, &names, NULL);
        ck_assert_msg(typed.count == at_once.count, "'%s'", filters[k]);
        for (size_t i = 0; i < typed.count; i++) {
            ck_assert_uint_eq(typed.order[i], at_once.order[i]);
        }
        table_view_deinit(&typed);
        table_view_deinit(&at_once);
    }
}
END_TEST

// ---- rows that move -------------------------------------------------------------------------------------------

static const char *name_at(const app *a, pane_id pane, char text[TABLE_CELL_MAX])
{
    pane_ops_of(pane)->table->cell(pane_rows(a, pane), table_selected(&a->table[pane]), 0, text);
    return text;
}

// The row under the cursor is followed and marked, then its neighbour takes its place.
static void ck_stays(app *a, pane_id pane, void (*swap)(app *a, size_t one, size_t other))
{
    char before[TABLE_CELL_MAX], after[TABLE_CELL_MAX];
    table_view *v = &a->table[pane];
    a->focus = pane;
    table_move(v, pane_ops_of(pane)->table, pane_rows(a, pane), 1);
    app_key(a, 'f');
    app_key(a, 't');
    ck_assert_uint_eq(v->marks, 1);
    name_at(a, pane, before);
    const uint64_t marked = v->marked[0];
    const size_t row = table_selected(v);
    swap(a, row, row + 1);
    table_settle(v, pane_ops_of(pane)->table, pane_rows(a, pane));
    ck_assert_str_eq(name_at(a, pane, after), before);
    ck_assert_uint_eq(table_selected(v), row + 1);
    ck_assert_uint_eq(pane_ops_of(pane)->table->key(pane_rows(a, pane), row + 1), marked);
}

static void swap_tensors(app *a, size_t one, size_t other)
{
    hr_report_tensor *t = a->feed.report.memory.at_peak.tensors, held = t[one];
    ck_assert_uint_lt(other, a->feed.report.memory.at_peak.tensor_count);
    t[one] = t[other];
    t[other] = held;
    a->feed.report_version++;
}

static void swap_layers(app *a, size_t one, size_t other)
{
    hr_step_plan_layer *l = a->feed.step_plan.layers, held = l[one];
    ck_assert_uint_lt(other, a->feed.step_plan.layer_count);
    l[one] = l[other];
    l[other] = held;
    a->feed.step_plan_version++;
}

START_TEST(follow_and_mark_stay_with_the_tensor_at_the_peak)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 60);
    free(screen_text(a));
    ck_stays(a, PANE_PEAK, swap_tensors);
    screen_close(a);
}
END_TEST

START_TEST(follow_and_mark_stay_with_the_layer)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 60);
    fake_step_plan_show(a);
    screen_keys(a, "8");
    free(screen_text(a));
    ck_stays(a, PANE_LAYERS, swap_layers);
    screen_close(a);
}
END_TEST

START_TEST(tensors_of_one_name_have_keys_of_their_own)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 60);
    free(screen_text(a));
    hr_report_tensor *t = a->feed.report.memory.at_peak.tensors;
    snprintf(t[1].name, sizeof t[1].name, "%s", t[0].name);
    const table_source *s = pane_ops_of(PANE_PEAK)->table;
    ck_assert_uint_ne(s->key(pane_rows(a, PANE_PEAK), 0), s->key(pane_rows(a, PANE_PEAK), 1));
    screen_close(a);
}
END_TEST

// ---- what was seen --------------------------------------------------------------------------------------------

// Rows that come and go: each is known by its key, which is what its cell says.
typedef struct moving {
    uint64_t keys[64];
    size_t count;
    uint64_t version;
} moving;

static size_t moving_count(const void *of)
{
    return ((const moving *)of)->count;
}

static uint64_t moving_key(const void *of, size_t row)
{
    return ((const moving *)of)->keys[row];
}

static void moving_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    (void)column;
    snprintf(text, TABLE_CELL_MAX, "%llu", (unsigned long long)moving_key(of, row));
}

static uint64_t moving_version(const void *of)
{
    return ((const moving *)of)->version;
}

static const table_source moving_rows = {.columns = columns,
                                         .column_count = 1,
                                         .count = moving_count,
                                         .cell = moving_cell,
                                         .key = moving_key,
                                         .version = moving_version};

static void shuffle(moving *m, unsigned *seed)
{
    const size_t at = (size_t)rand_r(seed) % (m->count + 1);
    m->version++;
    if (m->count < 64 && rand_r(seed) % 3 > 0) {
        memmove(&m->keys[at + 1], &m->keys[at], (m->count - at) * sizeof *m->keys);
        m->keys[at] = m->version + 1000;
        m->count++;
    } else if (at < m->count) {
        memmove(&m->keys[at], &m->keys[at + 1], (m->count - at - 1) * sizeof *m->keys);
        m->count--;
    }
}

static bool has_key(const moving *m, uint64_t key)
{
    bool found = false;
    for (size_t i = 0; i < m->count; i++) {
        found = found || m->keys[i] == key;
    }
    return found;
}

START_TEST(what_is_acted_upon_is_the_row_that_was_seen)
{
    moving m = {.keys = {1, 2, 3, 4, 5}, .count = 5};
    table_view v;
    table_view_init(&v);
    unsigned seed = 7, gone = 0;
    for (int round = 0; round < 2000; round++) {
        table_move(&v, &moving_rows, &m, rand_r(&seed) % 9 - 4);
        const size_t row = table_selected(&v);
        const uint64_t seen = row == SIZE_MAX ? 0 : m.keys[row];
        for (int changes = rand_r(&seed) % 3; changes > 0; changes--) {
            shuffle(&m, &seed);
        }
        const bool found = table_recall(&v, &moving_rows, &m);
        ck_assert_int_eq(found, row == SIZE_MAX || has_key(&m, seen));
        ck_assert(!found || row == SIZE_MAX || m.keys[table_selected(&v)] == seen);
        gone += !found;
    }
    ck_assert_uint_gt(gone, 10);
    table_view_deinit(&v);
}
END_TEST

SUITE_MAIN("tui table", what_is_acted_upon_is_the_row_that_was_seen, a_sort_by_text_asks_for_each_cell_once,
           a_filter_that_grows_looks_at_what_is_left, a_filter_shows_the_same_however_it_was_typed,
           follow_and_mark_stay_with_the_tensor_at_the_peak, follow_and_mark_stay_with_the_layer,
           tensors_of_one_name_have_keys_of_their_own)
