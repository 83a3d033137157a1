// SPDX-License-Identifier: Apache-2.0
// Cards by name, and the limit that TensorFlow would give its allocator on one.
#include "headroom/card.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/machine.h"
#include "base/text.h"
#include "knobs/card_read.h"
#include "knobs/card_table.h"
#include "knobs/logical.h"
#include "knobs/search.h"
#include "knobs/torch_settings.h"

// ---- by name ----------------------------------------------------------------------------------------------

static hr_status refuse_name(const char *name, hr_err *err)
{
    char known[128], near[64];
    HR_TRY(search_known("cards", name, known, sizeof known, near, err));
    hr_status status = HR_FAIL(err, PRESET, "no card is called '%.64s'; there are %s", name, known);
    hr_err_try(err, near[0] == '\0' ? "headroom cards" : "-s device.card=%s", near);
    return status;
}

// A link beside a card's file must not say what a file elsewhere holds (its parser quotes it); beside a card that is itself
// a link it may lie where that lies.
static bool is_beside(const char *found, const char *path)
{
    char real[PATH_MAX], folder[SEARCH_PATH_MAX];
    search_folder_of(path, folder);
    if (search_lies_below(found, folder)) {
        return true;
    }
    if (realpath(path, real) == NULL) {
        return false;
    }
    search_folder_of(real, folder);
    return search_lies_below(found, folder);
}

// NAME.json beside the card's own file, or in a folder of cards.
static void find_properties(const char *name, const char *path, hr_card *card)
{
    char found[SEARCH_PATH_MAX];
    const char *dot = strrchr(path, '.');
    if (path[0] == '\0') {
        (void)search_card_properties(name, found);
    } else {
        (void)snprintf(found, sizeof found, "%.*s.json",
                       (int)(dot == NULL ? strlen(path) : (size_t)(dot - path)), path);
    }
    const bool may_read = access(found, R_OK) == 0 && (path[0] == '\0' || is_beside(found, path));
    if (!may_read || !text_copy(card->properties_path, sizeof card->properties_path, found)) {
        card->properties_path[0] = '\0';
    }
}

static void name_after(const char *base, hr_card *card)
{
    const char *slash = strrchr(base, '/');
    const char *leaf = slash == NULL ? base : slash + 1;
    const size_t length = strlen(leaf), ending = sizeof ".yaml" - 1;
    const bool has_ending = length > ending && strcmp(leaf + length - ending, ".yaml") == 0;
    (void)snprintf(card->name, sizeof card->name, "%.*s", (int)(has_ending ? length - ending : length), leaf);
}

// A path, a file of one's own in a folder of cards, or a row of the table.
static hr_status load_base(const char *base, hr_card *card, hr_err *err)
{
    char path[SEARCH_PATH_MAX] = "";
    if (search_is_path(base)) {
        if (!text_copy(path, sizeof path, base)) {
            return HR_FAIL(err, READ, "%.64s…: the path is too long", base);
        }
    } else if (!search_by_name(search_card_folders, base, path) && !card_of_table(base, card)) {
        return refuse_name(base, err);
    }
    if (path[0] != '\0') {
        HR_TRY(card_read_file(path, card, err));
        name_after(base, card);
    }
    find_properties(base, path, card);
    return HR_OK;
}

hr_status hr_card_load(const char *name, hr_card *card, hr_err *err)
{
    char base[HR_KNOB_TEXT_MAX];
    const size_t length = strcspn(name, ",");
    hr_card read = {0};
    *card = read;
    (void)snprintf(base, sizeof base, "%.*s", (int)length, name);
    HR_TRY(load_base(base, &read, err));
    if (name[length] == ',') {
        HR_TRY(card_change(&read, name, err));
    }
    *card = read;
    return HR_OK;
}

const char *hr_card_of(const hr_knobs *knobs)
{
    const char *card = hr_knob_text(knobs, HR_KNOB_DEVICE_CARD);
    const bool nothing_said = card[0] == '\0' && !hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM);
    return nothing_said && hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "plan") ? HR_CARD_UNLIMITED : card;
}

bool hr_limit_is_none(uint64_t limit_bytes)
{
    return limit_bytes >= HR_UNLIMITED_BYTES;
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

// The card's text takes what differs behind it, also behind what differs already.
static hr_status refuse_vram(const hr_knobs *knobs, const hr_card *card, uint64_t vram_bytes, hr_err *err)
{
    char wanted[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
    hr_status status = HR_FAIL(err, CONSTRAINT, "device.vram: card %s has %s, wanted %s", card->name,
                               hr_bytes_exact(card->vram_bytes, had), hr_bytes_exact(vram_bytes, wanted));
    hr_err_try(err, "-s device.vram=%s; or such a card with more: -s device.card=%s,vram=%s", had,
               hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD) ? hr_knob_text(knobs, HR_KNOB_DEVICE_CARD)
                                                          : card->name,
               wanted);
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

static bool computes_here(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "cpu") ||
           hr_knob_is(knobs, HR_KNOB_DEVICE_KIND, "reference");
}

// Without a stated size: what this machine can give to a device that computes on it, without end to a plan.
static hr_status limit_of_nobody(const hr_knobs *knobs, uint64_t *limit_bytes, hr_err *err)
{
    *limit_bytes = computes_here(knobs) ? machine_share_bytes() : HR_UNLIMITED_BYTES;
    if (torch_settings_fraction(knobs) == 0) {
        return HR_OK;
    }
    hr_status status = HR_FAIL(
        err, CONSTRAINT, "allocator.fraction is a share of a card's memory: needed a card that has an end");
    hr_err_try(err, "-s device.card=rtx3070-8g");
    return status;
}

// The limit of an undivided device, and what logical devices may take together.
static hr_status whole_device(const hr_knobs *knobs, const hr_card *card, uint64_t *limit_bytes,
                              uint64_t *room_bytes, hr_err *err)
{
    if (hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM)) {
        *limit_bytes = *room_bytes = hr_knob_bytes(knobs, HR_KNOB_DEVICE_VRAM, 0);
        return card != NULL && *limit_bytes > card->vram_bytes ? refuse_vram(knobs, card, *limit_bytes, err)
                                                               : HR_OK;
    }
    if (card == NULL || hr_limit_is_none(card->vram_bytes)) {
        HR_TRY(limit_of_nobody(knobs, limit_bytes, err));
        *room_bytes = *limit_bytes;
        return HR_OK;
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
