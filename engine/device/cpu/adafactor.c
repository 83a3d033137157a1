// SPDX-License-Identifier: Apache-2.0
// Adafactor: Shazeer, Stern 2018 (arXiv 1804.04235) with Keras' constants. A matrix is read three times: for the means
// of its squared gradient, for the size of the whole update, and to update it; the second moment is made anew from the
// two factors each time unless it is held (ADAFACTOR_KERAS). In two bytes a row is widened when its turn comes, the
// factors once.
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "simd.h"
#include "update.h"

enum { GRAIN_FLOATS = 16384, CHUNK_ROWS = 64, LINE_DOUBLES = 8, PIECE = 1024 };

static const double clip_threshold = 1.0;

// One matrix of the variable, or a vector: then r, c are NULL and v holds the second moment itself.
typedef struct job {
    void *w, *v; // v NULL: not held
    const void *g;
    hr_dtype type; // of w, v and g
    float *r, *c;
    int64_t rows, columns;
    float keep, epsilon;
    float kept, rate; // of the weight, of the update
    float r_mean;
    float *column_sums;   // [worker][2][padded columns]
    double *partial;      // [worker][LINE_DOUBLES]
    float *scratch_areas; // of two bytes: [worker][2][padded columns]
} job;

static int64_t padded(int64_t columns)
{
    return (columns + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

static int64_t row_grain(const job *j)
{
    return j->columns >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / j->columns;
}

// ---- rows -------------------------------------------------------------------------------------------------

static float *scratch_of(const job *j, uint32_t worker, int64_t which)
{
    return j->scratch_areas + (2 * (int64_t)worker + which) * padded(j->columns);
}

static char *element(const job *j, const void *base, int64_t at)
{
    return (char *)(uintptr_t)base + at * (int64_t)dtype_bytes(j->type);
}

// Row i of a matrix where it lies, or widened.
static float *row_at(const job *j, const void *base, int64_t i, float *scratch)
{
    char *row = element(j, base, i * j->columns);
    if (j->type == HR_F32) {
        return (float *)(void *)row;
    }
    cast_widen(scratch, row, j->type, j->columns);
    return scratch;
}

static void put_row(const job *j, void *base, int64_t i, const float *row)
{
    if (j->type != HR_F32) {
        cast_narrow(element(j, base, i * j->columns), j->type, row, j->columns);
    }
}

CPU_INLINE float lanes_sum(const f32x16 *lanes)
{
    float sum = 0.0f;
    for (int k = 0; k < CPU_LANES; k++) {
        sum += (*lanes)[k];
    }
    return sum;
}

// ---- the factors ------------------------------------------------------------------------------------------

// g² + epsilon of one row: its sum, and added to the columns' sums.
CPU_INLINE float square_row(const float *g, int64_t columns, float epsilon, float *column_sum)
{
    f32x16 lanes = {0};
    float tail = 0.0f;
    int64_t c = 0;
    for (; c + CPU_LANES <= columns; c += CPU_LANES) {
        const f32x16 x = F32X16(g + c), square = x * x + epsilon;
        lanes += square;
        F32X16W(column_sum + c) += square;
    }
    for (; c < columns; c++) {
        const float square = g[c] * g[c] + epsilon;
        tail += square;
        column_sum[c] += square;
    }
    return lanes_sum(&lanes) + tail;
}

// The columns' sums of CHUNK_ROWS rows at a time are added to the total, so that no sum is long.
CPU_HOT static void factor_range(const job *j, float *total, float *scratch, int64_t begin, int64_t end)
{
    float *chunk = total + padded(j->columns);
    memset(total, 0, (size_t)j->columns * sizeof *total);
    for (int64_t first = begin; first < end; first += CHUNK_ROWS) {
        memset(chunk, 0, (size_t)j->columns * sizeof *chunk);
        for (int64_t i = first; i < end && i < first + CHUNK_ROWS; i++) {
            const float sum = square_row(row_at(j, j->g, i, scratch), j->columns, j->epsilon, chunk);
            j->r[i] = j->keep * j->r[i] + (1.0f - j->keep) * (sum / (float)j->columns);
        }
        for (int64_t c = 0; c < j->columns; c++) {
            total[c] += chunk[c];
        }
    }
}

static void factor_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    factor_range(j, j->column_sums + (int64_t)worker * 2 * padded(j->columns), scratch_of(j, worker, 0),
                 begin, end);
}

static void update_factors(workers *w, job *j)
{
    workers_for(w, j->rows, row_grain(j), factor_body, j);
    const uint32_t parts = workers_for_ranges(w, j->rows, row_grain(j));
    for (int64_t c = 0; c < j->columns; c++) {
        float sum = 0.0f;
        for (uint32_t part = 0; part < parts; part++) {
            sum += j->column_sums[(int64_t)part * 2 * padded(j->columns) + c];
        }
        j->c[c] = j->keep * j->c[c] + (1.0f - j->keep) * (sum / (float)j->rows);
    }
}

static float mean_of(const float *values, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)values[i];
    }
    return (float)(sum / (double)count);
}

// ---- the update -------------------------------------------------------------------------------------------

// v where neither row nor column has had a gradient is 1e-60, which float32 does not know: the update is 0 then, not
// 0/0.
#define LEAST_MOMENT FLT_MIN

// Σ g²/v of one row, v = scale * c.
CPU_INLINE float measure_row(const float *g, const float *c, float scale, float *v, int64_t columns)
{
    f32x16 lanes = {0};
    float tail = 0.0f;
    int64_t k = 0;
    for (; k + CPU_LANES <= columns; k += CPU_LANES) {
        const f32x16 x = F32X16(g + k), moment = F32X16(c + k) * scale + LEAST_MOMENT;
        lanes += x * x / moment;
        if (v != NULL) {
            F32X16W(v + k) = moment;
        }
    }
    for (; k < columns; k++) {
        const float moment = c[k] * scale + LEAST_MOMENT;
        tail += g[k] * g[k] / moment;
        if (v != NULL) {
            v[k] = moment;
        }
    }
    return lanes_sum(&lanes) + tail;
}

CPU_HOT static double measure_range(const job *j, uint32_t worker, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t i = begin; i < end; i++) {
        const float *g = row_at(j, j->g, i, scratch_of(j, worker, 0));
        float *v = j->v == NULL ? NULL : row_at(j, j->v, i, scratch_of(j, worker, 1));
        total += (double)measure_row(g, j->c, j->r[i] / j->r_mean, v, j->columns);
        if (v != NULL) {
            put_row(j, j->v, i, v);
        }
    }
    return total;
}

static void measure_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    j->partial[worker * LINE_DOUBLES] = measure_range(j, worker, begin, end);
}

CPU_HOT static void apply_row(const job *j, float *restrict w, const float *restrict g, float scale)
{
    const float *restrict c = j->c;
    const float kept = j->kept, rate = j->rate;
    for (int64_t k = 0; k < j->columns; k++) {
        w[k] = kept * w[k] - rate * g[k] / sqrtf(scale * c[k] + LEAST_MOMENT);
    }
}

static void apply_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    for (int64_t i = begin; i < end; i++) {
        float *w = row_at(j, j->w, i, scratch_of(j, worker, 1));
        apply_row(j, w, row_at(j, j->g, i, scratch_of(j, worker, 0)), j->r[i] / j->r_mean);
        put_row(j, j->w, i, w);
    }
}

// ---- vectors ----------------------------------------------------------------------------------------------

// Elements [at, at + count) where they lie, or widened.
static float *piece_at(const job *j, const void *base, int64_t at, int64_t count, float *scratch)
{
    char *piece = element(j, base, at);
    if (j->type == HR_F32) {
        return (float *)(void *)piece;
    }
    cast_widen(scratch, piece, j->type, count);
    return scratch;
}

static void put_piece(const job *j, void *base, int64_t at, int64_t count, const float *piece)
{
    if (j->type != HR_F32) {
        cast_narrow(element(j, base, at), j->type, piece, count);
    }
}

// The second moment of this step. It is stored where it is used: rounded to two bytes it may be zero.
CPU_INLINE float advanced(const job *j, float v, float square)
{
    return j->keep * v + (1.0f - j->keep) * (square + j->epsilon);
}

CPU_HOT static double measure_piece(const job *j, const float *restrict g, const float *restrict v,
                                    int64_t count)
{
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) {
        const float square = g[i] * g[i];
        total += (double)(square / advanced(j, v[i], square));
    }
    return total;
}

static void measure_vector_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float g[PIECE], v[PIECE];
    double total = 0.0;
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t count = end - at < PIECE ? end - at : PIECE;
        total += measure_piece(j, piece_at(j, j->g, at, count, g), piece_at(j, j->v, at, count, v), count);
    }
    j->partial[worker * LINE_DOUBLES] = total;
}

CPU_HOT static void apply_piece(const job *j, float *restrict w, float *restrict v, const float *restrict g,
                                int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        v[i] = advanced(j, v[i], g[i] * g[i]);
        w[i] = j->kept * w[i] - j->rate * g[i] / sqrtf(v[i]);
    }
}

static void apply_vector_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float scratch_areas[3][PIECE];
    (void)worker;
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t count = end - at < PIECE ? end - at : PIECE;
        float *w = piece_at(j, j->w, at, count, scratch_areas[0]),
              *v = piece_at(j, j->v, at, count, scratch_areas[1]);
        apply_piece(j, w, v, piece_at(j, j->g, at, count, scratch_areas[2]), count);
        put_piece(j, j->w, at, count, w);
        put_piece(j, j->v, at, count, v);
    }
}

// ---- running ----------------------------------------------------------------------------------------------

static bool is_vector(const op_query *q)
{
    return q->out_count == 2;
}

static double sum_parts(const job *j, uint32_t parts)
{
    double sum = 0.0;
    for (uint32_t part = 0; part < parts; part++) {
        sum += j->partial[part * LINE_DOUBLES];
    }
    return sum;
}

static job job_of(const cpu_run *r)
{
    const op_query *q = r->query;
    const hr_shape *s = &q->in[0].shape;
    const double keep = 1.0 - pow((double)r->io->update, q->attr.beta2);
    job j = {.w = r->in[0],
             .g = r->in[1],
             .type = (hr_dtype)q->in[0].dtype,
             .rows = s->rank < 2 ? 1 : s->dim[s->rank - 2],
             .columns = s->dim[s->rank - 1],
             .keep = (float)keep,
             .epsilon = (float)q->attr.epsilon,
             .kept = update_kept(r),
             .partial = r->workspace};
    j.v = is_vector(q) ? r->in[2] : q->out_count == 4 ? r->in[4] : NULL;
    if (!is_vector(q)) {
        const int64_t threads = workers_count(r->device->workers);
        j.column_sums = (float *)(j.partial + threads * LINE_DOUBLES);
        j.scratch_areas = j.column_sums + 2 * threads * padded(j.columns);
        j.r = j.type == HR_F32 ? r->in[2] : j.scratch_areas + 2 * threads * padded(j.columns);
        j.c = j.type == HR_F32 ? r->in[3] : j.r + padded(cpu_elements_of(&q->in[2]));
    }
    return j;
}

// The factors in two bytes, to where they are used and back.
static void move_factors(const cpu_run *r, const job *j, bool widens)
{
    float *const wide[] = {j->r, j->c};
    for (uint32_t k = 0; k < 2 && j->type != HR_F32; k++) {
        const int64_t count = cpu_elements_of(&r->query->in[2 + k]);
        if (widens) {
            cast_widen(wide[k], r->in[2 + k], j->type, count);
        } else {
            cast_narrow(r->in[2 + k], j->type, wide[k], count);
        }
    }
}

// Matrix k of the variable.
static job matrix_of(const job *all, int64_t k)
{
    job j = *all;
    j.w = element(all, j.w, k * j.rows * j.columns);
    j.g = element(all, j.g, k * j.rows * j.columns);
    j.v = j.v == NULL ? NULL : element(all, j.v, k * j.rows * j.columns);
    j.r += k * j.rows;
    j.c += k * j.columns;
    return j;
}

// The learning rate relative to the size of the decayed weights, before clipping.
static double plain_rate(const cpu_run *r, const job *j)
{
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const double squares = update_squares(r->device->workers, j->w, j->type, count, j->partial);
    const double size = fabs((double)j->kept) * sqrt(squares / (double)count);
    return fmin(r->io->learning_rate, 1.0 / sqrt((double)r->io->update)) * fmax(r->query->attr.beta1, size);
}

static float clipped(double rate, double squares, int64_t count)
{
    return (float)(rate / fmax(1.0, sqrt(squares / (double)count) / clip_threshold));
}

static void run_vector(const cpu_run *r, job *j)
{
    workers *w = r->device->workers;
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const double rate = plain_rate(r, j);
    workers_for(w, count, UPDATE_GRAIN, measure_vector_body, j);
    j->rate = clipped(rate, sum_parts(j, workers_for_ranges(w, count, UPDATE_GRAIN)), count);
    workers_for(w, count, UPDATE_GRAIN, apply_vector_body, j);
}

static void run_matrices(const cpu_run *r, const job *all)
{
    workers *w = r->device->workers;
    const int64_t count = cpu_elements_of(&r->query->in[0]), matrices = count / (all->rows * all->columns);
    const double rate = plain_rate(r, all);
    double squares = 0.0;
    move_factors(r, all, true);
    for (int64_t k = 0; k < matrices; k++) {
        job j = matrix_of(all, k);
        update_factors(w, &j);
        j.r_mean = mean_of(j.r, j.rows);
        workers_for(w, j.rows, row_grain(&j), measure_body, &j);
        squares += sum_parts(&j, workers_for_ranges(w, j.rows, row_grain(&j)));
    }
    for (int64_t k = 0; k < matrices; k++) {
        job j = matrix_of(all, k);
        j.r_mean = mean_of(j.r, j.rows);
        j.rate = clipped(rate, squares, count);
        workers_for(w, j.rows, row_grain(&j), apply_body, &j);
    }
    move_factors(r, all, false);
}

static uint64_t workspace(const cpu_device *device, const op_query *q)
{
    const uint64_t threads = workers_count(device->workers);
    const int64_t columns = q->in[0].shape.dim[q->in[0].shape.rank - 1];
    uint64_t floats = is_vector(q) ? 0 : 2 * (uint64_t)padded(columns) * threads;
    if (!is_vector(q) && q->in[0].dtype != HR_F32) {
        floats *= 2;
        floats += (uint64_t)(padded(cpu_elements_of(&q->in[2])) + padded(cpu_elements_of(&q->in[3])));
    }
    return threads * LINE_DOUBLES * sizeof(double) + floats * sizeof(float);
}

static void run(const cpu_run *r)
{
    job j = job_of(r);
    if (update_is_skipped(r)) {
        return;
    }
    if (is_vector(r->query)) {
        run_vector(r, &j);
    } else {
        run_matrices(r, &j);
    }
}

const cpu_impl cpu_adafactor = {.name = "rows", .types = CPU_ANY_TYPE, .workspace = workspace, .run = run};
