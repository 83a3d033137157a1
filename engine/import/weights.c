// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"

enum { PATH_BYTES = 4096, INDEX_MAX_BYTES = 16 << 20, NAME_SHOWN = 64 };
#define COUNT_MAX (UINT64_C(1) << 62)

static const char index_leaf[] = "model.safetensors.index.json";
static const char weights_leaf[] = "model.safetensors";

// What was counted; 0: nothing, and `why` says so.
typedef struct weights_count {
    uint64_t parameters;
    const char *leaf, *why;
    bool nomem;
} weights_count;

static json_t *parse(weights_count *w, const char *data, size_t bytes)
{
    json_error_t error = {.line = 1};
    json_t *root = config_parse(data, bytes, &error, &w->nomem);
    if (root == NULL) {
        w->why = "is no JSON";
    }
    return root;
}

// ---- the index ------------------------------------------------------------------------------------------------

// `total_parameters` is said since 2025; `total_size` are bytes, of weights in the type that the config names.
static void count_index(weights_count *w, const config *c, const json_t *root)
{
    const json_t *metadata = json_object_get(root, "metadata");
    const json_t *parameters = json_object_get(metadata, "total_parameters");
    const json_t *size = json_object_get(metadata, "total_size");
    const char *type = json_string_value(json_object_get(c->root, "dtype"));
    type = type != NULL ? type : json_string_value(json_object_get(c->root, "torch_dtype"));
    const bool half = type != NULL && strstr(type, "float16") != NULL;
    const json_int_t width = half ? 2 : 4;
    if (json_is_integer(parameters) && json_integer_value(parameters) > 0) {
        w->parameters = (uint64_t)json_integer_value(parameters);
    } else if (json_is_integer(size) && json_integer_value(size) > 0 &&
               json_integer_value(size) % width == 0) {
        w->parameters = (uint64_t)(json_integer_value(size) / width);
    } else {
        w->why = "says neither total_parameters nor a total_size in its metadata";
    }
}

static void read_index(weights_count *w, const config *c, const char *path)
{
    char *data = NULL;
    size_t bytes = 0;
    hr_err err;
    const hr_status status = file_read(path, INDEX_MAX_BYTES, &data, &bytes, &err);
    json_t *root = status == HR_OK ? parse(w, data, bytes) : NULL;
    if (status != HR_OK) {
        w->nomem = status == HR_NOMEM;
        w->why = "cannot be read, or has more than 16 MiB";
    } else if (root != NULL) {
        count_index(w, c, root);
    }
    json_decref(root);
    hr_free(data);
}

// ---- the header -----------------------------------------------------------------------------------------------

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

// Masks and frequencies, which some files have, are not: no optimizer trains them.
static bool is_trained(const char *name, const json_t *tensor)
{
    static const char *const buffers[] = {".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq",
                                          "position_ids"};
    const char *type = json_string_value(json_object_get(tensor, "dtype"));
    for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++) {
        if (ends_with(name, buffers[k])) {
            return false;
        }
    }
    return type != NULL && (type[0] == 'F' || type[0] == 'B') && strcmp(type, "BOOL") != 0;
}

// The elements of a shape; 0 where it is none.
static uint64_t elements_of(const json_t *tensor)
{
    const json_t *shape = json_object_get(tensor, "shape");
    uint64_t elements = json_is_array(shape) ? 1 : 0;
    for (size_t k = 0; k < json_array_size(shape); k++) {
        const json_t *side = json_array_get(shape, k);
        const uint64_t count =
            json_is_integer(side) && json_integer_value(side) > 0 ? (uint64_t)json_integer_value(side) : 0;
        elements = count == 0 || elements > COUNT_MAX / count ? 0 : elements * count;
    }
    return elements;
}

static void count_header(weights_count *w, const json_t *root)
{
    const char *name = NULL;
    json_t *tensor = NULL;
    uint64_t sum = 0;
    json_object_foreach((json_t *)(uintptr_t)root, name, tensor)
    {
        if (strcmp(name, "__metadata__") == 0 || !is_trained(name, tensor)) {
            continue;
        }
        const uint64_t elements = elements_of(tensor);
        if (elements == 0 || sum > COUNT_MAX - elements) {
            w->why = "has a tensor without a shape";
            return;
        }
        sum += elements;
    }
    w->parameters = sum;
    w->why = sum == 0 ? "names no weights" : NULL;
}

static void read_header(weights_count *w, const char *path)
{
    int fd = -1;
    uint8_t length[8] = {0};
    uint64_t bytes = 0;
    hr_err err;
    w->why = "cannot be read";
    if (file_open(path, &fd, &err) != HR_OK) {
        return;
    }
    if (file_read_at(fd, 0, length, sizeof length, path, &err) == HR_OK) {
        for (int k = 7; k >= 0; k--) {
            bytes = bytes << 8 | length[k];
        }
    }
    w->why = "does not begin as safetensors do: a pointer of git-lfs looks like this";
    if (bytes > 1 && bytes <= INDEX_MAX_BYTES) {
        char *header = hr_calloc(bytes, 1);
        w->nomem = header == NULL;
        if (header != NULL && file_read_at(fd, sizeof length, header, bytes, path, &err) == HR_OK) {
            json_t *root = parse(w, header, bytes);
            if (root != NULL) {
                count_header(w, root);
            }
            json_decref(root);
        }
        hr_free(header);
    }
    file_close(fd);
}

// ---- against the layers ---------------------------------------------------------------------------------------

// Where the weights of config.json lie; false: there are none. A file of another name has none beside it.
static bool find_weights(const char *path, const char *leaf, char out[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    const int length = snprintf(out, PATH_BYTES, "%.*s%s", folder, path, leaf);
    return strcmp(path + folder, "config.json") == 0 && length < PATH_BYTES && access(out, F_OK) == 0;
}

hr_status weights_compare(const config *c, model_text *t)
{
    char path[PATH_BYTES];
    weights_count w = {.leaf = index_leaf};
    if (find_weights(c->path, index_leaf, path)) {
        read_index(&w, c, path);
    } else if (find_weights(c->path, weights_leaf, path)) {
        w.leaf = weights_leaf;
        read_header(&w, path);
    } else {
        return HR_OK;
    }
    if (w.nomem) {
        return HR_FAIL(c->err, NOMEM, "%.200s: no memory to read it", path);
    }
    if (w.parameters == 0) {
        model_note(t, "%s %s: its parameters are not compared.", w.leaf, w.why);
    } else if (w.parameters != t->parameters) {
        model_note(t,
                   "%s holds %" PRIu64 " parameters and these layers have %" PRIu64
                   ": the weights are of another model, or have heads and buffers that this one lacks.",
                   w.leaf, w.parameters, t->parameters);
    }
    return HR_OK;
}
