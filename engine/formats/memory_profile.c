// SPDX-License-Identifier: Apache-2.0
#include "formats/memory_profile.h"

#include <inttypes.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/row_file.h"

enum { PROFILE_DEVICES = 256 };

typedef struct profile_writer {
    row_file file;
    const event_source *source;
    uint64_t peak_in_use_bytes[PROFILE_DEVICES];
} profile_writer;

static bool is_own(const char *start, size_t bytes)
{
    const size_t header = sizeof FORMATS_MEMORY_PROFILE_HEADER - 1;
    return bytes >= header && memcmp(start, FORMATS_MEMORY_PROFILE_HEADER, header) == 0;
}

static hr_status profile_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    profile_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write a profile, had none", path, sizeof *w);
    }
    w->source = source;
    hr_status status = row_file_open(&w->file, path, err);
    if (status != HR_OK) {
        hr_free(w);
        return status;
    }
    text_append(&w->file.row, "%s", FORMATS_MEMORY_PROFILE_HEADER);
    row_file_put(&w->file);
    *out = w;
    return HR_OK;
}

static void append_heap(profile_writer *w, const hr_event *event)
{
    const event_source *source = w->source;
    const uint64_t in_use_bytes = event->u.memory.in_use_bytes;
    text *row = &w->file.row;
    heap_counters c = {0};
    const char *heap = source->counters == NULL ? NULL : source->counters(source->context, event->device, &c);
    text_append(row, "GPU_%u%s%s", event->device, heap == NULL ? "" : "_", heap == NULL ? "" : heap);
    text_append(row, ",0,%" PRIu64 ",", in_use_bytes);
    if (heap != NULL && c.limit_bytes >= in_use_bytes) {
        text_append(row, "%" PRIu64, c.limit_bytes - in_use_bytes);
    }
    text_append_bytes(row, ",", 1);
    if (heap != NULL) {
        text_append(row, "%.6f", c.fragmentation);
    }
}

static void append_subject(profile_writer *w, const hr_event *event)
{
    text *row = &w->file.row;
    event_context s = {0};
    if (w->source->describe != NULL) {
        w->source->describe(w->source->context, event, &s);
    }
    row_append_csv(row, s.op == NULL ? "" : s.op);
    text_append(row, ",%" PRIu32 ",%s,", event->step, hr_category_name((hr_category)event->category));
    row_append_csv(row, s.dtype == NULL ? "" : s.dtype);
    text_append_bytes(row, ",", 1);
    row_append_csv(row, s.shape == NULL ? "" : s.shape);
    text_append_bytes(row, "\n", 1);
}

static void profile_sink(void *writer, const hr_event *event)
{
    profile_writer *w = writer;
    const hr_event_memory *m = &event->u.memory;
    if (event->kind != HR_EVENT_ALLOC && event->kind != HR_EVENT_FREE) {
        return;
    }
    uint64_t *peak_bytes = &w->peak_in_use_bytes[event->device];
    *peak_bytes = m->in_use_bytes > *peak_bytes ? m->in_use_bytes : *peak_bytes;
    text_append(&w->file.row, "%" PRIu64 ",%s,", event->time_ns,
                event->kind == HR_EVENT_ALLOC ? "MemoryAllocation" : "MemoryDeallocation");
    append_heap(w, event);
    text_append(&w->file.row, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", *peak_bytes,
                m->requested_bytes, m->allocated_bytes, m->address);
    append_subject(w, event);
    row_file_put(&w->file);
}

static hr_status profile_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    (void)heaps;
    profile_writer *w = writer;
    hr_status status = row_file_close(&w->file, give_up, err);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_memory_profile = {
    .about = {"memory_profile", "", "CSV with the fields of TensorFlow's Memory Profile events"},
    .is_own = is_own,
    .open = profile_open,
    .sink = profile_sink,
    .failure = row_file_failure,
    .close = profile_close,
};
