// SPDX-License-Identifier: Apache-2.0
#ifndef FORMATS_TENSORFLOW_BYTES_H
#define FORMATS_TENSORFLOW_BYTES_H

#include <stdint.h>

enum { TENSORFLOW_BYTES_TEXT_MAX = 24 };

// Bytes as TensorFlow prints them: "512B", "112.5KiB", "539.22MiB"; whole units are cut off before the last division.
// Returns buffer.
const char *tensorflow_bytes(uint64_t bytes, char buffer[TENSORFLOW_BYTES_TEXT_MAX]);

#endif
