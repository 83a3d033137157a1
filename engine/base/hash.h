// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) for what people compare, and a fast 64-bit mix for what only the program compares.
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[64];
} sha256;

void sha256_init(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t bytes);
void sha256_text(sha256 *s, char text[65]); // finishes; lower-case hex

// Order-dependent 64-bit hash of bytes; chain by passing the previous result as seed.
uint64_t hash64(const void *data, size_t bytes, uint64_t seed);
// The same with two independent results in one pass: a key whose equality stands for equality of the bytes.
void hash128(const void *data, size_t bytes, uint64_t key[2]);
// One splitmix64 step over a ^ b, for hashing integers.
uint64_t hash64_mix(uint64_t a, uint64_t b);

#endif
