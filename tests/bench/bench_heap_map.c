// SPDX-License-Identifier: Apache-2.0
// What the memory map of a large heap takes: an event, the first look at a heap and every further frame of it, at the
// size that the map has on 160×50, and the memory behind it. Blocks come in a scattered order.
//
//   bench_heap_map [BLOCKS]     a million unless told; at most 2,097,152
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/tui/screens/memory/cells.h"

enum { MILLION = 1000000, ROWS = 45, COLUMNS = 130, ROUNDS = 11, BLOCK_BYTES = 1024 };

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static bool fill(heap_mirror *m, uint64_t blocks)
{
    const uint64_t base = UINT64_C(1) << 40, stride = 7368787;
    heap_change region = {.kind = HR_EVENT_GROW, .address = base, .bytes = BLOCK_BYTES * blocks};
    bool fits = heap_mirror_apply(m, &region);
    for (uint64_t k = 0; fits && k < blocks; k++) {
        const uint64_t at = k * stride % blocks;
        heap_change c = {.kind = HR_EVENT_ALLOC,
                         .address = base + BLOCK_BYTES * at,
                         .bytes = at % 3 == 0 ? BLOCK_BYTES : 768,
                         .requested_bytes = 700,
                         .category = (uint8_t)(at % HR_CATEGORY_COUNT)};
        fits = heap_mirror_apply(m, &c);
    }
    return fits;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of)
{
    qsort(of, ROUNDS, sizeof *of, compare);
    return of[ROUNDS / 2];
}

// Of the first frame of a moment, and of the next one.
static bool look(heap_scene *v, double *first_ms, double *next_ms)
{
    double first[ROUNDS], next[ROUNDS];
    for (int k = 0; k < ROUNDS; k++) {
        map_scale s;
        v->version++;
        v->heap.is_measured = false;
        const double begin = milliseconds();
        heap_mirror_measure(&v->heap);
        if (!map_scale_make(&s, v, ROWS, COLUMNS) || map_halves(&s, v) == NULL) {
            return false;
        }
        first[k] = milliseconds() - begin;
        const double again = milliseconds();
        if (!map_scale_make(&s, v, ROWS, COLUMNS) || map_halves(&s, v) == NULL) {
            return false;
        }
        next[k] = milliseconds() - again;
    }
    *first_ms = median(first);
    *next_ms = median(next);
    return true;
}

int main(int argc, char **argv)
{
    const uint64_t blocks = argc > 1 ? strtoull(argv[1], NULL, 10) : MILLION;
    heap_scene v = {0};
    double first_ms, next_ms;
    heap_scene_clear(&v);
    const double begin = milliseconds();
    if (!fill(&v.heap, blocks)) {
        fprintf(stderr, "bench_heap_map: no room for %llu blocks\n", (unsigned long long)blocks);
        return 1;
    }
    const double event_ns = (milliseconds() - begin) * 1e6 / (double)blocks;
    if (!look(&v, &first_ms, &next_ms)) {
        fputs("bench_heap_map: no map\n", stderr);
        return 1;
    }
    printf("{\"blocks\": %llu, \"ns_an_event\": %.0f, \"first_look_ms\": %.2f, \"next_frame_ms\": %.4f, "
           "\"bytes_a_block\": %.1f}\n",
           (unsigned long long)blocks, event_ns, first_ms, next_ms,
           (double)(v.heap.page_count * HEAP_PAGE_BLOCKS * sizeof(heap_block)) / (double)blocks);
    heap_scene_deinit(&v);
    return 0;
}
