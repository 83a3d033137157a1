// SPDX-License-Identifier: Apache-2.0
#include "data/image.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "data/image_rows.h"

static const uint8_t png_signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
static const uint8_t jpeg_signature[3] = {0xff, 0xd8, 0xff};

static bool begins(const image_file *file, const uint8_t *signature, uint64_t count)
{
    return file->size_bytes >= count && memcmp(file->bytes, signature, count) == 0;
}

bool image_is_likely(const uint8_t *bytes, uint64_t size_bytes)
{
    const image_file file = {.bytes = bytes, .size_bytes = size_bytes};
    return begins(&file, jpeg_signature, sizeof jpeg_signature) ||
           begins(&file, png_signature, sizeof png_signature);
}

static hr_status find_kind(const image_file *file, image_kind *kind, hr_err *err)
{
    if (begins(file, jpeg_signature, sizeof jpeg_signature)) {
        *kind = IMAGE_JPEG;
        return HR_OK;
    }
    if (begins(file, png_signature, sizeof png_signature)) {
        *kind = IMAGE_PNG;
        return HR_OK;
    }
    if (file->size_bytes == 0) {
        return HR_FAIL(err, DATA, "%s: needed a JPEG or PNG image, had an empty file", file->name);
    }
    return HR_FAIL(err, DATA, "%s: needed a JPEG or PNG image, had %" PRIu64 " bytes of something else",
                   file->name, file->size_bytes);
}

static hr_status check_size(const image_file *file, const image_facts *facts, hr_err *err)
{
    const uint64_t pixels = (uint64_t)facts->width * facts->height;
    if (facts->width == 0 || facts->height == 0) {
        return HR_FAIL(err, DATA, "%s: needed an image with pixels, had %" PRIu32 " x %" PRIu32, file->name,
                       facts->width, facts->height);
    }
    if (facts->width > IMAGE_SIDE_MOST || facts->height > IMAGE_SIDE_MOST || pixels > IMAGE_PIXELS_MOST) {
        return HR_FAIL(err, DATA,
                       "%s: needed at most %d pixels a side and %d in all, had %" PRIu32 " x %" PRIu32,
                       file->name, IMAGE_SIDE_MOST, IMAGE_PIXELS_MOST, facts->width, facts->height);
    }
    return HR_OK;
}

hr_status image_probe(const image_file *file, image_facts *facts, hr_err *err)
{
    HR_TRY(find_kind(file, &facts->kind, err));
    if (facts->kind == IMAGE_JPEG) {
        jpeg_header header;
        HR_TRY(jpeg_read_header(file, &header, err));
        facts->width = header.width;
        facts->height = header.height;
        facts->components = header.components;
        facts->whole = header.whole;
    } else {
        png_header header;
        HR_TRY(png_read_header(file, &header, err));
        facts->width = header.width;
        facts->height = header.height;
        facts->components = header.components;
        facts->whole = header.interlaced;
    }
    return check_size(file, facts, err);
}

// ---- scratch ----------------------------------------------------------------------------------------------------

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;
}

// What covers the wanted size is less than twice as long on one side; 4 bytes a pixel are those of CMYK.
static uint64_t room_bytes(const image_want *want)
{
    const uint64_t covering = UINT64_C(4) * 4 * want->height * want->width;
    return aligned(covering > IMAGE_ROOM_LEAST_BYTES ? covering : IMAGE_ROOM_LEAST_BYTES);
}

uint64_t image_scratch_bytes(const image_want *want)
{
    return room_bytes(want) + aligned(IMAGE_LINE_BYTES) + 2 * aligned(sizeof(uint32_t) * want->width);
}

static image_scratch divide(const image_want *want, uint8_t *scratch)
{
    image_scratch parts = {.room = scratch, .room_bytes = room_bytes(want)};
    const uint64_t column = aligned(sizeof(uint32_t) * want->width);
    uint8_t *next = scratch + parts.room_bytes;
    parts.line = next;
    next += aligned(IMAGE_LINE_BYTES);
    parts.at = (void *)next;
    parts.weight = (void *)(next + column);
    return parts;
}

hr_status image_decode(const image_file *file, const image_want *want, uint8_t *scratch, uint8_t *out,
                       hr_err *err)
{
    image_facts facts;
    HR_TRY(image_probe(file, &facts, err));
    const image_scratch parts = divide(want, scratch);
    return facts.kind == IMAGE_JPEG ? jpeg_decode(file, want, &parts, out, err)
                                    : png_decode(file, want, &parts, out, err);
}
