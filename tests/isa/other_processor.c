// SPDX-License-Identifier: Apache-2.0
// This processor as if it were another one: a library to preload (LD_PRELOAD), for a whole program and its children. The
// kernel lets CPUID fault (arch_prctl(2), ARCH_SET_CPUID), and the answer is given with features left out, or announced.
// It stands before the program is relocated, so that kernels which are chosen while it is loaded are those of the other
// processor, too. Nothing keeps a program from instructions that it was not told of; it only does not know of them.
//
// OTHER: 1 AVX2 (Haswell) · 2 AVX-512 core (Skylake) · 3 AVX-512 core bf16 (Cooper Lake) · 4 AMX announced, no palette
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_SET_CPUID = 0x1012, LEAF_FEATURES = 7, LEAF_TILES = 0x1D, SA_RESTORER_FLAG = 0x04000000 };

#define BIT(n) (UINT32_C(1) << (n))
// Leaf 7.0
#define AVX512_EBX (BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31))
#define AVX512_ECX (BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))
#define AVX512_EDX (BIT(2) | BIT(3) | BIT(8) | BIT(23))
#define AMX_EDX    (BIT(22) | BIT(24) | BIT(25))
// Leaf 7.1
#define VNNI_256_EAX BIT(4)
#define BF16_EAX     BIT(5)
#define AMX_EAX      BIT(21)

typedef struct answer {
    uint32_t a, b, c, d;
} answer;

static void change(uint32_t leaf, uint32_t subleaf, answer *is)
{
    if (leaf == LEAF_TILES) {
        *is = (answer){0, 0, 0, 0};
    }
    if (leaf != LEAF_FEATURES) {
        return;
    }
#if OTHER == 4
    is->d |= subleaf == 0 ? AMX_EDX : 0;
#else
    is->d &= subleaf == 0 ? ~(AMX_EDX | BIT(23)) : UINT32_MAX;
    is->a &= subleaf == 1 ? ~(AMX_EAX | VNNI_256_EAX) : UINT32_MAX;
#endif
#if OTHER < 3
    is->c &= subleaf == 0 ? ~AVX512_ECX : UINT32_MAX;
    is->d &= subleaf == 0 ? ~AVX512_EDX : UINT32_MAX;
    is->a &= subleaf == 1 ? ~BF16_EAX : UINT32_MAX;
#endif
#if OTHER < 2
    is->b &= subleaf == 0 ? ~AVX512_EBX : UINT32_MAX;
#endif
}

// Without the C library: it may be on its way into memory.
static long call(long number, long one, long two, long three, long four)
{
    long result = 0;
    register long fourth __asm__("r10") = four;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(one), "S"(two), "d"(three), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

// What the program has asked for at SIGSEGV.
static struct sigaction programs;

typedef int set_action(int number, const struct sigaction *action, struct sigaction *before);

static set_action *next_sigaction(void)
{
    return (set_action *)(uintptr_t)dlsym(RTLD_NEXT, "sigaction");
}

static void hand_on(int number, siginfo_t *info, void *machine)
{
    if ((programs.sa_flags & SA_SIGINFO) != 0) {
        programs.sa_sigaction(number, info, machine);
        return;
    }
    (void)next_sigaction()(number, &programs, NULL); // it comes again by itself
}

static void on_fault(int number, siginfo_t *info, void *machine)
{
    ucontext_t *u = machine;
    greg_t *reg = u->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)(uintptr_t)reg[REG_RIP];
    if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
        hand_on(number, info, machine);
        return;
    }
    const uint32_t leaf = (uint32_t)reg[REG_RAX], subleaf = (uint32_t)reg[REG_RCX];
    answer is;
    (void)call(SYS_arch_prctl, ARCH_SET_CPUID, 1, 0, 0);
    __cpuid_count(leaf, subleaf, is.a, is.b, is.c, is.d);
    (void)call(SYS_arch_prctl, ARCH_SET_CPUID, 0, 0, 0);
    change(leaf, subleaf, &is);
    reg[REG_RAX] = is.a;
    reg[REG_RBX] = is.b;
    reg[REG_RCX] = is.c;
    reg[REG_RDX] = is.d;
    reg[REG_RIP] += 2;
}

// The program's own handler of SIGSEGV stands behind ours.
int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before)
{
    if (number != SIGSEGV) {
        return next_sigaction()(number, action, before);
    }
    if (before != NULL) {
        *before = programs;
    }
    if (action != NULL) {
        programs = *action;
    }
    return 0;
}

__asm__("come_back: mov $15, %eax\n syscall\n"); // rt_sigreturn
extern void come_back(void) __attribute__((visibility("hidden")));

static int nothing(void)
{
    return 0;
}

// Called by the loader while it relocates this library, before the program.
static int (*begin(void))(void)
{
    const struct {
        void (*handler)(int, siginfo_t *, void *);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } action = {on_fault, SA_SIGINFO | SA_NODEFER | SA_RESTORER_FLAG, come_back, 0};
    (void)call(SYS_rt_sigaction, SIGSEGV, (long)(uintptr_t)&action, 0, sizeof action.mask);
    (void)call(SYS_arch_prctl, ARCH_SET_CPUID, 0, 0, 0);
    return nothing;
}

int other_processor(void) __attribute__((ifunc("begin")));
int (*const other_processor_here)(void) = other_processor; // relocated with the library, whoever asks
