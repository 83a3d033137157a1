// SPDX-License-Identifier: Apache-2.0
// Losses between two tensors of one shape: mean squared error, and the divergence of a student's softmax from its
// teacher's. Sums run in double over chunks of float, then over ranges, in order.
#include <math.h>

#include "base/workers.h"
#include "rows.h"

typedef struct job {
    const float *a, *b; // prediction and target, student (or its probabilities) and teacher
    float *out;
    double *partial; // one per range
    logits l;
    float cold;  // 1 / temperature
    float share; // of one element, or row, in the gradient
} job;

// ---- mean squared error -----------------------------------------------------------------------------------

CPU_HOT static double square_sum(const float *a, const float *b, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t first = begin; first < end; first += ROWS_CHUNK) {
        const int64_t stop = end - first < ROWS_CHUNK ? end : first + ROWS_CHUNK;
        f32x16 sum = {0};
        int64_t i = first;
        for (; i + CPU_LANES <= stop; i += CPU_LANES) {
            const f32x16 apart = F32X16(a + i) - F32X16(b + i);
            sum += apart * apart;
        }
        total += sum_lanes(&sum);
        for (; i < stop; i++) {
            total += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        }
    }
    return total;
}

static void mse_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    j->partial[worker] = square_sum(j->a, j->b, begin, end);
}

static void run_mse(const cpu_run *r)
{
    const job j = {.a = r->in[0], .b = r->in[1], .partial = r->workspace};
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    *(float *)r->out[0] =
        (float)(sum_ranges(r, count, ROWS_GRAIN_FLOATS, mse_body, &j, j.partial) / (double)count);
}

CPU_HOT static void apart_range(float *to, const float *a, const float *b, float share, int64_t begin,
                                int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        to[i] = share * (a[i] - b[i]);
    }
}

static void mse_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    apart_range(j->out, j->a, j->b, j->share, begin, end);
}

static void run_mse_bwd(const cpu_run *r)
{
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const job j = {.a = r->in[0],
                   .b = r->in[1],
                   .out = r->out[0],
                   .share = (float)(2.0 * gradient_weight(r, 2) / (double)count)};
    workers_for(r->device->workers, count, ROWS_GRAIN_FLOATS, mse_bwd_body, &j);
}

// ---- divergence -------------------------------------------------------------------------------------------

// Sums over a row of the exponentials of student and teacher, and of the teacher's times the distance of the two.
typedef struct row_sums {
    double student, teacher, apart;
} row_sums;

CPU_INLINE void add_lanes(const float *student, const float *teacher, int64_t count, const float most[2],
                          float cold, f32x16 sum[3], f32x16 *student_out)
{
    f32x16 s, t;
    if (count >= CPU_LANES) {
        s = F32X16(student);
        t = F32X16(teacher);
    } else {
        load_tail(&s, student, count, -INFINITY);
        load_tail(&t, teacher, count, -INFINITY);
    }
    s = (s - most[0]) * cold;
    t = (t - most[1]) * cold;
    f32x16 apart = t - s;
    for (int lane = 0; lane < CPU_LANES && count < CPU_LANES; lane++) {
        apart[lane] = lane < count ? apart[lane] : 0.0f; // nothing times infinity
    }
    exp_lanes(&s);
    exp_lanes(&t);
    sum[0] += s;
    sum[1] += t;
    sum[2] += t * apart;
    *student_out = s;
}

// Leaves the student's exponentials in p, which may be the student itself.
CPU_HOT static row_sums divergence_sums(const float *student, const float *teacher, float *p, int64_t count,
                                        const float most[2], float cold)
{
    row_sums total = {0};
    for (int64_t first = 0; first < count; first += ROWS_CHUNK) {
        const int64_t end = count - first < ROWS_CHUNK ? count : first + ROWS_CHUNK;
        f32x16 sum[3] = {{0}}, out;
        int64_t k = first;
        for (; k + CPU_LANES <= end; k += CPU_LANES) {
            add_lanes(student + k, teacher + k, CPU_LANES, most, cold, sum, &out);
            F32X16W(p + k) = out;
        }
        if (k < end) {
            add_lanes(student + k, teacher + k, end - k, most, cold, sum, &out);
            store_tail(&out, p + k, end - k);
        }
        total.student += sum_lanes(&sum[0]);
        total.teacher += sum_lanes(&sum[1]);
        total.apart += sum_lanes(&sum[2]);
    }
    return total;
}

CPU_HOT static float largest(const float *z, int64_t count)
{
    return row_max(z, count);
}

CPU_HOT static void scale_row(float *p, float factor, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        p[k] *= factor;
    }
}

// Σ q (log q − log p) = Σ q ((t − max t) − (s − max s)) / T − log Σ exp t + log Σ exp s.
static double divergence_row(const job *j, int64_t row)
{
    const int64_t at = row * j->l.classes, count = j->l.classes;
    const float most[2] = {largest(j->a + at, count), largest(j->b + at, count)};
    const row_sums sum = divergence_sums(j->a + at, j->b + at, j->out + at, count, most, j->cold);
    scale_row(j->out + at, (float)(1.0 / sum.student), count);
    return sum.apart / sum.teacher + log(sum.student / sum.teacher);
}

static void kl_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    double total = 0.0;
    for (int64_t row = begin; row < end; row++) {
        total += divergence_row(j, row);
    }
    j->partial[worker] = total;
}

static job kl_job(const cpu_run *r)
{
    return (job){.a = r->in[0],
                 .b = r->in[1],
                 .out = r->out[0],
                 .partial = r->workspace,
                 .l = logits_of(&r->query->in[0]),
                 .cold = (float)(1.0 / r->query->attr.epsilon)};
}

static void run_kl(const cpu_run *r)
{
    const job j = kl_job(r);
    const double t = r->query->attr.epsilon;
    const double total = sum_ranges(r, j.l.rows, logits_grain(&j.l), kl_body, &j, j.partial);
    *(float *)r->out[1] = (float)(t * t * total / (double)j.l.rows);
}

CPU_HOT static double exponential_sum(const float *z, int64_t count, float most, float cold)
{
    double total = 0.0;
    for (int64_t first = 0; first < count; first += ROWS_CHUNK) {
        const int64_t end = count - first < ROWS_CHUNK ? count : first + ROWS_CHUNK;
        f32x16 sum = {0}, x;
        for (int64_t k = first; k < end; k += CPU_LANES) {
            load_tail(&x, z + k, end - k, -INFINITY);
            x = (x - most) * cold;
            exp_lanes(&x);
            sum += x;
        }
        total += sum_lanes(&sum);
    }
    return total;
}

// share * (p - q), where q is made again from the teacher.
CPU_HOT static void divergence_gradient(const job *j, int64_t at, float most, float inverse)
{
    const float *p = j->a + at, *z = j->b + at;
    float *out = j->out + at;
    f32x16 q, probs;
    for (int64_t k = 0; k < j->l.classes; k += CPU_LANES) {
        load_tail(&q, z + k, j->l.classes - k, -INFINITY);
        load_tail(&probs, p + k, j->l.classes - k, 0.0f);
        q = (q - most) * j->cold;
        exp_lanes(&q);
        probs = (probs - q * inverse) * j->share;
        store_tail(&probs, out + k, j->l.classes - k);
    }
}

static void kl_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const int64_t at = row * j->l.classes;
        const float most = largest(j->b + at, j->l.classes);
        const double sum = exponential_sum(j->b + at, j->l.classes, most, j->cold);
        divergence_gradient(j, at, most, (float)(1.0 / sum));
    }
}

static void run_kl_bwd(const cpu_run *r)
{
    job j = kl_job(r);
    j.share = (float)(gradient_weight(r, 2) * r->query->attr.epsilon / (double)j.l.rows);
    workers_for(r->device->workers, j.l.rows, logits_grain(&j.l), kl_bwd_body, &j);
}

const cpu_impl cpu_mse = {.name = "loops", .workspace = partial_bytes, .run = run_mse};
const cpu_impl cpu_mse_bwd = {.name = "loops", .run = run_mse_bwd};
const cpu_impl cpu_kl = {.name = "rows", .workspace = partial_bytes, .run = run_kl};
const cpu_impl cpu_kl_bwd = {.name = "rows", .run = run_kl_bwd};
