// SPDX-License-Identifier: Apache-2.0
#include "data/tfrecord.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/crc32c.h"

enum { PIECE_BYTES = 4096, FIRST_OFFSETS = 1024, LENGTH_BYTES = 8, SUM_BYTES = 4 };

static uint32_t u32_at(const uint8_t *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t length_at(const uint8_t *head)
{
    return u32_at(head) | (uint64_t)u32_at(head + 4) << 32;
}

static hr_status look_at_beginning(void *context, const char *name, const uint8_t *bytes, uint32_t count,
                                   part *p, hr_err *err)
{
    (void)context;
    (void)p;
    if (count < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b ||
        (count >= TFRECORD_HEAD_BYTES &&
         crc32c_masked(bytes, LENGTH_BYTES) == u32_at(bytes + LENGTH_BYTES))) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, DATA, "%s: needed records as they are, had them compressed (GZIP)", name);
    hr_err_try(err, "gunzip -c FILE.gz >FILE.tfrecord, or tf.io.TFRecordWriter without options");
    return status;
}

// ---- where records begin --------------------------------------------------------------------------------------

// A run that is gone through from the front.
typedef struct record_walk {
    tfrecords *t;
    uint32_t room; // offsets that there is room for
    uint64_t piece_offset;
    uint32_t piece_bytes;
    uint8_t piece[PIECE_BYTES];
} record_walk;

static hr_status refuse(const tfrecords *t, uint64_t offset, const char *needed, uint64_t had, hr_err *err)
{
    char place[PARTS_PLACE_MAX];
    return HR_FAIL(err, DATA, "%s: needed %s, had %" PRIu64,
                   parts_place(&t->files, offset, place, sizeof place), needed, had);
}

// *head: the head of the record at `offset`, which lies in the run.
static hr_status head_at(record_walk *w, uint64_t offset, const uint8_t **head, hr_err *err)
{
    const uint64_t in_piece = offset - w->piece_offset;
    if (in_piece + TFRECORD_HEAD_BYTES > w->piece_bytes) {
        const uint64_t left = w->t->files.size_bytes - offset;
        w->piece_offset = offset;
        w->piece_bytes = (uint32_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
        HR_TRY(parts_at(&w->t->files, offset, w->piece_bytes, w->piece, err));
    }
    *head = w->piece + (offset - w->piece_offset);
    return HR_OK;
}

static hr_status keep_offset(record_walk *w, uint64_t offset, hr_err *err)
{
    tfrecords *t = w->t;
    if (t->count == TFRECORD_MOST_RECORDS) {
        return refuse(t, offset, "at most 33554432 records", UINT64_C(1) + t->count, err);
    }
    if (t->count == w->room) {
        const uint32_t room = w->room > 0 ? w->room * 2 : FIRST_OFFSETS;
        uint64_t *grown = hr_realloc(t->offset, room, sizeof *grown);
        if (grown == NULL) {
            return HR_FAIL(err, NOMEM, "%s: needed %zu bytes for where its records begin, had less",
                           t->files.names, room * sizeof *grown);
        }
        t->offset = grown;
        w->room = room;
    }
    t->offset[t->count++] = offset;
    return HR_OK;
}

// The record at `offset` of a file that ends at `end`.
static hr_status walk_record(record_walk *w, uint64_t offset, uint64_t end, uint64_t *next, hr_err *err)
{
    tfrecords *t = w->t;
    const uint8_t *head;
    if (end - offset < TFRECORD_FRAME_BYTES) {
        return refuse(t, offset, "a whole record of at least 16 bytes", end - offset, err);
    }
    HR_TRY(head_at(w, offset, &head, err));
    const uint64_t length = length_at(head);
    const uint32_t sum = crc32c_masked(head, LENGTH_BYTES), had = u32_at(head + LENGTH_BYTES);
    if (sum != had) {
        char place[PARTS_PLACE_MAX];
        return HR_FAIL(err, DATA,
                       "%s: needed the head of a record, with the sum %08x of its length, had %08x",
                       parts_place(&t->files, offset, place, sizeof place), sum, had);
    }
    if (length > TFRECORD_MOST_BYTES) {
        return refuse(t, offset, "records of at most 268435456 bytes", length, err);
    }
    if (length > end - offset - TFRECORD_FRAME_BYTES) {
        char needed[64];
        (void)snprintf(needed, sizeof needed, "%" PRIu64 " bytes for the record",
                       length + TFRECORD_FRAME_BYTES);
        return refuse(t, offset, needed, end - offset, err);
    }
    t->most_bytes = length > t->most_bytes ? (uint32_t)length : t->most_bytes;
    *next = offset + TFRECORD_FRAME_BYTES + length;
    return keep_offset(w, offset, err);
}

static hr_status walk_files(tfrecords *t, hr_err *err)
{
    record_walk w = {.t = t};
    for (uint32_t k = 0; k < t->files.count; k++) {
        const part *p = &t->files.part[k];
        for (uint64_t at = p->start; at < p->start + p->facts.size_bytes;) {
            HR_TRY(walk_record(&w, at, p->start + p->facts.size_bytes, &at, err));
        }
    }
    return HR_OK;
}

hr_status tfrecords_open(const char *folder, const listing *from, name_use use, tfrecords *out, hr_err *err)
{
    *out = (tfrecords){.count = 0};
    HR_TRY(parts_open(folder, from, use, look_at_beginning, NULL, &out->files, err));
    HR_TRY(walk_files(out, err));
    out->held_bytes = out->files.held_bytes + out->count * sizeof *out->offset;
    if (out->count > 0) { // no more than they take
        uint64_t *exact = hr_realloc(out->offset, out->count, sizeof *exact);
        if (exact == NULL) {
            return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes for where its records begin, had less",
                           folder, out->count * sizeof *exact);
        }
        out->offset = exact;
    }
    return HR_OK;
}

void tfrecords_close(tfrecords *t)
{
    parts_close(&t->files);
    hr_free(t->offset);
    *t = (tfrecords){.count = 0};
}

// ---- records --------------------------------------------------------------------------------------------------

// Files hold nothing between records: one ends where the next begins.
uint32_t tfrecords_bytes(const tfrecords *t, uint32_t index)
{
    const uint64_t end = index + 1 < t->count ? t->offset[index + 1] : t->files.size_bytes;
    return (uint32_t)(end - t->offset[index] - TFRECORD_FRAME_BYTES);
}

uint32_t tfrecords_from(const tfrecords *t, uint64_t offset)
{
    uint32_t below = 0, above = t->count;
    while (below < above) {
        const uint32_t middle = below + (above - below) / 2;
        if (t->offset[middle] < offset) {
            below = middle + 1;
        } else {
            above = middle;
        }
    }
    return below;
}

hr_status tfrecords_read(const tfrecords *t, uint32_t index, uint8_t *room, const uint8_t **data, hr_err *err)
{
    const uint32_t bytes = tfrecords_bytes(t, index);
    HR_TRY(parts_at(&t->files, t->offset[index], bytes + TFRECORD_FRAME_BYTES, room, err));
    const uint8_t *at = room + TFRECORD_HEAD_BYTES;
    const uint32_t sum = crc32c_masked(at, bytes), had = u32_at(at + bytes);
    if (sum != had) {
        char place[PARTS_PLACE_MAX];
        return HR_FAIL(err, DATA, "%s: needed data with the sum %08x, had %08x",
                       tfrecords_place(t, index, place), had, sum);
    }
    *data = at;
    return HR_OK;
}

const char *tfrecords_place(const tfrecords *t, uint32_t index, char *text)
{
    return parts_place(&t->files, t->offset[index], text, PARTS_PLACE_MAX);
}
