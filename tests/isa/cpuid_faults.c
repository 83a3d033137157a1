// SPDX-License-Identifier: Apache-2.0
// For scripts: exit code 0 where CPUID faults.
#include "cpuid_faults.h"

int main(void)
{
    return cpuid_faults() ? 0 : 1;
}
