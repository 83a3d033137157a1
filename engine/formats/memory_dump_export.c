// SPDX-License-Identifier: Apache-2.0
#include "formats/memory_dump_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "formats/memory_dump.h"

typedef struct dump_writer {
    char *path;         // owned
    file_writer *place; // shows at once whether a file can be written; empty
    const event_source *source;
    bool refused;
    heap_snapshot heap; // at the first refusal
    hr_status status;   // of taking it
    hr_err err;
} dump_writer;

// A dump of TensorFlow's own is of the same kind and not ours to replace: its allocators are called GPU_0_bfc, ours bfc.
static bool is_own(const char *start, size_t bytes)
{
    const size_t length = bytes < 2 ? 0 : (unsigned char)start[1];
    if (bytes < 2 || start[0] != '\n') {
        return false;
    }
    return length == 0 || (length + 2 <= bytes && memchr(start + 2, '_', length) == NULL &&
                           trace_format_memory_dump.recognise(start, bytes));
}

static hr_status dump_open(const char *path, const event_source *source, void **out, hr_err *err)
{
    const size_t bytes = strlen(path) + 1;
    dump_writer *w = hr_calloc(1, sizeof *w);
    char *copy = hr_calloc(bytes, 1);
    hr_status status = w == NULL || copy == NULL
                           ? HR_FAIL(err, NOMEM, "%s: no host memory for a memory dump", path)
                           : file_writer_open(path, &w->place, err);
    if (status != HR_OK) {
        hr_free(copy);
        hr_free(w);
        return status;
    }
    memcpy(copy, path, bytes);
    w->path = copy;
    w->source = source;
    *out = w;
    return HR_OK;
}

static void dump_sink(void *writer, const hr_event *event)
{
    dump_writer *w = writer;
    const event_source *source = w->source;
    if (event->kind == HR_EVENT_OOM && event->device == 0 && !w->refused && source->snapshot != NULL) {
        w->refused = true;
        w->status = source->snapshot(source->context, 0, &w->heap, &w->err);
    }
}

static hr_status dump_close(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err)
{
    dump_writer *w = writer;
    hr_status status = give_up ? HR_OK : w->status;
    file_writer_abandon(w->place);
    if (status != HR_OK && err != NULL) {
        *err = w->err;
    }
    if (status == HR_OK && !give_up) {
        status = memory_dump_write(w->path, w->refused ? &w->heap : &heaps[0], err);
    }
    heap_snapshot_deinit(&w->heap);
    hr_free(w->path);
    hr_free(w);
    return status;
}

const trace_writer trace_writer_memory_dump = {
    .about = {"memory_dump", ".pb",
              "TensorFlow's MemoryDump of the heap at the first failure, or at the end"},
    .is_own = is_own,
    .wants_heaps = true,
    .open = dump_open,
    .sink = dump_sink,
    .close = dump_close,
};
