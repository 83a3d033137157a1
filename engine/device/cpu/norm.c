// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over rows of channels. Statistics in one pass over memory: the mean and squared
// deviations of a chunk of rows that fits the nearest cache, joined in double (Chan, Golub, LeVeque:
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979).
//
// Two-byte images are widened and narrowed a chunk at a time in that cache; statistics and coefficients are float32.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { CHUNK_FLOATS = 4096, GRAIN_FLOATS = 16384 };

// A tensor as rows of channels.
typedef struct rows_view {
    int64_t rows, channels;
} rows_view;

// The per-channel arrays of this operation in its workspace. Sums are one set per worker.
typedef struct channel_sums {
    double *count, *mean, *square; // forward: square = sum of squared deviations
} channel_sums;

typedef struct job {
    rows_view v;
    const float *x, *dy;
    float *y;
    const float *mean;      // backward: [C]
    const float *a, *b, *c; // result = a * first + b * second + c, per channel
    double *sums;
    bool relu;
    float ceiling;
    hr_dtype type;  // of x, dy and y
    float *scratch; // in two bytes: three chunks per worker
} job;

static rows_view view_of(const op_operand *t)
{
    const int64_t channels = t->shape.dim[t->shape.rank - 1];
    return (rows_view){cpu_elements_of(t) / channels, channels};
}

static int64_t grain_of(const rows_view *v)
{
    return v->channels >= GRAIN_FLOATS ? 1 : (GRAIN_FLOATS + v->channels - 1) / v->channels;
}

static int64_t chunk_rows(const rows_view *v)
{
    return v->channels >= CHUNK_FLOATS ? 1 : CHUNK_FLOATS / v->channels;
}

static int64_t chunk_floats(const rows_view *v)
{
    return chunk_rows(v) * v->channels;
}

static uint64_t scratch_bytes(const cpu_device *device, const op_query *q, const rows_view *v)
{
    return q->in[0].dtype != HR_F32 ? (uint64_t)chunk_floats(v) * 3 * device->threads * sizeof(float) : 0;
}

// Workspace: per channel the coefficients a and b (where sums follow c and one float more, so that doubles lie well), then
// the sums of every worker, and room for chunks behind them.
static uint64_t workspace_bytes(const cpu_device *device, const op_query *q)
{
    const rows_view v = view_of(&q->in[0]);
    return (uint64_t)v.channels * (device->threads * 3 * sizeof(double) + 4 * sizeof(float)) +
           scratch_bytes(device, q, &v);
}

static uint64_t eval_workspace_bytes(const cpu_device *device, const op_query *q)
{
    const rows_view v = view_of(&q->in[0]);
    return (uint64_t)v.channels * 2 * sizeof(float) + scratch_bytes(device, q, &v);
}

static float *coefficients(const cpu_run *r, const rows_view *v, int which)
{
    return (float *)r->workspace + which * v->channels;
}

static double *sums_behind(const cpu_run *r, const rows_view *v)
{
    return (double *)r->workspace + 2 * v->channels; // behind four arrays of float
}

static channel_sums sums_of(const job *j, uint32_t worker)
{
    const int64_t channels = j->v.channels;
    double *base = j->sums + (int64_t)worker * 3 * channels;
    return (channel_sums){base, base + channels, base + 2 * channels};
}

// ---- statistics -------------------------------------------------------------------------------------------

// Joins `rows` rows with this mean and these squared deviations into channel c of s.
CPU_INLINE void join(const channel_sums *s, int64_t c, double rows, double mean, double square)
{
    const double count = s->count[c] + rows, apart = mean - s->mean[c];
    s->square[c] += square + apart * apart * s->count[c] * rows / count;
    s->mean[c] += apart * rows / count;
    s->count[c] = count;
}

// The same for neighbouring channels that have seen the same rows so far.
CPU_INLINE void join_lanes(const channel_sums *s, int64_t c, double rows, const f32x16 *mean,
                           const f32x16 *square)
{
    const double before = s->count[c], after = before + rows;
    const double share = rows / after, weight = before * share;
    double *restrict all_mean = s->mean + c, *restrict all_square = s->square + c,
                     *restrict count = s->count + c;
    for (int lane = 0; lane < CPU_LANES; lane++) {
        const double apart = (double)(*mean)[lane] - all_mean[lane];
        all_square[lane] += (double)(*square)[lane] + apart * apart * weight;
        all_mean[lane] += apart * share;
        count[lane] = after;
    }
}

enum { GROUP = 4 }; // registers of channels that are summed side by side, so that no sum waits for itself

CPU_INLINE void chunk_moments_wide(const float *x, int64_t row_floats, int64_t rows, int64_t c,
                                   const channel_sums *s, const int vectors)
{
    f32x16 sum[GROUP] = {{0}}, square[GROUP] = {{0}};
    for (int64_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            sum[v] += F32X16(x + r * row_floats + v * CPU_LANES);
        }
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        sum[v] /= (float)rows;
    }
    for (int64_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const f32x16 apart = F32X16(x + r * row_floats + v * CPU_LANES) - sum[v];
            square[v] += apart * apart;
        }
    }
    for (int v = 0; v < vectors; v++) {
        join_lanes(s, c + v * CPU_LANES, (double)rows, &sum[v], &square[v]);
    }
}

CPU_INLINE void chunk_moments_1(const float *x, int64_t row_floats, int64_t rows, int64_t c,
                                const channel_sums *s)
{
    float sum = 0.0f, square = 0.0f;
    for (int64_t r = 0; r < rows; r++) {
        sum += x[r * row_floats];
    }
    const float mean = sum / (float)rows;
    for (int64_t r = 0; r < rows; r++) {
        const float apart = x[r * row_floats] - mean;
        square += apart * apart;
    }
    join(s, c, (double)rows, (double)mean, (double)square);
}

CPU_HOT static void chunk_moments(const float *x, int64_t row_floats, int64_t rows, int64_t channels,
                                  const channel_sums *s)
{
    int64_t c = 0;
    for (; c + GROUP * CPU_LANES <= channels; c += GROUP * CPU_LANES) {
        chunk_moments_wide(x + c, row_floats, rows, c, s, GROUP);
    }
    for (; c + CPU_LANES <= channels; c += CPU_LANES) {
        chunk_moments_wide(x + c, row_floats, rows, c, s, 1);
    }
    for (; c < channels; c++) {
        chunk_moments_1(x + c, row_floats, rows, c, s);
    }
}

// dbeta and dgamma before its 1/std: sums of dy and of dy * (x - mean).
CPU_INLINE void chunk_gradients_wide(const job *j, int64_t at, int64_t rows, int64_t c, const channel_sums *s,
                                     const int vectors)
{
    f32x16 sum[GROUP] = {{0}}, projected[GROUP] = {{0}};
    for (int64_t r = 0; r < rows; r++, at += j->v.channels) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            const f32x16 dy = F32X16(j->dy + at + v * CPU_LANES);
            sum[v] += dy;
            projected[v] += dy * (F32X16(j->x + at + v * CPU_LANES) - F32X16(j->mean + c + v * CPU_LANES));
        }
    }
    for (int v = 0; v < vectors; v++) {
        for (int lane = 0; lane < CPU_LANES; lane++) {
            s->mean[c + v * CPU_LANES + lane] += (double)sum[v][lane];
            s->square[c + v * CPU_LANES + lane] += (double)projected[v][lane];
        }
    }
}

CPU_INLINE void chunk_gradients_1(const job *j, int64_t at, int64_t rows, int64_t c, const channel_sums *s)
{
    float sum = 0.0f, projected = 0.0f;
    for (int64_t r = 0; r < rows; r++, at += j->v.channels) {
        sum += j->dy[at];
        projected += j->dy[at] * (j->x[at] - j->mean[c]);
    }
    s->mean[c] += (double)sum;
    s->square[c] += (double)projected;
}

CPU_HOT static void chunk_gradients(const job *j, int64_t at, int64_t rows, const channel_sums *s)
{
    int64_t c = 0;
    for (; c + GROUP * CPU_LANES <= j->v.channels; c += GROUP * CPU_LANES) {
        chunk_gradients_wide(j, at + c, rows, c, s, GROUP);
    }
    for (; c + CPU_LANES <= j->v.channels; c += CPU_LANES) {
        chunk_gradients_wide(j, at + c, rows, c, s, 1);
    }
    for (; c < j->v.channels; c++) {
        chunk_gradients_1(j, at + c, rows, c, s);
    }
}

// What lies at `at` as float32, in the scratch of this worker; its result goes to the third chunk there.
static job widen_chunk(const job *j, int64_t at, int64_t floats, uint32_t worker)
{
    float *scratch = j->scratch + (int64_t)worker * 3 * chunk_floats(&j->v);
    job w = *j;
    cast_widen(scratch, (const uint16_t *)(const void *)j->x + at, j->type, floats);
    w.x = scratch;
    if (j->dy != NULL) {
        cast_widen(scratch + chunk_floats(&j->v), (const uint16_t *)(const void *)j->dy + at, j->type,
                   floats);
        w.dy = scratch + chunk_floats(&j->v);
    }
    w.y = scratch + 2 * chunk_floats(&j->v);
    return w;
}

static void sums_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const channel_sums s = sums_of(j, worker);
    const int64_t width = j->v.channels, chunk = chunk_rows(&j->v);
    memset(s.count, 0, (size_t)width * 3 * sizeof *s.count);
    for (int64_t r = begin; r < end; r += chunk) {
        const int64_t rows = end - r < chunk ? end - r : chunk, at = r * width;
        const job here = j->type != HR_F32 ? widen_chunk(j, at, rows * width, worker) : *j;
        const int64_t from = j->type != HR_F32 ? 0 : at;
        if (j->dy == NULL) {
            chunk_moments(here.x + from, width, rows, width, &s);
        } else {
            chunk_gradients(&here, from, rows, &s);
        }
    }
}

// Fills the sums of worker 0 with those of all, in the order of the workers.
static channel_sums gather(const cpu_run *r, const job *j)
{
    const int64_t items = j->v.rows, grain = grain_of(&j->v);
    workers_for(r->device->workers, items, grain, sums_body, j);
    const channel_sums all = sums_of(j, 0);
    for (uint32_t w = 1; w < workers_for_ranges(r->device->workers, items, grain); w++) {
        const channel_sums s = sums_of(j, w);
        for (int64_t c = 0; c < j->v.channels; c++) {
            if (j->dy == NULL && s.count[c] > 0.0) {
                join(&all, c, s.count[c], s.mean[c], s.square[c]);
            } else if (j->dy != NULL) {
                all.mean[c] += s.mean[c];
                all.square[c] += s.square[c];
            }
        }
    }
    return all;
}

// ---- y = a * x + b, dx = a * dy + b * x + c ---------------------------------------------------------------

CPU_HOT static void scale_rows(const job *j, int64_t at, int64_t rows)
{
    const int64_t width = j->v.channels;
    const float *restrict a = j->a, *restrict b = j->b;
    for (int64_t r = 0; r < rows; r++, at += width) {
        const float *restrict x = j->x + at;
        float *restrict y = j->y + at;
        for (int64_t c = 0; c < width; c++) {
            y[c] = a[c] * x[c] + b[c];
        }
    }
}

CPU_HOT static void scale_rows_relu(const job *j, int64_t at, int64_t rows)
{
    const int64_t width = j->v.channels;
    const float *restrict a = j->a, *restrict b = j->b;
    for (int64_t r = 0; r < rows; r++, at += width) {
        const float *restrict x = j->x + at;
        float *restrict y = j->y + at;
        for (int64_t c = 0; c < width; c++) {
            const float value = a[c] * x[c] + b[c], positive = value < 0.0f ? 0.0f : value;
            y[c] = positive > j->ceiling ? j->ceiling : positive;
        }
    }
}

// dx may lie over dy, which no compiler can turn into vectors by itself.
CPU_HOT static void gradient_rows(const job *j, int64_t at, int64_t rows)
{
    const int64_t width = j->v.channels;
    const float *a = j->a, *b = j->b, *constant = j->c;
    for (int64_t r = 0; r < rows; r++, at += width) {
        const float *x = j->x + at, *dy = j->dy + at;
        float *dx = j->y + at;
        int64_t c = 0;
        for (; c + CPU_LANES <= width; c += CPU_LANES) {
            F32X16W(dx + c) =
                F32X16(a + c) * F32X16(dy + c) + (F32X16(b + c) * F32X16(x + c) + F32X16(constant + c));
        }
        for (; c < width; c++) {
            dx[c] = a[c] * dy[c] + (b[c] * x[c] + constant[c]);
        }
    }
}

static void apply_to_rows(const job *j, int64_t at, int64_t rows)
{
    if (j->dy != NULL) {
        gradient_rows(j, at, rows);
    } else if (j->relu) {
        scale_rows_relu(j, at, rows);
    } else {
        scale_rows(j, at, rows);
    }
}

static void rows_half(const job *j, int64_t begin, int64_t end, uint32_t worker)
{
    const int64_t width = j->v.channels, chunk = chunk_rows(&j->v);
    for (int64_t r = begin; r < end; r += chunk) {
        const int64_t rows = end - r < chunk ? end - r : chunk;
        const job w = widen_chunk(j, r * width, rows * width, worker);
        apply_to_rows(&w, 0, rows);
        cast_narrow((uint16_t *)(void *)j->y + r * width, j->type, w.y, rows * width);
    }
}

static void rows_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    if (j->type != HR_F32) {
        rows_half(j, begin, end, worker);
        return;
    }
    apply_to_rows(j, begin * j->v.channels, end - begin);
}

static void apply(const cpu_run *r, const job *j)
{
    workers_for(r->device->workers, j->v.rows, grain_of(&j->v), rows_body, j);
}

// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta as one scale and one shift per channel.
static void normalise(const cpu_run *r, job *j, const float *mean, const float *variance)
{
    const float *gamma = r->in[1], *beta = r->in[2];
    const int64_t channels = j->v.channels;
    float *a = coefficients(r, &j->v, 0), *b = coefficients(r, &j->v, 1);
    for (int64_t c = 0; c < channels; c++) {
        const double scale = (double)gamma[c] / sqrt((double)variance[c] + r->query->attr.epsilon);
        a[c] = (float)scale;
        b[c] = (float)((double)beta[c] - (double)mean[c] * scale);
    }
    j->a = a;
    j->b = b;
    apply(r, j);
}

static void set_scratch(const cpu_run *r, job *j, void *behind)
{
    j->type = (hr_dtype)r->query->in[0].dtype;
    j->scratch = behind;
}

static void run_batch_norm(const cpu_run *r)
{
    job j = {.v = view_of(&r->query->in[0]),
             .x = r->in[0],
             .y = r->out[0],
             .relu = r->query->attr.act != HR_ACT_NONE,
             .ceiling = cpu_ceiling(r->query->attr.act)};
    j.sums = sums_behind(r, &j.v);
    set_scratch(r, &j, j.sums + j.v.channels * 3 * r->device->threads);
    const channel_sums all = gather(r, &j);
    float *running_mean = r->in[3], *running_variance = r->in[4], *mean = r->out[1], *variance = r->out[2];
    const double m = r->query->attr.momentum, rows = (double)j.v.rows;
    // One row has no unbiased variance; TensorFlow divides by one there.
    const double unbiased = rows > 1.0 ? rows - 1.0 : 1.0;
    for (int64_t c = 0; c < j.v.channels; c++) {
        mean[c] = (float)all.mean[c];
        variance[c] = (float)(all.square[c] / rows);
        running_mean[c] = (float)((1.0 - m) * (double)running_mean[c] + m * all.mean[c]);
        running_variance[c] = (float)((1.0 - m) * (double)running_variance[c] + m * all.square[c] / unbiased);
    }
    normalise(r, &j, mean, variance);
}

// Also of batch_norm_apply: the statistics are those that batch_norm normalised with.
static void run_batch_norm_eval(const cpu_run *r)
{
    job j = {.v = view_of(&r->query->in[0]),
             .x = r->in[0],
             .y = r->out[0],
             .relu = r->query->attr.act != HR_ACT_NONE,
             .ceiling = cpu_ceiling(r->query->attr.act)};
    set_scratch(r, &j, coefficients(r, &j.v, 2));
    normalise(r, &j, r->in[3], r->in[4]);
}

// With xhat = (x - mean) * inverse: dbeta = sum dy, dgamma = sum dy * xhat,
// dx = gamma * inverse * (dy - dbeta / R - xhat * dgamma / R), linear in dy and x per channel.
static void run_batch_norm_bwd(const cpu_run *r)
{
    job j = {.v = view_of(&r->query->in[0]), .x = r->in[0], .dy = r->in[1], .y = r->out[0]};
    j.sums = sums_behind(r, &j.v);
    set_scratch(r, &j, j.sums + j.v.channels * 3 * r->device->threads);
    const float *gamma = r->in[2], *mean = r->in[3], *variance = r->in[4];
    float *dgamma = r->out[1], *dbeta = r->out[2];
    float *a = coefficients(r, &j.v, 0), *b = coefficients(r, &j.v, 1), *constant = coefficients(r, &j.v, 2);
    const int64_t channels = j.v.channels;
    const double rows = (double)j.v.rows;
    j.mean = mean;
    const channel_sums all = gather(r, &j);
    for (int64_t c = 0; c < channels; c++) {
        const double inverse = 1.0 / sqrt((double)variance[c] + r->query->attr.epsilon);
        const double scale = (double)gamma[c] * inverse, projected = all.square[c] * inverse;
        dbeta[c] = (float)all.mean[c];
        dgamma[c] = (float)projected;
        const double slope = -scale * inverse * projected / rows;
        a[c] = (float)scale;
        b[c] = (float)slope;
        constant[c] = (float)(-scale * all.mean[c] / rows - slope * (double)mean[c]);
    }
    j.a = a;
    j.b = b;
    j.c = constant;
    apply(r, &j);
}

const cpu_impl cpu_batch_norm = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = workspace_bytes, .run = run_batch_norm};
const cpu_impl cpu_batch_norm_eval = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = eval_workspace_bytes, .run = run_batch_norm_eval};
const cpu_impl cpu_batch_norm_bwd = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = workspace_bytes, .run = run_batch_norm_bwd};
