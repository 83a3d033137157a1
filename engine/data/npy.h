// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to 3: magic,
// version, the length of a header that is a dictionary of Python, the header, the values row by row.
#ifndef DATA_NPY_H
#define DATA_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { NPY_MAX_RANK = 8, NPY_MOST_HEADER_BYTES = 4096, NPY_PREFIX_BYTES = 12 };

// X(name, type in `descr`, bytes, whole)
#define NPY_TYPE_MAP(X)                                                                                      \
    X(BOOL, "b1", 1, true)                                                                                   \
    X(U8, "u1", 1, true)                                                                                     \
    X(U16, "u2", 2, true)                                                                                    \
    X(U32, "u4", 4, true)                                                                                    \
    X(I8, "i1", 1, true)                                                                                     \
    X(I16, "i2", 2, true)                                                                                    \
    X(I32, "i4", 4, true)                                                                                    \
    X(I64, "i8", 8, true)                                                                                    \
    X(F16, "f2", 2, false)                                                                                   \
    X(F32, "f4", 4, false)                                                                                   \
    X(F64, "f8", 8, false)

typedef enum npy_type {
#define X(name, descr, bytes, whole) NPY_##name,
    NPY_TYPE_MAP(X)
#undef X
        NPY_TYPE_COUNT
} npy_type;

typedef struct npy {
    npy_type type;
    bool swapped; // the other byte order than this machine's
    uint32_t rank;
    uint64_t dim[NPY_MAX_RANK];
    uint32_t header_bytes; // where the values begin
} npy;

// How many bytes the whole header has, prefix included; `bytes` are the first NPY_PREFIX_BYTES of the file. DATA errors
// name file and offset, here and below.
HR_MUST_CHECK hr_status npy_header_size(const char *name, const uint8_t *bytes, uint32_t *size_bytes,
                                        hr_err *err);
// The header that bytes[0 .. npy_header_size) are.
HR_MUST_CHECK hr_status npy_parse(const char *name, const uint8_t *bytes, uint32_t size_bytes, npy *out,
                                  hr_err *err);

const char *npy_type_text(npy_type type); // "u1"
uint32_t npy_value_bytes(const npy *a);
bool npy_is_whole(const npy *a);
// Values of one of its dim[0] items, and the bytes of all of it. False where that does not fit 64 bits.
bool npy_item_values(const npy *a, uint64_t *values);
bool npy_data_bytes(const npy *a, uint64_t *bytes);
// "[60000, 28, 28] of u1". Returns text.
const char *npy_text(const npy *a, char *text, uint32_t size);

// to[0..count) = the values at `from` as they are; float64 and large whole numbers are rounded, and float64 below the
// smallest normal float is zero.
void npy_to_floats(const npy *a, const uint8_t *from, uint64_t count, float *to);
// The first of count whole numbers at `from` that is not in 0 … below - 1, and that number in *value; `count`: none.
uint64_t npy_find_beyond(const npy *a, const uint8_t *from, uint64_t count, uint32_t below, int64_t *value);
// Whole numbers that npy_find_beyond finds nothing among.
void npy_to_ids(const npy *a, const uint8_t *from, uint64_t count, int32_t *to);
void npy_to_mask(const npy *a, const uint8_t *from, uint64_t count, uint8_t *to);

#endif
