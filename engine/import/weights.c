// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "safetensors.h"

enum { INDEX_MAX_BYTES = 16 << 20, TYPES_TEXT = 512 };

static const char index_leaf[] = "model.safetensors.index.json";
static const char weights_leaf[] = "model.safetensors";
static const char config_leaf[] = "config.json";

// What was counted; 0: nothing, and `why` says so.
typedef struct weights_count {
    uint64_t parameters;
    const char *leaf, *why;
    hr_err err;         // of a header that is not read
    bool nomem, others; // others: the index is of other files
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

// Whether the index says that weights lie in the file of that name.
static bool index_lists(const json_t *root, const char *leaf)
{
    const char *name = NULL;
    json_t *file = NULL;
    json_object_foreach(json_object_get(root, "weight_map"), name, file)
    {
        if (json_is_string(file) && strcmp(json_string_value(file), leaf) == 0) {
            return true;
        }
    }
    return false;
}

// `named`: the file that it has to list to be read; NULL: none was named.
static void read_index(weights_count *w, const config *c, const char *path, const char *named)
{
    char *data = NULL;
    size_t bytes = 0;
    hr_err err;
    const hr_status status = file_read(path, INDEX_MAX_BYTES, &data, &bytes, &err);
    json_t *root = status == HR_OK ? parse(w, data, bytes) : NULL;
    if (status != HR_OK) {
        w->nomem = status == HR_NOMEM;
        w->why = "cannot be read, or has more than 16 MiB";
    } else if (root != NULL && named != NULL && !index_lists(root, named)) {
        w->others = true;
    } else if (root != NULL) {
        count_index(w, c, root);
    }
    json_decref(root);
    hr_free(data);
}

// ---- the header -----------------------------------------------------------------------------------------------

static void read_header(weights_count *w, const char *path)
{
    tensors t = {0};
    const hr_status status = safetensors_read(path, &t, &w->err);
    w->nomem = status == HR_NOMEM;
    w->parameters = status == HR_OK ? t.parameters : 0;
    w->why = status != HR_OK ? "is not read" : t.parameters == 0 ? "names no weights" : NULL;
    tensors_deinit(&t);
}

// ---- against the layers ---------------------------------------------------------------------------------------

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

static bool find_beside(const char *path, const char *leaf, char out[WEIGHTS_PATH_BYTES])
{
    const int length = snprintf(out, WEIGHTS_PATH_BYTES, "%.*s%s", (int)folder_bytes(path), path, leaf);
    return length < WEIGHTS_PATH_BYTES && access(out, F_OK) == 0;
}

bool weights_config_beside(const char *path, char out[WEIGHTS_PATH_BYTES])
{
    return find_beside(path, config_leaf, out);
}

// Where the weights of config.json lie; false: there are none. A file of another name has none beside it.
static bool find_weights(const char *path, const char *leaf, char out[WEIGHTS_PATH_BYTES])
{
    return strcmp(path + folder_bytes(path), config_leaf) == 0 && find_beside(path, leaf, out);
}

static void say_other(model_text *t, const char *leaf, uint64_t parameters)
{
    model_note(t,
               "%s holds %" PRIu64 " parameters and these layers have %" PRIu64
               ": the weights are of another model, or have heads and buffers that this one lacks.",
               leaf, parameters, t->parameters);
}

uint64_t weights_shards(const char *path)
{
    const char *leaf = path + folder_bytes(path), *of = strstr(leaf, "-of-");
    unsigned number = 0, count = 0;
    int used = 0;
    if (of == NULL || of - leaf < 6 ||
        sscanf(of - 6, "-%5u-of-%5u.safetensors%n", &number, &count, &used) != 2 || of[used - 6] != '\0') {
        return 1;
    }
    return number >= 1 && number <= count ? count : 1;
}

static void count_named(weights_count *w, const tensors *named)
{
    const uint64_t shards = weights_shards(named->path);
    *w = (weights_count){.leaf = named->path + folder_bytes(named->path),
                         .parameters = shards > 1 ? 0 : named->parameters,
                         .why = shards > 1 ? "is one of several files" : "names no weights"};
}

static void say_cut(model_text *t, const tensors *w)
{
    char held[32], all[32];
    if (w->held_bytes < w->data_bytes) {
        model_number(w->held_bytes, held);
        model_number(w->data_bytes, all);
        model_note(t, "The file has %s of the %s bytes of its data: its header says all that is planned.",
                   held, all);
    }
}

hr_status weights_compare(const config *c, const tensors *named, model_text *t)
{
    char path[WEIGHTS_PATH_BYTES];
    weights_count w = {.leaf = index_leaf, .others = true};
    if (named != NULL) {
        say_cut(t, named);
    }
    if (find_weights(c->path, index_leaf, path)) {
        w.others = false;
        read_index(&w, c, path, named == NULL ? NULL : named->path + folder_bytes(named->path));
    }
    if (named != NULL && w.others) {
        count_named(&w, named);
    } else if (w.others && find_weights(c->path, weights_leaf, path)) {
        w.leaf = weights_leaf;
        read_header(&w, path);
    } else if (w.others) {
        return HR_OK;
    }
    if (w.nomem) {
        return HR_FAIL(c->err, NOMEM, "%.200s: no memory to read the weights beside it", c->path);
    }
    if (w.parameters == 0) {
        model_note(t, "%.64s %s%s%.200s: its parameters are not compared.", w.leaf, w.why,
                   w.err.sentence[0] != '\0' ? ": " : "", w.err.sentence);
    } else if (w.parameters != t->parameters) {
        say_other(t, w.leaf, w.parameters);
    }
    return HR_OK;
}

// ---- the file itself ------------------------------------------------------------------------------------------

// "F32 12 tensors 1,024 bytes, …" with the most bytes first; whether any type has blocks.
static bool types_text(const tensors *w, char out[TYPES_TEXT])
{
    uint64_t below = UINT64_MAX;
    size_t used = 0;
    bool blocks = false, again = true;
    out[0] = '\0';
    while (again) {
        const tensor_sum *next = NULL;
        for (uint32_t k = 0; k < w->sum_count; k++) {
            const tensor_sum *sum = &w->sums[k];
            next = sum->bytes < below && (next == NULL || sum->bytes > next->bytes) ? sum : next;
        }
        again = next != NULL;
        for (uint32_t k = 0; again && k < w->sum_count && used < TYPES_TEXT; k++) {
            char bytes[32];
            if (w->sums[k].bytes == next->bytes) {
                model_number(next->bytes, bytes);
                used += (size_t)snprintf(out + used, TYPES_TEXT - used, "%s%s %s", used > 0 ? ", " : "",
                                         w->sums[k].type->name, bytes);
                blocks = blocks || w->sums[k].type->block > 1;
            }
        }
        below = again ? next->bytes : 0;
    }
    return blocks;
}

hr_status weights_compare_file(const tensors *w, model_text *t)
{
    char types[TYPES_TEXT];
    const bool quantized = types_text(w, types);
    say_cut(t, w);
    if (w->places.count > 0) {
        model_note(t, "Bytes of its weights by type: %s.%s", types,
                   quantized ? " Quantized ones are trained from bfloat16, as precision.policy has them."
                             : "");
    }
    if (w->parameters != t->parameters) {
        say_other(t, "The file", w->parameters);
    }
    return HR_OK;
}
