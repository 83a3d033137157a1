// SPDX-License-Identifier: Apache-2.0
// What implementations ask of their device, and the way into its context.
#include <string.h>

#include "graph_library.h"
#include "step.h"

// ---- what implementations ask -------------------------------------------------------------------------------------

const cuda_traits *cuda_device_traits(const cuda_device *device)
{
    return &device->traits;
}

bool cuda_device_tf32(const cuda_device *device)
{
    return device->tf32;
}

bool cuda_device_deterministic(const cuda_device *device)
{
    return device->deterministic;
}

bool cuda_device_plans(const cuda_device *device)
{
    return device->plan_only;
}

graph_library *cuda_device_graphs(cuda_device *device)
{
    return device->graphs;
}

// ---- the context --------------------------------------------------------------------------------------------------

hr_status cuda_enter(cuda_device *device, hr_err *err)
{
    if (device->plan_only) {
        return HR_FAIL(err, DEVICE, "device 'cuda' was opened for plans: it runs nothing");
    }
    if (device->lost) {
        return HR_FAIL(err, DEVICE_LOST, "the card was lost earlier in this process");
    }
    return cuda_noted(device, CUDA_CALL(err, cuCtxSetCurrent, device->context));
}

hr_status cuda_noted(cuda_device *device, hr_status status)
{
    device->lost = device->lost || status == HR_DEVICE_LOST;
    return status;
}

void cuda_say_addresses(cuda_device *device, uint64_t times)
{
    const size_t used = strlen(device->isa);
    (void)snprintf(device->isa + used, sizeof device->isa - used, ", addresses %llux",
                   (unsigned long long)times);
}
