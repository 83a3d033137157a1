// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "formats/fields.h"
#include "session/played.h"

enum { TIME, STEP, EVENT, ADDRESS, REQUESTED, ALLOCATED, STREAM, COLUMNS };

hr_event *played_push(played_events *events, const input *in, hr_status *status, hr_err *err)
{
    hr_event *e = events->count < PLAYED_EVENTS_MAX ? vec_push(events) : NULL;
    if (e == NULL) {
        *status = events->count < PLAYED_EVENTS_MAX
                      ? HR_FAIL(err, NOMEM, "%s: no host memory for its events", in->name)
                      : HR_FAIL(err, READ, "%s: has more than %d events", in->name, PLAYED_EVENTS_MAX);
        return NULL;
    }
    *e = (hr_event){.version = HR_EVENT_VERSION, .instr = HR_NO_ID, .seq = events->count - 1u};
    return e;
}

static const field_column columns[] = {
    [TIME] = {{"time_ns"}, true},
    [STEP] = {{"step"}, true},
    [EVENT] = {{"event"}, true},
    [ADDRESS] = {{"address"}, true},
    [REQUESTED] = {{"requested_bytes"}, true},
    [ALLOCATED] = {{"allocated_bytes"}, true},
    [STREAM] = {{"stream"}, false},
};
_Static_assert((int)COLUMNS <= (int)FIELDS_COLUMNS_MAX, "columns fit");

typedef struct played_csv {
    fields f;
    uint32_t places[COLUMNS];
    played_events *events;
    uint64_t in_use_bytes, pool_bytes;
    uint64_t step_peak_bytes, step_floor_bytes, step_time_ns; // since the last step
} played_csv;

bool played_is_csv(const char *start, size_t bytes)
{
    return fields_begin_with(start, bytes, columns, COLUMNS);
}

static bool kind_of(field word, uint8_t *kind)
{
    for (uint32_t k = HR_EVENT_ALLOC; k < HR_EVENT_COUNT; k++) {
        if (field_is(word, hr_event_name((hr_event_kind)k))) {
            *kind = (uint8_t)k;
            return true;
        }
    }
    return false;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return bytes < from ? from - bytes : 0;
}

static void count_memory(played_csv *r, hr_event *e)
{
    const uint64_t bytes = e->u.memory.allocated_bytes;
    if (e->kind == HR_EVENT_ALLOC) {
        r->in_use_bytes += bytes;
    } else if (e->kind == HR_EVENT_FREE) {
        r->in_use_bytes = less(r->in_use_bytes, bytes);
    } else if (e->kind == HR_EVENT_GROW) {
        r->pool_bytes += bytes;
    } else if (e->kind == HR_EVENT_SHRINK) {
        r->pool_bytes = less(r->pool_bytes, bytes);
    }
    r->step_peak_bytes = r->in_use_bytes > r->step_peak_bytes ? r->in_use_bytes : r->step_peak_bytes;
    r->step_floor_bytes = r->in_use_bytes < r->step_floor_bytes ? r->in_use_bytes : r->step_floor_bytes;
    e->u.memory.in_use_bytes = r->in_use_bytes;
    e->u.memory.pool_bytes = r->pool_bytes;
}

// The first step began with the build, or with the file.
static void count_step(played_csv *r, hr_event *e)
{
    e->u.step = (hr_event_step){.loss = (double)NAN,
                                .accuracy = (double)NAN,
                                .duration_ns = less(e->time_ns, r->step_time_ns),
                                .peak_in_use_bytes = r->step_peak_bytes,
                                .floor_in_use_bytes = r->step_floor_bytes};
    r->step_time_ns = e->time_ns;
    r->step_peak_bytes = r->step_floor_bytes = r->in_use_bytes;
}

static hr_status read_heading(void *context, hr_err *err)
{
    played_csv *r = context;
    return fields_heading(&r->f, columns, COLUMNS, r->places, err);
}

static hr_status read_row(void *context, hr_err *err)
{
    played_csv *r = context;
    hr_status status = HR_OK;
    uint64_t step = 0, stream = 0;
    const field word = field_trim(fields_at(&r->f, r->places[EVENT]));
    hr_event *e = played_push(r->events, r->f.in, &status, err);
    HR_TRY(status);
    if (!kind_of(word, &e->kind)) {
        return fields_refuse(&r->f, word, "an event: alloc, free, grow, shrink, oom, step, build, eval", err);
    }
    HR_TRY(fields_number(&r->f, r->places[TIME], UINT64_MAX, &e->time_ns, err));
    HR_TRY(fields_number(&r->f, r->places[STEP], UINT32_MAX, &step, err));
    e->step = (uint32_t)step;
    if (e->kind >= HR_EVENT_ALLOC && e->kind <= HR_EVENT_OOM) {
        HR_TRY(fields_number(&r->f, r->places[ADDRESS], UINT64_MAX, &e->u.memory.address, err));
        HR_TRY(fields_number(&r->f, r->places[REQUESTED], UINT64_MAX, &e->u.memory.requested_bytes, err));
        HR_TRY(fields_number(&r->f, r->places[ALLOCATED], UINT64_MAX, &e->u.memory.allocated_bytes, err));
        HR_TRY(fields_number(&r->f, r->places[STREAM], UINT32_MAX, &stream, err));
        e->u.memory.stream = (uint32_t)stream;
        e->u.memory.tensor = HR_NO_ID;
        count_memory(r, e);
    } else if (e->kind == HR_EVENT_STEP) {
        count_step(r, e);
    } else if (e->kind == HR_EVENT_BUILD) {
        r->step_time_ns = e->time_ns;
    }
    return HR_OK;
}

hr_status played_read_csv(input *in, played_events *events, hr_err *err)
{
    played_csv r = {.f.in = in, .events = events};
    hr_status status = fields_each(&r.f, read_heading, read_row, &r, err);
    fields_deinit(&r.f);
    return status;
}
