// SPDX-License-Identifier: Apache-2.0
#include "data/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

hr_status record_read(const uint8_t *bytes, uint32_t classes, const char *name, uint64_t offset,
                      data_record *out, hr_err *err)
{
    if (bytes[0] >= classes) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a label from 0 to %u, had %u", name, offset,
                       classes - 1, bytes[0]);
    }
    *out = (data_record){.planes = bytes + 1, .label = bytes[0]};
    return HR_OK;
}

// to[p × channels + c] = planes[c × pixels + p] / 255; `channels` is a constant where this is inlined.
static inline void interleave(const uint8_t *restrict planes, uint32_t pixels, uint32_t channels,
                              float *restrict to)
{
    for (uint32_t p = 0; p < pixels; p++) {
        for (uint32_t c = 0; c < channels; c++) {
            to[(size_t)p * channels + c] = (float)planes[(size_t)c * pixels + p] / 255.0f;
        }
    }
}

void record_write_image(const pipeline_info *info, const uint8_t *planes, float *to)
{
    uint32_t pixels = info->height * info->width;
    switch (info->channels) {
    case 1:
        interleave(planes, pixels, 1, to);
        break;
    case 3:
        interleave(planes, pixels, 3, to);
        break;
    default:
        interleave(planes, pixels, info->channels, to);
    }
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
