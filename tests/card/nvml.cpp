// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 of the emulated card: what the emulated driver of this process knows. The structs are those of
// NVML's interface; the header is not part of what headroom is built with.
#include <algorithm>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vector>

#include "card.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace
{

enum result {
    SUCCESS,
    UNINITIALIZED,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    NO_PERMISSION,
    ALREADY,
    NOT_FOUND,
    INSUFFICIENT_SIZE,
    DRIVER_NOT_LOADED = 9
};

struct memory_v1 {
    unsigned long long total, free, used;
};
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
struct utilization {
    unsigned gpu, memory;
};

const unsigned MEMORY_V2 = (unsigned)sizeof(memory_v2) | 2u << 24;
const char UUID[] = "GPU-ca4d0001-0000-4000-8000-000000000001";
const char BUS[] = "CA:00.0"; // behind a domain of four or eight digits
enum { FIRST_OTHER_PID = 2000000000 };

const unsigned long long NOT_AVAILABLE = ~0ull;

unsigned started;
int the_card;

bool look(card_memory *m)
{
    static auto *now = (void (*)(card_memory *))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "card_memory_now");
    if (now != nullptr) {
        now(m);
    }
    return now != nullptr && m->present;
}

result check(void *device, card_memory *m)
{
    return started == 0 ? UNINITIALIZED : device != &the_card || !look(m) ? INVALID_ARGUMENT : SUCCESS;
}

result find(bool is_it, void **device)
{
    card_memory m = {};
    *device = is_it && look(&m) ? &the_card : nullptr;
    return started == 0 ? UNINITIALIZED : *device == nullptr ? NOT_FOUND : SUCCESS;
}

// We are in the middle of them. One that has just ended is not listed any more, what it had may still be used.
std::vector<process> processes_of(const card_memory &m)
{
    const char *setting = getenv("CARD_PROCESSES");
    const int wanted = setting == nullptr ? 1 : atoi(setting), others = m.others_bytes == 0 ? 0 : abs(wanted);
    std::vector<process> all;
    for (int k = 0; k < others; k++) {
        const unsigned long long bytes = wanted < 0 ? NOT_AVAILABLE : m.others_bytes / (unsigned)others;
        all.push_back({(unsigned)(FIRST_OTHER_PID + k), bytes, ~0u, ~0u});
    }
    if (m.process_bytes > 0) {
        const process we = {(unsigned)getpid(), wanted < 0 ? NOT_AVAILABLE : m.process_bytes, ~0u, ~0u};
        all.insert(all.begin() + others / 2, we);
    }
    return all;
}

} // namespace

EXPORTED result nvmlInit_v2(void)
{
    card_memory m = {};
    started++;
    (void)look(&m);
    return SUCCESS;
}

EXPORTED result nvmlShutdown(void)
{
    return started == 0 ? UNINITIALIZED : (started--, SUCCESS);
}

EXPORTED const char *nvmlErrorString(result r)
{
    return r == SUCCESS             ? "Success"
           : r == UNINITIALIZED     ? "Uninitialized"
           : r == INVALID_ARGUMENT  ? "Invalid Argument"
           : r == NOT_SUPPORTED     ? "Not Supported"
           : r == NOT_FOUND         ? "Not Found"
           : r == INSUFFICIENT_SIZE ? "Insufficient Size"
                                    : "Unknown Error";
}

EXPORTED result nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    return find(strcmp(uuid, UUID) == 0, device);
}

EXPORTED result nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    const char *behind_domain = strchr(bus, ':');
    return find(behind_domain != nullptr && strcasecmp(behind_domain + 1, BUS) == 0, device);
}

EXPORTED result nvmlDeviceGetMemoryInfo(void *device, memory_v1 *out)
{
    card_memory m = {};
    const result r = check(device, &m);
    if (r == SUCCESS) {
        const unsigned long long used = m.process_bytes + m.others_bytes;
        *out = {m.total_bytes, m.total_bytes - used, used};
    }
    return r;
}

EXPORTED result nvmlDeviceGetMemoryInfo_v2(void *device, memory_v2 *out)
{
    card_memory m = {};
    const result r = out->version != MEMORY_V2 ? INVALID_ARGUMENT : check(device, &m);
    if (r == SUCCESS) {
        const unsigned long long used = m.process_bytes + m.others_bytes;
        *out = {MEMORY_V2, m.total_bytes, 0, m.total_bytes - used, used};
    }
    return r;
}

EXPORTED result nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *list)
{
    card_memory m = {};
    const result r = check(device, &m);
    if (r != SUCCESS) {
        return r;
    }
    const unsigned room = *count;
    const std::vector<process> all = processes_of(m);
    *count = (unsigned)all.size();
    if (*count > room || list == nullptr) {
        return *count > 0 ? INSUFFICIENT_SIZE : SUCCESS;
    }
    std::copy(all.begin(), all.end(), list);
    return SUCCESS;
}

EXPORTED result nvmlDeviceGetUtilizationRates(void *device, utilization *out)
{
    card_memory m = {};
    const result r = check(device, &m);
    if (r == SUCCESS) {
        *out = {m.process_bytes > 0 ? 50u : 0u, m.process_bytes > 0 ? 10u : 0u};
    }
    return r;
}
