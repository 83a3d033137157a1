// SPDX-License-Identifier: Apache-2.0
// What a replay has to say, as the report of a plan.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "events/heap_room.h"
#include "insight/diagnose.h"
#include "insight/replay_plan.h"

static const char unnamed[] = "a block without a name";

// ---- the peak -------------------------------------------------------------------------------------------------

static int by_bytes(const void *left, const void *right)
{
    const hr_report_tensor *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : strcmp(a->name, b->name);
}

static const char *name_in(const heap_snapshot *p, uint32_t tensor)
{
    const char *name = intern_text(&p->names, tensor);
    return name == NULL || name[0] == '\0' ? unnamed : name;
}

// The newest block of that heap is the one with which the peak was reached.
static hr_status fill_peak(const hr_heap *heap, hr_report_memory *m, hr_err *err)
{
    uint64_t newest = 0;
    m->at_peak.instruction = HR_NO_ID;
    m->at_peak.phase = HR_PHASE_COUNT;
    m->at_peak.less_limit_bytes = HR_NONE;
    if (heap == NULL) {
        return HR_OK;
    }
    const heap_snapshot *p = &heap->snapshot;
    m->at_peak.tensors = hr_calloc(p->chunks.count + 1, sizeof *m->at_peak.tensors);
    if (m->at_peak.tensors == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a table of %u blocks", p->chunks.count);
    }
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        if (!c->in_use || c->pending) {
            continue;
        }
        hr_report_tensor *row = &m->at_peak.tensors[m->at_peak.tensor_count++];
        row->category = HR_CATEGORY_COUNT;
        row->bytes = c->requested_bytes;
        (void)text_copy(row->name, sizeof row->name, name_in(p, c->tensor));
        if (c->allocation_id > newest) {
            newest = c->allocation_id;
            (void)text_copy(m->at_peak.name, sizeof m->at_peak.name, row->name);
        }
    }
    qsort(m->at_peak.tensors, m->at_peak.tensor_count, sizeof *m->at_peak.tensors, by_bytes);
    return HR_OK;
}

static hr_status fill_memory(const hr_replay_result *result, hr_report_memory *m, hr_err *err)
{
    const hr_replay_memory *from = &result->memory;
    *m = (hr_report_memory){.limit_bytes = from->limit_bytes,
                            .peak_pool_bytes = from->peak_pool_bytes,
                            .peak_in_use_bytes = from->peak_in_use_bytes,
                            .peak_requested_bytes = from->peak_requested_bytes,
                            .waste_bytes = from->waste_bytes,
                            .saved_for_backward_bytes = HR_NONE,
                            .library_saved_bytes = HR_NONE,
                            .static_bytes = HR_NONE,
                            .largest_free_bytes = from->largest_free_bytes,
                            .fragmentation = from->fragmentation};
    return fill_peak(result->peak_heap, m, err);
}

// ---- what would serve it --------------------------------------------------------------------------------------

typedef struct search {
    hr_replay *replay;
    const hr_knobs *knobs;
    hr_report_oom *oom;
} search;

// True: it serves the whole trace, and is a fix now.
static hr_status try_pair(const search *s, const char *pair, bool *serves, hr_err *err)
{
    hr_knobs turned = *s->knobs;
    hr_replay_result result;
    *serves = false;
    HR_TRY(hr_knobs_set_pair(&turned, pair, err));
    HR_TRY(hr_replay_run(s->replay, &turned, NULL, &result, err));
    const hr_replay_memory m = result.memory;
    hr_replay_result_deinit(&result);
    *serves = m.failures == 0;
    if (*serves) {
        hr_report_fix *fix = &s->oom->fixes[s->oom->fix_count++];
        *fix = (hr_report_fix){.peak_bytes = m.peak_in_use_bytes,
                               .limit_bytes = m.limit_bytes,
                               .host_bytes = HR_NONE,
                               .seconds = (double)NAN};
        (void)text_copy(fix->knobs, sizeof fix->knobs, pair);
    }
    return HR_OK;
}

// What a training can be started with: of this allocator, or another one.
static hr_status try_allocators(const search *s, uint32_t most, hr_err *err)
{
    static const char *const pairs[] = {"allocator.expandable_segments=on", "allocator.kind=async"};
    const char *kind = hr_knob_text(s->knobs, HR_KNOB_ALLOCATOR_KIND);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs && s->oom->fix_count < most; k++) {
        const char *value = strchr(pairs[k], '=') + 1;
        const bool is_kind = strncmp(pairs[k], "allocator.kind=", strlen("allocator.kind=")) == 0;
        bool serves = false;
        if (is_kind ? strcmp(kind, value) != 0
                    : hr_replay_knob_concerns(HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, kind) &&
                          !hr_knob_is(s->knobs, HR_KNOB_ALLOCATOR_EXPANDABLE_SEGMENTS, value)) {
            HR_TRY(try_pair(s, pairs[k], &serves, err));
        }
    }
    return HR_OK;
}

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

// The smallest card that serves it.
static hr_status try_cards(const search *s, hr_err *err)
{
    card_size *cards = NULL;
    size_t count = 0;
    bool serves = false;
    HR_TRY(list_cards(s->replay->about.peak_requested_bytes, &cards, &count, err));
    hr_status status = HR_OK;
    for (size_t k = 0; k < count && !serves && status == HR_OK; k++) {
        char pair[HR_KNOB_TEXT_MAX];
        (void)snprintf(pair, sizeof pair, "device.card=%s", cards[k].name);
        status = try_pair(s, pair, &serves, err);
    }
    hr_free(cards);
    return status;
}

// A stated size goes before every card: then that is what has to be more.
static hr_status try_more(const search *s, uint64_t fits_bytes, hr_err *err)
{
    char pair[HR_KNOB_TEXT_MAX], size[HR_BYTES_TEXT_MAX];
    bool serves = false;
    if (!hr_knob_is_set(s->knobs, HR_KNOB_DEVICE_VRAM)) {
        return try_cards(s, err);
    }
    if (fits_bytes == 0) {
        return HR_OK;
    }
    (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(fits_bytes, size));
    return try_pair(s, pair, &serves, err);
}

_Static_assert((int)HR_HOLES_MAX == (int)HEAP_ROOM_HOLES, "holes are copied");

// ---- the verdict ----------------------------------------------------------------------------------------------

static const hr_replay_failure *failure_of(const hr_replay *replay, const hr_replay_result *result)
{
    for (uint32_t k = 0; k < result->failure_count; k++) {
        if (result->failures[k].device == replay->about.device) {
            return &result->failures[k];
        }
    }
    return NULL;
}

static void take_failure(const hr_replay_failure *f, hr_report_oom *oom)
{
    *oom = (hr_report_oom){.instruction = HR_NO_ID,
                           .requested_bytes = f->requested_bytes,
                           .free_bytes = f->free_bytes,
                           .largest_free_bytes = f->largest_free_bytes,
                           .in_use_bytes = f->in_use_bytes,
                           .pool_bytes = f->pool_bytes,
                           .limit_bytes = f->limit_bytes};
    (void)text_copy(oom->tensor, sizeof oom->tensor, f->name[0] == '\0' ? unnamed : f->name);
    (void)text_copy(oom->instruction_name, sizeof oom->instruction_name, oom->tensor);
}

static void say_hint(hr_report_oom *oom)
{
    if (oom->fix_count > 0) {
        (void)snprintf(oom->hint, sizeof oom->hint, "-s %s", oom->fixes[0].knobs);
    }
}

static hr_status fill_oom(hr_replay *replay, const hr_knobs *knobs, const hr_replay_result *result,
                          hr_report_oom *oom, hr_err *err)
{
    const hr_replay_failure *f = failure_of(replay, result);
    const search s = {replay, knobs, oom};
    uint64_t fits_bytes = 0;
    if (f == NULL) {
        return HR_OK;
    }
    take_failure(f, oom);
    HR_TRY(replay_smallest_limit(replay, knobs, f->limit_bytes, &fits_bytes, err));
    heap_room room = {0};
    if (result->failure_heap != NULL) {
        room = heap_room_of(&result->failure_heap->snapshot, NULL, NULL);
        oom->hole_count = room.hole_count;
        memcpy(oom->hole_bytes, room.holes, sizeof oom->hole_bytes);
    }
    const step_needs needs = {.asked_bytes = replay->about.peak_requested_bytes,
                              .limit_bytes = fits_bytes,
                              .waste_bytes = room.waste_bytes};
    diagnose_oom(&needs, &room, NULL, oom);
    HR_TRY(try_allocators(&s, HR_FIXES_MAX - 1, err));
    HR_TRY(try_more(&s, fits_bytes, err));
    say_hint(oom);
    return HR_OK;
}

hr_status replay_report(hr_replay *replay, const hr_knobs *knobs, const char *name, hr_report *out,
                        hr_err *err)
{
    const hr_replay_options options = {.wants_peak_heap = true};
    hr_replay_result result;
    *out =
        (hr_report){.device.simulated = true,
                    .evaluation.peak_in_use_bytes = HR_NONE,
                    .driver = {HR_NONE, HR_NONE, HR_NONE},
                    .plan = {.seconds_median = (double)NAN, .seconds_max = (double)NAN},
                    .host = {.input_seconds = (double)NAN, .stall = (double)NAN},
                    .step = {.seconds = (double)NAN, .seconds_low = (double)NAN, .seconds_high = (double)NAN},
                    .train = {.skipped_steps = HR_NONE,
                              .loss_scale = (double)NAN,
                              .examples_per_second = (double)NAN,
                              .loss_first = (double)NAN,
                              .loss_last = (double)NAN,
                              .eval_accuracy = (double)NAN}};
    (void)text_copy(out->preset, sizeof out->preset, name);
    (void)text_copy(out->device.kind, sizeof out->device.kind, hr_knob_text(knobs, HR_KNOB_DEVICE_KIND));
    (void)text_copy(out->device.card, sizeof out->device.card, hr_knob_text(knobs, HR_KNOB_DEVICE_CARD));
    HR_TRY(hr_replay_run(replay, knobs, &options, &result, err));
    hr_status status = fill_memory(&result, &out->memory, err);
    status = status == HR_OK ? fill_oom(replay, knobs, &result, &out->oom, err) : status;
    hr_replay_result_deinit(&result);
    if (status != HR_OK) {
        hr_report_deinit(out);
    }
    return status;
}
