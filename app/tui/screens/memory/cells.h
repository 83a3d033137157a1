// SPDX-License-Identifier: Apache-2.0
// A heap in cells: how many bytes a cell stands for, which bytes it covers, and what holds most of them.
//
//   a region begins in a row of its own:         more regions than rows:
//     ├──region 1──────────────┤                    ├──region 1──┤├─2─┤├──3──
//     ├──────┤                                      ──┤├────4────┤
//     ├──region 2──┤
#ifndef TUI_SCREENS_MEMORY_CELLS_H
#define TUI_SCREENS_MEMORY_CELLS_H

#include "app/tui/feed/history.h"
#include "app/tui/screens/memory/scene.h"

// Beside the bands: what holds a cell.
enum { KIND_WASTE = BAND_COUNT, KIND_PENDING, KIND_FREE, KIND_NONE /* behind a region's end */, KIND_COUNT };

// Bytes of the map: regions one after the other, each padded to whole rows, or close together.
typedef struct map_scale {
    int rows, width;     // of cells
    bool close;          // regions share rows
    uint64_t cell_bytes; // even: a cell has two halves
    uint64_t row_bytes;
    uint64_t top; // first row shown
    uint64_t all_rows;
} map_scale;

// The whole pool in rows × width cells, or 2^zoom times nearer, around the cursor. False: there is nothing to map, or
// no room.
bool map_scale_make(map_scale *s, const heap_scene *v, int rows, int width);
uint64_t map_rows_of(const map_scale *s, const heap_region *r); // rows that the region has for itself
// The address at a cell of the rows shown; false: no region is there.
bool map_address(const map_scale *s, const heap_mirror *m, int row, int column, uint64_t *address);

typedef struct map_half {
    unsigned kind, band; // band: of the block, also of its waste; BAND_COUNT: of a hole
    uint64_t address;    // of the piece that holds most of it
    bool begins_region;
} map_half;

// A run of bytes of one kind, in the map's own coordinates.
typedef struct map_segment {
    uint64_t begin, end;
    unsigned kind, band;
    uint64_t address;
    bool begins_region;
} map_segment;

// All halves of the rows shown, two a cell, left to right, row by row; the scene keeps them until it or the scale changes.
// NULL: host memory is short.
const map_half *map_halves(const map_scale *s, const heap_scene *v);
// Where the piece under the cursor lies among them: [first, end).
void map_selected(const map_scale *s, const heap_scene *v, uint64_t *first, uint64_t *end);

// Reads halves of cells from the first row shown on, left to right, row by row.
typedef struct map_reader {
    const heap_mirror *heap;
    const map_scale *scale;
    heap_walk walk;
    heap_piece piece;
    size_t region;
    uint64_t base; // where the region begins in the map
    uint64_t told; // bytes of the piece that were told already
    bool in_piece, more;
    map_segment now;
    uint64_t at; // of the next half
} map_reader;

map_reader map_read(const map_scale *s, const heap_scene *v);
map_half map_next(map_reader *r);

#endif
