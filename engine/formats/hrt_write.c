// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/host_mem.h"
#include "base/intern.h"
#include "formats/hrt.h"
#include "formats/hrt_code.h"
#include "formats/row_file.h"
#include "formats/varint.h"

enum { FRAME_BYTES = 64 << 10, KEY_DIGITS = 8 };

typedef struct hrt_writer {
    row_file file;
    const event_source *source;
    text payload;
    uint32_t records, frames;
    hrt_last last;
    intern subjects;      // "id in hex:name"; number k is subject k + 1
    VEC(hrt_known) known; // by subject, 0 for none
    text key;
} hrt_writer;

static void put_bytes(text *to, const void *bytes, size_t count)
{
    text_append_bytes(to, bytes, count);
}

static void put_u8(text *to, uint8_t value)
{
    put_bytes(to, &value, 1);
}

static void put_v(text *to, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    const size_t count = varint_put(bytes, value);
    put_bytes(to, bytes, count);
}

static void put_z(text *to, uint64_t value, uint64_t against)
{
    put_v(to, varint_fold(value - against));
}

static void fail(hrt_writer *w)
{
    hr_err err;
    row_file_fail(&w->file, HR_FAIL(&err, NOMEM, "trace: needed memory for one event, had none"), &err);
}

// ---- frames ---------------------------------------------------------------------------------------------------

static void put_frame(hrt_writer *w, uint32_t bytes, uint32_t count)
{
    uint8_t head[HRT_FRAME_HEAD_BYTES];
    hrt_put_u32(head, bytes);
    hrt_put_u32(head + 4, count);
    hrt_put_u32(head + 8, hrt_crc(hrt_crc(0, head, 8), w->payload.data, bytes));
    put_bytes(&w->file.row, head, sizeof head);
    put_bytes(&w->file.row, w->payload.data, bytes);
    row_file_put(&w->file);
}

static void end_frame(hrt_writer *w)
{
    if (w->payload.failed) {
        fail(w);
        return;
    }
    if (w->records > 0) {
        put_frame(w, (uint32_t)w->payload.length, w->records);
        w->frames++;
    }
    w->payload.length = 0;
    w->records = 0;
}

static bool is_own(const char *start, size_t bytes)
{
    return bytes >= sizeof hrt_magic && memcmp(start, hrt_magic, sizeof hrt_magic) == 0;
}

static hr_status hrt_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    uint8_t head[HRT_HEAD_BYTES] = {0};
    hrt_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a trace, had none", path, sizeof *w);
    }
    w->source = source;
    hr_status status = vec_push(&w->known) == NULL
                           ? HR_FAIL(err, NOMEM, "%s: needed memory to write a trace, had none", path)
                           : row_file_open(&w->file, path, err);
    if (status != HR_OK) {
        vec_deinit(&w->known);
        hr_free(w);
        return status;
    }
    memcpy(head, hrt_magic, sizeof hrt_magic);
    hrt_put_u32(head + 8, HRT_VERSION);
    hrt_put_u32(head + 12, hrt_crc(0, head, 12));
    put_bytes(&w->file.row, head, sizeof head);
    row_file_put(&w->file);
    *out = w;
    return HR_OK;
}

// ---- records --------------------------------------------------------------------------------------------------

static void put_subject(hrt_writer *w, uint32_t tensor, const char *name)
{
    const size_t length = name == NULL ? 0 : strnlen(name, HRT_NAME_MAX);
    put_u8(&w->payload, HRT_SUBJECT);
    put_v(&w->payload, tensor);
    put_v(&w->payload, name == NULL ? 0 : length + 1);
    put_bytes(&w->payload, name == NULL ? "" : name, length);
    w->records++;
}

// The number of the event's subject, introduced when it is new; 0: it has none.
static uint32_t subject_of(hrt_writer *w, const hr_event *event)
{
    event_context subject = {0};
    const uint32_t tensor = event->u.memory.tensor;
    if (tensor == HR_NO_ID) {
        return 0;
    }
    if (w->source->describe != NULL) {
        w->source->describe(w->source->context, event, &subject);
    }
    char digits[KEY_DIGITS];
    for (unsigned k = 0; k < KEY_DIGITS; k++) {
        digits[k] = "0123456789abcdef"[tensor >> 4 * k & 15];
    }
    w->key.length = 0;
    put_bytes(&w->key, digits, sizeof digits);
    if (subject.tensor != NULL) { // "" is a name too
        put_bytes(&w->key, ":", 1);
        put_bytes(&w->key, subject.tensor, strnlen(subject.tensor, HRT_NAME_MAX));
    }
    const uint32_t number =
        w->key.failed ? INTERN_NONE : intern_add(&w->subjects, w->key.data, w->key.length);
    const bool is_new = number != INTERN_NONE && number + 1 == w->known.count;
    if (number == INTERN_NONE || number + 1 > w->known.count || (is_new && vec_push(&w->known) == NULL)) {
        fail(w); // numbers run ahead once a push has failed
        return 0;
    }
    if (is_new) {
        put_subject(w, tensor, subject.tensor);
    }
    return number + 1;
}

static uint8_t changes_of(const hr_event *e, const hr_event *last, uint8_t category)
{
    unsigned changed = 0;
    changed |= e->category != category ? HRT_CATEGORY : 0;
    changed |= e->phase != last->phase ? HRT_PHASE : 0;
    changed |= e->device != last->device ? HRT_DEVICE : 0;
    changed |= e->step != last->step ? HRT_STEP : 0;
    changed |= e->instr != last->instr ? HRT_INSTR : 0;
    changed |= e->seq != last->seq + 1 ? HRT_SEQ : 0;
    changed |= e->version != last->version || e->reserved != last->reserved ? HRT_VERSION_AND_RESERVED : 0;
    return (uint8_t)changed;
}

// `category`: what is expected.
static void put_context(text *to, const hr_event *e, const hr_event *last, uint8_t category)
{
    const uint8_t changed = changes_of(e, last, category);
    put_u8(to, changed);
    const struct {
        uint8_t bit, value;
    } small[] = {{HRT_CATEGORY, e->category}, {HRT_PHASE, e->phase}, {HRT_DEVICE, e->device}};
    for (size_t k = 0; k < sizeof small / sizeof *small; k++) {
        if ((changed & small[k].bit) != 0) {
            put_u8(to, small[k].value);
        }
    }
    if ((changed & HRT_STEP) != 0) {
        put_z(to, e->step, last->step);
    }
    if ((changed & HRT_INSTR) != 0) {
        put_z(to, e->instr, last->instr);
    }
    if ((changed & HRT_SEQ) != 0) {
        put_z(to, e->seq, last->seq + 1);
    }
    if ((changed & HRT_VERSION_AND_RESERVED) != 0) {
        put_v(to, e->version);
        put_v(to, e->reserved);
    }
    put_z(to, e->time_ns, last->time_ns);
}

static void put_memory(text *to, const hrt_last *last, const hrt_known *known, const hr_event *e)
{
    const hr_event_memory *m = &e->u.memory;
    const struct {
        uint64_t value, against;
    } numbers[] = {
        {m->address, known->address},
        {m->requested_bytes, known->requested_bytes},
        {m->allocated_bytes, known->allocated_bytes},
        {m->stream, known->stream},
        {m->in_use_bytes, hrt_in_use_after(last, e->kind, m->allocated_bytes)},
        {m->pool_bytes, hrt_pool_after(last, e->kind, m->allocated_bytes)},
    };
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    unsigned said = m->largest_free_bytes != 0 ? HRT_LARGEST_FREE : 0;
    for (unsigned k = 0; k < NUMBERS; k++) {
        said |= numbers[k].value != numbers[k].against ? 1u << k : 0;
    }
    put_u8(to, (uint8_t)said);
    for (unsigned k = 0; k < NUMBERS; k++) {
        if ((said & 1u << k) != 0) {
            put_z(to, numbers[k].value, numbers[k].against);
        }
    }
    if ((said & HRT_LARGEST_FREE) != 0) {
        put_v(to, m->largest_free_bytes);
    }
}

static void put_union(text *to, const hr_event *e)
{
    const char *bytes = (const char *)&e->u;
    size_t length = sizeof e->u;
    while (length > 0 && bytes[length - 1] == 0) {
        length--;
    }
    put_v(to, length);
    put_bytes(to, bytes, length);
}

static void put_memory_event(hrt_writer *w, const hr_event *event)
{
    const uint32_t subject = subject_of(w, event);
    hrt_known *known = &w->known.data[subject];
    put_u8(&w->payload, event->kind);
    put_v(&w->payload, subject);
    put_context(&w->payload, event, &w->last.event, known->category);
    put_memory(&w->payload, &w->last, known, event);
    *known = hrt_known_of(event);
    w->last.in_use_bytes = event->u.memory.in_use_bytes;
    w->last.pool_bytes = event->u.memory.pool_bytes;
}

static void hrt_sink(void *writer, const hr_event *event)
{
    hrt_writer *w = writer;
    if (event->kind == HR_EVENT_NONE) { // says nothing, and is the mark of a subject
        return;
    }
    if (trace_is_memory(event)) {
        put_memory_event(w, event);
    } else {
        put_u8(&w->payload, event->kind);
        put_context(&w->payload, event, &w->last.event, w->last.event.category);
        put_union(&w->payload, event);
    }
    w->last.event = *event;
    w->records++;
    if (w->payload.failed || w->payload.length >= FRAME_BYTES) {
        end_frame(w);
    }
}

static hr_status hrt_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    (void)heaps;
    hrt_writer *w = writer;
    end_frame(w);
    put_frame(w, 0, w->frames);
    hr_status status = row_file_close(&w->file, give_up, err);
    intern_deinit(&w->subjects);
    vec_deinit(&w->known);
    text_deinit(&w->payload);
    text_deinit(&w->key);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_hrt = {
    .about = {"hrt", ".hrt", "every event as it was, in few bytes; read back by headroom alone"},
    .is_own = is_own,
    .open = hrt_open,
    .sink = hrt_sink,
    .failure = row_file_failure,
    .close = hrt_close,
};
