// SPDX-License-Identifier: Apache-2.0
// Group normalisation (Wu, He 2018).
#include <math.h>
#include <string.h>

#include "kernels.h"

typedef struct grouped {
    uint64_t samples, places, channels, groups, width; // width: channels of a group
} grouped;

static grouped grouped_of(const reference_call *call)
{
    const hr_shape *x = &call->query->in[0].shape;
    grouped g = {.samples = (uint64_t)x->dim[0],
                 .channels = (uint64_t)x->dim[x->rank - 1],
                 .groups = (uint64_t)call->query->attr.groups};
    g.places = call->in_count[0] / g.samples / g.channels;
    g.width = g.channels / g.groups;
    return g;
}

// Element k of group `group`, counted over all samples, place by place.
static uint64_t element_of(const grouped *g, uint64_t group, uint64_t k)
{
    return (group / g->groups * g->places + k / g->width) * g->channels + group % g->groups * g->width +
           k % g->width;
}

void reference_group_norm(const reference_call *call)
{
    const grouped g = grouped_of(call);
    const double *x = call->in[0], *gamma = call->in[1], *beta = call->in[2];
    double *y = call->out[0], *mean = call->out[1], *rstd = call->out[2];
    const uint64_t count = g.places * g.width;
    for (uint64_t group = 0; group < g.samples * g.groups; group++) {
        double sum = 0.0, squares = 0.0;
        for (uint64_t k = 0; k < count; k++) {
            sum += x[element_of(&g, group, k)];
        }
        mean[group] = sum / (double)count;
        for (uint64_t k = 0; k < count; k++) {
            const double d = x[element_of(&g, group, k)] - mean[group];
            squares += d * d;
        }
        rstd[group] = 1.0 / sqrt(squares / (double)count + call->query->attr.epsilon);
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t at = element_of(&g, group, k), c = at % g.channels;
            y[at] = (x[at] - mean[group]) * rstd[group] * gamma[c] + beta[c];
        }
    }
}

// With x̂ = (x − mean)·rstd and g = dy·γ: dx = rstd·(g − mean(g) − x̂·mean(g·x̂)), means over the group.
void reference_group_norm_bwd(const reference_call *call)
{
    const grouped g = grouped_of(call);
    const double *x = call->in[0], *dy = call->in[1], *gamma = call->in[2];
    const double *mean = call->in[3], *rstd = call->in[4];
    double *dx = call->out[0], *dgamma = call->out[1], *dbeta = call->out[2];
    const uint64_t count = g.places * g.width;
    memset(dgamma, 0, g.channels * sizeof *dgamma);
    memset(dbeta, 0, g.channels * sizeof *dbeta);
    for (uint64_t group = 0; group < g.samples * g.groups; group++) {
        double sum = 0.0, products = 0.0;
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t at = element_of(&g, group, k), c = at % g.channels;
            const double normal = (x[at] - mean[group]) * rstd[group];
            dgamma[c] += dy[at] * normal;
            dbeta[c] += dy[at];
            sum += dy[at] * gamma[c];
            products += dy[at] * gamma[c] * normal;
        }
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t at = element_of(&g, group, k);
            const double normal = (x[at] - mean[group]) * rstd[group];
            dx[at] =
                rstd[group] * (dy[at] * gamma[at % g.channels] - (sum + normal * products) / (double)count);
        }
    }
}
