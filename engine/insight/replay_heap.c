// SPDX-License-Identifier: Apache-2.0
// Heaps to be shown: a line of cells, the holes and what pins them.
#include <assert.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "events/heap_holes.h"
#include "insight/diagnose.h"
#include "insight/replay.h"

void hr_heap_destroy(hr_heap *heap)
{
    if (heap != NULL) {
        heap_snapshot_deinit(&heap->snapshot);
        hr_free(heap);
    }
}

uint64_t hr_heap_pool_bytes(const hr_heap *heap)
{
    return heap->snapshot.counters.pool_bytes;
}

size_t hr_heap_chunk_count(const hr_heap *heap)
{
    return heap->snapshot.chunks.count;
}

uint64_t hr_heap_refused_bytes(const hr_heap *heap)
{
    return heap->snapshot.refusal.any ? heap->snapshot.refusal.requested_bytes : 0;
}

// ---- the map --------------------------------------------------------------------------------------------------

typedef struct map {
    hr_heap_cell *cells;
    size_t count;
    double cell_bytes;
} map;

// Adds bytes [begin, end) of the pool to the cells they lie in.
static void paint(const map *m, double begin, double end, double used, double requested)
{
    for (size_t k = (size_t)(begin / m->cell_bytes); k < m->count; k++) {
        double low = (double)k * m->cell_bytes, high = low + m->cell_bytes;
        double bytes = (end < high ? end : high) - (begin > low ? begin : low);
        if (bytes <= 0) {
            return;
        }
        m->cells[k].used += used * bytes / m->cell_bytes;
        m->cells[k].requested += requested * bytes / m->cell_bytes;
    }
}

static double at_most_1(double share)
{
    return share < 1.0 ? share : 1.0;
}

void hr_heap_map(const hr_heap *heap, hr_heap_cell *cells, size_t count)
{
    const heap_snapshot *p = &heap->snapshot;
    uint64_t begin = 0, pool_bytes = 0;
    for (size_t k = 0; k < count; k++) {
        cells[k] = (hr_heap_cell){0};
    }
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        pool_bytes += p->chunks.data[k].size_bytes;
    }
    map m = {cells, count, (double)pool_bytes / (double)(count > 0 ? count : 1)};
    for (uint32_t k = 0; k < p->chunks.count && count > 0; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        double requested = c->size_bytes == 0 ? 0 : (double)c->requested_bytes / (double)c->size_bytes;
        if (c->in_use) {
            paint(&m, (double)begin, (double)(begin + c->size_bytes), 1.0, at_most_1(requested));
        }
        begin += c->size_bytes;
    }
    for (size_t k = 0; k < count; k++) {
        cells[k].used = at_most_1(cells[k].used);
        cells[k].requested = cells[k].requested < cells[k].used ? cells[k].requested : cells[k].used;
    }
}

// ---- holes ----------------------------------------------------------------------------------------------------

static const char *name_of(const heap_snapshot *p, uint32_t chunk)
{
    const char *name = intern_text(&p->names, p->chunks.data[chunk].tensor);
    return name == NULL ? "" : name;
}

static hr_heap_pin show_pin(const heap_snapshot *p, const heap_pin *pin, uint64_t now)
{
    if (pin->chunk == HR_NO_ID) {
        return (hr_heap_pin){.joined_bytes = pin->joined_bytes, .age = HR_NONE};
    }
    const heap_chunk *c = &p->chunks.data[pin->chunk];
    uint64_t age = heap_age(c, now);
    return (hr_heap_pin){.name = name_of(p, pin->chunk),
                         .bytes = c->size_bytes,
                         .joined_bytes = pin->joined_bytes,
                         .age = age == HEAP_NO_AGE ? HR_NONE : age};
}

hr_status hr_heap_holes(const hr_heap *heap, hr_heap_hole *holes, size_t max, size_t *count, hr_err *err)
{
    const heap_snapshot *p = &heap->snapshot;
    heap_holes found;
    *count = 0;
    HR_TRY(heap_holes_of(p, &found, err));
    for (uint64_t now = heap_now(p); *count < max && *count < found.list.count; ++*count) {
        const heap_hole *hole = &found.list.data[*count];
        holes[*count] = (hr_heap_hole){.address = hole->address,
                                       .bytes = hole->bytes,
                                       .before = show_pin(p, &hole->below, now),
                                       .after = show_pin(p, &hole->above, now)};
    }
    heap_holes_deinit(&found);
    return HR_OK;
}

hr_oom_cause hr_heap_diagnose(const hr_heap *heap, char *sentence, size_t size)
{
    oom_evidence shown;
    hr_report_oom oom;
    const hr_status status = evidence_of(NULL, 0, 0, &heap->snapshot, &shown, NULL);
    assert(status == HR_OK && "a heap alone needs no host memory");
    (void)status;
    diagnose_record(&heap->snapshot, &shown, &oom);
    (void)text_copy(sentence, size, oom.sentence);
    return oom.cause;
}

// ---- in the frameworks' words ---------------------------------------------------------------------------------

const char *hr_heap_style(size_t index)
{
    size_t count = 0;
    while (dump_styles[count].name != NULL) {
        count++;
    }
    return index < count ? dump_styles[index].name : NULL;
}

hr_status hr_heap_write(const hr_heap *heap, const char *style, FILE *out, hr_err *err)
{
    const dump_style *row = dump_style_find(style);
    text words = {0};
    if (row == NULL) {
        for (const dump_style *s = dump_styles; s->name != NULL; s++) {
            text_append(&words, "%s%s", s == dump_styles ? "" : ", ", s->name);
        }
        hr_status status = HR_FAIL(err, USAGE, "--style needs one of %s, had '%.64s'",
                                   words.length > 0 ? words.data : "the frameworks", style);
        hr_err_try(err, "--style %s", dump_styles[0].name);
        text_deinit(&words);
        return status;
    }
    row->write(&heap->snapshot, &heap->facts, &words);
    hr_status status =
        words.failed ? HR_FAIL(err, NOMEM, "replay: needed host memory to write a heap, had none") : HR_OK;
    if (status == HR_OK && words.length > 0) {
        (void)fwrite(words.data, 1, words.length, out);
    }
    text_deinit(&words);
    return status;
}
