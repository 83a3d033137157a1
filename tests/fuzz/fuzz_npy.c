// SPDX-License-Identifier: Apache-2.0
// Any bytes as an array of NumPy: its header, and the values that it says are there.
#include <stdlib.h>
#include <string.h>

#include "data/npy.h"
#include "fuzz/fuzz_source.h"

static void read_values(const npy *a, const uint8_t *from, uint64_t count)
{
    float *floats = calloc(count + 1, sizeof *floats);
    int32_t *ids = calloc(count + 1, sizeof *ids);
    uint8_t *mask = calloc(count + 1, 1);
    int64_t value;
    npy_to_floats(a, from, count, floats);
    if (npy_is_whole(a)) {
        const uint64_t good = npy_find_beyond(a, from, count, 256, &value);
        fuzz_must(good <= count && (good == count || value < 0 || value >= 256),
                  "a value refused that is in range");
        npy_to_ids(a, from, good, ids);
        npy_to_mask(a, from, good, mask);
        for (uint64_t k = 0; k < good; k++) {
            fuzz_must(ids[k] >= 0 && ids[k] < 256 && ids[k] == mask[k], "an id that is not its mask");
        }
    }
    free(floats);
    free(ids);
    free(mask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t header_bytes = 0;
    uint64_t data_bytes = 0;
    hr_err err = {0};
    npy a;
    if (size < NPY_PREFIX_BYTES || npy_header_size("fuzz", data, &header_bytes, &err) != HR_OK ||
        header_bytes > size) {
        return 0;
    }
    uint8_t *header = malloc(header_bytes); // of exact size
    memcpy(header, data, header_bytes);
    const hr_status status = npy_parse("fuzz", header, header_bytes, &a, &err);
    free(header);
    if (status != HR_OK) {
        fuzz_must(err.sentence[0] != '\0', "refused without a sentence");
        return 0;
    }
    char text[16];
    fuzz_must(strlen(npy_text(&a, text, sizeof text)) < sizeof text, "a text that does not end");
    fuzz_must(npy_data_bytes(&a, &data_bytes), "an array that no file can hold");
    const uint64_t left = size - header_bytes, count = left / npy_value_bytes(&a);
    uint8_t *values = malloc(left + 1);
    memcpy(values, data + header_bytes, left);
    read_values(&a, values, count);
    free(values);
    return 0;
}
