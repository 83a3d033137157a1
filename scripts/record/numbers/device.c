// SPDX-License-Identifier: Apache-2.0
// What the runtime says of the one card that there is, and of errors.
#include <stdio.h>
#include <string.h>

#include "numbers.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names

enum { RUNTIME_VERSION = 13000, DRIVER_VERSION = 13000 };

// ---- errors ---------------------------------------------------------------------------------------------------------

static _Thread_local cuda_error last;

cuda_error failed(cuda_error error)
{
    last = error == CUDA_OK ? last : error;
    return error;
}

EXPORTED cuda_error cudaGetLastError(void)
{
    const cuda_error error = last;
    last = CUDA_OK;
    return error;
}

EXPORTED cuda_error cudaPeekAtLastError(void)
{
    return last;
}

static const struct {
    cuda_error error;
    const char *name, *words;
} errors[] = {
    {CUDA_OK, "cudaSuccess", "no error"},
    {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
    {CUDA_NO_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
    {CUDA_NO_DEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
    {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported (by a card of numbers)"},
};

EXPORTED const char *cudaGetErrorName(cuda_error error)
{
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
        if (errors[k].error == error) {
            return errors[k].name;
        }
    }
    return "cudaErrorUnknown";
}

EXPORTED const char *cudaGetErrorString(cuda_error error)
{
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
        if (errors[k].error == error) {
            return errors[k].words;
        }
    }
    return "unknown error";
}

// ---- the device -----------------------------------------------------------------------------------------------------

EXPORTED cuda_error cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return CUDA_OK;
}

EXPORTED cuda_error cudaDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CUDA_OK;
}

EXPORTED cuda_error cudaGetDeviceCount(int *count)
{
    *count = the_card()->properties != NULL;
    return failed(*count == 1 ? CUDA_OK : CUDA_NO_DEVICE);
}

EXPORTED cuda_error cudaGetDevice(int *device)
{
    *device = 0;
    return failed(the_card()->properties != NULL ? CUDA_OK : CUDA_NO_DEVICE);
}

EXPORTED cuda_error cudaSetDevice(int device)
{
    return failed(device == 0 ? CUDA_OK : CUDA_INVALID_DEVICE);
}

EXPORTED cuda_error cudaDeviceSynchronize(void)
{
    return CUDA_OK;
}

EXPORTED cuda_error cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_OK;
}

EXPORTED cuda_error cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device, (void)peer;
    *can = 0;
    return CUDA_OK;
}

EXPORTED cuda_error cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    (void)snprintf(text, (size_t)size, "0000:01:00.0");
    return failed(device == 0 ? CUDA_OK : CUDA_INVALID_DEVICE);
}

// Numbers of cudaDeviceAttr, which are CUdevice_attribute's. What is not here is 0: a card of numbers cannot do it.
static int64_t attribute(const numbers_card *c, int which)
{
    const struct {
        int which;
        int64_t value;
    } rows[] = {
        {1, 1024},
        {2, 1024},
        {3, 1024},
        {4, 64}, // threads of a block, its dimensions
        {5, 0x7fffffff},
        {6, 65535},
        {7, 65535}, // dimensions of a grid
        {8, c->shared_per_block},
        {9, 65536},
        {10, 32},
        {11, 0x7fffffff}, // constant memory, warp, pitch
        {12, c->registers_per_block},
        {13, c->clock_khz},
        {14, 512},
        {15, 1},
        {16, c->multiprocessors},
        {19, 1},
        {31, 1},
        {33, 1}, // maps host memory, concurrent kernels, bus 1
        {36, c->memory_clock_khz},
        {38, c->l2_bytes},
        {39, c->threads_per_sm},
        {40, 2},
        {41, 1},
        {51, 32},
        {75, c->capability / 100},
        {76, c->capability / 10 % 10},
        {78, 1},
        {79, 1},
        {80, 1},
        {81, c->shared_optin + c->shared_reserved},
        {82, c->registers_per_sm},
        {90, 1},
        {95, 1},
        {97, c->shared_optin},
        {99, 1},
        {102, 1}, // registers host memory, maps memory
        {106, c->blocks_per_sm},
        {111, c->shared_reserved},
        {120, c->capability >= 900},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (rows[k].which == which) {
            return rows[k].value;
        }
    }
    return 0;
}

EXPORTED cuda_error cudaDeviceGetAttribute(int *value, int which, int device)
{
    if (device != 0 || the_card()->properties == NULL) {
        return failed(CUDA_INVALID_DEVICE);
    }
    *value = (int)attribute(the_card(), which);
    return CUDA_OK;
}

// cudaDeviceProp of CUDA 13, where it is not only zeros.
typedef struct device_properties {
    char name[256];
    unsigned char uuid[16];
    char luid[8];
    unsigned luid_mask;
    size_t memory_bytes, shared_per_block;
    int registers_per_block, warp;
    size_t pitch;
    int threads_per_block, block[3], grid[3];
    size_t constant_bytes;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
    int multiprocessors, integrated, maps_host;
    int textures[25], surfaces[14]; // widths of images
    size_t surface_alignment;
    int concurrent_kernels, ecc, bus, slot, domain, tcc, engines, unified_addressing, bus_bits, l2_bytes,
        l2_persisting_bytes, threads_per_sm, priorities, l1_global, l1_local;
    size_t shared_per_sm;
    int registers_per_sm, managed, multi, multi_group, host_atomics, pageable, concurrent_managed, preempts,
        host_pointer, cooperative;
    size_t shared_optin;
    int page_tables, direct_managed, blocks_per_sm, window;
    size_t shared_reserved;
    int host_register, sparse, host_register_read, timeline, pools, rdma;
    unsigned rdma_flush;
    int rdma_order;
    unsigned pool_handles;
    int deferred, ipc_events, clusters, unified_functions, numa, numa_id, mps, host_numa;
    unsigned pci_device, pci_subsystem;
    int host_numa_ipc, reserved[56];
} device_properties;

EXPORTED cuda_error cudaGetDeviceProperties(device_properties *p, int device)
{
    const numbers_card *c = the_card();
    if (device != 0 || c->properties == NULL) {
        return failed(CUDA_INVALID_DEVICE);
    }
    *p = (device_properties){
        .memory_bytes = c->memory_bytes,
        .shared_per_block = (size_t)c->shared_per_block,
        .registers_per_block = (int)c->registers_per_block,
        .warp = 32,
        .pitch = 0x7fffffff,
        .threads_per_block = 1024,
        .block = {1024, 1024, 64},
        .grid = {0x7fffffff, 65535, 65535},
        .constant_bytes = 65536,
        .major = (int)(c->capability / 100),
        .minor = (int)(c->capability / 10 % 10),
        .texture_alignment = 512,
        .texture_pitch_alignment = 32,
        .multiprocessors = (int)c->multiprocessors,
        .maps_host = 1,
        .surface_alignment = 512,
        .concurrent_kernels = 1,
        .bus = 1,
        .engines = 2,
        .unified_addressing = 1,
        .l2_bytes = (int)c->l2_bytes,
        .threads_per_sm = (int)c->threads_per_sm,
        .priorities = 1,
        .l1_global = 1,
        .l1_local = 1,
        .shared_per_sm = (size_t)(c->shared_optin + c->shared_reserved),
        .registers_per_sm = (int)c->registers_per_sm,
        .preempts = 1,
        .cooperative = 1,
        .shared_optin = (size_t)c->shared_optin,
        .blocks_per_sm = (int)c->blocks_per_sm,
        .shared_reserved = (size_t)c->shared_reserved,
        .host_register = 1,
        .clusters = c->capability >= 900,
    };
    (void)snprintf(p->name, sizeof p->name, "%s", c->name);
    memcpy(p->uuid, "headroom numbers", sizeof p->uuid);
    return CUDA_OK;
}

// NOLINTEND(readability-identifier-naming)
