// SPDX-License-Identifier: Apache-2.0
// Memory events, and the marks that part them: build, step and eval rows carry no bytes.
#include "trace/csv.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"

struct trace_csv {
    file_writer *writer;
    trace_tensor_name name;
    void *context;
    text row;
    hr_status status; // of the first row that could not be written; the rest is dropped
    hr_err err;
};

hr_status trace_csv_open(const char *path, trace_tensor_name name, void *context, trace_csv **out,
                         hr_err *err)
{
    *out = NULL;
    trace_csv *csv = hr_calloc(1, sizeof *csv);
    if (csv == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a trace, had none", path, sizeof *csv);
    }
    csv->name = name;
    csv->context = context;
    hr_status status = file_writer_open(path, &csv->writer, err);
    if (status != HR_OK) {
        hr_free(csv);
        return status;
    }
    csv->status = file_writer_add(csv->writer, TRACE_CSV_HEADER, sizeof TRACE_CSV_HEADER - 1, &csv->err);
    *out = csv;
    return HR_OK;
}

// RFC 4180: a field with a separator, quote or line end stands in quotes, with its quotes doubled.
static void append_field(text *row, const char *field)
{
    if (strpbrk(field, ",\"\r\n") == NULL) {
        text_append_bytes(row, field, strlen(field));
        return;
    }
    text_append_bytes(row, "\"", 1);
    for (const char *c = field; *c != '\0'; c++) {
        text_append_bytes(row, "\"\"", *c == '"' ? 2 : 0);
        text_append_bytes(row, c, *c == '"' ? 0 : 1);
    }
    text_append_bytes(row, "\"", 1);
}

static void append_tensor(trace_csv *csv, uint32_t tensor)
{
    const char *name = csv->name == NULL || tensor == HR_NO_ID ? NULL : csv->name(csv->context, tensor);
    if (name != NULL) {
        append_field(&csv->row, name);
    } else if (tensor != HR_NO_ID) {
        text_append(&csv->row, "#%" PRIu32, tensor);
    }
}

static bool is_mark(uint8_t kind)
{
    return kind == HR_EVENT_BUILD || kind == HR_EVENT_STEP || kind == HR_EVENT_EVAL;
}

static bool is_memory(uint8_t kind)
{
    return kind >= HR_EVENT_ALLOC && kind <= HR_EVENT_OOM;
}

void trace_csv_sink(void *context, const hr_event *event)
{
    trace_csv *csv = context;
    if (csv->status != HR_OK || (!is_memory(event->kind) && !is_mark(event->kind))) {
        return;
    }
    hr_event_memory none = {.tensor = HR_NO_ID};
    const hr_event_memory *memory = is_memory(event->kind) ? &event->u.memory : &none;
    csv->row.length = 0;
    text_append(&csv->row, "%" PRIu64 ",%" PRIu32 ",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", event->time_ns,
                event->step, hr_event_name((hr_event_kind)event->kind), memory->address,
                memory->requested_bytes, memory->allocated_bytes);
    append_tensor(csv, memory->tensor);
    text_append(&csv->row, ",%" PRIu32 "\n", memory->stream);
    csv->status = csv->row.failed ? HR_FAIL(&csv->err, NOMEM, "trace: needed memory for one row, had none")
                                  : file_writer_add(csv->writer, csv->row.data, csv->row.length, &csv->err);
}

hr_status trace_csv_close(trace_csv *csv, hr_err *err)
{
    if (csv == NULL) {
        return HR_OK;
    }
    hr_status status = csv->status;
    if (status == HR_OK) {
        status = file_writer_commit(csv->writer, err);
    } else {
        file_writer_abandon(csv->writer);
        if (err != NULL) {
            *err = csv->err;
        }
    }
    text_deinit(&csv->row);
    hr_free(csv);
    return status;
}
