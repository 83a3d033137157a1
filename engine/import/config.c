// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"

enum { SENTENCE_MAX = 320, HAD_MAX = 96, HAD_WORD = 40 };

// ---- the file -------------------------------------------------------------------------------------------------

// The library does not say everywhere that it found no memory, and may leave a letter out of a text instead: its requests are
// watched, on the thread that parses.
static _Atomic(json_malloc_t) library_take;
static _Thread_local bool took_nothing;

static void *watched_take(size_t bytes)
{
    void *memory = library_take(bytes);
    took_nothing = took_nothing || memory == NULL;
    return memory;
}

json_t *config_parse(const char *data, size_t bytes, json_error_t *error, bool *nomem)
{
    json_malloc_t take;
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    if (take != watched_take) {
        library_take = take;
        json_set_alloc_funcs(watched_take, give);
    }
    took_nothing = false;
    json_t *root = json_loadb(data, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
    *nomem = took_nothing;
    if (took_nothing) {
        json_decref(root);
        root = NULL;
    }
    return root;
}

static hr_status refuse_json(const char *path, const json_error_t *error, hr_err *err)
{
    hr_status status =
        HR_FAIL(err, PRESET, "%.200s:%d:%d: needed the JSON of a config.json, had %s", path,
                error->line < 1 ? 1 : error->line, error->column < 1 ? 1 : error->column, error->text);
    hr_err_try(err, "the file as it was published: a part of a download looks like this");
    return status;
}

hr_status config_open_bytes(const char *path, const char *data, size_t bytes, config *out, hr_err *err)
{
    json_error_t error = {.line = 1};
    bool nomem = false;
    *out = (config){.path = path, .err = err};
    out->root = config_parse(data, bytes, &error, &nomem);
    if (out->root == NULL) {
        return nomem ? HR_FAIL(err, NOMEM, "%s: no memory to read it", path) : refuse_json(path, &error, err);
    }
    if (!json_is_object(out->root)) {
        hr_status status = HR_FAIL(err, PRESET,
                                   "%.200s: needed an object with the keys of a config.json of Hugging Face, "
                                   "had another value",
                                   path);
        hr_err_try(err, "the config.json of a folder from huggingface.co");
        return status;
    }
    return HR_OK;
}

hr_status config_open(const char *path, config *out, hr_err *err)
{
    char *data = NULL;
    size_t bytes = 0;
    *out = (config){.path = path, .err = err};
    HR_TRY(file_read(path, CONFIG_MAX_BYTES, &data, &bytes, err));
    const hr_status status = config_open_bytes(path, data, bytes, out, err);
    hr_free(data);
    return status;
}

void config_close(config *c)
{
    json_decref(c->root);
    c->root = NULL;
}

// ---- refusals -------------------------------------------------------------------------------------------------

static const char *had_text(const json_t *value, char out[HAD_MAX])
{
    if (json_is_string(value)) {
        (void)snprintf(out, HAD_MAX, "'%.*s'", HAD_WORD, json_string_value(value));
    } else if (json_is_integer(value)) {
        (void)snprintf(out, HAD_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        (void)snprintf(out, HAD_MAX, "%.9g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        (void)snprintf(out, HAD_MAX, "%s", json_is_true(value) ? "true" : "false");
    } else {
        (void)snprintf(out, HAD_MAX, "%s",
                       json_is_array(value)    ? "a list"
                       : json_is_object(value) ? "an object"
                                               : "nothing");
    }
    return out;
}

static void refuse(config *c, const char *key, const char *sentence, const char *had)
{
    if (c->status != HR_OK) {
        return;
    }
    c->status = HR_FAIL(c->err, PRESET, "%.160s: %s %s%s%s", c->path, key, sentence,
                        had != NULL ? ", had " : "", had != NULL ? had : "");
    hr_err_try(c->err, "headroom presets, for a model like it that can be copied and changed");
}

void config_refuse(config *c, const char *key, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    refuse(c, key, sentence, NULL);
}

void config_refuse_value(config *c, const char *key, const char *format, ...)
{
    char sentence[SENTENCE_MAX], had[HAD_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    refuse(c, key, sentence, had_text(config_find(c, key), had));
}

// A value that stands where it cannot: the file is what has to be corrected.
static void refuse_wrong(config *c, const char *key, const char *needed)
{
    const bool first = c->status == HR_OK;
    config_refuse_value(c, key, "needs %s", needed);
    if (first) {
        hr_err_try(c->err, "the file as it was published, or another value of %s in it", key);
    }
}

// ---- values ---------------------------------------------------------------------------------------------------

const json_t *config_find(const config *c, const char *key)
{
    const json_t *value = json_object_get(c->root, key);
    return json_is_null(value) ? NULL : value;
}

bool config_is_null(const config *c, const char *key)
{
    return json_is_null(json_object_get(c->root, key));
}

const char *config_either(const config *c, const char *alias, const char *key)
{
    return config_find(c, alias) != NULL ? alias : key;
}

// Widths, depths and whole tables: what a file leaves out without meaning that it is not so (head_dim is shared out, n_inner null).
static bool is_size(const char *key)
{
    static const char *const keys[] = {"vocab_size",
                                       "hidden_size",
                                       "n_embd",
                                       "d_model",
                                       "dim",
                                       "num_hidden_layers",
                                       "n_layer",
                                       "n_layers",
                                       "num_layers",
                                       "num_attention_heads",
                                       "n_head",
                                       "n_heads",
                                       "num_heads",
                                       "intermediate_size",
                                       "moe_intermediate_size",
                                       "hidden_dim",
                                       "ffn_dim",
                                       "d_ff",
                                       "num_experts",
                                       "num_local_experts",
                                       "num_experts_per_tok",
                                       "embedding_size",
                                       "image_size",
                                       "patch_size",
                                       "hidden_sizes",
                                       "depths"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (strcmp(keys[k], key) == 0) {
            return true;
        }
    }
    return false;
}

static void note_absent(config *c, const char *key, const int64_t *values, size_t count)
{
    char words[HAD_MAX];
    const size_t used = strlen(c->absent);
    size_t length = (size_t)snprintf(words, sizeof words, "%s%s ", used > 0 ? ", " : "", key);
    for (size_t k = 0; k < count && length < sizeof words; k++) {
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%" PRId64, k > 0 ? "/" : "",
                                   values[k]);
    }
    if (is_size(key) && length < sizeof words && used + length < sizeof c->absent) {
        memcpy(c->absent + used, words, length + 1);
    }
}

int64_t config_count(config *c, const char *key, int64_t fallback, int64_t min, int64_t max)
{
    char needed[HAD_MAX];
    const json_t *value = config_find(c, key);
    if (value == NULL) {
        note_absent(c, key, &fallback, 1);
        return fallback;
    }
    if (json_is_integer(value) && json_integer_value(value) >= min && json_integer_value(value) <= max) {
        return json_integer_value(value);
    }
    (void)snprintf(needed, sizeof needed, "a whole number from %" PRId64 " to %" PRId64, min, max);
    refuse_wrong(c, key, needed);
    return min;
}

size_t config_counts(config *c, const char *key, int64_t *list, size_t count, size_t most, int64_t max)
{
    const json_t *value = config_find(c, key);
    const size_t had = json_array_size(value);
    bool good = value == NULL || (had >= 1 && had <= most);
    if (value == NULL) {
        note_absent(c, key, list, count);
    }
    for (size_t k = 0; good && k < had; k++) {
        const json_t *one = json_array_get(value, k);
        good = json_is_integer(one) && json_integer_value(one) >= 1 && json_integer_value(one) <= max;
        list[k] = good ? json_integer_value(one) : 1;
    }
    if (!good) {
        char needed[HAD_MAX];
        (void)snprintf(needed, sizeof needed, "a list of 1 to %zu whole numbers from 1 to %" PRId64, most,
                       max);
        refuse_wrong(c, key, needed);
    }
    return value == NULL || !good ? count : had;
}

double config_real(config *c, const char *key, double fallback, double min, double max)
{
    char needed[HAD_MAX];
    const json_t *value = config_find(c, key);
    if (value == NULL) {
        return fallback;
    }
    if (json_is_number(value) && json_number_value(value) >= min && json_number_value(value) <= max) {
        return json_number_value(value);
    }
    (void)snprintf(needed, sizeof needed, "a number from %g to %g", min, max);
    refuse_wrong(c, key, needed);
    return min;
}

bool config_flag(config *c, const char *key, bool fallback)
{
    const json_t *value = config_find(c, key);
    if (value != NULL && !json_is_boolean(value)) {
        refuse_wrong(c, key, "true or false");
    }
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

const char *config_word(config *c, const char *key, const char *fallback)
{
    const json_t *value = config_find(c, key);
    if (value != NULL && !json_is_string(value)) {
        refuse_wrong(c, key, "a text");
    }
    return json_is_string(value) ? json_string_value(value) : fallback;
}

const char *config_real_text(double value, char out[CONFIG_REAL_TEXT])
{
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(out, CONFIG_REAL_TEXT, "%.*g", digits, value);
        if (strtod(out, NULL) == value) {
            break;
        }
    }
    return out;
}
