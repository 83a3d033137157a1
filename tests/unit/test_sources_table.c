// SPDX-License-Identifier: Apache-2.0
// Tables as text: what the model is given is what the numbers in the file are, however they are quoted and spaced; rows
// are found whatever the pieces are in which the file is read; what is wrong is said with its row and column.
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "base/half.h"
#include "base/philox.h"
#include "base/workers.h"
#include "data/rows.h"
#include "data/source_checks.h"
#include "data/split.h"

// `inputs` floats and one label: of `classes`, or 0: floats.
static data_form table_form(uint32_t inputs, uint32_t labels, uint32_t classes)
{
    data_form form = {.count = 2,
                      .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {inputs}},
                               {.type = DATA_FLOAT, .is_label = true, .rank = labels > 1, .dim = {labels}}}};
    if (classes > 0) {
        form.slot[1].type = DATA_IDS;
        form.slot[1].classes = classes;
    }
    return form;
}

static void write_text(const data_folder *f, const char *leaf, const char *text)
{
    data_replace(f, leaf, text, strlen(text));
}

// ---- rows against a plain model -------------------------------------------------------------------------------

typedef struct random_words {
    uint64_t next;
} random_words;

static uint32_t word(random_words *r, uint32_t below)
{
    uint32_t words[4];
    philox(philox_key_of(5, "rows"), r->next++, 0, words);
    return words[0] % below;
}

enum { TEXT_MAX = 4096, ROWS_MAX = 64, FIELDS_PER_ROW = 8 };

// A table and what its fields are, both made at once.
typedef struct written {
    char text[TEXT_MAX];
    size_t size;
    char field[ROWS_MAX][FIELDS_PER_ROW][16];
    uint32_t fields[ROWS_MAX], rows;
    size_t begin[ROWS_MAX];
} written;

static void put(written *w, const char *text)
{
    const size_t length = strlen(text);
    ck_assert_uint_lt(w->size + length, TEXT_MAX);
    memcpy(w->text + w->size, text, length);
    w->size += length;
}

static void write_field(written *w, random_words *r, char *plain)
{
    static const char letters[] = "a1.,\n\"\r -";
    const bool quoted = word(r, 2) == 0;
    const uint32_t count = word(r, 6);
    uint32_t length = 0;
    put(w, quoted ? "\"" : "");
    for (uint32_t k = 0; k < count; k++) {
        const char c = letters[word(r, quoted ? 9 : 3)];
        const char one[] = {c, c == '"' ? c : '\0', '\0'};
        plain[length++] = c;
        if (c == '"') {
            plain[length++] = c; // as they stand
        }
        put(w, one);
    }
    plain[length] = '\0';
    put(w, quoted ? "\"" : "");
}

static written random_table(random_words *r)
{
    static const char *const line_ends[] = {"\n", "\r\n", "\n\n", "\r\n\r\n\n"};
    written w = {0};
    const uint32_t rows = word(r, 12);
    put(&w, word(r, 3) == 0 ? "\n\r\n" : "");
    for (; w.rows < rows; w.rows++) {
        const uint32_t fields = 1 + word(r, FIELDS_PER_ROW);
        w.begin[w.rows] = w.size;
        for (uint32_t k = 0; k < fields; k++) {
            put(&w, k > 0 ? "," : "");
            write_field(&w, r, w.field[w.rows][k]);
        }
        if (w.size == w.begin[w.rows]) { // an empty line is no row
            put(&w, "7");
            (void)snprintf(w.field[w.rows][0], sizeof w.field[0][0], "7");
        }
        w.fields[w.rows] = fields;
        put(&w, w.rows + 1 == rows && word(r, 2) == 0 ? "" : line_ends[word(r, 4)]);
    }
    return w;
}

static void assert_row(const written *w, uint32_t row, uint64_t begin, uint64_t end)
{
    ck_assert_uint_eq(begin, w->begin[row]);
    row_cursor c = row_begin(w->text + begin, end - begin);
    row_field f;
    bool good;
    uint32_t k = 0;
    while (row_next(&c, &f, &good)) {
        ck_assert(good);
        ck_assert_uint_lt(k, w->fields[row]);
        ck_assert_uint_eq(f.length, strlen(w->field[row][k]));
        ck_assert_mem_eq(f.text, w->field[row][k], f.length);
        k++;
    }
    ck_assert_uint_eq(k, w->fields[row]);
}

START_TEST(rows_are_what_was_written_whatever_the_pieces)
{
    random_words r = {0};
    for (uint32_t round = 0; round < 3000; round++) {
        const written w = random_table(&r);
        row_walk walk = {0};
        uint32_t row = 0;
        for (size_t at = 0; at < w.size;) {
            const size_t left = w.size - at, most = 1 + word(&r, 40);
            bool ended;
            at += row_walk_on(&walk, w.text + at, left < most ? left : most, &ended);
            ck_assert_uint_eq(walk.offset, at);
            if (ended) {
                ck_assert_uint_lt(row, w.rows);
                assert_row(&w, row++, walk.begin, walk.offset);
            }
        }
        if (row_walk_is_open(&walk)) {
            assert_row(&w, row++, walk.begin, walk.offset);
        }
        ck_assert_uint_eq(row, w.rows);
    }
}
END_TEST

START_TEST(an_index_has_every_row_and_counts_what_it_takes)
{
    random_words r = {.next = 1 << 20};
    data_folder f = data_folder_make();
    for (uint32_t round = 0; round < 200; round++) {
        const written w = random_table(&r);
        blob file;
        row_index index;
        data_replace(&f, "a.csv", w.text, w.size);
        ck_assert_int_eq(blob_open(f.path, "a.csv", &file, NULL), HR_OK);
        uint64_t heading = 0;
        uint32_t heading_bytes = 0;
        ck_assert_int_eq(row_find_heading(&file, &heading, &heading_bytes, NULL), HR_OK);
        ck_assert_int_eq(heading_bytes > 0, w.rows > 0);
        if (w.rows > 0) {
            assert_row(&w, 0, heading, heading + heading_bytes);
        }
        const hr_status status = row_index_make(&file, &index, NULL);
        ck_assert_int_eq(status, w.rows < 2 ? HR_DATA : HR_OK);
        if (status == HR_OK) {
            ck_assert_uint_eq(index.count, w.rows - 1);
            ck_assert_uint_eq(other_blocks_bytes(NULL), index.held_bytes);
            for (uint32_t k = 0; k < index.count; k++) {
                assert_row(&w, k + 1, index.offset[k], index.offset[k] + row_index_bytes(&index, k));
            }
        }
        row_index_free(&index);
        ck_assert_uint_eq(other_blocks_bytes(NULL), 0);
        blob_close(&file);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(numbers_are_those_of_strtod)
{
    random_words r = {.next = 2 << 20};
    for (uint32_t round = 0; round < 200000; round++) {
        char text[64];
        double got, wanted;
        const uint32_t form = word(&r, 4);
        const int64_t digits = (int64_t)((uint64_t)word(&r, UINT32_MAX) << word(&r, 31)) >> word(&r, 40);
        if (form == 0) {
            (void)snprintf(text, sizeof text, "%lld", (long long)digits);
        } else if (form == 1) {
            (void)snprintf(text, sizeof text, "%s%.*f", word(&r, 2) == 0 ? "-" : "", (int)word(&r, 12),
                           (double)digits / 7919);
        } else {
            (void)snprintf(text, sizeof text, form == 2 ? "%.17g" : " %.9e\t", (double)digits / 1e7);
        }
        const row_field f = {text, (uint32_t)strlen(text)};
        wanted = strtod(text, NULL);
        ck_assert_msg(row_number(f, &got), "%s", text);
        ck_assert_mem_eq(&got, &wanted, sizeof got);
    }
}
END_TEST

START_TEST(what_is_no_number_is_none)
{
    static const char *const texts[] = {"",     "-",   ".",  "abc", "1,5",   "1 2", "0x10", "nan",  "inf",
                                        "1e99", "--1", "1-", "1e",  "1.2.3", "+",   "-.",   "1_000"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},  {"-0.5", -0.5}, {"+2", 2},     {".25", 0.25},
                {"5.", 5}, {" 7\t", 7},    {"1e3", 1000}, {"00012", 12}};
    double value;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const row_field f = {texts[k], (uint32_t)strlen(texts[k])};
        ck_assert_msg(!row_number(f, &value), "%s", texts[k]);
    }
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        const row_field f = {good[k].text, (uint32_t)strlen(good[k].text)};
        ck_assert_msg(row_number(f, &value) && value == good[k].value, "%s", good[k].text);
    }
}
END_TEST

// ---- the source -----------------------------------------------------------------------------------------------

static void assert_sample(const data_source *s, data_set set, uint32_t index, const float *input, float label)
{
    data_room room = sample_of(s, set, index);
    ck_assert_mem_eq(room.slot[0], input, data_slot_bytes(&s->form.slot[0]));
    if (s->form.slot[1].type == DATA_IDS) {
        ck_assert_int_eq(*(int32_t *)room.slot[1], (int32_t)label);
    } else {
        ck_assert(*(float *)room.slot[1] == label);
    }
    data_room_give_back(&room);
}

START_TEST(a_row_is_a_sample_and_the_last_column_its_label)
{
    const data_form form = table_form(3, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_text(&f, "a.csv",
               "\xef\xbb\xbf\"a\",b,\"c,\n\"\"\",d\r\n1,-2.5,1e2,4\r\n\r\n\"7\", 8 ,.5,\"0\"\n3,3,3,3");
    data_source *s = source_at("auto", data_folder_file(&f, "a.csv", path), &form);
    ck_assert_uint_eq(s->info.train_samples, 2);
    ck_assert_uint_eq(s->info.eval_samples, 1);
    ck_assert_uint_eq(s->held_bytes, 4 * 8);
    ck_assert_str_eq(s->info.label, "table (a.csv)");
    static const float input[3][3] = {{1, -2.5f, 100}, {7, 8, 0.5f}, {3, 3, 3}}, label[3] = {4, 0, 3};
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
            const uint64_t number = split_number(3, set, i);
            assert_sample(s, set, i, input[number], label[number]);
        }
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_column_named_so_is_the_label)
{
    static const struct {
        const char *heading;
        float input[2], label;
    } cases[] = {
        {"label,x,y", {2, 3}, 1},     {"x,Target,y", {1, 3}, 2}, {"x,y,\"class\"", {1, 2}, 3},
        {"class,label,y", {1, 2}, 3}, {"a,b,c", {1, 2}, 3},      {"labels,b,c", {1, 2}, 3},
    };
    const data_form form = table_form(2, 1, 9);
    data_folder f = data_folder_make();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s\n1,2,3\n", cases[k].heading);
        write_text(&f, "train.csv", text);
        write_text(&f, "val.csv", text);
        data_source *s = source_at("csv", f.path, &form);
        assert_sample(s, DATA_TRAIN, 0, cases[k].input, cases[k].label);
        assert_sample(s, DATA_EVAL, 0, cases[k].input, cases[k].label);
        data_source_close(s);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(labels_may_be_floats_and_many)
{
    data_folder f = data_folder_make();
    write_text(&f, "train.csv", "a,b,c,d\n1,2,3.5,-4\n5,6,7,8\n");
    data_form form = table_form(3, 1, 0);
    data_source *s = source_at("csv", f.path, &form);
    static const float three[] = {1, 2, 3.5f};
    ck_assert_uint_eq(split_number(2, DATA_TRAIN, 0) + split_number(2, DATA_EVAL, 0), 1);
    assert_sample(s, split_number(2, DATA_TRAIN, 0) == 0 ? DATA_TRAIN : DATA_EVAL, 0, three, -4);
    data_source_close(s);
    form = table_form(2, 2, 0);
    s = source_at("csv", f.path, &form);
    data_room room = sample_of(s, split_number(2, DATA_TRAIN, 0) == 0 ? DATA_TRAIN : DATA_EVAL, 0);
    ck_assert_mem_eq(room.slot[0], ((const float[]){1, 2}), 8);
    ck_assert_mem_eq(room.slot[1], ((const float[]){3.5f, -4}), 8);
    data_room_give_back(&room);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_is_wrong_is_said_with_its_row_and_column)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"a,b,c\n1,2,3\n1,x,3\n", ", row 2 (offset 12), column 2: needed a number, had 'x'"},
        {"a,b,c\n1,2,3\n1,,3\n", ", row 2 (offset 12), column 2: needed a number, had ''"},
        {"a,b,c\n1,2,3\n1,2\n", ", row 2 (offset 12): needed 3 columns, had fewer"},
        {"a,b,c\n1,2,3\n1,2,3,\n", ", row 2 (offset 12): needed 3 columns, had more"},
        {"a,b,c\n1,2,3\n1,2,5\n", ", row 2 (offset 12), column 3: needed a class from 0 to 4, had '5'"},
        {"a,b,c\n1,2,3\n1,2,-1\n", ", row 2 (offset 12), column 3: needed a class from 0 to 4, had '-1'"},
        {"a,b,c\n1,2,3\n1,2,1.5\n", ", row 2 (offset 12), column 3: needed a class from 0 to 4, had '1.5'"},
        {"a,b,c\n1,2,3\n1,\"2,3\n",
         ", row 2 (offset 12), column 2: needed a quoted field that ends, had '2,3'"},
        {"a,b,c\n1,2,3\n1,\"2\"x,3\n",
         ", row 2 (offset 12), column 2: needed a quoted field that ends, had '2'"},
        {"a,b\n1,2\n1,2\n", ": needed 2 columns for this model and 1 for its label, had 2"},
        {"a,b,\"c\n1,2,3\n1,2,3\n", ", column 3 of the heading: needed a quoted name that ends, had another"},
        {"1,2,3\n1,2,3\n1,2,3\n", ": needed a heading with the names of its columns, had a row of numbers"},
        {" 1 ,\"2\",-3e4\n1,2,3\n1,2,3\n",
         ": needed a heading with the names of its columns, had a row of numbers"},
        {"a,b,c\"\n1,2,3\n", ": needed 2 rows, one of them to hold out, had 1"},
        {"a,b,c\n", ": needed a heading and 1 to 33554431 rows, had 1 lines"},
        {"", ": needed a heading and 1 to 33554431 rows, had 0 lines"},
        {"\n\r\n\n", ": needed a heading and 1 to 33554431 rows, had 0 lines"},
        {"a,b,\"c\"d\n1,2,3\n1,2,3\n",
         ", column 3 of the heading: needed a quoted name that ends, had another"},
    };
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_folder_file(&f, "a.csv", path);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        write_text(&f, "a.csv", cases[k].text);
        assert_refused("csv", path, &form, path, cases[k].sentence);
    }
    write_text(&f, "b.csv", "");
    assert_refused("csv", f.path, &form, f.path, ": needed one table to train on, had a.csv and b.csv");
    (void)unlink(path);
    (void)unlink(data_folder_file(&f, "b.csv", path));
    assert_refused("csv", f.path, &form, f.path, ": needed a table *.csv to train on, had none");
    assert_refused("csv", path, &form, path, ": needed a file that can be read, had no such file");
    const data_form masks = {.count = 2,
                             .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {4, 4, 3}},
                                      {.type = DATA_MASK, .is_label = true, .classes = 3}}};
    assert_refused("csv", f.path, &masks, "pipeline.source=csv",
                   " has rows of at most 65536 numbers: needed 4x4x3 floats and 1 mask values below 3");
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_row_that_is_too_long_takes_nothing)
{
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    static char text[ROWS_MOST_BYTES + 4096];
    memset(text, ' ', sizeof text);
    memcpy(text, "a,b,c\n1,\"2", 10);
    data_replace(&f, "a.csv", text, sizeof text);
    assert_refused("csv", data_folder_file(&f, "a.csv", path), &form, path,
                   ", offset 6: needed rows of at most 1048576 bytes, had more");
    memset(text + 6, '\n', sizeof text - 6); // empty lines are no row, however many
    memcpy(text + 6, "1,2,3", 5);
    memcpy(text + sizeof text - 6, "1,2,3", 5);
    data_replace(&f, "a.csv", text, sizeof text);
    data_source *s = source_at("csv", path, &form);
    ck_assert_uint_eq(s->room_bytes - s->raw_bytes, 6);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_table_cut_or_changed_while_in_use_is_an_error)
{
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_folder_file(&f, "a.csv", path);
    write_text(&f, "a.csv", "a,b,c\n1,2,3\n1,2,4\n1,2,3\n");
    write_text(&f, "a_test.csv", "a,b,c\n1,2,3\n");
    data_source *s = source_at("csv", f.path, &form);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 77}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0); // written to, and as long as before
    hr_err err = sample_refused(s, DATA_TRAIN, 1);
    assert_says(&err, path, ": needed the file of 24 bytes that was opened, had one of 24 bytes");
    ck_assert_int_eq(truncate(path, 20), 0);
    err = sample_refused(s, DATA_TRAIN, 2);
    assert_says(&err, path, ": needed the file of 24 bytes that was opened, had one of 20 bytes");
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// Columns that changed their places, or another table: their numbers would be taken for those of the first.
START_TEST(held_out_columns_are_those_that_are_trained_on)
{
    static const struct {
        const char *heading, *sentence;
    } cases[] = {
        {"b,a,label", ", had another name for column 1"},
        {"a,b,y", ", had another name for column 3"},
        {"a,B,label", ", had another name for column 2"},
    };
    const data_form form = table_form(2, 1, 9);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX], text[64], sentence[FILE_NAME_MAX + 96];
    write_text(&f, "train.csv", "a,b,label\n1,2,3\n");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        (void)snprintf(text, sizeof text, "%s\n1,2,3\n", cases[k].heading);
        write_text(&f, "val.csv", text);
        (void)snprintf(sentence, sizeof sentence, ": needed the columns of %s%s",
                       data_folder_file(&f, "train.csv", path), cases[k].sentence);
        assert_refused("csv", f.path, &form, data_folder_file(&f, "val.csv", path), sentence);
    }
    write_text(&f, "val.csv", "\"a\", b ,label\r\n1,2,3\n"); // the same names
    data_source_close(source_at("csv", f.path, &form));
    data_folder_remove(&f);
}
END_TEST

// A terabyte of another model's table: its heading says so, and no more of it is read.
START_TEST(a_table_for_another_model_is_refused_by_its_heading)
{
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_text(&f, "a.csv", "a,b,c,d\n1,2,3,4\n");
    if (truncate(data_folder_file(&f, "a.csv", path), INT64_C(1) << 40) == 0) {
        assert_refused("csv", path, &form, path,
                       ": needed 2 columns for this model and 1 for its label, had 4");
    } // else the file system has no such files
    data_folder_remove(&f);
}
END_TEST

// Eight bytes a row that a stranger writes with two: what they may come to has an end.
START_TEST(a_table_of_more_rows_than_may_be_held_takes_nothing)
{
    enum { PIECE = 1 << 20 };
    const data_form form = table_form(2, 1, 5);
    static char piece[PIECE];
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_text(&f, "a.csv", "a,b,c\n");
    for (size_t k = 0; k < PIECE; k += 2) {
        memcpy(piece + k, "1\n", 2);
    }
    FILE *file = fopen(data_folder_file(&f, "a.csv", path), "a");
    for (int k = 0; k < 64; k++) {
        ck_assert_uint_eq(fwrite(piece, 1, PIECE, file), PIECE);
    }
    ck_assert_int_eq(fclose(file), 0);
    const hr_err err = source_refused("csv", path, &form);
    assert_says(&err, path, ": needed at most 33554431 rows, had more");
    data_folder_remove(&f);
}
END_TEST

typedef struct read_job {
    const data_source *s;
    uint8_t *room[2]; // of each sample
    float value[2];
} read_job;

static void read_in_worker(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    read_job *job = (read_job *)(uintptr_t)argument;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        data_raw raw;
        if (data_source_fetch(job->s, DATA_TRAIN, 0, job->room[k], &raw, NULL) == HR_OK) {
            memcpy(&job->value[k], raw.bytes, sizeof job->value[k]);
        }
    }
}

// Workers take such numbers for zero, the thread that asks them does not.
START_TEST(the_smallest_numbers_are_zero_on_every_thread)
{
    static const char *const numbers[] = {"1e-40", "-1e-40", "1e-310", "1.1754942e-38"};
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        char text[64];
        workers *threads = NULL;
        (void)snprintf(text, sizeof text, "a,b,c\n%s,2,3\n%s,2,3\n", numbers[k], numbers[k]);
        write_text(&f, "a.csv", text);
        data_source *s = source_at("csv", f.path, &form);
        read_job job = {.s = s, .room = {malloc(s->room_bytes), malloc(s->room_bytes)}, .value = {1, 1}};
        ck_assert_int_eq(workers_create(2, &threads, NULL), HR_OK);
        workers_for(threads, 2, 1, read_in_worker, &job);
        workers_destroy(threads);
        data_room here = sample_of(s, DATA_TRAIN, 0);
        ck_assert_uint_eq(bits_of_float(*(float *)here.slot[0]) & 0x7fffffff, 0);
        ck_assert_mem_eq(&job.value[0], here.slot[0], sizeof(float));
        ck_assert_mem_eq(&job.value[1], here.slot[0], sizeof(float));
        data_room_give_back(&here);
        free(job.room[0]);
        free(job.room[1]);
        data_source_close(s);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(every_truncation_is_refused_or_shorter)
{
    static const char text[] =
        "\xef\xbb\xbf\"a\",b,\"class\"\n1,2,3\r\n\"4\",\"5\",\"1\"\n-1.5e1,2,0\n\n9,9,4\n";
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    hr_knobs knobs = data_knobs("csv", data_folder_file(&f, "a.csv", path));
    for (size_t cut = 0; cut < sizeof text; cut++) {
        data_source *s = NULL;
        hr_err err = {0};
        data_replace(&f, "a.csv", text, cut);
        if (data_source_open(&knobs, &form, &s, &err) != HR_OK) {
            ck_assert_int_eq(err.status, HR_DATA);
            ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
        }
        data_source_close(s);
        ck_assert_uint_eq(other_blocks_bytes(NULL), 0);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const data_form form = table_form(2, 1, 5);
    data_folder f = data_folder_make();
    write_text(&f, "a.csv", "a,b,c\n1,2,3\n1,2,4\n1,2,3\n");
    write_text(&f, "a_test.csv", "a,b,c\n1,2,3\n");
    assert_survives_short_memory("csv", f.path, &form);
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources_table");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, rows_are_what_was_written_whatever_the_pieces);
    tcase_add_test(rows, an_index_has_every_row_and_counts_what_it_takes);
    tcase_add_test(rows, numbers_are_those_of_strtod);
    tcase_add_test(rows, what_is_no_number_is_none);
    suite_add_tcase(suite, rows);
    TCase *csv = tcase_create("csv");
    tcase_add_test(csv, a_row_is_a_sample_and_the_last_column_its_label);
    tcase_add_test(csv, a_column_named_so_is_the_label);
    tcase_add_test(csv, labels_may_be_floats_and_many);
    tcase_add_test(csv, what_is_wrong_is_said_with_its_row_and_column);
    tcase_add_test(csv, a_row_that_is_too_long_takes_nothing);
    tcase_add_test(csv, a_table_cut_or_changed_while_in_use_is_an_error);
    tcase_add_test(csv, held_out_columns_are_those_that_are_trained_on);
    tcase_add_test(csv, a_table_for_another_model_is_refused_by_its_heading);
    if (!HEADROOM_SANITIZED) { // 33 million rows are seconds then
        tcase_add_test(csv, a_table_of_more_rows_than_may_be_held_takes_nothing);
    }
    tcase_add_test(csv, the_smallest_numbers_are_zero_on_every_thread);
    tcase_add_test(csv, every_truncation_is_refused_or_shorter);
    tcase_add_test(csv, every_allocation_may_fail_once);
    suite_add_tcase(suite, csv);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
