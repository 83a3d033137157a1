// SPDX-License-Identifier: Apache-2.0
// A table of numbers as text (CSV): a heading, then a sample a row. One column is the label, by its name in the heading
// (label, target, class) or else the last; where the model's label has several numbers the last columns are. All
// others are the input, in their order. Where rows begin is kept, 8 bytes a row; a row is read and parsed when asked for.
//
// In a folder the one *.csv without val or test among the words of its name is trained on, one with such a word is held
// out; without one rows of the first are (split.h).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/host_mem.h"
#include "base/real.h"
#include "data/listing.h"
#include "data/record.h"
#include "data/rows.h"
#include "data/source.h"
#include "data/split.h"

enum { CHECKED_ROWS = 100, HAD_TEXT_MAX = 32 };

typedef struct table {
    blob file;
    row_index rows;
    uint32_t columns, label; // where the label begins
} table;

typedef struct table_source {
    data_source base;
    table table[DATA_SET_COUNT];
    uint32_t inputs, labels; // values of the model
    uint32_t classes;        // of its label; 0: floats
    bool is_split;           // both sets are of the training table
} table_source;

// ---- the heading ----------------------------------------------------------------------------------------------

static bool is_label_name(row_field f)
{
    f = row_trim(f);
    static const char *const names[] = {"label", "target", "class"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (f.length == strlen(names[k]) && strncasecmp(f.text, names[k], f.length) == 0) {
            return true;
        }
    }
    return false;
}

static hr_status read_heading(const table_source *s, table *t, const char *row, uint32_t bytes, hr_err *err)
{
    row_cursor c = row_begin(row, bytes);
    row_field f;
    bool good = true;
    uint32_t named = 0, numbers = 0;
    double number;
    t->columns = 0;
    while (good && row_next(&c, &f, &good)) {
        numbers += row_number(f, &number);
        if (is_label_name(f)) {
            t->label = t->columns;
            named++;
        }
        t->columns++;
    }
    if (!good) {
        return HR_FAIL(err, DATA, "%s, column %u of the heading: needed a quoted name that ends, had another",
                       t->file.name, t->columns);
    }
    if (t->columns != (uint64_t)s->inputs + s->labels) {
        return HR_FAIL(err, DATA, "%s: needed %u columns for this model and %u for its label, had %u",
                       t->file.name, s->inputs, s->labels, t->columns);
    }
    if (numbers == t->columns) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed a heading with the names of its columns, had a row of numbers",
                    t->file.name);
        hr_err_try(err, "write a first line of names into it, as in: height,width,label");
        return status;
    }
    if (s->labels != 1 || named != 1) { // none of them, or no telling which
        t->label = s->inputs;
    }
    return HR_OK;
}

// ---- rows -----------------------------------------------------------------------------------------------------

typedef struct row_place {
    const table *table;
    uint32_t row; // from 0
} row_place;

static hr_status refuse_field(const row_place *at, uint32_t column, row_field f, const char *wanted,
                              hr_err *err)
{
    char had[HAD_TEXT_MAX];
    uint32_t count = 0;
    while (count < f.length && count + 1 < sizeof had) {
        had[count] = (char)(f.text[count] < ' ' || f.text[count] > '~' ? '?' : f.text[count]);
        count++;
    }
    had[count] = '\0';
    return HR_FAIL(err, DATA, "%s, row %" PRIu64 " (offset %" PRIu64 "), column %u: needed %s, had '%s'",
                   at->table->file.name, (uint64_t)at->row + 1, at->table->rows.offset[at->row], column + 1,
                   wanted, had);
}

static hr_status read_label(const table_source *s, const row_place *at, uint32_t column, row_field f,
                            void *to, hr_err *err)
{
    double value;
    char wanted[64];
    if (s->classes == 0) {
        if (!row_number(f, &value)) {
            return refuse_field(at, column, f, "a number", err);
        }
        ((float *)to)[column - at->table->label] = float_of_double(value);
        return HR_OK;
    }
    if (!row_number(f, &value) || value < 0 || value >= s->classes || value != floor(value)) {
        (void)snprintf(wanted, sizeof wanted, "a class from 0 to %u", s->classes - 1);
        return refuse_field(at, column, f, wanted, err);
    }
    ((int32_t *)to)[column - at->table->label] = (int32_t)value;
    return HR_OK;
}

// The fields of a row into the slots of `to`.
static hr_status read_row(const table_source *s, const row_place *at, const char *row, uint32_t bytes,
                          const data_room *to, hr_err *err)
{
    const table *t = at->table;
    row_cursor c = row_begin(row, bytes);
    row_field f = {row, 0};
    float *input = to->slot[0];
    bool good = true;
    uint32_t column = 0;
    for (; column < t->columns && row_next(&c, &f, &good); column++) {
        double value;
        if (!good) {
            return refuse_field(at, column, f, "a quoted field that ends", err);
        }
        if (column >= t->label && column - t->label < s->labels) {
            HR_TRY(read_label(s, at, column, f, to->slot[1], err));
        } else if (row_number(f, &value)) {
            *input++ = float_of_double(value);
        } else {
            return refuse_field(at, column, f, "a number", err);
        }
    }
    if (column < t->columns || row_next(&c, &f, &good)) {
        return HR_FAIL(err, DATA, "%s, row %" PRIu64 " (offset %" PRIu64 "): needed %u columns, had %s",
                       t->file.name, (uint64_t)at->row + 1, t->rows.offset[at->row], t->columns,
                       column < t->columns ? "fewer" : "more");
    }
    return HR_OK;
}

static hr_status table_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const table_source *s = (const table_source *)base;
    const table *t = &s->table[s->is_split ? DATA_TRAIN : set];
    const row_place at = {.table = t,
                          .row = s->is_split ? (uint32_t)split_number(t->rows.count, set, index) : index};
    const uint32_t bytes = row_index_bytes(&t->rows, at.row);
    const data_room to = data_room_packed(&base->form, room);
    const uint8_t *row;
    HR_TRY(blob_check_same(&t->file, err));
    HR_TRY(blob_at(&t->file, t->rows.offset[at.row], bytes, room + base->raw_bytes, &row, err));
    HR_TRY(read_row(s, &at, (const char *)row, bytes, &to, err));
    *out = (data_raw){.bytes = room, .size_bytes = base->raw_bytes};
    return HR_OK;
}

static void table_close(data_source *base)
{
    table_source *s = (table_source *)base;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        blob_close(&s->table[set].file);
        row_index_free(&s->table[set].rows);
    }
    hr_free(s);
}

static const data_source_ops table_ops = {
    .fetch = table_fetch, .write = record_write_packed, .close = table_close};

// ---- opening --------------------------------------------------------------------------------------------------

// The heading as it stands in the file; the caller frees *text with hr_free, also after an error.
static hr_status take_heading(const table *t, uint8_t **text, uint32_t *bytes, hr_err *err)
{
    uint64_t offset;
    const uint8_t *at;
    *text = NULL;
    HR_TRY(row_find_heading(&t->file, &offset, bytes, err));
    *text = hr_calloc(*bytes + UINT64_C(1), 1);
    if (*text == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %u bytes, had less", t->file.name, *bytes);
    }
    HR_TRY(blob_at(&t->file, offset, *bytes, *text, &at, err));
    return HR_OK;
}

// The heading first: a table for another model is refused before it is gone through.
static hr_status index_table(table_source *s, table *t, hr_err *err)
{
    uint8_t *heading;
    uint32_t bytes = 0;
    hr_status status = take_heading(t, &heading, &bytes, err);
    if (status == HR_OK && bytes > 0) {
        status = read_heading(s, t, (const char *)heading, bytes, err);
    }
    hr_free(heading);
    HR_TRY(status);
    HR_TRY(row_index_make(&t->file, &t->rows, err));
    s->base.held_bytes += t->rows.held_bytes;
    return HR_OK;
}

// Both have as many columns, by read_heading.
static hr_status compare_names(const table *train, const table *eval, row_cursor one, row_cursor other,
                               hr_err *err)
{
    row_field f, g;
    bool good;
    for (uint32_t column = 1; row_next(&one, &f, &good) && row_next(&other, &g, &good); column++) {
        f = row_trim(f);
        g = row_trim(g);
        if (f.length != g.length || memcmp(f.text, g.text, f.length) != 0) {
            return HR_FAIL(err, DATA, "%s: needed the columns of %s, had another name for column %u",
                           eval->file.name, train->file.name, column);
        }
    }
    return HR_OK;
}

// Columns in another order would be taken for each other.
static hr_status check_headings(const table *train, const table *eval, hr_err *err)
{
    uint8_t *one, *other = NULL;
    uint32_t one_bytes = 0, other_bytes = 0;
    hr_status status = take_heading(train, &one, &one_bytes, err);
    if (status == HR_OK) {
        status = take_heading(eval, &other, &other_bytes, err);
    }
    if (status == HR_OK) {
        status = compare_names(train, eval, row_begin((const char *)one, one_bytes),
                               row_begin((const char *)other, other_bytes), err);
    }
    hr_free(one);
    hr_free(other);
    return status;
}

static hr_status open_file(const char *path, table *t, hr_err *err)
{
    HR_TRY(blob_open_path(path, &t->file, err));
    return blob_is_open(&t->file)
               ? HR_OK
               : HR_FAIL(err, DATA, "%s: needed a file that can be read, had no such file", path);
}

// The one file of the folder for `use`. `needed`: that there is none is an error.
static hr_status open_one(const char *path, const listing *files, name_use use, bool needed, table *t,
                          hr_err *err)
{
    const char *found = NULL;
    for (uint32_t k = 0; k < files->count; k++) {
        const char *name = listing_name(files, k);
        if (name_use_of(name) == use) {
            if (found != NULL) {
                const hr_status status = HR_FAIL(err, DATA, "%s: needed one table to %s, had %.80s and %.80s",
                                                 path, needed ? "train on" : "hold out", found, name);
                hr_err_try(err, "-s pipeline.path=%.200s/%.80s", path, found);
                return status;
            }
            found = name;
        }
    }
    if (found == NULL) {
        return needed ? HR_FAIL(err, DATA, "%s: needed a table *.csv to train on, had none", path) : HR_OK;
    }
    return blob_open(path, found, &t->file, err);
}

static hr_status open_files(table_source *s, const char *path, hr_err *err)
{
    if (!folder_is_at(path)) {
        return open_file(path, &s->table[DATA_TRAIN], err);
    }
    listing files;
    HR_TRY(listing_read(path, ".csv", &files, err));
    hr_status status = open_one(path, &files, NAME_TRAIN, true, &s->table[DATA_TRAIN], err);
    if (status == HR_OK) {
        status = open_one(path, &files, listing_held_out_use(&files), false, &s->table[DATA_EVAL], err);
    }
    listing_free(&files);
    return status;
}

static hr_status open_all(table_source *s, const char *path, hr_err *err)
{
    table *train = &s->table[DATA_TRAIN], *eval = &s->table[DATA_EVAL];
    HR_TRY(open_files(s, path, err));
    HR_TRY(index_table(s, train, err));
    s->is_split = !blob_is_open(&eval->file);
    if (!s->is_split) {
        HR_TRY(index_table(s, eval, err));
        HR_TRY(check_headings(train, eval, err));
    } else if (train->rows.count < 2) {
        return HR_FAIL(err, DATA, "%s: needed 2 rows, one of them to hold out, had 1", train->file.name);
    }
    s->base.info.train_samples = s->is_split ? split_count(train->rows.count, DATA_TRAIN) : train->rows.count;
    s->base.info.eval_samples = s->is_split ? split_count(train->rows.count, DATA_EVAL) : eval->rows.count;
    const uint32_t longest =
        train->rows.most_bytes > eval->rows.most_bytes ? train->rows.most_bytes : eval->rows.most_bytes;
    s->base.raw_bytes = (uint32_t)data_form_packed_bytes(&s->base.form);
    s->base.room_bytes = s->base.raw_bytes + longest;
    return data_source_check_first(&s->base, CHECKED_ROWS, err);
}

static bool takes_tables(const data_form *model)
{
    const data_slot *x = &model->slot[0], *label = &model->slot[1];
    return model->count == 2 && x->type == DATA_FLOAT && !x->is_label && label->is_label &&
           label->type != DATA_MASK && data_slot_values(x) + data_slot_values(label) <= ROWS_MOST_FIELDS;
}

static hr_status check_model(const data_form *model, hr_err *err)
{
    char input[64], label[64];
    if (takes_tables(model)) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, DATA, "pipeline.source=csv has rows of at most %d numbers: needed %s and %s",
                ROWS_MOST_FIELDS, data_slot_text(&model->slot[0], input, sizeof input),
                data_slot_text(&model->slot[1], label, sizeof label));
    hr_err_try(err, "-s pipeline.source=generated, or a model that takes floats: headroom run mlp_tiny");
    return status;
}

hr_status source_csv_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(check_model(model, err));
    table_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    const data_slot *label = &model->slot[1];
    *s = (table_source){
        .base = {.ops = &table_ops, .form = *model, .info = {.classes = label->classes}},
        .table = {{.file = BLOB_NONE}, {.file = BLOB_NONE}},
        .inputs = (uint32_t)data_slot_values(&model->slot[0]),
        .labels = (uint32_t)data_slot_values(label),
        .classes = label->type == DATA_IDS ? label->classes : 0,
    };
    data_source_label(s->base.info.label, "table", path);
    const hr_status status = open_all(s, path, err);
    if (status != HR_OK) {
        table_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}

bool source_csv_is_at(const char *path, const data_form *model)
{
    return takes_tables(model) && files_are_at(path, ".csv");
}
