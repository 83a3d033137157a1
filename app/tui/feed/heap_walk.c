// SPDX-License-Identifier: Apache-2.0
// Piece by piece through a mirrored heap, and what its holes come to.
#include "app/tui/feed/heap_mirror.h"

bool heap_mirror_next(const heap_mirror *m, heap_walk *w, heap_piece *piece)
{
    if (w->region >= m->region_count) {
        return false;
    }
    const heap_region *r = &m->regions[w->region];
    uint64_t address = r->address + w->offset, rest = r->bytes - w->offset;
    const heap_page *page = w->block.page < m->page_count ? &m->pages[w->block.page] : NULL;
    const heap_block *next = page == NULL ? NULL : &page->blocks[w->block.at];
    bool here = next != NULL && next->address == address;
    bool before_end = next != NULL && next->address > address && next->address - address < rest;
    *piece = (heap_piece){address,
                          here         ? next->bytes
                          : before_end ? next->address - address
                                       : rest,
                          here ? next : NULL, w->region};
    if (here && ++w->block.at == page->count) {
        w->block = (heap_spot){w->block.page + 1, 0};
    }
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
    if (m->is_measured) {
        return m->largest_free_bytes;
    }
    while (heap_mirror_next(m, &walk, &piece)) {
        largest = piece.block == NULL && piece.bytes > largest ? piece.bytes : largest;
    }
    return largest;
}

void heap_mirror_measure(heap_mirror *m)
{
    m->largest_free_bytes = heap_mirror_largest_free(m);
    m->is_measured = true;
}

double heap_mirror_fragmentation(const heap_mirror *m)
{
    uint64_t free_bytes = m->pool_bytes - m->in_use_bytes;
    return free_bytes == 0 ? 0 : 1 - (double)heap_mirror_largest_free(m) / (double)free_bytes;
}
