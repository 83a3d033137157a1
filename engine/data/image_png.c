// SPDX-License-Identifier: Apache-2.0
// PNG by libspng, row by row. It is handed the chunks that pixels need and no others: what a text or a colour profile
// inflates to is nobody's concern here.
#include <inttypes.h>
#include <spng.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/shared_library.h"
#include "data/image_rows.h"

enum {
    SIGNATURE_BYTES = 8,
    CHUNK_FRAME_BYTES = 12, // length, type, checksum
    IHDR_BYTES = 13,
    RGB = 3,
};

// X(name), without the library's `spng_`
#define PNG_CALL_MAP(X)                                                                                      \
    X(ctx_new2)                                                                                              \
    X(ctx_free)                                                                                              \
    X(strerror)                                                                                              \
    X(set_image_limits)                                                                                      \
    X(set_png_stream)                                                                                        \
    X(decode_image)                                                                                          \
    X(decode_row)                                                                                            \
    X(decode_chunks)                                                                                         \
    X(get_row_info)

static struct png_calls {
#define X(name) __typeof__(spng_##name) *name;
    PNG_CALL_MAP(X)
#undef X
} png;

static const shared_call png_calls[] = {
#define X(name) {"spng_" #name, offsetof(struct png_calls, name)},
    PNG_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof png == sizeof png_calls / sizeof *png_calls * sizeof(void *), "nothing but pointers");

static hr_status need_png(hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    static const shared_library wanted = {.soname = HEADROOM_SPNG_SONAME,
                                          .needed_by = "a PNG image",
                                          .hint = "apt install " HEADROOM_SPNG_PACKAGE
                                                  ", or -s pipeline.source=generated",
                                          .calls = png_calls,
                                          .call_count = sizeof png_calls / sizeof *png_calls};
    return shared_library_need(&wanted, &state, &png, err);
}

// ---- chunks -----------------------------------------------------------------------------------------------------

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

// Bytes of the chunk at `at`, with its frame; 0 when the file ends within it.
static uint64_t chunk_bytes(const image_file *file, uint64_t at)
{
    if (file->size_bytes - at < CHUNK_FRAME_BYTES) {
        return 0;
    }
    const uint64_t bytes = CHUNK_FRAME_BYTES + (uint64_t)big_endian(file->bytes + at);
    return bytes <= file->size_bytes - at ? bytes : 0;
}

// A capital first letter: pixels cannot be had without it.
static bool is_critical(const image_file *file, uint64_t at)
{
    return (file->bytes[at + 4] & 0x20) == 0;
}

static bool is_type(const image_file *file, uint64_t at, const char *type)
{
    return memcmp(file->bytes + at + 4, type, 4) == 0;
}

hr_status png_read_header(const image_file *file, png_header *header, hr_err *err)
{
    static const uint8_t components[7] = {1, 0, 3, 3, 2, 0, 4}; // by colour type
    const uint64_t at = SIGNATURE_BYTES;
    if (chunk_bytes(file, at) == 0) {
        return HR_FAIL(err, DATA,
                       "%s: needed a whole PNG image, had %" PRIu64 " bytes that end in its header",
                       file->name, file->size_bytes);
    }
    const uint8_t *data = file->bytes + at + 8;
    if (!is_type(file, at, "IHDR") || big_endian(data - 8) != IHDR_BYTES) {
        return HR_FAIL(err, DATA, "%s: needed a PNG that begins with its header, had another chunk",
                       file->name);
    }
    if (data[9] >= sizeof components || components[data[9]] == 0) {
        return HR_FAIL(err, DATA, "%s: needed a colour type of PNG (0, 2, 3, 4, 6), had %d", file->name,
                       data[9]);
    }
    *header = (png_header){.width = big_endian(data),
                           .height = big_endian(data + 4),
                           .bits = data[8],
                           .components = components[data[9]],
                           .interlaced = data[12] != 0};
    return HR_OK;
}

// Every chunk up to the end lies within the file.
static hr_status check_chunks(const image_file *file, hr_err *err)
{
    uint64_t at = SIGNATURE_BYTES;
    for (;;) {
        const uint64_t bytes = chunk_bytes(file, at);
        if (bytes == 0) {
            return HR_FAIL(err, DATA,
                           "%s: needed a whole PNG image, had %" PRIu64
                           " bytes that end in the chunk at offset %" PRIu64,
                           file->name, file->size_bytes, at);
        }
        if (is_type(file, at, "IEND")) {
            return HR_OK;
        }
        at += bytes;
    }
}

// ---- the library's view of the file -------------------------------------------------------------------------------

typedef struct png_work {
    const image_file *file;
    png_header header;
    uint64_t at, left; // next byte to hand over; bytes left of its chunk
    spng_ctx *context;
    uint8_t *room; // two rows, or all of them
    uint64_t row_bytes;
    uint8_t channels; // wanted
} png_work;

// Called back: the next bytes of the chunks that count.
static int hand_over(spng_ctx *context, void *user, void *to, size_t bytes)
{
    png_work *w = user;
    uint8_t *next = to;
    (void)context;
    while (bytes > 0) {
        while (w->left == 0) {
            const uint64_t chunk = chunk_bytes(w->file, w->at);
            if (chunk == 0) {
                return SPNG_IO_EOF;
            }
            if (is_critical(w->file, w->at)) {
                w->left = chunk;
            } else {
                w->at += chunk;
            }
        }
        const size_t now = bytes < w->left ? bytes : (size_t)w->left;
        memcpy(next, w->file->bytes + w->at, now);
        w->at += now;
        w->left -= now;
        next += now;
        bytes -= now;
    }
    return 0;
}

// The library calls all that goes wrong within inflate an error of the stream, and its allocator is told of no context.
static _Thread_local bool was_short;

static void *note(void *memory)
{
    was_short |= memory == NULL;
    return memory;
}

static void *take(size_t bytes)
{
    return note(hr_calloc(1, bytes));
}

static void *take_more(void *old, size_t bytes)
{
    return note(hr_realloc(old, 1, bytes));
}

static void *take_many(size_t count, size_t bytes)
{
    return note(hr_calloc(count, bytes));
}

static hr_status complain(const png_work *w, int code, hr_err *err)
{
    if (code == SPNG_EMEM || was_short) {
        return HR_FAIL(err, NOMEM, "%s: needed memory to decode %" PRIu32 " x %" PRIu32 " pixels, had less",
                       w->file->name, w->header.width, w->header.height);
    }
    return HR_FAIL(err, DATA, "%s: needed a whole PNG image of %" PRIu32 " x %" PRIu32 ", had: %s",
                   w->file->name, w->header.width, w->header.height, png.strerror(code));
}

static hr_status begin(png_work *w, hr_err *err)
{
    struct spng_alloc host = {
        .malloc_fn = take, .realloc_fn = take_more, .calloc_fn = take_many, .free_fn = hr_free};
    was_short = false;
    w->context = png.ctx_new2(&host, 0);
    if (w->context == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed memory for a PNG decoder, had none", w->file->name);
    }
    int code = png.set_image_limits(w->context, IMAGE_SIDE_MOST, IMAGE_SIDE_MOST);
    if (code == 0) {
        code = png.set_png_stream(w->context, hand_over, w);
    }
    if (code == 0) {
        code = png.decode_image(w->context, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE);
    }
    return code == 0 ? HR_OK : complain(w, code, err);
}

// The last row is behind us: so has to be the rest of the file.
static hr_status end(png_work *w, hr_err *err)
{
    const int code = png.decode_chunks(w->context);
    return code == 0 ? HR_OK : complain(w, code, err);
}

// ---- rows ---------------------------------------------------------------------------------------------------------

static hr_status next_row(void *context, uint32_t y, const uint8_t **row, hr_err *err)
{
    png_work *w = context;
    uint8_t *to = w->room + (y & 1) * w->row_bytes;
    const int code = png.decode_row(w->context, to, w->row_bytes);
    const bool last = y + 1 == w->header.height;
    if (code != (last ? SPNG_EOI : 0)) {
        return complain(w, code, err);
    }
    if (w->channels == 1) {
        image_grey_of_rgb(to, to, w->header.width);
    }
    *row = to;
    return last ? end(w, err) : HR_OK;
}

// All rows of an interlaced image, each pass into its places.
static hr_status decode_passes(png_work *w, hr_err *err)
{
    int code;
    do {
        struct spng_row_info info;
        code = png.get_row_info(w->context, &info);
        if (code == 0) {
            code = png.decode_row(w->context, w->room + info.row_num * w->row_bytes, w->row_bytes);
        }
    } while (code == 0);
    if (code != SPNG_EOI) {
        return complain(w, code, err);
    }
    if (w->channels == 1) {
        image_grey_of_rgb(w->room, w->room, (uint64_t)w->header.width * w->header.height);
    }
    return end(w, err);
}

static hr_status decode(png_work *w, const image_want *want, const image_scratch *scratch, uint8_t *out,
                        hr_err *err)
{
    image_rows rows = {.width = w->header.width, .height = w->header.height, .channels = want->channels};
    HR_TRY(begin(w, err));
    if (w->header.interlaced) {
        HR_TRY(decode_passes(w, err));
        rows.whole = w->room;
    } else {
        rows.next = next_row;
        rows.context = w;
    }
    return image_resize(&rows, want, scratch, out, err);
}

hr_status png_decode(const image_file *file, const image_want *want, const image_scratch *scratch,
                     uint8_t *out, hr_err *err)
{
    png_work w = {.file = file, .left = SIGNATURE_BYTES, .room = scratch->room, .channels = want->channels};
    HR_TRY(png_read_header(file, &w.header, err));
    w.row_bytes = (uint64_t)w.header.width * RGB;
    if (w.header.interlaced && w.row_bytes * w.header.height > scratch->room_bytes) {
        return HR_FAIL(err, DATA,
                       "%s: needed an interlaced PNG of at most %" PRIu64 " bytes, had %" PRIu32 " x %" PRIu32
                       " pixels",
                       file->name, scratch->room_bytes, w.header.width, w.header.height);
    }
    HR_TRY(check_chunks(file, err));
    HR_TRY(need_png(err));
    hr_status status = decode(&w, want, scratch, out, err);
    png.ctx_free(w.context);
    return status;
}
