// SPDX-License-Identifier: Apache-2.0
// The tensors that the header of a file of weights names (safetensors, GGUF): their types, sizes and places. A header comes
// from a stranger: every size is checked for overflow, no name may stand twice, and no tensor may lie over another. The data are
// never read: a file may end in them, or have none. Of a tensor 40 bytes are held.
#ifndef IMPORT_TENSORS_H
#define IMPORT_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "base/vec.h"

enum { TENSORS_MAX = 1 << 20, TENSOR_TYPES = 64, TENSOR_NAME_SHOWN = 64 };
#define TENSOR_ELEMENTS_MAX (UINT64_C(1) << 56) // 16 bytes of each, as training has them, are a uint64

// A type of elements: `block` of them lie in `bits` bits together.
typedef struct tensor_type {
    const char *name;
    uint32_t block, bits;
    bool real; // numbers that an optimizer trains, whole or quantized
} tensor_type;

typedef struct tensor_place {
    uint64_t hash, name_at; // of the name, as it is written in the file
    uint64_t begin, bytes;  // of the data, behind where all data begin
    uint32_t name_bytes;
} tensor_place;

typedef struct tensor_sum {
    const tensor_type *type;
    uint64_t tensors, elements, bytes;
} tensor_sum;

typedef struct tensors {
    const char *path; // borrowed
    hr_err *err;
    VEC(tensor_place) places;
    VEC(uint64_t) aside; // of names that no optimizer trains, as the file says itself: their hashes, sorted
    tensor_sum sums[TENSOR_TYPES]; // in the order of their first coming
    uint32_t sum_count;
    uint64_t parameters; // elements of real tensors that are no buffers, and not aside
    uint64_t bytes;      // of all
    uint64_t file_bytes;
    uint64_t data_bytes; // from where all data begin to where the last of them end
    uint64_t held_bytes; // of those how many the file has: fewer where it is cut, none of a header alone
} tensors;

typedef struct tensor_name {
    const char *text; // not terminated
    uint32_t bytes;
    uint64_t at; // in the file
} tensor_name;

// Starts zeroed but for path and err. The size of the open file: READ error where it is none.
HR_MUST_CHECK hr_status tensors_open(tensors *t, int fd);
void tensors_deinit(tensors *t);

// The file says of a name that it is a slot or state. Known to tensors_add behind tensors_sort_aside. NOMEM.
HR_MUST_CHECK hr_status tensors_set_aside(tensors *t, const char *name, uint32_t bytes);
void tensors_sort_aside(tensors *t);

// A tensor of `elements`, its data at `begin`. *bytes are those of its data. PRESET, NOMEM.
HR_MUST_CHECK hr_status tensors_add(tensors *t, const tensor_name *name, const tensor_type *type,
                                    uint64_t elements, uint64_t begin, uint64_t *bytes);
// What only all of them together show; `data_at` is where their data begin, each at a multiple of `alignment`. With 1 they fill
// the file, none apart from the one before; else gaps may be in it, but none but those of the alignment where it is cut. Sorts the places.
// PRESET, READ.
HR_MUST_CHECK hr_status tensors_check(tensors *t, int fd, uint64_t data_at, uint64_t alignment);

// The product of the sides. PRESET error where it is beyond the limit.
HR_MUST_CHECK hr_status tensors_elements(const tensors *t, const tensor_name *name, const uint64_t *sides,
                                         uint32_t rank, uint64_t *elements);
// The letters of a name as a sentence can have them.
const char *tensor_shown(const tensor_name *name, char out[TENSOR_NAME_SHOWN + 1]);

#endif
