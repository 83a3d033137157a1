// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"

enum { PATH_BYTES = 1024, LINE_BYTES = 512 };
#define SHARE_UNIT_BYTES (64 * HR_MIB)
#define NOTHING_SAID     UINT64_MAX
#define UNKNOWN_BYTES    (4 * HR_GIB) // taken for a machine that does not say

static char below[PATH_BYTES / 4]; // "": the machine itself

void machine_read_below(const char *folder)
{
    (void)text_copy(below, sizeof below, folder);
}

static FILE *open_below(const char *path)
{
    char whole[2 * PATH_BYTES];
    (void)snprintf(whole, sizeof whole, "%s%s", below, path);
    return fopen(whole, "re");
}

static bool first_line(const char *path, char line[LINE_BYTES])
{
    FILE *file = open_below(path);
    const bool read = file != NULL && fgets(line, LINE_BYTES, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return read;
}

// ---- control groups ---------------------------------------------------------------------------------------
//
// /proc/self/cgroup has lines "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1). Limits of the groups above
// hold as well. In a container the path may be one of the host's: then only the root can be read.

static bool names(const char *controllers, const char *wanted)
{
    const size_t length = strlen(wanted);
    for (const char *at = controllers; (at = strstr(at, wanted)) != NULL; at += length) {
        const bool begins = at == controllers || at[-1] == ',';
        if (begins && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

// The path of this process's group for `controller` (version 2: ""), without a last '/'.
static bool group_path(const char *controller, char path[LINE_BYTES])
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *file = open_below("/proc/self/cgroup");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *controllers = strchr(line, ':');
        char *place = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (place == NULL) {
            continue;
        }
        *place++ = '\0';
        place[strcspn(place, "\n")] = '\0';
        const char *have = controllers + 1;
        found = controller[0] == '\0' ? have[0] == '\0' : names(have, controller);
        if (found) {
            (void)text_copy(path, LINE_BYTES, strcmp(place, "/") == 0 ? "" : place);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

// The least that `read` says of the group and those above it.
static uint64_t least_of_groups(const char *controller, const char *mount,
                                uint64_t (*read)(const char *folder))
{
    char path[LINE_BYTES], folder[PATH_BYTES];
    uint64_t least = NOTHING_SAID;
    if (!group_path(controller, path)) {
        return least;
    }
    for (;;) {
        (void)snprintf(folder, sizeof folder, "%s%s", mount, path);
        const uint64_t here = read(folder);
        least = here < least ? here : least;
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = '\0';
    }
}

static bool number_of(const char *folder, const char *leaf, uint64_t *out)
{
    char path[PATH_BYTES + 64], line[LINE_BYTES], *end = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", folder, leaf);
    if (!first_line(path, line) || line[0] < '0' || line[0] > '9') {
        return false; // also "max", and -1
    }
    *out = strtoull(line, &end, 10);
    return end != line;
}

// Whole processors; NOTHING_SAID without a quota.
static uint64_t quota_of(uint64_t microseconds, uint64_t period)
{
    return period == 0 ? NOTHING_SAID : microseconds < period ? 1 : microseconds / period;
}

static uint64_t cores_v2(const char *folder)
{
    char path[PATH_BYTES + 64], line[LINE_BYTES];
    uint64_t microseconds = 0, period = 0;
    (void)snprintf(path, sizeof path, "%s/cpu.max", folder);
    const bool limited =
        first_line(path, line) && sscanf(line, "%" SCNu64 " %" SCNu64, &microseconds, &period) == 2;
    return limited ? quota_of(microseconds, period) : NOTHING_SAID;
}

static uint64_t cores_v1(const char *folder)
{
    uint64_t microseconds = 0, period = 0;
    const bool limited = number_of(folder, "cpu.cfs_quota_us", &microseconds) &&
                         number_of(folder, "cpu.cfs_period_us", &period);
    return limited ? quota_of(microseconds, period) : NOTHING_SAID;
}

static uint64_t memory_v2(const char *folder)
{
    uint64_t bytes = 0;
    return number_of(folder, "memory.max", &bytes) ? bytes : NOTHING_SAID;
}

static uint64_t memory_v1(const char *folder)
{
    uint64_t bytes = 0;
    return number_of(folder, "memory.limit_in_bytes", &bytes) ? bytes : NOTHING_SAID;
}

static uint64_t left_of(const char *folder, const char *limit, const char *usage)
{
    uint64_t most = 0, used = 0;
    if (!number_of(folder, limit, &most) || !number_of(folder, usage, &used)) {
        return NOTHING_SAID;
    }
    return used < most ? most - used : 0;
}

static uint64_t left_v2(const char *folder)
{
    return left_of(folder, "memory.max", "memory.current");
}

static uint64_t left_v1(const char *folder)
{
    return left_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// ---- the machine ------------------------------------------------------------------------------------------

static uint64_t memory_info(const char *key)
{
    char line[LINE_BYTES];
    uint64_t bytes = NOTHING_SAID;
    const size_t length = strlen(key);
    FILE *file = open_below("/proc/meminfo");
    while (file != NULL && bytes == NOTHING_SAID && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            bytes = strtoull(line + length + 1, NULL, 10) * HR_KIB;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

// The kernel refuses a mask that is smaller than its own, and its own has room for every processor that could be there
// (sched_setaffinity(2)). 0 when it does not say.
static int allowed_cores(void)
{
    enum { CORES_MOST = 1 << 20 };
    cpu_set_t usual;
    if (sched_getaffinity(0, sizeof usual, &usual) == 0) {
        return CPU_COUNT(&usual);
    }
    for (size_t room = CPU_SETSIZE * 2; room <= CORES_MOST; room *= 2) {
        const size_t bytes = CPU_ALLOC_SIZE(room);
        cpu_set_t *allowed = hr_calloc(1, bytes);
        const bool told = allowed != NULL && sched_getaffinity(0, bytes, allowed) == 0;
        const int count = told ? CPU_COUNT_S(bytes, allowed) : 0;
        const bool grows = allowed != NULL && !told && errno == EINVAL;
        hr_free(allowed);
        if (!grows) {
            return count;
        }
    }
    return 0;
}

uint32_t hr_machine_cores(void)
{
    const int allowed = allowed_cores();
    uint64_t cores = allowed > 0 ? (uint64_t)allowed : 1;
    cores = min_of(cores, least_of_groups("", "/sys/fs/cgroup", cores_v2));
    cores = min_of(cores, least_of_groups("cpu", "/sys/fs/cgroup/cpu", cores_v1));
    return (uint32_t)cores;
}

uint32_t machine_cores_lately(void)
{
    static _Atomic uint64_t last; // when, in seconds from 1, above the processors
    enum { COUNT_BITS = 32 };
    const uint64_t now = clock_now_ns() / UINT64_C(1000000000) + 1, before = atomic_load(&last);
    if (before >> COUNT_BITS == now) {
        return (uint32_t)before;
    }
    const uint32_t cores = hr_machine_cores();
    atomic_store(&last, now << COUNT_BITS | cores);
    return cores;
}

uint64_t hr_machine_memory_bytes(void)
{
    const uint64_t group = min_of(least_of_groups("", "/sys/fs/cgroup", memory_v2),
                                  least_of_groups("memory", "/sys/fs/cgroup/memory", memory_v1));
    return min_of(memory_info("MemTotal"), group);
}

uint64_t hr_machine_available_bytes(void)
{
    const uint64_t group = min_of(least_of_groups("", "/sys/fs/cgroup", left_v2),
                                  least_of_groups("memory", "/sys/fs/cgroup/memory", left_v1));
    return min_of(memory_info("MemAvailable"), group);
}

uint64_t machine_share_bytes(void)
{
    const uint64_t memory = hr_machine_memory_bytes();
    const uint64_t share = (memory == NOTHING_SAID ? UNKNOWN_BYTES : memory) / 100 * MACHINE_SHARE_PCT;
    return share / SHARE_UNIT_BYTES * SHARE_UNIT_BYTES;
}
