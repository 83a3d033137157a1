// SPDX-License-Identifier: Apache-2.0
#include "data/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/pixels.h"

hr_status record_read(const uint8_t *bytes, uint64_t size_bytes, uint32_t classes, const char *name,
                      uint64_t offset, data_raw *out, hr_err *err)
{
    if (bytes[0] >= classes) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a label from 0 to %u, had %u", name, offset,
                       classes - 1, bytes[0]);
    }
    *out = (data_raw){.bytes = bytes + 1, .size_bytes = size_bytes - 1, .label = bytes[0]};
    return HR_OK;
}

hr_status record_decode(const data_source *s, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                        hr_err *err)
{
    (void)scratch;
    (void)err;
    pixels_of_planes(image, raw->bytes, (uint64_t)s->info.height * s->info.width, s->info.channels);
    return HR_OK;
}

hr_status record_write_packed(const data_source *s, const data_raw *raw, uint8_t *scratch,
                              const data_room *to, hr_err *err)
{
    (void)scratch;
    (void)err;
    data_room_unpack(&s->form, raw->bytes, to);
    return HR_OK;
}

uint32_t data_source_values(const data_source *s)
{
    return s->info.height * s->info.width * s->info.channels;
}

void data_source_label(char label[64], const char *kind, const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    (void)snprintf(label, 64, "%s (%.*s)", kind, (int)(length - start < 48 ? length - start : 48),
                   path + start);
    for (char *c = label; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
}
