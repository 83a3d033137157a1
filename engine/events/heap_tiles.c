// SPDX-License-Identifier: Apache-2.0
#include "events/heap_tiles.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_address(const void *a, const void *b)
{
    const heap_chunk *left = a, *right = b;
    if (left->address != right->address) {
        return left->address < right->address ? -1 : 1;
    }
    if (left->region_address != right->region_address) {
        return left->region_address < right->region_address ? -1 : 1;
    }
    return left->size_bytes < right->size_bytes ? -1 : left->size_bytes > right->size_bytes;
}

static bool is_alike(const heap_chunk *a, const heap_chunk *b)
{
    return a->address == b->address && a->size_bytes == b->size_bytes && a->in_use == b->in_use;
}

static void drop_repeated(heap_snapshot *p)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        if (kept == 0 || !is_alike(&p->chunks.data[kept - 1], &p->chunks.data[k])) {
            p->chunks.data[kept++] = p->chunks.data[k];
        }
    }
    p->chunks.count = kept;
}

static hr_status check_apart(const heap_snapshot *p, const char *file, hr_err *err)
{
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k], *next = k + 1 < p->chunks.count ? c + 1 : NULL;
        uint64_t end;
        if (__builtin_add_overflow(c->address, c->size_bytes, &end) ||
            (next != NULL && end > next->address)) {
            return HR_FAIL(err, READ,
                           "%s: needed chunks that lie apart, the one at %" PRIx64 " of %" PRIu64
                           " bytes reaches into %s",
                           file, c->address, c->size_bytes, next == NULL ? "nothing" : "the next");
        }
    }
    return HR_OK;
}

static bool touches(const heap_chunk *c, const heap_chunk *next)
{
    const bool would_merge = !c->in_use && !next->in_use && c->freed_at == 0 && next->freed_at == 0;
    return c->address + c->size_bytes == next->address && c->region_address == next->region_address &&
           (c->region_address != 0 || !would_merge);
}

// The run of chunks that begins at `first` becomes a region; returns where the next one begins.
static uint32_t make_region(heap_snapshot *p, uint32_t first, heap_said *said)
{
    heap_chunk *chunks = p->chunks.data;
    uint32_t end = first + 1;
    while (end < p->chunks.count && touches(&chunks[end - 1], &chunks[end])) {
        end++;
    }
    const uint64_t number = chunks[first].region_address, address = chunks[first].address;
    const uint64_t bytes = chunks[end - 1].address + chunks[end - 1].size_bytes - address;
    if (number > 0) {
        said[number - 1].covered_bytes += bytes;
        said[number - 1].runs++;
    }
    for (uint32_t k = first; k < end; k++) {
        chunks[k].region_address = address;
        chunks[k].region_bytes = bytes;
    }
    return end;
}

hr_status heap_tile(heap_snapshot *p, heap_said *said, uint32_t said_count, const char *file, hr_err *err)
{
    if (p->chunks.count > 0) {
        qsort(p->chunks.data, p->chunks.count, sizeof *p->chunks.data, by_address);
    }
    drop_repeated(p);
    HR_TRY(check_apart(p, file, err));
    for (uint32_t k = 0; k < said_count; k++) {
        said[k].covered_bytes = said[k].runs = 0;
    }
    for (uint32_t first = 0; first < p->chunks.count;) {
        first = make_region(p, first, said);
    }
    for (uint32_t k = 0; k < said_count; k++) {
        const heap_said *s = &said[k];
        p->damaged_regions += s->runs != 1 || s->covered_bytes != s->bytes;
        p->missing_bytes += s->bytes > s->covered_bytes ? s->bytes - s->covered_bytes : 0;
    }
    heap_snapshot_count(p);
    return HR_OK;
}
