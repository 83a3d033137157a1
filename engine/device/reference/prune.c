// SPDX-License-Identifier: Apache-2.0
// Pruning by magnitude (ops/prune.h). The score of the last unit that stays is found a bit at a time: the largest number that as
// many units reach. Absolute values have the order of their bits.
#include "ops/prune.h"

#include <math.h>
#include <string.h>

#include "kernels.h"

enum { SCORE_BITS = 63 };

static uint64_t score_of(double x)
{
    uint64_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return bits & (UINT64_MAX >> 1);
}

// In the arithmetic of the tensors: float32, or float64 where they are.
static double rounded(const reference_call *call, double x)
{
    return call->query->in[0].dtype == HR_F64 ? x : (double)(float)x;
}

// The mean over rows first, then over columns, as tfmot pools.
static double block_mean(const reference_call *call, int64_t row, int64_t column)
{
    const op_query *q = call->query;
    const double *w = call->in[0];
    const int64_t rows = q->in[0].shape.dim[0], columns = q->in[0].shape.dim[1];
    const prune_span high = prune_window(rows, q->attr.kernel_h, row);
    const prune_span wide = prune_window(columns, q->attr.kernel_w, column);
    double sum = 0.0;
    for (int64_t j = wide.begin; j < wide.end; j++) {
        double down = 0.0;
        for (int64_t i = high.begin; i < high.end; i++) {
            down = rounded(call, down + fabs(w[i * columns + j]));
        }
        sum = rounded(call, sum + rounded(call, down / (double)(high.end - high.begin)));
    }
    return rounded(call, sum / (double)(wide.end - wide.begin));
}

static double filter_sum(const reference_call *call, uint64_t filter)
{
    const prune_region r = prune_region_of(call->query, (int64_t)filter);
    double sum = 0.0;
    for (int64_t n = 0; n < r.lines; n++) {
        for (int64_t i = 0; i < r.width; i++) {
            sum = rounded(call, sum + fabs(((const double *)call->in[0])[r.first + n * r.pitch + i]));
        }
    }
    return sum;
}

static uint64_t unit_score(const reference_call *call, uint64_t unit)
{
    const op_query *q = call->query;
    if (q->attr.rule == PRUNE_ELEMENTS) {
        return score_of(((const double *)call->in[0])[unit]);
    }
    if (q->attr.rule == PRUNE_FILTERS) {
        return score_of(filter_sum(call, unit));
    }
    const int64_t across = (q->in[0].shape.dim[1] + q->attr.kernel_w - 1) / q->attr.kernel_w;
    return score_of(block_mean(call, (int64_t)unit / across, (int64_t)unit % across));
}

// The largest score that at least `kept` units have or exceed.
static uint64_t threshold_of(const reference_call *call, uint64_t units, uint64_t kept)
{
    uint64_t threshold = 0;
    for (int bit = SCORE_BITS - 1; bit >= 0; bit--) {
        const uint64_t higher = threshold | UINT64_C(1) << bit;
        uint64_t reach = 0;
        for (uint64_t k = 0; k < units; k++) {
            reach += unit_score(call, k) >= higher;
        }
        threshold = reach >= kept ? higher : threshold;
    }
    return threshold;
}

static void mask_units(const reference_call *call)
{
    const op_query *q = call->query;
    const uint64_t units = prune_units(q), kept = prune_kept(&q->attr, units, prune_update(call->io));
    const uint64_t threshold = threshold_of(call, units, kept);
    double *mask = call->in[1];
    for (uint64_t k = 0; k < units; k++) {
        const prune_region r = prune_region_of(q, (int64_t)k);
        const double stays = unit_score(call, k) >= threshold ? 1.0 : 0.0;
        for (int64_t i = 0; i < r.lines * r.width; i++) {
            mask[r.first + i / r.width * r.pitch + i % r.width] = stays;
        }
    }
}

// Does the element at `place` of the `size` from `run` on, `step` apart, have at least `stay` before it in their order?
static bool is_behind(const double *run, int64_t step, int64_t size, int64_t place, int64_t stay)
{
    const uint64_t own = score_of(run[place * step]);
    int64_t before = 0;
    for (int64_t k = 0; k < size; k++) {
        const uint64_t other = score_of(run[k * step]);
        before += other > own || (other == own && k < place);
    }
    return before >= stay;
}

static void mask_groups(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    const hr_shape *w = &call->query->in[0].shape;
    const int64_t side = w->dim[a->axis], step = prune_axis_step(call->query);
    const int64_t stay = a->kernel_w - a->kernel_h;
    const double *weights = call->in[0];
    double *mask = call->in[1];
    for (int64_t i = 0; i < (int64_t)call->in_count[0]; i++) {
        const int64_t place = i / step % side, first = place / a->kernel_w * a->kernel_w;
        const int64_t size = side - first < a->kernel_w ? side - first : a->kernel_w;
        const double *run = weights + i - (place - first) * step;
        mask[i] = is_behind(run, step, size, place - first, stay) ? 0.0 : 1.0;
    }
}

void reference_prune(const reference_call *call)
{
    const op_query *q = call->query;
    const prune_act act = prune_act_at(&q->attr, prune_update(call->io));
    double *w = call->in[0];
    const double *mask = call->in[1];
    if (act == PRUNE_NOTHING || (q->in_count > 2 && *(const int32_t *)call->in[2] == 0)) {
        return;
    }
    if (act == PRUNE_MAKE && q->attr.rule == PRUNE_GROUPS) {
        mask_groups(call);
    } else if (act == PRUNE_MAKE) {
        mask_units(call);
    }
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        w[i] = mask[i] == 0.0 ? 0.0 : w[i];
    }
}

void reference_prune_channels(const reference_call *call)
{
    const op_query *q = call->query;
    const int64_t last = q->in[0].shape.dim[q->in[0].shape.rank - 1], step = prune_axis_step(q);
    double *w = call->in[0];
    const double *mask = call->in[1];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        const int64_t at = prune_channel_at(q, step, (int64_t)i % last);
        w[i] = at >= 0 && mask[at] == 0.0 ? 0.0 : w[i];
    }
}
