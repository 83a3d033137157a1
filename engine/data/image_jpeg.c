// SPDX-License-Identifier: Apache-2.0
// JPEG by TurboJPEG: libjpeg's own errors leave through longjmp, which TurboJPEG keeps to itself (docs/decisions/0053).
#include <inttypes.h>
#include <string.h>
#include <turbojpeg.h>

#include "base/shared_library.h"
#include "data/image_rows.h"

enum {
    COEFFICIENTS_MOST_BYTES =
        64 << 20, // of an image in several scans; the rest of IMAGE_LIBRARY_MOST_BYTES is for rows
    CMYK = 4,
};
_Static_assert(COEFFICIENTS_MOST_BYTES + (8 << 20) <= IMAGE_LIBRARY_MOST_BYTES, "rows need their share");

// X(name), without the library's `tj`
#define JPEG_CALL_MAP(X)                                                                                     \
    X(InitDecompress) X(DecompressHeader3) X(Decompress2) X(GetErrorStr2) X(GetErrorCode) X(Destroy)

static struct jpeg_calls {
#define X(name) __typeof__(tj##name) *name;
    JPEG_CALL_MAP(X)
#undef X
} jpeg;

static const shared_call jpeg_calls[] = {
#define X(name) {"tj" #name, offsetof(struct jpeg_calls, name)},
    JPEG_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof jpeg == sizeof jpeg_calls / sizeof *jpeg_calls * sizeof(void *),
               "nothing but pointers");

static hr_status need_jpeg(hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    static const shared_library wanted = {.soname = HEADROOM_TURBOJPEG_SONAME,
                                          .needed_by = "a JPEG image",
                                          .hint = "apt install " HEADROOM_TURBOJPEG_PACKAGE
                                                  ", or -s pipeline.source=generated",
                                          .calls = jpeg_calls,
                                          .call_count = sizeof jpeg_calls / sizeof *jpeg_calls};
    return shared_library_need(&wanted, &state, &jpeg, err);
}

// One image on its way.
typedef struct jpeg_work {
    const image_file *file;
    jpeg_header header;
    uint32_t width, height; // decoded
    uint8_t pixel_bytes;    // decoded
    int format;             // TJPF_…
    uint8_t *room;
    tjhandle handle;
} jpeg_work;

// The size at 1/8 (eighths 1), …, 8/8.
static uint32_t scaled(uint32_t side, uint32_t eighths)
{
    return (side * eighths + 7) / 8;
}

static bool fits(const jpeg_work *w, uint32_t eighths, uint64_t room_bytes)
{
    return (uint64_t)scaled(w->header.width, eighths) * scaled(w->header.height, eighths) * w->pixel_bytes <=
           room_bytes;
}

// Other eighths would be nearer to what is wanted, but they are slower than the next power of two: it alone has vector code.
static hr_status choose_size(jpeg_work *w, const image_want *want, uint64_t room_bytes, hr_err *err)
{
    const jpeg_header *h = &w->header;
    if (h->passes_bytes > COEFFICIENTS_MOST_BYTES) {
        return HR_FAIL(err, DATA,
                       "%s: needed a JPEG in one scan, or at most %d bytes of coefficients, had %" PRIu64,
                       w->file->name, COEFFICIENTS_MOST_BYTES, h->passes_bytes);
    }
    if (!fits(w, 1, room_bytes)) {
        return HR_FAIL(err, DATA,
                       "%s: needed a JPEG with at most %" PRIu64 " bytes at 1/8 of its size, had %" PRIu32
                       " x %" PRIu32 " pixels",
                       w->file->name, room_bytes, h->width, h->height);
    }
    uint32_t eighths = 1;
    while (eighths < 8 && fits(w, 2 * eighths, room_bytes) &&
           (scaled(h->width, eighths) < want->width || scaled(h->height, eighths) < want->height)) {
        eighths *= 2;
    }
    w->width = scaled(h->width, eighths);
    w->height = scaled(h->height, eighths);
    return HR_OK;
}

static hr_status complain(const jpeg_work *w, hr_err *err)
{
    const char *why = jpeg.GetErrorStr2(w->handle);
    if (strstr(why, "emory") != NULL) { // "Insufficient memory", "Memory allocation failure"
        return HR_FAIL(err, NOMEM, "%s: needed memory to decode %" PRIu32 " x %" PRIu32 " pixels, had less",
                       w->file->name, w->header.width, w->header.height);
    }
    return HR_FAIL(err, DATA,
                   "%s: needed a whole JPEG image of %" PRIu32 " x %" PRIu32 ", had %" PRIu64 " bytes: %s",
                   w->file->name, w->header.width, w->header.height, w->file->size_bytes, why);
}

// Of the library's warnings the one that says nothing of the pixels: bytes too many before a marker.
static bool is_harmless(const jpeg_work *w)
{
    return jpeg.GetErrorCode(w->handle) == TJERR_WARNING &&
           strstr(jpeg.GetErrorStr2(w->handle), "extraneous bytes before marker") != NULL;
}

static int decompress(const jpeg_work *w, int flags)
{
    const image_file *f = w->file;
    return jpeg.Decompress2(w->handle, f->bytes, (unsigned long)f->size_bytes, w->room, (int)w->width, 0,
                            (int)w->height, w->format, flags | TJFLAG_LIMITSCANS);
}

// The library reads the header by itself: what it finds has to be what the limits were checked against.
static hr_status agree(const jpeg_work *w, hr_err *err)
{
    int width = 0, height = 0, sampling, space;
    const image_file *f = w->file;
    if (jpeg.DecompressHeader3(w->handle, f->bytes, (unsigned long)f->size_bytes, &width, &height, &sampling,
                               &space) != 0 &&
        !is_harmless(w)) {
        return complain(w, err);
    }
    if ((uint32_t)width != w->header.width || (uint32_t)height != w->header.height) {
        return HR_FAIL(err, DATA, "%s: needed one JPEG header, had two that differ", f->name);
    }
    return HR_OK;
}

static hr_status decompress_whole(const jpeg_work *w, hr_err *err)
{
    HR_TRY(agree(w, err));
    if (decompress(w, TJFLAG_STOPONWARNING) == 0) {
        return HR_OK;
    }
    if (!is_harmless(w) || (decompress(w, 0) != 0 && !is_harmless(w))) {
        return complain(w, err);
    }
    return HR_OK;
}

// CMYK to colour or grey, in place: each pixel moves towards the front.
static void light_of_ink(const jpeg_work *w, uint8_t channels)
{
    const uint8_t flip = w->header.inverted ? 0 : 255;
    const uint64_t pixels = (uint64_t)w->width * w->height;
    for (uint64_t k = 0; k < pixels; k++) {
        const uint8_t *ink = w->room + CMYK * k;
        const uint32_t black = ink[3] ^ flip;
        uint8_t *to = w->room + 3 * k;
        for (int c = 0; c < 3; c++) {
            to[c] = (uint8_t)((ink[c] ^ flip) * black / 255);
        }
    }
    if (channels == 1) {
        image_grey_of_rgb(w->room, w->room, pixels);
    }
}

hr_status jpeg_decode(const image_file *file, const image_want *want, const image_scratch *scratch,
                      uint8_t *out, hr_err *err)
{
    jpeg_work w = {.file = file, .room = scratch->room};
    HR_TRY(jpeg_read_header(file, &w.header, err));
    const bool ink = w.header.components == CMYK;
    w.pixel_bytes = ink ? CMYK : want->channels;
    w.format = ink ? TJPF_CMYK : want->channels == 1 ? TJPF_GRAY : TJPF_RGB;
    HR_TRY(choose_size(&w, want, scratch->room_bytes, err));
    HR_TRY(need_jpeg(err));
    const bool as_wanted = !ink && w.width == want->width && w.height == want->height;
    w.room = as_wanted ? out : w.room;
    w.handle = jpeg.InitDecompress();
    if (w.handle == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed memory for a JPEG decoder, had none", file->name);
    }
    hr_status status = decompress_whole(&w, err);
    jpeg.Destroy(w.handle);
    if (status != HR_OK || as_wanted) {
        return status;
    }
    if (ink) {
        light_of_ink(&w, want->channels);
    }
    image_rows rows = {.width = w.width, .height = w.height, .channels = want->channels, .whole = w.room};
    return image_resize(&rows, want, scratch, out, err);
}
