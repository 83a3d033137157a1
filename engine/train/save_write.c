// SPDX-License-Identifier: Apache-2.0
#include "train/save_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "train/save_header.h"

enum { SAVE_SNIFF_BYTES = 512 };

static const struct {
    const char *name;
    hr_dtype dtype;
} save_types[] = {{"F32", HR_F32}, {"F64", HR_F64}, {"F16", HR_F16}, {"BF16", HR_BF16},
                  {"I32", HR_I32}, {"U8", HR_U8},   {"I8", HR_I8}};

_Static_assert(sizeof save_types / sizeof *save_types == HR_DTYPE_COUNT, "one word for each type");

static const char *type_word(hr_dtype dtype)
{
    size_t k = 0;
    while (save_types[k].dtype != dtype) {
        k++;
    }
    return save_types[k].name;
}

bool save_type(const char *word, hr_dtype *dtype)
{
    for (size_t k = 0; k < sizeof save_types / sizeof *save_types; k++) {
        if (word != NULL && strcmp(word, save_types[k].name) == 0) {
            *dtype = save_types[k].dtype;
            return true;
        }
    }
    return false;
}

bool save_put(json_t *metadata, const char *key, const char *value)
{
    return json_object_set_new(metadata, key, json_string(value)) == 0;
}

bool save_put_number(json_t *metadata, const char *key, uint64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    return json_object_set_new(metadata, key, json_string(digits)) == 0;
}

static uint64_t hash_named(const char *name, const void *data, uint64_t bytes)
{
    return hash64(data, bytes, hash64(name, strlen(name), 0));
}

uint64_t save_checksum(const store *s, const json_t *metadata)
{
    uint64_t sum = 0;
    const char *key = NULL;
    json_t *value = NULL;
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        const stored_tensor *t = &s->tensors.data[k];
        sum += hash_named(t->name, t->data, t->bytes);
    }
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        if (strcmp(key, SAVE_CHECKSUM_KEY) != 0) {
            sum += hash_named(key, json_string_value(value), json_string_length(value));
        }
    }
    return sum >> 1;
}

bool save_put_tensors(json_t *metadata, const store *s)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < s->tensors.count; k++) {
        const stored_tensor *t = &s->tensors.data[k];
        char key[160];
        (void)snprintf(key, sizeof key, "%s%s", SAVE_CATEGORY_KEY, t->name);
        ok = t->category == HR_CATEGORY_WEIGHTS || save_put(metadata, key, hr_category_name(t->category));
    }
    return ok && save_put_number(metadata, SAVE_CHECKSUM_KEY, save_checksum(s, metadata));
}

static json_t *make_entry(const stored_tensor *t, uint64_t begin)
{
    json_t *shape = json_array();
    for (uint32_t k = 0; shape != NULL && k < t->shape.rank; k++) {
        if (json_array_append_new(shape, json_integer(t->shape.dim[k])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    const uint64_t end = begin + t->bytes;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", type_word(t->dtype), "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

static char *make_json(const json_t *metadata, const store *s)
{
    json_t *root = json_object();
    bool ok = root != NULL && json_object_set(root, "__metadata__", (json_t *)(uintptr_t)metadata) == 0;
    uint64_t offset = 0;
    for (uint32_t k = 0; ok && k < s->tensors.count; k++) {
        ok = json_object_set_new(root, s->tensors.data[k].name, make_entry(&s->tensors.data[k], offset)) == 0;
        offset += s->tensors.data[k].bytes;
    }
    char *json = ok ? json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(root);
    return json;
}

hr_status save_make_header(const json_t *metadata, const store *s, text *out, hr_err *err)
{
    char *json = metadata == NULL ? NULL : make_json(metadata, s);
    if (json == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the header of a save");
    }
    const uint64_t bytes = (strlen(json) + 7) / 8 * 8;
    text_append_bytes(out, (const char *)&bytes, sizeof bytes);
    text_append_bytes(out, json, strlen(json));
    free(json);
    while (out->length % 8 != 0) {
        text_append_bytes(out, " ", 1);
    }
    return out->failed ? HR_FAIL(err, NOMEM, "no host memory for the header of a save") : HR_OK;
}

hr_status save_write(const char *path, const text *header, const store *s, hr_err *err)
{
    file_writer *w = NULL;
    HR_TRY(file_writer_open(path, &w, err));
    hr_status status = file_writer_add(w, header->data, header->length, err);
    for (uint32_t k = 0; k < s->tensors.count && status == HR_OK; k++) {
        status = file_writer_add(w, s->tensors.data[k].data, s->tensors.data[k].bytes, err);
    }
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}

hr_status save_check_replaceable(const char *path, hr_err *err)
{
    char start[SAVE_SNIFF_BYTES];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return HR_OK;
    }
    ssize_t bytes = fd < 0 ? -1 : read(fd, start, sizeof start);
    const char *why = bytes < 0 ? strerror(errno) : "something else";
    if (fd >= 0) {
        (void)close(fd);
    }
    if (bytes > 0 && memmem(start, (size_t)bytes, SAVE_FAMILY, strlen(SAVE_FAMILY)) != NULL) {
        return HR_OK;
    }
    return HR_FAIL(err, WRITE, "%s: needed a save of headroom or no file, had: %s; nothing there was changed",
                   path, why);
}
