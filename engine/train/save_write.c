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
#include "knobs/prune.h"
#include "train/engine_impl.h"
#include "train/save_header.h"

// Header of a file that may be of any model.
enum { SAVE_SNIFF_BYTES = 512, SAVE_ANY_HEADER_BYTES = 64 << 20 };

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

static bool put(json_t *metadata, const char *key, const char *value)
{
    return json_object_set_new(metadata, key, json_string(value)) == 0;
}

static bool put_number(json_t *metadata, const char *key, uint64_t number)
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

static bool put_tensors(json_t *metadata, const store *s)
{
    bool ok = true;
    for (uint32_t k = 0; ok && k < s->tensors.count; k++) {
        const stored_tensor *t = &s->tensors.data[k];
        char key[160];
        (void)snprintf(key, sizeof key, "%s%s", SAVE_CATEGORY_KEY, t->name);
        ok = t->category == HR_CATEGORY_WEIGHTS || put(metadata, key, hr_category_name(t->category));
    }
    return ok && put_number(metadata, SAVE_CHECKSUM_KEY, save_checksum(s, metadata));
}

// The knobs that are set, a line each: "batch.size=128".
static json_t *make_knobs(const hr_knobs *knobs)
{
    text lines = {0};
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char value[HR_KNOB_TEXT_MAX];
        if (hr_knob_is_set(knobs, (hr_knob_id)id)) {
            text_append(&lines, "%s=%s\n", hr_knob_rows(NULL)[id].key,
                        hr_knob_format(knobs, (hr_knob_id)id, value));
        }
    }
    json_t *all = lines.failed || lines.data == NULL ? NULL : json_string(lines.data);
    text_deinit(&lines);
    return all;
}

static bool put_shape(json_t *metadata, const hr_knobs *knobs)
{
    text words = {0};
    hr_knobs defaults;
    hr_knobs_init(&defaults);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_row *row = &hr_knob_rows(NULL)[k];
        char value[HR_KNOB_TEXT_MAX], fallback[HR_KNOB_TEXT_MAX];
        (void)hr_knob_format(&defaults, row->id, fallback);
        if (row->models && strcmp(hr_knob_format(knobs, row->id, value), fallback) != 0) {
            text_append(&words, "%s-s %s=%s", words.length > 0 ? " " : "", row->key, value);
        }
    }
    const bool put =
        !words.failed &&
        (words.length == 0 || json_object_set_new(metadata, SAVE_SHAPED_KEY, json_string(words.data)) == 0);
    text_deinit(&words);
    return put;
}

// A path that is no UTF-8 has no place in JSON: such a save is one like any other.
static bool put_origin(json_t *metadata, const hr_engine *e)
{
    json_t *preset = e->origin == NULL ? NULL : json_string(e->origin->preset);
    json_t *knobs = preset == NULL ? NULL : make_knobs(&e->knobs);
    if (knobs == NULL) {
        json_decref(preset);
        return true;
    }
    return json_object_set_new(metadata, "preset", preset) == 0 &&
           json_object_set_new(metadata, "knobs", knobs) == 0 &&
           put_number(metadata, "trusts", e->origin->trusts);
}

static bool put_pruning(json_t *metadata, const hr_engine *e)
{
    text words = {0};
    bool ok = e->pruned_from == 0 || put_number(metadata, SAVE_PRUNED_KEY, e->pruned_from);
    const char *structure = hr_knob_text(&e->knobs, HR_KNOB_COMPRESS_PRUNE_STRUCTURE);
    if (prune_is_on(&e->knobs)) {
        text_append(&words, "-s compress.prune=%s", hr_knob_text(&e->knobs, HR_KNOB_COMPRESS_PRUNE));
        if (strcmp(structure, "element") != 0) {
            text_append(&words, " -s compress.prune_structure=%s", structure);
        }
        ok = ok && !words.failed && put(metadata, SAVE_PRUNES_KEY, words.data);
    }
    text_deinit(&words);
    return ok;
}

static bool put_kind(json_t *metadata, const save_kind *kind)
{
    const char *mode = hr_quantize_name(kind->mode);
    return (!kind->stripped || put(metadata, SAVE_STRIPPED_KEY, "1")) &&
           (kind->mode == HR_QUANTIZE_NONE || put(metadata, SAVE_QUANTIZE_KEY, mode)) &&
           (kind->more == NULL || json_object_update(metadata, (json_t *)(uintptr_t)kind->more) == 0);
}

json_t *save_make_metadata(const hr_engine *e, const store *s, const save_kind *kind)
{
    json_t *m = json_object();
    bool ok = m != NULL && put(m, "format", SAVE_SCHEMA) && put(m, "model", e->model->name) &&
              put_number(m, "steps", e->steps) && put_number(m, "updates", e->updates) && put_pruning(m, e) &&
              put_number(m, "epoch", e->position.epoch) &&
              put_number(m, "epoch_samples", e->position.samples) &&
              put_number(m, "seed", (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SEED)) &&
              put_shape(m, &e->knobs) && put_origin(m, e) && put_kind(m, kind);
    if (!ok || !put_tensors(m, s)) {
        json_decref(m);
        return NULL;
    }
    return m;
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

hr_status save_begin(const char *path, const text *header, const store *s, file_writer **out, hr_err *err)
{
    file_writer *w = NULL;
    *out = NULL;
    HR_TRY(file_writer_open(path, &w, err));
    hr_status status = file_writer_add(w, header->data, header->length, err);
    for (uint32_t k = 0; k < s->tensors.count && status == HR_OK; k++) {
        status = file_writer_add(w, s->tensors.data[k].data, s->tensors.data[k].bytes, err);
    }
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    *out = w;
    return HR_OK;
}

hr_status save_write(const char *path, const text *header, const store *s, hr_err *err)
{
    file_writer *w = NULL;
    HR_TRY(save_begin(path, header, s, &w, err));
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

hr_status save_open_any(const char *path, int *fd, json_t **root, hr_err *err)
{
    return save_open(path, SAVE_ANY_HEADER_BYTES, fd, root, err);
}

hr_status save_check_deployed(const char *path, hr_err *err)
{
    int fd = -1;
    json_t *root = NULL;
    HR_TRY(save_check_replaceable(path, err));
    if (access(path, F_OK) != 0) {
        return HR_OK;
    }
    HR_TRY(save_open_any(path, &fd, &root, err));
    const bool stripped = json_object_get(json_object_get(root, "__metadata__"), SAVE_STRIPPED_KEY) != NULL;
    file_close(fd);
    json_decref(root);
    return stripped
               ? HR_OK
               : HR_FAIL(err, WRITE,
                         "%s: needed a deployed file or no file, had what training goes on from; nothing "
                         "there was changed",
                         path);
}
