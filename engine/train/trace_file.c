// SPDX-License-Identifier: Apache-2.0
// Trace files: the engine's events, with the names that the programs of the moment give their tensors.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "headroom/trace.h"

#include "base/host_mem.h"
#include "trace/csv.h"
#include "train/engine_impl.h"

struct hr_trace {
    hr_engine *engine;
    trace_csv *csv;
    const hr_event *event; // the one that is being written
};

// A program for a partial batch differs from the full one in sizes, and in numbering where its kernels want other
// workspaces: the bytes tell which of [first, last] is running.
static const char *name_in(const build *b, build_program first, build_program last, const hr_event_memory *m)
{
    const char *name = NULL;
    for (build_program k = first; k <= last; k++) {
        const program *p = b->programs[k];
        if (p == NULL || m->tensor >= p->tensor_count) {
            continue;
        }
        if (p->tensors[m->tensor].bytes == m->requested_bytes) {
            return p->tensors[m->tensor].name;
        }
        name = name == NULL ? p->tensors[m->tensor].name : name;
    }
    return name;
}

// Persistent tensors (instr HR_NO_ID) are numbered as in the training program, also while an evaluation runs.
static const char *name_tensor(void *context, uint32_t id)
{
    (void)id; // as in the event
    const hr_trace *t = context;
    const hr_engine *e = t->engine;
    const hr_event_memory *m = &t->event->u.memory;
    if (e->build == NULL) {
        return NULL;
    }
    return e->eval.running && t->event->instr != HR_NO_ID
               ? name_in(e->build, BUILD_EVAL, BUILD_EVAL_PARTIAL, m)
               : name_in(e->build, BUILD_TRAIN, BUILD_TRAIN_PARTIAL, m);
}

static void write_event(void *context, const hr_event *event)
{
    hr_trace *t = context;
    t->event = event;
    trace_csv_sink(t->csv, event);
}

// A file that stands there already must be a trace of ours. Opening does not wait: it may be a pipe.
static hr_status check_replaceable(const char *path, hr_err *err)
{
    char start[sizeof TRACE_CSV_HEADER - 1];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return HR_OK;
    }
    ssize_t bytes = fd < 0 ? -1 : read(fd, start, sizeof start);
    const char *why = bytes < 0 ? strerror(errno) : "something else";
    if (fd >= 0) {
        (void)close(fd);
    }
    if (bytes == (ssize_t)sizeof start && memcmp(start, TRACE_CSV_HEADER, sizeof start) == 0) {
        return HR_OK;
    }
    (void)HR_FAIL(err, WRITE, "%s: needed a trace of headroom or no file, had: %s; it stays as it is", path,
                  why);
    hr_err_try(err, "--trace ANOTHER.csv");
    return HR_WRITE;
}

hr_status hr_trace_open(hr_engine *engine, const char *path, hr_trace **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(check_replaceable(path, err));
    hr_trace *t = hr_calloc(1, sizeof *t);
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the trace %s", path);
    }
    t->engine = engine;
    if (!trace_attach(&engine->bus, write_event, t)) {
        hr_free(t);
        return HR_FAIL(err, STATE, "needed a place for a trace, had %d readers of events", TRACE_MAX_SINKS);
    }
    hr_status status = trace_csv_open(path, name_tensor, t, &t->csv, err);
    if (status != HR_OK) {
        trace_detach(&engine->bus, write_event, t);
        hr_free(t);
        return status;
    }
    *out = t;
    return HR_OK;
}

hr_status hr_trace_close(hr_trace *trace, hr_err *err)
{
    if (trace == NULL) {
        return HR_OK;
    }
    trace_detach(&trace->engine->bus, write_event, trace);
    hr_status status = trace_csv_close(trace->csv, err);
    hr_free(trace);
    return status;
}
