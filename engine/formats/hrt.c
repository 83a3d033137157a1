// SPDX-License-Identifier: Apache-2.0
// Reading, and the trace of what was read.
#include "formats/hrt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/hrt_code.h"
#include "formats/varint.h"

typedef struct hrt_subject {
    uint32_t tensor;
    uint32_t name; // in hrt_reader.names, or INTERN_NONE
    hrt_known known;
} hrt_subject;

typedef struct hrt_reader {
    input *in;
    hrt_visitor visit;
    void *context;
    VEC(hrt_subject) subjects; // the first is none
    intern names;
    hrt_last last;
    uint32_t frames;
    uint64_t frame_at; // in the file
} hrt_reader;

static hr_status refuse(const hrt_reader *r, const char *wanted, hr_err *err)
{
    (void)HR_FAIL(err, READ, "%s: needed %s in the frame at byte %" PRIu64, r->in->name, wanted, r->frame_at);
    hr_err_try(err, "headroom run PRESET --trace '%s' to record it anew", r->in->name);
    return HR_READ;
}

// ---- records --------------------------------------------------------------------------------------------------

static bool take_u8(byte_span *s, uint8_t *out)
{
    if (s->at == s->end) {
        return false;
    }
    *out = *s->at++;
    return true;
}

static bool take_z(byte_span *s, uint64_t against, uint64_t *out)
{
    uint64_t folded = 0;
    const bool taken = varint_take(s, &folded);
    *out = against + varint_unfold(folded);
    return taken;
}

static bool take_z32(byte_span *s, uint32_t against, uint32_t *out)
{
    uint64_t value;
    const bool taken = take_z(s, against, &value);
    *out = (uint32_t)value;
    return taken && value <= UINT32_MAX;
}

static bool take_v32(byte_span *s, uint32_t *out)
{
    uint64_t value = 0;
    const bool taken = varint_take(s, &value);
    *out = (uint32_t)value;
    return taken && value <= UINT32_MAX;
}

static bool take_v16(byte_span *s, uint16_t *out)
{
    uint64_t value = 0;
    const bool taken = varint_take(s, &value);
    *out = (uint16_t)value;
    return taken && value <= UINT16_MAX;
}

static hr_status add_subject(hrt_reader *r, uint32_t tensor, uint32_t name, hr_err *err)
{
    hrt_subject *added = vec_push(&r->subjects);
    if (added == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed host memory for the names of tensors, had none", r->in->name);
    }
    *added = (hrt_subject){.tensor = tensor, .name = name};
    return HR_OK;
}

static hr_status take_subject(hrt_reader *r, byte_span *s, hr_err *err)
{
    uint32_t tensor, name = INTERN_NONE;
    uint64_t length;
    if (!take_v32(s, &tensor) || !varint_take(s, &length) || length > (uint64_t)(s->end - s->at) + 1) {
        return refuse(r, "a whole name", err);
    }
    if (length > 0) {
        name = intern_add(&r->names, (const char *)s->at, (size_t)length - 1);
        s->at += length - 1;
        if (name == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "%s: needed host memory for the names of tensors, had none",
                           r->in->name);
        }
    }
    return add_subject(r, tensor, name, err);
}

static bool take_context(byte_span *s, const hr_event *last, uint8_t category, hr_event *e)
{
    uint8_t changed = 0;
    bool good = take_u8(s, &changed) && (changed & HRT_CHANGES) == 0;
    e->version = last->version;
    e->category = category;
    e->phase = last->phase;
    e->device = last->device;
    e->reserved = last->reserved;
    e->step = last->step;
    e->instr = last->instr;
    e->seq = last->seq + 1;
    good = good && ((changed & HRT_CATEGORY) == 0 || take_u8(s, &e->category));
    good = good && ((changed & HRT_PHASE) == 0 || take_u8(s, &e->phase));
    good = good && ((changed & HRT_DEVICE) == 0 || take_u8(s, &e->device));
    good = good && ((changed & HRT_STEP) == 0 || take_z32(s, last->step, &e->step));
    good = good && ((changed & HRT_INSTR) == 0 || take_z32(s, last->instr, &e->instr));
    good = good && ((changed & HRT_SEQ) == 0 || take_z(s, e->seq, &e->seq));
    good = good && ((changed & HRT_VERSION_AND_RESERVED) == 0 ||
                    (take_v16(s, &e->version) && take_v16(s, &e->reserved)));
    return good && take_z(s, last->time_ns, &e->time_ns);
}

static bool take_said(byte_span *s, unsigned said, unsigned bit, uint64_t against, uint64_t *out)
{
    *out = against;
    return (said & bit) == 0 || take_z(s, against, out);
}

static bool take_memory(byte_span *s, const hrt_last *last, const hrt_known *known, hr_event *e)
{
    hr_event_memory *m = &e->u.memory;
    uint8_t said;
    m->stream = known->stream;
    return take_u8(s, &said) && (said & HRT_SAID) == 0 &&
           take_said(s, said, HRT_ADDRESS, known->address, &m->address) &&
           take_said(s, said, HRT_REQUESTED, known->requested_bytes, &m->requested_bytes) &&
           take_said(s, said, HRT_ALLOCATED, known->allocated_bytes, &m->allocated_bytes) &&
           ((said & HRT_STREAM) == 0 || take_z32(s, known->stream, &m->stream)) &&
           take_said(s, said, HRT_IN_USE, hrt_in_use_after(last, e->kind, m->allocated_bytes),
                     &m->in_use_bytes) &&
           take_said(s, said, HRT_POOL, hrt_pool_after(last, e->kind, m->allocated_bytes), &m->pool_bytes) &&
           ((said & HRT_LARGEST_FREE) == 0 || varint_take(s, &m->largest_free_bytes));
}

static hr_status take_memory_event(hrt_reader *r, byte_span *s, hr_event *e, hr_err *err)
{
    uint64_t number;
    if (!varint_take(s, &number) || number >= r->subjects.count) {
        return refuse(r, "a name that was introduced", err);
    }
    hrt_subject *subject = &r->subjects.data[number];
    if (!take_context(s, &r->last.event, subject->known.category, e) ||
        !take_memory(s, &r->last, &subject->known, e)) {
        return refuse(r, "a whole event", err);
    }
    e->u.memory.tensor = subject->tensor;
    subject->known = hrt_known_of(e);
    r->last.in_use_bytes = e->u.memory.in_use_bytes;
    r->last.pool_bytes = e->u.memory.pool_bytes;
    r->last.event = *e;
    return r->visit(r->context, e, intern_text(&r->names, subject->name), err);
}

static bool take_union(byte_span *s, hr_event *e)
{
    uint64_t length;
    if (!varint_take(s, &length) || length > sizeof e->u || length > (uint64_t)(s->end - s->at)) {
        return false;
    }
    memcpy(&e->u, s->at, (size_t)length);
    s->at += length;
    return true;
}

static hr_status take_record(hrt_reader *r, byte_span *s, hr_err *err)
{
    hr_event e = {0};
    if (!take_u8(s, &e.kind)) {
        return refuse(r, "as many records as are announced", err);
    }
    if (e.kind == HRT_SUBJECT) {
        return take_subject(r, s, err);
    }
    if (trace_is_memory(&e)) {
        return take_memory_event(r, s, &e, err);
    }
    if (!take_context(s, &r->last.event, r->last.event.category, &e) || !take_union(s, &e)) {
        return refuse(r, "a whole event", err);
    }
    r->last.event = e;
    return r->visit(r->context, &e, NULL, err);
}

// ---- frames ---------------------------------------------------------------------------------------------------

// Bytes that must be there.
static hr_status take(hrt_reader *r, size_t bytes, const uint8_t **out, hr_err *err)
{
    *out = (const uint8_t *)input_take(r->in, bytes);
    if (*out != NULL) {
        return HR_OK;
    }
    HR_TRY(input_status(r->in, err));
    return refuse(r, "more bytes: the file was cut", err);
}

static hr_status read_head(hrt_reader *r, hr_err *err)
{
    const uint8_t *head;
    HR_TRY(take(r, HRT_HEAD_BYTES, &head, err));
    if (memcmp(head, hrt_magic, sizeof hrt_magic) != 0) {
        return HR_FAIL(err, READ,
                       "%s: needed the first bytes of a trace, was changed: by a transfer as text?",
                       r->in->name);
    }
    if (hrt_get_u32(head + 12) != hrt_crc(0, head, 12)) {
        return refuse(r, "a head with its checksum", err);
    }
    const uint32_t version = hrt_get_u32(head + 8);
    return version == HRT_VERSION
               ? HR_OK
               : HR_FAIL(err, READ, "%s: needed a trace of version %d, is of version %" PRIu32, r->in->name,
                         HRT_VERSION, version);
}

static hr_status read_payload(hrt_reader *r, const uint8_t *payload, uint32_t bytes, uint32_t records,
                              hr_err *err)
{
    byte_span s = {payload, payload + bytes};
    r->frames++;
    for (uint32_t k = 0; k < records; k++) {
        HR_TRY(take_record(r, &s, err));
    }
    return s.at == s.end ? HR_OK : refuse(r, "no bytes behind the last record", err);
}

static hr_status read_frame(hrt_reader *r, bool *more, hr_err *err)
{
    const uint8_t *head, *payload;
    r->frame_at = input_offset(r->in);
    HR_TRY(take(r, HRT_FRAME_HEAD_BYTES, &head, err));
    const uint32_t bytes = hrt_get_u32(head), records = hrt_get_u32(head + 4), sum = hrt_get_u32(head + 8);
    const uint32_t crc = hrt_crc(0, head, 8);
    if (bytes > HRT_FRAME_MAX) {
        return refuse(r, "at most 4 MiB", err);
    }
    HR_TRY(take(r, bytes, &payload, err));
    if (hrt_crc(crc, payload, bytes) != sum) {
        return refuse(r, "bytes that fit their checksum", err);
    }
    *more = bytes > 0;
    if (*more) {
        return read_payload(r, payload, bytes, records, err);
    }
    if (records != r->frames) {
        return refuse(r, "as many frames as the end announces", err);
    }
    return input_ahead(r->in, 1) == 0 ? input_status(r->in, err) : refuse(r, "nothing behind the end", err);
}

static hr_status read_all(hrt_reader *r, hr_err *err)
{
    bool more = true;
    HR_TRY(read_head(r, err));
    HR_TRY(add_subject(r, HR_NO_ID, INTERN_NONE, err));
    while (more) {
        HR_TRY(read_frame(r, &more, err));
    }
    return HR_OK;
}

hr_status hrt_read_events(input *in, hrt_visitor visit, void *context, hr_err *err)
{
    hrt_reader r = {.in = in, .visit = visit, .context = context};
    hr_status status = read_all(&r, err);
    vec_deinit(&r.subjects);
    intern_deinit(&r.names);
    return status;
}

// ---- as a trace -----------------------------------------------------------------------------------------------

static bool is_mark(uint8_t kind)
{
    return kind == HR_EVENT_BUILD || kind == HR_EVENT_STEP || kind == HR_EVENT_EVAL;
}

static hr_status name_of(trace *t, const hr_event_memory *m, const char *tensor, uint32_t *name, hr_err *err)
{
    char number[16];
    *name = HR_NO_ID;
    if (m->tensor == HR_NO_ID || (tensor != NULL && tensor[0] == '\0')) {
        return HR_OK;
    }
    if (tensor == NULL) {
        snprintf(number, sizeof number, "#%" PRIu32, m->tensor);
        tensor = number;
    }
    *name = intern_add(&t->names, tensor, strlen(tensor));
    return *name != INTERN_NONE
               ? HR_OK
               : HR_FAIL(err, NOMEM, "trace: needed host memory for the names of tensors, had none");
}

static trace_kind kind_of(uint8_t kind)
{
    static const trace_kind kinds[] = {[HR_EVENT_ALLOC] = TRACE_ALLOC,
                                       [HR_EVENT_FREE] = TRACE_FREE,
                                       [HR_EVENT_GROW] = TRACE_GROW,
                                       [HR_EVENT_SHRINK] = TRACE_SHRINK,
                                       [HR_EVENT_OOM] = TRACE_REFUSED};
    return kind == HR_EVENT_STEP ? TRACE_STEP : kinds[kind];
}

static hr_status add_event(void *context, const hr_event *event, const char *tensor, hr_err *err)
{
    trace_builder *b = context;
    const bool is_memory = trace_is_memory(event);
    if (!is_memory && !is_mark(event->kind)) {
        return HR_OK;
    }
    trace_event row = {.time_ns = event->time_ns, .row = (uint32_t)(b->t->rows++), .name = HR_NO_ID};
    if (!is_memory && event->kind != HR_EVENT_STEP) {
        return HR_OK;
    }
    const hr_event_memory *m = &event->u.memory;
    row.kind = (uint8_t)kind_of(event->kind);
    row.device = event->device;
    if (is_memory) {
        const bool of_region = event->kind == HR_EVENT_GROW || event->kind == HR_EVENT_SHRINK;
        row.bytes = of_region ? m->allocated_bytes : m->requested_bytes;
        if (m->stream > UINT16_MAX) {
            return HR_FAIL(err, READ, "trace: row %" PRIu32 ": needed a stream below 65536, had %" PRIu32,
                           row.row, m->stream);
        }
        row.stream = (uint16_t)m->stream;
        HR_TRY(name_of(b->t, m, tensor, &row.name, err));
    }
    return trace_add(b, row, is_memory ? m->address : 0, err);
}

// A transfer as text changes the bytes behind these.
static bool recognise(const char *start, size_t bytes)
{
    return bytes >= 4 && memcmp(start, hrt_magic, 4) == 0;
}

static hr_status read_hrt(input *in, trace *t, hr_err *err)
{
    trace_builder b;
    trace_builder_init(&b, t);
    hr_status status = hrt_read_events(in, add_event, &b, err);
    trace_builder_deinit(&b);
    return status;
}

const trace_format trace_format_hrt = {
    .name = "hrt",
    .line = "a binary trace of headroom (.hrt)",
    .recognise = recognise,
    .read = read_hrt,
};
