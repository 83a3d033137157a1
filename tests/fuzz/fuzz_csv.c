// SPDX-License-Identifier: Apache-2.0
// Our own traces as CSV.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace("csv", data, size);
    return 0;
}
