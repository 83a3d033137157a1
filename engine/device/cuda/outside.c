// SPDX-License-Identifier: Apache-2.0
// What of the card is not the allocator's: our context and libraries, and everyone else. NVML says it where it is there;
// else it is reckoned from what is free.
#include "outside.h"

#include <inttypes.h>

#include "headroom/units.h"

#include "backing.h"
#include "nvml.h"

enum { BUS_TEXT_MAX = 32 };

static bool look(const cuda_device *device, nvml_memory *out)
{
    CUuuid uuid;
    char bus[BUS_TEXT_MAX];
    return cuda_driver.cuDeviceGetUuid_v2(&uuid, device->ordinal) == CUDA_SUCCESS &&
           cuda_driver.cuDeviceGetPCIBusId(bus, sizeof bus, device->ordinal) == CUDA_SUCCESS &&
           nvml_look(&uuid, bus, out);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t cuda_card_used_bytes(const cuda_device *device)
{
    nvml_memory seen;
    return look(device, &seen) ? seen.used_bytes : 0;
}

static bool ask_driver(uint64_t *bytes, uint64_t *total_bytes)
{
    size_t left = 0, all = 0;
    const bool known = cuda_driver.cuMemGetInfo_v2(&left, &all) == CUDA_SUCCESS;
    *bytes = left;
    *total_bytes = all;
    return known;
}

uint64_t cuda_free_bytes(void)
{
    uint64_t left = 0, all = 0;
    return ask_driver(&left, &all) ? left : 0;
}

void cuda_count_context(cuda_device *device, uint64_t before_bytes)
{
    device->context_bytes += less(before_bytes, cuda_free_bytes());
}

void cuda_outside(void *context, device_outside *out)
{
    cuda_device *device = context;
    nvml_memory seen;
    uint64_t left = 0, all = 0;
    *out = (device_outside){0};
    if (cuda_enter(device, NULL) != HR_OK || !ask_driver(&left, &all)) {
        return;
    }
    const bool told = look(device, &seen);
    const uint64_t ours = device->context_bytes + device->held_bytes;
    out->known = true;
    out->process_bytes = told && seen.process_known ? seen.process_bytes : ours;
    out->context_bytes = less(out->process_bytes, device->held_bytes);
    out->others_bytes = less(told ? seen.used_bytes : all - left, out->process_bytes);
}

hr_status cuda_admit(void *context, uint64_t in_use_bytes, uint64_t pool_bytes, hr_err *err)
{
    cuda_device *device = context;
    device_outside outside;
    uint64_t left = 0, all = 0;
    if (cuda_device_plans(device)) {
        return HR_OK;
    }
    HR_TRY(cuda_enter(device, err));
    const uint64_t needed_bytes = (in_use_bytes > pool_bytes ? in_use_bytes : pool_bytes);
    if (!ask_driver(&left, &all) || needed_bytes <= left + device->held_bytes) {
        return HR_OK;
    }
    cuda_outside(device, &outside);
    char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX], others[HR_BYTES_TEXT_MAX],
        limit[HR_BYTES_TEXT_MAX];
    (void)HR_FAIL(err, HOST_LIMIT,
                  "the allocator takes %s of the card at the step's peak, the card has %s free: other "
                  "processes hold %s",
                  hr_bytes_human(needed_bytes, needed), hr_bytes_human(left + device->held_bytes, had),
                  hr_bytes_human(outside.others_bytes, others));
    hr_err_try(
        err, "nvidia-smi, which lists them; or -s device.vram=%s",
        hr_bytes_exact((left + device->held_bytes) / CUDA_GRANULARITY_BYTES * CUDA_GRANULARITY_BYTES, limit));
    return HR_HOST_LIMIT;
}
