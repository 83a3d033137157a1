// SPDX-License-Identifier: Apache-2.0
// JPEG up to its first scan (ITU-T T.81, annex B): how large the image is and what a decoder will need for it.
#include <inttypes.h>
#include <string.h>

#include "data/image_rows.h"

enum {
    MARKER_TEM = 0x01,
    MARKER_SOF0 = 0xc0,
    MARKER_SOF1 = 0xc1,
    MARKER_SOF2 = 0xc2,
    MARKER_SOF9 = 0xc9,
    MARKER_SOF10 = 0xca,
    MARKER_SOF15 = 0xcf,
    MARKER_DHT = 0xc4,
    MARKER_JPG = 0xc8,
    MARKER_DAC = 0xcc,
    MARKER_RST0 = 0xd0,
    MARKER_EOI = 0xd9,
    MARKER_SOS = 0xda,
    MARKER_APP14 = 0xee,
    COMPONENTS_MOST = 4,
    SAMPLING_MOST = 4,
    SCANS_MOST = 64, // a few bytes each may cost as much as the whole image; encoders write about ten
    BLOCK_SIDE = 8,
    BLOCK_BYTES = 128, // 64 coefficients of 16 bits
};

typedef struct walk {
    const image_file *file;
    uint64_t at;
    jpeg_header *header;
    bool framed; // a frame header was there
    uint8_t sampling[COMPONENTS_MOST][2];
} walk;

static hr_status cut_short(const walk *w, const char *what, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed a whole JPEG image, had %" PRIu64 " bytes that end in %s",
                   w->file->name, w->file->size_bytes, what);
}

// The next marker's code; bytes that are none are passed over, as libjpeg does.
static hr_status next_marker(walk *w, uint8_t *code, hr_err *err)
{
    const uint8_t *bytes = w->file->bytes;
    while (w->at + 1 < w->file->size_bytes) {
        if (bytes[w->at] == 0xff && bytes[w->at + 1] != 0 && bytes[w->at + 1] != 0xff) {
            *code = bytes[w->at + 1];
            w->at += 2;
            return HR_OK;
        }
        w->at++;
    }
    return cut_short(w, "its header", err);
}

// The segment behind a marker, without its length; w->at stands behind it then.
static hr_status next_segment(walk *w, const uint8_t **segment, uint32_t *count, hr_err *err)
{
    const uint64_t left = w->file->size_bytes - w->at;
    if (left < 2) {
        return cut_short(w, "its header", err);
    }
    const uint8_t *bytes = w->file->bytes + w->at;
    const uint32_t length = (uint32_t)bytes[0] << 8 | bytes[1];
    if (length < 2) {
        return HR_FAIL(err, DATA,
                       "%s: needed a JPEG segment at offset %" PRIu64 ", had one of %" PRIu32 " bytes",
                       w->file->name, w->at, length);
    }
    if (length > left) {
        return cut_short(w, "its header", err);
    }
    *segment = bytes + 2;
    *count = length - 2;
    w->at += length;
    return HR_OK;
}

static bool samplings_are_sound(walk *w, const uint8_t *components)
{
    for (uint32_t k = 0; k < w->header->components; k++) {
        const uint8_t both = components[3 * k + 1];
        w->sampling[k][0] = both >> 4;
        w->sampling[k][1] = both & 15;
        for (int side = 0; side < 2; side++) {
            if (w->sampling[k][side] == 0 || w->sampling[k][side] > SAMPLING_MOST) {
                return false;
            }
        }
    }
    return true;
}

// Every block of every component, with those that fill the last units (T.81, A.2.4).
static uint64_t coefficient_bytes(const walk *w)
{
    uint64_t most[2] = {1, 1}, blocks = 0;
    for (uint32_t k = 0; k < w->header->components; k++) {
        for (int side = 0; side < 2; side++) {
            most[side] = w->sampling[k][side] > most[side] ? w->sampling[k][side] : most[side];
        }
    }
    const uint64_t across = (w->header->width + most[0] * BLOCK_SIDE - 1) / (most[0] * BLOCK_SIDE);
    const uint64_t down = (w->header->height + most[1] * BLOCK_SIDE - 1) / (most[1] * BLOCK_SIDE);
    for (uint32_t k = 0; k < w->header->components; k++) {
        blocks += across * w->sampling[k][0] * down * w->sampling[k][1];
    }
    return blocks * BLOCK_BYTES;
}

static bool is_frame(uint8_t code)
{
    return code >= MARKER_SOF0 && code <= MARKER_SOF15 && code != MARKER_DHT && code != MARKER_JPG &&
           code != MARKER_DAC;
}

// Sequential and progressive frames of cosines, by Huffman or arithmetic codes. The others a library may decode as well, but a
// lossless one without scaling (libjpeg-turbo 3): it writes pixels where a smaller image was to come.
static bool is_decoded(uint8_t code)
{
    return code == MARKER_SOF0 || code == MARKER_SOF1 || code == MARKER_SOF2 || code == MARKER_SOF9 ||
           code == MARKER_SOF10;
}

static hr_status read_frame(walk *w, uint8_t code, const uint8_t *segment, uint32_t count, hr_err *err)
{
    jpeg_header *h = w->header;
    if (w->framed) {
        return HR_FAIL(err, DATA, "%s: needed one JPEG frame, had two", w->file->name);
    }
    if (!is_decoded(code)) {
        return HR_FAIL(
            err, DATA,
            "%s: needed a JPEG of frames C0, C1, C2, C9 or CA (not lossless, not hierarchical), had %02X",
            w->file->name, code);
    }
    if (count < 6 || count != 6u + 3u * segment[5]) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG frame header, had one of %" PRIu32 " bytes",
                       w->file->name, count);
    }
    if (segment[0] != 8) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG of 8 bits, had %d", w->file->name, segment[0]);
    }
    h->height = (uint32_t)segment[1] << 8 | segment[2];
    h->width = (uint32_t)segment[3] << 8 | segment[4];
    h->components = segment[5];
    h->whole = (code & 3) == 2; // progressive
    if (h->components != 1 && h->components != 3 && h->components != 4) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG of 1, 3 or 4 components, had %d", w->file->name,
                       h->components);
    }
    if (!samplings_are_sound(w, segment + 6)) {
        return HR_FAIL(err, DATA, "%s: needed sampling factors from 1 to 4, had others", w->file->name);
    }
    w->framed = true;
    return HR_OK;
}

// Bytes cannot hide a marker within a scan (T.81, B.1.1.5), so that each start of one is seen, and at worst one too many.
static uint32_t count_scans(const walk *w)
{
    uint32_t scans = 1;
    const uint8_t *at = w->file->bytes + w->at, *end = w->file->bytes + w->file->size_bytes;
    while (at < end && (at = memchr(at, 0xff, (size_t)(end - at))) != NULL && end - at > 1) {
        scans += at[1] == MARKER_SOS;
        at++;
    }
    return scans;
}

static hr_status read_scan(walk *w, const uint8_t *segment, uint32_t count, hr_err *err)
{
    if (!w->framed || count == 0) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG frame before its first scan, had none", w->file->name);
    }
    w->header->whole |= segment[0] < w->header->components;
    if (!w->header->whole) {
        return HR_OK;
    }
    w->header->passes_bytes = coefficient_bytes(w);
    const uint32_t scans = count_scans(w);
    if (scans > SCANS_MOST) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG of at most %d scans, had %" PRIu32, w->file->name,
                       SCANS_MOST, scans);
    }
    return HR_OK;
}

hr_status jpeg_read_header(const image_file *file, jpeg_header *header, hr_err *err)
{
    walk w = {.file = file, .at = 2, .header = header};
    *header = (jpeg_header){0};
    for (;;) {
        uint8_t code = 0;
        const uint8_t *segment = NULL;
        uint32_t count = 0;
        HR_TRY(next_marker(&w, &code, err));
        if (code == MARKER_TEM || (code >= MARKER_RST0 && code < MARKER_EOI)) {
            continue;
        }
        if (code == MARKER_EOI) {
            return HR_FAIL(err, DATA, "%s: needed a JPEG image, had tables alone", file->name);
        }
        HR_TRY(next_segment(&w, &segment, &count, err));
        if (code == MARKER_SOS) {
            return read_scan(&w, segment, count, err);
        }
        if (is_frame(code)) {
            HR_TRY(read_frame(&w, code, segment, count, err));
        }
        if (code == MARKER_APP14 && count >= 12 && memcmp(segment, "Adobe", 5) == 0) {
            header->inverted = true;
        }
    }
}
