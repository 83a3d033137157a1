// SPDX-License-Identifier: Apache-2.0
// Streams, events, kernels: all of it is done when it is enqueued, and does nothing.
#include <stdatomic.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

void *new_handle(void)
{
    static atomic_uintptr_t next = 0x1000;
    return (void *)(atomic_fetch_add(&next, 16)); // NOLINT: never an address
}

#define SUCCEEDS(name)       ANSWERS(cuda_error, name, CUDA_OK)
#define REFUSES(name)        ANSWERS(cuda_error, name, failed(CUDA_NOT_SUPPORTED))
#define MAKES_A_HANDLE(name) HANDS_OUT(cuda_error, name)

// ---- streams and events ---------------------------------------------------------------------------------------------

MAKES_A_HANDLE(cudaStreamCreate)
MAKES_A_HANDLE(cudaStreamCreateWithFlags)
MAKES_A_HANDLE(cudaStreamCreateWithPriority)
SUCCEEDS(cudaStreamDestroy)
SUCCEEDS(cudaStreamQuery)
SUCCEEDS(cudaStreamSynchronize)
SUCCEEDS(cudaStreamWaitEvent)
SUCCEEDS(cudaThreadExchangeStreamCaptureMode)

EXPORTED cuda_error cudaStreamGetPriority(void *stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return CUDA_OK;
}

EXPORTED cuda_error cudaStreamIsCapturing(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return CUDA_OK;
}

EXPORTED cuda_error cudaStreamGetCaptureInfo(void *stream, int *status)
{
    (void)stream;
    *status = 0;
    return CUDA_OK;
}

EXPORTED cuda_error cudaStreamAddCallback(void *stream, void (*function)(void *, cuda_error, void *),
                                          void *data, unsigned flags)
{
    (void)flags;
    function(stream, CUDA_OK, data);
    return CUDA_OK;
}

EXPORTED cuda_error cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    (void)stream;
    function(data);
    return CUDA_OK;
}

MAKES_A_HANDLE(cudaEventCreate)
MAKES_A_HANDLE(cudaEventCreateWithFlags)
SUCCEEDS(cudaEventDestroy)
SUCCEEDS(cudaEventQuery)
SUCCEEDS(cudaEventRecord)
SUCCEEDS(cudaEventRecordWithFlags)
SUCCEEDS(cudaEventSynchronize)

EXPORTED cuda_error cudaEventElapsedTime(float *milliseconds)
{
    *milliseconds = 0;
    return CUDA_OK;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

EXPORTED void **__cudaRegisterFatBinary(void) // NOLINT: as compiled code calls it
{
    return new_handle();
}

SUCCEEDS(__cudaRegisterFatBinaryEnd)
SUCCEEDS(__cudaUnregisterFatBinary)
SUCCEEDS(__cudaRegisterFunction)
SUCCEEDS(__cudaRegisterVar)
SUCCEEDS(__cudaPushCallConfiguration)
SUCCEEDS(__cudaPopCallConfiguration)
SUCCEEDS(__cudaLaunchKernel)
MAKES_A_HANDLE(__cudaGetKernel)
SUCCEEDS(cudaLaunchKernel)
SUCCEEDS(cudaLaunchKernelExC)
SUCCEEDS(cudaLaunchCooperativeKernel)
SUCCEEDS(cudaFuncSetAttribute)
SUCCEEDS(cudaKernelSetAttributeForDevice)
SUCCEEDS(cudaProfilerStart)
SUCCEEDS(cudaProfilerStop)

typedef struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads_per_block, registers, ptx, binary, cache_mode, shared_dynamic_bytes;
} function_attributes;

// As of a kernel of 32 registers; the rest of the structure is left alone.
EXPORTED cuda_error cudaFuncGetAttributes(function_attributes *out, const void *function)
{
    (void)function;
    const int version = (int)(the_card()->capability / 10);
    *out = (function_attributes){.threads_per_block = 1024,
                                 .registers = 32,
                                 .ptx = version,
                                 .binary = version,
                                 .shared_dynamic_bytes = (int)the_card()->shared_per_block};
    return CUDA_OK;
}

static int blocks_of(int threads)
{
    const int64_t most = the_card()->blocks_per_sm,
                  blocks = the_card()->threads_per_sm / (threads > 0 ? threads : 1);
    return (int)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

EXPORTED cuda_error cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                                  int threads)
{
    (void)function;
    *blocks = blocks_of(threads);
    return CUDA_OK;
}

EXPORTED cuda_error cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                           int threads)
{
    (void)function;
    *blocks = blocks_of(threads);
    return CUDA_OK;
}

// ---- what would have to do something --------------------------------------------------------------------------------

REFUSES(cudaStreamBeginCapture)
REFUSES(cudaStreamBeginCaptureToGraph)
REFUSES(cudaIpcGetMemHandle)
REFUSES(cudaIpcOpenMemHandle)
REFUSES(cudaIpcGetEventHandle)
REFUSES(cudaIpcOpenEventHandle)
REFUSES(cudaDeviceEnablePeerAccess)
REFUSES(cudaLibraryLoadData)
REFUSES(cudaLibraryLoadFromFile)
REFUSES(cudaGetSymbolAddress)
REFUSES(cudaDeviceGetDefaultMemPool)

// NOLINTEND(readability-identifier-naming)
