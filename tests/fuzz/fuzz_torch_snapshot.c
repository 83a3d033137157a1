// SPDX-License-Identifier: Apache-2.0
// Any bytes as a PyTorch memory snapshot.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace("pytorch_snapshot", data, size);
    return 0;
}
