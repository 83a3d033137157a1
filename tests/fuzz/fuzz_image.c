// SPDX-License-Identifier: Apache-2.0
// Any bytes as an image file. What must hold: a sentence or a picture within the memory promised; what a probe refuses a
// decoder refuses too; the same bytes give the same picture whatever lay in scratch; nothing is leaked; and the same with a
// request for host memory failing, chosen by the bytes. What is wanted is chosen by them, too.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "data/image.h"
#include "fuzz/fuzz.h"

enum { SIDE_MOST = 24, REQUESTS_MOST = 12, PNG_SIGNATURE = 8, CHUNK_FRAME = 12 };

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t k = 0; k < count; k++) {
        crc ^= bytes[k];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
        }
    }
    return ~crc;
}

// Makes the checksums of a PNG's chunks right: else hardly a change would be seen behind them.
static void mend(uint8_t *bytes, size_t size)
{
    for (size_t at = PNG_SIGNATURE; size > at && size - at >= CHUNK_FRAME;) {
        const uint8_t *b = bytes + at;
        const size_t data = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
        if (data > size - at - CHUNK_FRAME) {
            return;
        }
        const uint32_t crc = checksum(b + 4, 4 + data);
        for (int k = 0; k < 4; k++) {
            bytes[at + 8 + data + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
        }
        at += CHUNK_FRAME + data;
    }
}

static uint8_t *scratch_of(const image_want *most)
{
    static uint8_t *scratch;
    if (scratch == NULL) {
        scratch = malloc(image_scratch_bytes(most));
        must(scratch != NULL, "no memory for scratch");
        memset(scratch, 0xc3, image_scratch_bytes(most));
    }
    return scratch;
}

static hr_status decode(const image_file *file, const image_want *want, uint8_t *out, hr_err *err)
{
    const image_want most = {SIDE_MOST, SIDE_MOST, 3, IMAGE_BILINEAR};
    const int64_t live = hr_host_mem_live();
    fuzz_memory_begin();
    const int64_t begin_bytes = fuzz_memory_peak();
    const hr_status status = image_decode(file, want, scratch_of(&most), out, err);
    must(fuzz_memory_peak() - begin_bytes <= FUZZ_MEMORY_BASE_BYTES, "too much memory");
    must(hr_host_mem_live() == live, "leaked host memory");
    return status;
}

static void judge(const image_file *file, const image_want *want, uint64_t failing)
{
    const size_t bytes = (size_t)want->height * want->width * want->channels;
    uint8_t *first = malloc(bytes), *second = malloc(bytes);
    hr_err err = {0};
    image_facts facts;
    must(first != NULL && second != NULL, "no memory for pictures");
    const hr_status probed = image_probe(file, &facts, &err);
    must(probed == HR_OK || (probed == HR_DATA && err.sentence[0] != '\0'), "an unfit status of a probe");
    const hr_status status = decode(file, want, first, &err);
    must(status == HR_OK || (status == HR_DATA && err.sentence[0] != '\0'), "an unfit status");
    must(status != HR_OK || probed == HR_OK, "a picture of what is no image");
    (void)hr_host_mem_fail_at(failing);
    const hr_status again = decode(file, want, second, &err);
    (void)hr_host_mem_fail_at(0);
    must(again == status || again == HR_NOMEM, "another status without memory");
    must(status != HR_OK || again != HR_OK || memcmp(first, second, bytes) == 0, "another picture");
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t chosen = hash64(data, size, 16);
    const image_want want = {.height = 1 + (uint32_t)(chosen % SIDE_MOST),
                             .width = 1 + (uint32_t)(chosen >> 8) % SIDE_MOST,
                             .channels = (chosen >> 16 & 1) != 0 ? 3 : 1,
                             .filter = (image_filter)((chosen >> 20) % 3)};
    uint8_t *exact = malloc(size + (size == 0));
    must(exact != NULL, "no memory for the file");
    memcpy(exact, data, size);
    const image_file file = {.bytes = exact, .size_bytes = size, .name = "fuzz"};
    judge(&file, &want, 1 + (chosen >> 24) % REQUESTS_MOST);
    if (size > PNG_SIGNATURE && exact[0] == 0x89) {
        mend(exact, size);
        judge(&file, &want, 0);
    }
    free(exact);
    return 0;
}
