// SPDX-License-Identifier: Apache-2.0
#include "knobs/logical.h"

#include <string.h>

#include "headroom/units.h"

#include "base/text.h"

enum { LEAST_BYTES = 256 };

static bool add_device(logical_devices *d, const char *words, size_t length)
{
    char size[HR_BYTES_TEXT_MAX];
    uint64_t bytes = 0;
    if (length >= sizeof size) {
        return false;
    }
    memcpy(size, words, length);
    size[length] = '\0';
    if (!hr_bytes_parse(size, &bytes) || bytes < LEAST_BYTES || !hr_add_bytes(d->bytes, bytes, &d->bytes)) {
        return false;
    }
    d->first_bytes = d->count == 0 ? bytes : d->first_bytes;
    d->count++;
    return true;
}

bool logical_devices_of(const hr_knobs *knobs, logical_devices *out)
{
    const char *words = hr_knob_text(knobs, HR_KNOB_DEVICE_LOGICAL);
    *out = (logical_devices){0};
    if (words[0] == '\0' || strcmp(words, "none") == 0) {
        return true;
    }
    for (size_t length = strcspn(words, ",");; length = strcspn(words, ",")) {
        if (!add_device(out, words, length)) {
            return false;
        }
        if (words[length] == '\0') {
            return true;
        }
        words += length + 1;
    }
}
