// SPDX-License-Identifier: Apache-2.0
#include "base/host_mem.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t requests; // since the last hr_host_mem_fail_at
static atomic_uint_fast64_t failing;  // which of them fails; 0: none
static atomic_int_fast64_t live;

// Counts one request; false when it is the one that must fail.
static bool request_is_granted(void)
{
    uint64_t nth = atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed) + 1;
    return nth != atomic_load_explicit(&failing, memory_order_relaxed);
}

static void *count_live(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    }
    return memory;
}

// No object is larger than PTRDIFF_MAX; that is what a size that no 64 bits hold is counted as.
static bool can_be_had(size_t count, size_t size, size_t *bytes)
{
    return !__builtin_mul_overflow(count, size, bytes) && *bytes > 0 && *bytes <= PTRDIFF_MAX;
}

void *hr_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!can_be_had(count, size, &bytes) || !request_is_granted()) {
        return NULL;
    }
    return count_live(calloc(1, bytes));
}

void *hr_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (!can_be_had(count, size, &bytes) || !request_is_granted()) {
        return NULL;
    }
    void *memory = realloc(old, bytes);
    return old == NULL ? count_live(memory) : memory;
}

void hr_free(void *memory)
{
    if (memory != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        free(memory);
    }
}

char *hr_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = hr_calloc(bytes, 1);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

uint64_t hr_host_mem_fail_at(uint64_t nth)
{
    atomic_store(&failing, nth);
    return atomic_exchange(&requests, 0);
}

int64_t hr_host_mem_live(void)
{
    return atomic_load(&live);
}

// ---- arena ----------------------------------------------------------------------------------------------------

enum { ARENA_ALIGNMENT = 16, ARENA_BLOCK_BYTES = 64 << 10 };

// Newest first. Only the head has room; a block larger than the usual serves one large request.
struct arena_block {
    struct arena_block *next;
    size_t used, capacity;
    alignas(ARENA_ALIGNMENT) unsigned char data[];
};

static struct arena_block *arena_add_block(arena *a, size_t bytes)
{
    size_t capacity = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
    size_t total;
    if (__builtin_add_overflow(capacity, sizeof(struct arena_block), &total)) {
        return NULL;
    }
    struct arena_block *block = hr_calloc(1, total);
    if (block == NULL) {
        return NULL;
    }
    block->capacity = capacity;
    block->next = a->head;
    a->head = block;
    return block;
}

void *arena_take(arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ARENA_ALIGNMENT) {
        return NULL;
    }
    bytes = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    struct arena_block *block = a->head;
    if (block == NULL || block->capacity - block->used < bytes) {
        block = arena_add_block(a, bytes);
        if (block == NULL) {
            return NULL;
        }
    }
    void *memory = block->data + block->used;
    block->used += bytes;
    return memory;
}

char *arena_print(arena *a, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    // Most texts fit into what the head has left: they are printed where they will stay.
    size_t room = a->head == NULL ? 0 : a->head->capacity - a->head->used;
    char *place = room == 0 ? NULL : (char *)a->head->data + a->head->used;
    int length = vsnprintf(place, room, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : arena_take(a, (size_t)length + 1, 1);
    if (text != NULL && text != place) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

void arena_deinit(arena *a)
{
    for (struct arena_block *block = a->head; block != NULL;) {
        struct arena_block *next = block->next;
        hr_free(block);
        block = next;
    }
    a->head = NULL;
}
