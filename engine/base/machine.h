// SPDX-License-Identifier: Apache-2.0
// What a computation takes of the machine (headroom/machine.h). Any thread.
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stdint.h>

#include "headroom/machine.h"

// What computes here may take so much of the memory.
enum { MACHINE_SHARE_PCT = 80 };

// MACHINE_SHARE_PCT of hr_machine_memory_bytes in whole 64 MiB: the same at each call, so that a plan is the run.
uint64_t machine_share_bytes(void);

// hr_machine_cores as it was a second ago at most: for estimates that are made thousands of times.
uint32_t machine_cores_lately(void);

// For tests: "/proc/…" and "/sys/…" are read below this folder; "" again for the machine.
void machine_read_below(const char *folder);

#endif
