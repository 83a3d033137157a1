// SPDX-License-Identifier: Apache-2.0
#include "train/keep_card.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "base/file.h"
#include "base/text.h"
#include "knobs/card_table.h"

enum { NAME_MAX_BYTES = 40, LEAF_MAX = 64, TEXT_MAX = 512 };

static const card_row *row_of(const char *title)
{
    size_t count = 0;
    const card_row *rows = card_rows(&count);
    for (size_t k = 0; k < count; k++) {
        if (strcmp(rows[k].title, title) == 0) {
            return &rows[k];
        }
    }
    return NULL;
}

// Of its generation or the nearest before it, and then by multiprocessors.
static const card_row *most_alike(const device_facts *f)
{
    size_t count = 0;
    const card_row *rows = card_rows(&count), *best = &rows[0];
    const uint32_t capability = f->compute_major * 10 + f->compute_minor;
    for (size_t k = 1; k < count; k++) {
        const uint32_t a = rows[k].capability, b = best->capability;
        const uint32_t far = rows[k].multiprocessors > f->multiprocessors
                                 ? rows[k].multiprocessors - f->multiprocessors
                                 : f->multiprocessors - rows[k].multiprocessors,
                       best_far = best->multiprocessors > f->multiprocessors
                                      ? best->multiprocessors - f->multiprocessors
                                      : f->multiprocessors - best->multiprocessors;
        if (a <= capability && (b > capability || a > b || (a == b && far < best_far))) {
            best = &rows[k];
        }
    }
    return best;
}

static hr_status write_new(const char *name, const char *ending, const char *words, hr_err *err)
{
    char leaf[LEAF_MAX], path[HR_CARD_PATH_MAX];
    file_writer *w = NULL;
    (void)snprintf(leaf, sizeof leaf, "presets/cards/%s.%s", name, ending);
    if (!hr_file_xdg("XDG_DATA_HOME", ".local/share", leaf, path, sizeof path)) {
        return HR_FAIL(err, WRITE, "there is no data folder: HOME is not set");
    }
    if (access(path, F_OK) == 0) {
        return HR_OK; // the user's
    }
    (void)hr_file_make_folders(path);
    HR_TRY(file_writer_open(path, &w, err));
    const hr_status status = file_writer_add(w, words, strlen(words), err);
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}

static hr_status write_card(const char *name, const device_facts *f, hr_err *err)
{
    char words[TEXT_MAX], title[sizeof f->title], vram[HR_BYTES_TEXT_MAX];
    (void)text_copy(title, sizeof title, f->title);
    for (char *at = title; *at != '\0'; at++) {
        *at = *at == '"' || *at == '\\' || iscntrl((unsigned char)*at) != 0 ? ' ' : *at;
    }
    (void)snprintf(
        words, sizeof words,
        "# Read off the card. Its rates were not measured: they are those of the card that is named.\n"
        "like: %s\ntitle: \"%s\"\nvram: %s\nmultiprocessors: %" PRIu32 "\ncompute_capability: %" PRIu32
        ".%" PRIu32 "\n",
        most_alike(f)->name, title, hr_bytes_exact(f->vram_bytes / HR_MIB * HR_MIB, vram), f->multiprocessors,
        f->compute_major, f->compute_minor);
    return write_new(name, "yaml", words, err);
}

void keep_card(const device_facts *f, char *remark, size_t size)
{
    const card_row *row = row_of(f->title);
    char name[NAME_MAX_BYTES];
    hr_card known;
    hr_err err;
    remark[0] = '\0';
    text_slug(f->title, name, sizeof name);
    if (row != NULL) {
        (void)text_copy(name, sizeof name, row->name);
    }
    if (name[0] == '\0' || (hr_card_load(name, &known, NULL) == HR_OK && known.properties_path[0] != '\0')) {
        return;
    }
    hr_status status = row == NULL ? write_card(name, f, &err) : HR_OK;
    if (status == HR_OK) {
        status = write_new(name, "json", f->properties, &err);
    }
    if (status == HR_OK) {
        (void)snprintf(remark, size, "its properties are kept: plans without it with -s device.card=%s",
                       name);
    } else {
        (void)snprintf(remark, size, "its properties are not kept: %.120s", err.sentence);
    }
}
