// SPDX-License-Identifier: Apache-2.0
// What the values of an array are: one inlined loop for each type and byte order.
#include <string.h>

#include "base/half.h"
#include "base/real.h"
#include "data/npy.h"

// The bits of a value, in this machine's order.
static inline uint64_t bits_at(const uint8_t *from, uint32_t bytes, bool swapped)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1:
        return *from;
    case 2:
        memcpy(&two, from, sizeof two);
        return swapped ? __builtin_bswap16(two) : two;
    case 4:
        memcpy(&four, from, sizeof four);
        return swapped ? __builtin_bswap32(four) : four;
    default:
        memcpy(&eight, from, sizeof eight);
        return swapped ? __builtin_bswap64(eight) : eight;
    }
}

static inline int64_t whole_at(npy_type type, const uint8_t *from, uint32_t bytes, bool swapped)
{
    const uint64_t bits = bits_at(from, bytes, swapped);
    return type == NPY_BOOL  ? bits != 0
           : type == NPY_I8  ? (int8_t)bits
           : type == NPY_I16 ? (int16_t)bits
           : type == NPY_I32 ? (int32_t)bits
                             : (int64_t)bits;
}

static inline float float_at(npy_type type, const uint8_t *from, uint32_t bytes, bool swapped)
{
    const uint64_t bits = bits_at(from, bytes, swapped);
    double wide;
    if (type == NPY_F64) {
        memcpy(&wide, &bits, sizeof wide);
        return float_of_double(wide);
    }
    return type == NPY_F16   ? float_of_f16((uint16_t)bits)
           : type == NPY_F32 ? float_of_bits((uint32_t)bits)
                             : (float)whole_at(type, from, bytes, swapped);
}

typedef struct values {
    const uint8_t *from;
    uint64_t count;
    bool swapped;
} values;

static inline void floats_of(npy_type type, uint32_t bytes, const values *v, float *restrict to)
{
    if (v->swapped) {
        for (uint64_t i = 0; i < v->count; i++) {
            to[i] = float_at(type, v->from + i * bytes, bytes, true);
        }
    } else {
        for (uint64_t i = 0; i < v->count; i++) {
            to[i] = float_at(type, v->from + i * bytes, bytes, false);
        }
    }
}

static inline void ids_of(npy_type type, uint32_t bytes, const values *v, int32_t *restrict to)
{
    for (uint64_t i = 0; i < v->count; i++) {
        to[i] = (int32_t)whole_at(type, v->from + i * bytes, bytes, v->swapped);
    }
}

static inline uint64_t beyond_of(npy_type type, uint32_t bytes, const values *v, uint32_t below,
                                 int64_t *value)
{
    for (uint64_t i = 0; i < v->count; i++) {
        *value = whole_at(type, v->from + i * bytes, bytes, v->swapped);
        if (*value < 0 || *value >= below) {
            return i;
        }
    }
    return v->count;
}

void npy_to_floats(const npy *a, const uint8_t *from, uint64_t count, float *to)
{
    const values v = {from, count, a->swapped};
    switch (a->type) {
#define X(name, descr, bytes, whole)                                                                         \
    case NPY_##name:                                                                                         \
        floats_of(NPY_##name, bytes, &v, to);                                                                \
        break;
        NPY_TYPE_MAP(X)
#undef X
    case NPY_TYPE_COUNT:
        break;
    }
}

void npy_to_ids(const npy *a, const uint8_t *from, uint64_t count, int32_t *to)
{
    const values v = {from, count, a->swapped};
    switch (a->type) {
#define X(name, descr, bytes, whole)                                                                         \
    case NPY_##name:                                                                                         \
        ids_of(NPY_##name, bytes, &v, to);                                                                   \
        break;
        NPY_TYPE_MAP(X)
#undef X
    case NPY_TYPE_COUNT:
        break;
    }
}

void npy_to_mask(const npy *a, const uint8_t *from, uint64_t count, uint8_t *to)
{
    const uint32_t bytes = npy_value_bytes(a);
    for (uint64_t i = 0; i < count; i++) {
        to[i] = (uint8_t)whole_at(a->type, from + i * bytes, bytes, a->swapped);
    }
}

uint64_t npy_find_beyond(const npy *a, const uint8_t *from, uint64_t count, uint32_t below, int64_t *value)
{
    const values v = {from, count, a->swapped};
    switch (a->type) {
#define X(name, descr, bytes, whole)                                                                         \
    case NPY_##name:                                                                                         \
        return beyond_of(NPY_##name, bytes, &v, below, value);
        NPY_TYPE_MAP(X)
#undef X
    case NPY_TYPE_COUNT:
        break;
    }
    return 0;
}
