// SPDX-License-Identifier: Apache-2.0
// Images: every form of PNG and JPEG gives the pixels it holds; resizing is the textbook's within a level; a stranger's
// file is refused with a sentence or decoded, and takes no more memory than promised.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/host_mem.h"
#include "data/image.h"
#include "data/image_files.h"
#include "data/image_rows.h"

enum { CANARY = 0xa5, CANARY_BYTES = 64 };

static const uint8_t filters[] = {IMAGE_BILINEAR, IMAGE_NEAREST, IMAGE_AREA};

// ---- decoding with guards on both sides of what may be written ------------------------------------------------------

static uint8_t *guarded(uint64_t bytes, uint8_t fill)
{
    uint8_t *memory = hr_calloc(1, bytes + 2 * CANARY_BYTES);
    ck_assert_ptr_nonnull(memory);
    memset(memory, CANARY, bytes + 2 * CANARY_BYTES);
    memset(memory + CANARY_BYTES, fill, bytes);
    return memory + CANARY_BYTES;
}

static void assert_guards(const uint8_t *memory, uint64_t bytes)
{
    uint8_t canaries[CANARY_BYTES];
    memset(canaries, CANARY, sizeof canaries);
    ck_assert_mem_eq(memory - CANARY_BYTES, canaries, CANARY_BYTES);
    ck_assert_mem_eq(memory + bytes, canaries, CANARY_BYTES);
}

static void guarded_free(uint8_t *memory, uint64_t bytes)
{
    assert_guards(memory, bytes);
    hr_free(memory - CANARY_BYTES);
}

static uint64_t out_bytes(const image_want *want)
{
    return (uint64_t)want->height * want->width * want->channels;
}

// One scratch for all that want as much, as a thread has it.
static uint8_t *scratch_for(const image_want *want)
{
    static uint8_t *scratch;
    static uint64_t bytes;
    if (bytes != image_scratch_bytes(want)) {
        if (scratch != NULL) {
            guarded_free(scratch, bytes);
        }
        bytes = image_scratch_bytes(want);
        scratch = guarded(bytes, 0xcd);
    }
    return scratch;
}

// Bytes of exact size, so that a sanitizer sees each step beyond them. *out is the caller's, of out_bytes.
static hr_status decode_bytes(const uint8_t *bytes, size_t count, const image_want *want, uint8_t *out,
                              hr_err *err)
{
    uint8_t *exact = malloc(count + (count == 0));
    memcpy(exact, bytes, count);
    uint8_t *scratch = scratch_for(want);
    const int64_t live = hr_host_mem_live();
    uint8_t *guarded_out = guarded(out_bytes(want), 0xee);
    const image_file file = {.bytes = exact, .size_bytes = count, .name = "cat.jpg"};
    const hr_status status = image_decode(&file, want, scratch, guarded_out, err);
    if (status == HR_OK) {
        memcpy(out, guarded_out, out_bytes(want));
    }
    assert_guards(scratch, image_scratch_bytes(want));
    guarded_free(guarded_out, out_bytes(want));
    ck_assert_int_eq(hr_host_mem_live(), live);
    free(exact);
    return status;
}

static uint8_t *decoded(const made *m, const image_want *want)
{
    hr_err err = {0};
    uint8_t *out = malloc(out_bytes(want));
    ck_assert_msg(decode_bytes(m->bytes, m->count, want, out, &err) == HR_OK, "%s", err.sentence);
    return out;
}

static void assert_refused(const uint8_t *bytes, size_t count, const char *sentence)
{
    const image_want want = {.height = 5, .width = 7, .channels = 3};
    uint8_t out[105];
    hr_err err = {0};
    ck_assert_int_eq(decode_bytes(bytes, count, &want, out, &err), HR_DATA);
    if (sentence != NULL) {
        ck_assert_str_eq(err.sentence, sentence);
    } else {
        ck_assert_msg(strncmp(err.sentence, "cat.jpg: needed ", 16) == 0, "%s", err.sentence);
        ck_assert_ptr_nonnull(strstr(err.sentence, ", had"));
    }
}

// ---- an independent resize, in double precision --------------------------------------------------------------------

typedef struct picture {
    uint32_t width, height, channels;
    const uint8_t *bytes;
} picture;

static double level(const picture *p, double y, double x, uint32_t c)
{
    const double row = fmin(fmax(y, 0), p->height - 1.0), column = fmin(fmax(x, 0), p->width - 1.0);
    return p->bytes[((size_t)row * p->width + (size_t)column) * p->channels + c];
}

static double bilinear(const picture *p, double y, double x, uint32_t c)
{
    const double top = floor(y), left = floor(x), v = y - top, h = x - left;
    return (1 - v) * ((1 - h) * level(p, top, left, c) + h * level(p, top, left + 1, c)) +
           v * ((1 - h) * level(p, top + 1, left, c) + h * level(p, top + 1, left + 1, c));
}

static double mean(const picture *p, const double y[2], const double x[2], uint32_t c)
{
    double sum = 0;
    for (double row = floor(y[0]); row < y[1]; row++) {
        for (double column = floor(x[0]); column < x[1]; column++) {
            const double high = fmin(row + 1, y[1]) - fmax(row, y[0]),
                         wide = fmin(column + 1, x[1]) - fmax(column, x[0]);
            sum += high > 1e-9 && wide > 1e-9 ? high * wide * level(p, row, column, c) : 0;
        }
    }
    return sum / ((y[1] - y[0]) * (x[1] - x[0]));
}

static double wanted_level(const picture *p, const image_want *want, uint32_t y, uint32_t x, uint32_t c)
{
    const double down = (double)p->height / want->height, across = (double)p->width / want->width;
    if (want->filter == IMAGE_BILINEAR) {
        return bilinear(p, (y + 0.5) * down - 0.5, (x + 0.5) * across - 0.5, c);
    }
    if (want->filter == IMAGE_NEAREST) { // a centre on an edge belongs to what follows
        return level(p, floor((y + 0.5) * down + 1e-9), floor((x + 0.5) * across + 1e-9), c);
    }
    return mean(p, (double[2]){y * down, (y + 1) * down}, (double[2]){x * across, (x + 1) * across}, c);
}

static void assert_resized(const picture *p, const image_want *want, const uint8_t *out)
{
    const double allowed = want->filter == IMAGE_NEAREST ? 0 : 0.53;
    for (uint32_t y = 0; y < want->height; y++) {
        for (uint32_t x = 0; x < want->width; x++) {
            for (uint32_t c = 0; c < p->channels; c++) {
                const double wanted = wanted_level(p, want, y, x, c);
                if (fabs(*out - wanted) > allowed) {
                    ck_abort_msg("filter %d, %u x %u to %u x %u, (%u, %u, %u): %d, not %.3f", want->filter,
                                 p->width, p->height, want->width, want->height, x, y, c, *out, wanted);
                }
                out++;
            }
        }
    }
}

// ---- pictures -------------------------------------------------------------------------------------------------------

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = hash64_mix(state, 7);
    return (uint32_t)(state % below);
}

// Noise: nothing smooth that could hide a wrong neighbour.
static uint8_t *noise(size_t count)
{
    uint8_t *bytes = malloc(count);
    for (size_t k = 0; k < count; k++) {
        bytes[k] = (uint8_t)draw(256);
    }
    return bytes;
}

// Waves, which a JPEG keeps.
static uint8_t *waves(uint32_t width, uint32_t height, uint32_t channels)
{
    uint8_t *bytes = malloc((size_t)width * height * channels), *next = bytes;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            for (uint32_t c = 0; c < channels; c++) {
                *next++ = (uint8_t)(128 + 60 * sin(x * 0.11 + c) + 60 * cos(y * 0.07 * (c + 1)));
            }
        }
    }
    return bytes;
}

static uint8_t grey_of(const uint8_t rgb[3])
{
    return (uint8_t)floor(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] + 0.5);
}

// ---- PNG --------------------------------------------------------------------------------------------------------------

typedef struct png_row {
    unsigned colour, bits;
} png_row;

static const png_row png_rows[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                                   {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
enum { PNG_ROWS = sizeof png_rows / sizeof *png_rows };

static uint16_t *draw_samples(const png_form *f)
{
    const size_t count = (size_t)f->width * f->height * png_samples(f->colour);
    uint16_t *sample = malloc(sizeof *sample * count);
    for (size_t k = 0; k < count; k++) {
        sample[k] = (uint16_t)draw(1u << f->bits);
    }
    return sample;
}

// What a pixel's samples mean, by the book.
static void meaning(const png_form *f, const uint16_t *sample, const uint8_t *palette, uint8_t rgb[3])
{
    for (int c = 0; c < 3; c++) {
        if (f->colour == 3) {
            rgb[c] = palette[3 * sample[0] + c];
        } else {
            const unsigned value = sample[(f->colour & 2) != 0 ? c : 0];
            rgb[c] = (uint8_t)(f->bits == 16 ? value >> 8 : value * 255 / ((1u << f->bits) - 1));
        }
    }
}

static void check_png(const png_form *f, uint8_t channels)
{
    uint16_t *sample = draw_samples(f);
    uint8_t *palette = noise(768);
    made m = png_make(f, sample, f->colour == 3 ? palette : NULL);
    uint8_t *out = decoded(&m, &(image_want){f->height, f->width, channels, IMAGE_BILINEAR}), *next = out;
    for (size_t k = 0; k < (size_t)f->width * f->height; k++, next += channels) {
        uint8_t rgb[3];
        meaning(f, sample + k * png_samples(f->colour), palette, rgb);
        if (channels == 3) {
            ck_assert_mem_eq(next, rgb, 3);
        } else {
            ck_assert_int_le(abs(*next - grey_of(rgb)), 1);
            ck_assert(f->colour != 0 || *next == rgb[0]);
        }
    }
    free(out);
    free(palette);
    free(sample);
    made_free(&m);
}

START_TEST(every_form_of_png_gives_its_pixels)
{
    state = (uint64_t)_i + 1;
    for (int k = 0; k < 12; k++) {
        const png_form f = {1 + draw(40), 1 + draw(40), png_rows[_i].bits, png_rows[_i].colour, k % 2 == 1};
        check_png(&f, 3);
        check_png(&f, 1);
    }
}
END_TEST

static made noisy_png(uint32_t width, uint32_t height, bool interlaced, uint8_t **pixels)
{
    const png_form f = {width, height, 8, 2, interlaced};
    const size_t count = (size_t)width * height * 3;
    uint16_t *sample = draw_samples(&f);
    *pixels = malloc(count);
    for (size_t k = 0; k < count; k++) {
        (*pixels)[k] = (uint8_t)sample[k];
    }
    made m = png_make(&f, sample, NULL);
    free(sample);
    return m;
}

START_TEST(a_resized_png_is_the_textbooks_within_a_level)
{
    for (int k = 0; k < 60; k++) {
        state = hash64_mix((uint64_t)_i + 1, (uint64_t)k);
        const uint32_t most = k % 5 == 0 ? 300 : 40;
        const image_want want = {1 + draw(60), 1 + draw(60), 3, filters[_i]};
        picture p = {1 + draw(most), 1 + draw(most), 3, NULL};
        uint8_t *pixels;
        made m = noisy_png(p.width, p.height, k % 3 == 0, &pixels);
        p.bytes = pixels;
        uint8_t *out = decoded(&m, &want);
        assert_resized(&p, &want, out);
        free(out);
        free(pixels);
        made_free(&m);
    }
}
END_TEST

START_TEST(the_widest_and_the_highest_image_are_resized)
{
    for (int high = 0; high < 2; high++) {
        state = 3;
        const image_want want = {high ? 9 : 2, high ? 2 : 9, 3, filters[_i]};
        uint8_t *pixels;
        const uint32_t width = high ? 2 : IMAGE_SIDE_MOST, height = high ? IMAGE_SIDE_MOST : 2;
        made m = noisy_png(width, height, false, &pixels);
        uint8_t *out = decoded(&m, &want);
        assert_resized(&(picture){width, height, 3, pixels}, &want, out);
        free(out);
        free(pixels);
        made_free(&m);
    }
}
END_TEST

// Whichever instructions the processor has: what it chooses among gives one result.
START_TEST(resizing_gives_the_same_bytes_on_every_machine)
{
    char hex[65];
    sha256 hash;
    sha256_init(&hash);
    for (int k = 0; k < 120; k++) {
        state = hash64_mix(99, (uint64_t)k);
        const image_want want = {1 + draw(70), 1 + draw(70), k % 4 == 0 ? 1 : 3, filters[k % 3]};
        uint8_t *pixels;
        made m = noisy_png(1 + draw(200), 1 + draw(100), false, &pixels);
        uint8_t *out = decoded(&m, &want);
        sha256_add(&hash, out, out_bytes(&want));
        free(out);
        free(pixels);
        made_free(&m);
    }
    sha256_text(&hash, hex);
    ck_assert_str_eq(hex, "9086819330e7dd8e31bc498657928a7e1ff6fbf93a84b314da9d3ec24134dca7");
}
END_TEST

// ---- JPEG -------------------------------------------------------------------------------------------------------------

typedef struct jpeg_row {
    int sampling, flags;
} jpeg_row;

static const jpeg_row jpeg_rows[] = {{TJSAMP_444, 0}, {TJSAMP_420, 0},
                                     {TJSAMP_422, 0}, {TJSAMP_GRAY, 0},
                                     {TJSAMP_440, 0}, {TJSAMP_420, TJFLAG_PROGRESSIVE},
                                     {TJSAMP_411, 0}, {TJSAMP_444, TJFLAG_PROGRESSIVE}};
enum { JPEG_ROWS = sizeof jpeg_rows / sizeof *jpeg_rows };

// What the library itself makes of it at so many eighths of its size.
static uint8_t *at_eighths(const made *m, uint32_t width, uint32_t height, uint8_t channels)
{
    uint8_t *pixels = malloc((size_t)width * height * channels);
    tjhandle t = tjInitDecompress();
    ck_assert_int_eq(tjDecompress2(t, m->bytes, m->count, pixels, (int)width, 0, (int)height,
                                   channels == 1 ? TJPF_GRAY : TJPF_RGB, 0),
                     0);
    tjDestroy(t);
    return pixels;
}

static uint32_t eighths_that_cover(uint32_t width, uint32_t height, const image_want *want)
{
    uint32_t eighths = 1;
    while (eighths < 8 &&
           ((width * eighths + 7) / 8 < want->width || (height * eighths + 7) / 8 < want->height)) {
        eighths *= 2;
    }
    return eighths;
}

START_TEST(a_jpeg_is_decoded_at_the_smallest_power_of_two_that_covers)
{
    const jpeg_row *row = &jpeg_rows[_i];
    for (int k = 0; k < 20; k++) {
        state = hash64_mix((uint64_t)_i + 1, (uint64_t)k);
        const uint32_t width = 1 + draw(200), height = 1 + draw(200);
        const image_want want = {1 + draw(120), 1 + draw(120), k % 4 == 0 ? 1 : 3, filters[k % 3]};
        const uint32_t eighths = eighths_that_cover(width, height, &want);
        uint8_t *pixels = waves(width, height, 3);
        made m = jpeg_make(width, height, TJPF_RGB, pixels, row->sampling, row->flags);
        picture p = {(width * eighths + 7) / 8, (height * eighths + 7) / 8, want.channels, NULL};
        uint8_t *part = at_eighths(&m, p.width, p.height, want.channels), *out = decoded(&m, &want);
        p.bytes = part;
        assert_resized(&p, &want, out);
        free(out);
        free(part);
        free(pixels);
        made_free(&m);
    }
}
END_TEST

START_TEST(a_grey_jpeg_gives_three_equal_channels)
{
    uint8_t *pixels = waves(33, 21, 1);
    made m = jpeg_make(33, 21, TJPF_GRAY, pixels, TJSAMP_GRAY, 0);
    uint8_t *colour = decoded(&m, &(image_want){21, 33, 3, IMAGE_AREA});
    uint8_t *grey = decoded(&m, &(image_want){21, 33, 1, IMAGE_AREA});
    for (int k = 0; k < 33 * 21; k++) {
        ck_assert_uint_eq(colour[3 * k], grey[k]);
        ck_assert_uint_eq(colour[3 * k + 1], grey[k]);
        ck_assert_uint_eq(colour[3 * k + 2], grey[k]);
        ck_assert_int_le(abs(grey[k] - pixels[k]), 8);
    }
    free(colour);
    free(grey);
    free(pixels);
    made_free(&m);
}
END_TEST

// Adobe's marker says that 255 is no ink; without it 0 is none.
START_TEST(ink_becomes_light)
{
    const int sampling = _i % 2 == 0 ? TJSAMP_444 : TJSAMP_420;
    const bool adobe = _i < 2;
    uint8_t *ink = waves(40, 24, 4);
    made m = jpeg_make(40, 24, TJPF_CMYK, ink, sampling, 0);
    uint8_t *marker = NULL;
    for (size_t k = 0; k + 5 < m.count && marker == NULL; k++) {
        marker = memcmp(m.bytes + k, "Adobe", 5) == 0 ? m.bytes + k : NULL;
    }
    ck_assert_ptr_nonnull(marker);
    if (!adobe) {
        *marker = 'a'; // now YCCK is taken for CMYK: compare only what the library says then
    }
    uint8_t *kept = malloc(40 * 24 * 4);
    tjhandle t = tjInitDecompress();
    ck_assert_int_eq(tjDecompress2(t, m.bytes, m.count, kept, 40, 0, 24, TJPF_CMYK, 0), 0);
    tjDestroy(t);
    uint8_t *out = decoded(&m, &(image_want){24, 40, 3, IMAGE_BILINEAR});
    uint8_t *grey = decoded(&m, &(image_want){24, 40, 1, IMAGE_BILINEAR});
    for (int k = 0; k < 40 * 24; k++) {
        for (int c = 0; c < 3; c++) {
            const double none = adobe ? 0 : 255,
                         light = fabs(none - kept[4 * k + c]) * fabs(none - kept[4 * k + 3]) / 255;
            ck_assert_msg(fabs(out[3 * k + c] - light) <= 1, "%d: %d, not %.2f", k, out[3 * k + c], light);
        }
        ck_assert_int_le(abs(grey[k] - grey_of(out + 3 * k)), 1);
    }
    free(ink);
    free(kept);
    free(out);
    free(grey);
    made_free(&m);
}
END_TEST

// ---- facts --------------------------------------------------------------------------------------------------------------

START_TEST(a_probe_says_what_the_header_says)
{
    image_facts facts;
    hr_err err = {0};
    uint8_t *pixels = waves(50, 31, 4);
    made m = jpeg_make(50, 31, TJPF_CMYK, pixels, TJSAMP_444, TJFLAG_PROGRESSIVE);
    ck_assert_int_eq(image_probe(&(image_file){m.bytes, m.count, "a"}, &facts, &err), HR_OK);
    ck_assert(facts.kind == IMAGE_JPEG && facts.width == 50 && facts.height == 31 && facts.components == 4 &&
              facts.whole);
    made_free(&m);
    free(pixels);
    for (int k = 0; k < PNG_ROWS; k++) {
        const png_form f = {17, 3, png_rows[k].bits, png_rows[k].colour, k % 2 == 0};
        uint16_t *sample = draw_samples(&f);
        m = png_make(&f, sample, NULL);
        ck_assert_int_eq(image_probe(&(image_file){m.bytes, m.count, "a"}, &facts, &err), HR_OK);
        ck_assert(facts.kind == IMAGE_PNG && facts.width == 17 && facts.height == 3 &&
                  facts.whole == (k % 2 == 0));
        ck_assert_uint_eq(facts.components, f.colour == 3 ? 3 : png_samples(f.colour));
        ck_assert(image_is_likely(m.bytes, m.count) && !image_is_likely(m.bytes, 7) &&
                  !image_is_likely(m.bytes + 1, 60));
        free(sample);
        made_free(&m);
    }
}
END_TEST

START_TEST(scratch_depends_on_what_is_wanted_alone)
{
    const image_want small = {32, 32, 3, IMAGE_BILINEAR}, usual = {224, 224, 3, IMAGE_AREA};
    const uint64_t line = 786048; // 65501 pixels of 3 x 4 bytes, rounded to 64
    ck_assert_uint_eq(image_scratch_bytes(&small), (4 << 20) + line + 2 * 128);
    ck_assert_uint_eq(image_scratch_bytes(&usual), (4 << 20) + line + 2 * 896);
    const image_want large = {1024, 1024, 3, IMAGE_BILINEAR};
    ck_assert_uint_eq(image_scratch_bytes(&large), (16 << 20) + line + 2 * 4096);
    const image_want most = {IMAGE_WANT_SIDE_MOST, IMAGE_WANT_SIDE_MOST, 3, IMAGE_BILINEAR};
    ck_assert_uint_le(image_scratch_bytes(&most), UINT32_MAX);
}
END_TEST

// ---- what strangers send ----------------------------------------------------------------------------------------------

static made small_file(int which)
{
    state = 11;
    uint8_t *pixels;
    made m;
    if (which < 2) {
        pixels = waves(40, 30, 3);
        m = jpeg_make(40, 30, TJPF_RGB, pixels, TJSAMP_420, which == 1 ? TJFLAG_PROGRESSIVE : 0);
    } else {
        m = noisy_png(13, 11, which == 3, &pixels);
    }
    free(pixels);
    return m;
}

START_TEST(an_image_truncated_anywhere_is_refused)
{
    made m = small_file(_i);
    for (size_t count = 0; count < m.count; count++) {
        assert_refused(m.bytes, count, NULL);
    }
    made_free(&m);
}
END_TEST

START_TEST(an_image_with_flipped_bits_is_decoded_or_refused)
{
    made m = small_file(_i);
    const image_want want = {5, 7, 3, IMAGE_BILINEAR};
    uint8_t out[105];
    for (size_t at = 0; at < m.count; at++) {
        for (int bit = 0; bit < 8; bit += HEADROOM_SANITIZED ? 3 : 1) {
            hr_err err = {0};
            m.bytes[at] ^= (uint8_t)(1 << bit);
            const hr_status status = decode_bytes(m.bytes, m.count, &want, out, &err);
            m.bytes[at] ^= (uint8_t)(1 << bit);
            ck_assert_msg(status == HR_OK ||
                              (status == HR_DATA && strncmp(err.sentence, "cat.jpg: needed ", 16) == 0),
                          "%s", err.sentence);
        }
    }
    made_free(&m);
}
END_TEST

START_TEST(what_is_no_image_is_said)
{
    assert_refused((const uint8_t *)"", 0, "cat.jpg: needed a JPEG or PNG image, had an empty file");
    assert_refused((const uint8_t *)"GIF89a", 6,
                   "cat.jpg: needed a JPEG or PNG image, had 6 bytes of something else");
    const uint8_t tables[] = {0xff, 0xd8, 0xff, 0xd9};
    assert_refused(tables, 4, "cat.jpg: needed a JPEG image, had tables alone");
    const uint8_t start[] = {0xff, 0xd8, 0xff, 0xe0};
    assert_refused(start, 4, "cat.jpg: needed a whole JPEG image, had 4 bytes that end in its header");
    const uint8_t frame[] = {0xff, 0xd8, 0xff, 0xc0, 0, 11, 12, 0, 8, 0, 8, 1, 1, 0x11, 0};
    assert_refused(frame, sizeof frame, "cat.jpg: needed a JPEG of 8 bits, had 12");
}
END_TEST

START_TEST(pngs_larger_than_the_limits_are_refused_from_their_header)
{
    made m = {0}, raw = {0};
    made_byte(&raw, 0);
    static const struct {
        png_form form;
        const char *sentence;
    } rows[] = {
        {{100000, 1, 1, 0, false},
         "cat.jpg: needed at most 65500 pixels a side and 67108864 in all, had 100000 x 1"},
        {{65500, 65500, 1, 0, false},
         "cat.jpg: needed at most 65500 pixels a side and 67108864 in all, had 65500 x 65500"},
        {{0, 5, 8, 2, false}, "cat.jpg: needed an image with pixels, had 0 x 5"},
        {{2000, 1000, 8, 2, true},
         "cat.jpg: needed an interlaced PNG of at most 4194304 bytes, had 2000 x 1000 pixels"},
        {{2000, 1000, 8, 5, false}, "cat.jpg: needed a colour type of PNG (0, 2, 3, 4, 6), had 5"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        png_begin(&m, &rows[k].form);
        png_pixels(&m, &raw, 1000);
        png_chunk(&m, "IEND", NULL, 0);
        assert_refused(m.bytes, m.count, rows[k].sentence);
        made_free(&m);
    }
    made_free(&raw);
}
END_TEST

// Of an image of given size: the header of a JPEG with nothing behind its first scan's.
static made jpeg_head(uint32_t width, uint32_t height, uint8_t frame, uint8_t components)
{
    made m = {0};
    made_byte(&m, 0xff), made_byte(&m, 0xd8), made_byte(&m, 0xff), made_byte(&m, frame);
    made_byte(&m, 0), made_byte(&m, 8u + 3u * components), made_byte(&m, 8);
    made_byte(&m, height >> 8), made_byte(&m, height & 255), made_byte(&m, width >> 8),
        made_byte(&m, width & 255);
    made_byte(&m, components);
    for (unsigned k = 0; k < components; k++) {
        made_byte(&m, k + 1), made_byte(&m, 0x11), made_byte(&m, 0);
    }
    made_byte(&m, 0xff), made_byte(&m, 0xda), made_byte(&m, 0), made_byte(&m, 6u + 2u * components);
    made_byte(&m, components);
    for (unsigned k = 0; k < components; k++) {
        made_byte(&m, k + 1), made_byte(&m, 0);
    }
    made_byte(&m, 0), made_byte(&m, 63), made_byte(&m, 0);
    return m;
}

START_TEST(jpegs_larger_than_the_limits_are_refused_from_their_header)
{
    static const struct {
        uint32_t width, height;
        uint8_t frame, components;
        const char *sentence;
    } rows[] = {
        {65535, 1, 0xc0, 3, "cat.jpg: needed at most 65500 pixels a side and 67108864 in all, had 65535 x 1"},
        {40000, 40000, 0xc0, 3,
         "cat.jpg: needed at most 65500 pixels a side and 67108864 in all, had 40000 x 40000"},
        {8185, 8199, 0xc0, 4,
         "cat.jpg: needed a JPEG with at most 4194304 bytes at 1/8 of its size, had 8185 x 8199 pixels"},
        {8000, 8000, 0xc2, 3,
         "cat.jpg: needed a JPEG in one scan, or at most 67108864 bytes of coefficients, had 384000000"},
        {0, 8, 0xc0, 3, "cat.jpg: needed an image with pixels, had 0 x 8"},
        {8, 8, 0xc0, 2, "cat.jpg: needed a JPEG of 1, 3 or 4 components, had 2"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        made m = jpeg_head(rows[k].width, rows[k].height, rows[k].frame, rows[k].components);
        assert_refused(m.bytes, m.count, rows[k].sentence);
        made_free(&m);
    }
}
END_TEST

// libjpeg-turbo 3 decodes lossless frames (C3) without scaling: into a room for fewer pixels. Whatever library is at hand, none
// of the frames that are not sequential or progressive is given to it.
START_TEST(only_frames_that_are_scaled_are_decoded)
{
    for (int code = 0xc0; code <= 0xcf; code++) {
        made m = jpeg_head(64, 48, (uint8_t)code, 3);
        jpeg_header header;
        hr_err err = {0};
        const image_file file = {.name = "cat.jpg", .bytes = m.bytes, .size_bytes = m.count};
        const bool is_frame = code != 0xc4 && code != 0xc8 && code != 0xcc;
        const bool is_taken = code <= 0xc2 || code == 0xc9 || code == 0xca;
        ck_assert_int_eq(jpeg_read_header(&file, &header, &err), is_taken ? HR_OK : HR_DATA);
        char sentence[128];
        (void)snprintf(
            sentence, sizeof sentence,
            "cat.jpg: needed a JPEG of frames C0, C1, C2, C9 or CA (not lossless, not hierarchical), "
            "had %02X",
            code);
        if (is_frame && !is_taken) {
            ck_assert_str_eq(err.sentence, sentence);
        }
        made_free(&m);
    }
}
END_TEST

// A profile that would inflate to gigabytes, a text of a megabyte, an unknown chunk: none is looked into.
START_TEST(a_jpeg_of_very_many_scans_is_refused)
{
    made m = small_file(1);
    const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 1, 5, 0x00};
    m.count -= 2;
    for (int k = 0; k < 60; k++) {
        made_add(&m, scan, sizeof scan);
    }
    made_add(&m, "\xff\xd9", 2);
    assert_refused(m.bytes, m.count, "cat.jpg: needed a JPEG of at most 64 scans, had 70");
    made_free(&m);
}
END_TEST

START_TEST(chunks_without_pixels_cost_nothing)
{
    const png_form f = {9, 7, 8, 2, false};
    uint16_t *sample = draw_samples(&f);
    made plain = png_make(&f, sample, NULL), rich = {0};
    uint8_t *text = noise(1 << 20);
    memcpy(text, "name\0\0", 6);
    const size_t header = 8 + 25;
    made_add(&rich, plain.bytes, header);
    png_chunk(&rich, "iCCP", text, 1 << 20);
    png_chunk(&rich, "zTXt", text, 1 << 20);
    png_chunk(&rich, "abCd", text, 100);
    made_add(&rich, plain.bytes + header, plain.count - header);
    const image_want want = {7, 9, 3, IMAGE_BILINEAR};
    uint8_t *a = decoded(&plain, &want), *b = decoded(&rich, &want);
    ck_assert_mem_eq(a, b, 9 * 7 * 3);
    free(a);
    free(b);
    free(text);
    free(sample);
    made_free(&plain);
    made_free(&rich);
}
END_TEST

START_TEST(a_jpeg_with_bytes_too_many_is_decoded)
{
    made m = small_file(0), more = {0};
    const image_want want = {30, 40, 3, IMAGE_BILINEAR};
    made_add(&more, m.bytes, m.count - 2);
    made_add(&more, "xyz", 3);
    made_add(&more, m.bytes + m.count - 2, 2);
    made_add(&more, "behind", 6);
    uint8_t *a = decoded(&m, &want), *b = decoded(&more, &want);
    ck_assert_mem_eq(a, b, 30 * 40 * 3);
    free(a);
    free(b);
    made_free(&m);
    made_free(&more);
}
END_TEST

START_TEST(a_long_jpeg_is_decoded_at_what_fits)
{
    const uint32_t width = 30000, height = 60;
    uint8_t *pixels = waves(width, height, 3);
    made m = jpeg_make(width, height, TJPF_RGB, pixels, TJSAMP_420, 0);
    const image_want want = {60, 60, 3, IMAGE_AREA}; // 5.4 MB at 8/8 do not fit
    uint8_t *part = at_eighths(&m, width / 2, height / 2, 3), *out = decoded(&m, &want);
    assert_resized(&(picture){width / 2, height / 2, 3, part}, &want, out);
    free(part);
    free(out);
    free(pixels);
    made_free(&m);
}
END_TEST

// ---- memory and threads -------------------------------------------------------------------------------------------------

// Decodes in a process that may take `more_bytes` beyond what it has.
static hr_status decode_within(const made *m, const image_want *want, uint64_t more_bytes)
{
    uint8_t *scratch = guarded(image_scratch_bytes(want), 1), *out = malloc(out_bytes(want));
    memset(out, 1, out_bytes(want));
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        unsigned long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        const bool known = f != NULL && fscanf(f, "%lu", &pages) == 1;
        const rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more_bytes;
        const bool limited = known && setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0;
        const image_file file = {.bytes = m->bytes, .size_bytes = m->count, .name = "large"};
        _exit(limited ? (int)image_decode(&file, want, scratch, out, NULL) : 99);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    guarded_free(scratch, image_scratch_bytes(want));
    free(out);
    return (hr_status)WEXITSTATUS(status);
}

// The largest that are accepted: coefficients of 64 MiB, the widest rows.
START_TEST(libraries_take_no_more_than_promised)
{
    static const struct {
        uint32_t width, height;
        int sampling, flags;
    } rows[] = {{3344, 3344, TJSAMP_444, TJFLAG_PROGRESSIVE},
                {4720, 4720, TJSAMP_420, TJFLAG_PROGRESSIVE},
                {IMAGE_SIDE_MOST, 21, TJSAMP_420, 0},
                {IMAGE_SIDE_MOST, 500, TJSAMP_420, 0}};
    const image_want want = {20, 20, 3, IMAGE_BILINEAR};
    made first = small_file(0);
    free(decoded(&first, &want)); // the library is there
    uint8_t *pixels = calloc((size_t)rows[_i].width * rows[_i].height, 3);
    made m = jpeg_make(rows[_i].width, rows[_i].height, TJPF_RGB, pixels, rows[_i].sampling, rows[_i].flags);
    ck_assert_int_eq(decode_within(&m, &want, IMAGE_LIBRARY_MOST_BYTES), HR_OK);
    if (rows[_i].flags == TJFLAG_PROGRESSIVE) {
        ck_assert_int_eq(decode_within(&m, &want, 16 << 20), HR_NOMEM);
    }
    free(pixels);
    made_free(&m);
    made_free(&first);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    made m = small_file(_i);
    const image_want want = {5, 7, 3, IMAGE_BILINEAR};
    uint8_t *scratch = malloc(image_scratch_bytes(&want)), out[105];
    const image_file file = {m.bytes, m.count, "cat.png"};
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    for (uint64_t nth = 1; status != HR_OK; nth++) {
        hr_err err = {0};
        hr_host_mem_fail_at(nth);
        status = image_decode(&file, &want, scratch, out, &err);
        const uint64_t seen = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (nth <= seen ? HR_NOMEM : HR_OK), "request %d: %s", (int)nth, err.sentence);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    free(scratch);
    made_free(&m);
}
END_TEST

typedef struct many {
    const made *file;
    image_want want;
    const uint8_t *wanted;
} many;

static void *decode_often(void *context)
{
    const many *job = context;
    uint8_t *scratch = malloc(image_scratch_bytes(&job->want)), *out = malloc(out_bytes(&job->want));
    uintptr_t wrong = 0;
    for (int k = 0; k < 40; k++) {
        const made *m = &job->file[k % 4];
        const image_file file = {m->bytes, m->count, "cat"};
        memset(scratch, k, image_scratch_bytes(&job->want));
        wrong += image_decode(&file, &job->want, scratch, out, NULL) != HR_OK;
        wrong +=
            memcmp(out, job->wanted + (uint64_t)(k % 4) * out_bytes(&job->want), out_bytes(&job->want)) != 0;
    }
    free(scratch);
    free(out);
    return (void *)wrong;
}

START_TEST(threads_give_the_same_bytes)
{
    made file[4];
    many job = {.file = file, .want = {20, 25, 3, filters[_i]}};
    uint8_t *wanted = malloc(4 * out_bytes(&job.want));
    for (int k = 0; k < 4; k++) {
        file[k] = small_file(k);
        uint8_t *out = decoded(&file[k], &job.want);
        memcpy(wanted + (uint64_t)k * out_bytes(&job.want), out, out_bytes(&job.want));
        free(out);
    }
    job.wanted = wanted;
    pthread_t thread[4];
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(pthread_create(&thread[k], NULL, decode_often, &job), 0);
    }
    for (int k = 0; k < 4; k++) {
        void *wrong = NULL;
        ck_assert_int_eq(pthread_join(thread[k], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
    for (int k = 0; k < 4; k++) {
        made_free(&file[k]);
    }
    free(wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image");
    TCase *forms = tcase_create("forms");
    tcase_add_loop_test(forms, every_form_of_png_gives_its_pixels, 0, PNG_ROWS);
    tcase_add_loop_test(forms, a_resized_png_is_the_textbooks_within_a_level, 0, 3);
    tcase_add_loop_test(forms, the_widest_and_the_highest_image_are_resized, 0, 3);
    tcase_add_test(forms, resizing_gives_the_same_bytes_on_every_machine);
    tcase_add_loop_test(forms, a_jpeg_is_decoded_at_the_smallest_power_of_two_that_covers, 0, JPEG_ROWS);
    tcase_add_test(forms, a_grey_jpeg_gives_three_equal_channels);
    tcase_add_loop_test(forms, ink_becomes_light, 0, 4);
    tcase_add_test(forms, a_probe_says_what_the_header_says);
    tcase_add_test(forms, scratch_depends_on_what_is_wanted_alone);
    suite_add_tcase(suite, forms);
    TCase *strangers = tcase_create("strangers");
    tcase_add_loop_test(strangers, an_image_truncated_anywhere_is_refused, 0, 4);
    tcase_add_loop_test(strangers, an_image_with_flipped_bits_is_decoded_or_refused, 0, 4);
    tcase_add_test(strangers, what_is_no_image_is_said);
    tcase_add_test(strangers, pngs_larger_than_the_limits_are_refused_from_their_header);
    tcase_add_test(strangers, jpegs_larger_than_the_limits_are_refused_from_their_header);
    tcase_add_test(strangers, only_frames_that_are_scaled_are_decoded);
    tcase_add_test(strangers, a_jpeg_of_very_many_scans_is_refused);
    tcase_add_test(strangers, chunks_without_pixels_cost_nothing);
    tcase_add_test(strangers, a_jpeg_with_bytes_too_many_is_decoded);
    tcase_add_test(strangers, a_long_jpeg_is_decoded_at_what_fits);
    suite_add_tcase(suite, strangers);
    TCase *memory = tcase_create("memory");
    tcase_add_loop_test(memory, libraries_take_no_more_than_promised, 0,
                        HEADROOM_SANITIZED ? 0 : 4); // address space
    tcase_add_loop_test(memory, every_allocation_may_fail_once, 0, 4);
    tcase_add_loop_test(memory, threads_give_the_same_bytes, 0, 3);
    suite_add_tcase(suite, memory);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
