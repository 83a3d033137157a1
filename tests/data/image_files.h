// SPDX-License-Identifier: Apache-2.0
// Images made where a test runs. PNGs are written here by hand, with deflate's stored blocks; JPEGs by TurboJPEG.
#ifndef TESTS_IMAGE_FILES_H
#define TESTS_IMAGE_FILES_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

typedef struct made {
    uint8_t *bytes;
    size_t count, room;
} made;

static inline void made_free(made *m)
{
    free(m->bytes);
    *m = (made){0};
}

static inline void made_add(made *m, const void *bytes, size_t count)
{
    if (m->count + count > m->room) {
        m->room = 2 * (m->count + count);
        m->bytes = realloc(m->bytes, m->room);
        ck_assert_ptr_nonnull(m->bytes);
    }
    if (count > 0) {
        memcpy(m->bytes + m->count, bytes, count);
        m->count += count;
    }
}

static inline void made_byte(made *m, unsigned byte)
{
    const uint8_t b = (uint8_t)byte;
    made_add(m, &b, 1);
}

static inline void made_word(made *m, uint32_t word) // big-endian
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        made_byte(m, word >> shift & 255);
    }
}

// ---- PNG ------------------------------------------------------------------------------------------------------

static inline uint32_t png_crc(const uint8_t *bytes, size_t count)
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

static inline void png_chunk(made *m, const char *type, const uint8_t *bytes, size_t count)
{
    made_word(m, (uint32_t)count);
    const size_t begin = m->count;
    made_add(m, type, 4);
    made_add(m, bytes, count);
    made_word(m, png_crc(m->bytes + begin, m->count - begin));
}

static inline made png_stored(const uint8_t *raw, size_t count)
{
    made z = {0};
    uint32_t a = 1, b = 0;
    made_byte(&z, 0x78);
    made_byte(&z, 0x01);
    for (size_t at = 0; at < count || at == 0;) {
        const unsigned now = count - at < 65535 ? (unsigned)(count - at) : 65535;
        made_byte(&z, at + now == count);
        made_byte(&z, now & 255);
        made_byte(&z, now >> 8);
        made_byte(&z, ~now & 255);
        made_byte(&z, ~now >> 8 & 255);
        made_add(&z, raw + at, now);
        at += now > 0 ? now : 1;
    }
    for (size_t k = 0; k < count; k++) {
        a = (a + raw[k]) % 65521;
        b = (b + a) % 65521;
    }
    made_word(&z, b << 16 | a);
    return z;
}

typedef struct png_form {
    uint32_t width, height;
    unsigned bits, colour; // of a sample; PNG's colour type
    bool interlaced;
} png_form;

static inline unsigned png_samples(unsigned colour)
{
    return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
}

// sample[(y * width + x) * samples + s], below 2^bits; filter 0 in every row.
static inline void png_pass(made *raw, const png_form *f, const uint16_t *sample, const unsigned pass[4])
{
    const unsigned n = png_samples(f->colour);
    for (uint32_t y = pass[1]; y < f->height && pass[0] < f->width; y += pass[3]) {
        unsigned held = 0, bits = 0;
        made_byte(raw, 0);
        for (uint32_t x = pass[0]; x < f->width; x += pass[2]) {
            for (unsigned s = 0; s < n; s++) {
                const unsigned value = sample[((size_t)y * f->width + x) * n + s];
                if (f->bits == 16) {
                    made_byte(raw, value >> 8);
                }
                held = held << f->bits | value;
                bits += f->bits;
                if (bits >= 8) {
                    made_byte(raw, held & 255);
                    bits = 0;
                }
            }
        }
        if (bits > 0) {
            made_byte(raw, held << (8 - bits) & 255);
        }
    }
}

static inline void png_begin(made *m, const png_form *f)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    made head = {0};
    made_add(m, signature, sizeof signature);
    made_word(&head, f->width);
    made_word(&head, f->height);
    made_byte(&head, f->bits);
    made_byte(&head, f->colour);
    made_byte(&head, 0);
    made_byte(&head, 0);
    made_byte(&head, f->interlaced);
    png_chunk(m, "IHDR", head.bytes, head.count);
    made_free(&head);
}

// Pixels in chunks of at most `piece` bytes.
static inline void png_pixels(made *m, const made *raw, size_t piece)
{
    made z = png_stored(raw->bytes, raw->count);
    for (size_t at = 0; at < z.count; at += piece) {
        png_chunk(m, "IDAT", z.bytes + at, z.count - at < piece ? z.count - at : piece);
    }
    made_free(&z);
}

// palette: 3 bytes for each of 2^bits, or NULL.
static inline made png_make(const png_form *f, const uint16_t *sample, const uint8_t *palette)
{
    static const unsigned passes[8][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}, {0, 0, 1, 1}};
    made m = {0}, raw = {0};
    png_begin(&m, f);
    if (palette != NULL) {
        png_chunk(&m, "PLTE", palette, (size_t)3 << f->bits);
    }
    for (int p = f->interlaced ? 0 : 7; p < (f->interlaced ? 7 : 8); p++) {
        png_pass(&raw, f, sample, passes[p]);
    }
    png_pixels(&m, &raw, 1000);
    png_chunk(&m, "IEND", NULL, 0);
    made_free(&raw);
    return m;
}

// ---- JPEG -----------------------------------------------------------------------------------------------------

// pixels: of `format` (TJPF_RGB, TJPF_GRAY, TJPF_CMYK); sampling TJSAMP_…; flags TJFLAG_….
static inline made jpeg_make(uint32_t width, uint32_t height, int format, const uint8_t *pixels, int sampling,
                             int flags)
{
    made m = {0};
    uint8_t *bytes = NULL;
    unsigned long count = 0;
    tjhandle t = tjInitCompress();
    ck_assert_msg(
        tjCompress2(t, pixels, (int)width, 0, (int)height, format, &bytes, &count, sampling, 92, flags) == 0,
        "%s", tjGetErrorStr2(t));
    made_add(&m, bytes, count);
    tjFree(bytes);
    tjDestroy(t);
    return m;
}

#endif
