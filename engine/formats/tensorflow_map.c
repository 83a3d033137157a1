// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_map.h"

#include <string.h>

// floor(100 · offset / total) for offset < total, one decimal digit after the other: the product might not fit. Sizes
// beyond 2^60, which only a file can claim, lose their lowest bits.
static uint64_t column_of(uint64_t offset, uint64_t total)
{
    if (total > UINT64_C(1) << 60) {
        offset >>= 4;
        total >>= 4;
    }
    uint64_t tens = 10 * offset, column = 10 * (tens / total) + 10 * (tens % total) / total;
    return column < TENSORFLOW_MAP_COLUMNS ? column : TENSORFLOW_MAP_COLUMNS - 1;
}

static void paint(char *map, uint64_t offset, uint64_t bytes, uint64_t total, char how)
{
    if (bytes > 0 && offset < total && bytes <= total - offset) {
        uint64_t first = column_of(offset, total), last = column_of(offset + bytes - 1, total);
        memset(map + first, how, last - first + 1);
    }
}

static bool begins_region(const heap_snapshot *p, uint32_t k)
{
    return k == 0 || p->chunks.data[k].region_address != p->chunks.data[k - 1].region_address;
}

static uint64_t all_region_bytes(const heap_snapshot *p)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        total += begins_region(p, k) ? p->chunks.data[k].region_bytes : 0;
    }
    return total;
}

bool tensorflow_map(const heap_snapshot *p, char map[TENSORFLOW_MAP_COLUMNS + 1])
{
    uint64_t total = all_region_bytes(p), before = 0; // bytes of the regions before this one
    memset(map, '_', TENSORFLOW_MAP_COLUMNS);
    map[TENSORFLOW_MAP_COLUMNS] = '\0';
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        before += k > 0 && begins_region(p, k) ? p->chunks.data[k - 1].region_bytes : 0;
        if (c->in_use) {
            uint64_t offset = before + (c->address - c->region_address);
            uint64_t asked = c->requested_bytes < c->size_bytes ? c->requested_bytes : c->size_bytes;
            paint(map, offset + asked, c->size_bytes - asked, total, 'x');
            paint(map, offset, asked, total, '*');
        }
    }
    return total > 0;
}
