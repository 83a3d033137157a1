// SPDX-License-Identifier: Apache-2.0
// TensorFlow's map of a heap in one line (BFCAllocator::RenderOccupancy): all regions one after the other, a hundredth
// of their bytes a column.
//
//   ****x___****   '*' requested   'x' wasted inside a chunk   '_' free
//
// A chunk in use paints every column that it touches, its waste before itself, and later ones paint over earlier ones.
#ifndef FORMATS_TENSORFLOW_MAP_H
#define FORMATS_TENSORFLOW_MAP_H

#include <stdbool.h>

#include "events/heap.h"

enum { TENSORFLOW_MAP_COLUMNS = 100 };

// False when the heap has no memory.
bool tensorflow_map(const heap_snapshot *p, char map[TENSORFLOW_MAP_COLUMNS + 1]);

#endif
