// SPDX-License-Identifier: Apache-2.0
#include "insight/rate_fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/host_mem.h"

enum { TERMS = 3, SUBSETS = 1 << TERMS, ROUNDS = 12 };

// Scales that bring the terms near one another: microseconds, million FLOPs, million bytes.
static const double scale[TERMS] = {1e-6, 1e-12, 1e-12};
static const double amount_scale[TERMS] = {1, 1e6, 1e6};

typedef struct normal_equations {
    double left[TERMS][TERMS], right[TERMS];
} normal_equations;

static void terms_of(const rate_sample *s, double x[TERMS])
{
    x[0] = 1;
    x[1] = s->flops / amount_scale[1];
    x[2] = s->bytes / amount_scale[2];
}

static double predicted(const rate_sample *s, const double factor[TERMS])
{
    double x[TERMS], sum = 0;
    terms_of(s, x);
    for (int k = 0; k < TERMS; k++) {
        sum += factor[k] * x[k];
    }
    return sum;
}

// The weights of the least y / p + p / y, p what the last round said: twice too long counts as half. (By 1 / p^2 alone what scatters
// is foretold too long, as errors below are cheap then: steps below a millisecond by a third.)
static normal_equations gather(const rate_sample *samples, size_t count, const double factor[TERMS])
{
    normal_equations n = {0};
    for (size_t i = 0; i < count; i++) {
        double x[TERMS];
        const double microseconds = samples[i].seconds * 1e6;
        const double expected = factor == NULL ? microseconds : fmax(predicted(&samples[i], factor), 1e-3);
        const double weight = (expected + microseconds) / (2 * expected * expected * microseconds);
        terms_of(&samples[i], x);
        for (int r = 0; r < TERMS; r++) {
            n.right[r] += weight * x[r] * microseconds;
            for (int c = 0; c < TERMS; c++) {
                n.left[r][c] += weight * x[r] * x[c];
            }
        }
    }
    return n;
}

// Gauss without pivoting over the terms in `subset`: a Gram matrix is positive definite or does not count.
static bool solve(normal_equations n, unsigned subset, double factor[TERMS])
{
    for (int k = 0; k < TERMS; k++) {
        if ((subset >> k & 1U) == 0) {
            for (int c = 0; c < TERMS; c++) {
                n.left[k][c] = n.left[c][k] = 0;
            }
            n.left[k][k] = 1;
            n.right[k] = 0;
        }
    }
    for (int k = 0; k < TERMS; k++) {
        const double own = n.left[k][k];
        for (int r = k + 1; r < TERMS; r++) {
            const double share = n.left[r][k] / own;
            for (int c = k; c < TERMS; c++) {
                n.left[r][c] -= share * n.left[k][c];
            }
            n.right[r] -= share * n.right[k];
        }
    }
    for (int k = TERMS; k-- > 0;) {
        double sum = n.right[k];
        for (int c = k + 1; c < TERMS; c++) {
            sum -= n.left[k][c] * factor[c];
        }
        factor[k] = sum / n.left[k][k];
        if (!isfinite(factor[k]) || factor[k] < 0) {
            return false;
        }
    }
    return true;
}

// Twice the quadratic form without its constant: less is better.
static double badness(const normal_equations *n, const double factor[TERMS])
{
    double sum = 0;
    for (int r = 0; r < TERMS; r++) {
        sum -= 2 * factor[r] * n->right[r];
        for (int c = 0; c < TERMS; c++) {
            sum += factor[r] * n->left[r][c] * factor[c];
        }
    }
    return sum;
}

// The best of the solutions whose terms are all at least 0.
static bool solve_without_negatives(const normal_equations *n, double best[TERMS])
{
    bool any = false;
    for (unsigned subset = 1; subset < SUBSETS; subset++) {
        double factor[TERMS];
        if (!solve(*n, subset, factor) || (any && badness(n, factor) >= badness(n, best))) {
            continue;
        }
        any = true;
        for (int k = 0; k < TERMS; k++) {
            best[k] = factor[k];
        }
    }
    return any;
}

cost_rate rate_fit(const rate_sample *samples, size_t count)
{
    double factor[TERMS] = {0};
    for (int round = 0; count > 0 && round < ROUNDS; round++) {
        const normal_equations n = gather(samples, count, round == 0 ? NULL : factor);
        if (!solve_without_negatives(&n, factor)) {
            break;
        }
    }
    return (cost_rate){.start_seconds = factor[0] * scale[0],
                       .seconds_per_flop = factor[1] * scale[1],
                       .seconds_per_byte = factor[2] * scale[2],
                       .instructions = count};
}

// ---- all of them ----------------------------------------------------------------------------------------------

#define LEAST_START_SECONDS 1e-7

typedef struct fitter {
    const rate_sample *samples;
    size_t count;
    uint64_t without;
    rate_sample *some; // room for all of them and one more
} fitter;

static size_t pick_family(fitter *f, cost_family family, rate_width width)
{
    size_t picked = 0;
    for (size_t i = 0; i < f->count; i++) {
        const rate_sample *s = &f->samples[i];
        if (s->program != f->without && s->family == family && s->width == width) {
            f->some[picked++] = *s;
        }
    }
    return picked;
}

// 0 as well where one program alone has it: one batch of one model says nothing of how its kernels grow.
static size_t pick_kind(fitter *f, uint64_t kind)
{
    size_t picked = 0;
    bool is_alone = true;
    for (size_t i = 0; i < f->count; i++) {
        const rate_sample *s = &f->samples[i];
        if (s->program != f->without && (s->kinds.kernel == kind || s->kinds.operation == kind)) {
            f->some[picked++] = *s;
            is_alone = is_alone && s->program == f->some[0].program;
        }
    }
    return is_alone ? 0 : picked;
}

// Where only large ones were measured, they do not show what it costs to start: so one with nothing to do is beside them, which takes
// what its family does, but no longer than one that has something to do.
static void add_kind(fitter *f, uint64_t kind, cost_rates *out)
{
    uint64_t at = 0;
    while (at < out->kind_count && out->kinds[at].kind < kind) {
        at++;
    }
    if (out->kind_count == RATE_KINDS_MAX || (at < out->kind_count && out->kinds[at].kind == kind)) {
        return;
    }
    const size_t picked = pick_kind(f, kind);
    if (picked > 0) {
        const rate_sample *like = &f->some[0];
        double start_seconds = out->of[like->family][like->width].start_seconds;
        for (size_t i = 0; i < picked; i++) {
            start_seconds = fmin(start_seconds, f->some[i].seconds);
        }
        f->some[picked] = (rate_sample){.seconds = fmax(start_seconds, LEAST_START_SECONDS)};
        memmove(&out->kinds[at + 1], &out->kinds[at], (out->kind_count - at) * sizeof *out->kinds);
        out->kinds[at] = (kind_rate){.kind = kind, .rate = rate_fit(f->some, picked + 1)};
        out->kinds[at].rate.instructions = picked;
        out->kind_count++;
    }
}

hr_status rate_fit_all(const rate_sample *samples, size_t count, uint64_t without, cost_rates *out,
                       hr_err *err)
{
    fitter f = {.samples = samples, .count = count, .without = without};
    out->kind_count = 0;
    f.some = hr_calloc(count + 1, sizeof *f.some);
    if (f.some == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for %zu measurements", count);
    }
    for (int family = COST_NOTHING + 1; family < COST_FAMILY_COUNT; family++) {
        for (int width = 0; width < RATE_WIDTHS; width++) {
            const size_t picked = pick_family(&f, (cost_family)family, (rate_width)width);
            out->of[family][width] = rate_fit(f.some, picked);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (without == RATE_WITHOUT_NONE || samples[i].program == without) {
            add_kind(&f, samples[i].kinds.kernel, out);
            add_kind(&f, samples[i].kinds.operation, out);
        }
    }
    hr_free(f.some);
    return HR_OK;
}
