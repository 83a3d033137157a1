// SPDX-License-Identifier: Apache-2.0
// Axes in another order, in any type, and images turned around their edges. Axes that stay beside one another are walked as
// one. Where rows of the result are rows of x they are copied; else squares of x are turned, which stay in the cache.
#include "ops/permute.h"

#include <string.h>

#include "base/workers.h"
#include "cpu.h"

enum { GRAIN_BYTES = 1 << 16, SQUARE = 32 };

typedef struct axis {
    int64_t extent, from, to; // elements of x and of the result from one place to the next
} axis;

typedef struct job {
    const char *from;
    char *to;
    int64_t element; // bytes
    axis outer[OP_MAX_RANK];
    uint32_t outer_count;
    axis down, along; // down: the one that lies side by side in x; along: the result's last
    int64_t strips;   // of SQUARE places of `down`
} job;

// Axes of the result, neighbours joined where x has them side by side too. Returns how many; at least one.
static uint32_t joined_axes(const op_query *q, axis axes[OP_MAX_RANK])
{
    const hr_shape *y = &q->out[0].shape;
    int64_t to = 1;
    uint32_t count = 0;
    for (uint32_t k = y->rank; k-- > 0;) {
        const axis next = {y->dim[k], permute_stride(&q->attr, &q->in[0].shape, k), to};
        to *= next.extent;
        if (next.extent == 1) {
            continue;
        }
        axis *inner = count > 0 ? &axes[count - 1] : NULL;
        if (inner != NULL && next.from == inner->from * inner->extent) {
            inner->extent *= next.extent;
        } else {
            axes[count++] = next;
        }
    }
    if (count == 0) {
        axes[count++] = (axis){1, 1, 1};
    }
    return count;
}

static job job_of(const cpu_run *r)
{
    axis axes[OP_MAX_RANK];
    const uint32_t count = joined_axes(r->query, axes);
    job j = {.from = r->in[0],
             .to = r->out[0],
             .element = (int64_t)dtype_bytes((hr_dtype)r->query->out[0].dtype),
             .along = axes[0],
             .down = {1, 1, 1}};
    for (uint32_t k = 1; k < count; k++) {
        if (axes[k].from == 1) {
            j.down = axes[k];
        } else {
            j.outer[j.outer_count++] = axes[k];
        }
    }
    j.strips = (j.down.extent + SQUARE - 1) / SQUARE;
    return j;
}

// Where the outer axes begin, in elements.
static void locate(const job *j, int64_t index, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    for (uint32_t k = 0; k < j->outer_count; k++) {
        const int64_t place = index % j->outer[k].extent;
        index /= j->outer[k].extent;
        *from += place * j->outer[k].from;
        *to += place * j->outer[k].to;
    }
}

static void row_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t from, to;
        locate(j, row, &from, &to);
        memcpy(j->to + to * j->element, j->from + from * j->element, (size_t)(j->along.extent * j->element));
    }
}

#define TURN(bits)                                                                                           \
    static void turn_##bits(const job *j, int64_t from, int64_t to, int64_t downs, int64_t alongs)           \
    {                                                                                                        \
        const uint##bits##_t *x = (const uint##bits##_t *)(const void *)j->from + from;                      \
        uint##bits##_t *y = (uint##bits##_t *)(void *)j->to + to;                                            \
        for (int64_t d = 0; d < downs; d++) {                                                                \
            for (int64_t a = 0; a < alongs; a++) {                                                           \
                y[d * j->down.to + a] = x[a * j->along.from + d];                                            \
            }                                                                                                \
        }                                                                                                    \
    }
TURN(8)
TURN(16)
TURN(32)
TURN(64)
#undef TURN

static void turn(const job *j, int64_t from, int64_t to, int64_t downs, int64_t alongs)
{
    (j->element == 1   ? turn_8
     : j->element == 2 ? turn_16
     : j->element == 4 ? turn_32
                       : turn_64)(j, from, to, downs, alongs);
}

// A strip: up to SQUARE places of `down`, all of `along`.
static void strip_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        int64_t from, to;
        locate(j, k / j->strips, &from, &to);
        const int64_t first = k % j->strips * SQUARE, left = j->down.extent - first;
        const int64_t downs = left < SQUARE ? left : SQUARE;
        for (int64_t a = 0; a < j->along.extent; a += SQUARE) {
            const int64_t rest = j->along.extent - a;
            turn(j, from + first + a * j->along.from, to + first * j->down.to + a, downs,
                 rest < SQUARE ? rest : SQUARE);
        }
    }
}

static int64_t grain_of(int64_t bytes)
{
    return bytes >= GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes;
}

static void run_permute(const cpu_run *r)
{
    const job j = job_of(r);
    int64_t outer = 1;
    for (uint32_t k = 0; k < j.outer_count; k++) {
        outer *= j.outer[k].extent;
    }
    const int64_t row = j.along.extent * j.element;
    if (j.along.from == 1) {
        workers_for(r->device->workers, outer, grain_of(row), row_body, &j);
    } else {
        workers_for(r->device->workers, outer * j.strips, grain_of(SQUARE * row), strip_body, &j);
    }
}

// ---- roll -----------------------------------------------------------------------------------------------------

typedef struct roll_job {
    const char *from;
    char *to;
    int64_t height, row, top, left; // row and left in bytes
} roll_job;

static void roll_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const roll_job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const int64_t h = row % j->height;
        const char *from = j->from + (row - h + (h + j->top) % j->height) * j->row;
        char *to = j->to + row * j->row;
        memcpy(to, from + j->left, (size_t)(j->row - j->left));
        memcpy(to + j->row - j->left, from, (size_t)j->left);
    }
}

static void run_roll(const cpu_run *r)
{
    const op_query *q = r->query;
    const int64_t *d = q->in[0].shape.dim, rows = d[0] * d[1];
    const int64_t row = cpu_elements_of(&q->in[0]) / rows * (int64_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    const roll_job j = {.from = r->in[0],
                        .to = r->out[0],
                        .height = d[1],
                        .row = row,
                        .top = q->attr.pad_top,
                        .left = q->attr.pad_left * (row / d[2])};
    workers_for(r->device->workers, rows, grain_of(row), roll_body, &j);
}

const cpu_impl cpu_permute = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_permute};
const cpu_impl cpu_roll = {.name = "copy", .types = CPU_ANY_TYPE, .run = run_roll};
