// SPDX-License-Identifier: Apache-2.0
// Any bytes as the header of a GGUF file, where they begin as one, else of safetensors, which without a config.json beside them
// are read and refused.
#include <string.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool gguf = size >= 4 && memcmp(data, "GGUF", 4) == 0;
    fuzz_import(gguf ? ".gguf" : ".safetensors", true, data, size);
    return 0;
}
