// SPDX-License-Identifier: Apache-2.0
#include "formats/chrome.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/row_file.h"

#define CHROME_BEGIN                                                                                         \
    "{\"otherData\":{\"schema\":\"headroom.chrome/1\"},\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"

enum { CHROME_DEVICES = 256 };

// Threads of a device's process.
enum { TID_STEPS = 1, TID_PHASES = 2, TID_DRIVER = 3 };

typedef struct chrome_device {
    bool seen;
    bool in_phase;
    uint8_t phase;
    uint64_t step_end_ns;                               // of the last step or evaluation
    uint64_t in_use_bytes, pool_bytes, requested_bytes; // as they were last told
} chrome_device;

typedef struct chrome_writer {
    row_file file;
    const event_source *source;
    bool any; // an event was written: the next begins with a comma
    uint64_t last_ns;
    chrome_device devices[CHROME_DEVICES];
} chrome_writer;

static bool is_own(const char *start, size_t bytes)
{
    const size_t sign = sizeof CHROME_BEGIN - 1;
    return bytes >= sign && memcmp(start, CHROME_BEGIN, sign) == 0;
}

static hr_status chrome_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    chrome_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a trace, had none", path, sizeof *w);
    }
    w->source = source;
    hr_status status = row_file_open(&w->file, path, err);
    if (status != HR_OK) {
        hr_free(w);
        return status;
    }
    text_append(&w->file.row, "%s", CHROME_BEGIN);
    row_file_put(&w->file);
    *out = w;
    return HR_OK;
}

// ---- one event of the file ------------------------------------------------------------------------------------

// Everything up to and including "args":{ ; the caller appends its arguments and calls end_event.
static text *begin_event(chrome_writer *w, char phase, uint64_t ns, unsigned device, unsigned thread)
{
    text *row = &w->file.row;
    text_append(row, "%s{\"ph\":\"%c\",\"ts\":%" PRIu64 ".%03u,\"pid\":%u,\"tid\":%u,", w->any ? ",\n" : "",
                phase, ns / 1000, (unsigned)(ns % 1000), device, thread);
    w->any = true;
    return row;
}

static void end_event(chrome_writer *w)
{
    text_append(&w->file.row, "}}");
    row_file_put(&w->file);
}

static void put_name(chrome_writer *w, const char *kind, unsigned device, unsigned thread, const char *name)
{
    text *row = begin_event(w, 'M', 0, device, thread);
    text_append(row, "\"name\":\"%s\",\"args\":{\"name\":", kind);
    row_append_json(row, name);
    end_event(w);
}

static chrome_device *device_of(chrome_writer *w, const hr_event *event)
{
    chrome_device *d = &w->devices[event->device];
    if (!d->seen) {
        char name[32];
        (void)snprintf(name, sizeof name, "device %u", event->device);
        d->seen = true;
        put_name(w, "process_name", event->device, 0, name);
        put_name(w, "thread_name", event->device, TID_STEPS, "steps");
        put_name(w, "thread_name", event->device, TID_PHASES, "phases");
        put_name(w, "thread_name", event->device, TID_DRIVER, "driver");
    }
    return d;
}

// ---- counters -------------------------------------------------------------------------------------------------

static void put_counter(chrome_writer *w, const hr_event *event, const char *name, uint64_t value)
{
    text *row = begin_event(w, 'C', event->time_ns, event->device, 0);
    text_append(row, "\"name\":\"%s\",\"args\":{\"bytes\":%" PRIu64, name, value);
    end_event(w);
}

static void put_counters(chrome_writer *w, chrome_device *d, const hr_event *event)
{
    const hr_event_memory *m = &event->u.memory;
    const uint64_t before_bytes = d->requested_bytes;
    if (event->kind == HR_EVENT_ALLOC) {
        d->requested_bytes += m->requested_bytes;
    } else if (event->kind == HR_EVENT_FREE) {
        d->requested_bytes -= m->requested_bytes < before_bytes ? m->requested_bytes : before_bytes;
    }
    if (d->requested_bytes != before_bytes) {
        put_counter(w, event, "requested", d->requested_bytes);
    }
    if (d->in_use_bytes != m->in_use_bytes) {
        put_counter(w, event, "in_use", d->in_use_bytes = m->in_use_bytes);
    }
    if (d->pool_bytes != m->pool_bytes) {
        put_counter(w, event, "pool", d->pool_bytes = m->pool_bytes);
    }
}

// ---- slices ---------------------------------------------------------------------------------------------------

static void end_phase(chrome_writer *w, chrome_device *d, unsigned device, uint64_t now_ns)
{
    if (d->in_phase) {
        d->in_phase = false;
        text *row = begin_event(w, 'E', now_ns, device, TID_PHASES);
        text_append(row, "\"args\":{");
        end_event(w);
    }
}

// A phase lasts from its first instruction that takes or gives memory to that of the next.
static void follow_phase(chrome_writer *w, chrome_device *d, const hr_event *event)
{
    const bool inside = trace_is_memory(event) && event->instr != HR_NO_ID && event->phase < HR_PHASE_COUNT;
    if (d->in_phase && (!inside || d->phase != event->phase)) {
        end_phase(w, d, event->device, event->time_ns);
    }
    if (inside && !d->in_phase) {
        d->in_phase = true;
        d->phase = event->phase;
        text *row = begin_event(w, 'B', event->time_ns, event->device, TID_PHASES);
        text_append(row, "\"name\":\"%s\",\"args\":{\"step\":%" PRIu32, hr_phase_name((hr_phase)event->phase),
                    event->step);
        end_event(w);
    }
}

static void append_real(text *row, const char *name, double value)
{
    if (isfinite(value)) {
        text_append(row, ",\"%s\":%.9g", name, value);
    }
}

static void append_count(text *row, const char *name, uint64_t value)
{
    if (value != 0) {
        text_append(row, ",\"%s\":%" PRIu64, name, value);
    }
}

// A replayed step does not say how long it took: it lasts from the end of the one before.
static void put_step(chrome_writer *w, chrome_device *d, const hr_event *event)
{
    const hr_event_step *s = &event->u.step;
    const bool trains = event->kind == HR_EVENT_STEP;
    const uint64_t now_ns = event->time_ns,
                   since_ns = now_ns - (d->step_end_ns < now_ns ? d->step_end_ns : now_ns);
    const uint64_t told_ns = s->duration_ns < now_ns ? s->duration_ns : now_ns;
    const uint64_t length_ns = s->duration_ns == 0 ? since_ns : told_ns;
    text *row = begin_event(w, 'X', now_ns - length_ns, event->device, TID_STEPS);
    text_append(row, "\"dur\":%" PRIu64 ".%03u,\"name\":\"%s %" PRIu32 "\",", length_ns / 1000,
                (unsigned)(length_ns % 1000), trains ? "step" : "evaluation",
                trains ? event->step : s->count);
    text_append(row, "\"args\":{\"number\":%" PRIu32, trains ? event->step : s->count);
    append_count(row, "samples", s->samples);
    append_count(row, "peak_in_use_bytes", s->peak_in_use_bytes);
    append_count(row, "wait_ns", s->wait_ns);
    append_real(row, "loss", s->loss);
    append_real(row, "accuracy", s->accuracy);
    end_event(w);
    d->step_end_ns = now_ns;
}

// ---- allocations ----------------------------------------------------------------------------------------------

static void append_text(text *row, const char *name, const char *value)
{
    if (value != NULL) {
        text_append(row, ",\"%s\":", name);
        row_append_json(row, value);
    }
}

static void append_subject_name(text *row, const event_context *s, const hr_event *event)
{
    char number[32] = "memory";
    if (event->u.memory.tensor != HR_NO_ID) {
        (void)snprintf(number, sizeof number, "#%" PRIu32, event->u.memory.tensor);
    }
    row_append_json(row, s->tensor != NULL ? s->tensor : number);
}

// Begin and end find each other by category, name and id: an address lives once at a time.
static void put_span(chrome_writer *w, const hr_event *event, const event_context *s)
{
    const hr_event_memory *m = &event->u.memory;
    const bool begins = event->kind == HR_EVENT_ALLOC;
    text *row = begin_event(w, begins ? 'b' : 'e', event->time_ns, event->device, 0);
    text_append(row, "\"cat\":\"allocation\",\"id\":\"%u.%" PRIx64 "\",\"name\":", event->device, m->address);
    append_subject_name(row, s, event);
    text_append(row, ",\"args\":{");
    if (begins) {
        text_append(row,
                    "\"address\":\"0x%" PRIx64 "\",\"requested_bytes\":%" PRIu64
                    ",\"allocated_bytes\":%" PRIu64 ",\"stream\":%" PRIu32 ",\"category\":\"%s\"",
                    m->address, m->requested_bytes, m->allocated_bytes, m->stream,
                    hr_category_name((hr_category)event->category));
        append_text(row, "op", s->op);
        append_text(row, "dtype", s->dtype);
        append_text(row, "shape", s->shape);
    }
    end_event(w);
}

static void put_instant(chrome_writer *w, const hr_event *event, const event_context *s)
{
    const hr_event_memory *m = &event->u.memory;
    const bool refused = event->kind == HR_EVENT_OOM;
    text *row = begin_event(w, 'i', event->time_ns, event->device, TID_DRIVER);
    text_append(row, "\"s\":\"%c\",\"name\":\"%s\",\"args\":{\"bytes\":%" PRIu64, refused ? 'g' : 'p',
                refused ? "out of memory" : hr_event_name((hr_event_kind)event->kind),
                refused ? m->requested_bytes : m->allocated_bytes);
    if (refused) {
        text_append(row, ",\"largest_free_bytes\":%" PRIu64, m->largest_free_bytes);
        append_text(row, "tensor", s->tensor);
    }
    end_event(w);
}

static void put_memory(chrome_writer *w, chrome_device *d, const hr_event *event)
{
    event_context s = {0};
    if (event->u.memory.tensor != HR_NO_ID && w->source->describe != NULL) {
        w->source->describe(w->source->context, event, &s);
    }
    if (event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE) {
        put_span(w, event, &s);
    } else {
        put_instant(w, event, &s);
    }
    put_counters(w, d, event);
}

static void chrome_sink(void *writer, const hr_event *event)
{
    chrome_writer *w = writer;
    const bool ends_step = event->kind == HR_EVENT_STEP || event->kind == HR_EVENT_EVAL;
    if (!trace_is_memory(event) && !ends_step) {
        return;
    }
    chrome_device *d = device_of(w, event);
    w->last_ns = event->time_ns > w->last_ns ? event->time_ns : w->last_ns;
    follow_phase(w, d, event);
    if (ends_step) {
        put_step(w, d, event);
    } else {
        put_memory(w, d, event);
    }
}

static hr_status chrome_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    (void)heaps;
    chrome_writer *w = writer;
    for (unsigned k = 0; k < CHROME_DEVICES; k++) {
        end_phase(w, &w->devices[k], k, w->last_ns);
    }
    text_append(&w->file.row, "\n]}\n");
    row_file_put(&w->file);
    hr_status status = row_file_close(&w->file, give_up, err);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_chrome = {
    .about = {"chrome", ".json", "Chrome trace JSON, for chrome://tracing and ui.perfetto.dev"},
    .is_own = is_own,
    .open = chrome_open,
    .sink = chrome_sink,
    .failure = row_file_failure,
    .close = chrome_close,
};
