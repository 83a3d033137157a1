// SPDX-License-Identifier: Apache-2.0
// Bodies of messages: numbers and texts one after the other (session/wire.h).
#include <string.h>

#include "base/host_mem.h"
#include "session/wire.h"

enum { FIRST_ROOM_BYTES = 256 };

void wire_put(wire_out *o, const void *data, size_t bytes)
{
    if (o->bad || bytes == 0) {
        return;
    }
    if (bytes > WIRE_BODY_MAX - o->bytes) {
        o->bad = true;
        return;
    }
    size_t room = o->room < FIRST_ROOM_BYTES ? FIRST_ROOM_BYTES : o->room;
    while (room < o->bytes + bytes) {
        room *= 2;
    }
    uint8_t *grown = room == o->room ? o->data : hr_realloc(o->data, room, 1);
    if (grown == NULL) {
        o->bad = true;
        return;
    }
    o->data = grown;
    o->room = room;
    memcpy(o->data + o->bytes, data, bytes);
    o->bytes += bytes;
}

void wire_put_u32(wire_out *o, uint32_t value)
{
    wire_put(o, &value, sizeof value);
}

void wire_put_u64(wire_out *o, uint64_t value)
{
    wire_put(o, &value, sizeof value);
}

void wire_put_text(wire_out *o, const char *text)
{
    size_t bytes = text != NULL ? strlen(text) : 0;
    wire_put_u32(o, (uint32_t)bytes);
    wire_put(o, text, bytes);
}

void wire_out_deinit(wire_out *o)
{
    hr_free(o->data);
    *o = (wire_out){0};
}

void wire_get(wire_in *in, void *data, size_t bytes)
{
    in->bad = in->bad || bytes > in->bytes - in->at;
    if (bytes == 0) {
        return;
    }
    if (in->bad) {
        memset(data, 0, bytes);
        return;
    }
    memcpy(data, in->data + in->at, bytes);
    in->at += bytes;
}

uint32_t wire_get_u32(wire_in *in)
{
    uint32_t value = 0;
    wire_get(in, &value, sizeof value);
    return value;
}

uint64_t wire_get_u64(wire_in *in)
{
    uint64_t value = 0;
    wire_get(in, &value, sizeof value);
    return value;
}

void wire_get_text(wire_in *in, char *text, size_t size)
{
    uint32_t bytes = wire_get_u32(in);
    memset(text, 0, size);
    if (in->bad || bytes >= size) {
        in->bad = true;
        return;
    }
    wire_get(in, text, bytes);
    if (memchr(text, '\0', bytes) != NULL) { // a text of its length, or none
        memset(text, 0, size);
        in->bad = true;
    }
}

void *wire_get_array(wire_in *in, uint64_t count, size_t record_bytes)
{
    if (in->bad || count == 0) {
        return NULL;
    }
    if (record_bytes == 0 || count > (in->bytes - in->at) / record_bytes) {
        in->bad = true;
        return NULL;
    }
    void *records = hr_calloc((size_t)count, record_bytes);
    in->bad = records == NULL;
    return records;
}
