// SPDX-License-Identifier: Apache-2.0
// How far the cpu device may go with this processor's instructions: one decision, made before oneDNN is first asked.
//
// oneDNN believes the feature bits. AMX takes more than them: a palette of tiles (CPUID leaf 0x1D), state that the system
// saves (XCR0) and its permission (arch_prctl). Where one of these is missing, as in some virtual machines, the first
// kernel with tiles dies of SIGILL; there oneDNN is kept to the best that needs no tiles. An instruction set that the user
// named (ONEDNN_MAX_CPU_ISA, DNNL_MAX_CPU_ISA) is left alone.
#ifndef DEVICE_CPU_ISA_H
#define DEVICE_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

enum { ISA_REMARK_MAX = 192 };

// Where facts come from; a test has its own.
typedef struct isa_reader {
    void (*cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t eax_ebx_ecx_edx[4]); // zeros: no such leaf
    uint64_t (*saved_state)(void);             // XCR0; 0 where the system saves nothing
    bool (*may_use_tiles)(void);               // the system's permission, asked for
    const char *(*variable)(const char *name); // of the environment; NULL: not set
    int onednn_minor;                          // of version 2: which words it knows
} isa_reader;

typedef enum isa_cause {
    ISA_NOTHING_AMISS,
    ISA_USERS,           // a variable of the environment says how far
    ISA_NO_PALETTE,      // leaf 0x1D names no palette
    ISA_TILES_NOT_SAVED, // XCR0 without the tiles' state
    ISA_TILES_FORBIDDEN, // the system does not give permission
    ISA_CAUSES
} isa_cause;

typedef struct isa_decision {
    isa_cause cause;
    bool without_tiles;          // oneDNN must be told to do without AMX
    char remark[ISA_REMARK_MAX]; // what was done and why, for doctor; "" where there is nothing to say
} isa_decision;

isa_decision isa_decide(const isa_reader *reader);

// Of this processor and system, and of the library's version 2.`onednn_minor`.
isa_reader isa_reader_here(int onednn_minor);

#endif
