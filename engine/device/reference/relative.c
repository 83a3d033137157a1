// SPDX-License-Identifier: Apache-2.0
// Biases by where a query and a key stand to one another.
#include "ops/relative.h"

#include <string.h>

#include "kernels.h"

typedef struct pairs {
    relative_shape shape;
    int32_t from[RELATIVE_MAX_BUCKETS], buckets;
} pairs;

static pairs pairs_of(const op_attr *attr, const hr_shape *table)
{
    pairs p = {.shape = relative_shape_of(attr, table)};
    p.buckets = attr->rule == OP_RELATIVE_BUCKETS ? relative_buckets(attr, table->dim[0], p.from) : 0;
    return p;
}

// The number of the table that element `at` of the biases is.
static int64_t number_of(const op_attr *attr, const pairs *p, int64_t at)
{
    const relative_shape *s = &p->shape;
    const int64_t j = at % s->keys, i = at / s->keys % s->queries;
    return relative_row(attr, p->from, p->buckets, i, j) * s->heads + at / s->keys / s->queries % s->heads;
}

void reference_relative_bias(const reference_call *call)
{
    const op_attr *attr = &call->query->attr;
    const pairs p = pairs_of(attr, &call->query->in[0].shape);
    const double *table = call->in[0];
    double *bias = call->out[0];
    for (int64_t at = 0; at < (int64_t)call->out_count[0]; at++) {
        const int64_t j = at % p.shape.keys, row = at / p.shape.keys;
        const bool hidden =
            relative_is_hidden(attr, row / p.shape.queries / p.shape.heads, row % p.shape.queries, j);
        bias[at] = table[number_of(attr, &p, at)] + (hidden ? RELATIVE_HIDDEN : 0.0);
    }
}

void reference_relative_bias_bwd(const reference_call *call)
{
    const op_attr *attr = &call->query->attr;
    const pairs p = pairs_of(attr, &call->query->out[0].shape);
    const double *dbias = call->in[0];
    double *dtable = call->out[0];
    memset(dtable, 0, call->out_count[0] * sizeof *dtable);
    for (int64_t at = 0; at < (int64_t)call->in_count[0]; at++) {
        dtable[number_of(attr, &p, at)] += dbias[at];
    }
}
