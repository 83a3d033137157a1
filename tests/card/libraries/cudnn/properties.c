// SPDX-License-Identifier: Apache-2.0
// The properties of the emulated card as cuDNN 9 writes them, read off the driver.
#include <stdio.h>

#include "driver_calls.h"
#include "graph.h"

typedef struct property {
    const char *key;
    CUdevice_attribute attribute;
    int64_t otherwise; // where the driver has no such attribute
} property;

static const property properties[] = {
    {"regsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {"multiProcessorCount", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
    {"warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {"maxSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {"maxSharedMemoryPerBlockOptin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 49152},
    {"reservedSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {"maxRegistersPerSM", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {"maxCtasPerSM", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {"maxThreadsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {"maxThreadsPerSM", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {"pciDeviceId", CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {"isTccDriver", CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {"supportCoopLaunch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {"smClockRateKHz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {"memClockRateKHz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {"l2CacheSize", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20},
};

static int64_t attribute_of(const driver_calls *driver, CUdevice_attribute attribute, int64_t otherwise)
{
    int value = 0;
    return driver->attribute(&value, attribute, 0) == CUDA_SUCCESS ? value : otherwise;
}

static int write_extents(const driver_calls *driver, char *text, size_t size)
{
    return snprintf(text, size, "{\"maxGridSize\":[%lld,%lld,%lld],\"maxBlockSize\":[%lld,%lld,%lld]",
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT32_MAX),
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535),
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
                    (long long)attribute_of(driver, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64));
}

int properties_text(char *text, size_t size)
{
    const driver_calls *driver = driver_calls_get();
    char name[128] = "";
    size_t memory_bytes = 0;
    int version = 0;
    if (driver == NULL || driver->name(name, sizeof name, 0) != CUDA_SUCCESS ||
        driver->memory(&memory_bytes, 0) != CUDA_SUCCESS || driver->version(&version) != CUDA_SUCCESS) {
        return 0;
    }
    int used = write_extents(driver, text, size);
    for (size_t k = 0; k < sizeof properties / sizeof *properties; k++) {
        used += snprintf(text + used, size - (size_t)used, ",\"%s\":%lld", properties[k].key,
                         (long long)attribute_of(driver, properties[k].attribute, properties[k].otherwise));
    }
    const int64_t compute = attribute_of(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9) * 100 +
                            attribute_of(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0) * 10;
    used += snprintf(text + used, size - (size_t)used,
                     ",\"deviceName\":\"%s\",\"deviceVer\":%lld,\"driverVer\":%d,\"cudaDeviceId\":0,"
                     "\"totalGlobalMem\":%zu}",
                     name, (long long)compute, version, memory_bytes);
    return used;
}
