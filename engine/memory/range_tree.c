// SPDX-License-Identifier: Apache-2.0
#include "memory/range_tree.h"

#include <assert.h>

void range_tree_init(range_tree *t, uint64_t low, uint64_t high)
{
    *t = (range_tree){.root = RANGE_NONE, .spare = RANGE_NONE, .low = low, .high = high};
}

void range_tree_deinit(range_tree *t)
{
    vec_deinit(&t->nodes);
    t->root = t->spare = RANGE_NONE;
}

static range_node *node_at(const range_tree *t, uint32_t id)
{
    return &t->nodes.data[id];
}

static uint32_t priority(uint32_t id)
{
    uint32_t mixed = (id + 1) * UINT32_C(0x9E3779B1);
    mixed ^= mixed >> 15;
    return mixed * UINT32_C(0x85EBCA77);
}

static uint64_t end_of(const range_node *n)
{
    return n->address + n->bytes;
}

static uint64_t widest(const range_tree *t, uint32_t id)
{
    return id == RANGE_NONE ? 0 : node_at(t, id)->widest_bytes;
}

static void refresh(range_tree *t, uint32_t id)
{
    range_node *n = node_at(t, id);
    uint64_t left = widest(t, n->left), right = widest(t, n->right);
    uint64_t below = left > right ? left : right;
    n->widest_bytes = n->gap_bytes > below ? n->gap_bytes : below;
}

// Parts a subtree into what lies below `address` and what lies above.
static void split(range_tree *t, uint32_t id, uint64_t address, uint32_t *below, uint32_t *above)
{
    if (id == RANGE_NONE) {
        *below = *above = RANGE_NONE;
        return;
    }
    range_node *n = node_at(t, id);
    if (n->address < address) {
        split(t, n->right, address, &n->right, above);
        *below = id;
    } else {
        split(t, n->left, address, below, &n->left);
        *above = id;
    }
    refresh(t, id);
}

static uint32_t merge(range_tree *t, uint32_t below, uint32_t above)
{
    if (below == RANGE_NONE || above == RANGE_NONE) {
        return below == RANGE_NONE ? above : below;
    }
    uint32_t top = priority(below) > priority(above) ? below : above;
    range_node *n = node_at(t, top);
    if (top == below) {
        n->right = merge(t, n->right, above);
    } else {
        n->left = merge(t, below, n->left);
    }
    refresh(t, top);
    return top;
}

static uint32_t insert(range_tree *t, uint32_t root, uint32_t id)
{
    range_node *added = node_at(t, id);
    if (root == RANGE_NONE || priority(id) > priority(root)) {
        split(t, root, added->address, &added->left, &added->right);
        refresh(t, id);
        return id;
    }
    range_node *n = node_at(t, root);
    if (added->address < n->address) {
        n->left = insert(t, n->left, id);
    } else {
        n->right = insert(t, n->right, id);
    }
    refresh(t, root);
    return root;
}

// The subtree without the range at `address`, which becomes *id.
static uint32_t extract(range_tree *t, uint32_t root, uint64_t address, uint32_t *id)
{
    assert(root != RANGE_NONE);
    range_node *n = node_at(t, root);
    if (n->address == address) {
        *id = root;
        return merge(t, n->left, n->right);
    }
    if (address < n->address) {
        n->left = extract(t, n->left, address, id);
    } else {
        n->right = extract(t, n->right, address, id);
    }
    refresh(t, root);
    return root;
}

// Widens or narrows the gap below the range at `address`.
static void change_gap(range_tree *t, uint32_t root, uint64_t address, uint64_t more, uint64_t less)
{
    range_node *n = node_at(t, root);
    if (n->address == address) {
        n->gap_bytes = n->gap_bytes + more - less;
    } else {
        change_gap(t, address < n->address ? n->left : n->right, address, more, less);
    }
    refresh(t, root);
}

// The lowest range with a gap of `bytes` below it.
static uint32_t first_fit(const range_tree *t, uint64_t bytes)
{
    uint32_t id = t->root;
    if (widest(t, id) < bytes) {
        return RANGE_NONE;
    }
    for (;;) {
        const range_node *n = node_at(t, id);
        if (widest(t, n->left) >= bytes) {
            id = n->left;
        } else if (n->gap_bytes >= bytes) {
            return id;
        } else {
            id = n->right;
        }
    }
}

// The lowest range at or above `address`.
static uint32_t range_from(const range_tree *t, uint64_t address)
{
    uint32_t found = RANGE_NONE, id = t->root;
    while (id != RANGE_NONE) {
        bool above = node_at(t, id)->address >= address;
        found = above ? id : found;
        id = above ? node_at(t, id)->left : node_at(t, id)->right;
    }
    return found;
}

static uint64_t end_of_last(const range_tree *t)
{
    uint32_t id = t->root;
    while (id != RANGE_NONE && node_at(t, id)->right != RANGE_NONE) {
        id = node_at(t, id)->right;
    }
    return id == RANGE_NONE ? t->low : end_of(node_at(t, id));
}

static uint32_t take_node(range_tree *t)
{
    uint32_t id = t->spare;
    if (id != RANGE_NONE) {
        t->spare = node_at(t, id)->left;
        return id;
    }
    return vec_push(&t->nodes) == NULL ? RANGE_NONE : t->nodes.count - 1;
}

uint64_t range_tree_enter(range_tree *t, uint64_t bytes)
{
    uint32_t above = first_fit(t, bytes);
    uint64_t address =
        above == RANGE_NONE ? end_of_last(t) : node_at(t, above)->address - node_at(t, above)->gap_bytes;
    if (above == RANGE_NONE && t->high - address < bytes) {
        return 0;
    }
    uint32_t id = take_node(t);
    if (id == RANGE_NONE) {
        return 0;
    }
    *node_at(t, id) =
        (range_node){.address = address, .bytes = bytes, .left = RANGE_NONE, .right = RANGE_NONE};
    if (above != RANGE_NONE) {
        change_gap(t, t->root, node_at(t, above)->address, 0, bytes);
    }
    t->root = insert(t, t->root, id);
    return address;
}

range_node *range_tree_at(range_tree *t, uint64_t address)
{
    uint32_t found = RANGE_NONE, id = t->root;
    while (id != RANGE_NONE) {
        bool above = node_at(t, id)->address > address;
        found = above ? found : id;
        id = above ? node_at(t, id)->left : node_at(t, id)->right;
    }
    bool holds = found != RANGE_NONE && address - node_at(t, found)->address < node_at(t, found)->bytes;
    return holds ? node_at(t, found) : NULL;
}

range_node range_tree_leave(range_tree *t, uint64_t address)
{
    uint32_t id = RANGE_NONE;
    t->root = extract(t, t->root, address, &id);
    range_node gone = *node_at(t, id);
    uint32_t above = range_from(t, end_of(&gone));
    if (above != RANGE_NONE) {
        change_gap(t, t->root, node_at(t, above)->address, gone.gap_bytes + gone.bytes, 0);
    }
    node_at(t, id)->left = t->spare;
    t->spare = id;
    return gone;
}
