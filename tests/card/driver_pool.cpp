// SPDX-License-Identifier: Apache-2.0
// The driver's pools: memory in a stream's order. A block that was given back serves later requests, on its own stream
// at once, on others when the giving back has run; at a wait, what stands free above the threshold leaves the pool.
#include <algorithm>
#include <list>
#include <string.h>

#include "driver.hpp"

namespace card
{
struct pool_block {
    CUdeviceptr at;
    uint64_t bytes;      // of memory, whole granules
    uint64_t used_bytes; // that was asked for; 0: free
    CUstream stream;     // that gave it back
    bool settled;        // the giving back has run
};
} // namespace card

struct CUmemPoolHandle_st {
    std::list<card::pool_block> blocks;
    uint64_t threshold_bytes, reserved_high_bytes, used_high_bytes;
};

namespace card
{
namespace
{

enum : uint64_t { POISONED_MAX = 16 * 1024 * 1024, NAN_BYTE = 0xff };

std::set<CUmemoryPool> pools;

uint64_t reserved_bytes(CUmemoryPool pool)
{
    uint64_t sum = 0;
    for (const pool_block &b : pool->blocks) {
        sum += b.bytes;
    }
    return sum;
}

uint64_t used_bytes(CUmemoryPool pool)
{
    uint64_t sum = 0;
    for (const pool_block &b : pool->blocks) {
        sum += b.used_bytes;
    }
    return sum;
}

void trim(CUmemoryPool pool, uint64_t keep_bytes)
{
    uint64_t reserved = reserved_bytes(pool);
    for (auto b = pool->blocks.begin(); b != pool->blocks.end() && reserved > keep_bytes;) {
        if (b->used_bytes == 0 && b->settled) {
            reserved -= b->bytes;
            deallocate(b->at);
            b = pool->blocks.erase(b);
        } else {
            ++b;
        }
    }
}

// Free, no larger than twice what is needed, the smallest of them.
pool_block *reusable(CUmemoryPool pool, uint64_t bytes, CUstream stream)
{
    pool_block *best = nullptr;
    for (pool_block &b : pool->blocks) {
        const bool fits = b.used_bytes == 0 && b.bytes >= bytes && b.bytes <= 2 * bytes + GRANULE;
        if (fits && (b.settled || b.stream == stream) && (best == nullptr || b.bytes < best->bytes)) {
            best = &b;
        }
    }
    return best;
}

CUresult grow(CUmemoryPool pool, uint64_t bytes, pool_block **out)
{
    const uint64_t taken = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    if (taken > free_bytes()) {
        for (const CUmemoryPool p : pools) {
            trim(p, 0);
        }
    }
    CUdeviceptr at = 0;
    const CUresult result = allocate(&at, taken);
    if (result == CUDA_SUCCESS) {
        pool->blocks.push_back({at, taken, 0, nullptr, true});
        *out = &pool->blocks.back();
    }
    return result;
}

pool_block *block_at(CUdeviceptr at)
{
    for (const CUmemoryPool p : pools) {
        for (pool_block &b : p->blocks) {
            if (b.at == at && b.used_bytes != 0) {
                return &b;
            }
        }
    }
    return nullptr;
}

void settle(CUdeviceptr at)
{
    for (const CUmemoryPool p : pools) {
        for (pool_block &b : p->blocks) {
            b.settled = b.settled || b.at == at;
        }
    }
}

} // namespace

void pools_settle()
{
    for (const CUmemoryPool p : pools) {
        trim(p, p->threshold_bytes);
    }
}

} // namespace card

using namespace card;

EXPORTED CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props)
{
    ENTER(cuMemPoolCreate, WITHOUT_CONTEXT)
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = new CUmemPoolHandle_st{{}, 0, 0, 0};
    pools.insert(*out);
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    ENTER(cuMemPoolDestroy, WITHOUT_CONTEXT | WHEN_LOST)
    if (pools.count(pool) == 0 || used_bytes(pool) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wait_for_all(); // what was given back may not have run
    trim(pool, 0);
    pools.erase(pool);
    delete pool;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    ENTER(cuMemAllocFromPoolAsync, NOT_IN_CAPTURE)
    if (pools.count(pool) == 0 || bytes == 0 || !known(stream)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pool_block *b = reusable(pool, bytes, stream);
    const CUresult result = b == nullptr ? grow(pool, bytes, &b) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        return result;
    }
    b->used_bytes = (bytes + 511) / 512 * 512;
    pool->used_high_bytes = std::max(pool->used_high_bytes, used_bytes(pool));
    pool->reserved_high_bytes = std::max(pool->reserved_high_bytes, reserved_bytes(pool));
    *out = b->at;
    return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
    ENTER(cuMemFreeAsync, NOT_IN_CAPTURE)
    pool_block *b = block_at(at);
    if (b == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const uint64_t bytes = std::min<uint64_t>(b->used_bytes, POISONED_MAX);
    b->used_bytes = 0;
    b->stream = stream;
    b->settled = false;
    return enqueue(stream, [at, bytes] {
        (void)memset((void *)at, (int)NAN_BYTE, bytes);
        settle(at);
    });
}

EXPORTED CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(cuMemPoolSetAttribute, WITHOUT_CONTEXT)
    if (pools.count(pool) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t number = 0;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        (void)memcpy(&pool->threshold_bytes, value, sizeof pool->threshold_bytes);
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: // only 0 may be set: begin anew
        (void)memcpy(&number, value, sizeof number);
        (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_high_bytes : pool->reserved_high_bytes) =
            attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_bytes(pool) : reserved_bytes(pool);
        return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORTED CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    ENTER(cuMemPoolGetAttribute, WITHOUT_CONTEXT)
    if (pools.count(pool) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct {
        CUmemPool_attribute attribute;
        uint64_t value;
    } rows[] = {
        {CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, pool->threshold_bytes},
        {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved_bytes(pool)},
        {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, pool->reserved_high_bytes},
        {CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used_bytes(pool)},
        {CU_MEMPOOL_ATTR_USED_MEM_HIGH, pool->used_high_bytes},
    };
    for (const auto &row : rows) {
        if (row.attribute == attribute) {
            (void)memcpy(value, &row.value, sizeof row.value);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
    ENTER(cuMemPoolTrimTo, WITHOUT_CONTEXT)
    if (pools.count(pool) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    trim(pool, keep_bytes);
    return CUDA_SUCCESS;
}
