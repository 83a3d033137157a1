// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_bytes.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

const char *tensorflow_bytes(uint64_t bytes, char buffer[TENSORFLOW_BYTES_TEXT_MAX])
{
    static const char units[] = "KMGTPE";
    if (bytes < 1024) {
        (void)snprintf(buffer, TENSORFLOW_BYTES_TEXT_MAX, "%" PRIu64 "B", bytes);
        return buffer;
    }
    size_t unit = 0;
    while (bytes >= 1024 * 1024) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(buffer, TENSORFLOW_BYTES_TEXT_MAX, unit == 0 ? "%.1f%ciB" : "%.2f%ciB",
                   (double)bytes / 1024.0, units[unit]);
    return buffer;
}
