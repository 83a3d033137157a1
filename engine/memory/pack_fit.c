// SPDX-License-Identifier: Apache-2.0
// First fit asks again and again: which bytes are taken at any instant of [birth, death)? A tree over the births
// keeps two sets of bytes in every node:
//
//   any      the bytes that are taken at some birth below the node
//   whole    the bytes of the buffers that live through all of it, but not through all of its parent
//
//   births ──┤      ├┤      ├┤      ├┤      ├──     a lifetime asks `any` of the few nodes that make it up, and
//   lifetime     └────────────────────┘             `whole` of the nodes above those
//
// First fit leaves few gaps, so the sets are a few spans each and a question takes a few steps.
#include "base/host_mem.h"
#include "memory/pack_items.h"
#include "memory/spans.h"

enum { LEVELS_MAX = 33 };

typedef struct tree {
    spans *any, *whole;  // [2 * leaf_count], the root is node 1
    uint32_t leaf_count; // a power of two; birth k is node leaf_count + k
} tree;

// The nodes that a lifetime covers, but not their parents; and those above, which it covers in part.
typedef struct cover {
    uint32_t inner[2 * LEVELS_MAX], outer[2 * LEVELS_MAX];
    uint32_t inner_count, outer_count;
} cover;

// What stands in the way of an item, and how far the search has come in it.
typedef struct obstacle {
    const spans *taken;
    uint32_t at;
} obstacle;

static void tree_deinit(tree *t)
{
    for (uint32_t k = 0; t->any != NULL && t->whole != NULL && k < 2 * t->leaf_count; k++) {
        spans_deinit(&t->any[k]);
        spans_deinit(&t->whole[k]);
    }
    hr_free(t->any);
    hr_free(t->whole);
}

static bool tree_init(tree *t, uint32_t birth_count)
{
    *t = (tree){.leaf_count = 1};
    while (t->leaf_count < birth_count) {
        t->leaf_count *= 2;
    }
    t->any = hr_calloc((size_t)2 * t->leaf_count, sizeof *t->any);
    t->whole = hr_calloc((size_t)2 * t->leaf_count, sizeof *t->whole);
    return t->any != NULL && t->whole != NULL;
}

static void find_cover(const tree *t, const pack_item *i, cover *c)
{
    uint32_t low = t->leaf_count + i->first, high = t->leaf_count + i->last;
    uint32_t first = low, last = high;
    c->inner_count = c->outer_count = 0;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) {
            c->inner[c->inner_count++] = low++;
        }
        if (high % 2 == 0) {
            c->inner[c->inner_count++] = high--;
        }
    }
    if (low == high) {
        c->inner[c->inner_count++] = low;
    }
    for (uint32_t level = 1; first >> level > 0; level++) {
        uint32_t left = first >> level, right = last >> level;
        if (left << level < first || ((left + 1) << level) - 1 > last) {
            c->outer[c->outer_count++] = left;
        }
        if (right != left && ((right + 1) << level) - 1 > last) {
            c->outer[c->outer_count++] = right;
        }
    }
}

static bool take(tree *t, const cover *c, uint64_t begin, uint64_t end)
{
    bool taken = true;
    for (uint32_t k = 0; taken && k < c->inner_count; k++) {
        taken = spans_add(&t->whole[c->inner[k]], begin, end) && spans_add(&t->any[c->inner[k]], begin, end);
    }
    for (uint32_t k = 0; taken && k < c->outer_count; k++) {
        taken = spans_add(&t->any[c->outer[k]], begin, end);
    }
    return taken;
}

static uint32_t add_obstacle(obstacle *list, uint32_t count, const spans *taken)
{
    list[count] = (obstacle){.taken = taken};
    return count + (taken->list.count > 0);
}

static bool pass(obstacle *o, uint64_t room_bytes, uint64_t *offset)
{
    const span *list = o->taken->list.data;
    uint32_t count = o->taken->list.count, first = spans_behind(o->taken, o->at, *offset);
    for (o->at = first; o->at < count && list[o->at].begin < *offset + room_bytes; o->at++) {
        *offset = list[o->at].end;
    }
    return o->at > first;
}

// The lowest offset with room: every obstacle moves it on, until a whole round finds nothing in the way.
static uint64_t lowest_free(const tree *t, const cover *c, uint64_t room_bytes)
{
    obstacle list[4 * LEVELS_MAX + 1];
    uint32_t count = 0;
    uint64_t offset = 0;
    for (uint32_t k = 0; k < c->inner_count; k++) {
        count = add_obstacle(list, count, &t->any[c->inner[k]]);
    }
    for (uint32_t k = 0; k < c->outer_count; k++) {
        count = add_obstacle(list, count, &t->whole[c->outer[k]]);
    }
    for (uint32_t k = 0, agreed = 0; agreed < count; k = k + 1 == count ? 0 : k + 1) {
        agreed = pass(&list[k], room_bytes, &offset) ? 0 : agreed + 1;
    }
    return offset;
}

bool pack_first_fit(const pack_items *items, uint64_t *offsets, uint64_t *height_bytes)
{
    tree t;
    cover c;
    bool has_room = tree_init(&t, items->birth_count);
    *height_bytes = 0;
    for (uint32_t k = 0; has_room && k < items->count; k++) {
        const pack_item *i = &items->list[k];
        find_cover(&t, i, &c);
        uint64_t offset = lowest_free(&t, &c, i->room_bytes), end = offset + i->room_bytes;
        has_room = take(&t, &c, offset, end);
        offsets[i->id] = offset;
        *height_bytes = end > *height_bytes ? end : *height_bytes;
    }
    tree_deinit(&t);
    return has_room;
}
