// SPDX-License-Identifier: Apache-2.0
// Events into files: one table of writers, one row each. Whoever tells events (the engine, a replay) opens an exporter,
// hands it every event in order, and closes it.
//
//   events ─▶ exporter_sink ─▶ row.sink ─▶ temporary file          exporter_close ─▶ row.close ─▶ the file is there
//                                 └─ asks the source: what is this tensor, how is the heap now
//
// Files are written whole or not at all. What fails on the way is kept and returned by close: a sink returns nothing.
// One thread.
#ifndef FORMATS_EXPORTER_H
#define FORMATS_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/status.h"
#include "headroom/trace.h"

#include "events/heap.h"

// What an event is about, as far as its source knows; NULL: not known. Texts live until the sink returns.
typedef struct event_context {
    const char *tensor; // "conv1/weights:grad"
    const char *op;     // the operation it is taken for, or freed behind: "conv1/conv2d_bwd_weights"
    const char *dtype;  // "float32"
    const char *shape;  // "[128,32,32,3]"
} event_context;

// Who tells the events. Functions may be NULL: the files then lack what they would have said. Asked within a sink,
// they answer for that moment: counters and heap as they are after the event (of an OOM: as they were when it was
// refused).
typedef struct event_source {
    void (*describe)(void *context, const hr_event *event, event_context *out); // *out is zeroed before
    // The allocator's name, "bfc", and its counters; NULL: there is no heap.
    const char *(*counters)(void *context, uint8_t device, heap_counters *out);
    // The caller's to deinit; no chunks where there is no heap. NOMEM.
    hr_status (*snapshot)(void *context, uint8_t device, heap_snapshot *out, hr_err *err);
    void *context;
    uint32_t device_count; // at least 1
} event_source;

static inline bool trace_is_memory(const hr_event *event)
{
    return event->kind >= HR_EVENT_ALLOC && event->kind <= HR_EVENT_OOM;
}

// One kind of file.
typedef struct trace_writer {
    hr_trace_format about; // name, suffix, line
    // Whether a file that begins so was written by this row: only then it is replaced.
    bool (*is_own)(const char *start, size_t bytes);
    bool wants_heaps; // close needs the heaps of the last moment
    // The source is borrowed until close. WRITE, NOMEM.
    hr_status (*open)(const char *path, const event_source *source, void **writer, hr_err *err);
    void (*sink)(void *writer, const hr_event *event);
    // What already keeps the file from being written; NULL: nothing is written before close.
    hr_status (*failure)(const void *writer, hr_err *err);
    // Frees the writer in every case. `heaps`: one per device; NULL where they are not wanted. `give_up`: no file is
    // to appear, returns HR_OK.
    hr_status (*close)(void *writer, const heap_snapshot *heaps, bool give_up, hr_err *err);
} trace_writer;

extern const trace_writer *const trace_writers[]; // ends with NULL

// Which row "FILE.suffix" or "FORMAT:FILE" means; *path points into `file`. USAGE error with the list of those there
// are.
HR_MUST_CHECK hr_status trace_writer_find(const char *file, const trace_writer **row, const char **path,
                                          hr_err *err);

typedef struct exporter exporter;

// `file` as above. WRITE error when something else than an older file of the same kind stands there: it stays as it is.
HR_MUST_CHECK hr_status exporter_open(const char *file, const event_source *source, exporter **out,
                                      hr_err *err);
// Whether the source's snapshot will be asked for.
bool exporter_wants_heaps(const exporter *e);
void exporter_sink(void *exporter, const hr_event *event); // a trace_sink
// HR_OK, or the error that close will return: a disk that is full needs nobody to wait for the end.
hr_status exporter_failure(const exporter *e, hr_err *err);
// The file is there, or an error says why not. Frees in every case; NULL is fine.
HR_MUST_CHECK hr_status exporter_close(exporter *e, hr_err *err);
void exporter_abandon(exporter *e); // no file; NULL is fine

#endif
