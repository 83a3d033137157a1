// SPDX-License-Identifier: Apache-2.0
// Memory of the card: ranges of addresses, in whole granules. Requests below a granule share granules of their own.
// Addresses lie above the 128 TiB in which Linux maps what a process does not ask to have elsewhere.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

enum { SMALL_ALIGNMENT = 512 };

#define LARGE_FROM    (UINT64_C(1) << 47)
#define SMALL_FROM    (LARGE_FROM + MEMORY_MOST_BYTES)
#define RESERVED_FROM (SMALL_FROM + MEMORY_MOST_BYTES)
#define END           (UINT64_C(1) << 49)

typedef struct range {
    uint64_t address, bytes;
} range;

// By address.
typedef struct ranges {
    uint64_t from, end;
    range *at;
    size_t count, capacity;
} ranges;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ranges large = {.from = LARGE_FROM, .end = SMALL_FROM};
static ranges small = {.from = SMALL_FROM, .end = RESERVED_FROM};
static ranges reserved = {.from = RESERVED_FROM, .end = END};
static ranges pinned; // of the host, wherever it has them
static uint64_t large_bytes, created_bytes;

static uint64_t up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

// As the k-th; false without host memory.
static bool insert(ranges *r, size_t k, range one)
{
    if (r->count == r->capacity) {
        const size_t capacity = 2 * r->capacity + 64;
        range *at = realloc(r->at, capacity * sizeof *at);
        if (at == NULL) {
            return false;
        }
        r->at = at;
        r->capacity = capacity;
    }
    memmove(&r->at[k + 1], &r->at[k], (r->count - k) * sizeof *r->at);
    r->at[k] = one;
    r->count++;
    return true;
}

// The lowest gap that is large enough; false without one or without host memory.
static bool take(ranges *r, uint64_t bytes, uint64_t *address)
{
    uint64_t begin = r->from;
    size_t k = 0;
    while (k < r->count && r->at[k].address - begin < bytes) {
        begin = r->at[k].address + r->at[k].bytes;
        k++;
    }
    if (r->end - begin < bytes || !insert(r, k, (range){begin, bytes})) {
        return false;
    }
    *address = begin;
    return true;
}

// The last range that begins at the address or before; count: none.
static size_t find(const ranges *r, uint64_t address)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->at[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? r->count : low - 1;
}

// Its bytes; 0: no range begins there.
static uint64_t give(ranges *r, uint64_t address)
{
    const size_t k = find(r, address);
    if (k == r->count || r->at[k].address != address) {
        return 0;
    }
    const uint64_t bytes = r->at[k].bytes;
    r->count--;
    memmove(&r->at[k], &r->at[k + 1], (r->count - k) * sizeof *r->at);
    return bytes;
}

// Of granules in which a small request lies.
static uint64_t small_bytes(void)
{
    uint64_t bytes = 0, counted = 0; // counted: the first granule that was not
    for (size_t k = 0; k < small.count; k++) {
        uint64_t first = small.at[k].address / GRANULE_BYTES;
        const uint64_t last = (small.at[k].address + small.at[k].bytes - 1) / GRANULE_BYTES;
        first = first < counted ? counted : first;
        if (last >= first) {
            bytes += (last - first + 1) * GRANULE_BYTES;
            counted = last + 1;
        }
    }
    return bytes;
}

static uint64_t held(void)
{
    return large_bytes + created_bytes + small_bytes();
}

static uint64_t available(void)
{
    return the_card()->memory_bytes - the_card()->context_bytes;
}

uint64_t used_bytes(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t bytes = held();
    pthread_mutex_unlock(&lock);
    return bytes;
}

uint64_t free_bytes(void)
{
    return available() - used_bytes();
}

bool is_of_card(const void *address)
{
    return (uint64_t)(uintptr_t)address >= LARGE_FROM && (uint64_t)(uintptr_t)address < END;
}

// ---- the runtime ----------------------------------------------------------------------------------------------------

static cuda_error allocate(uint64_t bytes, uint64_t *address)
{
    if (bytes > available()) {
        return CUDA_NO_MEMORY;
    }
    const bool is_small = bytes < GRANULE_BYTES;
    if (!take(is_small ? &small : &large, up(bytes, is_small ? SMALL_ALIGNMENT : GRANULE_BYTES), address)) {
        return CUDA_NO_MEMORY;
    }
    large_bytes += is_small ? 0 : up(bytes, GRANULE_BYTES);
    if (held() <= available()) {
        return CUDA_OK;
    }
    large_bytes -= is_small ? 0 : up(bytes, GRANULE_BYTES);
    (void)give(is_small ? &small : &large, *address);
    return CUDA_NO_MEMORY;
}

EXPORTED cuda_error cudaMalloc(void **out, size_t bytes)
{
    uint64_t address = 0;
    if (out == NULL || the_card()->properties == NULL) {
        return failed(out == NULL ? CUDA_INVALID_VALUE : CUDA_NO_DEVICE);
    }
    *out = NULL;
    if (bytes == 0) {
        return CUDA_OK;
    }
    pthread_mutex_lock(&lock);
    const cuda_error error = allocate(bytes, &address);
    pthread_mutex_unlock(&lock);
    if (error == CUDA_OK) {
        *out = (void *)(uintptr_t)address;
    }
    return failed(error);
}

EXPORTED cuda_error cudaFree(void *address)
{
    if (address == NULL) {
        return CUDA_OK;
    }
    pthread_mutex_lock(&lock);
    const uint64_t large_one = give(&large, (uint64_t)(uintptr_t)address);
    const uint64_t small_one = large_one > 0 ? 0 : give(&small, (uint64_t)(uintptr_t)address);
    large_bytes -= large_one;
    pthread_mutex_unlock(&lock);
    return failed(large_one + small_one > 0 ? CUDA_OK : CUDA_INVALID_VALUE);
}

EXPORTED cuda_error cudaMallocAsync(void **out, size_t bytes, void *stream)
{
    (void)stream;
    return cudaMalloc(out, bytes);
}

EXPORTED cuda_error cudaFreeAsync(void *address, void *stream)
{
    (void)stream;
    return cudaFree(address);
}

EXPORTED cuda_error cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    (void)out, (void)bytes, (void)flags;
    return failed(CUDA_NOT_SUPPORTED); // what the host may touch cannot be a number
}

EXPORTED cuda_error cudaMemGetInfo(size_t *free_out, size_t *total_out)
{
    if (the_card()->properties == NULL) {
        return failed(CUDA_NO_DEVICE);
    }
    *free_out = free_bytes();
    *total_out = the_card()->memory_bytes;
    return CUDA_OK;
}

// ---- pinned memory of the host --------------------------------------------------------------------------------------

EXPORTED cuda_error cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    const size_t taken = bytes == 0 ? 1 : bytes;
    void *address = NULL;
    *out = NULL;
    if (posix_memalign(&address, 4096, taken) != 0) {
        return failed(CUDA_NO_MEMORY);
    }
    const range one = {(uint64_t)(uintptr_t)address, taken};
    pthread_mutex_lock(&lock);
    const size_t before = find(&pinned, one.address);
    const bool kept = insert(&pinned, before == pinned.count ? 0 : before + 1, one);
    pthread_mutex_unlock(&lock);
    if (!kept) {
        free(address);
        return failed(CUDA_NO_MEMORY);
    }
    *out = address;
    return CUDA_OK;
}

EXPORTED cuda_error cudaMallocHost(void **out, size_t bytes)
{
    return cudaHostAlloc(out, bytes, 0);
}

EXPORTED cuda_error cudaFreeHost(void *address)
{
    if (address == NULL) {
        return CUDA_OK;
    }
    pthread_mutex_lock(&lock);
    const bool known = give(&pinned, (uint64_t)(uintptr_t)address) > 0;
    pthread_mutex_unlock(&lock);
    if (known) {
        free(address);
    }
    return failed(known ? CUDA_OK : CUDA_INVALID_VALUE);
}

EXPORTED cuda_error cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
    (void)address, (void)bytes, (void)flags;
    return CUDA_OK;
}

EXPORTED cuda_error cudaHostUnregister(void *address)
{
    (void)address;
    return CUDA_OK;
}

typedef struct pointer_attributes {
    int type, device; // 0: not known, 1: pinned memory of the host, 2: of the card
    void *of_device, *of_host;
    long reserved[8];
} pointer_attributes;

EXPORTED cuda_error cudaPointerGetAttributes(pointer_attributes *out, const void *address)
{
    const bool here = is_of_card(address);
    const uint64_t number = (uint64_t)(uintptr_t)address;
    pthread_mutex_lock(&lock);
    const size_t k = find(&pinned, number);
    const bool host = k < pinned.count && number - pinned.at[k].address < pinned.at[k].bytes;
    pthread_mutex_unlock(&lock);
    *out = (pointer_attributes){.type = here ? 2 : host ? 1 : 0, .device = here || host ? 0 : -2};
    out->of_device = here || host ? (void *)(uintptr_t)address : NULL;
    out->of_host = here ? NULL : (void *)(uintptr_t)address;
    return CUDA_OK;
}

// ---- the driver's mapping: segments that expand ---------------------------------------------------------------------

cuda_error numbers_reserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted,
                           unsigned long long flags)
{
    (void)alignment, (void)wanted, (void)flags;
    pthread_mutex_lock(&lock);
    const bool taken = bytes > 0 && bytes % GRANULE_BYTES == 0 && take(&reserved, bytes, address);
    pthread_mutex_unlock(&lock);
    return taken ? CUDA_OK : CUDA_INVALID_VALUE;
}

cuda_error numbers_unreserve(uint64_t address, size_t bytes)
{
    (void)bytes;
    pthread_mutex_lock(&lock);
    const uint64_t given = give(&reserved, address);
    pthread_mutex_unlock(&lock);
    return given > 0 ? CUDA_OK : CUDA_INVALID_VALUE;
}

// The handle is the size, which is all that has to be known of it.
cuda_error numbers_create(uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags)
{
    (void)properties, (void)flags;
    if (bytes == 0 || bytes % GRANULE_BYTES != 0) {
        return CUDA_INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    const bool fits = bytes <= available() && held() <= available() - bytes;
    created_bytes += fits ? bytes : 0;
    pthread_mutex_unlock(&lock);
    *handle = fits ? bytes : 0;
    return fits ? CUDA_OK : CUDA_NO_MEMORY;
}

cuda_error numbers_release(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    const bool known = handle > 0 && handle <= created_bytes;
    created_bytes -= known ? handle : 0;
    pthread_mutex_unlock(&lock);
    return known ? CUDA_OK : CUDA_INVALID_VALUE;
}

cuda_error numbers_address_range(uint64_t *base, size_t *bytes, uint64_t address)
{
    cuda_error error = CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    const ranges *all[] = {&large, &small, &reserved};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const size_t at = find(all[k], address);
        if (at < all[k]->count && address - all[k]->at[at].address < all[k]->at[at].bytes) {
            *base = all[k]->at[at].address;
            *bytes = all[k]->at[at].bytes;
            error = CUDA_OK;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

// NOLINTEND(readability-identifier-naming)
