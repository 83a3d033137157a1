// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows: a row is read from memory once and stays in the nearest cache for the passes over it.
// Sums run in sixteen lanes twice; sums over rows (of the scales' gradients) in parts of 64 rows, so that long
// ones lose no digits, per thread, in the order of the threads.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN_FLOATS = 8192, CHUNK_ROWS = 64 };

typedef struct job {
    const float *x, *dy, *gamma, *beta;
    const float *mean, *rstd; // of backward
    float *y;                 // or dx
    float *mean_out, *rstd_out;
    float *partial; // [worker][4][padded features]: gamma's and beta's chunk, gamma's and beta's total
    int64_t features;
    float epsilon;
} job;

static int64_t grain_of(int64_t features)
{
    return features >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / features;
}

static int64_t padded(int64_t features)
{
    return (features + CPU_LANES - 1) / CPU_LANES * CPU_LANES;
}

CPU_INLINE double sum_of_lanes(const f32x16 *even, const f32x16 *odd)
{
    const f32x16 both = *even + *odd;
    double part[4] = {0}; // sums that need not wait for one another
    for (int k = 0; k < CPU_LANES; k++) {
        part[k % 4] += (double)both[k];
    }
    return (part[0] + part[1]) + (part[2] + part[3]);
}

// ---- forward ----------------------------------------------------------------------------------------------

CPU_INLINE double row_sum(const float *x, int64_t n)
{
    f32x16 even = {0}, odd = {0};
    int64_t c = 0;
    for (; c + 2 * CPU_LANES <= n; c += 2 * CPU_LANES) {
        even += F32X16(x + c);
        odd += F32X16(x + c + CPU_LANES);
    }
    double sum = sum_of_lanes(&even, &odd);
    for (; c < n; c++) {
        sum += (double)x[c];
    }
    return sum;
}

// Σ (x − mean)²
CPU_INLINE double row_squares(const float *x, float mean, int64_t n)
{
    f32x16 even = {0}, odd = {0};
    int64_t c = 0;
    for (; c + 2 * CPU_LANES <= n; c += 2 * CPU_LANES) {
        const f32x16 a = F32X16(x + c) - mean, b = F32X16(x + c + CPU_LANES) - mean;
        even += a * a;
        odd += b * b;
    }
    double sum = sum_of_lanes(&even, &odd);
    for (; c < n; c++) {
        const float d = x[c] - mean;
        sum += (double)(d * d);
    }
    return sum;
}

CPU_INLINE void row_forward(const job *j, int64_t r, const bool centred)
{
    const int64_t n = j->features;
    const float *x = j->x + r * n;
    float *y = j->y + r * n;
    const float mean = centred ? (float)(row_sum(x, n) / (double)n) : 0.0f;
    const float rstd = (float)(1.0 / sqrt(row_squares(x, mean, n) / (double)n + (double)j->epsilon));
    int64_t c = 0;
    for (; c + CPU_LANES <= n; c += CPU_LANES) {
        f32x16 v = (F32X16(x + c) - mean) * rstd * F32X16(j->gamma + c);
        if (centred) {
            v += F32X16(j->beta + c);
        }
        F32X16W(y + c) = v;
    }
    for (; c < n; c++) {
        const float v = (x[c] - mean) * rstd * j->gamma[c];
        y[c] = centred ? v + j->beta[c] : v;
    }
    j->rstd_out[r] = rstd;
    if (centred) {
        j->mean_out[r] = mean;
    }
}

CPU_HOT static void layer_rows(const job *j, int64_t begin, int64_t end)
{
    for (int64_t r = begin; r < end; r++) {
        row_forward(j, r, true);
    }
}

CPU_HOT static void rms_rows(const job *j, int64_t begin, int64_t end)
{
    for (int64_t r = begin; r < end; r++) {
        row_forward(j, r, false);
    }
}

static void layer_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    layer_rows(argument, begin, end);
}

static void rms_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    rms_rows(argument, begin, end);
}

static void run_forward(const cpu_run *r, const job *j, workers_body body)
{
    workers_for_pieces(r->device->workers, cpu_elements_of(&r->query->in[0]) / j->features,
                       grain_of(j->features), body, j);
}

static void run_layer(const cpu_run *r)
{
    const job j = {.x = r->in[0],
                   .gamma = r->in[1],
                   .beta = r->in[2],
                   .y = r->out[0],
                   .mean_out = r->out[1],
                   .rstd_out = r->out[2],
                   .features = cpu_elements_of(&r->query->in[1]),
                   .epsilon = (float)r->query->attr.epsilon};
    run_forward(r, &j, layer_body);
}

static void run_rms(const cpu_run *r)
{
    const job j = {.x = r->in[0],
                   .gamma = r->in[1],
                   .y = r->out[0],
                   .rstd_out = r->out[1],
                   .features = cpu_elements_of(&r->query->in[1]),
                   .epsilon = (float)r->query->attr.epsilon};
    run_forward(r, &j, rms_body);
}

// ---- backward ---------------------------------------------------------------------------------------------
// With x̂ = (x − mean)·rstd and g = dy·γ: dx = rstd·(g − mean(g) − x̂·mean(g·x̂)); the root mean square form has
// neither mean. dx may lie over dy.

typedef struct row_sums {
    float g, projected; // the means
} row_sums;

// `sums`: over rows, gamma's and beta's.
CPU_INLINE row_sums row_gather(const job *j, int64_t r, float mean, float rstd, float *sums,
                               const bool centred)
{
    const int64_t n = j->features;
    const float *x = j->x + r * n, *dy = j->dy + r * n;
    float *dgamma = sums, *dbeta = sums + padded(n);
    f32x16 sum = {0}, projected = {0};
    const f32x16 none = {0};
    int64_t c = 0;
    for (; c + CPU_LANES <= n; c += CPU_LANES) {
        const f32x16 d = F32X16(dy + c), at = (F32X16(x + c) - mean) * rstd, g = d * F32X16(j->gamma + c);
        F32X16W(dgamma + c) += d * at;
        projected += g * at;
        if (centred) {
            F32X16W(dbeta + c) += d;
            sum += g;
        }
    }
    double whole = sum_of_lanes(&sum, &none), along = sum_of_lanes(&projected, &none);
    for (; c < n; c++) {
        const float at = (x[c] - mean) * rstd, g = dy[c] * j->gamma[c];
        dgamma[c] += dy[c] * at;
        along += (double)(g * at);
        if (centred) {
            dbeta[c] += dy[c];
            whole += (double)g;
        }
    }
    return (row_sums){centred ? (float)(whole / (double)n) : 0.0f, (float)(along / (double)n)};
}

CPU_INLINE void row_backward(const job *j, int64_t r, float *sums, const bool centred)
{
    const int64_t n = j->features;
    const float *x = j->x + r * n, *dy = j->dy + r * n;
    const float mean = centred ? j->mean[r] : 0.0f, rstd = j->rstd[r];
    float *dx = j->y + r * n;
    const row_sums s = row_gather(j, r, mean, rstd, sums, centred);
    const float along = s.projected * rstd;
    int64_t c = 0;
    for (; c + CPU_LANES <= n; c += CPU_LANES) {
        F32X16W(dx + c) =
            rstd * (F32X16(dy + c) * F32X16(j->gamma + c) - s.g - (F32X16(x + c) - mean) * along);
    }
    for (; c < n; c++) {
        dx[c] = rstd * (dy[c] * j->gamma[c] - s.g - (x[c] - mean) * along);
    }
}

// Adds the chunk to the total and empties it.
CPU_INLINE void settle(float *chunk, float *total, int64_t count)
{
    for (int64_t c = 0; c < count; c += CPU_LANES) {
        F32X16W(total + c) += F32X16(chunk + c);
        F32X16W(chunk + c) = (f32x16){0};
    }
}

CPU_INLINE void rows_backward(const job *j, int64_t begin, int64_t end, uint32_t worker, const bool centred)
{
    const int64_t width = padded(j->features);
    float *chunk = j->partial + (int64_t)worker * 4 * width, *total = chunk + 2 * width;
    memset(chunk, 0, (size_t)(4 * width) * sizeof *chunk);
    for (int64_t r = begin; r < end; r++) {
        row_backward(j, r, chunk, centred);
        if ((r - begin) % CHUNK_ROWS == CHUNK_ROWS - 1 || r == end - 1) {
            settle(chunk, total, 2 * width);
        }
    }
}

CPU_HOT static void layer_rows_bwd(const job *j, int64_t begin, int64_t end, uint32_t worker)
{
    rows_backward(j, begin, end, worker, true);
}

CPU_HOT static void rms_rows_bwd(const job *j, int64_t begin, int64_t end, uint32_t worker)
{
    rows_backward(j, begin, end, worker, false);
}

static void layer_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    layer_rows_bwd(argument, begin, end, worker);
}

static void rms_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    rms_rows_bwd(argument, begin, end, worker);
}

static uint64_t bwd_workspace(const cpu_device *device, const op_query *q)
{
    return (uint64_t)padded(cpu_elements_of(&q->in[2])) * 4 * device->threads * sizeof(float);
}

static void add_parts(const job *j, uint32_t parts, float *dgamma, float *dbeta)
{
    const int64_t width = padded(j->features);
    for (int64_t c = 0; c < j->features; c++) {
        float scale = 0.0f, shift = 0.0f;
        for (uint32_t part = 0; part < parts; part++) {
            const float *total = j->partial + (int64_t)part * 4 * width + 2 * width;
            scale += total[c];
            shift += total[width + c];
        }
        dgamma[c] = scale;
        if (dbeta != NULL) {
            dbeta[c] = shift;
        }
    }
}

static void run_backward(const cpu_run *r, const job *j, workers_body body)
{
    workers *w = r->device->workers;
    const int64_t rows = cpu_elements_of(&r->query->in[0]) / j->features, grain = grain_of(j->features);
    workers_for(w, rows, grain, body, j);
    add_parts(j, workers_for_ranges(w, rows, grain), r->out[1], r->query->out_count > 2 ? r->out[2] : NULL);
}

static void run_layer_bwd(const cpu_run *r)
{
    const job j = {.x = r->in[0],
                   .dy = r->in[1],
                   .gamma = r->in[2],
                   .mean = r->in[3],
                   .rstd = r->in[4],
                   .y = r->out[0],
                   .partial = r->workspace,
                   .features = cpu_elements_of(&r->query->in[2])};
    run_backward(r, &j, layer_bwd_body);
}

static void run_rms_bwd(const cpu_run *r)
{
    const job j = {.x = r->in[0],
                   .dy = r->in[1],
                   .gamma = r->in[2],
                   .rstd = r->in[3],
                   .y = r->out[0],
                   .partial = r->workspace,
                   .features = cpu_elements_of(&r->query->in[2])};
    run_backward(r, &j, rms_bwd_body);
}

const cpu_impl cpu_layer_norm = {.name = "rows", .run = run_layer};
const cpu_impl cpu_layer_norm_bwd = {.name = "rows", .workspace = bwd_workspace, .run = run_layer_bwd};
const cpu_impl cpu_rms_norm = {.name = "rows", .run = run_rms};
const cpu_impl cpu_rms_norm_bwd = {.name = "rows", .workspace = bwd_workspace, .run = run_rms_bwd};
