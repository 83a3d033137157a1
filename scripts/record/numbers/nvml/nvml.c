// SPDX-License-Identifier: Apache-2.0
// The driver's management library (libnvidia-ml.so.1) beside a card of numbers: one card, without links, without processes.
// PyTorch asks it before a segment expands, and when memory has run out. NVML's own names and arguments
// (docs.nvidia.com/deploy/nvml-api).
#include <stddef.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

typedef enum nvml_result {
    NVML_OK = 0,
    NVML_INVALID = 2,
    NVML_NOT_SUPPORTED = 3,
} nvml_result;

static char card; // its address is all that there is of it

// NOLINTBEGIN(readability-identifier-naming): NVML's own names

EXPORTED nvml_result nvmlInit(void)
{
    return NVML_OK;
}

EXPORTED nvml_result nvmlInit_v2(void)
{
    return NVML_OK;
}

EXPORTED nvml_result nvmlShutdown(void)
{
    return NVML_OK;
}

EXPORTED nvml_result nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 1;
    return NVML_OK;
}

EXPORTED nvml_result nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &card;
    return index == 0 ? NVML_OK : NVML_INVALID;
}

EXPORTED nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    (void)bus;
    *device = &card;
    return NVML_OK;
}

// cudaDeviceProp.uuid as NVML writes it.
EXPORTED nvml_result nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    static const char uuid[] = "GPU-68656164-726f-6f6d-206e-756d62657273";
    if (device != &card || size < sizeof uuid) {
        return NVML_INVALID;
    }
    (void)snprintf(text, size, "%s", uuid);
    return NVML_OK;
}

EXPORTED nvml_result nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *list)
{
    (void)list;
    *count = 0;
    return device == &card ? NVML_OK : NVML_INVALID;
}

EXPORTED nvml_result nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return NVML_OK;
}

EXPORTED nvml_result nvmlDeviceGetNvLinkRemoteDeviceType(void)
{
    return NVML_NOT_SUPPORTED;
}

EXPORTED nvml_result nvmlDeviceGetNvLinkRemotePciInfo_v2(void)
{
    return NVML_NOT_SUPPORTED;
}

typedef struct fabric_info {
    unsigned version;
    unsigned char uuid[16];
    nvml_result status;
    unsigned clique;
    unsigned char state; // 0: there is no fabric
} fabric_info;

EXPORTED nvml_result nvmlDeviceGetGpuFabricInfoV(void *device, fabric_info *info)
{
    info->status = NVML_OK;
    info->state = 0;
    return device == &card ? NVML_OK : NVML_INVALID;
}

// NOLINTEND(readability-identifier-naming)
