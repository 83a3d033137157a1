// SPDX-License-Identifier: Apache-2.0
#include "formats/heap_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"

static hr_status no_memory(const heap_snapshot *p, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s: needed host memory for a heap of %u chunks, had none", p->source,
                   p->chunks.count);
}

static int by_age(const void *a, const void *b)
{
    const heap_chunk *left = *(const heap_chunk *const *)a, *right = *(const heap_chunk *const *)b;
    if (left->since != right->since) {
        return left->since < right->since ? -1 : 1;
    }
    return left->address < right->address ? -1 : left->address > right->address;
}

// Interns a name of the snapshot among those of the trace.
static hr_status name_of(trace *t, const heap_snapshot *p, uint32_t tensor, uint32_t *name, hr_err *err)
{
    const char *text = intern_text(&p->names, tensor);
    *name = HR_NO_ID;
    if (text == NULL) {
        return HR_OK;
    }
    *name = intern_add(&t->names, text, strlen(text));
    return *name == INTERN_NONE ? no_memory(p, err) : HR_OK;
}

static hr_status add_living(trace_builder *b, const heap_snapshot *p, const heap_chunk *const *oldest_first,
                            uint32_t count, hr_err *err)
{
    for (uint32_t k = 0; k < count; k++) {
        const heap_chunk *c = oldest_first[k];
        trace_event event = {.kind = TRACE_ALLOC, .bytes = c->requested_bytes, .row = TRACE_BEFORE};
        event.stream = (uint16_t)c->stream;
        HR_TRY(name_of(b->t, p, c->tensor, &event.name, err));
        HR_TRY(trace_add(b, event, c->address, err));
    }
    return HR_OK;
}

static hr_status add_refused(trace_builder *b, const heap_snapshot *p, hr_err *err)
{
    const heap_refusal *r = &p->refusal;
    trace_event event = {.kind = TRACE_ALLOC, .bytes = r->requested_bytes, .stream = (uint16_t)r->stream};
    if (!r->any) {
        return HR_OK;
    }
    b->t->rows = 1;
    HR_TRY(name_of(b->t, p, r->tensor, &event.name, err));
    return trace_add(b, event, UINT64_MAX, err); // where no chunk can begin
}

static hr_status fill(trace *t, const heap_snapshot *p, hr_err *err)
{
    uint32_t count = 0;
    const heap_chunk **oldest_first = hr_calloc((size_t)p->chunks.count + 1, sizeof *oldest_first);
    if (oldest_first == NULL) {
        return no_memory(p, err);
    }
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        if (p->chunks.data[k].in_use) {
            oldest_first[count++] = &p->chunks.data[k];
        }
    }
    qsort(oldest_first, count, sizeof *oldest_first, by_age);
    trace_builder b;
    trace_builder_init(&b, t);
    hr_status status = add_living(&b, p, oldest_first, count, err);
    if (status == HR_OK) {
        status = add_refused(&b, p, err);
    }
    trace_builder_deinit(&b);
    hr_free(oldest_first);
    return status;
}

hr_status trace_of_heap(trace *t, heap_snapshot *p, hr_err *err)
{
    t->heaps[0] = hr_calloc(1, sizeof *t->heaps[0]);
    if (t->heaps[0] == NULL) {
        hr_status status = no_memory(p, err);
        heap_snapshot_deinit(p);
        return status;
    }
    *t->heaps[0] = *p;
    *p = (heap_snapshot){0};
    t->device_count = 1;
    return fill(t, t->heaps[0], err);
}
