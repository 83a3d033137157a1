// SPDX-License-Identifier: Apache-2.0
// First fit asks: what is taken, at any instant of [birth, death)? A segment tree over the instants answers it in
// O(log n) sets of bytes. Only births matter as instants: of two buffers that meet, the later birth sees both.
//
//   every buffer  is split into the O(log n) nodes that make up its lifetime
//   node.whole    bytes of the buffers that have this node among theirs: taken at every instant below it
//   node.any      bytes of the buffers that have this node or one below it: taken at some instant below it
//   a lifetime    meets exactly the `any` of its own nodes and the `whole` of the nodes above them
#include "memory/pack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/spans.h"

enum { NODES_MAX = 4 * 32 }; // of one lifetime: two at each level of the tree, and the same above them

// A buffer on its way through: its room, and its lifetime in leaves of the tree.
typedef struct item {
    uint64_t room_bytes;
    uint32_t first, last; // leaves, both included
    uint32_t length;      // in instants
    uint32_t id;
} item;

typedef struct node {
    spans any, whole;
} node;

typedef struct packer {
    item *items;
    uint32_t count; // of those that take room
    uint32_t *births;
    uint32_t leaf_count; // a power of two; leaf k is node leaf_count + k, the root node 1
    node *nodes;
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
static uint32_t births_before(const packer *p, uint32_t birth_count, uint32_t instant)
{
    uint32_t low = 0, high = birth_count;
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
            p->items[p->count++] =
                (item){.room_bytes = padded_bytes & ~(alignment_bytes - 1), .length = b->death - b->birth, .id = k};
        }
    }
    return HR_OK;
}

// Gives every item its leaves: one for each distinct birth.
static void find_leaves(packer *p, const pack_buffer *buffers)
{
    uint32_t distinct = 0;
    qsort(p->births, p->count, sizeof *p->births, by_time);
    for (uint32_t k = 0; k < p->count; k++) {
        if (distinct == 0 || p->births[k] != p->births[distinct - 1]) {
            p->births[distinct++] = p->births[k];
        }
    }
    for (uint32_t k = 0; k < p->count; k++) {
        const pack_buffer *b = &buffers[p->items[k].id];
        p->items[k].first = births_before(p, distinct, b->birth);
        p->items[k].last = births_before(p, distinct, b->death) - 1;
    }
    p->leaf_count = 1;
    while (p->leaf_count < distinct) {
        p->leaf_count *= 2;
    }
}

static void packer_deinit(packer *p)
{
    for (uint32_t k = 0; p->nodes != NULL && k < 2 * p->leaf_count; k++) {
        spans_deinit(&p->nodes[k].any);
        spans_deinit(&p->nodes[k].whole);
    }
    hr_free(p->nodes);
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
    find_leaves(p, buffers);
    return HR_OK;
}

// ---- first fit ------------------------------------------------------------------------------------------------

// The nodes that make up [first, last], and those above them; returns how many of the former, *above of the latter.
static uint32_t nodes_of(const packer *p, const item *i, uint32_t own[NODES_MAX], uint32_t up[NODES_MAX],
                         uint32_t *above)
{
    uint32_t low = i->first + p->leaf_count, high = i->last + p->leaf_count, owned = 0;
    while (low < high) {
        if ((low & 1) == 1) {
            own[owned++] = low++;
        }
        if ((high & 1) == 0) {
            own[owned++] = high--;
        }
        low /= 2;
        high /= 2;
    }
    if (low == high) {
        own[owned++] = low;
    }
    // Every node above one of them is above the leaf at one end, and larger than the node it is above.
    *above = 0;
    uint32_t left = (i->first + p->leaf_count) / 2, right = (i->last + p->leaf_count) / 2;
    for (; left > 0; left /= 2, right /= 2) {
        up[(*above)++] = left;
        if (right != left) {
            up[(*above)++] = right;
        }
    }
    return owned;
}

// One set of taken bytes, and how far the search has come in it.
typedef struct cursor {
    const spans *taken;
    uint32_t at;
} cursor;

// The lowest offset with `room_bytes` free in all sets: whoever stands in the way moves it behind himself, until a
// whole round finds nobody.
static uint64_t lowest_free(cursor *sets, uint32_t count, uint64_t room_bytes)
{
    uint64_t offset = 0;
    for (uint32_t k = 0, agreed = 0; agreed < count; k = k + 1 == count ? 0 : k + 1) {
        cursor *c = &sets[k];
        c->at = spans_behind(c->taken, c->at, offset);
        if (c->at < c->taken->list.count && c->taken->list.data[c->at].begin < offset + room_bytes) {
            offset = c->taken->list.data[c->at].end;
            agreed = 0;
        } else {
            agreed++;
        }
    }
    return offset;
}
