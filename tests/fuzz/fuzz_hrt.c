// SPDX-License-Identifier: Apache-2.0
// Our binary traces. A checksum keeps a fuzzer out of the records: the first byte says how the others are taken, as a
// file or as the payload of a frame around which a file is made.
#include <stdlib.h>
#include <string.h>

#include "formats/hrt.h"
#include "formats/hrt_code.h"
#include "fuzz/fuzz.h"

static uint8_t *put_frame(uint8_t *to, const uint8_t *payload, uint32_t bytes, uint32_t records)
{
    hrt_put_u32(to, bytes);
    hrt_put_u32(to + 4, records);
    hrt_put_u32(to + 8, hrt_crc(hrt_crc(0, to, 8), payload, bytes));
    if (bytes > 0) {
        memcpy(to + HRT_FRAME_HEAD_BYTES, payload, bytes);
    }
    return to + HRT_FRAME_HEAD_BYTES + bytes;
}

static void read_payload(const uint8_t *payload, uint32_t bytes, uint32_t records)
{
    uint8_t *file = calloc(1, HRT_HEAD_BYTES + 2 * HRT_FRAME_HEAD_BYTES + (size_t)bytes);
    if (file == NULL) {
        abort();
    }
    memcpy(file, hrt_magic, sizeof hrt_magic);
    hrt_put_u32(file + 8, HRT_VERSION);
    hrt_put_u32(file + 12, hrt_crc(0, file, 12));
    uint8_t *end = put_frame(file + HRT_HEAD_BYTES, payload, bytes, records);
    end = put_frame(end, payload, 0, bytes > 0);
    fuzz_read_trace("hrt", file, (size_t)(end - file));
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 2 && data[0] != hrt_magic[0] && size < HRT_FRAME_MAX) {
        read_payload(data + 2, (uint32_t)size - 2, data[1]);
    } else {
        fuzz_read_trace("hrt", data, size);
    }
    return 0;
}
