// SPDX-License-Identifier: Apache-2.0
// Does the kernel let CPUID fault here, so that other_processor.c can answer for it?
#ifndef TESTS_ISA_CPUID_FAULTS_H
#define TESTS_ISA_CPUID_FAULTS_H

#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Asked in a child: what it turns off stays off.
static inline bool cpuid_faults(void)
{
    enum { ARCH_SET_CPUID = 0x1012 };
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
