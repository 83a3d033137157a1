// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace of whatever format.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace(NULL, data, size);
    return 0;
}
