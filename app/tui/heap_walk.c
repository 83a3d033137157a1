// SPDX-License-Identifier: Apache-2.0
// Piece by piece through a mirrored heap, and what its holes come to.
#include "app/tui/heap_mirror.h"

bool heap_mirror_next(const heap_mirror *m, heap_walk *w, heap_piece *piece)
{
    if (w->region >= m->region_count) {
        return false;
    }
    const heap_region *r = &m->regions[w->region];
    uint64_t address = r->address + w->offset, rest = r->bytes - w->offset;
    const heap_block *next = w->block < m->block_count ? &m->blocks[w->block] : NULL;
    bool here = next != NULL && next->address == address;
    bool before_end = next != NULL && next->address > address && next->address - address < rest;
    *piece = (heap_piece){address,
                          here         ? next->bytes
                          : before_end ? next->address - address
                                       : rest,
                          here ? next : NULL, w->region};
    w->block += here ? 1 : 0;
    w->offset += piece->bytes;
    if (w->offset == r->bytes) {
        w->region++;
        w->offset = 0;
    }
    return true;
}

uint64_t heap_mirror_largest_free(const heap_mirror *m)
{
    heap_walk walk = {0};
    heap_piece piece;
    uint64_t largest = 0;
    while (heap_mirror_next(m, &walk, &piece)) {
        largest = piece.block == NULL && piece.bytes > largest ? piece.bytes : largest;
    }
    return largest;
}

double heap_mirror_fragmentation(const heap_mirror *m)
{
    uint64_t free_bytes = m->pool_bytes - m->in_use_bytes;
    return free_bytes == 0 ? 0 : 1 - (double)heap_mirror_largest_free(m) / (double)free_bytes;
}
