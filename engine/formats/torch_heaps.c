// SPDX-License-Identifier: Apache-2.0
// Segments and blocks of a snapshot as snapshots of heaps.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "formats/torch_parts.h"

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "snapshot: needed host memory for its heaps, had none");
}

hr_status torch_block_name(torch_parts *parts, const torch_block *b, uint32_t *name, hr_err *err)
{
    *name = b->frame == TORCH_NONE ? HR_NO_ID : torch_frame_name(parts, b->frame);
    return b->frame != TORCH_NONE && *name == INTERN_NONE ? no_memory(err) : HR_OK;
}

static hr_status snapshot_of(trace *t, uint8_t device, heap_snapshot **out, hr_err *err)
{
    if (t->heaps[device] == NULL) {
        t->heaps[device] = hr_calloc(1, sizeof *t->heaps[device]);
        if (t->heaps[device] == NULL) {
            return HR_FAIL(err, NOMEM, "snapshot: needed host memory for a heap, had none");
        }
        snprintf(t->heaps[device]->source, sizeof t->heaps[device]->source, "cuda:%d", device);
    }
    *out = t->heaps[device];
    return HR_OK;
}

static hr_status add_chunk(torch_parts *parts, heap_snapshot *p, const torch_segment *s, const torch_block *b,
                           uint64_t address, hr_err *err)
{
    uint32_t name = HR_NO_ID;
    HR_TRY(torch_block_name(parts, b, &name, err));
    if (name != HR_NO_ID) {
        const char *text = intern_text(&parts->t->names, name);
        name = intern_add(&p->names, text, strlen(text));
    }
    heap_chunk *chunk = b->frame != TORCH_NONE && name == INTERN_NONE ? NULL : vec_push(&p->chunks);
    if (chunk == NULL) {
        return no_memory(err);
    }
    *chunk = (heap_chunk){.address = address,
                          .size_bytes = b->bytes,
                          .requested_bytes = b->requested_bytes,
                          .region_address = s->address,
                          .region_bytes = s->bytes,
                          .tensor = name,
                          .stream = s->stream,
                          .handle = HR_NO_ID,
                          .region_kind = s->kind,
                          .in_use = b->state != TORCH_FREE,
                          .pending = b->state == TORCH_PENDING};
    return HR_OK;
}

// Blocks tile their segment.
static hr_status draw_segment(torch_parts *parts, heap_snapshot *p, const torch_segment *s, hr_err *err)
{
    uint64_t covered = 0, end;
    if (!hr_add_bytes(s->address, s->bytes, &end)) {
        return HR_FAIL(err, READ, "%s: the segment at 0x%" PRIx64 " reaches beyond all addresses",
                       parts->file, s->address);
    }
    for (uint32_t k = s->first_block; k != TORCH_NONE; k = parts->blocks.data[k].next) {
        const torch_block *b = &parts->blocks.data[k];
        if (b->bytes == 0 || b->bytes > s->bytes - covered ||
            (b->address != 0 && b->address != s->address + covered)) {
            return HR_FAIL(err, READ,
                           "%s: the segment at 0x%" PRIx64 " of %" PRIu64
                           " bytes needed a block at byte %" PRIu64 ", had %" PRIu64 " bytes at 0x%" PRIx64,
                           parts->file, s->address, s->bytes, covered, b->bytes, b->address);
        }
        HR_TRY(add_chunk(parts, p, s, b, s->address + covered, err));
        covered += b->bytes;
    }
    if (covered != s->bytes) {
        return HR_FAIL(err, READ,
                       "%s: the segment at 0x%" PRIx64 " needed blocks of %" PRIu64 " bytes, had %" PRIu64,
                       parts->file, s->address, s->bytes, covered);
    }
    return HR_OK;
}

static int by_device_and_address(const void *a, const void *b)
{
    const torch_segment *x = a, *y = b;
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    return x->address < y->address ? -1 : x->address > y->address;
}

hr_status torch_draw_heaps(torch_parts *parts, hr_err *err)
{
    trace *t = parts->t;
    torch_segment *segments = parts->segments.data;
    uint32_t count = parts->segments.count;
    if (count > 0) {
        qsort(segments, count, sizeof *segments, by_device_and_address);
    }
    for (uint32_t k = 0; k < count; k++) {
        const torch_segment *s = &segments[k], *last = k == 0 ? NULL : s - 1;
        if (last != NULL && last->device == s->device && s->address - last->address < last->bytes) {
            return HR_FAIL(err, READ, "%s: the segments at 0x%" PRIx64 " and 0x%" PRIx64 " overlap",
                           parts->file, last->address, s->address);
        }
        heap_snapshot *snapshot = NULL;
        HR_TRY(snapshot_of(t, s->device, &snapshot, err));
        HR_TRY(draw_segment(parts, snapshot, s, err));
        t->device_count = s->device >= t->device_count ? s->device + 1u : t->device_count;
    }
    for (uint32_t d = 0; d < TRACE_DEVICES_MAX; d++) {
        if (t->heaps[d] != NULL) {
            heap_snapshot_count(t->heaps[d]);
        }
    }
    return HR_OK;
}
