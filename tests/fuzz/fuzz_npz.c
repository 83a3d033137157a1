// SPDX-License-Identifier: Apache-2.0
// Any bytes as an .npz: the zip's directory, members in place and packed, arrays of images and of other values.
#include "fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const data_form images = {.count = 2,
                              .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {2, 2, 3}},
                                       {.type = DATA_IDS, .is_label = true, .classes = 10}}};
    const data_form others = {.count = 2,
                              .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {12}},
                                       {.type = DATA_MASK, .is_label = true, .classes = 10}}};
    fuzz_source(source_npy_open, size % 2 == 0 ? &images : &others, data, size);
    return 0;
}
