// SPDX-License-Identifier: Apache-2.0
// Reading: fields in any order, unknown ones passed over.
#include "formats/memory_dump.h"

#include <inttypes.h>
#include <string.h>

#include "events/heap_tiles.h"
#include "formats/heap_trace.h"
#include "formats/varint.h"

enum { WIRE_VARINT, WIRE_8_BYTES, WIRE_BYTES, WIRE_4_BYTES = 5 };
enum { FIELD_NAME = 1, FIELD_BIN, FIELD_CHUNK, FIELD_SNAPSHOT, FIELD_STATS, FIELDS_END };
enum { MESSAGE_MAX = 1 << 20, SIGN_FIELDS = 8 };

typedef struct memory_dump {
    input *in;
    heap_snapshot snapshot;
} memory_dump;

static hr_status refuse(const memory_dump *r, const char *wanted, hr_err *err)
{
    (void)HR_FAIL(err, READ, "%s: needed %s at byte %" PRIu64, r->in->name, wanted, input_offset(r->in));
    hr_err_try(err, "TF_BFC_MEMORY_DUMP=/tmp/dump in the environment of the run, for another one");
    return HR_READ;
}

// ---- fields of a message --------------------------------------------------------------------------------------

typedef struct proto_field {
    uint64_t number;
    unsigned wire;
    uint64_t value;  // of a varint
    byte_span bytes; // of a message or text
} proto_field;

static bool pass_bytes(byte_span *s, uint64_t count)
{
    const bool fits = count <= (uint64_t)(s->end - s->at);
    s->at += fits ? count : 0;
    return fits;
}

static bool take_field(byte_span *s, proto_field *f)
{
    uint64_t key;
    *f = (proto_field){0};
    if (!varint_take(s, &key) || key >> 3 == 0) {
        return false;
    }
    f->number = key >> 3;
    f->wire = key & 7;
    if (f->wire == WIRE_VARINT) {
        return varint_take(s, &f->value);
    }
    if (f->wire == WIRE_8_BYTES || f->wire == WIRE_4_BYTES) {
        return pass_bytes(s, f->wire == WIRE_8_BYTES ? 8 : 4);
    }
    f->bytes.at = s->at;
    if (f->wire != WIRE_BYTES || !varint_take(s, &f->value)) {
        return false;
    }
    f->bytes.at = s->at;
    f->bytes.end = s->at + (f->value <= (uint64_t)(s->end - s->at) ? f->value : 0);
    return pass_bytes(s, f->value);
}

// ---- chunks ---------------------------------------------------------------------------------------------------

typedef struct proto_chunk {
    uint64_t number[10]; // by field
    byte_span op;
} proto_chunk;

enum {
    CHUNK_ADDRESS = 1,
    CHUNK_SIZE,
    CHUNK_REQUESTED,
    CHUNK_BIN,
    CHUNK_OP,
    CHUNK_FREED_AT,
    CHUNK_ACTION,
    CHUNK_IN_USE
};

static bool parse_chunk(byte_span message, proto_chunk *chunk)
{
    proto_field f;
    *chunk = (proto_chunk){0};
    while (message.at < message.end) {
        if (!take_field(&message, &f)) {
            return false;
        }
        if (f.number == CHUNK_OP && f.wire == WIRE_BYTES) {
            chunk->op = f.bytes;
        } else if (f.wire == WIRE_VARINT && f.number < sizeof chunk->number / sizeof *chunk->number) {
            chunk->number[f.number] = f.value;
        }
    }
    return true;
}

static bool is_sound(const proto_chunk *c)
{
    const uint64_t size = c->number[CHUNK_SIZE];
    uint64_t end;
    return size > 0 && size <= INT64_MAX && !__builtin_add_overflow(c->number[CHUNK_ADDRESS], size, &end) &&
           (c->number[CHUNK_IN_USE] == 0 || c->number[CHUNK_REQUESTED] <= size);
}

static hr_status no_memory(const memory_dump *r, hr_err *err)
{
    return HR_FAIL(err, NOMEM, "%s: needed host memory for chunk %" PRIu32 ", had none", r->in->name,
                   r->snapshot.chunks.count);
}

static hr_status add_chunk(memory_dump *r, const proto_chunk *said, hr_err *err)
{
    const bool in_use = said->number[CHUNK_IN_USE] != 0;
    const size_t length = (size_t)(said->op.end - said->op.at);
    heap_chunk chunk = {.address = said->number[CHUNK_ADDRESS],
                        .size_bytes = said->number[CHUNK_SIZE],
                        .requested_bytes = in_use ? said->number[CHUNK_REQUESTED] : 0,
                        .since = said->number[CHUNK_ACTION],
                        .freed_at = in_use ? 0 : said->number[CHUNK_FREED_AT],
                        .tensor = HR_NO_ID,
                        .handle = HR_NO_ID,
                        .in_use = in_use};
    if (in_use && length > 0) {
        chunk.tensor = intern_add(&r->snapshot.names, (const char *)said->op.at, length);
        if (chunk.tensor == INTERN_NONE) {
            return no_memory(r, err);
        }
    }
    heap_chunk *added = vec_push(&r->snapshot.chunks);
    if (added == NULL) {
        return no_memory(r, err);
    }
    *added = chunk;
    return HR_OK;
}

static hr_status read_chunk(memory_dump *r, byte_span message, hr_err *err)
{
    proto_chunk chunk;
    if (!parse_chunk(message, &chunk)) {
        return refuse(r, "a whole MemChunk before what comes", err);
    }
    return is_sound(&chunk)
               ? add_chunk(r, &chunk, err)
               : refuse(r,
                        "a MemChunk with a size above 0, and no more requested than that, before what comes",
                        err);
}

// ---- the rest -------------------------------------------------------------------------------------------------

static hr_status read_name(memory_dump *r, byte_span name, hr_err *err)
{
    (void)err;
    const size_t room = sizeof r->snapshot.source - 1;
    const size_t length = (size_t)(name.end - name.at) < room ? (size_t)(name.end - name.at) : room;
    memset(r->snapshot.source, 0, sizeof r->snapshot.source);
    memcpy(r->snapshot.source, name.at, length);
    return HR_OK;
}

static hr_status read_stats(memory_dump *r, byte_span message, hr_err *err)
{
    heap_counters *c = &r->snapshot.counters;
    proto_field f;
    while (message.at < message.end) {
        if (!take_field(&message, &f)) {
            return refuse(r, "a whole MemAllocatorStats before what comes", err);
        }
        uint64_t *counter = f.number == 1   ? &c->allocations
                            : f.number == 3 ? &c->peak_in_use_bytes
                            : f.number == 4 ? &c->largest_allocation_bytes
                                            : NULL;
        if (counter != NULL && f.wire == WIRE_VARINT && f.value <= INT64_MAX) {
            *counter = f.value;
        }
    }
    return HR_OK;
}

static hr_status take_number(memory_dump *r, uint64_t *out, hr_err *err)
{
    const size_t ahead = input_ahead(r->in, VARINT_MAX);
    byte_span s = {(const uint8_t *)input_here(r->in), (const uint8_t *)input_here(r->in) + ahead};
    const uint8_t *start = s.at;
    if (!varint_take(&s, out)) {
        HR_TRY(input_status(r->in, err));
        return refuse(r, "a number in at most ten bytes", err);
    }
    input_pass(r->in, (size_t)(s.at - start));
    return HR_OK;
}

static hr_status skip(memory_dump *r, uint64_t bytes, hr_err *err)
{
    if (input_skip(r->in, bytes)) {
        return HR_OK;
    }
    HR_TRY(input_status(r->in, err));
    return refuse(r, "the rest of a field", err);
}

// A message or a text of the dump.
static hr_status read_bytes(memory_dump *r, uint64_t number, hr_err *err)
{
    static hr_status (*const readers[FIELDS_END])(memory_dump *, byte_span, hr_err *) = {
        [FIELD_NAME] = read_name, [FIELD_CHUNK] = read_chunk, [FIELD_STATS] = read_stats};
    uint64_t length;
    HR_TRY(take_number(r, &length, err));
    if (number >= FIELDS_END || readers[number] == NULL) {
        return skip(r, length, err);
    }
    if (length > MESSAGE_MAX) {
        return refuse(r, "a field of at most a mebibyte", err);
    }
    const char *bytes = input_take(r->in, (size_t)length);
    if (bytes == NULL) {
        HR_TRY(input_status(r->in, err));
        return refuse(r, "the rest of a field", err);
    }
    return readers[number](r, (byte_span){(const uint8_t *)bytes, (const uint8_t *)bytes + length}, err);
}

static hr_status read_field(memory_dump *r, hr_err *err)
{
    uint64_t key, value;
    HR_TRY(take_number(r, &key, err));
    if (key >> 3 == 0) { // no message has it: zeros behind the dump
        return refuse(r, "a field with a number", err);
    }
    switch (key & 7) {
    case WIRE_VARINT:
        return take_number(r, &value, err);
    case WIRE_8_BYTES:
        return skip(r, 8, err);
    case WIRE_4_BYTES:
        return skip(r, 4, err);
    case WIRE_BYTES:
        return read_bytes(r, key >> 3, err);
    default:
        return refuse(r, "a field of a kind that Protocol Buffers have, before what comes", err);
    }
}

static hr_status read_fields(memory_dump *r, hr_err *err)
{
    while (input_ahead(r->in, 1) > 0) {
        HR_TRY(read_field(r, err));
    }
    HR_TRY(input_status(r->in, err));
    if (r->snapshot.chunks.count == 0) {
        return refuse(r, "a heap with chunks: it has none, and ends", err);
    }
    return heap_tile(&r->snapshot, NULL, 0, r->in->name, err);
}

static hr_status read_memory_dump(input *in, trace *t, hr_err *err)
{
    memory_dump r = {.in = in};
    hr_status status = read_fields(&r, err);
    if (status != HR_OK) {
        heap_snapshot_deinit(&r.snapshot);
        return status;
    }
    heap_counters *c = &r.snapshot.counters;
    c->peak_pool_bytes =
        c->peak_pool_bytes < c->peak_in_use_bytes ? c->peak_in_use_bytes : c->peak_pool_bytes;
    t->dumps = 1;
    return trace_of_heap(t, &r.snapshot, err);
}

// ---- recognising ----------------------------------------------------------------------------------------------

static bool is_name(byte_span s)
{
    bool printable = s.at < s.end;
    for (; s.at < s.end; s.at++) {
        printable = printable && *s.at > ' ' && *s.at <= '~';
    }
    return printable;
}

// A name first, and then nothing but this message's own fields, as far as one looks.
static bool recognise(const char *start, size_t bytes)
{
    byte_span s = {(const uint8_t *)start, (const uint8_t *)start + bytes};
    proto_field f;
    if (!take_field(&s, &f) || f.number != FIELD_NAME || f.wire != WIRE_BYTES || !is_name(f.bytes) ||
        s.at == s.end) {
        return false;
    }
    for (unsigned k = 0; k < SIGN_FIELDS && s.at < s.end; k++) {
        uint64_t length;
        const uint8_t key = *s.at++;
        if (key >> 3 < FIELD_BIN || key >> 3 > FIELD_STATS || (key & 7) != WIRE_BYTES) {
            return false;
        }
        if (!varint_take(&s, &length) || length > MESSAGE_MAX || !pass_bytes(&s, length)) {
            return k > 0; // cut, or reaching beyond what is looked at
        }
    }
    return true;
}

const trace_format trace_format_memory_dump = {
    .name = "memory_dump",
    .line = "a MemoryDump of TensorFlow (TF_BFC_MEMORY_DUMP)",
    .recognise = recognise,
    .read = read_memory_dump,
};
