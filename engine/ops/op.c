// SPDX-License-Identifier: Apache-2.0
// The table of operations, and what is asked of a row: its name, its FLOPs, the bytes that it moves.
#include "ops/op.h"

#include <stddef.h>

#include "headroom/units.h"

#include "base/hash.h"
#include "ops/rows.h"

static const op_row *const op_rows[HR_OP_COUNT] = {
#define X(id, text) [HR_OP_##id] = &op_row_##id,
    HR_OP_MAP(X)
#undef X
};

const op_row *op_row_of(hr_op op)
{
    return op_rows[op];
}

const char *op_name(hr_op op)
{
    return op_rows[op]->name;
}

bool op_needs_kernel(hr_op op)
{
    return !op_rows[op]->view && !op_rows[op]->control;
}

void op_query_hash(const op_query *q, uint64_t key[2])
{
    hash128(q, offsetof(op_query, in) + q->in_count * sizeof q->in[0], key);
    hash128(q->out, q->out_count * sizeof q->out[0], key);
}

uint64_t op_flops(const op_query *q)
{
    const op_row *row = op_rows[q->op];
    if (row->flops != NULL) {
        return row->flops(q);
    }
    return q->out_count > 0 ? op_out_elements(q, 0) : 0;
}

uint64_t op_bytes_moved(const op_query *q)
{
    if (!op_needs_kernel((hr_op)q->op)) {
        return 0;
    }
    if (op_rows[q->op]->bytes != NULL) {
        return op_rows[q->op]->bytes(q);
    }
    uint64_t sum = 0;
    uint64_t bytes = 0;
    uint64_t padding = 0;
    if (op_rows[q->op]->orders) {
        return 0;
    }
    for (unsigned k = 0; k < q->in_count && !op_rows[q->op]->crosses_link; k++) {
        (void)operand_bytes(&q->in[k], &bytes, &padding);
        (void)hr_add_bytes(sum, bytes, &sum);
    }
    for (unsigned k = 0; k < q->out_count; k++) {
        (void)operand_bytes(&q->out[k], &bytes, &padding);
        (void)hr_add_bytes(sum, bytes, &sum);
    }
    return sum;
}
