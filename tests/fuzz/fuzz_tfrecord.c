// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TFRecord file: its records and the Examples in them, as images, as other values, and as ids. Sums are made right
// first where the lengths allow it, else hardly a change would be seen behind them.
#include <string.h>

#include "data/crc32c.h"
#include "data/tfrecord.h"
#include "fuzz/fuzz_source.h"

static void put_sum(uint8_t *to, const uint8_t *bytes, size_t count)
{
    const uint32_t sum = crc32c_masked(bytes, count);
    for (int k = 0; k < 4; k++) {
        to[k] = (uint8_t)(sum >> 8 * k);
    }
}

static void mend(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; size - at >= TFRECORD_FRAME_BYTES;) {
        uint64_t length = 0;
        for (int k = 0; k < 8; k++) {
            length |= (uint64_t)bytes[at + (size_t)k] << 8 * k;
        }
        put_sum(bytes + at + 8, bytes + at, 8);
        if (length > size - at - TFRECORD_FRAME_BYTES) {
            return;
        }
        put_sum(bytes + at + 12 + length, bytes + at + 12, length);
        at += TFRECORD_FRAME_BYTES + length;
    }
}

static hr_status open_bilinear(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    hr_knobs knobs;
    hr_knobs_init(&knobs);
    return source_tfrecord_open(&knobs, path, model, out, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const data_form forms[] = {
        {.count = 2,
         .slot = {{.type = DATA_FLOAT, .rank = 3, .dim = {2, 2, 3}},
                  {.type = DATA_IDS, .is_label = true, .classes = 10}}},
        {.count = 2,
         .slot = {{.type = DATA_FLOAT, .rank = 1, .dim = {12}},
                  {.type = DATA_MASK, .is_label = true, .rank = 1, .dim = {2}, .classes = 10}}},
        {.count = 2,
         .slot = {{.type = DATA_IDS, .rank = 1, .dim = {2}, .classes = 300},
                  {.type = DATA_FLOAT, .is_label = true}}},
    };
    uint8_t *bytes = malloc(size + 1);
    fuzz_must(bytes != NULL, "no memory for a copy");
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    if (size % 8 != 0) {
        mend(bytes, size);
    }
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        fuzz_plain_source(open_bilinear, &forms[k], bytes, size);
    }
    free(bytes);
    return 0;
}
