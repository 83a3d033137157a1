// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)fuzz_import("a.onnx", false, data, size);
    return 0;
}
