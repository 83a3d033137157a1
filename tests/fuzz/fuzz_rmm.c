// SPDX-License-Identifier: Apache-2.0
// RMM's logs.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace("rmm", data, size);
    return 0;
}
