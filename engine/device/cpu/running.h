// SPDX-License-Identifier: Apache-2.0
// The implementation that the cpu device runs right now: what a test or a handler says of a process that a signal ends.
#ifndef DEVICE_CPU_RUNNING_H
#define DEVICE_CPU_RUNNING_H

#include <stddef.h>

// The implementation whose instruction runs, of whichever thread was the last to begin one, and oneDNN's instruction set.
// NULL: none does. Takes no lock and no memory.
const char *cpu_running(char *isa, size_t size);

#endif
