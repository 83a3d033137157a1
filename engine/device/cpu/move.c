// SPDX-License-Identifier: Apache-2.0
// What only moves bytes: host batches in, scalars out.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { COPY_GRAIN_BYTES = 1 << 18 };

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
    workers_for(r->device->workers, cpu_elements_of(t) * (int64_t)dtype_bytes((hr_dtype)t->dtype),
                COPY_GRAIN_BYTES, copy_body, &j);
}

// Between host and device, which here are one memory, and within the device.
static void run_crossing(const cpu_run *r)
{
    const op_operand *t = &r->query->out[0];
    copy_job j = {r->in[0], r->out[0]};
    workers_for(r->device->workers, cpu_elements_of(t) * (int64_t)dtype_bytes((hr_dtype)t->dtype),
                COPY_GRAIN_BYTES, copy_body, &j);
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
        const op_attr *a = &r->query->attr;
        step_io_add_loss(r->io, a, step_io_weight(r->io, a), (double)*(const float *)r->in[0]);
    }
}

const cpu_impl cpu_input = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_input};
const cpu_impl cpu_crossing = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_crossing};
const cpu_impl cpu_order = {.name = "in order", .types = CPU_ANY_TYPE, .run = run_order};
const cpu_impl cpu_read = {.name = "copy", .run = run_read};
