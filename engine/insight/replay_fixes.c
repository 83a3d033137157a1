// SPDX-License-Identifier: Apache-2.0
// What would serve a trace that is not served: other settings, other cards. Each is proved by a replay.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "insight/replay_plan.h"

// ---- one setting ----------------------------------------------------------------------------------------------

hr_status replay_try(hr_replay *replay, const hr_knobs *knobs, const char *pair,
                     const hr_replay_options *options, hr_replay_fix *fix, bool *serves, hr_err *err)
{
    hr_knobs turned = *knobs;
    hr_replay_result result;
    hr_replay_options own = options == NULL ? (hr_replay_options){0} : *options;
    own.only_whether = true;
    *serves = false;
    HR_TRY(hr_knobs_set_pair(&turned, pair, err));
    const hr_status status = hr_replay_run(replay, &turned, &own, &result, err);
    if (status != HR_OK) {
        return status == HR_CONSTRAINT ? HR_OK : status;
    }
    fix->memory = result.memory;
    (void)text_copy(fix->pair, sizeof fix->pair, pair);
    *serves = result.failures_total == 0;
    hr_replay_result_deinit(&result);
    return HR_OK;
}

// ---- allocators -----------------------------------------------------------------------------------------------

const allocator_setting allocator_settings[] = {
    {HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, "on", "allocator.expandable_segments=on"},
    {HR_KNOB_ALLOCATOR_GARBAGE_COLLECTION, "on", "allocator.garbage_collection=on"},
    {HR_KNOB_ALLOCATOR_GROWTH, "off", "allocator.growth=off"},
    {HR_KNOB_ALLOCATOR_MAX_SPLIT, "32MiB", "allocator.max_split=32MiB"},
    {HR_KNOB_ALLOCATOR_KIND, "async", "allocator.kind=async"},
    {HR_KNOB_ALLOCATOR_KIND, "bfc", "allocator.kind=bfc"},
};

// So it is played already; a scenario's own setting stands until the knob is set.
static bool is_played(const hr_replay *replay, const hr_knobs *knobs, const allocator_setting *r)
{
    const hr_scenario *s = replay->about.scenario;
    const char *key = hr_knob_rows(NULL)[r->id].key;
    const bool own = s != NULL && s->setting != NULL && strncmp(s->setting, key, strlen(key)) == 0 &&
                     !hr_knob_is_set(knobs, r->id);
    return hr_knob_is(knobs, r->id, r->value) && !own;
}

hr_status hr_replay_remedies(hr_replay *replay, const hr_knobs *knobs, const hr_replay_options *options,
                             hr_replay_fix *fixes, uint32_t max, uint32_t *count, hr_err *err)
{
    const char *kind = hr_knob_text(knobs, HR_KNOB_ALLOCATOR_KIND);
    *count = 0;
    for (int k = 0; k < ALLOCATOR_SETTINGS && *count < max; k++) {
        const allocator_setting *r = &allocator_settings[k];
        bool serves = false;
        if (is_played(replay, knobs, r) || !hr_replay_knob_concerns(r->id, kind)) {
            continue;
        }
        HR_TRY(replay_try(replay, knobs, r->pair, options, &fixes[*count], &serves, err));
        *count += serves;
    }
    return HR_OK;
}

// ---- cards ----------------------------------------------------------------------------------------------------

typedef struct card_size {
    char name[sizeof((hr_preset_entry *)NULL)->name];
    uint64_t bytes;
} card_size;

static int by_size(const void *left, const void *right)
{
    const card_size *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? -1 : 1) : strcmp(a->name, b->name);
}

// Those that have at least so much, the smallest first. One of the user's own that cannot be read hides no other.
static hr_status list_cards(uint64_t least_bytes, card_size **out, size_t *count, hr_err *err)
{
    hr_preset_entry *entries = NULL;
    size_t entry_count = 0;
    *count = 0;
    HR_TRY(hr_preset_list("cards", &entries, &entry_count, err));
    *out = hr_calloc(entry_count + 1, sizeof **out);
    for (size_t k = 0; *out != NULL && k < entry_count; k++) {
        hr_card card;
        if (hr_card_load(entries[k].name, &card, NULL) == HR_OK && card.vram_bytes >= least_bytes &&
            !hr_limit_is_none(card.vram_bytes)) {
            (*out)[*count].bytes = card.vram_bytes;
            (void)text_copy((*out)[(*count)++].name, sizeof(*out)->name, entries[k].name);
        }
    }
    hr_preset_list_free(entries);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %zu cards", entry_count);
    }
    qsort(*out, *count, sizeof **out, by_size);
    return HR_OK;
}

hr_status hr_replay_smallest_card(hr_replay *replay, const hr_knobs *knobs, const hr_replay_options *options,
                                  hr_replay_fix *fix, bool *serves, hr_err *err)
{
    hr_knobs on_card = *knobs;
    card_size *cards = NULL;
    size_t count = 0;
    *serves = false;
    HR_TRY(hr_knobs_set(&on_card, HR_KNOB_DEVICE_VRAM, "", err));
    HR_TRY(list_cards(replay->about.peak_requested_bytes, &cards, &count, err));
    hr_status status = HR_OK;
    for (size_t k = 0; k < count && !*serves && status == HR_OK; k++) {
        char pair[HR_KNOB_TEXT_MAX];
        (void)snprintf(pair, sizeof pair, "device.card=%s", cards[k].name);
        status = replay_try(replay, &on_card, pair, options, fix, serves, err);
    }
    hr_free(cards);
    return status;
}
