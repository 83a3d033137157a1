// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime that owns nothing but numbers, so that PyTorch's allocator can be asked what it would do. Built as
// libcudart.so.13 by tests/bench/peers/pytorch_caching. cudaMalloc gives addresses from 1 << 40 upwards, never the same
// twice; reservations lie from 1 << 44 upwards; FAKE_CUDA_BYTES is what the card has.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RANGES_MAX = 1 << 16 };

static struct {
    uint64_t address, bytes;
} ranges[RANGES_MAX];
static int range_count;
static uint64_t next_address = UINT64_C(1) << 40, next_reservation = UINT64_C(1) << 44, held_bytes;

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
    if (held_bytes + bytes > has_bytes() || range_count == RANGES_MAX) {
        return cudaErrorMemoryAllocation;
    }
    *address = (void *)next_address;
    ranges[range_count].address = next_address;
    ranges[range_count++].bytes = bytes;
    next_address += bytes;
    held_bytes += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *address)
{
    for (int k = 0; k < range_count; k++) {
        if (ranges[k].address == (uint64_t)address) {
            held_bytes -= ranges[k].bytes;
            ranges[k] = ranges[--range_count];
            return cudaSuccess;
        }
    }
    return address == NULL ? cudaSuccess : cudaErrorInvalidValue;
}

GIVES(cudaMemGetInfo, (size_t * available, size_t *total), *available = has_bytes() - held_bytes;
      *total = has_bytes())
GIVES(cudaGetDevice, (int *device), *device = 0)
GIVES(cudaSetDevice, (int device), (void)device)
GIVES(cudaGetDeviceCount, (int *count), *count = 1)
GIVES(cudaGetDeviceProperties, (struct cudaDeviceProp * p, int device), (void)device; memset(p, 0, sizeof *p);
      p->totalGlobalMem = has_bytes(); p->major = 9)
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
    *address = next_reservation;
    next_reservation += (bytes + (UINT64_C(1) << 30)) & ~((UINT64_C(1) << 30) - 1);
    return CUDA_SUCCESS;
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
