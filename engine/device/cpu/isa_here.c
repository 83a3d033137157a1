// SPDX-License-Identifier: Apache-2.0
// The processor and the system that this process runs on.
#include <stdlib.h>
#include <string.h>

#include "isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18, LEAF_BASIC = 1 }; // asm/prctl.h; Linux 5.16

static void read_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t of[4])
{
    memset(of, 0, 4 * sizeof *of);
    (void)__get_cpuid_count(leaf, subleaf, &of[0], &of[1], &of[2], &of[3]);
}

__attribute__((target("xsave"))) static uint64_t read_saved_state(void)
{
    const uint32_t os_saves = UINT32_C(1) << 27; // OSXSAVE: XGETBV may be used
    uint32_t of[4];
    read_cpuid(LEAF_BASIC, 0, of);
    return (of[2] & os_saves) == 0 ? 0 : (uint64_t)_xgetbv(0);
}

static bool ask_for_tiles(void)
{
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
static void read_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t of[4])
{
    (void)leaf, (void)subleaf;
    memset(of, 0, 4 * sizeof *of);
}

static uint64_t read_saved_state(void)
{
    return 0;
}

static bool ask_for_tiles(void)
{
    return false;
}
#endif

static const char *read_variable(const char *name)
{
    return getenv(name);
}

isa_reader isa_reader_here(int onednn_minor)
{
    return (isa_reader){read_cpuid, read_saved_state, ask_for_tiles, read_variable, onednn_minor};
}
