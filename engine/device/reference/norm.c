// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over the last dimension (Ioffe and Szegedy 2015). R rows of C channels; two passes, because
// the judge does not cancel.
#include <math.h>

#include "kernels.h"

enum { SUMMAND = 5, BETA = 5, INDEX = 5, MORE = 6 }; // optional operands, forward and backward
enum { GATED = 3 };                                  // optional result; then y stands in the place of beta

static void channel_moments(const double *x, uint64_t rows, uint64_t channels, uint64_t c, double *mean,
                            double *variance)
{
    double sum = 0.0;
    for (uint64_t r = 0; r < rows; r++) {
        sum += x[r * channels + c];
    }
    *mean = sum / (double)rows;
    double squares = 0.0;
    for (uint64_t r = 0; r < rows; r++) {
        const double d = x[r * channels + c] - *mean;
        squares += d * d;
    }
    *variance = squares / (double)rows; // biased
}

// The summand, or what its own statistics behind it make of it.
static double summand_at(const reference_call *call, uint64_t i)
{
    static const uint32_t own[] = {6, 7, 8, 9};
    return call->query->in_count <= SUMMAND       ? 0.0
           : call->query->in_count <= SUMMAND + 1 ? ((const double *)call->in[SUMMAND])[i]
                                                  : reference_normalised(call, SUMMAND, i, own);
}

static void normalise_channel(const reference_call *call, uint64_t rows, uint64_t channels, uint64_t c,
                              double mean, double variance)
{
    const double *x = call->in[0], *gamma = call->in[1], *beta = call->in[2];
    double *y = call->out[0];
    const double inverse = 1.0 / sqrt(variance + call->query->attr.epsilon);
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t i = r * channels + c;
        y[i] = (x[i] - mean) * inverse * gamma[c] + beta[c] + summand_at(call, i);
    }
}

// A statistic as the next instruction will read it, so that BATCH_NORM_APPLY gives the same bits.
static double as_stored(const op_operand *operand, double value)
{
    return operand->dtype == HR_F32 ? (double)(float)value : value;
}

// Moments of x as they are saved; the running ones move.
static void take_statistics(const reference_call *call, uint32_t running, uint32_t saved)
{
    double *running_mean = call->in[running], *running_variance = call->in[running + 1];
    double *saved_mean = call->out[saved], *saved_variance = call->out[saved + 1];
    const double m = call->query->attr.momentum;
    const uint64_t channels = call->in_count[running], rows = call->in_count[0] / channels;
    // One row has no unbiased variance; TensorFlow divides by one there, and so do we.
    const double unbias = rows > 1 ? (double)rows / (double)(rows - 1) : 1.0;
    for (uint64_t c = 0; c < channels; c++) {
        double mean = 0.0, variance = 0.0;
        channel_moments(call->in[0], rows, channels, c, &mean, &variance);
        saved_mean[c] = as_stored(&call->query->out[saved], mean);
        saved_variance[c] = as_stored(&call->query->out[saved + 1], variance);
        running_mean[c] = (1.0 - m) * running_mean[c] + m * mean;
        running_variance[c] = (1.0 - m) * running_variance[c] + m * variance * unbias;
    }
}

void reference_batch_norm(const reference_call *call)
{
    const uint64_t channels = call->in_count[1], rows = call->out_count[0] / channels;
    const double *mean = call->out[1], *variance = call->out[2];
    take_statistics(call, 3, 1);
    for (uint64_t c = 0; c < channels; c++) {
        normalise_channel(call, rows, channels, c, mean[c], variance[c]);
    }
    reference_act(call);
}

void reference_batch_norm_statistics(const reference_call *call)
{
    take_statistics(call, 1, 0);
}

void reference_batch_norm_eval(const reference_call *call)
{
    const double *mean = call->in[3], *variance = call->in[4];
    const uint64_t channels = call->in_count[1], rows = call->out_count[0] / channels;
    for (uint64_t c = 0; c < channels; c++) {
        normalise_channel(call, rows, channels, c, mean[c], variance[c]);
    }
    reference_act(call);
}

static bool is_pooled(const reference_call *call)
{
    return call->query->in_count > INDEX && call->query->in[INDEX].dtype == HR_U8;
}

// What the activation behind y let through of dy, where there is one.
static double gradient_at(const reference_call *call, uint64_t i, uint64_t c, double centred)
{
    const double *dy = call->in[1], *gamma = call->in[2], *beta = call->in[BETA];
    if (call->query->out_count > GATED) {
        return ((const double *)call->out[GATED])[i];
    }
    if (is_pooled(call)) {
        return ((const double *)call->out[0])[i]; // until dx is written there
    }
    if (call->query->in_count <= BETA) {
        return dy[i];
    }
    const double y = centred * gamma[c] + beta[c];
    const bool above = call->query->attr.act == HR_ACT_RELU6 && y >= 6.0;
    return y > 0.0 && !above ? dy[i] : 0.0;
}

// What y, in the place of beta, let through of dy and of what may be added to it.
static void let_through(const reference_call *call)
{
    const double *dy = call->in[1], *y = call->in[BETA];
    const double *more = call->query->in_count > MORE ? call->in[MORE] : NULL;
    double *gated = call->out[GATED];
    for (uint64_t i = 0; i < call->out_count[GATED]; i++) {
        const bool above = call->query->attr.act == HR_ACT_RELU6 && y[i] >= 6.0;
        gated[i] = y[i] > 0.0 && !above ? dy[i] + (more == NULL ? 0.0 : more[i]) : 0.0;
    }
}

// With x̂ = (x − mean)·inverse: dβ = Σ dy, dγ = Σ dy·x̂, dx = γ·inverse·(dy − dβ/R − x̂·dγ/R).
void reference_batch_norm_bwd(const reference_call *call)
{
    const double *x = call->in[0], *gamma = call->in[2];
    const double *mean = call->in[3], *variance = call->in[4];
    double *dx = call->out[0], *dgamma = call->out[1], *dbeta = call->out[2];
    const uint64_t channels = call->in_count[2], rows = call->out_count[0] / channels;
    if (call->query->out_count > GATED) {
        let_through(call);
    } else if (is_pooled(call)) {
        reference_unpool(&call->query->attr, &call->query->in[0].shape, &call->query->in[1].shape,
                         call->in[INDEX], call->in[1], dx);
    }
    for (uint64_t c = 0; c < channels; c++) {
        const double inverse = 1.0 / sqrt(variance[c] + call->query->attr.epsilon);
        double sum = 0.0, projected = 0.0;
        for (uint64_t r = 0; r < rows; r++) {
            const uint64_t i = r * channels + c;
            const double centred = (x[i] - mean[c]) * inverse, dy = gradient_at(call, i, c, centred);
            sum += dy;
            projected += dy * (x[i] - mean[c]) * inverse;
        }
        dbeta[c] = sum;
        dgamma[c] = projected;
        for (uint64_t r = 0; r < rows; r++) {
            const uint64_t i = r * channels + c;
            const double centred = (x[i] - mean[c]) * inverse;
            const double dy = gradient_at(call, i, c, centred);
            dx[i] = gamma[c] * inverse * (dy - (sum + centred * projected) / (double)rows);
        }
    }
}
