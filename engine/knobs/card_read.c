// SPDX-License-Identifier: Apache-2.0
#include "knobs/card_read.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/text.h"
#include "knobs/card_table.h"
#include "knobs/search.h"
#include "knobs/yaml.h"

typedef enum field_kind {
    FIELD_TEXT,
    FIELD_BYTES,
    FIELD_COUNTED,
    FIELD_RATE,
    FIELD_SECONDS,
    FIELD_CAPABILITY
} field_kind;

typedef struct card_field {
    const char *key;
    field_kind kind;
    size_t offset, size; // size: of a text
    bool optional;
    bool around; // of memory size, host or runtime: the properties hold whatever it says
} card_field;

#define PLACE(member) offsetof(hr_card, member), sizeof((hr_card *)NULL)->member

// clang-format off
static const card_field fields[] = {
    {"title", FIELD_TEXT, PLACE(title), false, false},
    {"family", FIELD_TEXT, PLACE(family), true, false},
    {"source", FIELD_TEXT, PLACE(source), true, false},
    {"year", FIELD_COUNTED, PLACE(year), true, false},
    {"multiprocessors", FIELD_COUNTED, PLACE(multiprocessors), true, false},
    {"vram", FIELD_BYTES, PLACE(vram_bytes), false, true},
    {"context", FIELD_BYTES, PLACE(context_bytes), false, true},
    {"granularity", FIELD_BYTES, PLACE(granularity_bytes), false, true},
    {"compute_capability", FIELD_CAPABILITY, 0, 0, false, false},
    {"memory_bytes_per_second", FIELD_RATE, PLACE(memory_bytes_per_second), false, false},
    {"link_bytes_per_second", FIELD_RATE, PLACE(link_bytes_per_second), false, true},
    {"launch_seconds", FIELD_SECONDS, PLACE(launch_seconds), false, true},
    {"float32_flops", FIELD_RATE, PLACE(float32_flops), false, false},
    {"tf32_flops", FIELD_RATE, PLACE(tf32_flops), true, false},
    {"float16_flops", FIELD_RATE, PLACE(float16_flops), true, false},
    {"bfloat16_flops", FIELD_RATE, PLACE(bfloat16_flops), true, false},
    {"float64_flops", FIELD_RATE, PLACE(float64_flops), true, false},
    {"vector_float16_flops", FIELD_RATE, PLACE(vector_float16_flops), true, false},
    {"vector_bfloat16_flops", FIELD_RATE, PLACE(vector_bfloat16_flops), true, false},
    {"vector_float64_flops", FIELD_RATE, PLACE(vector_float64_flops), true, false},
};
// clang-format on
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

// ---- reading ----------------------------------------------------------------------------------------------

// "8.6"
static bool read_capability(const char *words, hr_card *card)
{
    const char *dot = strchr(words, '.');
    char major_text[8];
    int64_t major = 0, minor = 0;
    if (dot == NULL || (size_t)(dot - words) >= sizeof major_text) {
        return false;
    }
    snprintf(major_text, sizeof major_text, "%.*s", (int)(dot - words), words);
    if (!text_to_int(major_text, &major) || !text_to_int(dot + 1, &minor) || major < 1 || major > 99 ||
        minor < 0 || minor > 9) {
        return false;
    }
    card->compute_major = (uint32_t)major;
    card->compute_minor = (uint32_t)minor;
    return true;
}

static bool read_bytes(const char *words, hr_card *card, void *place)
{
    uint64_t bytes = 0;
    const bool endless = place == &card->vram_bytes && strcmp(words, "unlimited") == 0;
    if (!endless && (!hr_bytes_parse(words, &bytes) || bytes == 0 || bytes > HR_UNLIMITED_BYTES)) {
        return false;
    }
    bytes = endless ? HR_UNLIMITED_BYTES : bytes;
    memcpy(place, &bytes, sizeof bytes);
    return true;
}

static bool read_count(const char *words, void *place)
{
    int64_t number = 0;
    if (!text_to_int(words, &number) || number < 1 || number > 9999) {
        return false;
    }
    const uint32_t count = (uint32_t)number;
    memcpy(place, &count, sizeof count);
    return true;
}

// Beyond what a card ever had by far, so that no step's nanoseconds are too many to count.
static bool read_between(const char *words, double least, double most, void *place)
{
    double real = 0;
    if (!text_to_real(words, &real) || real < least || real > most) {
        return false;
    }
    memcpy(place, &real, sizeof real);
    return true;
}

// NULL when the value was taken, else what was needed.
static const char *take_field(const card_field *field, const char *words, hr_card *card)
{
    void *place = (char *)card + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
        return text_copy(place, field->size, words) ? NULL : "a shorter text";
    case FIELD_CAPABILITY:
        return read_capability(words, card) ? NULL : "a compute capability such as 8.6";
    case FIELD_BYTES:
        return read_bytes(words, card, place) ? NULL : "a size such as 8GiB";
    case FIELD_COUNTED:
        return read_count(words, place) ? NULL : "a whole number above 0";
    case FIELD_RATE:
        return read_between(words, 1e6, 1e20, place) ? NULL : "a number of 1e6 to 1e20 a second";
    case FIELD_SECONDS:
        return read_between(words, 1e-9, 1, place) ? NULL : "seconds, of 1e-9 to 1";
    }
    return NULL;
}

static const card_field *find_field(const char *key)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (strcmp(fields[i].key, key) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

static const char *nearest_key(const char *key)
{
    const char *keys[FIELD_COUNT];
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        keys[i] = fields[i].key;
    }
    return text_nearest(key, keys, FIELD_COUNT);
}

static void report_unknown(yaml_file *file, const yaml_node *node)
{
    const char *near = nearest_key(node->key);
    yaml_problem(file, node->key_line, node->key_column, "a card has no '%s'%s%s%s", node->key,
                 near == NULL ? "" : " — did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
}

static void take_node(yaml_file *file, const yaml_node *node, hr_card *card)
{
    const card_field *field = find_field(node->key);
    if (field == NULL) {
        report_unknown(file, node);
        return;
    }
    const char *needed = node->kind == YAML_SCALAR ? take_field(field, node->text, card) : "one value";
    if (needed != NULL) {
        yaml_problem(file, node->line, node->column, "%s: needs %s, had '%s'", node->key, needed,
                     node->text == NULL ? "a list or a mapping" : node->text);
    }
}

// `like: NAME`: what the card says nothing of is as of that one. Only of the table, so that no card leads back to itself.
static bool begin_like(yaml_file *file, const yaml_node *root, hr_card *card)
{
    const yaml_node *like = yaml_find(root, "like");
    if (like != NULL && (like->kind != YAML_SCALAR || !card_of_table(like->text, card))) {
        yaml_problem(file, like->line, like->column, "no card of `headroom cards` is called '%s'",
                     like->text == NULL ? "" : like->text);
    }
    return like != NULL;
}

static void demand_all(yaml_file *file, const yaml_node *root, const yaml_node *last)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (!fields[i].optional && yaml_find(root, fields[i].key) == NULL) {
            yaml_problem(file, last->line, last->column, "up to here this card does not say its '%s'",
                         fields[i].key);
        }
    }
}

static void take_card(yaml_file *file, hr_card *card)
{
    const yaml_node *root = yaml_root(file);
    if (root == NULL || root->kind != YAML_MAPPING) {
        if (yaml_problem_count(file) == 0) {
            yaml_problem(file, 1, 1, "a card begins with keys, such as 'title:' and 'vram:'");
        }
        return;
    }
    const bool is_like = begin_like(file, root, card);
    const yaml_node *last = root;
    for (const yaml_node *node = root->child; node != NULL; node = node->next) {
        if (strcmp(node->key, "like") != 0) {
            take_node(file, node, card);
        }
        last = node;
    }
    if (!is_like) {
        demand_all(file, root, last);
    }
    if (yaml_problem_count(file) == 0 && card->context_bytes >= card->vram_bytes) {
        yaml_problem(file, 1, 1, "context must be smaller than vram");
    }
}

static hr_status read_file(const char *path, hr_card *card, char **problems, hr_err *err)
{
    yaml_file *file;
    hr_card read = {0};
    HR_TRY(yaml_open(path, &file, err));
    take_card(file, &read);
    hr_status status = yaml_status(file, err);
    if (status != HR_OK && problems != NULL) {
        *problems = yaml_problems_text(file);
    }
    yaml_close(file);
    if (status == HR_OK) {
        *card = read;
    }
    return status;
}

hr_status card_read_file(const char *path, hr_card *card, hr_err *err)
{
    return read_file(path, card, NULL, err);
}

hr_status hr_card_check(const char *path, char **problems, hr_err *err)
{
    hr_card card;
    *problems = NULL;
    return read_file(path, &card, problems, err);
}

// A preset has mappings, and what it shares with a card are words about it.
static bool is_card(const yaml_node *root)
{
    bool has_one = false;
    for (const yaml_node *node = root->child; node != NULL; node = node->next) {
        const card_field *field = find_field(node->key);
        if (strcmp(node->key, "model") == 0 || strcmp(node->key, "extends") == 0 ||
            node->kind == YAML_MAPPING) {
            return false;
        }
        has_one = has_one || strcmp(node->key, "like") == 0 || (field != NULL && field->kind != FIELD_TEXT);
    }
    return has_one;
}

bool hr_card_is_file(const char *path)
{
    yaml_file *file;
    if (!search_is_path(path) || yaml_open(path, &file, NULL) != HR_OK) {
        return false;
    }
    const yaml_node *root = yaml_root(file);
    const bool is = root != NULL && root->kind == YAML_MAPPING && is_card(root);
    yaml_close(file);
    return is;
}

// ---- what differs -----------------------------------------------------------------------------------------

// Of a card as it is said every field can be looked up.
static void advise_fields(const char *words, hr_err *err)
{
    hr_err_try(err, "headroom cards %.*s # every field with a value", (int)strcspn(words, ","), words);
}

// The key stands at words + at.
static hr_status refuse_key(const char *words, size_t at, size_t length, hr_err *err)
{
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)length, words + at);
    const char *near = nearest_key(key), *rest = words + at + length;
    hr_status status =
        HR_FAIL(err, PRESET, "device.card: a card has no '%.40s'%s%s%s", key,
                near == NULL ? "" : " — did you mean '", near == NULL ? "" : near, near == NULL ? "" : "'?");
    if (near != NULL && *rest == '=') {
        hr_err_try(err, "-s device.card=%.*s%s%s", (int)at, words, near, rest);
    } else {
        advise_fields(words, err);
    }
    return status;
}

static hr_status change(hr_card *card, const char *words, size_t at, size_t length, hr_err *err)
{
    char pair[HR_KNOB_TEXT_MAX];
    snprintf(pair, sizeof pair, "%.*s", (int)length, words + at);
    char *value = strchr(pair, '=');
    const card_field *field = NULL;
    if (value != NULL) {
        *value++ = '\0';
        field = find_field(pair);
    }
    if (field == NULL) {
        return refuse_key(words, at, strlen(pair), err);
    }
    const char *needed = take_field(field, value, card);
    if (needed == NULL) {
        if (!field->around) { // of the card as it was sold
            card->properties_path[0] = '\0';
        }
        return HR_OK;
    }
    hr_status status = HR_FAIL(err, PRESET, "device.card: %s needs %s, had '%.40s'", pair, needed, value);
    advise_fields(words, err);
    return status;
}

hr_status card_change(hr_card *card, const char *words, hr_err *err)
{
    hr_card changed = *card;
    if (strlen(words) >= HR_KNOB_TEXT_MAX) {
        return HR_FAIL(err, PRESET, "device.card: the text is too long");
    }
    for (size_t at = strcspn(words, ","); words[at] != '\0';) {
        const size_t length = strcspn(words + ++at, ",");
        if (length > 0) {
            HR_TRY(change(&changed, words, at, length, err));
        }
        at += length;
    }
    if (changed.context_bytes >= changed.vram_bytes) {
        hr_status status = HR_FAIL(err, PRESET, "device.card: context must be smaller than vram");
        advise_fields(words, err);
        return status;
    }
    *card = changed;
    return HR_OK;
}
