// SPDX-License-Identifier: Apache-2.0
// CIFAR-10 in its binary form: data_batch_1.bin … and test_batch.bin in a folder, or straight from the archive
// they are distributed in. Files may have any number of records, so that small sets in this form work too.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host_mem.h"
#include "base/reader.h"
#include "base/text.h"
#include "data/blob.h"
#include "data/record.h"
#include "data/source.h"

enum {
    CIFAR_SIDE = 32,
    CIFAR_CHANNELS = 3,
    CIFAR_CLASSES = 10,
    CIFAR_RECORD_BYTES = 1 + CIFAR_SIDE * CIFAR_SIDE * CIFAR_CHANNELS,
    CIFAR_FILE_RECORDS = 10000, // of CIFAR-10 itself …
    CIFAR_CHECKED_RECORDS = 10 * CIFAR_FILE_RECORDS,
    CIFAR_FILES = 5, // … which has so many training files
    CIFAR_MOST_FILES = 64,
    CIFAR_TEST = 0, // slot of test_batch.bin; data_batch_k.bin is in slot k
    CIFAR_SLOTS = 1 + CIFAR_MOST_FILES,
};

typedef struct cifar_source {
    data_source base;
    blob file[CIFAR_SLOTS];
    uint32_t records[CIFAR_SLOTS];
    uint32_t file_count; // training files: slots 1..file_count
} cifar_source;

static const char cifar_hint[] = "curl -O https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, then "
                                 "-s pipeline.path=cifar-10-binary.tar.gz "
                                 "(or -s pipeline.source=generated)";

// What people have by mistake, by a file that only it has.
static const struct {
    const char *leaf, *what;
} cifar_mistakes[] = {
    {"data_batch_1", "the Python version (pickle)"},
    {"test_batch", "the Python version (pickle)"},
    {"data_batch_1.mat", "the Matlab version"},
    {"test_batch.mat", "the Matlab version"},
};

enum { CIFAR_MISTAKES = sizeof cifar_mistakes / sizeof cifar_mistakes[0] };

static const char *cifar_mistake(const char *leaf)
{
    for (size_t i = 0; i < CIFAR_MISTAKES; i++) {
        if (strcmp(leaf, cifar_mistakes[i].leaf) == 0) {
            return cifar_mistakes[i].what;
        }
    }
    return NULL;
}

// `leaf` is room for the answer.
static const char *cifar_leaf(uint32_t slot, char leaf[32])
{
    if (slot == CIFAR_TEST) {
        return "test_batch.bin";
    }
    (void)snprintf(leaf, 32, "data_batch_%u.bin", slot);
    return leaf;
}

// The slot of that name, or CIFAR_SLOTS.
static uint32_t cifar_slot(const char *leaf)
{
    char wanted[32];
    uint32_t slot = 0;
    while (slot < CIFAR_SLOTS && strcmp(leaf, cifar_leaf(slot, wanted)) != 0) {
        slot++;
    }
    return slot;
}

static hr_status cifar_refuse_mistake(const char *path, const char *leaf, const char *what, hr_err *err)
{
    hr_status status =
        HR_FAIL(err, DATA, "%s: needed the binary version of CIFAR-10 (data_batch_1.bin), had %s: %s", path,
                leaf, what);
    hr_err_try(err, "%s", cifar_hint);
    return status;
}

// ---- opening --------------------------------------------------------------------------------------------------

static hr_status cifar_open_folder(cifar_source *s, const char *path, hr_err *err)
{
    char leaf[32];
    for (uint32_t slot = 0; slot < CIFAR_SLOTS; slot++) {
        HR_TRY(blob_open(path, cifar_leaf(slot, leaf), &s->file[slot], err));
    }
    for (size_t i = 0; i < CIFAR_MISTAKES && !blob_is_open(&s->file[1]); i++) {
        blob mistake;
        HR_TRY(blob_open(path, cifar_mistakes[i].leaf, &mistake, err));
        if (blob_is_open(&mistake)) {
            blob_close(&mistake);
            return cifar_refuse_mistake(path, cifar_mistakes[i].leaf, cifar_mistakes[i].what, err);
        }
    }
    return HR_OK;
}

static hr_status cifar_hold(cifar_source *s, reader *r, const char *path, const char *leaf,
                            uint64_t size_bytes, hr_err *err)
{
    blob *file = &s->file[cifar_slot(leaf)];
    if (blob_is_open(file)) {
        return HR_FAIL(err, DATA, "%s: needed %s once, had it twice", path, leaf);
    }
    HR_TRY(blob_hold(path, leaf, size_bytes, &s->base.held_bytes, file, err));
    return reader_take(r, file->held, size_bytes, err);
}

static hr_status cifar_read_archive(cifar_source *s, reader *r, const char *path, hr_err *err)
{
    const char *leaf;
    uint64_t size_bytes;
    for (;;) {
        HR_TRY(reader_next(r, &leaf, &size_bytes, err));
        if (leaf == NULL) {
            return HR_OK;
        }
        const char *mistake = cifar_mistake(leaf);
        if (mistake != NULL) {
            return cifar_refuse_mistake(path, leaf, mistake, err);
        }
        if (cifar_slot(leaf) < CIFAR_SLOTS) {
            HR_TRY(cifar_hold(s, r, path, leaf, size_bytes, err));
        }
    }
}

static hr_status cifar_open_archive(cifar_source *s, const char *path, hr_err *err)
{
    const char *leaf = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (cifar_slot(leaf) < CIFAR_SLOTS) {
        hr_status status =
            HR_FAIL(err, DATA, "%s: needed a folder or an archive, had one of its files", path);
        hr_err_try(err, "-s pipeline.path=%.*s", leaf > path ? (int)(leaf - path) : 1,
                   leaf > path ? path : ".");
        return status;
    }
    if (cifar_mistake(leaf) != NULL) {
        return cifar_refuse_mistake(path, leaf, cifar_mistake(leaf), err);
    }
    reader *r;
    HR_TRY(reader_open(path, READER_ARCHIVE, &r, err));
    hr_status status = cifar_read_archive(s, r, path, err);
    reader_close(r);
    return status;
}

// ---- checking -------------------------------------------------------------------------------------------------

static hr_status cifar_refuse_missing(const char *path, uint32_t slot, const char *why, hr_err *err)
{
    char leaf[32];
    hr_status status =
        HR_FAIL(err, DATA, "%s: needed %s (%s), had no such file", path, cifar_leaf(slot, leaf), why);
    hr_err_try(err, "%s", cifar_hint);
    return status;
}

// Every file up to the last one there is, and all five when they are CIFAR-10's own.
static hr_status cifar_check_files(cifar_source *s, const char *path, hr_err *err)
{
    for (uint32_t slot = 1; slot < CIFAR_SLOTS; slot++) {
        s->file_count = blob_is_open(&s->file[slot]) ? slot : s->file_count;
    }
    if (s->file_count == 0) {
        return cifar_refuse_missing(path, 1, "CIFAR-10, binary version", err);
    }
    if (s->file[1].size_bytes == (uint64_t)CIFAR_FILE_RECORDS * CIFAR_RECORD_BYTES &&
        s->file_count < CIFAR_FILES) {
        return cifar_refuse_missing(path, s->file_count + 1, "CIFAR-10 has 5 of 10,000 images each", err);
    }
    for (uint32_t slot = 1; slot < s->file_count; slot++) {
        if (!blob_is_open(&s->file[slot])) {
            return cifar_refuse_missing(path, slot, "there is a later one", err);
        }
    }
    if (!blob_is_open(&s->file[CIFAR_TEST])) {
        return cifar_refuse_missing(path, CIFAR_TEST, "the held-out images", err);
    }
    return HR_OK;
}

static hr_status cifar_check_size(const blob *file, hr_err *err)
{
    uint64_t over_bytes = file->size_bytes % CIFAR_RECORD_BYTES;
    if (file->size_bytes > 0 && over_bytes == 0) {
        return HR_OK;
    }
    hr_status status =
        HR_FAIL(err, DATA,
                "%s: needed whole records of %d bytes, had %" PRIu64 " bytes (truncated at offset "
                "%" PRIu64 ": %" PRIu64 " records and %" PRIu64 " bytes)",
                file->name, CIFAR_RECORD_BYTES, file->size_bytes, file->size_bytes,
                file->size_bytes / CIFAR_RECORD_BYTES, over_bytes);
    hr_err_try(err, "%s", cifar_hint);
    return status;
}

// The labels up front: a bad one is found before the first step and not after an hour. Of a file that is much larger than
// any of CIFAR's the first ones: no page of each of its images is waited for, and each is looked at again when it is read.
static hr_status cifar_check_file(const blob *file, uint32_t records, hr_err *err)
{
    for (uint32_t i = 0; i < records && i < CIFAR_CHECKED_RECORDS; i++) {
        uint64_t offset = (uint64_t)i * CIFAR_RECORD_BYTES;
        uint8_t scratch;
        const uint8_t *label;
        data_raw record;
        HR_TRY(blob_at(file, offset, 1, &scratch, &label, err));
        HR_TRY(record_read(label, CIFAR_RECORD_BYTES, CIFAR_CLASSES, file->name, offset, &record, err));
    }
    return HR_OK;
}

static hr_status cifar_check_labels(const data_source *base, hr_err *err)
{
    const cifar_source *s = (const cifar_source *)base;
    for (uint32_t slot = 0; slot <= s->file_count; slot++) {
        HR_TRY(cifar_check_file(&s->file[slot], s->records[slot], err));
    }
    return HR_OK;
}

static hr_status cifar_check(cifar_source *s, const char *path, hr_err *err)
{
    HR_TRY(cifar_check_files(s, path, err));
    uint64_t train_samples = 0;
    for (uint32_t slot = 0; slot <= s->file_count; slot++) {
        const blob *file = &s->file[slot];
        HR_TRY(cifar_check_size(file, err));
        uint64_t records = file->size_bytes / CIFAR_RECORD_BYTES;
        train_samples += slot == CIFAR_TEST ? 0 : records;
        if (records > UINT32_MAX || train_samples > UINT32_MAX) {
            return HR_FAIL(err, DATA, "%s: needed fewer than 4294967296 images, had more", file->name);
        }
        s->records[slot] = (uint32_t)records;
    }
    s->base.info.train_samples = train_samples;
    s->base.parts = s->file_count;
    s->base.info.eval_samples = s->records[CIFAR_TEST];
    return HR_OK;
}

// ---- the source -----------------------------------------------------------------------------------------------

// The file of sample *index, which becomes its number there.
static uint32_t cifar_place(const cifar_source *s, data_set set, uint32_t *index)
{
    uint32_t slot = set == DATA_EVAL ? CIFAR_TEST : 1;
    while (*index >= s->records[slot]) {
        *index -= s->records[slot++];
    }
    return slot;
}

static hr_status cifar_fetch(const data_source *base, data_set set, uint32_t index, uint8_t *room,
                             data_raw *out, hr_err *err)
{
    const cifar_source *s = (const cifar_source *)base;
    const uint32_t slot = cifar_place(s, set, &index);
    const blob *file = &s->file[slot];
    uint64_t offset = (uint64_t)index * CIFAR_RECORD_BYTES;
    const uint8_t *bytes;
    HR_TRY(blob_at(file, offset, CIFAR_RECORD_BYTES, room, &bytes, err));
    return record_read(bytes, CIFAR_RECORD_BYTES, CIFAR_CLASSES, file->name, offset, out, err);
}

static uint64_t cifar_part_begin(const data_source *base, uint32_t part)
{
    const cifar_source *s = (const cifar_source *)base;
    uint64_t begin = 0;
    for (uint32_t slot = 1; slot <= part; slot++) {
        begin += s->records[slot];
    }
    return begin;
}

static hr_status cifar_label(const data_source *base, data_set set, uint32_t index, int32_t *out, hr_err *err)
{
    const cifar_source *s = (const cifar_source *)base;
    const uint32_t slot = cifar_place(s, set, &index);
    uint8_t room;
    const uint8_t *label;
    HR_TRY(blob_at(&s->file[slot], (uint64_t)index * CIFAR_RECORD_BYTES, 1, &room, &label, err));
    *out = *label;
    return HR_OK;
}

static void cifar_close(data_source *base)
{
    cifar_source *s = (cifar_source *)base;
    for (uint32_t slot = 0; slot < CIFAR_SLOTS; slot++) {
        blob_close(&s->file[slot]);
    }
    hr_free(s);
}

static const data_source_ops cifar_ops = {.check = cifar_check_labels,
                                          .fetch = cifar_fetch,
                                          .decode = record_decode,
                                          .label = cifar_label,
                                          .part_begin = cifar_part_begin,
                                          .close = cifar_close};

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

hr_status source_cifar_open(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    (void)model;
    *out = NULL;
    cifar_source *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *s);
    }
    for (uint32_t slot = 0; slot < CIFAR_SLOTS; slot++) {
        s->file[slot] = BLOB_NONE;
    }
    s->base = (data_source){
        .ops = &cifar_ops,
        .info = {.height = CIFAR_SIDE,
                 .width = CIFAR_SIDE,
                 .channels = CIFAR_CHANNELS,
                 .classes = CIFAR_CLASSES},
        .raw_bytes = CIFAR_RECORD_BYTES - 1,
        .room_bytes = CIFAR_RECORD_BYTES,
        .cost = {.fetch_ns = 350, .fetch_byte_ns = 0.05, .make_value_ns = 0.4},
    };
    data_source_label(s->base.info.label, "CIFAR-10", path);
    hr_status status = is_folder(path) ? cifar_open_folder(s, path, err) : cifar_open_archive(s, path, err);
    if (status == HR_OK) {
        status = cifar_check(s, path, err);
    }
    if (status != HR_OK) {
        cifar_close(&s->base);
        return status;
    }
    *out = &s->base;
    return HR_OK;
}
