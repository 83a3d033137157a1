// SPDX-License-Identifier: Apache-2.0
#include "sums.h"

#include <string.h>

#include "base/workers.h"
#include "simd.h"

enum { CHUNK_ROWS = 64, GRAIN_FLOATS = 32768, LINE_BYTES = 64 };

typedef struct job {
    const float *y;
    int64_t f;
    float *partial; // [worker][padded f]
} job;

static int64_t padded(int64_t f)
{
    return (f + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

uint64_t sums_scratch_bytes(const workers *w, int64_t f)
{
    return (uint64_t)padded(f) * workers_count(w) * sizeof(float);
}

static int64_t grain_of(int64_t f)
{
    return f >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / f;
}

// Even and odd rows run in sums of their own: a sum waits for the one before it.
CPU_INLINE void add_chunk_16(float *total, const float *y, int64_t f, int64_t rows)
{
    f32x16 even = {0}, odd = {0};
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
        even += F32X16(y + r * f);
        odd += F32X16(y + (r + 1) * f);
    }
    if (r < rows) {
        even += F32X16(y + r * f);
    }
    F32X16W(total) += even + odd;
}

CPU_INLINE void add_chunk_1(float *total, const float *y, int64_t f, int64_t rows)
{
    float sum = 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        sum += y[r * f];
    }
    *total += sum;
}

CPU_HOT void sums_add_rows(float *total, const float *y, int64_t row_floats, int64_t rows, int64_t columns)
{
    for (int64_t first = 0; first < rows; first += CHUNK_ROWS) {
        const int64_t count = rows - first < CHUNK_ROWS ? rows - first : CHUNK_ROWS;
        const float *chunk = y + first * row_floats;
        int64_t c = 0;
        for (; c + CPU_LANES <= columns; c += CPU_LANES) {
            add_chunk_16(total + c, chunk + c, row_floats, count);
        }
        for (; c < columns; c++) {
            add_chunk_1(total + c, chunk + c, row_floats, count);
        }
    }
}

static void sum_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *total = j->partial + (int64_t)worker * padded(j->f);
    memset(total, 0, (size_t)j->f * sizeof *total);
    sums_add_rows(total, j->y + begin * j->f, j->f, end - begin, j->f);
}

void sums_columns(workers *w, const float *y, int64_t rows, int64_t f, float *sum, float *scratch)
{
    const job j = {y, f, scratch};
    workers_for(w, rows, grain_of(f), sum_body, &j);
    memcpy(sum, scratch, (size_t)f * sizeof *sum);
    for (uint32_t part = 1; part < workers_for_ranges(w, rows, grain_of(f)); part++) {
        for (int64_t c = 0; c < f; c++) {
            sum[c] += scratch[(int64_t)part * padded(f) + c];
        }
    }
}
