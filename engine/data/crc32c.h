// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, appendix B.4), and as TFRecord files store it: rotated and shifted, so that the sum of bytes
// that hold a sum is no special one (tensorflow/core/lib/hash/crc32c.h). Thread-safe.
#ifndef DATA_CRC32C_H
#define DATA_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(const uint8_t *bytes, size_t count);
uint32_t crc32c_plain(const uint8_t *bytes, size_t count); // the same without the processor's instruction
uint32_t crc32c_masked(const uint8_t *bytes, size_t count);

#endif
