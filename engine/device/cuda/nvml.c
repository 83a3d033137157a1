// SPDX-License-Identifier: Apache-2.0
// The few structs of NVML that are used, declared here: the CUDA Toolkit does not always bring nvml.h.
#include "nvml.h"

#include <stdio.h>
#include <unistd.h>

#include "base/shared_library.h"

typedef struct nvml_card *nvml_device; // nvmlDevice_t

// nvmlMemory_v2_t
typedef struct nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvml_memory_v2;

// nvmlProcessInfo_v2_t, of nvmlDeviceGetComputeRunningProcesses_v3
typedef struct nvml_process {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance, compute_instance;
} nvml_process;

enum {
    NVML_DONE = 0,
    PROCESSES_MAX = 256,
    UUID_BYTES = 16,
    UUID_TEXT_MAX = 48,
    MEMORY_V2 = (int)sizeof(nvml_memory_v2) | 2 << 24,
};
#define NVML_NOT_AVAILABLE (~0ull)

typedef struct nvml_calls {
    int (*nvmlInit_v2)(void);
    int (*nvmlDeviceGetHandleByUUID)(const char *uuid, nvml_device *out);
    int (*nvmlDeviceGetHandleByPciBusId_v2)(const char *bus, nvml_device *out);
    int (*nvmlDeviceGetMemoryInfo_v2)(nvml_device card, nvml_memory_v2 *out);
    int (*nvmlDeviceGetComputeRunningProcesses_v3)(nvml_device card, unsigned int *count, nvml_process *out);
} nvml_calls;

static nvml_calls nvml;

static const shared_call list[] = {
#define ROW(name)                                                                                            \
    {                                                                                                        \
#name, offsetof(nvml_calls, name)                                                                    \
    }
    ROW(nvmlInit_v2),
    ROW(nvmlDeviceGetHandleByUUID),
    ROW(nvmlDeviceGetHandleByPciBusId_v2),
    ROW(nvmlDeviceGetMemoryInfo_v2),
    ROW(nvmlDeviceGetComputeRunningProcesses_v3),
#undef ROW
};

static hr_status start(const void *table, hr_err *err)
{
    return ((const nvml_calls *)table)->nvmlInit_v2() == NVML_DONE
               ? HR_OK
               : HR_FAIL(err, DEPENDENCY, "libnvidia-ml.so.1 does not start");
}

static const shared_library library = {.soname = "libnvidia-ml.so.1",
                                       .needed_by = "the driver's view",
                                       .hint = "nvidia-smi",
                                       .calls = list,
                                       .call_count = sizeof list / sizeof *list,
                                       .check = start};

// "GPU-ca4d0001-0000-4000-8000-000000000001"; of a slice of a card (MIG) with its own word in front.
static void uuid_text(const char *word, const CUuuid *uuid, char text[UUID_TEXT_MAX])
{
    size_t length = (size_t)snprintf(text, UUID_TEXT_MAX, "%s", word);
    for (uint32_t k = 0; k < UUID_BYTES; k++) {
        const bool hyphen = k == 4 || k == 6 || k == 8 || k == 10;
        length += (size_t)snprintf(text + length, UUID_TEXT_MAX - length, "%s%02x", hyphen ? "-" : "",
                                   (unsigned)(unsigned char)uuid->bytes[k]);
    }
}

static bool find_card(const CUuuid *uuid, const char *pci_bus, nvml_device *card)
{
    static const char *const words[] = {"GPU-", "MIG-"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        char text[UUID_TEXT_MAX];
        uuid_text(words[k], uuid, text);
        if (nvml.nvmlDeviceGetHandleByUUID(text, card) == NVML_DONE) {
            return true;
        }
    }
    return nvml.nvmlDeviceGetHandleByPciBusId_v2(pci_bus, card) == NVML_DONE;
}

static void find_process(nvml_device card, nvml_memory *out)
{
    nvml_process processes[PROCESSES_MAX];
    unsigned int count = PROCESSES_MAX;
    if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(card, &count, processes) != NVML_DONE) {
        return;
    }
    for (unsigned int k = 0; k < count && k < PROCESSES_MAX; k++) {
        if (processes[k].pid == (unsigned int)getpid() && processes[k].used_bytes != NVML_NOT_AVAILABLE) {
            out->process_known = true;
            out->process_bytes += processes[k].used_bytes;
        }
    }
}

bool nvml_look(const CUuuid *uuid, const char *pci_bus, nvml_memory *out)
{
    static shared_state state = SHARED_STATE_INIT;
    nvml_device card = NULL;
    nvml_memory_v2 memory = {.version = MEMORY_V2};
    *out = (nvml_memory){0};
    if (shared_library_need(&library, &state, &nvml, NULL) != HR_OK || !find_card(uuid, pci_bus, &card) ||
        nvml.nvmlDeviceGetMemoryInfo_v2(card, &memory) != NVML_DONE) {
        return false;
    }
    out->total_bytes = memory.total;
    out->used_bytes = memory.used;
    find_process(card, out);
    return true;
}
