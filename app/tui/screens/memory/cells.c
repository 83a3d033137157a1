// SPDX-License-Identifier: Apache-2.0
#include "app/tui/screens/memory/cells.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t mapped_max_bytes = UINT64_C(1) << 56; // sums below cannot wrap

// ---- scale ----------------------------------------------------------------------------------------------------

uint64_t map_rows_of(const map_scale *s, const heap_region *r)
{
    return (r->bytes + s->row_bytes - 1) / s->row_bytes;
}

static uint64_t padded(const map_scale *s, const heap_region *r)
{
    return s->close ? r->bytes : map_rows_of(s, r) * s->row_bytes;
}

static uint64_t all_rows(const heap_mirror *m, const map_scale *s)
{
    if (s->close) {
        return (m->pool_bytes + s->row_bytes - 1) / s->row_bytes;
    }
    uint64_t rows = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        rows += map_rows_of(s, &m->regions[i]);
    }
    return rows;
}

// The smallest of 4, 5, 6, 7 times a power of two with which the whole pool fits.
static void fit(map_scale *s, const heap_mirror *m)
{
    enum { SMALLEST_SHIFT = 4, LARGEST_SHIFT = 58 };
    for (unsigned shift = SMALLEST_SHIFT; shift < LARGEST_SHIFT; shift++) {
        for (uint64_t quarters = 4; quarters < 8; quarters++) {
            s->cell_bytes = quarters << shift;
            s->row_bytes = s->cell_bytes * (uint64_t)s->width;
            if (m->pool_bytes / s->row_bytes <= (uint64_t)s->rows && all_rows(m, s) <= (uint64_t)s->rows) {
                return;
            }
        }
    }
}

static uint64_t place_of(const map_scale *s, const heap_mirror *m, const heap_piece *piece)
{
    uint64_t at = piece->address - m->regions[piece->region].address;
    for (size_t i = 0; i < piece->region; i++) {
        at += padded(s, &m->regions[i]);
    }
    return at;
}

static void zoom_in(map_scale *s, const heap_scene *v)
{
    enum { SMALLEST_CELL = 64 };
    heap_piece piece;
    for (unsigned i = 0; i < v->zoom && s->cell_bytes / 2 >= SMALLEST_CELL; i++) {
        s->cell_bytes /= 2;
    }
    s->cell_bytes += s->cell_bytes % 2;
    s->row_bytes = s->cell_bytes * (uint64_t)s->width;
    s->all_rows = all_rows(&v->heap, s);
    uint64_t shown = (uint64_t)s->rows;
    if (s->all_rows > shown && heap_scene_piece(v, &piece)) {
        uint64_t row = place_of(s, &v->heap, &piece) / s->row_bytes;
        s->top = row > shown / 2 ? row - shown / 2 : 0;
        s->top = s->top + shown > s->all_rows ? s->all_rows - shown : s->top;
    }
}

bool map_scale_make(map_scale *s, const heap_scene *v, int rows, int width)
{
    *s = (map_scale){.rows = rows, .width = width};
    if (rows <= 0 || width <= 0 || v->heap.region_count == 0 || v->heap.pool_bytes >= mapped_max_bytes) {
        return false;
    }
    s->close = v->heap.region_count > (size_t)rows;
    fit(s, &v->heap);
    zoom_in(s, v);
    return true;
}

bool map_address(const map_scale *s, const heap_mirror *m, int row, int column, uint64_t *address)
{
    uint64_t at = (s->top + (uint64_t)row) * s->row_bytes + (uint64_t)column * s->cell_bytes, begin = 0;
    for (size_t i = 0; i < m->region_count && begin <= at; i++) {
        if (at - begin < m->regions[i].bytes) {
            *address = m->regions[i].address + (at - begin);
            return true;
        }
        begin += padded(s, &m->regions[i]);
    }
    return false;
}

// ---- reading --------------------------------------------------------------------------------------------------

static unsigned kind_of(const heap_block *b)
{
    return b == NULL ? KIND_FREE : b->pending ? KIND_PENDING : b->category;
}

static bool next_piece(map_reader *r)
{
    if (!heap_mirror_next(r->heap, &r->walk, &r->piece)) {
        return false;
    }
    while (r->region < r->piece.region) {
        r->base += padded(r->scale, &r->heap->regions[r->region++]);
    }
    r->in_piece = true;
    r->told = 0;
    return true;
}

// A block is what was asked for, and behind it its waste.
static bool next_segment(map_reader *r)
{
    if (!r->in_piece && !next_piece(r)) {
        return false;
    }
    const heap_block *b = r->piece.block;
    uint64_t begin = r->base + (r->piece.address - r->heap->regions[r->region].address);
    uint64_t asked = b == NULL ? r->piece.bytes : b->requested_bytes;
    bool wastes = r->told >= asked;
    uint64_t end = wastes ? r->piece.bytes : asked;
    r->now = (map_segment){.begin = begin + r->told,
                           .end = begin + end,
                           .kind = wastes ? KIND_WASTE : kind_of(b),
                           .band = b == NULL ? BAND_COUNT : b->category,
                           .address = r->piece.address,
                           .begins_region =
                               r->piece.address == r->heap->regions[r->region].address && r->told == 0};
    r->told = end;
    r->in_piece = end < r->piece.bytes;
    return true;
}

map_reader map_read(const map_scale *s, const heap_scene *v)
{
    map_reader r = {.heap = &v->heap, .scale = s, .at = s->top * s->row_bytes};
    r.more = next_segment(&r);
    return r;
}

// The segment that goes on in the next half stays.
map_half map_next(map_reader *r)
{
    uint64_t bytes[KIND_COUNT] = {0}, largest = 0, begin = r->at, end = begin + r->scale->cell_bytes / 2;
    map_half h = {.kind = KIND_NONE};
    r->at = end;
    while (r->more && r->now.end <= begin) {
        r->more = next_segment(r);
    }
    while (r->more && r->now.begin < end) {
        const map_segment *now = &r->now;
        uint64_t low = now->begin > begin ? now->begin : begin, high = now->end < end ? now->end : end;
        bytes[now->kind] += high - low;
        h.begins_region = h.begins_region || (now->begins_region && now->begin >= begin);
        if (bytes[now->kind] > largest) {
            largest = bytes[now->kind];
            h.kind = now->kind;
            h.band = now->band;
            h.address = now->address;
        }
        if (now->end > end) {
            break;
        }
        r->more = next_segment(r);
    }
    return h;
}

const map_half *map_halves(const map_scale *s, const heap_scene *v)
{
    heap_drawn *map = v->map;
    const uint64_t of[] = {v->version,    v->at,  (uint64_t)s->rows, (uint64_t)s->width,
                           s->cell_bytes, s->top, s->close,          1};
    const size_t count = 2 * (size_t)s->rows * (size_t)s->width, bytes = count * sizeof(map_half);
    _Static_assert(sizeof of == sizeof map->of, "all that they depend on");
    if (map == NULL || memcmp(of, map->of, sizeof of) == 0) {
        return map == NULL ? NULL : map->data;
    }
    if (bytes > map->bytes) {
        void *grown = realloc(map->data, bytes);
        if (grown == NULL) {
            return NULL;
        }
        map->data = grown;
        map->bytes = bytes;
    }
    map_half *halves = map->data;
    map_reader reader = map_read(s, v);
    for (size_t k = 0; k < count; k++) {
        halves[k] = map_next(&reader);
    }
    memcpy(map->of, of, sizeof of);
    return halves;
}

void map_selected(const map_scale *s, const heap_scene *v, uint64_t *first, uint64_t *end)
{
    heap_piece piece;
    *first = *end = 0;
    if (heap_scene_piece(v, &piece)) {
        const uint64_t half_bytes = s->cell_bytes / 2, hidden = s->top * s->row_bytes;
        const uint64_t begin = place_of(s, &v->heap, &piece), behind = begin + piece.bytes;
        *first = begin > hidden ? (begin - hidden) / half_bytes : 0;
        *end = behind > hidden ? (behind - hidden + half_bytes - 1) / half_bytes : 0;
    }
}
