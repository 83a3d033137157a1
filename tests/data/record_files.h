// SPDX-License-Identifier: Apache-2.0
// TFRecord files of tf.train.Example, written by hand where a test runs: by the published formats alone, without the engine.
#ifndef TESTS_RECORD_FILES_H
#define TESTS_RECORD_FILES_H

#include "data/image_files.h"

// ---- records --------------------------------------------------------------------------------------------------

static inline uint32_t plain_crc32c(const uint8_t *bytes, size_t count)
{
    uint32_t sum = 0xffffffff;
    for (size_t k = 0; k < count; k++) {
        sum ^= bytes[k];
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82f63b78 : 0);
        }
    }
    return ~sum;
}

static inline void made_little(made *m, uint64_t value, int bytes)
{
    for (int k = 0; k < bytes; k++) {
        made_byte(m, value >> 8 * k & 255);
    }
}

static inline void record_sum(made *m, const uint8_t *bytes, size_t count)
{
    const uint32_t sum = plain_crc32c(bytes, count);
    made_little(m, (uint32_t)((sum >> 15 | sum << 17) + 0xa282ead8), 4);
}

static inline void record_add(made *file, const made *data)
{
    uint8_t length[8];
    for (int k = 0; k < 8; k++) {
        length[k] = (uint8_t)((uint64_t)data->count >> 8 * k);
    }
    made_add(file, length, 8);
    record_sum(file, length, 8);
    made_add(file, data->bytes, data->count);
    record_sum(file, data->bytes, data->count);
}

// ---- protobuf -------------------------------------------------------------------------------------------------

static inline void wire_varint(made *m, uint64_t value)
{
    for (; value >= 128; value >>= 7) {
        made_byte(m, (value & 127) | 128);
    }
    made_byte(m, (unsigned)value);
}

static inline void wire_message(made *m, uint32_t number, const void *bytes, size_t count)
{
    wire_varint(m, number << 3 | 2);
    wire_varint(m, count);
    made_add(m, bytes, count);
}

// {name, Feature{list number: list}} into Features; frees the list.
static inline void features_add(made *features, const char *name, uint32_t number, made *list)
{
    made value = {0}, entry = {0};
    wire_message(&value, number, list->bytes, list->count);
    wire_message(&entry, 1, name, strlen(name));
    wire_message(&entry, 2, value.bytes, value.count);
    wire_message(features, 1, entry.bytes, entry.count);
    made_free(&value);
    made_free(&entry);
    made_free(list);
}

static inline void features_bytes(made *features, const char *name, const void *bytes, size_t count)
{
    made list = {0};
    wire_message(&list, 1, bytes, count);
    features_add(features, name, 1, &list);
}

static inline void features_floats(made *features, const char *name, const float *values, size_t count,
                                   bool packed)
{
    made list = {0};
    if (packed) {
        wire_message(&list, 1, values, count * sizeof *values); // on a little-endian machine
    }
    for (size_t k = 0; k < count && !packed; k++) {
        wire_varint(&list, 1 << 3 | 5);
        made_add(&list, &values[k], sizeof *values);
    }
    features_add(features, name, 2, &list);
}

static inline void features_ints(made *features, const char *name, const int64_t *values, size_t count,
                                 bool packed)
{
    made list = {0}, run = {0};
    for (size_t k = 0; k < count; k++) {
        if (!packed) {
            wire_varint(&list, 1 << 3 | 0);
        }
        wire_varint(packed ? &run : &list, (uint64_t)values[k]);
    }
    if (packed) {
        wire_message(&list, 1, run.bytes, run.count);
    }
    made_free(&run);
    features_add(features, name, 3, &list);
}

// A record of Example{features}; frees them.
static inline void example_add(made *file, made *features)
{
    made example = {0};
    wire_message(&example, 1, features->bytes, features->count);
    record_add(file, &example);
    made_free(&example);
    made_free(features);
}

#endif
