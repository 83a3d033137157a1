// SPDX-License-Identifier: Apache-2.0
#include "data/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

// to[p × channels + c] = planes[c × pixels + p]; `channels` is a constant where this is inlined.
static inline void interleave(const uint8_t *restrict planes, uint32_t pixels, uint32_t channels,
                              uint8_t *restrict to)
{
    for (uint32_t p = 0; p < pixels; p++) {
        for (uint32_t c = 0; c < channels; c++) {
            to[(size_t)p * channels + c] = planes[(size_t)c * pixels + p];
        }
    }
}

void record_interleave(const pipeline_info *info, const uint8_t *planes, uint8_t *image)
{
    const uint32_t pixels = info->height * info->width;
    if (info->channels == 3) {
        interleave(planes, pixels, 3, image);
    } else {
        interleave(planes, pixels, info->channels, image);
    }
}

hr_status record_decode(const data_source *s, const data_raw *raw, uint8_t *scratch, uint8_t *image,
                        hr_err *err)
{
    (void)scratch;
    (void)err;
    record_interleave(&s->info, raw->bytes, image);
    return HR_OK;
}

void record_write_values(const uint8_t *image, uint64_t count, float *to)
{
    for (uint64_t k = 0; k < count; k++) {
        to[k] = (float)image[k] / 255.0f;
    }
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
