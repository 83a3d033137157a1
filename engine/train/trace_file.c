// SPDX-License-Identifier: Apache-2.0
// Trace files: the engine's events, with the names that the programs of the moment give their tensors.
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
// workspaces: the bytes tell which of the two is running.
static const char *name_in(const build *b, const build_program *pair, uint32_t id, uint64_t bytes)
{
    const char *name = NULL;
    for (int k = 0; k < 2; k++) {
        const program *p = b->programs[pair[k]];
        if (p == NULL || id >= p->tensor_count) {
            continue;
        }
        if (p->tensors[id].bytes == bytes) {
            return p->tensors[id].name;
        }
        name = name == NULL ? p->tensors[id].name : name;
    }
    return name;
}

static const char *name_tensor(void *context, uint32_t id)
{
    static const build_program train[] = {BUILD_TRAIN, BUILD_TRAIN_PARTIAL};
    static const build_program evaluate[] = {BUILD_EVAL, BUILD_EVAL_PARTIAL};
    const hr_trace *t = context;
    const hr_engine *e = t->engine;
    return e->build == NULL ? NULL
                            : name_in(e->build, e->eval.running ? evaluate : train, id,
                                      t->event->u.memory.requested_bytes);
}

static void write_event(void *context, const hr_event *event)
{
    hr_trace *t = context;
    t->event = event;
    trace_csv_sink(t->csv, event);
}

hr_status hr_trace_open(hr_engine *engine, const char *path, hr_trace **out, hr_err *err)
{
    *out = NULL;
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
