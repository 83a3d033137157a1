// SPDX-License-Identifier: Apache-2.0
// What only moves bytes: host batches in, scalars out, images between NHWC and nChw16c.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { COPY_GRAIN_BYTES = 1 << 18, ROW_GRAIN = 16 };

typedef struct copy_job {
    const char *from;
    char *to;
} copy_job;

static void copy_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const copy_job *j = argument;
    (void)worker;
    memcpy(j->to + begin, j->from + begin, (size_t)(end - begin));
}

static void run_input(const cpu_run *r)
{
    const op_operand *t = &r->query->out[0];
    copy_job j = {r->io->slot[r->query->attr.slot], r->out[0]};
    cpu_for(r->device->workers, cpu_elements_of(t) * (int64_t)dtype_bytes((hr_dtype)t->dtype),
            COPY_GRAIN_BYTES, copy_body, &j);
}

// Between host and device, which here are one memory, and within the device.
static void run_crossing(const cpu_run *r)
{
    const op_operand *t = &r->query->out[0];
    copy_job j = {r->in[0], r->out[0]};
    cpu_for(r->device->workers, cpu_floats_of(t) * (int64_t)dtype_bytes((hr_dtype)t->dtype), COPY_GRAIN_BYTES,
            copy_body, &j);
}

// One lane runs everything in order.
static void run_order(const cpu_run *r)
{
    (void)r;
}

static void run_read(const cpu_run *r)
{
    if (r->query->attr.slot == READ_CORRECT) {
        r->io->correct += *(const int32_t *)r->in[0];
    } else if (r->query->attr.slot == READ_FINITE) {
        r->io->nonfinite = *(const int32_t *)r->in[0] == 0;
        r->io->loss_scale = *(const float *)r->in[1];
    } else if (r->query->attr.slot == READ_HEALTH) {
        r->io->health = r->in[0];
    } else {
        r->io->loss += step_io_weight(r->io, &r->query->attr) * (double)*(const float *)r->in[0];
    }
}

// ---- images between layouts -------------------------------------------------------------------------------

typedef struct image_job {
    const char *from;
    char *to;
    int64_t rows; // pixels of one sample
    int64_t channels, blocks;
    int64_t element_bytes;
    bool to_blocked;
} image_job;

// One pixel's block of channels, zeros where the block reaches beyond the last channel.
static void move_block(const image_job *j, int64_t pixel, int64_t sample, int64_t block)
{
    const int64_t first = block * OP_BLOCK_CHANNELS, e = j->element_bytes;
    const int64_t left = j->channels - first, count = left < OP_BLOCK_CHANNELS ? left : OP_BLOCK_CHANNELS;
    const int64_t plain = ((sample * j->rows + pixel) * j->channels + first) * e;
    const int64_t blocked = ((sample * j->blocks + block) * j->rows + pixel) * OP_BLOCK_CHANNELS * e;
    if (!j->to_blocked) {
        memcpy(j->to + plain, j->from + blocked, (size_t)(count * e));
        return;
    }
    memcpy(j->to + blocked, j->from + plain, (size_t)(count * e));
    memset(j->to + blocked + count * e, 0, (size_t)((OP_BLOCK_CHANNELS - count) * e));
}

static void image_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const image_job *j = argument;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t block = 0; block < j->blocks; block++) {
            move_block(j, i % j->rows, i / j->rows, block);
        }
    }
}

static bool is_between_images(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->attr.peer == HR_NO_ID && q->in[0].shape.rank == 4 && q->in[0].layout != HR_LAYOUT_LIBRARY &&
           q->out[0].layout != HR_LAYOUT_LIBRARY;
}

static void run_reorder_image(const cpu_run *r)
{
    const op_operand *from = &r->query->in[0];
    const int64_t *d = from->shape.dim;
    image_job j = {.from = r->in[0],
                   .to = r->out[0],
                   .rows = d[1] * d[2],
                   .channels = d[3],
                   .blocks = (d[3] + OP_BLOCK_CHANNELS - 1) / OP_BLOCK_CHANNELS,
                   .element_bytes = (int64_t)dtype_bytes((hr_dtype)from->dtype),
                   .to_blocked = r->query->out[0].layout == HR_LAYOUT_BLOCKED};
    if (from->layout == r->query->out[0].layout) {
        memcpy(j.to, j.from, (size_t)(cpu_floats_of(from) * j.element_bytes));
        return;
    }
    cpu_for(r->device->workers, d[0] * j.rows, ROW_GRAIN, image_body, &j);
}

const cpu_impl cpu_input = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_input};
const cpu_impl cpu_crossing = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_crossing};
const cpu_impl cpu_order = {.name = "in order", .types = CPU_ANY_TYPE, .run = run_order};
const cpu_impl cpu_read = {.name = "copy", .run = run_read};
const cpu_impl cpu_reorder_image = {.name = "blocks", .fits = is_between_images, .run = run_reorder_image};
