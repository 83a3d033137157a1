// SPDX-License-Identifier: Apache-2.0
// The driver's own pool behind a backing. It is made when it is first asked for something.
#include "backing.h"
#include "base/host_mem.h"
#include "step.h"

enum { POOL_GRANULARITY_BYTES = 512 }; // of what is counted; the driver's own rounding is not told

typedef struct pool {
    cuda_device *device;
    CUmemoryPool pool; // NULL: not made yet
    uint64_t capacity_bytes, held_bytes, keep_bytes;
} pool;

static uint64_t whole(uint64_t bytes)
{
    return (bytes + POOL_GRANULARITY_BYTES - 1) & ~(uint64_t)(POOL_GRANULARITY_BYTES - 1);
}

static bool set_threshold(const pool *p)
{
    cuuint64_t bytes = p->keep_bytes;
    return cuda_driver.cuMemPoolSetAttribute(p->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes) ==
           CUDA_SUCCESS;
}

static bool make_pool(pool *p)
{
    const CUmemPoolProps kind = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = p->device->ordinal}};
    if (p->pool != NULL) {
        return true;
    }
    if (cuda_driver.cuMemPoolCreate(&p->pool, &kind) != CUDA_SUCCESS) {
        p->pool = NULL;
    }
    return p->pool != NULL && set_threshold(p);
}

// In the order of the compute lane: what the step under way holds back comes first.
static bool reach_lane(pool *p)
{
    cuda_device *device = p->device;
    return cuda_enter(device, NULL) == HR_OK &&
           (device->under_way == NULL || cuda_catch_up(device->under_way, NULL) == HR_OK);
}

static CUresult ask(pool *p, uint64_t bytes, CUdeviceptr *address)
{
    p->device->busy = true;
    return cuda_driver.cuMemAllocFromPoolAsync(address, bytes, p->pool, p->device->lane[HR_LANE_COMPUTE]);
}

static uint64_t pool_take(void *context, uint64_t bytes)
{
    pool *p = context;
    CUdeviceptr address = 0;
    if (bytes == 0 || bytes > p->capacity_bytes || whole(bytes) > p->capacity_bytes - p->held_bytes ||
        !reach_lane(p) || !make_pool(p)) {
        return 0;
    }
    CUresult result = ask(p, whole(bytes), &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && cuda_settle(p->device, NULL) == HR_OK) {
        (void)cuda_driver.cuMemPoolTrimTo(p->pool, 0);
        result = ask(p, whole(bytes), &address);
    }
    if (result != CUDA_SUCCESS) {
        return 0;
    }
    p->held_bytes += whole(bytes);
    p->device->held_bytes += whole(bytes);
    return address;
}

static void pool_give_back(void *context, uint64_t address, uint64_t bytes)
{
    pool *p = context;
    p->held_bytes -= whole(bytes);
    p->device->held_bytes -= whole(bytes);
    if (reach_lane(p)) {
        p->device->busy = true;
        (void)cuda_driver.cuMemFreeAsync(address, p->device->lane[HR_LANE_COMPUTE]);
    }
}

static void pool_keep(void *context, uint64_t bytes)
{
    pool *p = context;
    p->keep_bytes = bytes;
    if (p->pool != NULL && cuda_enter(p->device, NULL) == HR_OK) {
        (void)set_threshold(p);
    }
}

static bool pool_look(void *context, backing_look *out)
{
    const pool *p = context;
    const struct {
        CUmemPool_attribute attribute;
        uint64_t *bytes;
    } rows[] = {
        {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &out->reserved_bytes},
        {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &out->reserved_high_bytes},
        {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &out->used_bytes},
        {CU_MEMPOOL_ATTR_USED_MEM_HIGH, &out->used_high_bytes},
    };
    bool known = p->pool != NULL && cuda_enter(p->device, NULL) == HR_OK;
    for (size_t k = 0; known && k < sizeof rows / sizeof *rows; k++) {
        cuuint64_t bytes = 0;
        known = cuda_driver.cuMemPoolGetAttribute(p->pool, rows[k].attribute, &bytes) == CUDA_SUCCESS;
        *rows[k].bytes = bytes;
    }
    return known;
}

static void pool_close(void *context)
{
    pool *p = context;
    if (p->pool != NULL) {
        (void)cuda_settle(p->device, NULL);
        (void)cuda_driver.cuMemPoolDestroy(p->pool);
    }
    hr_free(p);
}

hr_status cuda_pool_open(cuda_device *device, uint64_t capacity_bytes, backing *out, hr_err *err)
{
    int has_pools = 0;
    *out = (backing){0};
    HR_TRY(CUDA_CALL(err, cuDeviceGetAttribute, &has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                     device->ordinal));
    if (has_pools == 0) {
        return HR_OK;
    }
    pool *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "the card: no host memory for its bookkeeping");
    }
    *p = (pool){.device = device, .capacity_bytes = whole(capacity_bytes), .keep_bytes = UINT64_MAX};
    *out = (backing){.context = p,
                     .granularity_bytes = POOL_GRANULARITY_BYTES,
                     .alignment_bytes = POOL_GRANULARITY_BYTES,
                     .take = pool_take,
                     .give_back = pool_give_back,
                     .keep = pool_keep,
                     .look = pool_look,
                     .close = pool_close};
    return HR_OK;
}
