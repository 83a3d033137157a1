// SPDX-License-Identifier: Apache-2.0
// tf.train.Example (tensorflow/core/example/example.proto and feature.proto): features by name, each a list of byte strings, of
// floats or of whole numbers, packed or not.
//
//   Example 1: Features 1: { 1: name, 2: Feature { 1: BytesList | 2: FloatList | 3: Int64List } } …
//   each list 1: value …
//
// Read from protobuf's wire form as it stands, without a copy. Fields that these messages do not have are passed over, as protobuf
// does; groups, a field of another type than it should have and a feature with two lists are errors.
#ifndef DATA_EXAMPLE_H
#define DATA_EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum feature_kind { FEATURE_EMPTY, FEATURE_BYTES, FEATURE_FLOATS, FEATURE_INTS } feature_kind;

// Bytes of the message that is read.
typedef struct wire_span {
    const uint8_t *at, *end;
} wire_span;

typedef struct feature {
    wire_span name; // not NUL-terminated
    feature_kind kind;
    wire_span list; // checked: its values can be read
    uint32_t count; // of values
} feature;

typedef struct example_cursor {
    wire_span example, features; // what is left of them
} example_cursor;

example_cursor example_begin(const uint8_t *bytes, uint32_t count);
// False at the end, and where the bytes are no Example; *good tells which.
bool example_next(example_cursor *c, feature *out, bool *good);

bool feature_is_named(const feature *f, const char *name);

// Of FEATURE_BYTES: the first of its strings.
wire_span feature_bytes(const feature *f);
// Of FEATURE_FLOATS: all of them.
void feature_floats(const feature *f, float *to);

// Of FEATURE_INTS: one after the other. False behind the last.
typedef struct feature_ints {
    wire_span list, packed;
} feature_ints;

feature_ints feature_ints_begin(const feature *f);
bool feature_ints_next(feature_ints *c, int64_t *out);

#endif
