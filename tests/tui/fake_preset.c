// SPDX-License-Identifier: Apache-2.0
// hr_preset_* and hr_card_* of the scripted engine: three presets that need no files, and no card.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/knob_export.h"
#include "headroom/replay.h"

#include "tests/tui/fake_engine.h"

struct hr_preset {
    const char *name, *title, *folder, *batch, *vram, *description;
    hr_knobs knobs;
};

static struct hr_preset presets[] = {
    {.name = "demo",
     .title = "The separable CNN learns generated images in 64 MiB",
     .folder = "",
     .batch = "128",
     .vram = "64MiB"},
    {.name = "cifar10_separable_cnn",
     .title = "A small separable CNN for 32×32 images",
     .folder = "models",
     .batch = "64",
     .vram = "1GiB"},
    {.name = "wide",
     .title = "A batch that does not fit",
     .folder = "articles",
     .description =
         "A batch of 256 needs 102.5 MiB at its peak, of which 64 MiB are there: its first step is "
         "refused. Half of it fits, and accumulating two of those halves learns the same.\n",
     .batch = "256",
     .vram = "64MiB"},
};

enum { PRESETS = sizeof presets / sizeof *presets };

static hr_preset *ready(struct hr_preset *p)
{
    char pair[64];
    hr_knobs_init(&p->knobs);
    snprintf(pair, sizeof pair, "batch.size=%s", p->batch);
    if (hr_knobs_set_pair(&p->knobs, pair, NULL) != HR_OK) {
        abort();
    }
    snprintf(pair, sizeof pair, "device.vram=%s", p->vram);
    if (hr_knobs_set_pair(&p->knobs, pair, NULL) != HR_OK) {
        abort();
    }
    return p;
}

const hr_preset *fake_preset(void)
{
    return ready(&presets[0]);
}

const hr_preset *fake_broken_preset(void)
{
    static struct hr_preset broken = {
        .name = "broken", .title = "", .folder = "", .batch = "128", .vram = "64MiB"};
    return ready(&broken);
}

hr_status hr_preset_open(const char *name, bool trust, hr_preset **out, char **problems, hr_err *err)
{
    (void)trust;
    if (problems != NULL) {
        *problems = NULL;
    }
    for (size_t i = 0; i < PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *out = ready(&presets[i]);
            return HR_OK;
        }
    }
    return HR_FAIL(err, PRESET, "no preset is called '%s'", name);
}

bool hr_preset_is_trace(const hr_preset *preset)
{
    (void)preset;
    return false;
}

hr_status hr_replay_open_preset(const char *word, bool trust, hr_preset **out, char **problems, hr_err *err)
{
    return hr_preset_open(word, trust, out, problems, err);
}

void hr_preset_problems_free(char *problems)
{
    free(problems);
}

void hr_preset_close(hr_preset *preset)
{
    (void)preset;
}

const char *hr_preset_name(const hr_preset *preset)
{
    return preset->name;
}

const char *hr_preset_path(const hr_preset *preset)
{
    return preset->name;
}

const char *hr_preset_description(const hr_preset *preset)
{
    return preset->description == NULL ? "" : preset->description;
}

const char *hr_preset_note(const hr_preset *preset)
{
    (void)preset;
    return "";
}

bool hr_preset_trusts(const hr_preset *preset)
{
    (void)preset;
    return false;
}

const hr_knobs *hr_preset_knobs(const hr_preset *preset)
{
    return &preset->knobs;
}

static const struct {
    const char *name, *title;
} cards[] = {{"a100-80g", "NVIDIA A100 80 GB PCIe"},
             {"h200-141g", "NVIDIA H200"},
             {"l4-24g", "NVIDIA L4"},
             {"rtx2080ti-11g", "NVIDIA GeForce RTX 2080 Ti"},
             {"rtx3060-12g", "NVIDIA GeForce RTX 3060"},
             {"rtx3070-8g", "NVIDIA GeForce RTX 3070"},
             {"rtx3090-24g", "NVIDIA GeForce RTX 3090"},
             {"rtx4070-12g", "NVIDIA GeForce RTX 4070"},
             {"rtx4080-16g", "NVIDIA GeForce RTX 4080"},
             {"rtx4090-24g", "NVIDIA GeForce RTX 4090"},
             {"t4-16g", "NVIDIA T4"},
             {"v100-32g", "NVIDIA V100 SXM2 32 GB"}};

static hr_status list_cards(hr_preset_entry **entries, size_t *count, hr_err *err)
{
    *count = sizeof cards / sizeof *cards;
    *entries = calloc(*count, sizeof **entries);
    if (*entries == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for %zu cards", *count);
    }
    for (size_t i = 0; i < *count; i++) {
        snprintf((*entries)[i].name, sizeof(*entries)[i].name, "%s", cards[i].name);
        snprintf((*entries)[i].title, sizeof(*entries)[i].title, "%s", cards[i].title);
    }
    return HR_OK;
}

hr_status hr_preset_list(const char *folder, hr_preset_entry **entries, size_t *count, hr_err *err)
{
    if (strcmp(folder, "cards") == 0) {
        return list_cards(entries, count, err);
    }
    *count = 0;
    *entries = calloc(PRESETS, sizeof **entries);
    if (*entries == NULL) {
        return HR_FAIL(err, NOMEM, "no memory for %d presets", PRESETS);
    }
    for (size_t i = 0; i < PRESETS; i++) {
        if (strcmp(presets[i].folder, folder) == 0) {
            hr_preset_entry *entry = &(*entries)[(*count)++];
            snprintf(entry->name, sizeof entry->name, "%s", presets[i].name);
            snprintf(entry->title, sizeof entry->title, "%s", presets[i].title);
            snprintf(entry->folder, sizeof entry->folder, "%s", folder);
        }
    }
    return HR_OK;
}

void hr_preset_list_free(hr_preset_entry *entries)
{
    free(entries);
}

// What is written is the library's own (unit/knob_export); here it is enough that it was asked for.
const char *hr_knob_export_form(size_t index)
{
    static const char *const forms[] = {"preset", "pytorch", "keras"};
    return index < sizeof forms / sizeof *forms ? forms[index] : NULL;
}

hr_status hr_knob_export_file(const char *form, const hr_preset *preset, const hr_knobs *knobs,
                              const char *path, bool replaces, hr_err *err)
{
    char batch[HR_KNOB_TEXT_MAX];
    if (strcmp(form, "preset") != 0 && strcmp(form, "pytorch") != 0 && strcmp(form, "keras") != 0) {
        return HR_FAIL(err, USAGE, "needed preset, pytorch or keras, had '%s'", form);
    }
    FILE *out = fopen(path, replaces ? "w" : "wx");
    if (out == NULL) {
        return HR_FAIL(err, WRITE, "%s: is there already", path);
    }
    fprintf(out, "%s of %s, batch %s\n", form, preset->name,
            hr_knob_format(knobs, HR_KNOB_BATCH_SIZE, batch));
    fclose(out);
    return HR_OK;
}

hr_status hr_card_load(const char *name, hr_card *card, hr_err *err)
{
    static const char own[] = "own-8g"; // and what differs from it
    *card = (hr_card){.vram_bytes = UINT64_C(8) << 30};
    if (strncmp(name, own, sizeof own - 1) == 0) {
        return HR_OK;
    }
    return HR_FAIL(err, PRESET, "no card is called '%s'", name);
}

hr_status hr_device_limit_bytes(const hr_knobs *knobs, const hr_card *card, uint64_t *limit_bytes,
                                hr_err *err)
{
    (void)card;
    (void)err;
    *limit_bytes = hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, UINT64_C(1) << 30);
    return HR_OK;
}

const char *hr_card_of(const hr_knobs *knobs)
{
    return hr_knob_text(knobs, HR_KNOB_DEVICE_CARD);
}

bool hr_limit_is_none(uint64_t limit_bytes)
{
    return limit_bytes >= HR_UNLIMITED_BYTES;
}

hr_status hr_recipe_find(const char *word, char path[HR_RECIPE_PATH_MAX], hr_err *err)
{
    if (strcmp(word, "missing") == 0) {
        return HR_FAIL(err, USAGE, "there is no recipe '%s'", word);
    }
    (void)snprintf(path, HR_RECIPE_PATH_MAX, "recipes/%s.lua", word);
    return HR_OK;
}

bool hr_recipe_list(void (*see)(const char *name, void *context), void *context)
{
    see("largest_batch", context);
    see("find_rate", context);
    return true;
}
