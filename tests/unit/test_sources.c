// SPDX-License-Identifier: Apache-2.0
// Sources: what is read is what the files say, whatever form they come in; what is wrong with them is said in one
// sentence; a stranger's file can neither crash the program nor take its memory.
#include <sys/stat.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "data/data_files.h"
#include "data/source.h"

static const data_shape cifar_model = {32, 32, 3, 10};
static const data_shape mnist_model = {28, 28, 1, 10};

static data_form form_of(const data_shape *model)
{
    return (data_form){
        .count = 2,
        .slot = {{.type = DATA_FLOAT,
                  .rank = model->height == 1 && model->width == 1 ? 1 : 3,
                  .dim = {model->height == 1 && model->width == 1 ? model->channels : model->height,
                          model->width, model->channels}},
                 {.type = DATA_IDS, .is_label = true, .classes = model->classes}}};
}

static data_source *open_source(const char *source, const char *path, const data_shape *model)
{
    hr_knobs knobs = data_knobs(source, path);
    const data_form form = form_of(model);
    hr_err err = {0};
    data_source *s = NULL;
    ck_assert_msg(data_source_open(&knobs, &form, &s, &err) == HR_OK, "%s", err.sentence);
    return s;
}

static hr_err refused(const char *source, const char *path, const data_shape *model)
{
    hr_knobs knobs = data_knobs(source, path);
    const data_form form = form_of(model);
    hr_err err = {0};
    data_source *s = NULL;
    int64_t live = hr_host_mem_live();
    ck_assert_int_ne(data_source_open(&knobs, &form, &s, &err), HR_OK);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(hr_host_mem_live(), live);
    return err;
}

// The sentence without the folder's own name at its beginning.
static void assert_sentence(const hr_err *err, const char *begin, const char *sentence)
{
    ck_assert_int_eq(err->status, HR_DATA);
    ck_assert_msg(strncmp(err->sentence, begin, strlen(begin)) == 0, "%s", err->sentence);
    ck_assert_str_eq(err->sentence + strlen(begin), sentence);
    ck_assert_msg(err->hint[0] != '\0' || hr_status_try(err->status)[0] != '\0', "no try: line");
}

static void assert_record(const data_source *s, data_set set, uint32_t index, uint32_t number)
{
    uint8_t wanted[CIFAR_RECORD], *scratch = malloc(s->room_bytes);
    data_raw record;
    cifar_record(number, wanted);
    ck_assert_int_eq(data_source_fetch(s, set, index, scratch, &record, NULL), HR_OK);
    ck_assert_int_eq(record.label, wanted[0]);
    ck_assert_mem_eq(record.bytes, wanted + 1, CIFAR_RECORD - 1);
    free(scratch);
}

// ---- generated ------------------------------------------------------------------------------------------------

START_TEST(generated_images_are_the_same_bytes_on_every_machine)
{
    data_source *s = open_source("generated", "", &cifar_model);
    ck_assert_str_eq(s->info.label, "generated");
    ck_assert_uint_eq(s->held_bytes, 0);
    uint8_t *scratch = malloc(s->room_bytes);
    sha256 hash;
    sha256_init(&hash);
    for (uint32_t i = 0; i < 200; i++) {
        data_raw record;
        ck_assert_int_eq(data_source_fetch(s, (data_set)(i % 2), i * 7, scratch, &record, NULL), HR_OK);
        const uint8_t label = (uint8_t)record.label;
        sha256_add(&hash, &label, 1);
        sha256_add(&hash, record.bytes, CIFAR_RECORD - 1);
    }
    char text[65];
    sha256_text(&hash, text);
    ck_assert_str_eq(text, "fed6966058711f2a9920f4104f83bb9e4e82fabe2aa5648594ec18ad1347cd94");
    free(scratch);
    data_source_close(s);
}
END_TEST

START_TEST(generated_images_do_not_depend_on_what_was_read_before)
{
    data_source *s = open_source("auto", "", &cifar_model);
    uint8_t *first = calloc(s->room_bytes, 1), *again = calloc(s->room_bytes, 1);
    data_raw a, b;
    ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, 5, first, &a, NULL), HR_OK);
    ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, 9999, again, &b, NULL), HR_OK);
    ck_assert_mem_ne(first, again, CIFAR_RECORD);
    ck_assert_int_eq(data_source_fetch(s, DATA_EVAL, 5, again, &b, NULL), HR_OK);
    ck_assert_mem_ne(first, again, CIFAR_RECORD);
    ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, 5, again, &b, NULL), HR_OK);
    ck_assert_mem_eq(first, again, CIFAR_RECORD);
    free(first);
    free(again);
    data_source_close(s);
}
END_TEST

START_TEST(every_generated_class_is_about_as_frequent)
{
    data_source *s = open_source("generated", "", &cifar_model);
    uint8_t *scratch = malloc(s->room_bytes);
    uint32_t counts[10] = {0};
    for (uint32_t i = 0; i < s->info.eval_samples; i++) {
        data_raw record;
        ck_assert_int_eq(data_source_fetch(s, DATA_EVAL, i, scratch, &record, NULL), HR_OK);
        counts[record.label]++;
    }
    for (int c = 0; c < 10; c++) {
        ck_assert_uint_gt(counts[c], s->info.eval_samples * 8 / 100);
        ck_assert_uint_lt(counts[c], s->info.eval_samples * 12 / 100);
    }
    free(scratch);
    data_source_close(s);
}
END_TEST

START_TEST(generated_images_take_the_shape_and_the_classes_of_the_model)
{
    static const struct {
        data_shape model, data;
    } cases[] = {
        {{64, 48, 1, 10}, {64, 48, 1, 10}},    {{7, 7, 5, 4}, {7, 7, 5, 4}},
        {{1, 1, 3072, 1000}, {32, 32, 3, 10}}, {{1, 1, 784, 10}, {28, 28, 1, 10}},
        {{1, 1, 7, 2}, {1, 7, 1, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        data_source *s = open_source("generated", "", &cases[i].model);
        data_shape got = {s->info.height, s->info.width, s->info.channels, s->info.classes};
        ck_assert_mem_eq(&got, &cases[i].data, sizeof got);
        uint8_t *scratch = malloc(s->room_bytes);
        for (uint32_t k = 0; k < 50; k++) {
            data_raw record;
            ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, k, scratch, &record, NULL), HR_OK);
            ck_assert_int_lt(record.label, (int)cases[i].data.classes);
        }
        free(scratch);
        data_source_close(s);
    }
    hr_err err = refused("generated", "", &(data_shape){1 << 20, 1 << 20, 3, 10});
    ck_assert_int_eq(err.status, HR_DATA);
}
END_TEST

START_TEST(generated_images_written_to_files_are_a_cifar_set)
{
    data_folder f = data_folder_make();
    data_source *generated = open_source("generated", "", &cifar_model);
    uint8_t *bytes = malloc(20 * CIFAR_RECORD), *scratch = malloc(generated->room_bytes);
    for (uint32_t i = 0; i < 20; i++) {
        data_raw record;
        ck_assert_int_eq(data_source_fetch(generated, DATA_TRAIN, i, scratch, &record, NULL), HR_OK);
        bytes[i * CIFAR_RECORD] = (uint8_t)record.label;
        memcpy(bytes + i * CIFAR_RECORD + 1, record.bytes, CIFAR_RECORD - 1);
    }
    data_write(&f, "data_batch_1.bin", bytes, 20 * CIFAR_RECORD);
    data_write(&f, "test_batch.bin", bytes, 5 * CIFAR_RECORD);
    data_source *files = open_source("cifar10", f.path, &cifar_model);
    for (uint32_t i = 0; i < 20; i++) {
        data_raw record;
        ck_assert_int_eq(data_source_fetch(files, DATA_TRAIN, i, scratch, &record, NULL), HR_OK);
        ck_assert_int_eq(record.label, bytes[i * CIFAR_RECORD]);
        ck_assert_mem_eq(record.bytes, bytes + i * CIFAR_RECORD + 1, CIFAR_RECORD - 1);
    }
    data_source_close(files);
    data_source_close(generated);
    free(bytes);
    free(scratch);
    data_folder_remove(&f);
}
END_TEST

// ---- CIFAR-10 -------------------------------------------------------------------------------------------------

static void assert_cifar_set(const char *path, uint32_t train, uint32_t eval)
{
    data_source *s = open_source("auto", path, &cifar_model);
    ck_assert_uint_eq(s->info.train_samples, train);
    ck_assert_uint_eq(s->info.eval_samples, eval);
    for (uint32_t i = 0; i < train; i++) {
        assert_record(s, DATA_TRAIN, i, i);
    }
    for (uint32_t i = 0; i < eval; i++) {
        assert_record(s, DATA_EVAL, i, train + i);
    }
    data_source_close(s);
}

START_TEST(a_folder_of_files_is_read_in_the_order_of_their_numbers)
{
    data_folder f = data_folder_make();
    cifar_write_set(&f, 21, 4);
    assert_cifar_set(f.path, 21, 4);
    data_source *s = open_source("cifar10", f.path, &cifar_model);
    ck_assert_uint_eq(s->held_bytes, 0);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_archive_is_read_as_the_folder_in_it)
{
    static const char *const leaf[] = {"a.tar", "cifar-10-binary.tar.gz", "a.zip"};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_folder_file(&f, leaf[_i], path);
    cifar_pack_set(path, (pack)_i, 21, 4);
    assert_cifar_set(path, 21, 4);
    data_source *s = open_source("cifar10", path, &cifar_model);
    ck_assert_uint_eq(s->held_bytes, 25 * CIFAR_RECORD);
    char label[64];
    (void)snprintf(label, sizeof label, "CIFAR-10 (%s)", leaf[_i]);
    ck_assert_str_eq(s->info.label, label);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_flat_model_takes_images_of_as_many_values)
{
    data_folder f = data_folder_make();
    cifar_write_set(&f, 4, 2);
    data_source_close(open_source("cifar10", f.path, &(data_shape){1, 1, 3072, 10}));
    hr_err err = refused("cifar10", f.path, &(data_shape){1, 1, 3000, 10});
    assert_sentence(&err, "CIFAR-10 (", err.sentence + strlen("CIFAR-10 ("));
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    hr_err err = refused("auto", f.path, &cifar_model);
    assert_sentence(&err, f.path, ": needed data_batch_1.bin (CIFAR-10, binary version), had no such file");
    cifar_write(&f, "data_batch_1.bin", 0, 3);
    err = refused("auto", f.path, &cifar_model);
    assert_sentence(&err, f.path, ": needed test_batch.bin (the held-out images), had no such file");
    cifar_write(&f, "test_batch.bin", 0, 3);
    cifar_write(&f, "data_batch_3.bin", 0, 3);
    err = refused("auto", f.path, &cifar_model);
    assert_sentence(&err, f.path, ": needed data_batch_2.bin (there is a later one), had no such file");
    unlink(data_folder_file(&f, "data_batch_3.bin", path));
    cifar_write(&f, "data_batch_1.bin", 0, 10000);
    err = refused("auto", f.path, &cifar_model);
    assert_sentence(&err, f.path,
                    ": needed data_batch_2.bin (CIFAR-10 has 5 of 10,000 images each), had no such file");
    data_folder_remove(&f);
}
END_TEST

START_TEST(no_such_path_and_no_path_are_said)
{
    hr_err err = refused("cifar10", "/nowhere/cifar.tar.gz", &cifar_model);
    assert_sentence(&err, "/nowhere/cifar.tar.gz",
                    ": needed a file that can be read, had: No such file or directory");
    err = refused("mnist", "", &mnist_model);
    assert_sentence(&err, "pipeline.source=mnist", ": needed pipeline.path, had none");
    err = refused("auto", "/dev/null", &cifar_model);
    assert_sentence(&err, "/dev/null", ": needed a plain file, had something else");
}
END_TEST

START_TEST(a_file_cut_within_a_record_is_truncated)
{
    data_folder f = data_folder_make();
    cifar_write_set(&f, 10, 2);
    uint8_t *bytes = cifar_records(0, 2);
    for (size_t count = 0; count < 2 * CIFAR_RECORD; count += 431) {
        char sentence[256];
        data_write(&f, "data_batch_2.bin", bytes, count);
        hr_err err = refused("cifar10", f.path, &cifar_model);
        (void)snprintf(
            sentence, sizeof sentence,
            "/data_batch_2.bin: needed whole records of 3073 bytes, had %zu bytes (truncated at offset "
            "%zu: %zu records and %zu bytes)",
            count, count, count / CIFAR_RECORD, count % CIFAR_RECORD);
        assert_sentence(&err, f.path, sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_label_beyond_nine_is_found_up_front)
{
    data_folder f = data_folder_make();
    cifar_write_set(&f, 10, 2);
    uint8_t *bytes = cifar_records(0, 3);
    bytes[2 * CIFAR_RECORD] = 10;
    data_write(&f, "data_batch_2.bin", bytes, 3 * CIFAR_RECORD);
    hr_err err = refused("cifar10", f.path, &cifar_model);
    assert_sentence(&err, f.path, "/data_batch_2.bin, offset 6146: needed a label from 0 to 9, had 10");
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

// Eight hundred gigabytes of nothing: each image a page, minutes if every label were looked at.
START_TEST(a_sparse_file_of_any_size_is_opened_at_once)
{
    static const off_t records = 280000000;
    char path[256];
    data_source *source = NULL;
    data_folder f = data_folder_make();
    cifar_write_set(&f, 10, 2);
    (void)snprintf(path, sizeof path, "%s/data_batch_2.bin", f.path);
    uint8_t *bytes = cifar_records(0, 1);
    data_write(&f, "data_batch_2.bin", bytes, CIFAR_RECORD);
    free(bytes);
    if (truncate(path, records * CIFAR_RECORD) == 0) { // else the file system has no such files
        source = open_source("cifar10", f.path, &cifar_model);
        ck_assert_uint_gt(source->info.train_samples, (uint64_t)records);
        data_source_close(source);
    }
    data_folder_remove(&f);
}
END_TEST

START_TEST(other_versions_of_cifar_are_recognised)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_write(&f, "data_batch_1", "\200\002}q\001", 5);
    hr_err err = refused("auto", f.path, &cifar_model);
    assert_sentence(
        &err, f.path,
        ": needed the binary version of CIFAR-10 (data_batch_1.bin), had data_batch_1: the Python version "
        "(pickle)");
    ck_assert_ptr_nonnull(strstr(err.hint, "cifar-10-binary.tar.gz"));

    data_folder_file(&f, "cifar-10-python.tar.gz", path);
    struct archive *a = pack_open(path, PACK_TAR_GZIP);
    pack_add(a, "cifar-10-batches-py/data_batch_4", "", 0);
    pack_add(a, "cifar-10-batches-py/test_batch", "", 0);
    pack_close(a);
    err = refused("auto", path, &cifar_model);
    assert_sentence(
        &err, path,
        ": needed the binary version of CIFAR-10 (data_batch_1.bin), had test_batch: the Python version "
        "(pickle)");

    err = refused("cifar10", data_folder_file(&f, "data_batch_1", path), &cifar_model);
    ck_assert_ptr_nonnull(strstr(err.sentence, "the Python version"));
    err = refused("cifar10", data_folder_file(&f, "data_batch_1.bin", path), &cifar_model);
    assert_sentence(&err, path, ": needed a folder or an archive, had one of its files");
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_cannot_be_read_is_said)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    cifar_write_set(&f, 10, 2);
    ck_assert_int_eq(unlink(data_folder_file(&f, "data_batch_2.bin", path)), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    hr_err err = refused("cifar10", f.path, &cifar_model);
    assert_sentence(&err, path, ": needed a file that can be read, had: something that is not a plain file");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("data_batch_2.bin", path), 0);
    err = refused("cifar10", f.path, &cifar_model);
    assert_sentence(&err, path, ": needed a file that can be read, had: Too many levels of symbolic links");
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_file_cut_while_in_use_is_an_error_with_its_offset)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX], sentence[FILE_NAME_MAX + 64];
    cifar_write_set(&f, 10, 2);
    data_source *s = open_source("cifar10", f.path, &cifar_model);
    ck_assert_int_eq(truncate(data_folder_file(&f, "data_batch_2.bin", path), 4000), 0);
    assert_record(s, DATA_TRAIN, 5, 5);
    uint8_t scratch[CIFAR_RECORD];
    data_raw record;
    hr_err err = {0};
    ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, 6, scratch, &record, &err), HR_DATA);
    (void)snprintf(sentence, sizeof sentence, "%s, offset 3073: needed 3073 bytes, had 927", path);
    ck_assert_str_eq(err.sentence, sentence);
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_archive_with_a_member_twice_is_refused)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    struct archive *a = pack_open(data_folder_file(&f, "a.tar", path), PACK_TAR);
    uint8_t *bytes = cifar_records(0, 1);
    pack_add(a, "x/test_batch.bin", bytes, CIFAR_RECORD);
    pack_add(a, "y/test_batch.bin", bytes, CIFAR_RECORD);
    pack_close(a);
    free(bytes);
    hr_err err = refused("cifar10", path, &cifar_model);
    assert_sentence(&err, path, ": needed test_batch.bin once, had it twice");
    data_folder_remove(&f);
}
END_TEST

// Makes the size in the first tar header 8 GiB − 1 and its checksum right.
static void lie_about_size(uint8_t *header)
{
    memcpy(header + 124, "77777777777", 11);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) {
        sum += header[i];
    }
    (void)snprintf((char *)header + 148, 8, "%06o", sum);
}

START_TEST(a_member_larger_than_its_archive_can_hold_takes_nothing)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    struct archive *a = pack_open(data_folder_file(&f, "a.tar", path), PACK_TAR);
    pack_add(a, "data_batch_1.bin", "x", 1);
    pack_close(a);
    size_t count;
    uint8_t *bytes = data_read(path, &count);
    lie_about_size(bytes);
    data_write(&f, "a.tar", bytes, 1024);
    hr_err err = refused("cifar10", path, &cifar_model);
    assert_sentence(&err, path,
                    ": needed members of at most 1056768 bytes together, had 8589934591 and more to come");
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_archive_truncated_anywhere_is_an_error)
{
    static const char *const leaf[] = {"a.tar", "a.tar.gz", "a.zip"};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    cifar_pack_set(data_folder_file(&f, leaf[_i], path), (pack)_i, 6, 2);
    uint8_t *bytes = data_read(path, &count);
    // What comes after the last member is not needed: a tar's empty blocks, a zip's directory, gzip's trailer.
    const uint8_t *directory = memmem(bytes, count, "PK\1\2", 4);
    size_t end = _i == PACK_TAR   ? 4 * 512 + 512 + 6656 + 9728 + 9219
                 : _i == PACK_ZIP ? (size_t)(directory - bytes)
                                  : count - 8;
    for (size_t cut = 0; cut < end; cut += 1 + end / 97) {
        data_write(&f, leaf[_i], bytes, cut);
        hr_err err = refused("cifar10", path, &cifar_model);
        ck_assert_int_eq(err.status, HR_DATA);
        ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(an_archive_with_a_flipped_byte_never_crashes)
{
    static const char *const leaf[] = {"a.tar", "a.tar.gz", "a.zip"};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    cifar_pack_set(data_folder_file(&f, leaf[_i], path), (pack)_i, 6, 2);
    uint8_t *bytes = data_read(path, &count);
    hr_knobs knobs = data_knobs("cifar10", path);
    const data_form form = form_of(&cifar_model);
    for (size_t at = 0; at < count; at += 1 + count / 211) {
        data_source *s = NULL;
        bytes[at] ^= 0x55;
        data_write(&f, leaf[_i], bytes, count);
        hr_status status = data_source_open(&knobs, &form, &s, NULL);
        ck_assert(status == HR_OK || status == HR_DATA);
        data_source_close(s);
        bytes[at] ^= 0x55;
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_name_that_could_steer_a_terminal_is_not_shown)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    data_source *s;
    cifar_pack_set(data_folder_file(&f, "\033[31mred\033[0m.tar", path), PACK_TAR, 4, 2);
    ck_assert_int_eq(source_cifar_open(path, NULL, &s, NULL), HR_OK);
    ck_assert_str_eq(s->info.label, "CIFAR-10 (?[31mred?[0m.tar)");
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

// ---- MNIST ----------------------------------------------------------------------------------------------------

START_TEST(mnist_is_read_plain_and_packed)
{
    data_folder f = data_folder_make();
    mnist_write_set(&f, _i == 1, 30, 10);
    data_source *s = open_source("auto", f.path, &mnist_model);
    ck_assert_uint_eq(s->info.train_samples, 30);
    ck_assert_uint_eq(s->info.eval_samples, 10);
    ck_assert_uint_eq(s->held_bytes, _i == 1 ? 40 * 785 + 2 * 24 : 40 + 2 * 8);
    uint8_t scratch[784];
    for (uint32_t i = 0; i < 30; i++) {
        data_raw record;
        ck_assert_int_eq(data_source_fetch(s, DATA_TRAIN, i, scratch, &record, NULL), HR_OK);
        ck_assert_int_eq(record.label, i % 10);
        for (uint32_t p = 0; p < 784; p++) {
            ck_assert_uint_eq(record.bytes[p], (uint8_t)((i * 784 + p) * 5 + i));
        }
    }
    data_source_close(s);
    data_folder_remove(&f);
}
END_TEST

START_TEST(mnist_for_a_model_of_another_shape_names_both)
{
    data_folder f = data_folder_make();
    mnist_write_set(&f, false, 30, 10);
    hr_err err = refused("mnist", f.path, &cifar_model);
    char begin[96];
    (void)snprintf(begin, sizeof begin, "MNIST (%s)", strrchr(f.path, '/') + 1);
    assert_sentence(&err, begin, ": needed images of 32x32x3 for this model, had 28x28x1");
    err = refused("mnist", f.path, &(data_shape){28, 28, 1, 2});
    assert_sentence(&err, begin, ": needed a model with 10 classes, had 2");
    data_folder_remove(&f);
}
END_TEST

START_TEST(what_is_wrong_with_an_idx_file_is_said)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *sentence;
    } cases[] = {
        {2, 0x0D, ", offset 0: needed IDX magic 0x00000803, had 0x00000D03"},
        {3, 1, ", offset 0: needed IDX magic 0x00000803, had 0x00000801"},
        {7, 0, ", offset 4: needed a dimension from 1 to 2147483647, had 0"},
        {8, 1, ", offset 8: needed a dimension from 1 to 4096, had 16777244"},
        {7, 31, ": needed 24320 bytes, had 23536 (truncated at offset 23536)"},
        {7, 29, ": needed 22752 bytes, had 23536 (goes on at offset 22752)"},
    };
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    mnist_write_set(&f, false, 30, 10);
    uint8_t *bytes = data_read(data_folder_file(&f, "train-images-idx3-ubyte", path), &count);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t before = bytes[cases[i].at];
        bytes[cases[i].at] = cases[i].value;
        data_write(&f, "train-images-idx3-ubyte", bytes, count);
        hr_err err = refused("mnist", f.path, &mnist_model);
        assert_sentence(&err, path, cases[i].sentence);
        bytes[cases[i].at] = before;
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(labels_of_mnist_are_checked)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    mnist_write_set(&f, false, 30, 10);
    data_folder_file(&f, "t10k-labels-idx1-ubyte", path);
    data_write(&f, "t10k-labels-idx1-ubyte", "\0\0\10\1\0\0\0\12\1\2\3\4\5\6\7\10\11\12", 18);
    hr_err err = refused("mnist", f.path, &mnist_model);
    assert_sentence(&err, path, ", offset 17: needed a label from 0 to 9, had 10");
    idx_write_labels(&f, "t10k-labels-idx1-ubyte", false, 9);
    err = refused("mnist", f.path, &mnist_model);
    assert_sentence(&err, path, ", offset 4: needed a label for each of 10 images, had 9");
    unlink(path);
    err = refused("mnist", f.path, &mnist_model);
    assert_sentence(&err, f.path,
                    ": needed t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz (MNIST), had neither");
    data_folder_remove(&f);
}
END_TEST

START_TEST(mnist_truncated_anywhere_is_an_error)
{
    static const char *const leaf[] = {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    size_t count;
    mnist_write_set(&f, _i == 1, 30, 10);
    uint8_t *bytes = data_read(data_folder_file(&f, leaf[_i], path), &count);
    for (size_t cut = 0; cut < count - 8 * (size_t)_i; cut += 1 + count / 151) { // 8: the trailer of gzip
        data_write(&f, leaf[_i], bytes, cut);
        hr_err err = refused("auto", f.path, &mnist_model);
        ck_assert_int_eq(err.status, HR_DATA);
        ck_assert_msg(strncmp(err.sentence, path, strlen(path)) == 0, "%s", err.sentence);
    }
    free(bytes);
    data_folder_remove(&f);
}
END_TEST

START_TEST(a_packed_idx_file_takes_no_more_than_it_can_hold)
{
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    uint8_t header[16] = {0, 0, 8, 3, 127, 255, 255, 255, 0, 0, 16, 0, 0, 0, 16, 0};
    mnist_write_set(&f, true, 30, 10);
    idx_write(&f, "train-images-idx3-ubyte", true, header, sizeof header);
    hr_err err = refused("mnist", f.path, &mnist_model);
    data_folder_file(&f, "train-images-idx3-ubyte.gz", path);
    ck_assert_int_eq(err.status, HR_DATA);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed 36028797002186768 bytes"));
    data_folder_remove(&f);
}
END_TEST

// ---- memory ---------------------------------------------------------------------------------------------------

START_TEST(every_allocation_may_fail_once)
{
    static const char *const source[] = {"generated", "cifar10", "cifar10", "mnist", "mnist"};
    static const data_shape *const model[] = {&cifar_model, &cifar_model, &cifar_model, &mnist_model,
                                              &mnist_model};
    data_folder f = data_folder_make();
    char path[FILE_NAME_MAX];
    strcpy(path, f.path);
    cifar_write_set(&f, 10, 2);
    mnist_write_set(&f, _i == 4, 30, 10);
    if (_i == 2) {
        cifar_pack_set(data_folder_file(&f, "a.tar.gz", path), PACK_TAR_GZIP, 10, 2);
    }
    hr_knobs knobs = data_knobs(source[_i], path);
    const data_form form = form_of(model[_i]);
    int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        data_source *s = NULL;
        hr_host_mem_fail_at(nth);
        status = data_source_open(&knobs, &form, &s, NULL);
        uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_int_eq(status, nth <= seen ? HR_NOMEM : HR_OK);
        data_source_close(s);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    data_folder_remove(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sources");
    TCase *generated = tcase_create("generated");
    tcase_add_test(generated, generated_images_are_the_same_bytes_on_every_machine);
    tcase_add_test(generated, generated_images_do_not_depend_on_what_was_read_before);
    tcase_add_test(generated, every_generated_class_is_about_as_frequent);
    tcase_add_test(generated, generated_images_take_the_shape_and_the_classes_of_the_model);
    tcase_add_test(generated, generated_images_written_to_files_are_a_cifar_set);
    suite_add_tcase(suite, generated);
    TCase *cifar = tcase_create("cifar10");
    tcase_add_test(cifar, a_folder_of_files_is_read_in_the_order_of_their_numbers);
    tcase_add_loop_test(cifar, an_archive_is_read_as_the_folder_in_it, PACK_TAR, PACK_GZIP);
    tcase_add_test(cifar, a_flat_model_takes_images_of_as_many_values);
    tcase_add_test(cifar, a_missing_file_is_named);
    tcase_add_test(cifar, no_such_path_and_no_path_are_said);
    tcase_add_test(cifar, a_file_cut_within_a_record_is_truncated);
    tcase_add_test(cifar, a_label_beyond_nine_is_found_up_front);
    tcase_add_test(cifar, a_sparse_file_of_any_size_is_opened_at_once);
    tcase_add_test(cifar, other_versions_of_cifar_are_recognised);
    tcase_add_test(cifar, what_cannot_be_read_is_said);
    tcase_add_test(cifar, a_file_cut_while_in_use_is_an_error_with_its_offset);
    tcase_add_test(cifar, an_archive_with_a_member_twice_is_refused);
    tcase_add_test(cifar, a_member_larger_than_its_archive_can_hold_takes_nothing);
    tcase_add_loop_test(cifar, an_archive_truncated_anywhere_is_an_error, PACK_TAR, PACK_GZIP);
    tcase_add_loop_test(cifar, an_archive_with_a_flipped_byte_never_crashes, PACK_TAR, PACK_GZIP);
    tcase_add_test(cifar, a_name_that_could_steer_a_terminal_is_not_shown);
    suite_add_tcase(suite, cifar);
    TCase *mnist = tcase_create("mnist");
    tcase_add_loop_test(mnist, mnist_is_read_plain_and_packed, 0, 2);
    tcase_add_test(mnist, mnist_for_a_model_of_another_shape_names_both);
    tcase_add_test(mnist, what_is_wrong_with_an_idx_file_is_said);
    tcase_add_test(mnist, labels_of_mnist_are_checked);
    tcase_add_loop_test(mnist, mnist_truncated_anywhere_is_an_error, 0, 2);
    tcase_add_test(mnist, a_packed_idx_file_takes_no_more_than_it_can_hold);
    suite_add_tcase(suite, mnist);
    TCase *memory = tcase_create("memory");
    tcase_add_loop_test(memory, every_allocation_may_fail_once, 0, 5);
    suite_add_tcase(suite, memory);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
