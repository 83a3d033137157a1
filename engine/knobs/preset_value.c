// SPDX-License-Identifier: Apache-2.0
#include "knobs/preset_value.h"

#include <stdio.h>
#include <string.h>

#include "headroom/card.h"

#include "base/text.h"
#include "knobs/preset_keys.h"
#include "knobs/search.h"

// A card's words begin with a name or a path; what differs from that card may follow behind commas.
static bool is_card_path(const char *words)
{
    char base[HR_KNOB_TEXT_MAX];
    (void)snprintf(base, sizeof base, "%.*s", (int)strcspn(words, ","), words);
    return search_is_path(base);
}

// A teacher is found as what `extends` names: beside the file, and by name otherwise.
static const char *teacher_text(const preset_place *here, const char *words, char path[SEARCH_PATH_MAX])
{
    char folder[SEARCH_PATH_MAX];
    search_folder_of(here->path, folder);
    const bool found = search_is_preset_path(words)
                           ? search_join(folder, words, path)
                           : strcmp(words, "none") != 0 && strcmp(words, "self") != 0 &&
                                 search_in_root(folder, search_preset_folders, words, path) &&
                                 search_lies_below(path, folder);
    return found ? path : words;
}

// A relative path of data or of a cache, or file of a card, counts from the file it stands in.
static const char *value_text(const preset_place *here, const hr_knob_row *row, const char *words,
                              char path[SEARCH_PATH_MAX])
{
    char folder[SEARCH_PATH_MAX];
    const bool is_path = row->id == HR_KNOB_PIPELINE_PATH || row->id == HR_KNOB_PIPELINE_CACHE_PATH ||
                         (row->id == HR_KNOB_DEVICE_CARD && is_card_path(words));
    if (row->id == HR_KNOB_COMPRESS_DISTILL) {
        return teacher_text(here, words, path);
    }
    if (!is_path || words[0] == '\0') {
        return words;
    }
    search_folder_of(here->path, folder);
    return search_join(folder, words, path) ? path : words;
}

// `card: {like: a100-80g, vram: 40GiB}` as the words "a100-80g,vram=40GiB". False, with the problem reported.
static bool card_text(const preset_place *here, const yaml_node *node, char words[HR_KNOB_TEXT_MAX])
{
    const yaml_node *like = yaml_find(node, "like");
    if (like == NULL || like->kind != YAML_SCALAR) {
        yaml_problem(here->file, node->line, node->column,
                     "device.card: needs 'like: NAME' of a card, and beside it what differs");
        return false;
    }
    size_t length = (size_t)snprintf(words, HR_KNOB_TEXT_MAX, "%s", like->text);
    for (const yaml_node *child = node->child; child != NULL; child = child->next) {
        if (child == like) {
            continue;
        }
        if (child->kind != YAML_SCALAR || strpbrk(child->text, ",=") != NULL) {
            yaml_problem(here->file, child->line, child->column, "device.card: %s needs one value",
                         child->key);
            return false;
        }
        if (length < HR_KNOB_TEXT_MAX) {
            length += (size_t)snprintf(words + length, HR_KNOB_TEXT_MAX - length, ",%s=%s", child->key,
                                       child->text);
        }
    }
    if (length >= HR_KNOB_TEXT_MAX) {
        yaml_problem(
            here->file, node->line, node->column,
            "device.card: what differs is longer than %d bytes; write a file, and 'card: ./FILE.yaml'",
            HR_KNOB_TEXT_MAX - 1);
    }
    return length < HR_KNOB_TEXT_MAX;
}

static hr_status check_card(const preset_values *to, const preset_place *here, const hr_knob_row *row,
                            const yaml_node *node, hr_err *err)
{
    hr_card card;
    hr_err reason = {0};
    const char *words = row->id == HR_KNOB_DEVICE_CARD ? hr_knob_text(to->knobs, row->id) : "";
    if (words[0] == '\0') {
        return HR_OK;
    }
    hr_status status = hr_card_load(words, &card, &reason);
    if (status == HR_NOMEM) {
        return HR_FAIL(err, NOMEM, "%s", reason.sentence);
    }
    if (status != HR_OK) {
        yaml_problem(here->file, node->line, node->column, "%s", reason.sentence);
    }
    return HR_OK;
}

// An untrusted preset must not choose where on this machine something is written, or whose save, card or preset is read.
static bool needs_trust(const hr_knob_row *row, const char *words)
{
    const bool is_card = row->id == HR_KNOB_DEVICE_CARD && is_card_path(words);
    return (is_card || row->id == HR_KNOB_TRAIN_SAVE || row->id == HR_KNOB_TRAIN_RESUME ||
            row->id == HR_KNOB_PIPELINE_CACHE_PATH || row->id == HR_KNOB_COMPRESS_DISTILL ||
            row->id == HR_KNOB_COMPRESS_DISTILL_WEIGHTS) &&
           search_leaves_folder(words);
}

static bool leaves_by_link(const preset_place *here, const hr_knob_row *row, const char *words)
{
    char folder[SEARCH_PATH_MAX], path[SEARCH_PATH_MAX];
    search_folder_of(here->path, folder);
    if (row->id == HR_KNOB_COMPRESS_DISTILL) {
        return search_is_preset_path(words) && !search_lies_below(words, folder);
    }
    if (row->id != HR_KNOB_DEVICE_CARD || !is_card_path(words)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(words, ","), words);
    return !search_lies_below(path, folder);
}

hr_status preset_take_value(const preset_values *to, const preset_place *here, const hr_knob_row *row,
                            const yaml_node *node, hr_err *err)
{
    char path[SEARCH_PATH_MAX], card[HR_KNOB_TEXT_MAX];
    const char *words = node->text;
    hr_err reason = {0};
    const bool in_place = row->id == HR_KNOB_DEVICE_CARD && node->kind == YAML_MAPPING;
    const char *problem = in_place                    ? NULL
                          : node->kind != YAML_SCALAR ? "needs one value, had a list or a mapping"
                          : !node->quoted && node->text[0] == '\0' ? "has no value"
                          : node->quoted && preset_is_number(row)
                              ? "a quoted value is text: take the quotes away"
                              : NULL;
    if (problem != NULL) {
        yaml_problem(here->file, node->line, node->column, "%s: %s", row->key, problem);
        return HR_OK;
    }
    if (in_place && !card_text(here, node, card)) {
        return HR_OK;
    }
    words = in_place ? card : words;
    if (needs_trust(row, words) && !to->trust) {
        yaml_problem(here->file, node->line, node->column, "%s '%s' leaves this folder: needs --trust",
                     row->key, words);
        return HR_OK;
    }
    words = value_text(here, row, words, path);
    if (leaves_by_link(here, row, words) && !to->trust) {
        yaml_problem(here->file, node->line, node->column,
                     "%s: '%s' is a link that leaves the folder of this file: needs --trust", row->key,
                     words);
        return HR_OK;
    }
    if (hr_knobs_set(to->knobs, row->id, words, &reason) != HR_OK) {
        yaml_problem(here->file, node->line, node->column, "%s", reason.sentence);
        return HR_OK;
    }
    hr_origin *origin = &to->origin[row->id];
    text_copy(origin->file, sizeof origin->file, here->path);
    // What another program's file became has lines that nobody has seen.
    const bool seen = strcmp(yaml_name(here->file), here->path) == 0;
    origin->line = seen ? node->line : 0;
    origin->column = seen ? node->column : 0;
    return check_card(to, here, row, node, err);
}
