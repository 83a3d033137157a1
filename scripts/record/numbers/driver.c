// SPDX-License-Identifier: Apache-2.0
// The driver, as far as PyTorch calls it: mapping of memory, for segments that expand, which it takes through the runtime, and
// modules that were compiled while it runs. The library goes by the driver's name, libcuda.so.1.
#include <string.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

cuda_error numbers_reserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted,
                           unsigned long long flags);
cuda_error numbers_unreserve(uint64_t address, size_t bytes);
cuda_error numbers_create(uint64_t *handle, size_t bytes, const void *properties, unsigned long long flags);
cuda_error numbers_release(uint64_t handle);
cuda_error numbers_address_range(uint64_t *base, size_t *bytes, uint64_t address);

static cuda_error device_get(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_OK : CUDA_INVALID_DEVICE;
}

static cuda_error granularity(size_t *bytes, const void *properties, int option)
{
    (void)properties, (void)option;
    *bytes = GRANULE_BYTES;
    return CUDA_OK;
}

extern const char *cudaGetErrorString(cuda_error error);
extern const char *cudaGetErrorName(cuda_error error);
extern cuda_error cudaDriverGetVersion(int *version);
extern cuda_error cudaDeviceGetAttribute(int *value, int which, int device);

static cuda_error error_string(cuda_error error, const char **text)
{
    *text = cudaGetErrorString(error);
    return CUDA_OK;
}

static cuda_error succeeds(void)
{
    return CUDA_OK;
}

static cuda_error refuses(void)
{
    return CUDA_NOT_SUPPORTED;
}

static const struct {
    const char *name;
    entry_point function;
} entries[] = {
    {"cuDeviceGet", (entry_point)device_get},
    {"cuDeviceGetAttribute", (entry_point)cudaDeviceGetAttribute},
    {"cuGetErrorString", (entry_point)error_string},
    {"cuMemAddressReserve", (entry_point)numbers_reserve},
    {"cuMemAddressFree", (entry_point)numbers_unreserve},
    {"cuMemCreate", (entry_point)numbers_create},
    {"cuMemRelease", (entry_point)numbers_release},
    {"cuMemMap", (entry_point)succeeds},
    {"cuMemUnmap", (entry_point)succeeds},
    {"cuMemSetAccess", (entry_point)succeeds},
    {"cuMemsetD32Async", (entry_point)succeeds},
    {"cuStreamWriteValue32", (entry_point)succeeds},
    {"cuMemGetAllocationGranularity", (entry_point)granularity},
    {"cuMemGetAddressRange", (entry_point)numbers_address_range},
    {"cuMemExportToShareableHandle", (entry_point)refuses},
    {"cuMemImportFromShareableHandle", (entry_point)refuses},
    {"cuMemRetainAllocationHandle", (entry_point)refuses},
    {"cuMemGetAllocationPropertiesFromHandle", (entry_point)refuses},
};

entry_point driver_entry(const char *name)
{
    for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
        if (strcmp(entries[k].name, name) == 0) {
            return entries[k].function;
        }
    }
    return NULL;
}

// ---- by their own names ---------------------------------------------------------------------------------------------

#define SUCCEEDS(name)       ANSWERS(cuda_error, name, CUDA_OK)
#define REFUSES(name)        ANSWERS(cuda_error, name, CUDA_NOT_SUPPORTED)
#define MAKES_A_HANDLE(name) HANDS_OUT(cuda_error, name)

static char context; // its address is all that there is of it

EXPORTED cuda_error cuCtxGetCurrent(void **out)
{
    *out = &context;
    return CUDA_OK;
}

EXPORTED cuda_error cuDevicePrimaryCtxRetain(void **out, int device)
{
    *out = &context;
    return device == 0 ? CUDA_OK : CUDA_INVALID_DEVICE;
}

EXPORTED cuda_error cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = 1;
    return device == 0 ? CUDA_OK : CUDA_INVALID_DEVICE;
}

EXPORTED cuda_error cuDeviceGet(int *device, int ordinal)
{
    return device_get(device, ordinal);
}

EXPORTED cuda_error cuDeviceGetAttribute(int *value, int which, int device)
{
    return cudaDeviceGetAttribute(value, which, device);
}

EXPORTED cuda_error cuGetErrorString(cuda_error error, const char **text)
{
    return error_string(error, text);
}

EXPORTED cuda_error cuDeviceGetCount(int *count)
{
    *count = the_card()->properties != NULL;
    return CUDA_OK;
}

EXPORTED cuda_error cuDriverGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

EXPORTED cuda_error cuGetErrorName(cuda_error error, const char **text)
{
    *text = cudaGetErrorName(error);
    return CUDA_OK;
}

EXPORTED cuda_error cuStreamGetCtx(void *stream, void **out)
{
    (void)stream;
    *out = &context;
    return CUDA_OK;
}

EXPORTED cuda_error cuCtxPopCurrent(void **out)
{
    *out = &context;
    return CUDA_OK;
}

SUCCEEDS(cuCtxPushCurrent)
SUCCEEDS(cuCtxSetCurrent)
SUCCEEDS(cuFuncSetAttribute)
SUCCEEDS(cuFuncSetCacheConfig)
SUCCEEDS(cuLaunchKernel)
SUCCEEDS(cuLaunchCooperativeKernel)
SUCCEEDS(cuLaunchKernelEx)
SUCCEEDS(cuKernelSetAttribute)
SUCCEEDS(cuModuleUnload)
SUCCEEDS(cuLibraryUnload)
SUCCEEDS(cuTensorMapEncodeTiled)
MAKES_A_HANDLE(cuModuleLoad)
MAKES_A_HANDLE(cuModuleLoadData)
MAKES_A_HANDLE(cuModuleLoadDataEx)
MAKES_A_HANDLE(cuModuleGetFunction)
MAKES_A_HANDLE(cuLibraryLoadData)
MAKES_A_HANDLE(cuLibraryLoadFromFile)
MAKES_A_HANDLE(cuLibraryGetKernel)
MAKES_A_HANDLE(cuKernelGetFunction)
REFUSES(cuCtxGetLimit)
REFUSES(cuKernelGetAttribute)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuFuncGetAttribute)
REFUSES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSES(cuPointerGetAttribute)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkDestroy)

EXPORTED cuda_error cudaGetDriverEntryPointByVersion(const char *name, entry_point *function,
                                                     unsigned version, unsigned long long flags, int *result)
{
    (void)version, (void)flags;
    *function = driver_entry(name);
    if (result != NULL) {
        *result = *function != NULL ? 0 : 1; // found; the driver lacks it
    }
    return CUDA_OK;
}

// NOLINTEND(readability-identifier-naming)
