// SPDX-License-Identifier: Apache-2.0
#include "conv_places.h"

conv_places conv_places_of(const op_query *q)
{
    switch (q->op) {
    case HR_OP_CONV2D:
        return (conv_places){{0, 1, CONV_OUTPUT, q->in_count > 2 ? 2 : CONV_NONE}};
    case HR_OP_CONV2D_TRANSPOSE:
        return (conv_places){{CONV_OUTPUT, 1, 0, q->in_count > 2 ? 2 : CONV_NONE}};
    case HR_OP_CONV2D_BWD_DATA:
        return (conv_places){{CONV_OUTPUT, 1, 0, CONV_NONE}};
    case HR_OP_CONV2D_TRANSPOSE_BWD_DATA:
        return (conv_places){{0, 1, CONV_OUTPUT, CONV_NONE}};
    case HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS: // the two images exchanged
        return (conv_places){{1, CONV_OUTPUT, 0, q->out_count > 1 ? CONV_OUTPUT | 1 : CONV_NONE}};
    default:
        return (conv_places){{0, CONV_OUTPUT, 1, q->out_count > 1 ? CONV_OUTPUT | 1 : CONV_NONE}};
    }
}

const op_operand *conv_operand_of(const op_query *q, conv_operand which)
{
    const uint8_t place = conv_places_of(q).place[which];
    return place == CONV_NONE           ? NULL
           : (place & CONV_OUTPUT) != 0 ? &q->out[place & ~CONV_OUTPUT]
                                        : &q->in[place];
}

CUdeviceptr conv_address_of(const cuda_run *r, conv_operand which)
{
    const uint8_t place = conv_places_of(r->query).place[which];
    return place == CONV_NONE ? 0 : (place & CONV_OUTPUT) != 0 ? r->out[place & ~CONV_OUTPUT] : r->in[place];
}
