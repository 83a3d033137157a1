// SPDX-License-Identifier: Apache-2.0
// Our own CSV (DESIGN §7): time_ns, step, event, address, requested_bytes, allocated_bytes, tensor, stream, in any order;
// only event, address and requested_bytes must be there. Events that are no memory and no step are passed over.
#include <string.h>

#include "base/text.h"
#include "formats/fields.h"
#include "formats/readers.h"

enum { TIME, EVENT, ADDRESS, REQUESTED, ALLOCATED, TENSOR, STREAM, DEVICE, COLUMNS };

static const field_column columns[] = {
    [TIME] = {{"time_ns"}, false},
    [EVENT] = {{"event"}, true},
    [ADDRESS] = {{"address"}, true},
    [REQUESTED] = {{"requested_bytes"}, true},
    [ALLOCATED] = {{"allocated_bytes"}, false},
    [TENSOR] = {{"tensor"}, false},
    [STREAM] = {{"stream"}, false},
    [DEVICE] = {{"device"}, false},
};
_Static_assert((int)COLUMNS <= (int)FIELDS_COLUMNS_MAX, "columns fit");

// What a row is to a trace. PASSED rows are marks: known, and nothing that a replay plays.
enum { PASSED = TRACE_KINDS };

static const struct {
    const char *name;
    uint8_t kind;
    bool of_region; // its bytes are the allocated ones
} kinds[] = {
    {"alloc", TRACE_ALLOC, false},     {"free", TRACE_FREE, false},    {"retire", TRACE_RETIRE, false},
    {"grow", TRACE_GROW, true},        {"shrink", TRACE_SHRINK, true}, {"oom", TRACE_REFUSED, false},
    {"refused", TRACE_REFUSED, false}, {"step", TRACE_STEP, false},
};

typedef struct own_csv {
    fields f;
    uint32_t places[COLUMNS];
    trace *t;
    trace_builder builder;
} own_csv;

static bool kind_of(field t, uint8_t *kind, bool *of_region)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (field_is(t, kinds[k].name)) {
            *kind = kinds[k].kind;
            *of_region = kinds[k].of_region;
            return true;
        }
    }
    *kind = PASSED;
    for (int k = 0; k < HR_EVENT_COUNT; k++) {
        if (field_is(t, hr_event_name((hr_event_kind)k))) {
            return true;
        }
    }
    return false;
}

static hr_status name_of(own_csv *r, uint32_t *name, hr_err *err)
{
    const field t = fields_at(&r->f, r->places[TENSOR]);
    *name = HR_NO_ID;
    if (t.length == 0) {
        return HR_OK;
    }
    *name = intern_add(&r->t->names, t.text, t.length);
    return *name != INTERN_NONE
               ? HR_OK
               : HR_FAIL(err, NOMEM, "%s: needed host memory for the names of tensors, had none",
                         r->f.in->name);
}

static hr_status read_heading(void *context, hr_err *err)
{
    own_csv *r = context;
    return fields_heading(&r->f, columns, COLUMNS, r->places, err);
}

static hr_status read_row(void *context, hr_err *err)
{
    own_csv *r = context;
    trace_event event = {.row = (uint32_t)(r->t->rows++)};
    uint64_t address, requested, allocated, stream, device;
    bool of_region = false;
    const field word = field_trim(fields_at(&r->f, r->places[EVENT]));
    if (!kind_of(word, &event.kind, &of_region)) {
        return fields_refuse(&r->f, word, "an event: alloc, free, grow, shrink, oom, step, build, eval", err);
    }
    HR_TRY(fields_number(&r->f, r->places[TIME], UINT64_MAX, &event.time_ns, err));
    HR_TRY(fields_number(&r->f, r->places[ADDRESS], UINT64_MAX, &address, err));
    HR_TRY(fields_number(&r->f, r->places[REQUESTED], UINT64_MAX, &requested, err));
    HR_TRY(fields_number(&r->f, r->places[ALLOCATED], UINT64_MAX, &allocated, err));
    HR_TRY(fields_number(&r->f, r->places[STREAM], UINT16_MAX, &stream, err));
    HR_TRY(fields_number(&r->f, r->places[DEVICE], TRACE_DEVICES_MAX - 1, &device, err));
    HR_TRY(name_of(r, &event.name, err));
    if (event.kind == PASSED) {
        return HR_OK;
    }
    event.bytes = event.kind == TRACE_STEP ? 0 : of_region ? allocated : requested;
    event.stream = (uint16_t)stream;
    event.device = (uint8_t)device;
    return trace_add(&r->builder, event, address, err);
}

static bool recognise(const char *start, size_t bytes)
{
    return fields_begin_with(start, bytes, columns, COLUMNS);
}

static hr_status read_own_csv(input *in, trace *t, hr_err *err)
{
    own_csv r = {.f.in = in, .t = t};
    trace_builder_init(&r.builder, t);
    hr_status status = fields_each(&r.f, read_heading, read_row, &r, err);
    trace_builder_deinit(&r.builder);
    fields_deinit(&r.f);
    return status;
}

const trace_format trace_format_csv = {
    .name = "csv",
    .line = "a trace of headroom as CSV (time_ns,step,event,address,…)",
    .recognise = recognise,
    .read = read_own_csv,
};
