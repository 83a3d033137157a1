// SPDX-License-Identifier: Apache-2.0
// Memory events, and the marks that part them: build, step and eval rows carry no bytes.
#include "formats/csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/row_file.h"

typedef struct csv_writer {
    row_file file;
    const event_source *source;
} csv_writer;

static bool is_own(const char *start, size_t bytes)
{
    const size_t header = sizeof EVENTS_CSV_HEADER - 1;
    return bytes >= header && memcmp(start, EVENTS_CSV_HEADER, header) == 0;
}

static hr_status csv_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    csv_writer *csv = hr_calloc(1, sizeof *csv);
    if (csv == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a trace, had none", path, sizeof *csv);
    }
    csv->source = source;
    hr_status status = row_file_open(&csv->file, path, err);
    if (status != HR_OK) {
        hr_free(csv);
        return status;
    }
    text_append(&csv->file.row, "%s", EVENTS_CSV_HEADER);
    row_file_put(&csv->file);
    *out = csv;
    return HR_OK;
}

static void append_tensor(csv_writer *csv, const hr_event *event, uint32_t tensor)
{
    event_context subject = {0};
    if (tensor != HR_NO_ID && csv->source->describe != NULL) {
        csv->source->describe(csv->source->context, event, &subject);
    }
    if (subject.tensor != NULL) {
        row_append_csv(&csv->file.row, subject.tensor);
    } else if (tensor != HR_NO_ID) {
        text_append(&csv->file.row, "#%" PRIu32, tensor);
    }
}

static bool is_mark(uint8_t kind)
{
    return kind == HR_EVENT_BUILD || kind == HR_EVENT_STEP || kind == HR_EVENT_EVAL;
}

static void csv_sink(void *writer, const hr_event *event)
{
    csv_writer *csv = writer;
    if (!trace_is_memory(event) && !is_mark(event->kind)) {
        return;
    }
    const hr_event_memory none = {.tensor = HR_NO_ID};
    const hr_event_memory *memory = trace_is_memory(event) ? &event->u.memory : &none;
    text *row = &csv->file.row;
    text_append(row, "%" PRIu64 ",%" PRIu32 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", event->time_ns,
                event->step, hr_event_name((hr_event_kind)event->kind), memory->address,
                memory->requested_bytes, memory->allocated_bytes);
    append_tensor(csv, event, memory->tensor);
    text_append(row, ",%" PRIu32 "\n", memory->stream);
    row_file_put(&csv->file);
}

static hr_status csv_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    (void)heaps;
    csv_writer *csv = writer;
    hr_status status = row_file_close(&csv->file, give_up, err);
    hr_free(csv);
    return status;
}

const trace_writer trace_writer_csv = {
    .about = {"csv", ".csv", "one row an event, headroom's own columns"},
    .is_own = is_own,
    .open = csv_open,
    .sink = csv_sink,
    .failure = row_file_failure,
    .close = csv_close,
};
