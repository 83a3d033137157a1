// SPDX-License-Identifier: Apache-2.0
// Runs of tokens: what the model is given is what the files hold, one token further on as labels, whatever the files
// are called and however many they are; no sample is in both sets.
#include <fcntl.h>
#include <sys/stat.h>

#include "data/listing.h"
#include "data/parts.h"
#include "data/source_checks.h"
#include "data/split.h"

static data_form language(uint32_t length, uint32_t classes)
{
    const data_slot slot = {.type = DATA_IDS, .classes = classes, .rank = 1, .dim = {length}};
    data_form form = {.count = 2, .slot = {slot, slot}};
    form.slot[1].is_label = true;
    return form;
}

// ---- the split ------------------------------------------------------------------------------------------------

START_TEST(a_split_gives_each_sample_to_one_set_and_a_tenth_to_the_held_out_one)
{
    static const uint32_t counts[] = {2, 3, 9, 10, 11, 19, 20, 21, 99, 100, 101, 1003, 54321};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint32_t samples = counts[c];
        uint8_t *seen = calloc(samples, 1);
        uint64_t before[DATA_SET_COUNT] = {0};
        ck_assert_uint_eq(split_count(samples, DATA_TRAIN) + split_count(samples, DATA_EVAL), samples);
        ck_assert_uint_eq(split_count(samples, DATA_EVAL), (samples + 9) / 10);
        for (data_set set = 0; set < DATA_SET_COUNT; set++) {
            for (uint64_t i = 0; i < split_count(samples, set); i++) {
                const uint64_t number = split_number(samples, set, i);
                ck_assert_uint_lt(number, samples);
                ck_assert_uint_eq(seen[number]++, 0);
                ck_assert(i == 0 || number > before[set]);
                before[set] = number;
            }
        }
        free(seen);
    }
}
END_TEST

START_TEST(the_place_that_is_held_out_is_drawn_anew_for_every_ten)
{
    uint32_t places[10] = {0};
    for (uint64_t ten = 0; ten < 10000; ten++) {
        places[split_number(100000, DATA_EVAL, ten) % 10]++;
    }
    for (uint32_t k = 0; k < 10; k++) {
        ck_assert_uint_gt(places[k], 850);
        ck_assert_uint_lt(places[k], 1150);
    }
}
END_TEST

// ---- names ----------------------------------------------------------------------------------------------------

START_TEST(words_of_a_name_say_what_a_file_is_for)
{
    static const struct {
        const char *name;
        name_use use;
    } cases[] = {
        {"train.bin", NAME_TRAIN},
        {"fineweb_train_000001.bin", NAME_TRAIN},
        {"fineweb_val_000000.bin", NAME_VALIDATION},
        {"TinyStories_val.bin", NAME_VALIDATION},
        {"wiki.valid.txt", NAME_VALIDATION},
        {"Validation2.txt", NAME_VALIDATION},
        {"dev.txt", NAME_VALIDATION},
        {"wiki.test.txt", NAME_TEST},
        {"latest.txt", NAME_TRAIN},
        {"value.txt", NAME_TRAIN},
        {"contest_1.txt", NAME_TRAIN},
        {"", NAME_TRAIN},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ck_assert_msg(name_use_of(cases[k].name) == cases[k].use, "%s", cases[k].name);
    }
}
END_TEST

START_TEST(a_listing_has_the_names_with_that_ending_in_byte_order)
{
    static const char *const names[] = {"b.txt",       "a.txt",  "a10.txt", "a2.TXT",
                                        ".hidden.txt", "c.text", ".txt"};
    data_folder f = data_folder_make();
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        data_replace(&f, names[k], "x", 1);
    }
    listing l;
    ck_assert_int_eq(listing_read(f.path, ".txt", &l, NULL), HR_OK);
    ck_assert_uint_eq(l.count, 4);
    ck_assert_str_eq(listing_name(&l, 0), "a.txt");
    ck_assert_str_eq(listing_name(&l, 1), "a10.txt");
    ck_assert_str_eq(listing_name(&l, 2), "a2.TXT");
    ck_assert_str_eq(listing_name(&l, 3), "b.txt");
    listing_free(&l);
    ck_assert_int_eq(listing_read(f.path, ".bin", &l, NULL), HR_OK);
    ck_assert_uint_eq(l.count, 0);
    listing_free(&l);
    data_folder_remove(&f);
    hr_err err = {0};
    ck_assert_int_eq(listing_read("/nowhere", ".txt", &l, &err), HR_DATA);
    ck_assert_str_eq(err.sentence,
                     "/nowhere: needed a folder that can be read, had: No such file or directory");
}
END_TEST

// ---- tokens ---------------------------------------------------------------------------------------------------

enum { TOKENS = 1000, LENGTH = 16, WINDOWS = (TOKENS - 1) / LENGTH };

// Token k of every fixture.
static uint32_t token(uint32_t k)
{
    return (k * 7919 + k / 3) % 250;
}

typedef enum token_form { PLAIN_16, LLMC_16, LLMC_32, BYTES, TOKEN_FORMS } token_form;

static const char *const endings[TOKEN_FORMS] = {".bin", ".bin", ".bin", ".txt"};
static const char *const kinds[TOKEN_FORMS] = {"tokens", "tokens", "tokens", "text"};

static void put32(uint8_t *to, uint32_t value)
{
    for (uint32_t k = 0; k < 4; k++) {
        to[k] = (uint8_t)(value >> 8 * k);
    }
}

// Tokens first … first + count - 1 as a file; the caller frees it.
static uint8_t *token_bytes(token_form form, uint32_t first, uint32_t count, size_t *size_bytes)
{
    const uint32_t width = form == BYTES ? 1 : form == LLMC_32 ? 4 : 2;
    const uint32_t skip = form == LLMC_16 || form == LLMC_32 ? 1024 : 0;
    *size_bytes = skip + (size_t)count * width;
    uint8_t *bytes = calloc(*size_bytes + 1, 1);
    if (skip > 0) {
        put32(bytes, form == LLMC_16 ? 20240520 : 20240801);
        put32(bytes + 4, form == LLMC_16 ? 1 : 7);
        put32(bytes + 8, count);
    }
    for (uint32_t k = 0; k < count; k++) {
        uint8_t four[4];
        put32(four, token(first + k));
        memcpy(bytes + skip + (size_t)k * width, four, width);
    }
    return bytes;
}

static void write_tokens(const data_folder *f, const char *stem, token_form form, uint32_t first,
                         uint32_t count)
{
    char leaf[64];
    size_t size_bytes;
    uint8_t *bytes = token_bytes(form, first, count, &size_bytes);
    (void)snprintf(leaf, sizeof leaf, "%s%s", stem, endings[form]);
    data_replace(f, leaf, bytes, size_bytes);
    free(bytes);
}

// Sample `index` is window `number` of the tokens that begin with number `first`.
static void assert_window(const data_source *s, data_set set, uint32_t index, uint64_t number, uint32_t first)
{
    data_room room = sample_of(s, set, index);
    const int32_t *input = room.slot[0], *label = room.slot[1];
    for (uint32_t k = 0; k < LENGTH; k++) {
        ck_assert_int_eq(input[k], (int)token(first + (uint32_t)number * LENGTH + k));
        ck_assert_int_eq(label[k], (int)token(first + (uint32_t)number * LENGTH + k + 1));
    }
    data_room_give_back(&room);
}

static void assert_split_run(const char *kind, const char *path)
{
    const data_form form = language(LENGTH, 256);
    data_source *s = source_at(kind, path, &form);
    ck_assert_uint_eq(s->info.train_samples, split_count(WINDOWS, DATA_TRAIN));
    ck_assert_uint_eq(s->info.eval_samples, split_count(WINDOWS, DATA_EVAL));
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
            assert_window(s, set, i, split_number(WINDOWS, set, i), 0);
        }
    }
    data_source_close(s);
}

START_TEST(a_file_of_tokens_is_windows_and_what_follows_them)
{
    data_folder f = data_folder_make();
    char leaf[64], path[FILE_NAME_MAX];
    write_tokens(&f, "corpus", (token_form)_i, 0, TOKENS);
    (void)snprintf(leaf, sizeof leaf, "corpus%s", endings[_i]);
    assert_split_run(kinds[_i], data_folder_file(&f, leaf, path));
    assert_split_run("auto", path);
    assert_split_run("auto", f.path);
    data_folder_remove(&f);
}
END_TEST

START_TEST(files_of_a_folder_are_one_run)
{
    data_folder f = data_folder_make();
    uint32_t first = 0;
    for (uint32_t k = 0; first < TOKENS; k++) {
        char stem[32];
        const uint32_t left = TOKENS - first,
                       count = k * 13 % 40; // some are empty, many shorter than a window
        (void)snprintf(stem, sizeof stem, "part_%03u", k);
        write_tokens(&f, stem, (token_form)_i, first, count < left ? count : left);
        first += count < left ? count : left;
    }
    assert_split_run("auto", f.path);
    data_folder_remove(&f);
}
END_TEST

START_TEST(held_out_files_are_known_by_their_names)
{
    static const char *const names[][3] = {
        {"train", "val", NULL}, {"x_train_000001", "x_test", NULL}, {"train", "wiki.valid", "wiki.test"}};
    const data_form form = language(LENGTH, 256);
    for (size_t k = 0; k < 3; k++) {
        data_folder f = data_folder_make();
        write_tokens(&f, names[k][0], (token_form)_i, 0, 100);
        write_tokens(&f, names[k][1], (token_form)_i, 500, 50);
        if (names[k][2] != NULL) {
            write_tokens(&f, names[k][2], (token_form)_i, 800, 90);
        }
        data_source *s = source_at(kinds[_i], f.path, &form);
        ck_assert_uint_eq(s->info.train_samples, 6);
        ck_assert_uint_eq(s->info.eval_samples, 3);
        for (uint32_t i = 0; i < 6; i++) {
            assert_window(s, DATA_TRAIN, i, i, 0);
        }
        for (uint32_t i = 0; i < 3; i++) {
            assert_window(s, DATA_EVAL, i, i, 500);
        }
        data_source_close(s);
        data_folder_remove(&f);
    }
}
END_TEST

START_TEST(what_is_held_are_names_and_places)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    write_tokens(&f, "a", BYTES, 0, 300);
    write_tokens(&f, "bc", BYTES, 300, 300);
    data_source *s = source_at("text", f.path, &form);
    ck_assert_uint_eq(s->held_bytes,
                      2 * sizeof(part) + strlen(f.path) + 1 + sizeof "a.txt" + sizeof "bc.txt");
    char label[64];
    (void)snprintf(label, sizeof label, "text (%s)", strrchr(f.path, '/') + 1);
    ck_assert_str_eq(s->info.label, label);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(too_large_tokens_are_said_with_the_largest)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    uint8_t bytes[2 * TOKENS] = {0};
    data_form form = language(LENGTH, 300);
    memcpy(bytes + 2 * 20, (const uint8_t[]){44, 1, 45, 1, 200, 0}, 6); // 300, 301, 200
    data_replace(&f, "a.bin", bytes, sizeof bytes);
    assert_refused("auto", f.path, &form, data_folder_file(&f, "a.bin", path),
                   ", offset 42: needed tokens below 300, as many as the model knows, had up to 301");
    form = language(LENGTH, 302);
    data_source_close(source_at("auto", f.path, &form));
    memset(bytes, 0, sizeof bytes); // deep within: found when it is read
    form = language(LENGTH, 300);
    memcpy(bytes + 2 * 800, (const uint8_t[]){255, 255}, 2);
    data_replace(&f, "a.bin", bytes, sizeof bytes);
    data_source *s = source_at("auto", f.path, &form);
    uint32_t refused = 0;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        for (uint32_t i = 0; i < data_source_samples(s, set); i++) {
            data_room room;
            hr_err err = {0};
            if (read_sample(s, set, i, &room, &err) == HR_OK) {
                data_room_give_back(&room);
            } else {
                refused++;
                assert_says(
                    &err, path,
                    ", offset 1600: needed tokens below 300, as many as the model knows, had up to 65535");
            }
        }
    }
    ck_assert_uint_eq(refused, 2); // 800 is a multiple of 16: as a label, and as an input
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(files_cut_or_changed_while_in_use_are_errors)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    write_tokens(&f, "a", BYTES, 0, TOKENS);
    data_folder_file(&f, "a.txt", path);
    data_source *s = source_at("auto", f.path, &form);
    ck_assert_int_eq(truncate(path, 999), 0);
    hr_err err = sample_refused(s, DATA_TRAIN, 3);
    assert_says(&err, path, ": needed the file of 1000 bytes that was opened, had one of 999 bytes");
    ck_assert_int_eq(truncate(path, 1000), 0);
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 77}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    err = sample_refused(s, DATA_TRAIN, 3);
    assert_says(&err, path, ": needed the file of 1000 bytes that was opened, had one of 1000 bytes");
    ck_assert_int_eq(unlink(path), 0);
    err = sample_refused(s, DATA_EVAL, 1);
    assert_says(&err, path, ": needed a file that can be read, had: No such file or directory");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    err = sample_refused(s, DATA_EVAL, 1);
    assert_says(&err, path, ": needed a plain file, had something else");
    ck_assert_int_eq(rmdir(path), 0);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// A hundred gigabytes of nothing: none of it is looked at but what is asked for.
START_TEST(a_sparse_file_is_opened_at_once)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_replace(&f, "a.bin", "", 0);
    if (truncate(data_folder_file(&f, "a.bin", path), (off_t)100 << 30) ==
        0) { // else the file system has no such files
        data_source *s = source_at("auto", path, &form);
        ck_assert_uint_eq(s->info.train_samples + s->info.eval_samples,
                          (UINT64_C(100) << 30) / 2 / LENGTH - 1);
        data_room room = sample_of(s, DATA_TRAIN, (uint32_t)s->info.train_samples - 1);
        data_room_give_back(&room);
        data_source_close(s);
        ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
        assert_refused("auto", path, &form, path, ": needed fewer than 4294967296 samples, had more");
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(every_truncation_is_refused_or_shorter)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    size_t size_bytes;
    uint8_t *bytes = token_bytes((token_form)_i, 0, 100, &size_bytes);
    const bool has_header = _i == LLMC_16 || _i == LLMC_32;
    for (size_t cut = 0; cut <= size_bytes; cut += cut > 8 && cut + 300 < size_bytes ? 13 : 1) {
        char leaf[16];
        (void)snprintf(leaf, sizeof leaf, "a%s", endings[_i]);
        data_replace(&f, leaf, bytes, cut);
        const size_t width = _i == BYTES ? 1 : 2;
        const bool whole = has_header ? cut == size_bytes || cut < 4 : cut % width == 0;
        const size_t windows = has_header && cut < 4 ? 0 : cut / width > 0 ? (cut / width - 1) / LENGTH : 0;
        if (whole && (windows >= 2 || (has_header && cut == size_bytes))) {
            data_source_close(source_at(kinds[_i], f.path, &form));
        } else {
            const hr_err err = source_refused(kinds[_i], f.path, &form);
            ck_assert_msg(strncmp(err.sentence, f.path, strlen(f.path)) == 0, "%s", err.sentence);
        }
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_is_wrong_is_said)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    assert_refused("text", f.path, &form, f.path, ": needed files *.txt to train on, had none");
    assert_refused("auto", "/nowhere.text", &form, "/nowhere.text",
                   ": needed a file or folder that can be read, had: No such file or directory");
    assert_refused("auto", f.path, &form, f.path,
                   ": needed data for 16 ids below 256 that pipeline.source=auto knows, had none");
    assert_refused("tokens", "/nowhere.bin", &form, "/nowhere.bin",
                   ": needed a file that can be read, had: No such file or directory");
    write_tokens(&f, "val", BYTES, 0, 2 * LENGTH);
    assert_refused("text", f.path, &form, f.path,
                   ": needed files *.txt to train on, had only such as are held out by their names");
    (void)unlink(data_folder_file(&f, "val.txt", path));
    write_tokens(&f, "a", BYTES, 0, 2 * LENGTH);
    assert_refused("text", f.path, &form, f.path,
                   ": needed at least 33 bytes to train on (16 a sample, and the one behind), had 32");
    write_tokens(&f, "a_val", BYTES, 0, LENGTH);
    assert_refused("text", f.path, &form, f.path,
                   ": needed at least 17 bytes to hold out (16 a sample, and the one behind), had 16");
    uint8_t header[1024] = {0};
    put32(header, 20240520);
    put32(header + 4, 2);
    data_replace(&f, "a.bin", header, sizeof header);
    assert_refused("tokens", f.path, &form, data_folder_file(&f, "a.bin", path),
                   ", offset 4: needed version 1 and a header of 1024 bytes, had 2 and 1024");
    put32(header + 4, 1);
    put32(header + 8, 3);
    data_replace(&f, "a.bin", header, sizeof header);
    assert_refused("tokens", f.path, &form, path,
                   ", offset 8: needed 1030 bytes for 3 tokens of 2, had 1024");
    write_tokens(&f, "a", PLAIN_16, 0, 100);
    write_tokens(&f, "b", LLMC_32, 0, 100);
    assert_refused("tokens", f.path, &form, data_folder_file(&f, "b.bin", path),
                   ": needed tokens of 2 bytes as in the other files, had 4");
    data_replace(&f, "b.bin", "abc", 3);
    assert_refused("tokens", f.path, &form, path, ": needed whole tokens of 2 bytes, had 3 bytes");
    const data_form image = {.count = 2,
                             .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {32, 32, 3}},
                                      {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    assert_refused("text", f.path, &image, "pipeline.source=text",
                   " has ids and the same one further on as labels: needed 32x32x3 floats");
    data_folder_remove(&f);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    const data_form form = language(LENGTH, 256);
    data_folder f = data_folder_make();
    write_tokens(&f, "a", (token_form)_i, 0, 100);
    write_tokens(&f, "b", (token_form)_i, 100, 100);
    write_tokens(&f, "c_val", (token_form)_i, 200, 100);
    assert_survives_short_memory(kinds[_i], f.path, &form);
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources_tokens");
    TCase *split = tcase_create("split");
    tcase_add_test(split, a_split_gives_each_sample_to_one_set_and_a_tenth_to_the_held_out_one);
    tcase_add_test(split, the_place_that_is_held_out_is_drawn_anew_for_every_ten);
    tcase_add_test(split, words_of_a_name_say_what_a_file_is_for);
    tcase_add_test(split, a_listing_has_the_names_with_that_ending_in_byte_order);
    suite_add_tcase(suite, split);
    TCase *tokens = tcase_create("tokens");
    tcase_add_loop_test(tokens, a_file_of_tokens_is_windows_and_what_follows_them, 0, TOKEN_FORMS);
    tcase_add_loop_test(tokens, files_of_a_folder_are_one_run, 0, TOKEN_FORMS);
    tcase_add_loop_test(tokens, held_out_files_are_known_by_their_names, 0, TOKEN_FORMS);
    tcase_add_test(tokens, what_is_held_are_names_and_places);
    tcase_add_test(tokens, too_large_tokens_are_said_with_the_largest);
    tcase_add_test(tokens, files_cut_or_changed_while_in_use_are_errors);
    tcase_add_test(tokens, a_sparse_file_is_opened_at_once);
    tcase_add_loop_test(tokens, every_truncation_is_refused_or_shorter, 0, TOKEN_FORMS);
    tcase_add_test(tokens, what_is_wrong_is_said);
    tcase_add_loop_test(tokens, every_allocation_may_fail_once, 0, TOKEN_FORMS);
    suite_add_tcase(suite, tokens);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
