// SPDX-License-Identifier: Apache-2.0
// First fit asks again and again: which bytes are taken at any instant of [birth, death)? Only births matter as
// instants: of two buffers that meet, the later birth sees both. They are numbered, and cut into about √n / 4
// blocks that see equally many births and deaths, with a tree above the blocks:
//
//   any      of a block or a node: the bytes that are taken at some instant within it
//   whole    of a block: the bytes of the buffers that live through all of it
//   locals   of a block: the buffers that are born or die within it, by offset
//
//   instants ──┤ block ├┤ block ├┤ block ├┤ block ├──      a lifetime asks `any` of the few nodes that make up the
//   lifetime       └──────────────────────────┘            blocks it covers; at its ends, `whole` and the locals
//                   ends      covered       ends           that it meets
//
// First fit leaves few gaps, so the sets are a few spans each and a question takes a few steps.
#include "memory/pack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/spans.h"

enum { NODES_MAX = 2 * 32 }; // that make up a range: two at each level of the tree

// A buffer on its way through: its room, and its lifetime in numbers of births.
typedef struct item {
    uint64_t room_bytes;
    uint32_t first, last; // both included
    uint32_t length;      // in instants
    uint32_t id;
} item;

// A placed buffer, where it is born or dies.
typedef struct local {
    uint64_t begin, end;
    uint32_t first, last;
} local;

typedef struct block {
    uint32_t first, last; // births, both included
    spans whole;
    VEC(local) locals; // by begin
} block;

typedef struct packer {
    item *items;
    uint32_t count; // of those that take room
    uint32_t *births;
    uint32_t birth_count;
    uint32_t *block_of; // [birth_count]
    block *blocks;
    uint32_t block_count;
    uint32_t leaf_count; // a power of two; block k is node leaf_count + k of `any`, the root node 1
    spans *any;          // [2 * leaf_count]
} packer;

// ---- lifetimes ------------------------------------------------------------------------------------------------

static int by_time(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static int by_size(const void *a, const void *b)
{
    const item *left = a, *right = b;
    if (left->room_bytes != right->room_bytes) {
        return left->room_bytes < right->room_bytes ? 1 : -1;
    }
    if (left->length != right->length) {
        return left->length < right->length ? 1 : -1;
    }
    return (left->id > right->id) - (left->id < right->id);
}

// How many of the births lie before `instant`.
static uint32_t births_before(const packer *p, uint32_t instant)
{
    uint32_t low = 0, high = p->birth_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->births[middle] < instant) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The buffers that take room, and their births.
static hr_status enter(packer *p, const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                       hr_err *err)
{
    uint64_t sum_bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        const pack_buffer *b = &buffers[k];
        uint64_t padded_bytes = 0;
        if (b->birth >= b->death) {
            return HR_FAIL(err, CHECK, "buffer %u is born at %u and gone at %u", k, b->birth, b->death);
        }
        if (!hr_add_bytes(b->bytes, alignment_bytes - 1, &padded_bytes) ||
            !hr_add_bytes(sum_bytes, padded_bytes, &sum_bytes) || sum_bytes > INT64_MAX) {
            return HR_FAIL(err, CHECK, "buffer %u of %" PRIu64 " bytes: all of them need more than 63 bits",
                           k, b->bytes);
        }
        if (b->bytes > 0) {
            p->births[p->count] = b->birth;
            p->items[p->count++] = (item){
                .room_bytes = padded_bytes & ~(alignment_bytes - 1), .length = b->death - b->birth, .id = k};
        }
    }
    return HR_OK;
}

static void number_births(packer *p, const pack_buffer *buffers)
{
    if (p->count > 0) {
        qsort(p->births, p->count, sizeof *p->births, by_time);
    }
    for (uint32_t k = 0; k < p->count; k++) {
        if (p->birth_count == 0 || p->births[k] != p->births[p->birth_count - 1]) {
            p->births[p->birth_count++] = p->births[k];
        }
    }
    for (uint32_t k = 0; k < p->count; k++) {
        const pack_buffer *b = &buffers[p->items[k].id];
        p->items[k].first = births_before(p, b->birth);
        p->items[k].last = births_before(p, b->death) - 1;
    }
}

static void packer_deinit(packer *p)
{
    for (uint32_t k = 0; p->any != NULL && k < 2 * p->leaf_count; k++) {
        spans_deinit(&p->any[k]);
    }
    for (uint32_t k = 0; p->blocks != NULL && k < p->block_count; k++) {
        spans_deinit(&p->blocks[k].whole);
        vec_deinit(&p->blocks[k].locals);
    }
    hr_free(p->any);
    hr_free(p->blocks);
    hr_free(p->block_of);
    hr_free(p->items);
    hr_free(p->births);
}

static hr_status packer_init(packer *p, const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                             hr_err *err)
{
    assert(alignment_bytes != 0 && (alignment_bytes & (alignment_bytes - 1)) == 0);
    *p = (packer){.items = hr_calloc(count, sizeof *p->items), .births = hr_calloc(count, sizeof *p->births)};
    if (count > 0 && (p->items == NULL || p->births == NULL)) {
        return HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", count);
    }
    HR_TRY(enter(p, buffers, count, alignment_bytes, err));
    number_births(p, buffers);
    return HR_OK;
}

// ---- blocks ---------------------------------------------------------------------------------------------------

// Writes block_of: a block ends where it has seen its share of births and deaths. Returns how many there are.
static uint32_t cut_blocks(const packer *p, const uint32_t *edges)
{
    uint32_t wanted = 1, blocks = 0, seen = 0;
    while ((uint64_t)wanted * wanted * 16 < p->count) {
        wanted *= 2;
    }
    uint32_t share = 2 * (p->count / wanted) + 1;
    for (uint32_t k = 0; k < p->birth_count; k++) {
        if (seen > 0 && seen + edges[k] > share) {
            blocks++;
            seen = 0;
        }
        seen += edges[k];
        p->block_of[k] = blocks;
    }
    return blocks + 1;
}

static bool make_blocks(packer *p)
{
    uint32_t *edges = hr_calloc((size_t)p->birth_count + 1, sizeof *edges);
    p->block_of = hr_calloc(p->birth_count, sizeof *p->block_of);
    if (edges == NULL || p->block_of == NULL) {
        hr_free(edges);
        return false;
    }
    for (uint32_t k = 0; k < p->count; k++) {
        edges[p->items[k].first]++;
        edges[p->items[k].last + 1]++;
    }
    p->block_count = cut_blocks(p, edges);
    hr_free(edges);
    p->leaf_count = 1;
    while (p->leaf_count < p->block_count) {
        p->leaf_count *= 2;
    }
    p->blocks = hr_calloc(p->block_count, sizeof *p->blocks);
    p->any = hr_calloc((size_t)2 * p->leaf_count, sizeof *p->any);
    if (p->blocks == NULL || p->any == NULL) {
        return false;
    }
    for (uint32_t k = p->birth_count; k-- > 0;) {
        p->blocks[p->block_of[k]].first = k;
    }
    for (uint32_t k = 0; k < p->birth_count; k++) {
        p->blocks[p->block_of[k]].last = k;
    }
    return true;
}

static bool covers(const item *i, const block *b)
{
    return i->first <= b->first && b->last <= i->last;
}

static bool add_local(block *b, const item *i, uint64_t offset)
{
    if (vec_push(&b->locals) == NULL) {
        return false;
    }
    local *list = b->locals.data;
    uint32_t at = b->locals.count - 1;
    for (; at > 0 && list[at - 1].begin > offset; at--) {
        list[at] = list[at - 1];
    }
    list[at] = (local){offset, offset + i->room_bytes, i->first, i->last};
    return true;
}

// Enters a placed item into everything that will be asked about it.
static bool take(packer *p, const item *i, uint64_t offset)
{
    uint32_t low = p->block_of[i->first], high = p->block_of[i->last];
    uint64_t end = offset + i->room_bytes;
    bool taken = true;
    for (uint32_t k = low; taken && k <= high; k++) {
        block *b = &p->blocks[k];
        taken = covers(i, b) ? spans_add(&b->whole, offset, end) : add_local(b, i, offset);
    }
    for (low += p->leaf_count, high += p->leaf_count; taken && low > 0; low /= 2, high /= 2) {
        for (uint32_t k = low; taken && k <= high; k++) {
            taken = spans_add(&p->any[k], offset, end);
        }
    }
    return taken;
}

// ---- first fit ------------------------------------------------------------------------------------------------

// What stands in the way of an item: spans, or the locals that it meets; and how far the search has come in them.
typedef struct obstacle {
    const spans *taken;
    const block *block; // NULL: `taken` it is
    uint32_t at;
} obstacle;

static bool pass_spans(obstacle *o, uint64_t room_bytes, uint64_t *offset)
{
    const span *list = o->taken->list.data;
    uint32_t count = o->taken->list.count, first = spans_behind(o->taken, o->at, *offset);
    for (o->at = first; o->at < count && list[o->at].begin < *offset + room_bytes; o->at++) {
        *offset = list[o->at].end;
    }
    return o->at > first;
}

static bool pass_locals(obstacle *o, const item *i, uint64_t *offset)
{
    const local *list = o->block->locals.data;
    uint64_t before = *offset;
    for (; o->at < o->block->locals.count && list[o->at].begin < *offset + i->room_bytes; o->at++) {
        const local *l = &list[o->at];
        if (l->end > *offset && l->first <= i->last && i->first <= l->last) {
            *offset = l->end;
        }
    }
    return *offset > before;
}

// The nodes that make up the blocks [low, high].
static uint32_t add_nodes(const packer *p, uint32_t low, uint32_t high, obstacle *list, uint32_t count)
{
    for (low += p->leaf_count, high += p->leaf_count; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) {
            list[count++] = (obstacle){.taken = &p->any[low++]};
        }
        if (high % 2 == 0) {
            list[count++] = (obstacle){.taken = &p->any[high--]};
        }
    }
    if (low == high) {
        list[count++] = (obstacle){.taken = &p->any[low]};
    }
    return count;
}

static uint32_t add_end(const block *b, obstacle *list, uint32_t count)
{
    list[count++] = (obstacle){.taken = &b->whole};
    list[count++] = (obstacle){.block = b};
    return count;
}

static uint32_t find_obstacles(const packer *p, const item *i, obstacle list[NODES_MAX + 4])
{
    uint32_t low = p->block_of[i->first], high = p->block_of[i->last], count = 0;
    bool covers_low = covers(i, &p->blocks[low]), covers_high = covers(i, &p->blocks[high]);
    if (!covers_low) {
        count = add_end(&p->blocks[low], list, count);
    }
    if (!covers_high && high != low) {
        count = add_end(&p->blocks[high], list, count);
    }
    uint32_t first = covers_low ? low : low + 1, behind = covers_high ? high + 1 : high;
    return first < behind ? add_nodes(p, first, behind - 1, list, count) : count;
}

// The lowest offset with room: every obstacle moves it on, until a whole round finds nothing in the way.
static uint64_t lowest_free(const packer *p, const item *i)
{
    obstacle list[NODES_MAX + 4];
    uint32_t count = find_obstacles(p, i, list);
    uint64_t offset = 0;
    for (uint32_t k = 0, agreed = 0; agreed < count; k = k + 1 == count ? 0 : k + 1) {
        obstacle *o = &list[k];
        bool moved = o->block == NULL ? pass_spans(o, i->room_bytes, &offset) : pass_locals(o, i, &offset);
        agreed = moved ? 0 : agreed + 1;
    }
    return offset;
}

static hr_status first_fit(packer *p, uint64_t *offsets, uint64_t *height_bytes, hr_err *err)
{
    if (p->count == 0) {
        return HR_OK;
    }
    qsort(p->items, p->count, sizeof *p->items, by_size);
    bool has_room = make_blocks(p);
    for (uint32_t k = 0; has_room && k < p->count; k++) {
        const item *i = &p->items[k];
        uint64_t offset = lowest_free(p, i), end = offset + i->room_bytes;
        has_room = take(p, i, offset);
        offsets[i->id] = offset;
        *height_bytes = end > *height_bytes ? end : *height_bytes;
    }
    return has_room ? HR_OK : HR_FAIL(err, NOMEM, "no host memory to pack %u buffers", p->count);
}

hr_status pack_offsets(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                       uint64_t *offsets, uint64_t *height_bytes, hr_err *err)
{
    packer p;
    *height_bytes = 0;
    for (uint32_t k = 0; k < count; k++) {
        offsets[k] = 0;
    }
    hr_status status = packer_init(&p, buffers, count, alignment_bytes, err);
    if (status == HR_OK) {
        status = first_fit(&p, offsets, height_bytes, err);
    }
    packer_deinit(&p);
    return status;
}

// ---- lower bound ----------------------------------------------------------------------------------------------

hr_status pack_lower_bound(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                           uint64_t *bytes, hr_err *err)
{
    packer p;
    *bytes = 0;
    hr_status status = packer_init(&p, buffers, count, alignment_bytes, err);
    uint64_t *change = status == HR_OK ? hr_calloc((size_t)p.birth_count + 1, sizeof *change) : NULL;
    if (status == HR_OK && change == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory to bound %u buffers", count);
    }
    for (uint32_t k = 0; change != NULL && k < p.count;
         k++) { // modulo 2^64; every sum over them is a real one
        change[p.items[k].first] += p.items[k].room_bytes;
        change[p.items[k].last + 1] -= p.items[k].room_bytes;
    }
    uint64_t alive_bytes = 0;
    for (uint32_t k = 0; change != NULL && k < p.birth_count; k++) {
        alive_bytes += change[k];
        *bytes = alive_bytes > *bytes ? alive_bytes : *bytes;
    }
    hr_free(change);
    packer_deinit(&p);
    return status;
}
