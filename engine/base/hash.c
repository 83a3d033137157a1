// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <string.h>

// ---- SHA-256 --------------------------------------------------------------------------------------------------

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, unsigned count)
{
    return x >> count | x << (32 - count);
}

static void expand_schedule(const uint8_t block[64], uint32_t w[64])
{
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *b = block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64];
    expand_schedule(block, w);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t add[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; i++) {
        state[i] += add[i];
    }
}

void sha256_init(sha256 *s)
{
    *s = (sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                            0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(sha256 *s, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    size_t held = s->length_bytes % sizeof s->block;
    s->length_bytes += bytes;
    if (held > 0) {
        size_t part = sizeof s->block - held < bytes ? sizeof s->block - held : bytes;
        memcpy(s->block + held, from, part);
        if (held + part < sizeof s->block) {
            return;
        }
        compress(s->state, s->block);
        from += part;
        bytes -= part;
    }
    for (; bytes >= sizeof s->block; bytes -= sizeof s->block, from += sizeof s->block) {
        compress(s->state, from);
    }
    if (bytes > 0) {
        memcpy(s->block, from, bytes);
    }
}

void sha256_text(sha256 *s, char text[65])
{
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[64] = {0x80};
    uint64_t length_bits = s->length_bytes * 8;
    size_t held = s->length_bytes % sizeof s->block;
    sha256_add(s, padding, (held < 56 ? 56 : 120) - held);
    uint8_t tail[8];
    for (unsigned i = 0; i < 8; i++) {
        tail[i] = (uint8_t)(length_bits >> (56 - 8 * i));
    }
    sha256_add(s, tail, sizeof tail);
    for (unsigned i = 0; i < 64; i++) {
        text[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    }
    text[64] = '\0';
}

// ---- 64-bit hash ----------------------------------------------------------------------------------------------

// Odd constants of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
static const uint64_t GOLDEN = UINT64_C(0x9E3779B97F4A7C15);
static const uint64_t MIX_1 = UINT64_C(0xBF58476D1CE4E5B9);
static const uint64_t MIX_2 = UINT64_C(0x94D049BB133111EB);

uint64_t hash64_mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a ^ b) + GOLDEN;
    z = (z ^ z >> 30) * MIX_1;
    z = (z ^ z >> 27) * MIX_2;
    return z ^ z >> 31;
}

// Every round is a bijection of the running hash for a given word, so that no earlier difference is forgotten.
static uint64_t hash64_round(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word * MIX_1) * MIX_2;
    return hash ^ hash >> 32;
}

uint64_t hash64(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *from = data;
    uint64_t hash = hash64_mix(seed, bytes);
    uint64_t word;
    size_t left = bytes;
    for (; left >= sizeof word; left -= sizeof word, from += sizeof word) {
        memcpy(&word, from, sizeof word);
        hash = hash64_round(hash, word);
    }
    if (left > 0) {
        word = 0;
        memcpy(&word, from, left);
        hash = hash64_round(hash, word);
    }
    return hash64_mix(hash, 0);
}

// Four chains that do not wait for one another: for each key, one over the even words and one over the odd ones.
void hash128(const void *data, size_t bytes, uint64_t key[2])
{
    const unsigned char *from = data;
    uint64_t a = hash64_mix(key[0], bytes), b = hash64_mix(key[1], ~(uint64_t)bytes);
    uint64_t a_odd = b ^ MIX_1, b_odd = a ^ MIX_2;
    uint64_t word[2];
    size_t left = bytes;
    for (; left >= sizeof word; left -= sizeof word, from += sizeof word) {
        memcpy(word, from, sizeof word);
        a = hash64_round(a, word[0]);
        b = hash64_round(b, word[0] ^ GOLDEN);
        a_odd = hash64_round(a_odd, word[1]);
        b_odd = hash64_round(b_odd, word[1] ^ GOLDEN);
    }
    if (left > 0) {
        word[0] = word[1] = 0;
        memcpy(word, from, left);
        a = hash64_round(hash64_round(a, word[0]), word[1]);
        b = hash64_round(hash64_round(b, word[0] ^ GOLDEN), word[1] ^ GOLDEN);
    }
    key[0] = hash64_mix(a, a_odd);
    key[1] = hash64_mix(b ^ GOLDEN, b_odd);
}
