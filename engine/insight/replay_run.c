// SPDX-License-Identifier: Apache-2.0
// The public door of replays: files and knobs in, counters out.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "insight/play.h"
#include "insight/replay.h"
#include "insight/replay_export.h"
#include "knobs/logical.h"

// Where nothing limits the pool: far beyond every card, and far below what sums and address spaces hold.
#define NO_LIMIT_BYTES (UINT64_C(1) << 50)

// ---- the limit ------------------------------------------------------------------------------------------------

// A replay without a limit is what no other command does: the check is for one with some limit.
static hr_status check_knobs(const hr_knobs *knobs, hr_err *err)
{
    hr_knobs checked = *knobs;
    if (!hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM) && !hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD)) {
        HR_TRY(hr_knobs_set(&checked, HR_KNOB_DEVICE_VRAM, "1GiB", err));
    }
    return hr_knobs_validate(&checked, err);
}

typedef struct memory_size {
    bool is_limited, has_card;
    hr_card card;
    uint64_t limit_bytes;
} memory_size;

uint64_t replay_own_limit(const hr_replay_about *about)
{
    if (about->scenario != NULL && about->scenario->limit_bytes > 0) {
        return about->scenario->limit_bytes;
    }
    return about->is_heap ? about->recorded.limit_bytes : HR_NONE;
}

static hr_status find_limit(const hr_knobs *knobs, uint64_t own_bytes, memory_size *out, hr_err *err)
{
    logical_devices logical;
    bool has_own = own_bytes != HR_NONE;
    *out = (memory_size){.limit_bytes = has_own ? own_bytes : NO_LIMIT_BYTES};
    out->has_card = hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
    bool is_set = out->has_card || hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM) ||
                  (logical_devices_of(knobs, &logical) && logical.count > 0); // parts of something
    out->is_limited = is_set || has_own;
    if (out->has_card) {
        HR_TRY(hr_card_load(hr_knob_text(knobs, HR_KNOB_DEVICE_CARD), &out->card, err));
    }
    if (!is_set) {
        return HR_OK;
    }
    HR_TRY(hr_device_limit_bytes(knobs, out->has_card ? &out->card : NULL, &out->limit_bytes, err));
    if (hr_limit_is_none(out->limit_bytes)) { // the card without an end
        out->is_limited = false;
        out->limit_bytes = NO_LIMIT_BYTES;
    }
    return HR_OK;
}

// ---- results --------------------------------------------------------------------------------------------------

static uint64_t row_of(const trace *t, uint32_t event)
{
    uint32_t row = event < t->events.count ? t->events.data[event].row : TRACE_BEFORE;
    return row == TRACE_BEFORE ? HR_NONE : row;
}

static hr_replay_memory memory_of(const trace *t, const replay_device *d, uint64_t limit_bytes)
{
    hr_replay_memory m = {.limit_bytes = limit_bytes, .failures = d->failures, .peak_event = HR_NONE};
    if (d->heap == NULL || d->hopeless) {
        m.peak_pool_bytes = m.peak_in_use_bytes = m.peak_requested_bytes = HR_NONE;
        m.waste_bytes = m.largest_free_bytes = m.end_pool_bytes = HR_NONE;
        m.fragmentation = (double)NAN;
        return m;
    }
    uint64_t free_bytes = d->peak.pool_bytes - d->peak.in_use_bytes;
    m.peak_pool_bytes = d->heap->counters.peak_pool_bytes;
    m.peak_in_use_bytes = d->peak.in_use_bytes;
    m.peak_requested_bytes = d->peak.requested_bytes;
    m.waste_bytes = d->peak.in_use_bytes - d->peak.requested_bytes;
    m.largest_free_bytes = d->peak.largest_free_bytes;
    m.fragmentation = free_bytes == 0 ? 0 : 1 - (double)d->peak.largest_free_bytes / (double)free_bytes;
    m.end_pool_bytes = d->heap->counters.pool_bytes;
    m.peak_event = row_of(t, d->peak.event);
    m.allocations = d->heap->counters.allocations;
    return m;
}

static uint64_t without(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void take_failure(const trace *t, const replay_failure *f, hr_replay_failure *out)
{
    const char *name = replay_name(t, f->event);
    *out = (hr_replay_failure){
        .event = row_of(t, f->event),
        .step = f->step,
        .device = f->device,
        .requested_bytes = f->requested_bytes,
        .free_bytes = without(f->stats.limit_bytes, f->stats.in_use_bytes),
        .largest_free_bytes = f->stats.largest_free_bytes,
        .in_use_bytes = f->stats.in_use_bytes,
        .pool_bytes = f->stats.pool_bytes,
        .limit_bytes = f->stats.limit_bytes,
    };
    (void)text_copy(out->name, sizeof out->name, name == NULL ? "" : name);
}

static void take_statistic(void *context, const char *name, uint64_t value)
{
    hr_replay_result *out = context;
    assert(out->statistic_count < HR_REPLAY_STATISTICS_MAX && "PyTorch has 123");
    if (out->statistic_count < HR_REPLAY_STATISTICS_MAX) {
        uint32_t k = out->statistic_count++;
        (void)text_copy(out->statistics[k].name, sizeof out->statistics[k].name, name);
        out->statistics[k].value = value;
    }
}

// What a framework would say beside the heap.
static dump_facts facts_of(const replay_player *p)
{
    const hr_card *card = p->setup.card;
    return (dump_facts){
        .device_bytes = card == NULL ? 0 : card->vram_bytes,
        .outside_bytes = card == NULL ? 0 : card->context_bytes,
        .limit_is_fraction = p->setup.config.limit_is_fraction,
        .growth = p->setup.config.growth,
        .expandable_segments = p->setup.config.caching.expandable_segments,
    };
}

static hr_status take_failure_heap(replay_player *p, hr_replay_result *out, hr_err *err)
{
    if (p->failure_heap == NULL) {
        return HR_OK;
    }
    out->failure_heap = hr_calloc(1, sizeof *out->failure_heap);
    if (out->failure_heap == NULL) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for a heap, had none");
    }
    hr_heap *heap = out->failure_heap;
    heap->snapshot = *p->failure_heap;
    heap->facts = facts_of(p);
    heap->facts.device = p->failures[0].device;
    heap->facts.op = intern_text(&heap->snapshot.names, heap->snapshot.refusal.tensor);
    *p->failure_heap = (heap_snapshot){0};
    return HR_OK;
}

static hr_status take_result(const hr_replay *r, replay_player *p, uint64_t limit_bytes,
                             hr_replay_result *out, hr_err *err)
{
    out->devices = hr_calloc(r->trace.device_count, sizeof *out->devices);
    if (out->devices == NULL && r->trace.device_count > 0) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for %u devices, had none",
                       r->trace.device_count);
    }
    out->device_count = r->trace.device_count;
    for (uint32_t k = 0; k < out->device_count; k++) {
        out->devices[k] = memory_of(&r->trace, &p->devices[k], limit_bytes);
        out->served += p->devices[k].served;
    }
    const replay_device *shown = &p->devices[r->about.device];
    out->memory = memory_of(&r->trace, shown, limit_bytes);
    out->failures_total = p->failure_count;
    for (; out->failure_count < REPLAY_FAILURES_MAX && out->failure_count < p->failure_count;
         out->failure_count++) {
        take_failure(&r->trace, &p->failures[out->failure_count], &out->failures[out->failure_count]);
    }
    if (shown->heap != NULL && shown->heap->ops->statistics != NULL) {
        shown->heap->ops->statistics(shown->heap, take_statistic, out);
    }
    return take_failure_heap(p, out, err);
}

void hr_replay_result_deinit(hr_replay_result *result)
{
    hr_free(result->devices);
    hr_heap_destroy(result->failure_heap);
    hr_heap_destroy(result->peak_heap);
    *result = (hr_replay_result){0};
}

// ---- runs -----------------------------------------------------------------------------------------------------

// Plays once more, up to the peak.
static hr_status take_peak_heap(const hr_replay *r, const replay_setup *setup, uint32_t event,
                                hr_replay_result *out, hr_err *err)
{
    replay_player p;
    out->peak_heap = hr_calloc(1, sizeof *out->peak_heap);
    if (out->peak_heap == NULL) {
        return HR_FAIL(err, NOMEM, "replay: needed host memory for a heap, had none");
    }
    hr_status status = replay_start(&p, &r->trace, setup, err);
    if (status == HR_OK) {
        status = replay_play(&p, event + 1, err);
    }
    if (status == HR_OK) {
        status = replay_snapshot(&p, r->about.device, &out->peak_heap->snapshot, err);
    }
    replay_close(&p);
    return status;
}

typedef struct run {
    const hr_replay *replay;
    replay_stage *stage;
    hr_replay_options options;
    uint64_t reach_bytes[TRACE_DEVICES_MAX]; // of the last time
} run;

// Everything of the trace, and what came of it.
static hr_status play_all(run *r, const char *trace_file, uint32_t *peak_event, hr_replay_result *out,
                          hr_err *err)
{
    replay_player p;
    replay_export file;
    const trace *t = &r->replay->trace;
    replay_setup setup = r->stage->setup;
    HR_TRY(replay_export_open(&file, trace_file, &p, t->device_count, &setup, err));
    hr_status status = replay_start(&p, t, &setup, err);
    if (status == HR_OK) {
        status = replay_play(&p, UINT32_MAX, err);
    }
    if (status == HR_OK) {
        status = take_result(r->replay, &p, r->stage->limit_bytes, out, err);
    }
    if (status == HR_OK) {
        status = replay_export_close(&file, err);
    }
    replay_export_abandon(&file);
    *peak_event = p.devices[r->replay->about.device].peak.event;
    for (uint32_t k = 0; k < t->device_count; k++) {
        r->reach_bytes[k] = p.devices[k].reach_bytes;
    }
    replay_close(&p);
    return status;
}

static hr_status run_once(run *r, bool is_last, hr_replay_result *out, hr_err *err)
{
    uint32_t peak_event = HR_NO_ID;
    HR_TRY(play_all(r, is_last ? r->options.trace_file : NULL, &peak_event, out, err));
    if (is_last && r->options.wants_peak_heap && peak_event != HR_NO_ID) {
        replay_setup again = r->stage->setup;
        again.keeps_failure_heap = false;
        return take_peak_heap(r->replay, &again, peak_event, out, err);
    }
    return HR_OK;
}

// Nothing is left behind by a failure.
static hr_status try_once(run *r, hr_replay_result *out, hr_err *err)
{
    *out = (hr_replay_result){0};
    const hr_status status = run_once(r, false, out, err);
    if (status != HR_OK) {
        hr_replay_result_deinit(out);
    }
    return status;
}

// One region of no limit would be a pool of no size. How far an endless region is used says about how large one has to
// be; in one of that size the rest at its end fits requests that it was too large for before, so that it may turn out
// a little too small: then a little more is tried.
static hr_status find_region(run *r, hr_err *err)
{
    enum { TRIES_MAX = 64, FINER = 64 };
    uint64_t endless_failures[TRACE_DEVICES_MAX];
    uint64_t *limits = r->stage->setup.limit_bytes;
    const uint32_t count = r->replay->trace.device_count;
    hr_replay_result tried;
    HR_TRY(try_once(r, &tried, err));
    for (uint32_t k = 0; k < count; k++) {
        endless_failures[k] = tried.devices[k].failures;
        limits[k] = (r->reach_bytes[k] + HR_KIB - 1) & ~(HR_KIB - 1);
    }
    bool settled = false;
    for (int tries = 0; tries < TRIES_MAX && !settled; tries++) {
        hr_replay_result_deinit(&tried);
        HR_TRY(try_once(r, &tried, err));
        settled = true;
        for (uint32_t k = 0; k < count; k++) {
            if (tried.devices[k].failures > endless_failures[k]) {
                limits[k] += (limits[k] / FINER + HR_KIB) & ~(HR_KIB - 1);
                settled = false;
            }
        }
    }
    hr_replay_result_deinit(&tried);
    return HR_OK;
}

// What a scenario is played with, where the caller has not set that knob and the allocator has it.
static hr_status take_setting(const hr_replay_about *about, const hr_knobs *set, hr_knobs *played,
                              hr_err *err)
{
    const char *setting = about->scenario == NULL ? NULL : about->scenario->setting;
    *played = *set;
    if (setting == NULL) {
        return HR_OK;
    }
    HR_TRY(hr_knobs_set_pair(played, setting, err));
    const char *kind = hr_knob_text(set, HR_KNOB_ALLOCATOR_KIND);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        if (hr_knob_is_set(set, (hr_knob_id)id) || !hr_replay_knob_concerns((hr_knob_id)id, kind)) {
            played->value[id] = set->value[id];
        }
    }
    return HR_OK;
}

static hr_status prepare(const hr_replay *replay, const hr_knobs *set, const hr_replay_options *options,
                         replay_stage *out, hr_err *err)
{
    memory_size size;
    hr_knobs knobs;
    *out = (replay_stage){0};
    HR_TRY(take_setting(&replay->about, set, &knobs, err));
    HR_TRY(check_knobs(&knobs, err));
    HR_TRY(find_limit(&knobs, replay_own_limit(&replay->about), &size, err));
    out->card = size.card;
    out->limit_bytes = size.is_limited ? size.limit_bytes : HR_NONE;
    out->setup = (replay_setup){.config = play_allocator_config(&knobs, size.limit_bytes),
                                .card = size.has_card ? &out->card : NULL,
                                .stop = options->stop,
                                .stop_context = options->stop_context};
    out->setup.config.growth =
        hr_knob_is(&knobs, HR_KNOB_ALLOCATOR_GROWTH, "on"); // without a limit: find_region
    const bool endless_region =
        !size.is_limited && hr_knob_is(&knobs, HR_KNOB_ALLOCATOR_KIND, "bfc") && !out->setup.config.growth;
    run r = {.replay = replay, .stage = out, .options = *options};
    return endless_region ? find_region(&r, err) : HR_OK;
}

hr_status replay_prepare(const hr_replay *replay, const hr_knobs *set, replay_stage *out, hr_err *err)
{
    return prepare(replay, set, &(hr_replay_options){0}, out, err);
}

hr_status hr_replay_run(hr_replay *replay, const hr_knobs *set, const hr_replay_options *options,
                        hr_replay_result *out, hr_err *err)
{
    replay_stage stage;
    run r = {
        .replay = replay, .stage = &stage, .options = options == NULL ? (hr_replay_options){0} : *options};
    *out = (hr_replay_result){0};
    HR_TRY(prepare(replay, set, &r.options, &stage, err));
    stage.setup.keeps_failure_heap = !r.options.only_whether;
    stage.setup.ends_at_failure = r.options.only_whether;
    hr_status status = run_once(&r, true, out, err);
    (void)text_copy(out->name, sizeof out->name, hr_knob_text(set, HR_KNOB_ALLOCATOR_KIND));
    if (status != HR_OK) {
        hr_replay_result_deinit(out);
    }
    return status;
}
