// SPDX-License-Identifier: Apache-2.0
// Trace files: the engine's events, with what the programs of the moment say of their tensors.
#include <stdio.h>

#include "headroom/trace.h"

#include "base/host_mem.h"
#include "formats/exporter.h"
#include "formats/live_names.h"
#include "memory/heap_snapshot.h"
#include "train/engine_impl.h"

enum { OP_TEXT_MAX = 128, SHAPE_TEXT_MAX = 160 };

struct hr_trace {
    hr_engine *engine;
    exporter *out;
    live_names names;                            // of what lives, where heaps are asked for
    char op[OP_TEXT_MAX], shape[SHAPE_TEXT_MAX]; // of the event that is being written
};

// ---- which tensor, taken for what -----------------------------------------------------------------------------

// Whether the event's instruction is the one of this program that takes or gives back its tensor.
static bool is_of(const program *p, const hr_event *event)
{
    if (event->instr >= p->instr_count) {
        return false;
    }
    const instr *i = &p->instrs[event->instr];
    return (i->op == HR_OP_ALLOC && i->out[0] == event->u.memory.tensor) ||
           (i->op == HR_OP_FREE && i->in[0] == event->u.memory.tensor);
}

// A program for a partial batch differs from the full one in sizes, and in numbering where its kernels want other
// workspaces: the bytes tell which of [first, last] is running, or the instruction where two have equal ones.
static const program *program_of(const build *b, build_program first, build_program last,
                                 const hr_event *event)
{
    const hr_event_memory *m = &event->u.memory;
    const program *found = NULL;
    int best = 0;
    for (build_program k = first; k <= last; k++) {
        const program *p = b->programs[k];
        if (p == NULL || m->tensor >= p->tensor_count) {
            continue;
        }
        const int fits =
            1 + (p->tensors[m->tensor].bytes == m->requested_bytes ? 2 : 0) + (is_of(p, event) ? 1 : 0);
        if (fits > best) {
            best = fits;
            found = p;
        }
    }
    return found;
}

static bool is_step(const instr *i)
{
    return i->op != HR_OP_ALLOC && i->op != HR_OP_FREE && i->op != HR_OP_RETAIN && i->op != HR_OP_REPEAT &&
           i->op != HR_OP_END && !op_row_of(i->op)->orders;
}

// What memory is taken for stands behind the allocation, what it was given back after before the release.
static const char *op_of(hr_trace *t, const program *p, const hr_event *event)
{
    const bool ahead = event->kind != HR_EVENT_FREE;
    if (!is_of(p, event)) {
        return NULL;
    }
    for (uint32_t n = event->instr; n < p->instr_count; n += ahead ? 1 : UINT32_MAX) {
        if (is_step(&p->instrs[n])) {
            return program_instr_name(p, &p->instrs[n], t->op, sizeof t->op);
        }
    }
    return NULL;
}

static const char *shape_of_tensor(hr_trace *t, const tensor *x)
{
    size_t used = 0;
    for (uint32_t k = 0; k < x->shape.rank && used < sizeof t->shape; k++) {
        const int n = snprintf(t->shape + used, sizeof t->shape - used, "%s%lld", k == 0 ? "[" : ",",
                               (long long)x->shape.dim[k]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 2 <= sizeof t->shape) {
        (void)snprintf(t->shape + used, sizeof t->shape - used, used == 0 ? "[]" : "]");
    }
    return t->shape;
}

// Persistent tensors (instr HR_NO_ID) are numbered as in the training program, also while an evaluation runs.
static const program *program_at(const hr_engine *e, const hr_event *event)
{
    if (e->build == NULL) {
        return NULL;
    }
    const bool evaluates = e->eval.running && event->instr != HR_NO_ID;
    return program_of(e->build, evaluates ? BUILD_EVAL : BUILD_TRAIN,
                      evaluates ? BUILD_EVAL_PARTIAL : BUILD_TRAIN_PARTIAL, event);
}

static void describe(void *context, const hr_event *event, event_context *out)
{
    hr_trace *t = context;
    const program *p = program_at(t->engine, event);
    if (p == NULL) {
        return;
    }
    const tensor *x = &p->tensors[event->u.memory.tensor];
    out->tensor = x->name;
    out->op = op_of(t, p, event);
    out->dtype = tensor_type_name(x);
    out->shape = shape_of_tensor(t, x);
}

// ---- the heap -------------------------------------------------------------------------------------------------

static const allocator *heap_of(const hr_trace *t, uint8_t device)
{
    const build *b = t->engine->build;
    return b == NULL || device != 0 ? NULL : b->heap;
}

static const char *counters(void *context, uint8_t device, heap_counters *out)
{
    const allocator *heap = heap_of(context, device);
    if (heap == NULL) {
        return NULL;
    }
    *out = allocator_get_stats(heap);
    return heap->ops->name;
}

// While a dry run is told that did not fit, the heap is the dry run's.
static hr_status snapshot(void *context, uint8_t device, heap_snapshot *out, hr_err *err)
{
    const hr_trace *t = context;
    const hr_engine *e = t->engine;
    const allocator *heap = heap_of(t, device);
    *out = (heap_snapshot){0};
    if (e->refused != NULL) {
        return build_failure_heap(e->refused, &e->knobs, out, err);
    }
    if (heap == NULL) {
        return HR_OK;
    }
    HR_TRY(heap_snapshot_of(heap, out, err));
    hr_status status = live_names_give(&t->names, device, out, err);
    if (status != HR_OK) {
        heap_snapshot_deinit(out);
    }
    return status;
}

static void remember(hr_trace *t, const hr_event *event)
{
    if (event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE) {
        const program *p = program_at(t->engine, event);
        live_names_note(&t->names, event, p == NULL ? NULL : p->tensors[event->u.memory.tensor].name);
    }
}

static void write_event(void *context, const hr_event *event)
{
    hr_trace *t = context;
    if (exporter_wants_heaps(t->out)) {
        remember(t, event);
    }
    exporter_sink(t->out, event);
}

// ---- opening and closing --------------------------------------------------------------------------------------

hr_status hr_trace_open(hr_engine *engine, const char *file, hr_trace **out, hr_err *err)
{
    *out = NULL;
    hr_trace *t = hr_calloc(1, sizeof *t);
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the trace %s", file);
    }
    t->engine = engine;
    const event_source source = {
        .describe = describe, .counters = counters, .snapshot = snapshot, .context = t, .device_count = 1};
    hr_status status = exporter_open(file, &source, &t->out, err);
    if (status == HR_OK && !trace_attach(&engine->bus, write_event, t)) {
        exporter_abandon(t->out);
        status = HR_FAIL(err, STATE, "needed a place for a trace, had %d readers of events", TRACE_MAX_SINKS);
    }
    if (status != HR_OK) {
        hr_free(t);
        return status;
    }
    *out = t;
    return HR_OK;
}

hr_status hr_trace_failure(const hr_trace *trace, hr_err *err)
{
    return exporter_failure(trace->out, err);
}

hr_status hr_trace_close(hr_trace *trace, hr_err *err)
{
    if (trace == NULL) {
        return HR_OK;
    }
    trace_detach(&trace->engine->bus, write_event, trace);
    hr_status status = exporter_close(trace->out, err);
    live_names_deinit(&trace->names);
    hr_free(trace);
    return status;
}
