// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime that owns nothing but numbers, so that PyTorch's allocator can be asked what it would do. Built as
// libcudart.so.13 by tests/bench/peers/pytorch_caching. cudaMalloc gives addresses from 1 << 40 upwards, reservations lie
// from 1 << 44 upwards; FAKE_CUDA_BYTES is what the card has, FAKE_CUDA_POLICY how freed addresses are given again
// (number_policy of tests/memory/number_driver.h).
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "number_driver.h"

static number_places memory, reservations;
static uint64_t held_bytes;

static void begin(void)
{
    if (memory.end == 0) {
        const char *policy = getenv("FAKE_CUDA_POLICY");
        number_policy p = policy == NULL ? NUMBERS_NEVER_TWICE : (number_policy)atoi(policy);
        memory = numbers_from(UINT64_C(1) << 40, p);
        reservations = numbers_from(UINT64_C(1) << 44, p);
    }
}

static uint64_t has_bytes(void)
{
    static uint64_t bytes;
    if (bytes == 0) {
        bytes = strtoull(getenv("FAKE_CUDA_BYTES"), NULL, 10);
    }
    return bytes;
}

#define GIVES(name, arguments, answer)                                                                       \
    cudaError_t name arguments                                                                               \
    {                                                                                                        \
        answer;                                                                                              \
        return cudaSuccess;                                                                                  \
    }

cudaError_t cudaMalloc(void **address, size_t bytes)
{
    begin();
    if (held_bytes + bytes > has_bytes()) {
        return cudaErrorMemoryAllocation;
    }
    *address = (void *)numbers_take(&memory, bytes);
    held_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    uint64_t bytes = address == NULL ? 0 : numbers_give(&memory, (uint64_t)address);
    held_bytes -= bytes;
    return address == NULL || bytes > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

GIVES(cudaMemGetInfo, (size_t * available, size_t *total), *available = has_bytes() - held_bytes;
      *total = has_bytes())
GIVES(cudaGetDevice, (int *device), *device = 0)
GIVES(cudaSetDevice, (int device), (void)device)
GIVES(cudaGetDeviceCount, (int *count), *count = 1)
GIVES(cudaGetDeviceProperties, (struct cudaDeviceProp * p, int device), (void)device; memset(p, 0, sizeof *p);
      p->totalGlobalMem = has_bytes(); p->major = 8)
GIVES(cudaGetLastError, (void), )
GIVES(cudaPeekAtLastError, (void), )
GIVES(cudaDeviceSynchronize, (void), )
GIVES(cudaStreamSynchronize, (cudaStream_t s), (void)s)
GIVES(cudaStreamQuery, (cudaStream_t s), (void)s)
GIVES(cudaDriverGetVersion, (int *version), *version = 13000)
GIVES(cudaStreamIsCapturing, (cudaStream_t s, enum cudaStreamCaptureStatus *status), (void)s;
      *status = cudaStreamCaptureStatusNone)
GIVES(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (void)mode)
GIVES(cudaEventCreateWithFlags, (cudaEvent_t * e, unsigned flags), (void)flags; *e = (cudaEvent_t)1)
GIVES(cudaEventDestroy, (cudaEvent_t e), (void)e)
GIVES(cudaEventQuery, (cudaEvent_t e), (void)e)
GIVES(cudaEventRecord, (cudaEvent_t e, cudaStream_t s), (void)e; (void)s)
GIVES(cudaEventSynchronize, (cudaEvent_t e), (void)e)

const char *cudaGetErrorName(cudaError_t e)
{
    return e == cudaSuccess ? "cudaSuccess" : "cudaErrorMemoryAllocation";
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaSuccess ? "no error" : "out of memory";
}

// ---- the driver's mapping -------------------------------------------------------------------------------------

static CUresult reserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                        unsigned long long f)
{
    (void)alignment, (void)wanted, (void)f;
    begin();
    *address = numbers_take(&reservations, (bytes + (UINT64_C(1) << 30)) & ~((UINT64_C(1) << 30) - 1));
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t bytes)
{
    (void)bytes;
    return numbers_give(&reservations, address) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *p,
                       unsigned long long f)
{
    (void)p, (void)f;
    if (held_bytes + bytes > has_bytes()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    held_bytes += bytes;
    *handle = bytes; // all that has to be known of it
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    held_bytes -= handle;
    return CUDA_SUCCESS;
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags f)
{
    (void)p, (void)f;
    *bytes = 2 << 20;
    return CUDA_SUCCESS;
}

static CUresult error_string(CUresult e, const char **text)
{
    (void)e;
    *text = "fake";
    return CUDA_SUCCESS;
}

static CUresult nothing(void)
{
    return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {{"cuMemAddressReserve", (void *)reserve},
                     {"cuMemAddressFree", (void *)unreserve},
                     {"cuMemCreate", (void *)create},
                     {"cuMemRelease", (void *)release},
                     {"cuMemGetAllocationGranularity", (void *)granularity},
                     {"cuGetErrorString", (void *)error_string}};
    (void)version, (void)flags;
    *function = (void *)nothing;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (strcmp(functions[k].name, name) == 0) {
            *function = functions[k].function;
        }
    }
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
