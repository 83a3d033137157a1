// SPDX-License-Identifier: Apache-2.0
// Frozen weights that are held as whole numbers while adapters beside them train (compress.lora_base): what they are in memory.
//
//   int8   q int8 as the weights    scale float32 [O]                        (base/quantize.h, as Keras)
//   int4   q uint8 [I, O/2]         scale float32 [G,O]   zero int8 [G,O]    I: all dimensions but the last
//   nf4    q uint8 [elements/2]     scale float32 [blocks of 64]             (base/nf4.h, as bitsandbytes)
#ifndef OPS_HELD_H
#define OPS_HELD_H

#include "ops/op.h"

// Also op_attr.rule of DEQUANTIZE.
typedef enum held_as { HELD_REAL, HELD_INT8, HELD_INT4, HELD_NF4, HELD_COUNT } held_as;

enum { HELD_PARTS = 3 };

typedef struct held_parts {
    uint32_t count;                 // 2 or 3
    const char *suffix[HELD_PARTS]; // of the tensor's name; NULL: the weights' own name
    op_operand part[HELD_PARTS];    // q, scale, zero
} held_parts;

const char *held_name(held_as as);                                      // "real", "int8", …
void held_parts_of(const hr_shape *shape, held_as as, held_parts *out); // `as` is not HELD_REAL
// Float32 to the parts and back; shape is the weights', of rank 2 at least.
void held_make(const hr_shape *shape, held_as as, const float *w, void *const part[HELD_PARTS]);
void held_back(const hr_shape *shape, held_as as, const void *const part[HELD_PARTS], float *w);

#endif
