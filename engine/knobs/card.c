// SPDX-License-Identifier: Apache-2.0
// Cards from presets/cards/*.yaml, and the limit that TensorFlow would give its allocator on one.
#include "headroom/card.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/text.h"
#include "knobs/logical.h"
#include "knobs/search.h"
#include "knobs/torch_settings.h"
#include "knobs/yaml.h"

typedef enum field_kind { FIELD_TEXT, FIELD_BYTES, FIELD_REAL, FIELD_CAPABILITY } field_kind;

typedef struct card_field {
    const char *key;
    field_kind kind;
    size_t offset;
    bool optional;
} card_field;

// clang-format off
static const card_field fields[] = {
    {"title", FIELD_TEXT, offsetof(hr_card, title), false},
    {"vram", FIELD_BYTES, offsetof(hr_card, vram_bytes), false},
    {"context", FIELD_BYTES, offsetof(hr_card, context_bytes), false},
    {"granularity", FIELD_BYTES, offsetof(hr_card, granularity_bytes), false},
    {"compute_capability", FIELD_CAPABILITY, 0, false},
    {"memory_bytes_per_second", FIELD_REAL, offsetof(hr_card, memory_bytes_per_second), false},
    {"link_bytes_per_second", FIELD_REAL, offsetof(hr_card, link_bytes_per_second), false},
    {"launch_seconds", FIELD_REAL, offsetof(hr_card, launch_seconds), false},
    {"float32_flops", FIELD_REAL, offsetof(hr_card, float32_flops), false},
    {"tf32_flops", FIELD_REAL, offsetof(hr_card, tf32_flops), true},
    {"float16_flops", FIELD_REAL, offsetof(hr_card, float16_flops), true},
    {"bfloat16_flops", FIELD_REAL, offsetof(hr_card, bfloat16_flops), true},
    {"float64_flops", FIELD_REAL, offsetof(hr_card, float64_flops), true},
    {"vector_float16_flops", FIELD_REAL, offsetof(hr_card, vector_float16_flops), true},
    {"vector_bfloat16_flops", FIELD_REAL, offsetof(hr_card, vector_bfloat16_flops), true},
    {"vector_float64_flops", FIELD_REAL, offsetof(hr_card, vector_float64_flops), true},
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

// NULL when the value was taken, else what was needed.
static const char *take_field(const card_field *field, const char *words, hr_card *card)
{
    void *place = (char *)card + field->offset;
    double real = 0;
    uint64_t bytes = 0;
    switch (field->kind) {
    case FIELD_TEXT:
        return text_copy(place, sizeof card->title, words) ? NULL : "at most 63 bytes of text";
    case FIELD_CAPABILITY:
        return read_capability(words, card) ? NULL : "a compute capability such as 8.6";
    case FIELD_BYTES:
        if (!hr_bytes_parse(words, &bytes) || bytes == 0) {
            return "a size such as 8GiB";
        }
        memcpy(place, &bytes, sizeof bytes);
        return NULL;
    case FIELD_REAL:
        if (!text_to_real(words, &real) || real <= 0) {
            return "a number above 0";
        }
        memcpy(place, &real, sizeof real);
        return NULL;
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

static void report_unknown(yaml_file *file, const yaml_node *node)
{
    const char *keys[FIELD_COUNT];
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        keys[i] = fields[i].key;
    }
    const char *near = text_nearest(node->key, keys, FIELD_COUNT);
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

static void take_card(yaml_file *file, hr_card *card)
{
    const yaml_node *root = yaml_root(file);
    if (root == NULL || root->kind != YAML_MAPPING) {
        if (yaml_problem_count(file) == 0) {
            yaml_problem(file, 1, 1, "a card begins with keys, such as 'title:' and 'vram:'");
        }
        return;
    }
    const yaml_node *last = root;
    for (const yaml_node *node = root->child; node != NULL; node = node->next) {
        take_node(file, node, card);
        last = node;
    }
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        if (!fields[i].optional && yaml_find(root, fields[i].key) == NULL) {
            yaml_problem(file, last->line, last->column, "up to here this card does not say its '%s'",
                         fields[i].key);
        }
    }
    if (yaml_problem_count(file) == 0 && card->context_bytes >= card->vram_bytes) {
        yaml_problem(file, 1, 1, "context must be smaller than vram");
    }
}

static hr_status refuse_name(const char *name, hr_err *err)
{
    char known[320], near[64];
    HR_TRY(search_known("cards", name, known, sizeof known, near, err));
    hr_status status = HR_FAIL(err, PRESET, "no card is called '%.64s'; %s%s", name,
                               known[0] == '\0' ? "no folder of cards was found" : "there are ", known);
    hr_err_try(err, near[0] == '\0' ? "headroom cards" : "-s device.card=%s", near);
    return status;
}

// Beside the card's own file, under its name.
static void find_properties(const char *path, hr_card *card)
{
    static const char ending[] = ".json";
    const char *dot = strrchr(path, '.');
    const size_t length = dot == NULL ? strlen(path) : (size_t)(dot - path);
    if (length + sizeof ending <= sizeof card->properties_path) {
        (void)snprintf(card->properties_path, sizeof card->properties_path, "%.*s%s", (int)length, path,
                       ending);
        if (access(card->properties_path, R_OK) != 0) {
            card->properties_path[0] = '\0';
        }
    }
}

hr_status hr_card_load(const char *name, hr_card *card, hr_err *err)
{
    char path[SEARCH_PATH_MAX];
    hr_card read = {0};
    *card = read;
    if (!text_copy(read.name, sizeof read.name, name) || !search_by_name(search_card_folders, name, path)) {
        return refuse_name(name, err);
    }
    yaml_file *file;
    HR_TRY(yaml_open(path, &file, err));
    take_card(file, &read);
    hr_status status = yaml_status(file, err);
    yaml_close(file);
    if (status == HR_OK) {
        find_properties(path, &read);
        *card = read;
    }
    return status;
}

// ---- the limit --------------------------------------------------------------------------------------------

// What TensorFlow leaves to the system: MinSystemMemory in gpu_device.cc.
static uint64_t reserve_bytes(uint64_t available_bytes, uint32_t compute_major)
{
    uint64_t mib = available_bytes < 2 * HR_GIB ? 225
                   : compute_major <= 6         ? 500
                   : compute_major == 7         ? 1050
                   : compute_major == 8         ? 1536
                                                : 1800;
    return mib * HR_MIB;
}

static hr_status refuse_vram(const hr_card *card, uint64_t vram_bytes, hr_err *err)
{
    char wanted[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    hr_status status = HR_FAIL(err, CONSTRAINT, "device.vram: card %s has %s, wanted %s", card->name,
                               hr_bytes_exact(card->vram_bytes, had), hr_bytes_exact(vram_bytes, wanted));
    hr_err_try(err, "-s device.vram=%s", had);
    return status;
}

// TensorFlow takes its share of the whole card, whatever else lies on it, and without one keeps something back; PyTorch
// keeps nothing back, and gets no more than there is.
static uint64_t share_of(const hr_card *card, double fraction, bool keeps_back)
{
    uint64_t available_bytes = card->vram_bytes - card->context_bytes;
    uint64_t share_bytes = (uint64_t)((double)card->vram_bytes * fraction);
    if (!keeps_back) {
        return fraction > 0 && share_bytes < available_bytes ? share_bytes : available_bytes;
    }
    if (fraction > 0) {
        return share_bytes;
    }
    uint64_t reserved_bytes = reserve_bytes(available_bytes, card->compute_major);
    return reserved_bytes < available_bytes ? available_bytes - reserved_bytes : available_bytes;
}

// The limit of an undivided device, and what logical devices may take together.
static hr_status whole_device(const hr_knobs *knobs, const hr_card *card, uint64_t *limit_bytes,
                              uint64_t *room_bytes, hr_err *err)
{
    if (hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM)) {
        *limit_bytes = *room_bytes = hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, 0);
        return card != NULL && *limit_bytes > card->vram_bytes ? refuse_vram(card, *limit_bytes, err) : HR_OK;
    }
    if (card == NULL) {
        hr_status status =
            HR_FAIL(err, CONSTRAINT, "the allocator's limit: needed device.vram or device.card, had neither");
        hr_err_try(err, "-s device.vram=4GiB");
        return status;
    }
    *limit_bytes =
        share_of(card, torch_settings_fraction(knobs), !hr_knob_is(knobs, HR_KNOB_ALLOCATOR_KIND, "caching"));
    *room_bytes = card->vram_bytes - card->context_bytes;
    return HR_OK;
}

static hr_status refuse_division(const logical_devices *d, uint64_t room_bytes, hr_err *err)
{
    char wanted[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    hr_status status =
        HR_FAIL(err, CONSTRAINT, "device.logical: %" PRIu32 " logical devices need %s together, had %s",
                d->count, hr_bytes_exact(d->bytes, wanted), hr_bytes_exact(room_bytes, had));
    hr_err_try(err, "-s device.logical=none");
    return status;
}

hr_status hr_device_limit_bytes(const hr_knobs *knobs, const hr_card *card, uint64_t *limit_bytes,
                                hr_err *err)
{
    uint64_t room_bytes = 0, whole_bytes = 0;
    logical_devices d;
    *limit_bytes = 0;
    HR_TRY(whole_device(knobs, card, &whole_bytes, &room_bytes, err));
    if (logical_devices_of(knobs, &d) && d.count > 0) {
        if (d.bytes > room_bytes) {
            return refuse_division(&d, room_bytes, err);
        }
        whole_bytes = d.first_bytes;
    }
    *limit_bytes = whole_bytes;
    return HR_OK;
}
