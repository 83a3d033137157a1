// SPDX-License-Identifier: Apache-2.0
// First fit asks again and again: which bytes are taken at any birth of a lifetime? The births are cut into blocks
// that see equally many births and deaths, with a tree above the blocks:
//
//   any      of a node: the bytes that are taken at some birth below it
//   whole    of a node: the bytes of the items that live through all of it, but not through all of its parent
//   locals   of a block: the items that live through a part of it, by offset
//
//   births ──┤ block ├┤ block ├┤ block ├┤ block ├──      a lifetime asks `any` of the few nodes that make up the
//   lifetime     └──────────────────────────┘            blocks it covers, `whole` of the nodes above those and above
//                 ends      covered       ends           its ends, and the locals at its ends that it meets
//
// First fit leaves few gaps, so the sets are a few spans each and a question takes a few steps.
#include "base/host_mem.h"
#include "memory/pack_items.h"
#include "memory/spans.h"

enum { LEVELS_MAX = 33, NEAR = 4, BLOCK_EDGES_MIN = 256 };

// A placed item, where it lives through a part of a block.
typedef struct local {
    uint64_t begin, end;
    uint32_t first, last;
} local;

typedef struct block {
    uint32_t first, last; // births, both included
    VEC(local) locals;    // by begin
} block;

typedef struct fit {
    uint32_t *block_of; // [birth_count]
    block *blocks;
    uint32_t block_count;
    uint32_t leaf_count; // a power of two; block k is node leaf_count + k, the root is node 1
    spans *any, *whole;  // [2 * leaf_count]
} fit;

// The nodes that a lifetime covers, but not their parents; those on the way to its ends, which it covers in part; and
// of those the blocks.
typedef struct cover {
    uint32_t inner[2 * LEVELS_MAX], outer[2 * LEVELS_MAX];
    uint32_t inner_count, outer_count;
    block *ends[2];
    uint32_t end_count;
} cover;

// What stands in the way of an item: spans, or the locals that it meets; and how far the search has come in them.
typedef struct obstacle {
    const spans *taken;
    const block *block; // NULL: `taken` it is
    uint32_t at;
} obstacle;

// ---- blocks ---------------------------------------------------------------------------------------------------

// Writes block_of: a block ends where it has seen its share of births and deaths. Returns how many there are.
static uint32_t cut_blocks(const fit *f, const uint32_t *edges, const pack_items *items)
{
    uint32_t share = BLOCK_EDGES_MIN, blocks = 0, seen = 0;
    while (share < 4 * (items->count / share)) {
        share *= 2;
    }
    for (uint32_t k = 0; k < items->birth_count; k++) {
        if (seen > 0 && seen + edges[k] > share) {
            blocks++;
            seen = 0;
        }
        seen += edges[k];
        f->block_of[k] = blocks;
    }
    return blocks + 1;
}

static bool make_blocks(fit *f, const pack_items *items)
{
    uint32_t *edges = hr_calloc((size_t)items->birth_count + 1, sizeof *edges);
    f->block_of = hr_calloc(items->birth_count, sizeof *f->block_of);
    if (edges == NULL || f->block_of == NULL) {
        hr_free(edges);
        return false;
    }
    for (uint32_t k = 0; k < items->count; k++) {
        edges[items->list[k].first]++;
        edges[items->list[k].last + 1]++;
    }
    f->block_count = cut_blocks(f, edges, items);
    hr_free(edges);
    f->blocks = hr_calloc(f->block_count, sizeof *f->blocks);
    if (f->blocks == NULL) {
        return false;
    }
    for (uint32_t k = items->birth_count; k-- > 0;) {
        f->blocks[f->block_of[k]].first = k;
    }
    for (uint32_t k = 0; k < items->birth_count; k++) {
        f->blocks[f->block_of[k]].last = k;
    }
    return true;
}

static bool fit_init(fit *f, const pack_items *items)
{
    *f = (fit){.leaf_count = 1};
    if (!make_blocks(f, items)) {
        return false;
    }
    while (f->leaf_count < f->block_count) {
        f->leaf_count *= 2;
    }
    f->any = hr_calloc((size_t)2 * f->leaf_count, sizeof *f->any);
    f->whole = hr_calloc((size_t)2 * f->leaf_count, sizeof *f->whole);
    return f->any != NULL && f->whole != NULL;
}

static void fit_deinit(fit *f)
{
    for (uint32_t k = 0; f->any != NULL && f->whole != NULL && k < 2 * f->leaf_count; k++) {
        spans_deinit(&f->any[k]);
        spans_deinit(&f->whole[k]);
    }
    for (uint32_t k = 0; f->blocks != NULL && k < f->block_count; k++) {
        vec_deinit(&f->blocks[k].locals);
    }
    hr_free(f->any);
    hr_free(f->whole);
    hr_free(f->blocks);
    hr_free(f->block_of);
}

// ---- cover ----------------------------------------------------------------------------------------------------

// Notes a node on the way to an end unless its blocks lie within [begin, end).
static void add_outer(const fit *f, cover *c, uint32_t node, uint32_t level, uint32_t begin, uint32_t end)
{
    uint32_t first = (node << level) - f->leaf_count;
    if (first < begin || first + (1U << level) > end) {
        c->outer[c->outer_count++] = node;
    }
}

static void find_cover(const fit *f, const pack_item *i, cover *c)
{
    uint32_t low = f->block_of[i->first], high = f->block_of[i->last];
    uint32_t begin = low + (f->blocks[low].first < i->first), end = high + (f->blocks[high].last <= i->last);
    *c = (cover){.end_count = 0};
    if (begin > low) {
        c->ends[c->end_count++] = &f->blocks[low];
    }
    if (end == high && (high > low || begin == low)) {
        c->ends[c->end_count++] = &f->blocks[high];
    }
    for (uint32_t level = 0; (f->leaf_count + low) >> level > 0; level++) {
        uint32_t left = (f->leaf_count + low) >> level, right = (f->leaf_count + high) >> level;
        add_outer(f, c, left, level, begin, end);
        if (right != left) {
            add_outer(f, c, right, level, begin, end);
        }
    }
    for (begin += f->leaf_count, end += f->leaf_count; begin < end; begin /= 2, end /= 2) {
        if (begin % 2 == 1) {
            c->inner[c->inner_count++] = begin++;
        }
        if (end % 2 == 1) {
            c->inner[c->inner_count++] = --end;
        }
    }
}

static bool add_local(block *b, const pack_item *i, uint64_t offset)
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
static bool take(fit *f, const cover *c, const pack_item *i, uint64_t offset)
{
    uint64_t end = offset + i->room_bytes;
    bool taken = true;
    for (uint32_t k = 0; taken && k < c->end_count; k++) {
        taken = add_local(c->ends[k], i, offset);
    }
    for (uint32_t k = 0; taken && k < c->inner_count; k++) {
        uint32_t node = c->inner[k];
        taken = spans_add(&f->whole[node], offset, end) && spans_add(&f->any[node], offset, end);
    }
    for (uint32_t k = 0; taken && k < c->outer_count; k++) {
        taken = spans_add(&f->any[c->outer[k]], offset, end);
    }
    return taken;
}

// ---- first fit ------------------------------------------------------------------------------------------------

// Moves on to the first span that ends behind the offset: it is usually near.
static void follow(obstacle *o, uint64_t offset)
{
    const span *list = o->taken->list.data;
    for (int k = 0; k < NEAR; k++, o->at++) {
        if (o->at == o->taken->list.count || list[o->at].end > offset) {
            return;
        }
    }
    o->at = spans_behind(o->taken, o->at, offset);
}

static bool pass_spans(obstacle *o, uint64_t room_bytes, uint64_t *offset)
{
    const span *list = o->taken->list.data;
    uint64_t before = *offset;
    follow(o, *offset);
    for (; o->at < o->taken->list.count && list[o->at].begin < *offset + room_bytes; o->at++) {
        *offset = list[o->at].end;
    }
    return *offset > before;
}

static bool pass_locals(obstacle *o, const pack_item *i, uint64_t *offset)
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

static uint32_t find_obstacles(const fit *f, const cover *c, obstacle *list)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->end_count; k++) {
        list[count] = (obstacle){.block = c->ends[k]};
        count += c->ends[k]->locals.count > 0;
    }
    for (uint32_t k = 0; k < c->inner_count; k++) {
        list[count] = (obstacle){.taken = &f->any[c->inner[k]]};
        count += list[count].taken->list.count > 0;
    }
    for (uint32_t k = 0; k < c->outer_count; k++) {
        list[count] = (obstacle){.taken = &f->whole[c->outer[k]]};
        count += list[count].taken->list.count > 0;
    }
    return count;
}

// The lowest offset with room: every obstacle moves it on, until a whole round finds nothing in the way.
static uint64_t lowest_free(const fit *f, const cover *c, const pack_item *i)
{
    obstacle list[4 * LEVELS_MAX + 3];
    uint32_t count = find_obstacles(f, c, list);
    uint64_t offset = 0;
    for (uint32_t k = 0, agreed = 0; agreed < count; k = k + 1 == count ? 0 : k + 1) {
        obstacle *o = &list[k];
        bool moved = o->block == NULL ? pass_spans(o, i->room_bytes, &offset) : pass_locals(o, i, &offset);
        agreed = moved ? 0 : agreed + 1;
    }
    return offset;
}

bool pack_first_fit(const pack_items *items, uint64_t *offsets, uint64_t *height_bytes)
{
    fit f;
    cover c;
    *height_bytes = 0;
    if (items->count == 0) {
        return true;
    }
    bool has_room = fit_init(&f, items);
    for (uint32_t k = 0; has_room && k < items->count; k++) {
        const pack_item *i = &items->list[k];
        find_cover(&f, i, &c);
        uint64_t offset = lowest_free(&f, &c, i), end = offset + i->room_bytes;
        has_room = take(&f, &c, i, offset);
        offsets[i->id] = offset;
        *height_bytes = end > *height_bytes ? end : *height_bytes;
    }
    fit_deinit(&f);
    return has_room;
}
