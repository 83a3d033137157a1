// SPDX-License-Identifier: Apache-2.0
// "headroom.replay/1".
#include <stdio.h>
#include <string.h>

#include "app/cli/emit.h"
#include "app/cli/replay.h"

enum { HOLES_MAX = 8, SENTENCE_MAX = 512 };

// Why the heap refused what it refused; null where nothing was, or where there is none.
static void print_cause(emitter *e, const hr_heap *heap)
{
    char sentence[SENTENCE_MAX] = "";
    hr_oom_cause cause = heap == NULL ? HR_OOM_NONE : hr_heap_diagnose(heap, sentence, sizeof sentence);
    emit_text(e, "cause", cause == HR_OOM_NONE ? NULL : hr_oom_cause_name(cause));
    emit_text(e, "sentence", cause == HR_OOM_NONE ? NULL : sentence);
}

static void print_recorded(emitter *e, const replay_table *t)
{
    const hr_replay_about *a = t->about;
    emit_object(e, "recorded");
    emit_count(e, "peak_pool_bytes", a->recorded.peak_pool_bytes);
    emit_count(e, "limit_bytes", a->recorded.limit_bytes);
    emit_count(e, "in_use_bytes", a->recorded.in_use_bytes);
    emit_count(e, "largest_free_bytes", a->recorded.largest_free_bytes);
    emit_real(e, "fragmentation", a->recorded.fragmentation, EMIT_EXACT);
    print_cause(e, t->recorded);
    emit_end_object(e);
}

static void print_trace(emitter *e, const replay_table *t)
{
    const hr_replay_about *a = t->about;
    emit_object(e, "trace");
    emit_text(e, "file", t->name);
    emit_text(e, "format", a->format);
    emit_count(e, "rows", a->rows);
    emit_count(e, "events", a->events);
    emit_count(e, "allocations", a->allocations);
    emit_count(e, "steps", a->steps);
    emit_count(e, "blocks", a->blocks);
    emit_count(e, "devices", a->device_count);
    emit_count(e, "device", a->device);
    emit_count(e, "lost_frees", a->lost_frees);
    emit_count(e, "refused", a->refused);
    emit_count(e, "peak_requested_bytes", a->peak_requested_bytes);
    print_recorded(e, t);
    emit_end_object(e);
}

static void print_memory(emitter *e, const char *key, const hr_replay_memory *m)
{
    emit_object(e, key);
    emit_count(e, "limit_bytes", m->limit_bytes);
    emit_count(e, "peak_pool_bytes", m->peak_pool_bytes);
    emit_count(e, "end_pool_bytes", m->end_pool_bytes);
    emit_count(e, "peak_in_use_bytes", m->peak_in_use_bytes);
    emit_count(e, "peak_requested_bytes", m->peak_requested_bytes);
    emit_count(e, "waste_bytes", m->waste_bytes);
    emit_count(e, "largest_free_bytes", m->largest_free_bytes);
    emit_real(e, "fragmentation", m->fragmentation, EMIT_EXACT);
    emit_count(e, "allocations", m->allocations);
    emit_row(e, "at_peak");
    emit_count(e, "event", m->peak_event);
    emit_end_object(e);
    emit_end_object(e);
}

static void print_failures(emitter *e, const hr_replay_result *r)
{
    emit_array(e, "failures");
    for (uint32_t k = 0; k < r->failure_count; k++) {
        const hr_replay_failure *f = &r->failures[k];
        emit_row(e, NULL);
        emit_count(e, "event", f->event);
        emit_count(e, "step", f->step);
        emit_count(e, "device", f->device);
        emit_text(e, "name", f->name[0] != '\0' ? f->name : NULL);
        emit_count(e, "requested_bytes", f->requested_bytes);
        emit_count(e, "free_bytes", f->free_bytes);
        emit_count(e, "largest_free_bytes", f->largest_free_bytes);
        emit_end_object(e);
    }
    emit_end_array(e);
    emit_count(e, "failures_total", r->failures_total);
    emit_count(e, "served", r->served);
}

// What pins the free memory at the first failure.
static void print_pin(emitter *e, const char *key, const hr_heap_pin *pin)
{
    if (pin->name == NULL) {
        emit_null(e, key);
        return;
    }
    emit_object(e, key);
    emit_text(e, "name", pin->name[0] != '\0' ? pin->name : NULL);
    emit_count(e, "bytes", pin->bytes);
    emit_count(e, "joined_bytes", pin->joined_bytes);
    emit_count(e, "age", pin->age);
    emit_end_object(e);
}

static hr_status print_holes(emitter *e, const hr_heap *heap, hr_err *err)
{
    hr_heap_hole holes[HOLES_MAX];
    size_t count = 0;
    if (heap != NULL) {
        HR_TRY(hr_heap_holes(heap, holes, HOLES_MAX, &count, err));
    }
    emit_array(e, "holes");
    for (size_t k = 0; k < count; k++) {
        emit_row(e, NULL);
        emit_count(e, "address", holes[k].address);
        emit_count(e, "bytes", holes[k].bytes);
        print_pin(e, "before", &holes[k].before);
        print_pin(e, "after", &holes[k].after);
        emit_end_object(e);
    }
    emit_end_array(e);
    return HR_OK;
}

// Every knob that is not at its default, as "key=value".
static void print_knobs(emitter *e, const hr_knobs *knobs)
{
    hr_knobs defaults;
    hr_replay_knobs_init(&defaults);
    emit_array(e, "knobs");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char value[HR_KNOB_TEXT_MAX], usual[HR_KNOB_TEXT_MAX], pair[HR_KNOB_TEXT_MAX + 64];
        hr_knob_id knob = (hr_knob_id)id;
        bool differs =
            strcmp(hr_knob_format(knobs, knob, value), hr_knob_format(&defaults, knob, usual)) != 0;
        if (hr_replay_knob_applies(knob) && differs) {
            (void)snprintf(pair, sizeof pair, "%s=%s", hr_knob_rows(NULL)[id].key, value);
            emit_text(e, NULL, pair);
        }
    }
    emit_end_array(e);
}

static hr_status print_column(emitter *e, const replay_table *t, const replay_column *c, hr_err *err)
{
    const hr_replay_result *r = &c->result;
    emit_object(e, NULL);
    emit_text(e, "name", c->kind);
    print_knobs(e, &c->knobs);
    print_memory(e, "memory", &r->memory);
    if (t->about->device_count > 1) {
        emit_array(e, "devices");
        for (uint32_t k = 0; k < r->device_count; k++) {
            print_memory(e, NULL, &r->devices[k]);
        }
        emit_end_array(e);
    }
    print_failures(e, r);
    print_cause(e, r->failure_heap);
    HR_TRY(print_holes(e, r->failure_heap, err));
    emit_object(e, "statistics");
    for (uint32_t k = 0; k < r->statistic_count; k++) {
        emit_count(e, r->statistics[k].name, r->statistics[k].value);
    }
    emit_end_object(e);
    emit_end_object(e);
    return HR_OK;
}

hr_status replay_print_json(const replay_table *t, hr_err *err)
{
    emitter e = {.out = stdout};
    emit_object(&e, NULL);
    emit_text(&e, "schema", "headroom.replay/1");
    print_trace(&e, t);
    emit_array(&e, "allocators");
    for (unsigned k = 0; k < t->column_count; k++) {
        HR_TRY(print_column(&e, t, &t->columns[k], err));
    }
    emit_end_array(&e);
    emit_end_object(&e);
    return HR_OK;
}
