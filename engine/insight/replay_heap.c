// SPDX-License-Identifier: Apache-2.0
// Heaps for whoever shows them: a line of cells, the holes and what pins them.
#include <stdlib.h>

#include "base/host_mem.h"
#include "insight/replay.h"

void hr_heap_destroy(hr_heap *heap)
{
    if (heap != NULL) {
        heap_picture_deinit(&heap->picture);
        hr_free(heap);
    }
}

uint64_t hr_heap_pool_bytes(const hr_heap *heap)
{
    return heap->picture.counters.pool_bytes;
}

size_t hr_heap_chunk_count(const hr_heap *heap)
{
    return heap->picture.chunks.count;
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
    const heap_picture *p = &heap->picture;
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

// The chunk of the same region next to `at`, NULL at its end.
static const heap_chunk *neighbour(const heap_picture *p, uint32_t at, int step)
{
    uint32_t other = at + (uint32_t)step; // of 0, −1: beyond every index
    if (other >= p->chunks.count ||
        p->chunks.data[other].region_address != p->chunks.data[at].region_address) {
        return NULL;
    }
    return &p->chunks.data[other];
}

static void pin(const heap_picture *p, const heap_chunk *c, const char **name, uint64_t *bytes)
{
    const char *known = c == NULL ? NULL : intern_text(&p->names, c->tensor);
    *name = c == NULL ? NULL : known == NULL ? "" : known;
    *bytes = c == NULL ? 0 : c->size_bytes;
}

// Inserts a hole where it belongs in the list of the largest; of equals the lower one comes first.
static size_t insert(hr_heap_hole *holes, size_t count, size_t max, const hr_heap_hole *hole)
{
    size_t at = count < max ? count : max - 1;
    if (count == max && holes[at].bytes >= hole->bytes) {
        return count;
    }
    for (; at > 0 && holes[at - 1].bytes < hole->bytes; at--) {
        holes[at] = holes[at - 1];
    }
    holes[at] = *hole;
    return count < max ? count + 1 : max;
}

size_t hr_heap_holes(const hr_heap *heap, hr_heap_hole *holes, size_t max)
{
    const heap_picture *p = &heap->picture;
    size_t count = 0;
    for (uint32_t k = 0; k < p->chunks.count && max > 0; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        hr_heap_hole hole = {.address = c->address, .bytes = c->size_bytes};
        if (!c->in_use) {
            pin(p, neighbour(p, k, -1), &hole.before, &hole.before_bytes);
            pin(p, neighbour(p, k, 1), &hole.after, &hole.after_bytes);
            count = insert(holes, count, max, &hole);
        }
    }
    return count;
}
