// SPDX-License-Identifier: Apache-2.0
// TensorFlow's out-of-memory logs.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_read_trace("tensorflow_log", data, size);
    return 0;
}
