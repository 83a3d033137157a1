// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Hugging Face config.json.
#include <string.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (memmem(data, size, "class_name", strlen("class_name")) == NULL) { // else of Keras: fuzz_keras.c
        (void)fuzz_import("a.json", true, data, size);
    }
    return 0;
}
