// SPDX-License-Identifier: Apache-2.0
// Sums over neighbouring axes of a plain tensor, or of the products of two, seen as [outer, middle, inner]. Sums of a long middle run in float
// over chunks that are added in double; where few sums are made of many rows, the rows are shared out among the workers.
// Two-byte operands are widened a stretch of a row at a time.
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { CHUNK = 256, GRAIN_FLOATS = 16384, STRIP = 512, SPLITS_AT = 8 };

typedef struct job {
    int64_t outer, middle, inner;
    const char *from;
    const char *times; // of the type of `from`; NULL: nothing
    char *to;
    hr_dtype from_type, to_type;
    double *partial; // [worker][inner]
    float share;
} job;

// Floats [at, at + count) of what is read: where they lie, else widened into `scratch`.
CPU_INLINE const float *floats_of(const job *j, const char *from, int64_t at, int64_t count, float *scratch)
{
    if (j->from_type == HR_F32) {
        return (const float *)(const void *)from + at;
    }
    cast_widen(scratch, (const uint16_t *)(const void *)from + at, j->from_type, count);
    return scratch;
}

CPU_INLINE const float *floats_at(const job *j, int64_t at, int64_t count, float *scratch)
{
    return floats_of(j, j->from, at, count, scratch);
}

// What is summed; at most CHUNK * CPU_LANES floats.
CPU_INLINE const float *terms_at(const job *j, int64_t at, int64_t count, float *scratch)
{
    const float *x = floats_at(j, at, count, scratch);
    if (j->times == NULL) {
        return x;
    }
    float room[CHUNK * CPU_LANES];
    const float *times = floats_of(j, j->times, at, count, room);
    for (int64_t c = 0; c < count; c++) {
        scratch[c] = x[c] * times[c];
    }
    return scratch;
}

CPU_INLINE void put_floats(const job *j, int64_t at, const float *values, int64_t count)
{
    if (j->to_type == HR_F32) {
        memcpy((float *)(void *)j->to + at, values, (size_t)count * sizeof *values);
    } else {
        cast_narrow((uint16_t *)(void *)j->to + at, j->to_type, values, count);
    }
}

static job job_of(const op_query *q, const op_operand *x)
{
    job j = {.outer = 1,
             .middle = 1,
             .inner = 1,
             .share = 1.0f,
             .from_type = (hr_dtype)q->in[0].dtype,
             .to_type = (hr_dtype)q->out[0].dtype};
    const int32_t axis = q->attr.axis, behind = axis + q->attr.count;
    for (int32_t k = 0; k < (int32_t)x->shape.rank; k++) {
        int64_t *part = k < axis ? &j.outer : k < behind ? &j.middle : &j.inner;
        *part *= x->shape.dim[k];
    }
    if ((q->attr.flags & OP_FLAG_MEAN) != 0) {
        j.share = (float)(1.0 / (double)j.middle);
    }
    return j;
}

static int64_t grain_of(int64_t floats)
{
    return floats >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / floats;
}

// sum[0..width) += `rows` rows of `width` floats, the first at `at`, that lie `inner` apart.
CPU_INLINE void add_columns(const job *j, double *restrict sum, int64_t at, int64_t rows, int64_t width)
{
    float part[STRIP], scratch[STRIP];
    for (int64_t first = 0; first < rows; first += CHUNK) {
        const int64_t count = rows - first < CHUNK ? rows - first : CHUNK;
        memset(part, 0, (size_t)width * sizeof *part);
        for (int64_t r = 0; r < count; r++) {
            const float *restrict row = terms_at(j, at + (first + r) * j->inner, width, scratch);
            for (int64_t c = 0; c < width; c++) {
                part[c] += row[c];
            }
        }
        for (int64_t c = 0; c < width; c++) {
            sum[c] += (double)part[c];
        }
    }
}

// The sum of `count` neighbours.
CPU_INLINE double row_sum(const job *j, int64_t at, int64_t count)
{
    float scratch[CHUNK * CPU_LANES];
    double total = 0.0;
    for (int64_t first = 0; first < count; first += CHUNK * CPU_LANES) {
        const int64_t end = count - first < CHUNK * CPU_LANES ? count - first : CHUNK * CPU_LANES;
        const float *x = terms_at(j, at + first, end, scratch);
        f32x16 even = {0}, odd = {0};
        int64_t k = 0;
        for (; k + 2 * CPU_LANES <= end; k += 2 * CPU_LANES) {
            even += F32X16(x + k);
            odd += F32X16(x + k + CPU_LANES);
        }
        even += odd;
        for (int lane = 0; lane < CPU_LANES; lane++) {
            total += (double)even[lane];
        }
        for (; k < end; k++) {
            total += (double)x[k];
        }
    }
    return total;
}

// Sums times the share, as they are stored.
CPU_INLINE void put_sums(const job *j, int64_t at, const double *sum, int64_t count)
{
    float values[STRIP];
    for (int64_t first = 0; first < count; first += STRIP) {
        const int64_t width = count - first < STRIP ? count - first : STRIP;
        for (int64_t c = 0; c < width; c++) {
            values[c] = (float)(sum[first + c] * (double)j->share);
        }
        put_floats(j, at + first, values, width);
    }
}

// Strips of columns in one [middle, inner].
static int64_t strips_of(const job *j)
{
    return (j->inner + STRIP - 1) / STRIP;
}

CPU_HOT static void reduce_strips(const job *j, int64_t begin, int64_t end)
{
    double sum[STRIP];
    const int64_t strips = strips_of(j);
    for (int64_t item = begin; item < end; item++) {
        const int64_t outer = item / strips, first = item % strips * STRIP;
        const int64_t width = j->inner - first < STRIP ? j->inner - first : STRIP;
        if (j->inner == 1) {
            sum[0] = row_sum(j, outer * j->middle, j->middle);
        } else {
            memset(sum, 0, (size_t)width * sizeof *sum);
            add_columns(j, sum, outer * j->middle * j->inner + first, j->middle, width);
        }
        put_sums(j, outer * j->inner + first, sum, width);
    }
}

static void reduce_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    reduce_strips(argument, begin, end);
}

// ---- few sums of many rows --------------------------------------------------------------------------------

static bool splits_rows(const job *j)
{
    return j->outer * strips_of(j) < SPLITS_AT && j->middle * j->inner >= 2 * GRAIN_FLOATS;
}

CPU_HOT static void add_range(const job *j, double *sum, int64_t begin, int64_t end)
{
    if (j->inner == 1) {
        sum[0] += row_sum(j, begin, end - begin);
        return;
    }
    for (int64_t first = 0; first < j->inner; first += STRIP) {
        const int64_t width = j->inner - first < STRIP ? j->inner - first : STRIP;
        add_columns(j, sum + first, begin * j->inner + first, end - begin, width);
    }
}

static void split_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    double *sum = j->partial + (int64_t)worker * j->inner;
    memset(sum, 0, (size_t)j->inner * sizeof *sum);
    add_range(j, sum, begin, end);
}

static void reduce_split(const cpu_run *r, job j)
{
    workers *w = r->device->workers;
    const int64_t grain = grain_of(j.inner);
    for (int64_t o = 0; o < j.outer; o++) {
        workers_for(w, j.middle, grain, split_body, &j);
        for (uint32_t part = 1; part < workers_for_ranges(w, j.middle, grain); part++) {
            for (int64_t c = 0; c < j.inner; c++) {
                j.partial[c] += j.partial[(int64_t)part * j.inner + c];
            }
        }
        put_sums(&j, 0, j.partial, j.inner);
        const int64_t bytes = j.middle * j.inner * (int64_t)dtype_bytes(j.from_type);
        j.from += bytes;
        j.times = j.times == NULL ? NULL : j.times + bytes;
        j.to += j.inner * (int64_t)dtype_bytes(j.to_type);
    }
}

static uint64_t reduce_workspace(const cpu_device *device, const op_query *q)
{
    const job j = job_of(q, &q->in[0]);
    return splits_rows(&j) ? device->threads * (uint64_t)j.inner * sizeof(double) : 0;
}

static void run_reduce(const cpu_run *r)
{
    job j = job_of(r->query, &r->query->in[0]);
    j.from = r->in[0];
    j.times = r->query->in_count > 1 ? r->in[1] : NULL;
    j.to = r->out[0];
    j.partial = r->workspace;
    if (splits_rows(&j)) {
        reduce_split(r, j);
    } else {
        const int64_t width = j.inner < STRIP ? j.inner : STRIP;
        workers_for(r->device->workers, j.outer * strips_of(&j), grain_of(j.middle * width), reduce_body, &j);
    }
}

// ---- backward ---------------------------------------------------------------------------------------------

// Rows of dx: [outer, middle] of `inner` floats each.
CPU_HOT static void spread_rows(const job *j, int64_t begin, int64_t end)
{
    float scratch[STRIP], values[STRIP];
    for (int64_t row = begin; row < end; row++) {
        for (int64_t first = 0; first < j->inner; first += STRIP) {
            const int64_t width = j->inner - first < STRIP ? j->inner - first : STRIP;
            const float *restrict from = floats_at(j, row / j->middle * j->inner + first, width, scratch);
            for (int64_t c = 0; c < width; c++) {
                values[c] = from[c] * j->share;
            }
            put_floats(j, row * j->inner + first, values, width);
        }
    }
}

CPU_HOT static void spread_scalars(const job *j, int64_t begin, int64_t end)
{
    float scratch[1], values[STRIP];
    for (int64_t i = begin; i < end;) {
        const int64_t outer = i / j->middle, next = (outer + 1) * j->middle, stop = next < end ? next : end;
        const float value = *floats_at(j, outer, 1, scratch) * j->share;
        for (int64_t c = 0; c < STRIP && c < stop - i; c++) {
            values[c] = value;
        }
        for (; i < stop; i += STRIP) {
            put_floats(j, i, values, stop - i < STRIP ? stop - i : STRIP);
        }
        i = stop;
    }
}

static void spread_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (j->inner == 1) {
        spread_scalars(j, begin, end);
    } else {
        spread_rows(j, begin, end);
    }
}

static void run_reduce_bwd(const cpu_run *r)
{
    job j = job_of(r->query, &r->query->out[0]);
    j.from = r->in[0];
    j.to = r->out[0];
    workers_for(r->device->workers, j.outer * j.middle, grain_of(j.inner), spread_body, &j);
}

const cpu_impl cpu_reduce = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = reduce_workspace, .run = run_reduce};
const cpu_impl cpu_reduce_bwd = {.name = "loops", .types = CPU_ANY_TYPE, .run = run_reduce_bwd};
