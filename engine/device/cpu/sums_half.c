// SPDX-License-Identifier: Apache-2.0
// Bias gradients of two-byte matrices: widened a chunk of rows at a time, in the nearest cache.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "sums.h"

enum { CHUNK_FLOATS = 4096, GRAIN_FLOATS = 32768 };

typedef struct job {
    const uint16_t *y;
    hr_dtype type;
    int64_t f, own_floats;
    float *scratch; // per worker: sums, then a chunk
} job;

static int64_t chunk_rows(int64_t f)
{
    return f >= CHUNK_FLOATS ? 1 : CHUNK_FLOATS / f;
}

static int64_t own_floats(int64_t f)
{
    return f + chunk_rows(f) * f;
}

static int64_t grain_of(int64_t f)
{
    return f >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / f;
}

uint64_t cpu_half_sums_bytes(const cpu_device *device, int64_t f)
{
    return (uint64_t)own_floats(f) * device->threads * sizeof(float);
}

static void sum_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *total = j->scratch + (int64_t)worker * j->own_floats, *scratch = total + j->f;
    const int64_t chunk = chunk_rows(j->f);
    memset(total, 0, (size_t)j->f * sizeof *total);
    for (int64_t r = begin; r < end; r += chunk) {
        const int64_t rows = end - r < chunk ? end - r : chunk;
        cast_widen(scratch, j->y + r * j->f, j->type, rows * j->f);
        sums_add_rows(total, scratch, j->f, rows, j->f);
    }
}

void cpu_half_sums(const cpu_device *device, const op_operand *of, const void *y, const op_operand *sum_of,
                   void *sum, float *scratch)
{
    const int64_t f = of->shape.dim[of->shape.rank - 1], rows = cpu_elements_of(of) / f;
    const job j = {y, (hr_dtype)of->dtype, f, own_floats(f), scratch};
    workers_for(device->workers, rows, grain_of(f), sum_body, &j);
    for (uint32_t part = 1; part < workers_for_ranges(device->workers, rows, grain_of(f)); part++) {
        for (int64_t c = 0; c < f; c++) {
            scratch[c] += scratch[(int64_t)part * j.own_floats + c];
        }
    }
    if (sum_of->dtype == HR_F32) {
        memcpy(sum, scratch, (size_t)f * sizeof *scratch);
    } else {
        cast_narrow(sum, (hr_dtype)sum_of->dtype, scratch, f);
    }
}
