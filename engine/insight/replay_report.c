// SPDX-License-Identifier: Apache-2.0
// What a replay has to say, as the report of a plan.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "events/heap_room.h"
#include "insight/diagnose.h"
#include "insight/diagnose_heap.h"
#include "insight/fit_change.h"
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

static void add_fix(hr_report_oom *oom, const hr_replay_fix *from)
{
    hr_report_fix *fix = &oom->fixes[oom->fix_count++];
    *fix = (hr_report_fix){.peak_bytes = from->memory.peak_in_use_bytes,
                           .limit_bytes = from->memory.limit_bytes,
                           .host_bytes = HR_NONE,
                           .seconds = (double)NAN};
    (void)text_copy(fix->knobs, sizeof fix->knobs, from->pair);
}

// A stated size goes before every card: then that is what has to be more.
static hr_status try_more(hr_replay *replay, const hr_knobs *knobs, uint64_t fits_bytes, hr_replay_fix *fix,
                          bool *serves, hr_err *err)
{
    char pair[HR_KNOB_TEXT_MAX], size[HR_BYTES_TEXT_MAX];
    if (!hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM)) {
        return hr_replay_smallest_card(replay, knobs, NULL, fix, serves, err);
    }
    *serves = false;
    if (fits_bytes == 0) {
        return HR_OK;
    }
    (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(fits_bytes, size));
    return replay_try(replay, knobs, pair, NULL, fix, serves, err);
}

// Where only time was lost, what loses none.
static hr_status add_if_it_helps(const hr_replay *replay, const hr_knobs *knobs, const hr_replay_fix *fix,
                                 hr_report_oom *oom, hr_err *err)
{
    oom_evidence shown = {0};
    hr_knobs turned = *knobs;
    if (oom->cause == HR_OOM_RETRIES) {
        HR_TRY(hr_knobs_set_pair(&turned, fix->pair, err));
        HR_TRY(replay_retries(replay, &turned, &shown, err));
    }
    if (shown.retries == 0 && oom->fix_count < HR_FIXES_MAX) {
        add_fix(oom, fix);
    }
    return HR_OK;
}

static void say_hint(const hr_knobs *knobs, hr_report_oom *oom)
{
    fit_rank_fixes(knobs, false, (double)NAN, oom); // of a record no batch can be split
    if (oom->fix_count > 0) {
        (void)snprintf(oom->hint, sizeof oom->hint, "-s %s", oom->fixes[0].knobs);
    }
}

// A leak runs out under every other setting too, only later.
hr_status replay_find_fixes(hr_replay *replay, const hr_knobs *knobs, uint64_t fits_bytes, hr_report_oom *oom,
                            hr_err *err)
{
    enum { TRIED = HR_FIXES_MAX + 2 };
    hr_replay_fix fixes[TRIED + 1];
    uint32_t count = 0;
    bool serves = false;
    const bool only_costs_time = oom->cause == HR_OOM_RETRIES;
    const bool asks_for_more = replay->about.peak_requested_bytes > oom->limit_bytes; // then no setting helps
    oom->fix_count = 0;
    if (oom->cause == HR_OOM_LEAK) {
        return HR_OK;
    }
    if (only_costs_time || !asks_for_more) {
        const uint32_t most = only_costs_time ? TRIED : HR_FIXES_MAX - 1;
        HR_TRY(hr_replay_remedies(replay, knobs, NULL, fixes, most, &count, err));
    }
    for (uint32_t k = 0; k < count && oom->fix_count < HR_FIXES_MAX - 1; k++) {
        HR_TRY(add_if_it_helps(replay, knobs, &fixes[k], oom, err));
    }
    if (fits_bytes == HR_NONE && hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM)) {
        HR_TRY(replay_smallest_limit(replay, knobs, oom->limit_bytes, &fits_bytes, err));
    }
    HR_TRY(try_more(replay, knobs, fits_bytes, &fixes[0], &serves, err));
    if (serves) {
        HR_TRY(add_if_it_helps(replay, knobs, &fixes[0], oom, err));
    }
    say_hint(knobs, oom);
    return HR_OK;
}

_Static_assert((int)HR_HOLES_MAX == (int)HEAP_ROOM_HOLES, "holes are copied");

// ---- the verdict ----------------------------------------------------------------------------------------------

static void take_failure(const hr_replay_failure *f, hr_report_oom *oom)
{
    *oom = (hr_report_oom){.instruction = HR_NO_ID,
                           .requested_bytes = f->requested_bytes,
                           .free_bytes = f->free_bytes,
                           .largest_free_bytes = f->largest_free_bytes,
                           .in_use_bytes = f->in_use_bytes,
                           .pool_bytes = f->pool_bytes,
                           .limit_bytes = f->limit_bytes,
                           .needed_bytes = HR_NONE};
    (void)text_copy(oom->tensor, sizeof oom->tensor, f->name[0] == '\0' ? unnamed : f->name);
    (void)text_copy(oom->instruction_name, sizeof oom->instruction_name, oom->tensor);
}

// Where there are several, screens show but one of them.
static void name_device(const hr_replay_about *about, uint32_t device, hr_report_oom *oom)
{
    char words[sizeof oom->sentence];
    if (about->device_count > 1) {
        (void)text_copy(words, sizeof words, oom->sentence);
        (void)snprintf(oom->sentence, sizeof oom->sentence, "device %u: %.*s", device,
                       (int)sizeof oom->sentence - 32, words);
    }
}

// The event that a row of the file has become; 0 where it stood before.
static uint32_t event_of_row(const trace *t, uint32_t device, uint64_t row)
{
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->row == row && e->device == device && (e->kind == TRACE_ALLOC || e->kind == TRACE_REFUSED)) {
            return k;
        }
    }
    return 0;
}

static hr_status fill_oom(hr_replay *replay, const hr_knobs *knobs, const hr_replay_result *result,
                          hr_report_oom *oom, hr_err *err)
{
    const hr_replay_failure *f = &result->failures[0];
    uint64_t fits_bytes = 0;
    if (result->failure_count == 0) {
        return HR_OK;
    }
    take_failure(f, oom);
    HR_TRY(replay_smallest_limit(replay, knobs, f->limit_bytes, &fits_bytes, err));
    heap_room room = {0};
    oom_evidence shown = {0};
    if (result->failure_heap != NULL) {
        const uint32_t end = event_of_row(&replay->trace, f->device, f->event);
        HR_TRY(evidence_of(&replay->trace, f->device, end, &result->failure_heap->snapshot, &shown, err));
        room = heap_room_of(&result->failure_heap->snapshot, NULL, NULL);
        oom->hole_count = room.hole_count;
        memcpy(oom->hole_bytes, room.holes, sizeof oom->hole_bytes);
    }
    const step_needs needs = {.asked_bytes = replay_asked_bytes(&replay->trace, f->device),
                              .limit_bytes = fits_bytes,
                              .waste_bytes = room.waste_bytes,
                              .shown = &shown};
    diagnose_oom(&needs, &room, NULL, oom);
    name_device(&replay->about, f->device, oom);
    diagnose_lines(&shown, &room, oom);
    if (result->failure_heap != NULL) {
        const heap_snapshot *p = &result->failure_heap->snapshot;
        diagnose_heap(p, heap_own_name, p, oom);
    }
    return replay_find_fixes(replay, knobs, fits_bytes, oom, err);
}

static void begin_report(const hr_knobs *knobs, const char *name, hr_report *out)
{
    *out =
        (hr_report){.device.simulated = true,
                    .evaluation.peak_in_use_bytes = HR_NONE,
                    .answers.peak_in_use_bytes = HR_NONE,
                    .driver = {HR_NONE, HR_NONE, HR_NONE},
                    .plan = {.seconds_median = (double)NAN, .seconds_max = (double)NAN},
                    .host = {.input_seconds = (double)NAN, .stall = (double)NAN},
                    .step = {.seconds = (double)NAN, .seconds_low = (double)NAN, .seconds_high = (double)NAN},
                    .train = {.skipped_steps = HR_NONE,
                              .loss_scale = (double)NAN,
                              .examples_per_second = (double)NAN,
                              .loss_first = (double)NAN,
                              .loss_student = (double)NAN,
                              .loss_distill = (double)NAN,
                              .loss_last = (double)NAN,
                              .eval_accuracy = (double)NAN,
                              .sparsity = (double)NAN}};
    (void)text_copy(out->preset, sizeof out->preset, name);
    (void)text_copy(out->device.kind, sizeof out->device.kind, hr_knob_text(knobs, HR_KNOB_DEVICE_KIND));
    (void)text_copy(out->device.card, sizeof out->device.card, hr_knob_text(knobs, HR_KNOB_DEVICE_CARD));
}

static hr_status find_what_helps(hr_replay *replay, const hr_knobs *knobs, const hr_replay_failure *f,
                                 hr_report_oom *oom, hr_err *err)
{
    uint64_t fits_bytes = 0;
    HR_TRY(replay_smallest_limit(replay, knobs, f->limit_bytes, &fits_bytes, err));
    oom->needed_bytes = fits_bytes > 0 ? fits_bytes : HR_NONE;
    return replay_find_fixes(replay, knobs, fits_bytes, oom, err);
}

hr_status replay_report_with(hr_replay *replay, const hr_knobs *knobs, const char *name,
                             const hr_report_oom *verdict, hr_report *out, hr_err *err)
{
    const hr_replay_options options = {.wants_peak_heap = true};
    hr_replay_result result;
    begin_report(knobs, name, out);
    HR_TRY(hr_replay_run(replay, knobs, &options, &result, err));
    hr_status status = fill_memory(&result, &out->memory, err);
    if (status == HR_OK && verdict != NULL) {
        out->oom = *verdict;
        name_device(&replay->about, replay->about.device, &out->oom);
        // What fits as it is proves nothing of a setting.
        status = result.failure_count == 0
                     ? HR_OK
                     : find_what_helps(replay, knobs, &result.failures[0], &out->oom, err);
    } else if (status == HR_OK) {
        status = fill_oom(replay, knobs, &result, &out->oom, err);
    }
    hr_replay_result_deinit(&result);
    if (status != HR_OK) {
        hr_report_deinit(out);
    }
    return status;
}

hr_status hr_replay_report(hr_replay *replay, const hr_knobs *knobs, const char *name, hr_report *out,
                           hr_err *err)
{
    return replay_report_with(replay, knobs, name, NULL, out, err);
}
