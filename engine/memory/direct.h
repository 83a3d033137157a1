// SPDX-License-Identifier: Apache-2.0
// No pool at all: every tensor is a range of its own, taken from the backing when it is asked for and given back when
// it is freed, as a program that calls cudaMalloc and cudaFree. What others are compared with: no fragmentation of
// our own making, but whole granules of the device (2 MiB of a card for a bias of 256 B), and the driver's time.
//
// pool = in_use at all times, nothing is ever free, and the limit is the only refusal besides the backing's own.
#ifndef MEMORY_DIRECT_H
#define MEMORY_DIRECT_H

#include "memory/allocator.h"

// Of `config` only the limit matters.
HR_MUST_CHECK hr_status direct_create(const allocator_config *config, backing *source, trace_bus *bus,
                                      allocator **out, hr_err *err);

#endif
