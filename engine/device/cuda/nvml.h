// SPDX-License-Identifier: Apache-2.0
// What the driver's management library says of a card's memory. Opened when it is first needed, never required.
#ifndef DEVICE_CUDA_NVML_H
#define DEVICE_CUDA_NVML_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct nvml_memory {
    uint64_t total_bytes, used_bytes; // by everyone; what the driver keeps for itself is not among it
    bool process_known;               // in a container and under WDDM it is not
    uint64_t process_bytes;
} nvml_memory;

// Cards are matched by UUID, else by PCI bus: NVML's order is not CUDA's. False when it cannot be told. Milliseconds.
bool nvml_look(const CUuuid *uuid, const char *pci_bus, nvml_memory *out);

#endif
