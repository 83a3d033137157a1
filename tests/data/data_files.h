// SPDX-License-Identifier: Apache-2.0
// Small data sets in their real formats, made where a test runs: CIFAR-10 binary files and archives, IDX files.
#ifndef TESTS_DATA_FILES_H
#define TESTS_DATA_FILES_H

#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/knobs.h"

enum { CIFAR_RECORD = 3073, FILE_NAME_MAX = 512 };

// A folder of its own for one test; data_folder_remove takes it away with all that is in it.
typedef struct data_folder {
    char path[64];
} data_folder;

static inline data_folder data_folder_make(void)
{
    data_folder f;
    strcpy(f.path, "/tmp/headroom-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f.path));
    return f;
}

static inline const char *data_folder_file(const data_folder *f, const char *leaf, char path[FILE_NAME_MAX])
{
    (void)snprintf(path, FILE_NAME_MAX, "%s/%s", f->path, leaf);
    return path;
}

static inline void data_remove_all(const char *path)
{
    char deeper[FILE_NAME_MAX];
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        const int length = snprintf(deeper, sizeof deeper, "%s/%s", path, e->d_name);
        ck_assert_int_lt(length, FILE_NAME_MAX);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlink(deeper) != 0) {
            data_remove_all(deeper);
        }
    }
    closedir(d);
    ck_assert_int_eq(rmdir(path), 0);
}

static inline void data_folder_remove(const data_folder *f)
{
    data_remove_all(f->path);
}

static inline void data_write(const data_folder *f, const char *leaf, const void *bytes, size_t count)
{
    char path[FILE_NAME_MAX];
    FILE *out = fopen(data_folder_file(f, leaf, path), "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(bytes, 1, count, out), count);
    ck_assert_int_eq(fclose(out), 0);
}

// The whole file; the caller frees it.
static inline uint8_t *data_read(const char *path, size_t *count)
{
    FILE *in = fopen(path, "rb");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(fseek(in, 0, SEEK_END), 0);
    *count = (size_t)ftell(in);
    rewind(in);
    uint8_t *bytes = malloc(*count + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *count, in), *count);
    fclose(in);
    return bytes;
}

// ---- CIFAR-10 -------------------------------------------------------------------------------------------------

// Record `number` says who it is: label number % 10, red 0 and 1 the number's bytes, the rest a pattern of it.
static inline void cifar_record(uint32_t number, uint8_t record[CIFAR_RECORD])
{
    record[0] = (uint8_t)(number % 10);
    for (uint32_t i = 1; i < CIFAR_RECORD; i++) {
        record[i] = (uint8_t)(number * 31 + i * 7);
    }
    record[1] = (uint8_t)(number & 255);
    record[2] = (uint8_t)(number >> 8);
}

// Records first … first + count − 1; the caller frees them.
static inline uint8_t *cifar_records(uint32_t first, uint32_t count)
{
    uint8_t *bytes = malloc((size_t)count * CIFAR_RECORD);
    ck_assert_ptr_nonnull(bytes);
    for (uint32_t i = 0; i < count; i++) {
        cifar_record(first + i, bytes + (size_t)i * CIFAR_RECORD);
    }
    return bytes;
}

static inline void cifar_write(const data_folder *f, const char *leaf, uint32_t first, uint32_t count)
{
    uint8_t *bytes = cifar_records(first, count);
    data_write(f, leaf, bytes, (size_t)count * CIFAR_RECORD);
    free(bytes);
}

// Two training files with samples 0 … train − 1, and the held-out samples train … train + eval − 1.
static inline void cifar_write_set(const data_folder *f, uint32_t train, uint32_t eval)
{
    uint32_t half = train / 2;
    cifar_write(f, "data_batch_1.bin", 0, half);
    cifar_write(f, "data_batch_2.bin", half, train - half);
    cifar_write(f, "test_batch.bin", train, eval);
}

// ---- archives -------------------------------------------------------------------------------------------------

typedef enum pack { PACK_TAR, PACK_TAR_GZIP, PACK_ZIP, PACK_GZIP, PACK_COUNT } pack;

static inline struct archive *pack_open(const char *path, pack how)
{
    struct archive *a = archive_write_new();
    ck_assert_ptr_nonnull(a);
    if (how == PACK_TAR_GZIP || how == PACK_GZIP) {
        ck_assert_int_eq(archive_write_add_filter_gzip(a), ARCHIVE_OK);
    }
    int result = how == PACK_ZIP    ? archive_write_set_format_zip(a)
                 : how == PACK_GZIP ? archive_write_set_format_raw(a)
                                    : archive_write_set_format_ustar(a);
    ck_assert_int_eq(result, ARCHIVE_OK);
    ck_assert_int_eq(archive_write_open_filename(a, path), ARCHIVE_OK);
    return a;
}

static inline void pack_add(struct archive *a, const char *member, const void *bytes, size_t count)
{
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, member);
    archive_entry_set_size(e, (la_int64_t)count);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    ck_assert_int_eq(archive_write_header(a, e), ARCHIVE_OK);
    ck_assert_int_eq(archive_write_data(a, bytes, count), (la_ssize_t)count);
    archive_entry_free(e);
}

static inline void pack_close(struct archive *a)
{
    ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

// What cifar_write_set writes, as the archive is distributed: below a folder, with other files beside it.
static inline void cifar_pack_set(const char *path, pack how, uint32_t train, uint32_t eval)
{
    struct archive *a = pack_open(path, how);
    uint32_t half = train / 2;
    uint8_t *bytes = cifar_records(0, train + eval);
    pack_add(a, "cifar-10-batches-bin/readme.html", "<p>", 3);
    pack_add(a, "cifar-10-batches-bin/test_batch.bin", bytes + (size_t)train * CIFAR_RECORD,
             (size_t)eval * CIFAR_RECORD);
    pack_add(a, "cifar-10-batches-bin/data_batch_2.bin", bytes + (size_t)half * CIFAR_RECORD,
             (size_t)(train - half) * CIFAR_RECORD);
    pack_add(a, "cifar-10-batches-bin/data_batch_1.bin", bytes, (size_t)half * CIFAR_RECORD);
    free(bytes);
    pack_close(a);
}

// ---- IDX ------------------------------------------------------------------------------------------------------

static inline void idx_write(const data_folder *f, const char *leaf, bool gzip, const void *bytes,
                             size_t count)
{
    if (!gzip) {
        data_write(f, leaf, bytes, count);
        return;
    }
    char path[FILE_NAME_MAX], packed[64];
    (void)snprintf(packed, sizeof packed, "%s.gz", leaf);
    struct archive *a = pack_open(data_folder_file(f, packed, path), PACK_GZIP);
    pack_add(a, leaf, bytes, count);
    pack_close(a);
}

static inline void idx_write_images(const data_folder *f, const char *leaf, bool gzip, uint8_t count,
                                    uint8_t side)
{
    size_t values = (size_t)count * side * side;
    uint8_t *bytes = calloc(16 + values, 1);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, (uint8_t[16]){0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, side, 0, 0, 0, side}, 16);
    for (size_t i = 0; i < values; i++) {
        bytes[16 + i] = (uint8_t)(i * 5 + i / (size_t)(side * side));
    }
    idx_write(f, leaf, gzip, bytes, 16 + values);
    free(bytes);
}

static inline void idx_write_labels(const data_folder *f, const char *leaf, bool gzip, uint8_t count)
{
    uint8_t bytes[8 + 255] = {0, 0, 8, 1, 0, 0, 0, count};
    for (size_t i = 0; i < count; i++) {
        bytes[8 + i] = (uint8_t)(i % 10);
    }
    idx_write(f, leaf, gzip, bytes, (size_t)8 + count);
}

static inline void mnist_write_set(const data_folder *f, bool gzip, uint8_t train, uint8_t eval)
{
    idx_write_images(f, "train-images-idx3-ubyte", gzip, train, 28);
    idx_write_labels(f, "train-labels-idx1-ubyte", gzip, train);
    idx_write_images(f, "t10k-images-idx3-ubyte", gzip, eval, 28);
    idx_write_labels(f, "t10k-labels-idx1-ubyte", gzip, eval);
}

// ---- knobs ----------------------------------------------------------------------------------------------------

static inline hr_knobs data_knobs(const char *source, const char *path)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_SOURCE, source, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PIPELINE_PATH, path, NULL), HR_OK);
    return knobs;
}

#endif
