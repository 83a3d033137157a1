// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine it runs on: its affinity mask and its control group count, not what is built
// in. Read anew at each call, from any thread.
#ifndef HEADROOM_MACHINE_H
#define HEADROOM_MACHINE_H

#include <stdint.h>

// At least 1: the processors of the affinity mask, and no more than whole processors of the group's quota.
uint32_t hr_machine_cores(void);
// Memory that is built in, or the group's limit where that is less; UINT64_MAX when the system does not say.
uint64_t hr_machine_memory_bytes(void);
// What the system, and the group, could still give without pushing anything out; UINT64_MAX as above.
uint64_t hr_machine_available_bytes(void);

#endif
