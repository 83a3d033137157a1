// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers, as the type that is computed in (kernels/held.cu), in front of each reader.
#include "ops/held.h"

#include <stdio.h>
#include <string.h>

#include "base/nf4.h"
#include "cuda_device.h"
#include "kernels/held_args.h"

enum { PIECE_BYTES = 16 };

_Static_assert((int)HELD_LEVELS == (int)NF4_LEVELS, "levels of nf4");

// Blocks of nf4 know no rows.
static int64_t columns_of(const op_query *q)
{
    const hr_shape *w = &q->out[0].shape;
    return q->attr.rule == HELD_NF4 ? (int64_t)cuda_elements(&q->out[0]) : w->dim[w->rank - 1];
}

static int64_t lanes_of(const op_query *q)
{
    const int64_t lanes = PIECE_BYTES / (int64_t)dtype_bytes((hr_dtype)q->out[0].dtype);
    return columns_of(q) % lanes == 0 ? lanes : 1;
}

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "dequantize_%s_%s_%s", held_name((held_as)q->attr.rule),
                   lanes_of(q) > 1 ? "wide" : "narrow", cuda_suffix(q->out[0].dtype));
}

static hr_status run(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const int64_t lanes = lanes_of(q), columns = columns_of(q);
    held_args a = {.q = (const void *)r->in[0],
                   .scale = (const float *)r->in[1],
                   .zero = q->attr.rule == HELD_INT4 ? (const int8_t *)r->in[2] : NULL,
                   .w = (void *)r->out[0],
                   .pieces = (int64_t)cuda_elements(&q->out[0]) / lanes,
                   .columns = columns,
                   .row = divisor_of(columns / lanes)};
    memcpy(a.level, nf4_levels, sizeof a.level);
    return cuda_launch(r, r->function, cuda_grid_over(r->device, (uint64_t)a.pieces, 1, HELD_THREADS), &a,
                       sizeof a, err);
}

static const cuda_impl impls[] = {{.op = HR_OP_DEQUANTIZE,
                                   .types = CUDA_REAL,
                                   .name = "plain",
                                   .module = "held",
                                   .kernel = name_of,
                                   .run = run}};

const cuda_family cuda_family_held = CUDA_FAMILY(impls);
