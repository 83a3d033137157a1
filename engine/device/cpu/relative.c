// SPDX-License-Identifier: Apache-2.0
// Biases by where a query and a key stand to one another: rows of keys out of a table, and sums back into it. A head is one
// worker's, so that a sum has one order whatever the number of threads.
#include "ops/relative.h"

#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"

enum { STRIP = 256 };

typedef struct job {
    const op_attr *attr;
    relative_shape shape;
    int32_t from[RELATIVE_MAX_BUCKETS], buckets;
    const char *in;
    char *out;
    hr_dtype type;
    int64_t rows; // of the table
    double *sums; // of the gradient, [heads, rows]
} job;

static job job_of(const cpu_run *r, const op_operand *table)
{
    const op_attr *attr = &r->query->attr;
    job j = {.attr = attr,
             .shape = relative_shape_of(attr, &table->shape),
             .in = r->in[0],
             .out = r->out[0],
             .type = (hr_dtype)table->dtype,
             .rows = table->shape.dim[0],
             .sums = r->workspace};
    j.buckets = attr->rule == OP_RELATIVE_BUCKETS ? relative_buckets(attr, j.rows, j.from) : 0;
    return j;
}

static int64_t row_of(const job *j, int64_t query, int64_t key)
{
    return relative_row(j->attr, j->from, j->buckets, query, key);
}

static float number_at(const job *j, int64_t at)
{
    float number;
    cast_widen(&number, j->in + at * (int64_t)dtype_bytes(j->type), j->type, 1);
    return number;
}

static void put_numbers(const job *j, int64_t at, const float *values, int64_t count)
{
    char *to = j->out + at * (int64_t)dtype_bytes(j->type);
    if (j->type == HR_F32) {
        memcpy(to, values, (size_t)count * sizeof *values);
    } else {
        cast_narrow(to, j->type, values, count);
    }
}

// ---- forward ------------------------------------------------------------------------------------------------

// Keys [first, first + count) of one query.
static void fill_keys(const job *j, int64_t row, int64_t first, int64_t count)
{
    const relative_shape *s = &j->shape;
    const int64_t query = row % s->queries, head = row / s->queries % s->heads;
    const int64_t window = row / s->queries / s->heads;
    float values[STRIP];
    for (int64_t k = 0; k < count; k++) {
        values[k] = number_at(j, row_of(j, query, first + k) * s->heads + head);
        if (relative_is_hidden(j->attr, window, query, first + k)) {
            values[k] += (float)RELATIVE_HIDDEN;
        }
    }
    put_numbers(j, row * s->keys + first, values, count);
}

static void fill_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t first = 0; first < j->shape.keys; first += STRIP) {
            const int64_t left = j->shape.keys - first;
            fill_keys(j, row, first, left < STRIP ? left : STRIP);
        }
    }
}

static void run_bias(const cpu_run *r)
{
    const job j = job_of(r, &r->query->in[0]);
    workers_for(r->device->workers, j.shape.windows * j.shape.heads * j.shape.queries, 1, fill_body, &j);
}

// ---- gradient -----------------------------------------------------------------------------------------------

static double over_windows(const job *j, int64_t head, int64_t query, int64_t key)
{
    const relative_shape *s = &j->shape;
    double sum = 0.0;
    for (int64_t p = 0; p < s->windows; p++) {
        sum += (double)number_at(j, ((p * s->heads + head) * s->queries + query) * s->keys + key);
    }
    return sum;
}

static void sum_head(const job *j, int64_t head)
{
    double *sums = j->sums + head * j->rows;
    for (int64_t v = 0; v < j->rows; v++) {
        sums[v] = 0.0;
    }
    for (int64_t query = 0; query < j->shape.queries; query++) {
        for (int64_t key = 0; key < j->shape.keys; key++) {
            sums[row_of(j, query, key)] += over_windows(j, head, query, key);
        }
    }
    for (int64_t v = 0; v < j->rows; v++) {
        const float sum = (float)sums[v];
        put_numbers(j, v * j->shape.heads + head, &sum, 1);
    }
}

static void sum_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    for (int64_t head = begin; head < end; head++) {
        sum_head(argument, head);
    }
}

static void run_bias_bwd(const cpu_run *r)
{
    const job j = job_of(r, &r->query->out[0]);
    workers_for(r->device->workers, j.shape.heads, 1, sum_body, &j);
}

static uint64_t sums_bytes(const cpu_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)cpu_elements_of(&q->out[0]) * sizeof(double);
}

static bool has_one_type(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == q->out[0].dtype;
}

const cpu_impl cpu_relative_bias = {
    .name = "loops", .types = CPU_ANY_TYPE, .fits = has_one_type, .run = run_bias};
const cpu_impl cpu_relative_bias_bwd = {.name = "loops",
                                        .types = CPU_ANY_TYPE,
                                        .fits = has_one_type,
                                        .workspace = sums_bytes,
                                        .run = run_bias_bwd};
