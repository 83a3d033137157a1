// SPDX-License-Identifier: Apache-2.0
// TensorFlow's MemoryDumps.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace("memory_dump", data, size);
    return 0;
}
