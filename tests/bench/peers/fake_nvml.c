// SPDX-License-Identifier: Apache-2.0
// A driver's management library that knows a card without links and processes (libnvidia-ml.so.1), beside fake_cuda.c.
#include <stddef.h>

enum { NOT_SUPPORTED = 3 };

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    (void)bus;
    *device = (void *)1;
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *list)
{
    (void)device, (void)list;
    *count = 0;
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = 13000;
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void)
{
    return NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void)
{
    return NOT_SUPPORTED;
}

int nvmlDeviceGetGpuFabricInfoV(void)
{
    return NOT_SUPPORTED;
}
