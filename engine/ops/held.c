// SPDX-License-Identifier: Apache-2.0
#include "ops/held.h"

#include "base/nf4.h"
#include "base/quantize.h"
#include "ops/rows.h"

static const char *const names[HELD_COUNT] = {"real", "int8", "int4", "nf4"};

const char *held_name(held_as as)
{
    return names[as];
}

static uint64_t columns_of(const hr_shape *shape)
{
    return (uint64_t)shape->dim[shape->rank - 1];
}

static uint64_t rows_of(const hr_shape *shape)
{
    uint64_t rows = 1;
    for (uint32_t k = 0; k + 1 < shape->rank; k++) {
        rows *= (uint64_t)shape->dim[k];
    }
    return rows;
}

static hr_shape vector(uint64_t count)
{
    return shape_of(1, (const int64_t[]){(int64_t)count});
}

static hr_shape matrix(uint64_t rows, uint64_t columns)
{
    return shape_of(2, (const int64_t[]){(int64_t)rows, (int64_t)columns});
}

void held_parts_of(const hr_shape *shape, held_as as, held_parts *out)
{
    const uint64_t rows = rows_of(shape), columns = columns_of(shape), count = rows * columns;
    const uint64_t groups = quantize_int4_groups(rows);
    *out = (held_parts){.count = as == HELD_INT4 ? 3 : 2, .suffix = {NULL, "scale", "zero"}};
    out->part[0] = (op_operand){.shape = *shape, .dtype = as == HELD_INT8 ? HR_I8 : HR_U8};
    out->part[1] = (op_operand){.shape = vector(columns), .dtype = HR_F32};
    if (as == HELD_INT4) {
        out->part[0].shape = matrix(rows, quantize_int4_pitch(columns));
        out->part[1].shape = matrix(groups, columns);
        out->part[2] = (op_operand){.shape = matrix(groups, columns), .dtype = HR_I8};
    } else if (as == HELD_NF4) {
        out->part[0].shape = vector(nf4_bytes(count));
        out->part[1].shape = vector(nf4_blocks(count));
    }
}

void held_make(const hr_shape *shape, held_as as, const float *w, void *const part[HELD_PARTS])
{
    const uint64_t rows = rows_of(shape), columns = columns_of(shape);
    if (as == HELD_INT8) {
        quantize_int8(w, rows, columns, part[0], part[1]);
    } else if (as == HELD_INT4) {
        quantize_int4(w, rows, columns, part[0], part[1], part[2]);
    } else {
        quantize_nf4(w, rows * columns, part[0], part[1]);
    }
}

void held_back(const hr_shape *shape, held_as as, const void *const part[HELD_PARTS], float *w)
{
    const uint64_t rows = rows_of(shape), columns = columns_of(shape);
    if (as == HELD_INT8) {
        dequantize_int8(part[0], part[1], rows, columns, w);
    } else if (as == HELD_INT4) {
        dequantize_int4(part[0], part[1], part[2], rows, columns, w);
    } else {
        dequantize_nf4(part[0], part[1], rows * columns, w);
    }
}

static uint64_t one_an_element(const op_query *q)
{
    return op_out_elements(q, 0);
}

// The result has the shape of the weights, which whole numbers in blocks do not show.
const op_row op_row_DEQUANTIZE = {.name = "dequantize",
                                  .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                  .min_in = 2,
                                  .max_in = 3,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .flops = one_an_element,
                                  .in_place = -1,
                                  .wide_in = 0x2};
