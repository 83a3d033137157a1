// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Keras file: a .keras archive where they begin as a zip, else JSON.
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool archive = size >= 2 && data[0] == 'P' && data[1] == 'K';
    (void)fuzz_import(archive ? "a.keras" : "a.json", false, data, size);
    return 0;
}
