// SPDX-License-Identifier: Apache-2.0
// Putting tensors together, cutting, repeating and padding them: blocks of bytes that lie at regular distances in
// what is read and in what is written.
#include <string.h>

#include "base/workers.h"
#include "cpu.h"

enum { GRAIN_BYTES = 1 << 16 };

// `count` blocks; `from` NULL: zeros.
typedef struct job {
    const char *from;
    char *to;
    int64_t block, count; // bytes of one; how many
    int64_t from_apart, to_apart;
    int64_t repeats; // every block is written so many times, one behind the other
} job;

// Cut by bytes, so that one large block is shared as well.
static void copy_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    while (begin < end) {
        const int64_t at = begin / j->block, first = begin % j->block;
        const int64_t left = j->block - first, count = left < end - begin ? left : end - begin;
        const char *from = j->from == NULL ? NULL : j->from + at / j->repeats * j->from_apart;
        char *to = j->to + at * j->to_apart + first;
        if (from == NULL) {
            memset(to, 0, (size_t)count);
        } else {
            memcpy(to, from + first, (size_t)count);
        }
        begin += count;
    }
}

static void copy(const cpu_run *r, const job *j)
{
    workers_for(r->device->workers, j->block * j->count * j->repeats, GRAIN_BYTES, copy_body, j);
}

// ---- along an axis ----------------------------------------------------------------------------------------

typedef struct around {
    int64_t outer, run; // run: bytes of all places of the axis and what lies behind it
    int64_t place;      // bytes of one place
} around;

static around around_axis(const op_operand *t, int32_t axis)
{
    around a = {1, 1, (int64_t)dtype_bytes((hr_dtype)t->dtype)};
    const int64_t *d = t->shape.dim;
    for (int32_t k = 0; k < (int32_t)t->shape.rank; k++) {
        a.outer *= k < axis ? d[k] : 1;
        a.place *= k > axis ? d[k] : 1;
    }
    a.run = a.place * d[axis];
    return a;
}

static void run_concat(const cpu_run *r)
{
    const op_query *q = r->query;
    const around y = around_axis(&q->out[0], q->attr.axis);
    char *to = r->out[0];
    for (uint32_t k = 0; k < q->in_count; k++) {
        const int64_t run = around_axis(&q->in[k], q->attr.axis).run;
        const job j = {r->in[k], to, run, y.outer, run, y.run, 1};
        copy(r, &j);
        to += run;
    }
}

static void run_slice(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    const around x = around_axis(&r->query->in[0], a->axis), y = around_axis(&r->query->out[0], a->axis);
    const job j = {(const char *)r->in[0] + a->offset * x.place, r->out[0], y.run, y.outer, x.run, y.run, 1};
    copy(r, &j);
}

static void run_slice_bwd(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    const around dx = around_axis(&r->query->out[0], a->axis), dy = around_axis(&r->query->in[0], a->axis);
    const int64_t before = a->offset * dx.place, behind = dx.run - before - dy.run;
    char *to = r->out[0];
    const job parts[] = {{NULL, to, before, dx.outer, 0, dx.run, 1},
                         {r->in[0], to + before, dy.run, dx.outer, dy.run, dx.run, 1},
                         {NULL, to + before + dy.run, behind, dx.outer, 0, dx.run, 1}};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        if (parts[k].block > 0) {
            copy(r, &parts[k]);
        }
    }
}

static void run_stack(const cpu_run *r)
{
    const around y = around_axis(&r->query->out[0], r->query->attr.axis);
    const job j = {r->in[0], r->out[0], y.place, y.outer, y.place, y.place, r->query->attr.count};
    copy(r, &j);
}

static void run_zeros(const cpu_run *r)
{
    const op_operand *t = &r->query->out[0];
    const int64_t bytes = cpu_elements_of(t) * (int64_t)dtype_bytes((hr_dtype)t->dtype);
    const job j = {NULL, r->out[0], bytes, 1, 0, bytes, 1};
    copy(r, &j);
}

// ---- padding ----------------------------------------------------------------------------------------------

typedef struct pad_job {
    cpu_image small, large; // their channels are bytes
    int64_t top, left;      // where the small image begins in the large one
    const char *from;
    char *to;
} pad_job;

// One row of the large image, filled or zero.
static void pad_row(const pad_job *j, int64_t row)
{
    const int64_t channels = j->large.channels, h = row % j->large.height - j->top;
    char *to = j->to + row * j->large.width * channels;
    if (h < 0 || h >= j->small.height) {
        memset(to, 0, (size_t)(j->large.width * channels));
        return;
    }
    const int64_t before = j->left * channels, inside = j->small.width * channels;
    const int64_t behind = j->large.width * channels - before - inside;
    const char *from = j->from + (row / j->large.height * j->small.height + h) * inside;
    memset(to, 0, (size_t)before);
    memcpy(to + before, from, (size_t)inside);
    memset(to + before + inside, 0, (size_t)behind);
}

static void cut_row(const pad_job *j, int64_t row)
{
    const int64_t channels = j->small.channels, width = j->small.width * channels;
    const int64_t h = row % j->small.height + j->top, image = row / j->small.height;
    const char *from = j->from + ((image * j->large.height + h) * j->large.width + j->left) * channels;
    memcpy(j->to + row * width, from, (size_t)width * sizeof *from);
}

static void pad_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        pad_row(argument, row);
    }
}

static void cut_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        cut_row(argument, row);
    }
}

static cpu_image image_in_bytes(const op_operand *t)
{
    cpu_image image = cpu_image_of(t);
    image.channels *= (int64_t)dtype_bytes((hr_dtype)t->dtype);
    return image;
}

static void run_padding(const cpu_run *r, const op_operand *small, const op_operand *large,
                        const op_operand *result, workers_body body)
{
    const pad_job j = {image_in_bytes(small),
                       image_in_bytes(large),
                       r->query->attr.pad_top,
                       r->query->attr.pad_left,
                       r->in[0],
                       r->out[0]};
    const cpu_image image = image_in_bytes(result);
    const int64_t row = image.width * image.channels;
    workers_for(r->device->workers, image.images * image.height, row >= GRAIN_BYTES ? 1 : GRAIN_BYTES / row,
                body, &j);
}

static void run_zero_pad(const cpu_run *r)
{
    run_padding(r, &r->query->in[0], &r->query->out[0], &r->query->out[0], pad_body);
}

static void run_zero_pad_bwd(const cpu_run *r)
{
    run_padding(r, &r->query->out[0], &r->query->in[0], &r->query->out[0], cut_body);
}

const cpu_impl cpu_concat = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_concat};
const cpu_impl cpu_slice = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_slice};
const cpu_impl cpu_slice_bwd = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_slice_bwd};
const cpu_impl cpu_stack = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_stack};
const cpu_impl cpu_zeros = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_zeros};
const cpu_impl cpu_zero_pad = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_zero_pad};
const cpu_impl cpu_zero_pad_bwd = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_zero_pad_bwd};
