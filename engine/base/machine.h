// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine it runs on: its affinity mask and its control group count, not what is built
// in. Read anew at each call, from any thread.
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

// What computes here may take so much of the memory.
enum { MACHINE_SHARE_PCT = 80 };

// At least 1: the processors of the affinity mask, and no more than whole processors of the group's quota.
uint32_t machine_cores(void);
// Memory that is built in, or the group's limit where that is less; UINT64_MAX when the system does not say.
uint64_t machine_memory_bytes(void);
// What the system, and the group, could still give without pushing anything out; UINT64_MAX as above.
uint64_t machine_available_bytes(void);
// MACHINE_SHARE_PCT of machine_memory_bytes in whole 64 MiB: the same at each call, so that a plan is the run.
uint64_t machine_share_bytes(void);

// For tests: "/proc/…" and "/sys/…" are read below this folder; "" again for the machine.
void machine_read_below(const char *folder);

#endif
