// SPDX-License-Identifier: Apache-2.0
// Host memory: the only place that calls malloc. Tests make the n-th request fail (hr_host_mem_fail_at).
// Thread-safe. Pointers from here go back through hr_free only.
#ifndef BASE_HOST_MEM_H
#define BASE_HOST_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

// NULL when count * size overflows, when memory is short, or when the test says so; zeroed. size 0 gives NULL.
void *hr_calloc(size_t count, size_t size);
void *hr_realloc(void *old, size_t count,
                 size_t size); // new bytes are not zeroed; NULL leaves `old` as it was
void hr_free(void *memory);
char *hr_strdup(const char *text);

// The n-th request from now (1-based) fails, once; 0 switches it off. Returns how many requests the previous
// setting saw, so that a loop knows when it has passed the last one.
uint64_t hr_host_mem_fail_at(uint64_t nth);
// Requests minus frees, for leak checks.
int64_t hr_host_mem_live(void);

// A bump arena for the many small things of one program: freed at once. Not thread-safe.
typedef struct arena {
    struct arena_block *head;
} arena;

void *arena_take(arena *a, size_t count, size_t size); // zeroed, 16-byte aligned; NULL on failure
char *arena_print(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_deinit(arena *a);

#endif
