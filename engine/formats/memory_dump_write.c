// SPDX-License-Identifier: Apache-2.0
// Writing a MemoryDump. As in every Protocol Buffers writer of today, fields that are zero are left out.
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "formats/memory_dump.h"
#include "formats/varint.h"

enum { BINS = 21, SMALLEST_BIN_BYTES = 256 };

typedef struct bin_summary {
    uint64_t in_use_bytes, bytes, chunks_in_use, chunks;
} bin_summary;

static void put_number(text *to, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    const size_t count = varint_put(bytes, value);
    text_append_bytes(to, (const char *)bytes, count);
}

static void put_u64(text *to, uint64_t field, uint64_t value)
{
    if (value != 0) {
        put_number(to, field << 3);
        put_number(to, value);
    }
}

static void put_bytes(text *to, uint64_t field, const char *bytes, size_t count)
{
    put_number(to, field << 3 | 2);
    put_number(to, count);
    text_append_bytes(to, bytes == NULL ? "" : bytes, count);
}

static void put_float(text *to, uint64_t field, double value)
{
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (bits != 0) {
        const char bytes[] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
        put_number(to, field << 3 | 5);
        text_append_bytes(to, bytes, sizeof bytes);
    }
}

// TensorFlow's bin of a size: bin k begins at 256 << k bytes, the last one has no end.
static unsigned bin_of(uint64_t bytes)
{
    unsigned bin = 0;
    while (bin + 1 < BINS && bytes >= (uint64_t)SMALLEST_BIN_BYTES << (bin + 1)) {
        bin++;
    }
    return bin;
}

static void put_bins(text *to, const heap_snapshot *p)
{
    bin_summary bins[BINS] = {0};
    text message = {0};
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        const heap_chunk *c = &p->chunks.data[k];
        bin_summary *bin = &bins[bin_of(c->size_bytes)];
        bin->bytes += c->size_bytes;
        bin->in_use_bytes += c->in_use ? c->size_bytes : 0;
        bin->chunks++;
        bin->chunks_in_use += c->in_use;
    }
    for (unsigned k = 0; k < BINS; k++) {
        message.length = 0;
        put_u64(&message, 1, k);
        put_u64(&message, 2, bins[k].in_use_bytes);
        put_u64(&message, 3, bins[k].bytes);
        put_u64(&message, 4, bins[k].chunks_in_use);
        put_u64(&message, 5, bins[k].chunks);
        put_bytes(to, 2, message.data, message.length);
    }
    to->failed |= message.failed;
    text_deinit(&message);
}

static void put_chunk(text *to, text *message, const heap_snapshot *p, const heap_chunk *c)
{
    const char *op = intern_text(&p->names, c->tensor);
    message->length = 0;
    put_u64(message, 1, c->address);
    put_u64(message, 2, c->size_bytes);
    put_u64(message, 3, c->requested_bytes);
    put_u64(message, 4, c->in_use ? UINT64_MAX : bin_of(c->size_bytes)); // -1: in no bin
    if (op != NULL && op[0] != '\0') {
        put_bytes(message, 5, op, strlen(op));
    }
    put_u64(message, 6, c->freed_at);
    put_u64(message, 7, c->since);
    put_u64(message, 8, c->in_use);
    put_bytes(to, 3, message->data, message->length);
    to->failed |= message->failed;
}

static void put_stats(text *to, const heap_snapshot *p)
{
    const heap_counters *c = &p->counters;
    text message = {0};
    put_u64(&message, 1, c->allocations);
    put_u64(&message, 2, c->in_use_bytes);
    put_u64(&message, 3, c->peak_in_use_bytes);
    put_u64(&message, 4, c->largest_allocation_bytes);
    put_float(&message, 5, c->fragmentation);
    put_bytes(to, 5, message.data, message.length);
    to->failed |= message.failed;
    text_deinit(&message);
}

static hr_status flush(file_writer *w, text *to, hr_err *err)
{
    if (to->failed) {
        return HR_FAIL(err, NOMEM, "memory dump: needed memory for one chunk, had none");
    }
    hr_status status = file_writer_add(w, to->data, to->length, err);
    to->length = 0;
    return status;
}

static hr_status put_all(file_writer *w, text *to, text *message, const heap_snapshot *p, hr_err *err)
{
    put_bytes(to, 1, p->source, strlen(p->source));
    put_bins(to, p);
    HR_TRY(flush(w, to, err));
    for (uint32_t k = 0; k < p->chunks.count; k++) {
        put_chunk(to, message, p, &p->chunks.data[k]);
        HR_TRY(flush(w, to, err));
    }
    put_stats(to, p);
    return flush(w, to, err);
}

hr_status memory_dump_write(const char *path, const heap_snapshot *p, hr_err *err)
{
    file_writer *w;
    text to = {0}, message = {0};
    HR_TRY(file_writer_open(path, &w, err));
    hr_status status = put_all(w, &to, &message, p, err);
    text_deinit(&to);
    text_deinit(&message);
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}
