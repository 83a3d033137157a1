// SPDX-License-Identifier: Apache-2.0
// What the instructions of a program took, as a table: what rates and estimates are fitted to and judged by.
#ifndef INSIGHT_TIMES_H
#define INSIGHT_TIMES_H

#include <stdio.h>

#include "device/device.h"
#include "device/instr_times.h"

#define TIMES_HEADINGS                                                                                       \
    "instr,phase,name,family,dtype,implementation,behind,results,operands,flops,bytes_moved,workspace_"      \
    "bytes,"                                                                                                 \
    "steps,took_ns,least_ns,estimated_ns\n"

// Comma-separated, a line for each instruction that costs something (device/cost.h). `instr` is its number in the listing;
// results and operands are types and shapes ("bfloat16 32x1024x768"), with "; " between two of them; took_ns is the median
// of `steps` steps; estimated_ns what the device foretells, empty where it cannot. All of one run of the instruction.
void times_print(const program *p, const instr_times *times, const device_ops *device, void *context,
                 FILE *out);

#endif
