// SPDX-License-Identifier: Apache-2.0
#include "insight/rate_fit.h"

#include <math.h>
#include <stdbool.h>

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

static bool belongs(const rate_sample *s, cost_family family, rate_width width)
{
    return s->family == family && s->width == width;
}

// Each sample weighs 1 / what the last round said it takes.
static normal_equations gather(const rate_sample *samples, size_t count, const rate_sample *like,
                               const double factor[TERMS])
{
    normal_equations n = {0};
    for (size_t i = 0; i < count; i++) {
        if (!belongs(&samples[i], like->family, like->width)) {
            continue;
        }
        double x[TERMS];
        const double microseconds = samples[i].seconds * 1e6;
        const double expected = factor == NULL ? microseconds : predicted(&samples[i], factor);
        const double weight = 1 / fmax(expected, 1e-3);
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

cost_rate rate_fit(const rate_sample *samples, size_t count, cost_family family, rate_width width)
{
    const rate_sample like = {.family = family, .width = width};
    double factor[TERMS] = {0};
    cost_rate out = {0};
    for (size_t i = 0; i < count; i++) {
        out.instructions += belongs(&samples[i], family, width);
    }
    for (int round = 0; out.instructions > 0 && round < ROUNDS; round++) {
        const normal_equations n = gather(samples, count, &like, round == 0 ? NULL : factor);
        if (!solve_without_negatives(&n, factor)) {
            break;
        }
    }
    out.start_seconds = factor[0] * scale[0];
    out.seconds_per_flop = factor[1] * scale[1];
    out.seconds_per_byte = factor[2] * scale[2];
    return out;
}
