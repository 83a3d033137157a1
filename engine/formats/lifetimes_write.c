// SPDX-License-Identifier: Apache-2.0
#include "formats/lifetimes_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/live_table.h"
#include "formats/row_file.h"

typedef struct lifetimes_writer {
    row_file file;
    live_table live; // since: lower
    uint64_t events, allocations;
} lifetimes_writer;

static bool is_own(const char *start, size_t bytes)
{
    const size_t header = sizeof TRACE_LIFETIMES_HEADER - 1;
    return bytes >= header && memcmp(start, TRACE_LIFETIMES_HEADER, header) == 0;
}

static hr_status lifetimes_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    (void)source;
    lifetimes_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write lifetimes, had none", path, sizeof *w);
    }
    hr_status status = row_file_open(&w->file, path, err);
    if (status != HR_OK) {
        hr_free(w);
        return status;
    }
    text_append(&w->file.row, "%s", TRACE_LIFETIMES_HEADER);
    row_file_put(&w->file);
    *out = w;
    return HR_OK;
}

static void put_lifetime(lifetimes_writer *w, const live_entry *e, uint64_t upper)
{
    text_append(&w->file.row, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", e->since, upper, e->bytes,
                e->id);
    row_file_put(&w->file);
}

static void lifetimes_sink(void *writer, const hr_event *event)
{
    lifetimes_writer *w = writer;
    const hr_event_memory *m = &event->u.memory;
    if ((event->kind != HR_EVENT_ALLOC && event->kind != HR_EVENT_FREE) || event->device != 0) {
        return;
    }
    const uint64_t now = w->events++;
    live_entry ended;
    if (live_take(&w->live, 0, m->address, &ended)) {
        put_lifetime(w, &ended, now);
    }
    const live_entry begun = {
        .address = m->address, .bytes = m->requested_bytes, .id = w->allocations, .since = now};
    if (event->kind == HR_EVENT_ALLOC) {
        w->allocations++;
        if (!live_put(&w->live, &begun)) {
            hr_err err;
            row_file_fail(&w->file, HR_FAIL(&err, NOMEM, "lifetimes: needed memory for what lives, had none"),
                          &err);
        }
    }
}

static int by_id(const void *a, const void *b)
{
    const live_entry *left = a, *right = b;
    return left->id < right->id ? -1 : left->id > right->id ? 1 : 0;
}

// Nothing is taken from the table any more: it may become a list.
static void put_living(lifetimes_writer *w)
{
    live_table *t = &w->live;
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->capacity; k++) {
        if (t->entries[k].address != 0) {
            t->entries[count++] = t->entries[k];
        }
    }
    if (count > 0) {
        qsort(t->entries, count, sizeof *t->entries, by_id);
    }
    for (uint32_t k = 0; k < count; k++) {
        put_lifetime(w, &t->entries[k], w->events);
    }
}

static hr_status lifetimes_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    (void)heaps;
    lifetimes_writer *w = writer;
    put_living(w);
    live_deinit(&w->live);
    hr_status status = row_file_close(&w->file, give_up, err);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_lifetimes = {
    .about = {"lifetimes", "", "buffers as minimalloc and `headroom pack` read them: lower,upper,size,id"},
    .is_own = is_own,
    .open = lifetimes_open,
    .sink = lifetimes_sink,
    .failure = row_file_failure,
    .close = lifetimes_close,
};
