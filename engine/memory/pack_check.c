// SPDX-License-Identifier: Apache-2.0
// The judge of packings: a sweep over the instants with the buffers alive in the order of their offsets. It shares
// nothing with the packer, and believes neither offsets nor height.
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "memory/pack.h"

typedef struct edge {
    uint32_t instant, buffer;
    bool begins;
} edge;

typedef struct sweep {
    const pack_buffer *buffers;
    const uint64_t *offsets;
    edge *edges;     // [edge_count]
    uint32_t *alive; // buffers, by offset
    uint32_t edge_count, alive_count;
} sweep;

// A block that dies at an instant is gone before one is born at it.
static int by_instant(const void *a, const void *b)
{
    const edge *left = a, *right = b;
    if (left->instant != right->instant) {
        return left->instant < right->instant ? -1 : 1;
    }
    if (left->begins != right->begins) {
        return left->begins ? 1 : -1;
    }
    return (left->buffer > right->buffer) - (left->buffer < right->buffer);
}

static hr_status check_buffer(const pack_buffer *b, uint32_t id, uint64_t offset, uint64_t alignment_bytes,
                              uint64_t height_bytes, hr_err *err)
{
    if (b->birth >= b->death) {
        return HR_FAIL(err, CHECK, "buffer %u is born at %u and gone at %u", id, b->birth, b->death);
    }
    if (offset % alignment_bytes != 0) {
        return HR_FAIL(err, CHECK, "buffer %u: needed an offset in whole %" PRIu64 " bytes, had %" PRIu64, id,
                       alignment_bytes, offset);
    }
    if (offset > height_bytes || b->bytes > height_bytes - offset) {
        return HR_FAIL(err, CHECK,
                       "buffer %u: %" PRIu64 " bytes at %" PRIu64 " reach beyond the height of %" PRIu64, id,
                       b->bytes, offset, height_bytes);
    }
    return HR_OK;
}

// All of them for themselves, and the height as the end of the highest.
static hr_status check_each(sweep *s, uint32_t count, uint64_t alignment_bytes, uint64_t height_bytes,
                            hr_err *err)
{
    uint64_t reached_bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        const pack_buffer *b = &s->buffers[k];
        HR_TRY(check_buffer(b, k, s->offsets[k], alignment_bytes, height_bytes, err));
        if (b->bytes == 0) {
            continue;
        }
        uint64_t end = s->offsets[k] + b->bytes;
        reached_bytes = end > reached_bytes ? end : reached_bytes;
        s->edges[s->edge_count++] = (edge){b->birth, k, true};
        s->edges[s->edge_count++] = (edge){b->death, k, false};
    }
    if (height_bytes % alignment_bytes != 0 || height_bytes - reached_bytes >= alignment_bytes) {
        return HR_FAIL(err, CHECK, "the height is %" PRIu64 ", the highest buffer ends at %" PRIu64,
                       height_bytes, reached_bytes);
    }
    return HR_OK;
}

// Where among the living a buffer at this offset belongs.
static uint32_t place_of(const sweep *s, uint64_t offset)
{
    uint32_t low = 0, high = s->alive_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->offsets[s->alive[middle]] < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static hr_status check_neighbours(const sweep *s, uint32_t lower, uint32_t upper, uint32_t instant,
                                  hr_err *err)
{
    if (s->offsets[upper] - s->offsets[lower] < s->buffers[lower].bytes) {
        return HR_FAIL(err, CHECK,
                       "instant %u: buffer %u at %" PRIu64 " lies in the %" PRIu64
                       " bytes of buffer %u at %" PRIu64,
                       instant, upper, s->offsets[upper], s->buffers[lower].bytes, lower, s->offsets[lower]);
    }
    return HR_OK;
}

static hr_status enter(sweep *s, const edge *e, hr_err *err)
{
    uint32_t at = place_of(s, s->offsets[e->buffer]);
    if (at > 0) {
        HR_TRY(check_neighbours(s, s->alive[at - 1], e->buffer, e->instant, err));
    }
    if (at < s->alive_count) {
        HR_TRY(check_neighbours(s, e->buffer, s->alive[at], e->instant, err));
    }
    memmove(&s->alive[at + 1], &s->alive[at], (s->alive_count - at) * sizeof *s->alive);
    s->alive[at] = e->buffer;
    s->alive_count++;
    return HR_OK;
}

// The living do not overlap, so no other has its offset.
static void leave(sweep *s, const edge *e)
{
    uint32_t at = place_of(s, s->offsets[e->buffer]);
    s->alive_count--;
    memmove(&s->alive[at], &s->alive[at + 1], (s->alive_count - at) * sizeof *s->alive);
}

static hr_status check_pairs(sweep *s, hr_err *err)
{
    if (s->edge_count > 0) {
        qsort(s->edges, s->edge_count, sizeof *s->edges, by_instant);
    }
    for (uint32_t k = 0; k < s->edge_count; k++) {
        if (s->edges[k].begins) {
            HR_TRY(enter(s, &s->edges[k], err));
        } else {
            leave(s, &s->edges[k]);
        }
    }
    return HR_OK;
}

hr_status pack_check(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                     const uint64_t *offsets, uint64_t height_bytes, hr_err *err)
{
    sweep s = {.buffers = buffers,
               .offsets = offsets,
               .edges = hr_calloc((size_t)2 * count, sizeof *s.edges),
               .alive = hr_calloc(count, sizeof *s.alive)};
    hr_status status = HR_OK;
    if (count > 0 && (s.edges == NULL || s.alive == NULL)) {
        status = HR_FAIL(err, NOMEM, "no host memory to check %u buffers", count);
    } else {
        status = check_each(&s, count, alignment_bytes, height_bytes, err);
    }
    if (status == HR_OK) {
        status = check_pairs(&s, err);
    }
    hr_free(s.edges);
    hr_free(s.alive);
    return status;
}
