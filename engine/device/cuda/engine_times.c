// SPDX-License-Identifier: Apache-2.0
#include "engine_times.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "base/text.h"

enum { SLUG_MAX = 64, LEAF_MAX = 160, HEX_DIGITS = 16, FILE_BYTES_MAX = 32 << 20, GRAPHS_MAX = 16384 };
static const int64_t took_ns_max = INT64_C(1) << 53;

void engine_times_init(engine_times *t, const engine_times_of *of)
{
    *t = (engine_times){.of = *of};
}

void engine_times_deinit(engine_times *t)
{
    vec_deinit(&t->rows);
}

// ---- rows ---------------------------------------------------------------------------------------------------------

const engine_row *engine_times_find(const engine_times *t, const uint64_t key[2])
{
    for (uint32_t k = 0; k < t->rows.count; k++) {
        if (t->rows.data[k].key[0] == key[0] && t->rows.data[k].key[1] == key[1]) {
            return &t->rows.data[k];
        }
    }
    return NULL;
}

hr_status engine_times_add(engine_times *t, const engine_row *row, hr_err *err)
{
    engine_row *added = vec_push(&t->rows);
    if (added == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the times of cuDNN's engines");
    }
    *added = *row;
    return HR_OK;
}

uint64_t engine_row_ns(const engine_row *row, int64_t engine, uint64_t knobs)
{
    for (uint32_t k = 0; k < row->count; k++) {
        if (row->time[k].engine == engine && row->time[k].knobs == knobs) {
            return row->time[k].took_ns;
        }
    }
    return 0;
}

// ---- places -------------------------------------------------------------------------------------------------------

static void leaf_of(const engine_times_of *of, char leaf[LEAF_MAX])
{
    char slug[SLUG_MAX];
    text_slug(of->title, slug, sizeof slug);
    (void)snprintf(leaf, LEAF_MAX, "%s.cudnn-%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".engines.json", slug,
                   of->cudnn / 10000, of->cudnn / 100 % 100, of->cudnn % 100);
}

bool engine_times_path(const engine_times_of *of, char path[ENGINE_TIMES_PATH_MAX])
{
    char leaf[LEAF_MAX], below[LEAF_MAX + sizeof "presets/cards/"];
    leaf_of(of, leaf);
    (void)snprintf(below, sizeof below, "presets/cards/%s", leaf);
    return hr_file_xdg("XDG_DATA_HOME", ".local/share", below, path, ENGINE_TIMES_PATH_MAX);
}

static bool path_beside(const engine_times_of *of, const char *properties_path,
                        char path[ENGINE_TIMES_PATH_MAX])
{
    char leaf[LEAF_MAX];
    const char *slash = strrchr(properties_path, '/');
    leaf_of(of, leaf);
    const int length =
        snprintf(path, ENGINE_TIMES_PATH_MAX, "%.*s%s",
                 slash == NULL ? 0 : (int)(slash + 1 - properties_path), properties_path, leaf);
    return properties_path[0] != '\0' && length > 0 && length < ENGINE_TIMES_PATH_MAX;
}

// ---- reading ------------------------------------------------------------------------------------------------------

static hr_status refuse(const char *path, const char *what, hr_err *err)
{
    (void)HR_FAIL(err, PRESET, "%s: %s", path, what);
    hr_err_try(err, "rm %s # it is measured again; or -s workspace.search=off", path);
    return HR_PRESET;
}

static bool is_hex(const json_t *value, size_t digits)
{
    const char *digits_text = json_string_value(value);
    return digits_text != NULL && strlen(digits_text) == digits &&
           strspn(digits_text, "0123456789abcdef") == digits;
}

static uint64_t hex_of(const char *from)
{
    char digits[HEX_DIGITS + 1];
    (void)snprintf(digits, sizeof digits, "%.*s", HEX_DIGITS, from);
    return strtoull(digits, NULL, 16);
}

static bool read_time(const json_t *value, engine_time *out)
{
    const json_t *engine = json_object_get(value, "engine"), *knobs = json_object_get(value, "knobs"),
                 *took = json_object_get(value, "took_ns");
    if (!json_is_integer(engine) || !is_hex(knobs, HEX_DIGITS) || !json_is_integer(took) ||
        json_integer_value(took) < 1 || json_integer_value(took) > took_ns_max) {
        return false;
    }
    *out = (engine_time){.engine = json_integer_value(engine),
                         .knobs = hex_of(json_string_value(knobs)),
                         .took_ns = (uint64_t)json_integer_value(took)};
    return true;
}

static bool read_row(const json_t *value, engine_row *out)
{
    const json_t *graph = json_object_get(value, "graph"), *engines = json_object_get(value, "engines");
    const size_t count = json_array_size(engines);
    *out = (engine_row){.count = (uint32_t)count};
    if (!is_hex(graph, 2 * HEX_DIGITS) || count == 0 || count > ENGINE_TIMES_MAX) {
        return false;
    }
    out->key[0] = hex_of(json_string_value(graph));
    out->key[1] = hex_of(json_string_value(graph) + HEX_DIGITS);
    bool good = true;
    for (size_t k = 0; good && k < count; k++) {
        good = read_time(json_array_get(engines, k), &out->time[k]);
    }
    return good;
}

static bool says(const json_t *root, const char *key, uint64_t wanted)
{
    const json_t *value = json_object_get(root, key);
    return json_is_integer(value) && (uint64_t)json_integer_value(value) == wanted;
}

static hr_status check_card(const engine_times_of *of, const json_t *root, const char *path, hr_err *err)
{
    const char *card = json_string_value(json_object_get(root, "card"));
    const bool same = card != NULL && strcmp(card, of->title) == 0 && says(root, "cudnn", of->cudnn) &&
                      says(root, "compute_capability", of->compute_major * 10 + of->compute_minor) &&
                      says(root, "multiprocessors", of->multiprocessors);
    char what[ENGINE_TIMES_TITLE_MAX + 96];
    (void)snprintf(what, sizeof what,
                   "needed times of engines on %s with %" PRIu32 " multiprocessors by cuDNN %" PRIu64
                   ", had others",
                   of->title, of->multiprocessors, of->cudnn);
    return same ? HR_OK : refuse(path, what, err);
}

static bool has_whole(const engine_times *t, const uint64_t key[2])
{
    bool has = false;
    for (uint32_t k = 0; k < t->rows.count && !has; k++) {
        const engine_row *row = &t->rows.data[k];
        has = !row->partial && row->key[0] == key[0] && row->key[1] == key[1];
    }
    return has;
}

// Rows of graphs that t has are left out, but where it has them in part: those it does not write.
static hr_status add_rows(engine_times *t, const json_t *root, const char *path, hr_err *err)
{
    const json_t *graphs = json_object_get(root, "graphs");
    HR_TRY(check_card(&t->of, root, path, err));
    if (!json_is_array(graphs)) {
        return refuse(path, "needed an array 'graphs'", err);
    }
    if (json_array_size(graphs) > GRAPHS_MAX) { // each is looked for among those before
        char what[96];
        (void)snprintf(what, sizeof what, "needed at most %d graphs, had %zu", GRAPHS_MAX,
                       json_array_size(graphs));
        return refuse(path, what, err);
    }
    for (size_t k = 0; k < json_array_size(graphs); k++) {
        engine_row row;
        if (!read_row(json_array_get(graphs, k), &row)) {
            char what[96];
            (void)snprintf(what, sizeof what,
                           "graphs[%zu] needed a graph and from one to %d engines with their times", k,
                           ENGINE_TIMES_MAX);
            return refuse(path, what, err);
        }
        if (!has_whole(t, row.key)) {
            HR_TRY(engine_times_add(t, &row, err));
        }
    }
    return HR_OK;
}

static hr_status read_file(engine_times *t, const char *path, uint64_t *hash, hr_err *err)
{
    char *json = NULL, where_text[JSON_ERROR_TEXT_LENGTH + 32];
    size_t bytes = 0;
    json_error_t where;
    const uint32_t before = t->rows.count;
    HR_TRY(file_read(path, FILE_BYTES_MAX, &json, &bytes, err));
    json_t *root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &where);
    *hash = hash64(json, bytes, 1);
    hr_free(json);
    if (root == NULL) {
        (void)snprintf(where_text, sizeof where_text, "line %d: %s", where.line, where.text);
        return refuse(path, where_text, err);
    }
    const hr_status status = add_rows(t, root, path, err);
    json_decref(root);
    t->rows.count = status == HR_OK ? t->rows.count : before;
    return status;
}

// 0: nothing is there. A file that is written whole or not at all is another one each time.
static uint64_t stamp_of(const engine_times_of *of)
{
    char path[ENGINE_TIMES_PATH_MAX];
    struct stat info;
    if (!engine_times_path(of, path) || stat(path, &info) != 0) {
        return 0;
    }
    const uint64_t when = hash64_mix((uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec);
    return hash64_mix(hash64_mix(when, (uint64_t)info.st_size), (uint64_t)info.st_ino) | 1u;
}

bool engine_times_changed(const engine_times *t)
{
    return stamp_of(&t->of) != t->stamp;
}

hr_status engine_times_read(engine_times *t, const char *properties_path, hr_err *err)
{
    char path[ENGINE_TIMES_PATH_MAX];
    t->stamp = stamp_of(&t->of);
    if (t->stamp != 0 && engine_times_path(&t->of, path)) {
        return read_file(t, path, &t->hash, err);
    }
    const bool beside = path_beside(&t->of, properties_path, path) && access(path, F_OK) == 0;
    return beside ? read_file(t, path, &t->hash, err) : HR_OK;
}

// ---- writing ------------------------------------------------------------------------------------------------------

static void append_row(text *to, const engine_row *row, bool first)
{
    text_append(to, "%s  {\"graph\": \"%016" PRIx64 "%016" PRIx64 "\", \"engines\": [", first ? "" : ",\n",
                row->key[0], row->key[1]);
    for (uint32_t k = 0; k < row->count; k++) {
        text_append(to,
                    "%s{\"engine\": %" PRId64 ", \"knobs\": \"%016" PRIx64 "\", \"took_ns\": %" PRIu64 "}",
                    k == 0 ? "" : ", ", row->time[k].engine, row->time[k].knobs, row->time[k].took_ns);
    }
    text_append(to, "]}");
}

static void append_all(text *to, const engine_times *t)
{
    char title[ENGINE_TIMES_TITLE_MAX * 2];
    json_t *quoted = json_string(t->of.title);
    const size_t length = json_dumpb(quoted, title, sizeof title - 1, JSON_ENCODE_ANY);
    title[length < sizeof title ? length : 0] = '\0';
    json_decref(quoted);
    text_append(to,
                "{\"card\": %s, \"compute_capability\": %" PRIu32 ", \"multiprocessors\": %" PRIu32
                ", \"cudnn\": %" PRIu64 ", \"graphs\": [\n",
                title, t->of.compute_major * 10 + t->of.compute_minor, t->of.multiprocessors, t->of.cudnn);
    to->failed = to->failed || length == 0;
    uint32_t written = 0;
    for (uint32_t k = 0; k < t->rows.count && written < GRAPHS_MAX; k++) {
        if (!t->rows.data[k].partial) {
            append_row(to, &t->rows.data[k], written++ == 0);
        }
    }
    text_append(to, "%s]}\n", written == 0 ? "" : "\n");
}

static hr_status write_file(const char *path, const text *words, hr_err *err)
{
    file_writer *w = NULL;
    (void)hr_file_make_folders(path);
    HR_TRY(file_writer_open(path, &w, err));
    const hr_status status = file_writer_add(w, words->data, words->length, err);
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}

hr_status engine_times_write(engine_times *t, hr_err *err)
{
    char path[ENGINE_TIMES_PATH_MAX];
    text words = {0};
    uint64_t ignored = 0;
    if (!engine_times_path(&t->of, path)) {
        return HR_FAIL(err, WRITE, "there is no data folder for the times of engines: HOME is not set");
    }
    if (access(path, F_OK) == 0) {
        HR_TRY(read_file(t, path, &ignored, err));
    }
    append_all(&words, t);
    const hr_status status = words.failed ? HR_FAIL(err, NOMEM, "no host memory for the times of engines")
                                          : write_file(path, &words, err);
    text_deinit(&words);
    return status;
}
