// SPDX-License-Identifier: Apache-2.0
// Counts host memory in bytes. The linker sends calloc, realloc and free of base/host_mem.c, the only caller in the
// engine, through here (--wrap); sanitizers stay underneath.
#include <malloc.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *memory);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *memory);

static int64_t live_bytes, peak_bytes; // only differences count: the frame frees what was not counted, too

static void add(size_t bytes)
{
    live_bytes += (int64_t)bytes;
    peak_bytes = live_bytes > peak_bytes ? live_bytes : peak_bytes;
}

void *__wrap_calloc(size_t count, size_t size)
{
    void *memory = __real_calloc(count, size);
    add(malloc_usable_size(memory));
    return memory;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    size_t before = malloc_usable_size(old);
    void *memory = __real_realloc(old, bytes);
    if (memory != NULL) {
        live_bytes -= (int64_t)before;
        add(malloc_usable_size(memory));
    }
    return memory;
}

void __wrap_free(void *memory)
{
    live_bytes -= (int64_t)malloc_usable_size(memory);
    __real_free(memory);
}

void fuzz_memory_begin(void)
{
    peak_bytes = live_bytes;
}

int64_t fuzz_memory_peak(void)
{
    return peak_bytes;
}
