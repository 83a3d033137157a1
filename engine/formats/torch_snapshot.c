// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "formats/pickle.h"
#include "formats/torch_parts.h"

#define TORCH_ROUNDING UINT64_C(512)

typedef struct reader {
    torch_parts parts;
    torch_past past;
    trace_builder builder;
} reader;

static hr_status no_memory(const reader *r, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s: needed host memory for its trace, had none", r->parts.file);
}

// ---- the order of rows ----------------------------------------------------------------------------------------

// Runs of several devices as one, by time; equal times in the order of devices.
typedef struct merge {
    const torch_row *next[TRACE_DEVICES_MAX], *end[TRACE_DEVICES_MAX];
    uint32_t count;
} merge;

static const torch_row *take_earliest(merge *m)
{
    uint32_t found = 0;
    for (uint32_t k = 1; k < m->count; k++) {
        if (m->next[k] != m->end[k] &&
            (m->next[found] == m->end[found] || m->next[k]->time_us < m->next[found]->time_us)) {
            found = k;
        }
    }
    return m->next[found]++;
}

static void tell_devices(torch_parts *parts)
{
    for (uint32_t k = parts->first_run; k != TORCH_NONE; k = parts->runs.data[k].next) {
        const torch_run *run = &parts->runs.data[k];
        for (uint32_t n = 0; n < run->count; n++) {
            parts->rows.data[run->first + n].device = (uint8_t)run->device;
        }
    }
}

// Behind it the runs do not say any more where their rows lie.
static hr_status order_rows(reader *r, hr_err *err)
{
    torch_parts *parts = &r->parts;
    merge m = {.count = 0};
    uint32_t rows = 0;
    for (uint32_t k = parts->first_run; k != TORCH_NONE; k = parts->runs.data[k].next) {
        const torch_run *run = &parts->runs.data[k];
        m.next[m.count] = parts->rows.data + run->first;
        m.end[m.count++] = parts->rows.data + run->first + run->count;
        rows += run->count;
    }
    if (m.count == 1 && rows == parts->rows.count) {
        return HR_OK;
    }
    torch_row *ordered = rows == 0 ? NULL : hr_realloc(NULL, rows, sizeof *ordered);
    if (rows > 0 && ordered == NULL) {
        return no_memory(r, err);
    }
    for (uint32_t k = 0; k < rows; k++) {
        ordered[k] = *take_earliest(&m);
    }
    hr_free(parts->rows.data);
    parts->rows.data = ordered;
    parts->rows.count = parts->rows.capacity = rows;
    return HR_OK;
}

// ---- rows to events -------------------------------------------------------------------------------------------

static hr_status add_past(reader *r, uint64_t first_us, hr_err *err)
{
    for (uint32_t k = 0; k < r->past.blocks.count; k++) {
        const torch_earlier *e = &r->past.blocks.data[k];
        trace_event event = {.time_ns = first_us * 1000,
                             .bytes = e->bytes,
                             .name = e->name,
                             .row = TRACE_BEFORE,
                             .stream = e->stream,
                             .device = e->device,
                             .kind = TRACE_ALLOC};
        HR_TRY(trace_add(&r->builder, event, e->address, err));
    }
    return HR_OK;
}

// The number of each device's first row in the file.
static void number_rows(const torch_parts *parts, uint32_t next[TRACE_DEVICES_MAX])
{
    uint32_t rows = 0;
    for (uint32_t k = parts->first_run; k != TORCH_NONE; k = parts->runs.data[k].next) {
        next[parts->runs.data[k].device] = rows;
        rows += parts->runs.data[k].count;
    }
}

// Rows become events in the memory where they lie: a gigabyte of snapshot would else need its trace twice. A row makes
// one event at most, or two where an allocation ends the block that it lands on; the room for those, and for what lived
// before, is ahead of the rows:
//
//   events ──▶ … │ gap │ rows not yet read
static hr_status make_room(reader *r, uint64_t gap, hr_err *err)
{
    torch_parts *parts = &r->parts;
    trace *t = parts->t;
    uint32_t count = parts->rows.count;
    if (gap + count >= TRACE_BEFORE) {
        return HR_FAIL(err, READ, "%s: needed fewer than 2^32 - 1 events, has %" PRIu64, parts->file,
                       gap + count);
    }
    if (!vec_reserve_((void **)&parts->rows.data, &parts->rows.capacity, (uint32_t)gap + count,
                      sizeof *parts->rows.data)) {
        return gap + count == 0 ? HR_OK : no_memory(r, err);
    }
    memmove(parts->rows.data + gap, parts->rows.data, count * sizeof *parts->rows.data);
    t->events.data = (trace_event *)(void *)parts->rows.data;
    t->events.capacity = parts->rows.capacity;
    parts->rows.data = NULL;
    parts->rows.count = parts->rows.capacity = 0;
    t->rows = count;
    return HR_OK;
}

// What PyTorch asks its driver for (c10/cuda/CUDACachingAllocator.cpp, get_allocation_size); 0: pages, which depend on
// what a segment has already.
static uint64_t driver_bytes_of(const heap_snapshot *p, uint64_t rounded_bytes)
{
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        if (p->chunks.data[k].region_kind == HEAP_REGION_EXPANDABLE) {
            return 0;
        }
    }
    const uint64_t large_bytes = 10 * HR_MIB, step_bytes = 2 * HR_MIB;
    return rounded_bytes <= HR_MIB       ? step_bytes
           : rounded_bytes < large_bytes ? 20 * HR_MIB
                                         : (rounded_bytes + step_bytes - 1) / step_bytes * step_bytes;
}

// Segments are drawn when a snapshot is written: they are those of the refusal where nothing came behind it.
static hr_status set_refusal(heap_snapshot *p, const trace *t, const torch_row *row, hr_err *err)
{
    const char *name = intern_text(&t->names, row->name);
    if (p == NULL || row->bytes == 0) {
        return HR_OK;
    }
    const uint64_t rounded_bytes = (row->bytes + TORCH_ROUNDING - 1) & ~(TORCH_ROUNDING - 1);
    p->refusal = (heap_refusal){.any = row->kind == TRACE_REFUSED,
                                .requested_bytes = row->bytes,
                                .rounded_bytes = rounded_bytes,
                                .tensor = HR_NO_ID,
                                .stream = row->stream,
                                .recorded = true};
    if (p->refusal.any) {
        p->refusal.driver_bytes = driver_bytes_of(p, rounded_bytes);
    }
    if (row->address <= TORCH_BYTES_MAX) {
        p->refusal.told = true;
        p->refusal.device_free_bytes = row->address;
    }
    if (p->refusal.any && name != NULL) {
        p->refusal.tensor = intern_add(&p->names, name, strlen(name));
        if (p->refusal.tensor == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "snapshot: needed host memory for a name, had none");
        }
    }
    return HR_OK;
}

static hr_status add_rows(reader *r, uint64_t gap, hr_err *err)
{
    trace *t = r->parts.t;
    uint32_t next[TRACE_DEVICES_MAX] = {0};
    number_rows(&r->parts, next);
    for (uint64_t k = 0; k < t->rows; k++) {
        torch_row row;
        memcpy(&row, &t->events.data[gap + k], sizeof row);
        trace_event event = {.time_ns = row.time_us * 1000,
                             .bytes = row.bytes,
                             .name = row.name,
                             .row = next[row.device]++,
                             .stream = row.stream,
                             .device = row.device,
                             .kind = row.kind};
        if (row.kind != TRACE_KINDS) {
            HR_TRY(set_refusal(t->heaps[row.device], t, &row, err));
            HR_TRY(trace_add(&r->builder, event, row.address, err));
        }
        if (t->events.count > gap + k + 1) {
            return HR_FAIL(err, CHECK, "%s: row %" PRIu64 " made more events than there was room for",
                           r->parts.file, k);
        }
    }
    return HR_OK;
}

static hr_status build(reader *r, hr_err *err)
{
    tell_devices(&r->parts);
    HR_TRY(torch_draw_heaps(&r->parts, err));
    HR_TRY(torch_find_past(&r->parts, &r->past, err));
    HR_TRY(order_rows(r, err));
    uint64_t gap = r->past.blocks.count + r->past.reused;
    uint64_t first_us = r->parts.rows.count == 0 ? 0 : r->parts.rows.data[0].time_us;
    HR_TRY(make_room(r, gap, err));
    HR_TRY(add_past(r, first_us, err));
    return add_rows(r, gap, err);
}

static hr_status read_snapshot(input *in, trace *t, hr_err *err)
{
    reader *r = hr_calloc(1, sizeof *r);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to read it", in->name, sizeof *r);
    }
    trace_builder_init(&r->builder, t);
    hr_status status = torch_parts_read(&r->parts, in, t, err);
    if (status == HR_OK) {
        status = build(r, err);
    }
    vec_deinit(&r->past.blocks);
    trace_builder_deinit(&r->builder);
    torch_parts_deinit(&r->parts);
    hr_free(r);
    return status;
}

const trace_format trace_format_torch_snapshot = {
    .name = "pytorch_snapshot",
    .line = "a PyTorch memory snapshot (pickle)",
    .recognise = pickle_is_pickle,
    .read = read_snapshot,
};
