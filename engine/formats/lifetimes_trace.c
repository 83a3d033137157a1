// SPDX-License-Identifier: Apache-2.0
// Lifetimes as a trace, and the lifetimes in a trace.
#include <inttypes.h>
#include <stdlib.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "formats/lifetimes_columns.h"
#include "formats/lifetimes_csv.h"

// ---- lifetimes as a trace -------------------------------------------------------------------------------------

typedef struct turn {
    uint64_t time;
    uint32_t buffer;
    bool begins;
} turn;

// Releases come first, so that what is freed at an instant can be taken at it.
static int by_time(const void *a, const void *b)
{
    const turn *left = a, *right = b;
    if (left->time != right->time) {
        return left->time < right->time ? -1 : 1;
    }
    if (left->begins != right->begins) {
        return left->begins ? 1 : -1;
    }
    return left->buffer < right->buffer ? -1 : left->buffer > right->buffer;
}

static uint32_t turns_of(const lifetimes *l, turn *turns)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < l->list.count; k++) {
        const lifetime *b = &l->list.data[k];
        if (b->bytes > 0) {
            turns[count++] = (turn){b->lower, k, true};
            turns[count++] = (turn){b->upper, k, false};
        }
    }
    qsort(turns, count, sizeof *turns, by_time);
    return count;
}

static hr_status add_turn(trace_builder *b, const lifetimes *l, const turn *at, hr_err *err)
{
    const lifetime *buffer = &l->list.data[at->buffer];
    const trace_event event = {.kind = at->begins ? TRACE_ALLOC : TRACE_FREE,
                               .bytes = buffer->bytes,
                               .row = at->buffer,
                               .name = at->begins ? buffer->id : HR_NO_ID};
    return trace_add(b, event, at->buffer, err);
}

static hr_status fill_trace(const lifetimes *l, trace *t, hr_err *err)
{
    trace_builder b;
    turn *turns = hr_calloc(2 * (size_t)l->list.count + 1, sizeof *turns);
    if (turns == NULL) {
        return HR_FAIL(err, NOMEM, "lifetimes: needed host memory for %" PRIu32 " buffers, had none",
                       l->list.count);
    }
    trace_builder_init(&b, t);
    t->rows = l->list.count;
    const uint32_t count = turns_of(l, turns);
    hr_status status = HR_OK;
    for (uint32_t k = 0; status == HR_OK && k < count; k++) {
        status = add_turn(&b, l, &turns[k], err);
    }
    trace_builder_deinit(&b);
    hr_free(turns);
    return status;
}

static hr_status read_as_trace(input *in, trace *t, hr_err *err)
{
    lifetimes l;
    HR_TRY(lifetimes_read_input(in, &l, err));
    hr_status status = fill_trace(&l, t, err);
    t->names = l.ids; // they are the names, number for number
    l.ids = (intern){0};
    lifetimes_deinit(&l);
    return status;
}

static bool recognise(const char *start, size_t bytes)
{
    return fields_begin_with(start, bytes, lifetimes_columns, LIFETIMES_COLUMNS);
}

const trace_format trace_format_lifetimes = {
    .name = "lifetimes",
    .line = "lifetimes as minimalloc reads them (id,lower,upper,size)",
    .recognise = recognise,
    .read = read_as_trace,
};

// ---- the lifetimes in a trace ---------------------------------------------------------------------------------

static hr_status add_lifetime(const trace *t, const trace_event *e, uint64_t now, text *id, lifetimes *l,
                              hr_err *err)
{
    const char *name = intern_text(&t->names, e->name);
    id->length = 0;
    text_append(id, "%" PRIu32 "%s%s", l->list.count, name == NULL ? "" : ":", name == NULL ? "" : name);
    const uint32_t number = id->failed ? INTERN_NONE : intern_add(&l->ids, id->data, id->length);
    lifetime *added = number == INTERN_NONE ? NULL : vec_push(&l->list);
    if (added == NULL) {
        return HR_FAIL(err, NOMEM, "lifetimes: needed host memory for buffer %" PRIu32 ", had none",
                       l->list.count);
    }
    *added = (lifetime){.lower = now,
                        .upper = t->events.count,
                        .bytes = e->bytes,
                        .alignment_bytes = 1,
                        .hint = LIFETIME_NO_OFFSET,
                        .offset = LIFETIME_NO_OFFSET,
                        .id = number};
    return HR_OK;
}

static hr_status collect(const trace *t, uint8_t device, uint32_t *living, text *id, lifetimes *l,
                         hr_err *err)
{
    for (uint32_t k = 0; k < t->events.count; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->device != device) {
            continue;
        }
        if (e->kind == TRACE_ALLOC) {
            living[e->block] = l->list.count;
            HR_TRY(add_lifetime(t, e, k, id, l, err));
        } else if (e->kind == TRACE_FREE) {
            l->list.data[living[e->block]].upper = k;
        }
    }
    return HR_OK;
}

hr_status lifetimes_of_trace(const trace *t, uint8_t device, lifetimes *l, hr_err *err)
{
    *l = (lifetimes){0};
    text id = {0};
    uint32_t *living = hr_calloc((size_t)t->block_count + 1, sizeof *living); // which buffer a block is
    if (living == NULL) {
        return HR_FAIL(err, NOMEM, "lifetimes: needed host memory for %" PRIu32 " blocks, had none",
                       t->block_count);
    }
    hr_status status = collect(t, device, living, &id, l, err);
    hr_free(living);
    text_deinit(&id);
    if (status != HR_OK) {
        lifetimes_deinit(l);
    }
    return status;
}
