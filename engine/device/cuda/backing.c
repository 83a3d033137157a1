// SPDX-License-Identifier: Apache-2.0
#include "backing.h"

#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "memory/address_space.h"

enum {
    RESERVABLE = 16, // capacities of addresses without memory, as host pages have
    PLAIN_ALIGNMENT =
        512, // that allocators need; the driver promises half of it, and gives pieces of 2 MiB more
};

typedef struct mapped {
    backing pool;
    cuda_device *device;
    address_space space;
    CUdeviceptr base;
    CUmemAllocationProp kind;
    CUmemAccessDesc access;
} mapped;

// ---- pieces -------------------------------------------------------------------------------------------------------

// One piece of memory at these addresses. Its handle is let go at once: it lives as long as it is mapped.
static bool put_piece(const mapped *m, uint64_t address, uint64_t bytes)
{
    CUmemGenericAllocationHandle handle = 0;
    if (cuda_driver.cuMemCreate(&handle, bytes, &m->kind, 0) != CUDA_SUCCESS) {
        return false;
    }
    const CUresult result = cuda_driver.cuMemMap(address, bytes, 0, handle, 0);
    (void)cuda_driver.cuMemRelease(handle);
    return result == CUDA_SUCCESS;
}

static void remove_pieces(uint64_t address, uint64_t bytes, uint64_t piece_bytes)
{
    for (uint64_t at = 0; at < bytes; at += piece_bytes) {
        (void)cuda_driver.cuMemUnmap(address + at, piece_bytes);
    }
}

// All or nothing.
static bool put_pieces(const mapped *m, uint64_t address, uint64_t bytes, uint64_t piece_bytes)
{
    uint64_t done = 0;
    while (done < bytes && put_piece(m, address + done, piece_bytes)) {
        done += piece_bytes;
    }
    if (done == bytes && cuda_driver.cuMemSetAccess(address, bytes, &m->access, 1) == CUDA_SUCCESS) {
        return true;
    }
    remove_pieces(address, done, piece_bytes);
    return false;
}

// ---- ranges, of one piece each ------------------------------------------------------------------------------------

static uint64_t rounded(const mapped *m, uint64_t bytes)
{
    return (bytes + m->space.granularity_bytes - 1) & ~(m->space.granularity_bytes - 1);
}

static uint64_t take(void *context, uint64_t bytes)
{
    mapped *m = context;
    const uint64_t address = address_space_take(&m->space, bytes);
    if (address == 0) {
        return 0;
    }
    const uint64_t whole = rounded(m, bytes);
    if (cuda_enter(m->device, NULL) != HR_OK || !put_pieces(m, address, whole, whole)) {
        (void)address_space_give_back(&m->space, address, bytes);
        return 0;
    }
    m->device->held_bytes += whole;
    return address;
}

static void give_back(void *context, uint64_t address, uint64_t bytes)
{
    mapped *m = context;
    (void)cuda_settle(m->device, NULL);
    const range_node range = address_space_give_back(&m->space, address, bytes);
    remove_pieces(range.address, range.bytes, range.bytes);
    m->device->held_bytes -= range.bytes;
}

// ---- reservations, mapped by the granule --------------------------------------------------------------------------

static uint64_t reserve(void *context, uint64_t bytes)
{
    return address_space_reserve(&((mapped *)context)->space, bytes);
}

static void release(void *context, uint64_t address, uint64_t bytes)
{
    (void)address_space_release(&((mapped *)context)->space, address, bytes);
}

static bool map(void *context, uint64_t address, uint64_t bytes)
{
    mapped *m = context;
    if (!address_space_map(&m->space, address, bytes)) {
        return false;
    }
    if (cuda_enter(m->device, NULL) != HR_OK || !put_pieces(m, address, bytes, m->space.mapping_bytes)) {
        address_space_unmap(&m->space, address, bytes);
        return false;
    }
    m->device->held_bytes += bytes;
    return true;
}

static void unmap(void *context, uint64_t address, uint64_t bytes)
{
    mapped *m = context;
    (void)cuda_settle(m->device, NULL);
    address_space_unmap(&m->space, address, bytes);
    remove_pieces(address, bytes, m->space.mapping_bytes);
    m->device->held_bytes -= bytes;
}

// ---- open and close -----------------------------------------------------------------------------------------------

static void close_mapped(void *context)
{
    mapped *m = context;
    backing_close(&m->pool);
    if (m->base != 0 && cuda_enter(m->device, NULL) == HR_OK) {
        (void)cuda_driver.cuMemAddressFree(m->base, address_space_bytes(&m->space));
    }
    address_space_deinit(&m->space);
    hr_free(m);
}

static hr_status reserve_once(mapped *m, hr_err *err)
{
    const uint64_t bytes = address_space_bytes(&m->space);
    char text[HR_BYTES_TEXT_MAX];
    const CUresult result = cuda_driver.cuMemAddressReserve(&m->base, bytes, m->space.mapping_bytes, 0, 0);
    if (result == CUDA_SUCCESS) {
        address_space_place(&m->space, m->base);
        return HR_OK;
    }
    m->base = 0;
    return cuda_check(result, err, "reserving %s of addresses", hr_bytes_human(bytes, text));
}

// A driver that has not as many addresses is asked for half of those without memory, down to none: who reserves then is
// refused sooner, what is taken lies where it lay.
static hr_status reserve_addresses(mapped *m, uint64_t capacity_bytes, hr_err *err)
{
    hr_status status = reserve_once(m, err);
    uint64_t times = RESERVABLE;
    while (status != HR_OK && status != HR_DEVICE_LOST && times > 0) {
        times /= 2;
        address_space_deinit(&m->space);
        (void)address_space_init(&m->space, capacity_bytes, CUDA_GRANULARITY_BYTES,
                                 times); // it did with more
        status = reserve_once(m, err);
    }
    if (status == HR_OK && times < RESERVABLE) {
        cuda_say_addresses(m->device, times);
    }
    return status;
}

static hr_status find_addresses(mapped *m, uint64_t capacity_bytes, hr_err *err)
{
    size_t granularity_bytes = 0;
    HR_TRY(CUDA_CALL(err, cuMemGetAllocationGranularity, &granularity_bytes, &m->kind,
                     CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    if (CUDA_GRANULARITY_BYTES % granularity_bytes != 0) {
        return HR_FAIL(err, DEVICE, "the card: needed pieces of 2 MiB, the driver's are of %zu B",
                       granularity_bytes);
    }
    return reserve_addresses(m, capacity_bytes, err);
}

static hr_status open_mapped(cuda_device *device, uint64_t capacity_bytes, backing *out, hr_err *err)
{
    mapped *m = hr_calloc(1, sizeof *m);
    if (m == NULL) {
        return HR_FAIL(err, NOMEM, "the card: no host memory for its bookkeeping");
    }
    m->device = device;
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal};
    m->kind = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    m->access = (CUmemAccessDesc){.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    hr_status status = HR_OK;
    if (address_space_init(&m->space, capacity_bytes, CUDA_GRANULARITY_BYTES, RESERVABLE)) {
        status = find_addresses(m, capacity_bytes, err);
    } else {
        char text[HR_BYTES_TEXT_MAX];
        status = HR_FAIL(err, HOST_LIMIT, "the card: needed at most 2 EiB, had %s",
                         hr_bytes_human(capacity_bytes, text));
    }
    if (status == HR_OK) {
        status = cuda_pool_open(device, capacity_bytes, &m->pool, err);
    }
    if (status != HR_OK) {
        close_mapped(m);
        return status;
    }
    *out = (backing){.context = m,
                     .pool = m->pool.context == NULL ? NULL : &m->pool,
                     .granularity_bytes = CUDA_GRANULARITY_BYTES,
                     .alignment_bytes = CUDA_GRANULARITY_BYTES,
                     .mapping_bytes = m->space.mapping_bytes,
                     .take = take,
                     .give_back = give_back,
                     .reserve = reserve,
                     .release = release,
                     .map = map,
                     .unmap = unmap,
                     .close = close_mapped};
    return HR_OK;
}

// ---- where the driver cannot map ----------------------------------------------------------------------------------

typedef struct plain {
    cuda_device *device;
    uint64_t capacity_bytes, held_bytes;
} plain;

static uint64_t plain_bytes(uint64_t bytes)
{
    return (bytes + CUDA_GRANULARITY_BYTES - 1) & ~(uint64_t)(CUDA_GRANULARITY_BYTES - 1);
}

static uint64_t plain_take(void *context, uint64_t bytes)
{
    plain *p = context;
    CUdeviceptr address = 0;
    if (bytes == 0 || bytes > p->capacity_bytes || plain_bytes(bytes) > p->capacity_bytes - p->held_bytes ||
        cuda_enter(p->device, NULL) != HR_OK ||
        cuda_driver.cuMemAlloc_v2(&address, plain_bytes(bytes)) != CUDA_SUCCESS) {
        return 0;
    }
    if (address % PLAIN_ALIGNMENT != 0) {
        (void)cuda_driver.cuMemFree_v2(address);
        return 0;
    }
    p->held_bytes += plain_bytes(bytes);
    p->device->held_bytes += plain_bytes(bytes);
    return address;
}

static void plain_give_back(void *context, uint64_t address, uint64_t bytes)
{
    plain *p = context;
    (void)cuda_settle(p->device, NULL);
    (void)cuda_driver.cuMemFree_v2(address);
    p->held_bytes -= plain_bytes(bytes);
    p->device->held_bytes -= plain_bytes(bytes);
}

static hr_status open_plain(cuda_device *device, uint64_t capacity_bytes, backing *out, hr_err *err)
{
    plain *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "the card: no host memory for its bookkeeping");
    }
    *p = (plain){.device = device, .capacity_bytes = plain_bytes(capacity_bytes)};
    *out = (backing){.context = p,
                     .granularity_bytes = CUDA_GRANULARITY_BYTES,
                     .alignment_bytes = PLAIN_ALIGNMENT,
                     .take = plain_take,
                     .give_back = plain_give_back,
                     .close = hr_free};
    return HR_OK;
}

static hr_status ask_mapping(cuda_device *device, int *maps, hr_err *err)
{
    HR_TRY(cuda_enter(device, err));
    return CUDA_CALL(err, cuDeviceGetAttribute, maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                     device->ordinal);
}

hr_status cuda_numbers_open(cuda_device *device, uint64_t capacity_bytes, backing *out, hr_err *err)
{
    int maps = 1;
    *out = (backing){0};
    if (!cuda_device_plans(device)) {
        HR_TRY(ask_mapping(device, &maps, err));
    }
    HR_TRY(backing_numbers_open(capacity_bytes, CUDA_GRANULARITY_BYTES, out, err));
    if (maps == 0) {
        out->mapping_bytes = 0;
        out->reserve = NULL;
        out->release = NULL;
        out->map = NULL;
        out->unmap = NULL;
    }
    return HR_OK;
}

hr_status cuda_backing_open(cuda_device *device, uint64_t capacity_bytes, backing *out, hr_err *err)
{
    int maps = 0;
    *out = (backing){0};
    HR_TRY(ask_mapping(device, &maps, err));
    return cuda_noted(device, maps != 0 ? open_mapped(device, capacity_bytes, out, err)
                                        : open_plain(device, capacity_bytes, out, err));
}

// ---- pinned host memory -------------------------------------------------------------------------------------------

static hr_status take_pinned(uint64_t bytes, void **out, hr_err *err)
{
    const CUresult result = cuda_driver.cuMemHostAlloc(out, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_SUCCESS) {
        memset(*out, 0, bytes);
        return HR_OK;
    }
    *out = NULL;
    char needed[HR_BYTES_TEXT_MAX];
    return result == CUDA_ERROR_OUT_OF_MEMORY
               ? HR_FAIL(err, NOMEM, "no pinned host memory: needed %s", hr_bytes_human(bytes, needed))
               : cuda_check(result, err, "pinned host memory");
}

hr_status cuda_host_take(void *context, uint64_t bytes, void **out, hr_err *err)
{
    cuda_device *device = context;
    *out = NULL;
    HR_TRY(cuda_enter(device, err));
    return cuda_noted(device, take_pinned(bytes, out, err));
}

void cuda_host_give_back(void *context, void *memory)
{
    if (memory != NULL) {
        (void)cuda_settle(context, NULL);
        (void)cuda_driver.cuMemFreeHost(memory);
    }
}

// ---- pinned memory of batches, which outlives its device ------------------------------------------------------------

typedef struct batch_memory {
    CUdevice ordinal;
    CUcontext context;
} batch_memory;

static hr_status batch_take(void *context, uint64_t bytes, void **out, hr_err *err)
{
    const batch_memory *m = context;
    *out = NULL;
    HR_TRY(CUDA_CALL(err, cuCtxSetCurrent, m->context));
    return take_pinned(bytes, out, err);
}

static void batch_give_back(void *context, void *memory)
{
    const batch_memory *m = context;
    (void)cuda_driver.cuCtxSetCurrent(m->context);
    (void)cuda_driver.cuMemFreeHost(memory);
}

static void batch_close(void *context)
{
    batch_memory *m = context;
    (void)cuda_driver.cuDevicePrimaryCtxRelease_v2(m->ordinal);
    hr_free(m);
}

hr_status cuda_pinned_open(void *context, pinned_memory *out, hr_err *err)
{
    const cuda_device *device = context;
    *out = (pinned_memory){.take = NULL};
    batch_memory *m = hr_calloc(1, sizeof *m);
    if (m == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the memory of batches");
    }
    m->ordinal = device->ordinal;
    const hr_status status = CUDA_CALL(err, cuDevicePrimaryCtxRetain, &m->context, m->ordinal);
    if (status != HR_OK) {
        hr_free(m);
        return status;
    }
    *out = (pinned_memory){batch_take, batch_give_back, batch_close, m};
    return HR_OK;
}
