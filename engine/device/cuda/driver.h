// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a table of functions, opened when it is first needed. Nothing else in headroom calls CUDA:
// contexts, streams, events, memory, modules, launches and graphs all go through here, so that a driver made for
// tests sees every call. The names are those of the library, versions included.
#ifndef DEVICE_CUDA_DRIVER_H
#define DEVICE_CUDA_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

#include "headroom/status.h"

#define CUDA_DRIVER_MAP(X)                                                                                   \
    X(cuGetErrorName)                                                                                        \
    X(cuGetErrorString)                                                                                      \
    X(cuInit)                                                                                                \
    X(cuDriverGetVersion)                                                                                    \
    X(cuDeviceGetCount)                                                                                      \
    X(cuDeviceGet)                                                                                           \
    X(cuDeviceGetName)                                                                                       \
    X(cuDeviceGetAttribute)                                                                                  \
    X(cuDeviceGetUuid_v2)                                                                                    \
    X(cuDeviceGetPCIBusId)                                                                                   \
    X(cuDeviceTotalMem_v2)                                                                                   \
    X(cuDevicePrimaryCtxRetain)                                                                              \
    X(cuDevicePrimaryCtxRelease_v2)                                                                          \
    X(cuCtxSetCurrent)                                                                                       \
    X(cuCtxSynchronize)                                                                                      \
    X(cuMemGetInfo_v2)                                                                                       \
    X(cuMemAlloc_v2)                                                                                         \
    X(cuMemFree_v2)                                                                                          \
    X(cuMemHostAlloc)                                                                                        \
    X(cuMemFreeHost)                                                                                         \
    X(cuMemcpyHtoD_v2)                                                                                       \
    X(cuMemcpyDtoH_v2)                                                                                       \
    X(cuMemcpyHtoDAsync_v2)                                                                                  \
    X(cuMemcpyDtoHAsync_v2)                                                                                  \
    X(cuMemcpyDtoDAsync_v2)                                                                                  \
    X(cuMemsetD8Async)                                                                                       \
    X(cuMemAddressReserve)                                                                                   \
    X(cuMemAddressFree)                                                                                      \
    X(cuMemCreate)                                                                                           \
    X(cuMemRelease)                                                                                          \
    X(cuMemMap)                                                                                              \
    X(cuMemUnmap)                                                                                            \
    X(cuMemSetAccess)                                                                                        \
    X(cuMemGetAllocationGranularity)                                                                         \
    X(cuMemAllocFromPoolAsync)                                                                               \
    X(cuMemFreeAsync)                                                                                        \
    X(cuMemPoolCreate)                                                                                       \
    X(cuMemPoolDestroy)                                                                                      \
    X(cuMemPoolSetAttribute)                                                                                 \
    X(cuMemPoolGetAttribute)                                                                                 \
    X(cuMemPoolTrimTo)                                                                                       \
    X(cuStreamCreate)                                                                                        \
    X(cuStreamDestroy_v2)                                                                                    \
    X(cuStreamSynchronize)                                                                                   \
    X(cuStreamWaitEvent)                                                                                     \
    X(cuStreamBeginCapture_v2)                                                                               \
    X(cuStreamEndCapture)                                                                                    \
    X(cuEventCreate)                                                                                         \
    X(cuEventDestroy_v2)                                                                                     \
    X(cuEventRecord)                                                                                         \
    X(cuEventSynchronize)                                                                                    \
    X(cuEventElapsedTime_v2)                                                                                 \
    X(cuGraphInstantiateWithFlags)                                                                           \
    X(cuGraphLaunch)                                                                                         \
    X(cuGraphExecDestroy)                                                                                    \
    X(cuGraphDestroy)                                                                                        \
    X(cuModuleLoadData)                                                                                      \
    X(cuModuleUnload)                                                                                        \
    X(cuModuleGetFunction)                                                                                   \
    X(cuFuncLoad)                                                                                            \
    X(cuFuncGetAttribute)                                                                                    \
    X(cuFuncSetAttribute)                                                                                    \
    X(cuLaunchKernel)

typedef struct cuda_driver_calls {
#define X(name) __typeof__(name) *name;
    CUDA_DRIVER_MAP(X)
#undef X
} cuda_driver_calls;

extern cuda_driver_calls cuda_driver; // filled by cuda_driver_need

// Opens libcuda.so.1 and starts it. DEPENDENCY errors: no driver, no card, a driver older than the CUDA that this
// build was made with. Thread-safe.
HR_MUST_CHECK hr_status cuda_driver_need(hr_err *err);

// HR_OK for CUDA_SUCCESS. Else an error whose sentence is "WHAT: cudaErrorName, the driver's words": OOM for
// CUDA_ERROR_OUT_OF_MEMORY; DEVICE_LOST for what leaves the context unusable (illegal address, launch failure, ECC,
// lost card, …); DEVICE for the rest.
HR_MUST_CHECK hr_status cuda_check(CUresult result, hr_err *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

// Is the current context in an error that stays? Waits for what was enqueued, and ends a capture under way. Libraries say
// "execution failed" of a lost card and of one call alike.
bool cuda_is_lost(void);

// hr_status of cuda_driver.CALL(arguments), named in the sentence.
#define CUDA_CALL(err, call, ...) cuda_check(cuda_driver.call(__VA_ARGS__), (err), #call)

#endif
