// SPDX-License-Identifier: Apache-2.0
// Gradients of a table in two bytes: the rows of an entry are summed in float32 and rounded once. What looks an entry
// up is a list in order, so that sums do not depend on the number of threads.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { STRIP = 256, LINE_INTS = 16, NOBODY = -1 };

typedef struct job {
    const uint16_t *dy;
    uint16_t *dtable;
    hr_dtype type;
    int64_t entries, features;
    const int32_t *first, *next; // of every entry the first row that looks it up; of every row the next one
} job;

CPU_HOT static void add_to(float *restrict sum, const float *restrict row, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] += row[c];
    }
}

static void sum_strip(const job *j, int64_t entry, int64_t column, int64_t count)
{
    float sum[STRIP] = {0}, row[STRIP];
    for (int32_t r = j->first[entry]; r != NOBODY; r = j->next[r]) {
        cast_widen(row, j->dy + r * j->features + column, j->type, count);
        add_to(sum, row, count);
    }
    cast_narrow(j->dtable + entry * j->features + column, j->type, sum, count);
}

// A worker takes columns of every entry, so that none that is looked up often holds up one of them.
static void columns_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t entry = 0; entry < j->entries; entry++) {
        if (j->first[entry] == NOBODY) {
            memset(j->dtable + entry * j->features + begin, 0, (size_t)(end - begin) * sizeof *j->dtable);
            continue;
        }
        for (int64_t c = begin; c < end; c += STRIP) {
            sum_strip(j, entry, c, end - c < STRIP ? end - c : STRIP);
        }
    }
}

static int64_t in_lines(int64_t ints)
{
    return (ints + LINE_INTS - 1) / LINE_INTS * LINE_INTS;
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    (void)device;
    return (uint64_t)(in_lines(q->out[0].shape.dim[0]) + cpu_elements_of(&q->in[0])) * sizeof(int32_t);
}

// From the last row to the first: every list begins with its first row.
static void make_lists(const int32_t *ids, int64_t rows, int64_t entries, int32_t *first, int32_t *next)
{
    for (int64_t e = 0; e < entries; e++) {
        first[e] = NOBODY;
    }
    for (int64_t r = rows - 1; r >= 0; r--) {
        if (ids[r] >= 0 && ids[r] < entries) {
            next[r] = first[ids[r]];
            first[ids[r]] = (int32_t)r;
        }
    }
}

static bool fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].dtype == q->out[0].dtype && cpu_elements_of(&q->in[0]) <= INT32_MAX;
}

static void run(const cpu_run *r)
{
    const op_operand *table = &r->query->out[0];
    const int64_t entries = table->shape.dim[0], features = table->shape.dim[1];
    int32_t *first = r->workspace, *next = first + in_lines(entries);
    make_lists(r->in[0], cpu_elements_of(&r->query->in[0]), entries, first, next);
    const job j = {.dy = r->in[1],
                   .dtable = r->out[0],
                   .type = (hr_dtype)table->dtype,
                   .entries = entries,
                   .features = features,
                   .first = first,
                   .next = next};
    workers_for(r->device->workers, features, CPU_LANES, columns_body, &j);
}

const cpu_impl cpu_embedding_bwd_half = {
    .name = "lists", .types = CPU_HALF, .fits = fits, .workspace = workspace, .run = run};
