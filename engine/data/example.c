// SPDX-License-Identifier: Apache-2.0
#include "data/example.h"

#include <string.h>

// https://protobuf.dev/programming-guides/encoding
enum {
    WIRE_VARINT = 0,
    WIRE_64 = 1,
    WIRE_BYTES = 2,
    WIRE_32 = 5,
    VARINT_MOST_BYTES = 10,
    FLOAT_BYTES = 4,
};
_Static_assert(sizeof(float) == FLOAT_BYTES, "floats are IEEE's of 32 bits");

// Field numbers: of Example, Features, a list: the one; of a feature its name and value; of the value its list.
enum { FIELD_ONLY = 1, FIELD_NAME = 1, FIELD_VALUE = 2, FIELD_BYTES = 1, FIELD_FLOATS = 2, FIELD_INTS = 3 };

typedef struct wire_field {
    uint64_t number;
    uint32_t type;
    uint64_t value;  // of WIRE_VARINT
    wire_span bytes; // of the others
} wire_field;

static uint64_t left_of(const wire_span *s)
{
    return (uint64_t)(s->end - s->at);
}

static bool take_varint(wire_span *s, uint64_t *out)
{
    uint64_t value = 0;
    for (uint32_t k = 0; k < VARINT_MOST_BYTES && s->at < s->end; k++) {
        const uint8_t byte = *s->at++;
        if (k == VARINT_MOST_BYTES - 1 && byte > 1) {
            return false; // more than 64 bits
        }
        value |= (uint64_t)(byte & 127) << 7 * k;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(wire_span *s, uint64_t count, wire_span *out)
{
    if (count > left_of(s)) {
        return false;
    }
    *out = (wire_span){s->at, s->at + count};
    s->at += count;
    return true;
}

static bool take_field(wire_span *s, wire_field *out)
{
    uint64_t tag, count;
    if (!take_varint(s, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return false;
    }
    *out = (wire_field){.number = tag >> 3, .type = (uint32_t)(tag & 7)};
    switch (out->type) {
    case WIRE_VARINT:
        return take_varint(s, &out->value);
    case WIRE_64:
        return take_bytes(s, sizeof(uint64_t), &out->bytes);
    case WIRE_32:
        return take_bytes(s, sizeof(uint32_t), &out->bytes);
    case WIRE_BYTES:
        return take_varint(s, &count) && take_bytes(s, count, &out->bytes);
    default:
        return false;
    }
}

// ---- lists ----------------------------------------------------------------------------------------------------

static bool count_varints(wire_span s, uint32_t *count)
{
    uint64_t value;
    while (s.at < s.end) {
        if (!take_varint(&s, &value)) {
            return false;
        }
        (*count)++;
    }
    return true;
}

// A value of the list, or a packed run of them.
static bool count_value(feature_kind kind, const wire_field *x, uint32_t *count)
{
    if (kind == FEATURE_INTS && x->type == WIRE_BYTES) {
        return count_varints(x->bytes, count);
    }
    if (kind == FEATURE_FLOATS && x->type == WIRE_BYTES) {
        *count += (uint32_t)(left_of(&x->bytes) / FLOAT_BYTES);
        return left_of(&x->bytes) % FLOAT_BYTES == 0;
    }
    (*count)++;
    return x->type == (kind == FEATURE_BYTES    ? (uint32_t)WIRE_BYTES
                       : kind == FEATURE_FLOATS ? (uint32_t)WIRE_32
                                                : (uint32_t)WIRE_VARINT);
}

static bool count_values(feature *f)
{
    wire_span s = f->list;
    wire_field x;
    while (s.at < s.end) {
        if (!take_field(&s, &x) || (x.number == FIELD_ONLY && !count_value(f->kind, &x, &f->count))) {
            return false;
        }
    }
    return true;
}

static bool read_value(wire_span s, feature *f)
{
    wire_field x;
    while (s.at < s.end) {
        if (!take_field(&s, &x)) {
            return false;
        }
        if (x.number < FIELD_BYTES || x.number > FIELD_INTS) {
            continue;
        }
        if (x.type != WIRE_BYTES || f->kind != FEATURE_EMPTY) {
            return false;
        }
        f->kind = x.number == FIELD_BYTES    ? FEATURE_BYTES
                  : x.number == FIELD_FLOATS ? FEATURE_FLOATS
                                             : FEATURE_INTS;
        f->list = x.bytes;
        if (!count_values(f)) {
            return false;
        }
    }
    return true;
}

// ---- features -------------------------------------------------------------------------------------------------

static bool read_feature(wire_span s, feature *out)
{
    wire_field x;
    bool has_value = false;
    *out = (feature){.name = {s.at, s.at}};
    while (s.at < s.end) {
        if (!take_field(&s, &x)) {
            return false;
        }
        if (x.number == FIELD_NAME && x.type == WIRE_BYTES) {
            out->name = x.bytes;
        } else if (x.number == FIELD_VALUE && x.type == WIRE_BYTES && !has_value) {
            has_value = true;
            if (!read_value(x.bytes, out)) {
                return false;
            }
        } else if (x.number == FIELD_NAME || x.number == FIELD_VALUE) {
            return false;
        }
    }
    return true;
}

example_cursor example_begin(const uint8_t *bytes, uint32_t count)
{
    return (example_cursor){.example = {bytes, bytes + count}, .features = {bytes, bytes}};
}

bool example_next(example_cursor *c, feature *out, bool *good)
{
    wire_field x;
    *good = true;
    while (c->features.at < c->features.end || c->example.at < c->example.end) {
        const bool inside = c->features.at < c->features.end;
        if (!take_field(inside ? &c->features : &c->example, &x) ||
            (x.number == FIELD_ONLY && x.type != WIRE_BYTES)) {
            *good = false;
            return false;
        }
        if (inside && x.number == FIELD_ONLY) {
            *good = read_feature(x.bytes, out);
            return *good;
        }
        if (x.number == FIELD_ONLY) {
            c->features = x.bytes;
        }
    }
    return false;
}

bool feature_is_named(const feature *f, const char *name)
{
    return left_of(&f->name) == strlen(name) && memcmp(f->name.at, name, strlen(name)) == 0;
}

// ---- values ---------------------------------------------------------------------------------------------------

wire_span feature_bytes(const feature *f)
{
    wire_span s = f->list;
    wire_field x;
    while (s.at < s.end && take_field(&s, &x)) {
        if (x.number == FIELD_ONLY) {
            return x.bytes;
        }
    }
    return (wire_span){f->list.at, f->list.at};
}

void feature_floats(const feature *f, float *to)
{
    wire_span s = f->list;
    wire_field x;
    while (s.at < s.end && take_field(&s, &x)) {
        for (; x.number == FIELD_ONLY && x.bytes.at < x.bytes.end; x.bytes.at += FLOAT_BYTES) {
            const uint8_t *b = x.bytes.at;
            const uint32_t bits = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
            memcpy(to++, &bits, sizeof bits);
        }
    }
}

feature_ints feature_ints_begin(const feature *f)
{
    return (feature_ints){.list = f->list, .packed = {f->list.at, f->list.at}};
}

bool feature_ints_next(feature_ints *c, int64_t *out)
{
    wire_field x;
    uint64_t value = 0;
    while (c->packed.at == c->packed.end) {
        if (c->list.at == c->list.end || !take_field(&c->list, &x)) {
            return false;
        }
        if (x.number == FIELD_ONLY && x.type == WIRE_VARINT) {
            *out = (int64_t)x.value;
            return true;
        }
        if (x.number == FIELD_ONLY) {
            c->packed = x.bytes;
        }
    }
    const bool taken = take_varint(&c->packed, &value);
    *out = (int64_t)value;
    return taken;
}
