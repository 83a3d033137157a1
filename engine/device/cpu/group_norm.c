// SPDX-License-Identifier: Apache-2.0
// Group normalisation, in any type. A worker has whole groups of a sample, side by side as many as fill a register; their
// channels are walked in strips, place by place. Sums run in float over some places and are added in double, so that no
// sum depends on the number of threads.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { STRIP = 256, PLACES = 64, ROUND = 64 }; // ROUND: samples whose sums of channels are kept at a time

typedef struct job {
    const char *x, *dy;
    const float *gamma, *beta;
    char *out; // y or dx; dx may be dy
    float *mean, *rstd;
    int64_t samples, places, channels, groups;
    int64_t width, bundle; // channels of a group; groups that one worker has
    hr_dtype type;
    double epsilon;
    int64_t from;   // the first sample of this round of backward
    double *sums;   // [samples of a round][2][channels] of dy and of dy times the normalised x
    double *totals; // [2][channels] over the rounds
} job;

static job job_of(const cpu_run *r)
{
    const op_query *q = r->query;
    const hr_shape *x = &q->in[0].shape;
    job j = {.x = r->in[0],
             .out = r->out[0],
             .samples = x->dim[0],
             .channels = x->dim[x->rank - 1],
             .groups = q->attr.groups,
             .type = (hr_dtype)q->in[0].dtype,
             .epsilon = q->attr.epsilon,
             .sums = r->workspace};
    j.places = cpu_elements_of(&q->in[0]) / j.samples / j.channels;
    j.width = j.channels / j.groups;
    j.bundle = j.width >= CPU_LANES ? 1 : CPU_LANES / j.width;
    return j;
}

static int64_t bundles_of(const job *j)
{
    return (j->groups + j->bundle - 1) / j->bundle;
}

// Channels [first, first + count) of a sample.
typedef struct strip {
    const job *j;
    int64_t sample, first, count;
    float mean[STRIP], rstd[STRIP], gamma[STRIP]; // of every channel
} strip;

// Part `k` of what bundle `bundle` of a sample has; false behind the last.
static bool strip_at(const job *j, int64_t bundle, int64_t k, strip *s)
{
    const int64_t run = j->bundle * j->width, begin = bundle * run + k * STRIP;
    const int64_t end = (bundle + 1) * run < j->channels ? (bundle + 1) * run : j->channels;
    s->first = begin;
    s->count = end - begin < STRIP ? end - begin : STRIP;
    return begin < end;
}

static const float *floats_at(const strip *s, const char *from, int64_t place, float *scratch)
{
    const int64_t at = (s->sample * s->j->places + place) * s->j->channels + s->first;
    if (s->j->type == HR_F32) {
        return (const float *)(const void *)from + at;
    }
    cast_widen(scratch, (const uint16_t *)(const void *)from + at, s->j->type, s->count);
    return scratch;
}

static void put_floats(const strip *s, int64_t place, const float *values)
{
    const int64_t at = (s->sample * s->j->places + place) * s->j->channels + s->first;
    if (s->j->type == HR_F32) {
        memcpy((float *)(void *)s->j->out + at, values, (size_t)s->count * sizeof *values);
    } else {
        cast_narrow((uint16_t *)(void *)s->j->out + at, s->j->type, values, s->count);
    }
}

// Statistics of every channel's group, as far as they are known.
static void take_statistics(strip *s)
{
    const job *j = s->j;
    for (int64_t c = 0; c < s->count; c++) {
        const int64_t group = s->sample * j->groups + (s->first + c) / j->width;
        s->mean[c] = j->mean[group];
        s->rstd[c] = j->rstd[group];
        s->gamma[c] = j->gamma[s->first + c];
    }
}

// ---- sums over places ---------------------------------------------------------------------------------------

CPU_HOT static void add_values(float *sum, const float *x, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        sum[c] += x[c];
    }
}

CPU_HOT static void add_squares(float *sum, const float *x, const float *mean, int64_t count)
{
    for (int64_t c = 0; c < count; c++) {
        const float d = x[c] - mean[c];
        sum[c] += d * d;
    }
}

CPU_HOT static void add_products(float *sum, const float *dy, const float *x, const strip *s)
{
    for (int64_t c = 0; c < s->count; c++) {
        sum[c] += dy[c] * ((x[c] - s->mean[c]) * s->rstd[c]);
    }
}

typedef enum summed { SUM_VALUES, SUM_SQUARES, SUM_DY, SUM_PRODUCTS } summed;

static void add_place(const strip *s, summed what, int64_t place, float *sum)
{
    float room[STRIP], other[STRIP];
    const float *x = floats_at(s, what == SUM_DY || what == SUM_PRODUCTS ? s->j->dy : s->j->x, place, room);
    if (what == SUM_SQUARES) {
        add_squares(sum, x, s->mean, s->count);
    } else if (what == SUM_PRODUCTS) {
        add_products(sum, x, floats_at(s, s->j->x, place, other), s);
    } else {
        add_values(sum, x, s->count);
    }
}

static void sum_places(const strip *s, summed what, double *sums)
{
    memset(sums, 0, (size_t)s->count * sizeof *sums);
    for (int64_t first = 0; first < s->j->places; first += PLACES) {
        float part[STRIP] = {0};
        const int64_t end = first + PLACES < s->j->places ? first + PLACES : s->j->places;
        for (int64_t place = first; place < end; place++) {
            add_place(s, what, place, part);
        }
        for (int64_t c = 0; c < s->count; c++) {
            sums[c] += (double)part[c];
        }
    }
}

// ---- forward ------------------------------------------------------------------------------------------------

// Over all strips of a bundle, the sums of its groups.
static void sum_groups(strip *s, int64_t bundle, summed what, double groups[CPU_LANES])
{
    double sums[STRIP];
    memset(groups, 0, CPU_LANES * sizeof *groups);
    for (int64_t k = 0; strip_at(s->j, bundle, k, s); k++) {
        take_statistics(s);
        sum_places(s, what, sums);
        for (int64_t c = 0; c < s->count; c++) {
            groups[(s->first + c) / s->j->width - bundle * s->j->bundle] += sums[c];
        }
    }
}

CPU_HOT static void normalise(const strip *s, const float *x, const float *beta, float *y)
{
    for (int64_t c = 0; c < s->count; c++) {
        y[c] = (x[c] - s->mean[c]) * s->rstd[c] * s->gamma[c] + beta[c];
    }
}

static void norm_bundle(strip *s, int64_t bundle)
{
    const job *j = s->j;
    const int64_t first = bundle * j->bundle, most = j->groups - first;
    const int64_t groups = most < j->bundle ? most : j->bundle, at = s->sample * j->groups + first;
    const double elements = (double)(j->places * j->width);
    double sums[CPU_LANES];
    sum_groups(s, bundle, SUM_VALUES, sums);
    for (int64_t g = 0; g < groups; g++) {
        j->mean[at + g] = (float)(sums[g] / elements);
    }
    sum_groups(s, bundle, SUM_SQUARES, sums);
    for (int64_t g = 0; g < groups; g++) {
        j->rstd[at + g] = (float)(1.0 / sqrt(sums[g] / elements + j->epsilon));
    }
    for (int64_t k = 0; strip_at(j, bundle, k, s); k++) {
        take_statistics(s);
        for (int64_t place = 0; place < j->places; place++) {
            float room[STRIP], y[STRIP];
            normalise(s, floats_at(s, j->x, place, room), j->beta + s->first, y);
            put_floats(s, place, y);
        }
    }
}

static void norm_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        strip s = {.j = j, .sample = at / bundles_of(j)};
        norm_bundle(&s, at % bundles_of(j));
    }
}

static void run_norm(const cpu_run *r)
{
    job j = job_of(r);
    j.gamma = r->in[1];
    j.beta = r->in[2];
    j.mean = r->out[1];
    j.rstd = r->out[2];
    memset(j.mean, 0, (size_t)(j.samples * j.groups) * sizeof *j.mean);
    memset(j.rstd, 0, (size_t)(j.samples * j.groups) * sizeof *j.rstd);
    workers_for(r->device->workers, j.samples * bundles_of(&j), 1, norm_body, &j);
}

// ---- backward -----------------------------------------------------------------------------------------------

// What a group's dx is made of: the means of g = dy·γ and of g times the normalised x.
typedef struct group_means {
    double g[CPU_LANES], products[CPU_LANES];
} group_means;

static void sum_bundle(strip *s, int64_t bundle, group_means *means)
{
    const job *j = s->j;
    const double elements = (double)(j->places * j->width);
    *means = (group_means){.g = {0}};
    for (int64_t k = 0; strip_at(j, bundle, k, s); k++) {
        double *dy = j->sums + (s->sample - j->from) * 2 * j->channels + s->first,
               *products = dy + j->channels;
        take_statistics(s);
        sum_places(s, SUM_DY, dy);
        sum_places(s, SUM_PRODUCTS, products);
        for (int64_t c = 0; c < s->count; c++) {
            const int64_t group = (s->first + c) / j->width - bundle * j->bundle;
            means->g[group] += (double)s->gamma[c] * dy[c] / elements;
            means->products[group] += (double)s->gamma[c] * products[c] / elements;
        }
    }
}

CPU_HOT static void gradient_of_place(const strip *s, const float *x, const float *dy, const float *means,
                                      float *dx)
{
    for (int64_t c = 0; c < s->count; c++) {
        const float normal = (x[c] - s->mean[c]) * s->rstd[c];
        dx[c] = s->rstd[c] * (dy[c] * s->gamma[c] - means[c] - normal * means[STRIP + c]);
    }
}

static void gradient_of_bundle(strip *s, int64_t bundle)
{
    const job *j = s->j;
    group_means means;
    sum_bundle(s, bundle, &means);
    for (int64_t k = 0; strip_at(j, bundle, k, s); k++) {
        float of_channel[2 * STRIP];
        take_statistics(s);
        for (int64_t c = 0; c < s->count; c++) {
            const int64_t group = (s->first + c) / j->width - bundle * j->bundle;
            of_channel[c] = (float)means.g[group];
            of_channel[STRIP + c] = (float)means.products[group];
        }
        for (int64_t place = 0; place < j->places; place++) {
            float room[STRIP], other[STRIP], dx[STRIP];
            gradient_of_place(s, floats_at(s, j->x, place, room), floats_at(s, j->dy, place, other),
                              of_channel, dx);
            put_floats(s, place, dx);
        }
    }
}

static void gradient_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t at = begin; at < end; at++) {
        strip s = {.j = j, .sample = j->from + at / bundles_of(j)};
        gradient_of_bundle(&s, at % bundles_of(j));
    }
}

static int64_t round_of(int64_t samples)
{
    return samples < ROUND ? samples : ROUND;
}

static void run_norm_bwd(const cpu_run *r)
{
    job j = job_of(r);
    j.dy = r->in[1];
    j.gamma = r->in[2];
    j.mean = r->in[3];
    j.rstd = r->in[4];
    j.totals = j.sums + round_of(j.samples) * 2 * j.channels;
    memset(j.totals, 0, (size_t)j.channels * 2 * sizeof *j.totals);
    for (; j.from < j.samples; j.from += ROUND) {
        const int64_t samples = round_of(j.samples - j.from);
        workers_for(r->device->workers, samples * bundles_of(&j), 1, gradient_body, &j);
        for (int64_t k = 0; k < samples * 2 * j.channels; k++) {
            j.totals[k % (2 * j.channels)] += j.sums[k];
        }
    }
    float *dgamma = r->out[1], *dbeta = r->out[2];
    for (int64_t c = 0; c < j.channels; c++) {
        dgamma[c] = (float)j.totals[j.channels + c];
        dbeta[c] = (float)j.totals[c];
    }
}

static uint64_t sums_bytes(const cpu_device *device, const op_query *q)
{
    (void)device;
    const hr_shape *x = &q->in[0].shape;
    return (uint64_t)(round_of(x->dim[0]) + 1) * 2 * (uint64_t)x->dim[x->rank - 1] * sizeof(double);
}

// What normalises is float32 whatever x is.
static bool fits(const cpu_device *device, const op_query *q)
{
    (void)device;
    const bool backward = q->op == HR_OP_GROUP_NORM_BWD;
    bool one = q->in[0].dtype == q->out[0].dtype && q->out[1].dtype == HR_F32 && q->out[2].dtype == HR_F32;
    one = one && (!backward || q->in[1].dtype == q->in[0].dtype);
    for (uint32_t k = backward ? 2 : 1; k < q->in_count; k++) {
        one = one && q->in[k].dtype == HR_F32;
    }
    return one;
}

const cpu_impl cpu_group_norm = {.name = "strips", .types = CPU_ANY_TYPE, .fits = fits, .run = run_norm};
const cpu_impl cpu_group_norm_bwd = {
    .name = "strips", .types = CPU_ANY_TYPE, .fits = fits, .workspace = sums_bytes, .run = run_norm_bwd};
