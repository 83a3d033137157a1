// SPDX-License-Identifier: Apache-2.0
#include "app/tui/view/table_order.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- filter ---------------------------------------------------------------------------------------------------

typedef struct filter {
    const char *text;
    bool inverted, is_regex;
    regex_t regex;
} filter;

// Nothing in it means anything but itself, and a search byte by byte finds what a regular expression finds.
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text >= 0x80 || strchr(".[]{}()*+?|^$\\", *text) != NULL) {
            return false;
        }
    }
    return true;
}

static void filter_open(filter *f, const char *text)
{
    f->inverted = text[0] == '!';
    f->text = text + (f->inverted ? 1 : 0);
    f->is_regex =
        !is_plain(f->text) && regcomp(&f->regex, f->text, REG_EXTENDED | REG_ICASE | REG_NOSUB) == 0;
}

static void filter_close(filter *f)
{
    if (f->is_regex) {
        regfree(&f->regex);
    }
}

static bool filter_takes(const filter *f, const table_source *s, const void *of, size_t row)
{
    bool matches = f->text[0] == '\0';
    if (matches) {
        return true; // "!" alone hides nothing yet
    }
    for (unsigned column = 0; !matches && column < s->column_count; column++) {
        char cell[TABLE_CELL_MAX] = "";
        s->cell(of, row, column, cell);
        matches = f->is_regex ? regexec(&f->regex, cell, 0, NULL, 0) == 0 : strcasestr(cell, f->text) != NULL;
    }
    return matches != f->inverted;
}

// ---- order ----------------------------------------------------------------------------------------------------

// What one row is compared by; made once for each row.
typedef struct sort_key {
    uint32_t row;
    size_t text; // of a text column: where its cell begins in `texts`
    double number;
} sort_key;

typedef struct sorting {
    sort_key *keys; // owned
    char *texts;    // owned; NULL: a column of numbers
    size_t used, room;
    bool reversed;
} sorting;

static int compare_numbers(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b) ? 0 : isnan(a) ? 2 : -2; // unknown last, whichever way it is sorted
    }
    return a > b ? -1 : a < b ? 1 : 0;
}

static int compare_keys(const void *left, const void *right, void *context)
{
    const sorting *sort = context;
    const sort_key *a = left, *b = right;
    int order;
    if (sort->texts == NULL) {
        order = compare_numbers(a->number, b->number);
        order = sort->reversed && abs(order) != 2 ? -order : order;
    } else {
        order = strcasecmp(sort->texts + a->text, sort->texts + b->text);
        order = sort->reversed ? -order : order;
    }
    return order != 0 ? order : a->row < b->row ? -1 : a->row > b->row; // qsort_r need not be stable
}

static bool add_text(sorting *sort, sort_key *key, const char *cell)
{
    const size_t length = strlen(cell) + 1;
    if (sort->texts == NULL || sort->room - sort->used < length) {
        const size_t room = 2 * sort->room + TABLE_CELL_MAX;
        char *grown = realloc(sort->texts, room);
        if (grown == NULL) {
            return false;
        }
        sort->texts = grown;
        sort->room = room;
    }
    key->text = sort->used;
    memcpy(sort->texts + sort->used, cell, length);
    sort->used += length;
    return true;
}

static bool make_keys(sorting *sort, const table_view *v, const table_source *s, const void *of)
{
    const unsigned column = (unsigned)v->sort;
    bool made = sort->keys != NULL;
    for (size_t i = 0; made && i < v->count; i++) {
        char cell[TABLE_CELL_MAX] = "";
        sort->keys[i] = (sort_key){.row = v->order[i]};
        if (s->columns[column].number) {
            sort->keys[i].number = s->number(of, v->order[i], column);
        } else {
            s->cell(of, v->order[i], column, cell);
            made = add_text(sort, &sort->keys[i], cell);
        }
    }
    return made;
}

static bool sort_rows(table_view *v, const table_source *s, const void *of)
{
    sorting sort = {.keys = reallocarray(NULL, v->count, sizeof *sort.keys), .reversed = v->reversed};
    const bool made = make_keys(&sort, v, s, of);
    if (made) {
        qsort_r(sort.keys, v->count, sizeof *sort.keys, compare_keys, &sort);
        for (size_t i = 0; i < v->count; i++) {
            v->order[i] = sort.keys[i].row;
        }
    }
    free(sort.keys);
    free(sort.texts);
    return made;
}

static bool has_room(table_view *v, size_t rows)
{
    if (rows <= v->room) {
        return true;
    }
    uint32_t *grown = reallocarray(v->order, rows, sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    v->order = grown;
    v->room = rows;
    return true;
}

// Host memory is short.
static void keep_order(table_view *v, size_t rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->count; i++) {
        if (v->order[i] < rows) {
            v->order[kept++] = v->order[i];
        }
    }
    v->count = kept;
    v->made_sort = TABLE_UNSORTED;
}

// All that matches stands in the order already, and in this order.
static bool is_narrower(const table_view *v, uint64_t version)
{
    const bool same = v->version == version && v->made_sort == v->sort && v->made_reversed == v->reversed;
    const size_t length = strlen(v->made_filter);
    return same && v->made_filter[0] != '!' && v->filter[0] != '!' && is_plain(v->filter) &&
           strncasecmp(v->filter, v->made_filter, length) == 0;
}

static void narrow(table_view *v, const table_source *s, const void *of)
{
    const size_t rows = v->count;
    filter f;
    filter_open(&f, v->filter);
    v->count = 0;
    for (size_t i = 0; i < rows; i++) {
        if (filter_takes(&f, s, of, v->order[i])) {
            v->order[v->count++] = v->order[i];
        }
    }
    filter_close(&f);
}

static void reverse_rows(table_view *v)
{
    for (size_t i = 0; i < v->count / 2; i++) {
        uint32_t swapped = v->order[i];
        v->order[i] = v->order[v->count - 1 - i];
        v->order[v->count - 1 - i] = swapped;
    }
}

static void make_order(table_view *v, const table_source *s, const void *of, size_t rows)
{
    bool sorted = true;
    for (v->count = 0; v->count < rows; v->count++) {
        v->order[v->count] = (uint32_t)v->count;
    }
    narrow(v, s, of);
    if (v->sort >= 0 && v->sort < (int)s->column_count && v->count > 1) {
        sorted = sort_rows(v, s, of);
    } else if (v->reversed) {
        reverse_rows(v);
    }
    v->made_sort = sorted ? v->sort : TABLE_UNSORTED;
    v->made_reversed = v->reversed;
}

void table_order(table_view *v, const table_source *s, const void *of, uint64_t version)
{
    if (is_narrower(v, version)) {
        narrow(v, s, of);
    } else {
        size_t rows = s->count(of);
        rows = rows < UINT32_MAX ? rows : UINT32_MAX;
        if (!has_room(v, rows)) {
            keep_order(v, rows);
            return;
        }
        make_order(v, s, of, rows);
    }
    memcpy(v->made_filter, v->filter, sizeof v->made_filter);
}
