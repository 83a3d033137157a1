// SPDX-License-Identifier: Apache-2.0
// Normalisation of rows (layer normalisation: Ba, Kiros, Hinton 2016; root mean square: Zhang, Sennrich 2019),
// table lookups, repetition over leading dimensions, dropout.
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "ops/dropout.h"

void reference_layer_norm(const reference_call *call)
{
    const double *x = call->in[0], *gamma = call->in[1], *beta = call->in[2];
    double *y = call->out[0], *mean = call->out[1], *rstd = call->out[2];
    const uint64_t features = call->in_count[1], rows = call->out_count[1];
    for (uint64_t r = 0; r < rows; r++) {
        double sum = 0.0, squares = 0.0;
        for (uint64_t c = 0; c < features; c++) {
            sum += x[r * features + c];
        }
        mean[r] = sum / (double)features;
        for (uint64_t c = 0; c < features; c++) {
            const double d = x[r * features + c] - mean[r];
            squares += d * d;
        }
        rstd[r] = 1.0 / sqrt(squares / (double)features + call->query->attr.epsilon);
        for (uint64_t c = 0; c < features; c++) {
            y[r * features + c] = (x[r * features + c] - mean[r]) * rstd[r] * gamma[c] + beta[c];
        }
    }
}

typedef struct norm_row {
    const double *x, *dy, *gamma;
    double mean, rstd;
    double *dx;
} norm_row;

// One row of either gradient, with x̂ = (x − mean)·rstd and g = dy·γ: dx = rstd·(g − mean(g) − x̂·mean(g·x̂)), where the
// root mean square form has no mean(g).
static void norm_row_bwd(const norm_row *r, uint64_t features, bool centred)
{
    double sum = 0.0, projected = 0.0;
    for (uint64_t c = 0; c < features; c++) {
        sum += r->dy[c] * r->gamma[c];
        projected += r->dy[c] * r->gamma[c] * (r->x[c] - r->mean) * r->rstd;
    }
    sum = centred ? sum / (double)features : 0.0;
    projected /= (double)features;
    for (uint64_t c = 0; c < features; c++) {
        r->dx[c] = r->rstd * (r->dy[c] * r->gamma[c] - sum - (r->x[c] - r->mean) * r->rstd * projected);
    }
}

// The optional operand k.
static void add_to_result(const reference_call *call, uint32_t k)
{
    const double *more = call->query->in_count > k ? call->in[k] : NULL;
    double *result = call->out[0];
    for (uint64_t i = 0; more != NULL && i < call->out_count[0]; i++) {
        result[i] += more[i];
    }
}

void reference_layer_norm_bwd(const reference_call *call)
{
    const double *x = call->in[0], *dy = call->in[1], *gamma = call->in[2];
    const double *mean = call->in[3], *rstd = call->in[4];
    double *dx = call->out[0], *dgamma = call->out[1], *dbeta = call->out[2];
    const uint64_t features = call->in_count[2], rows = call->in_count[3];
    memset(dgamma, 0, features * sizeof *dgamma);
    memset(dbeta, 0, features * sizeof *dbeta);
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t at = r * features;
        for (uint64_t c = 0; c < features; c++) {
            dgamma[c] += dy[at + c] * (x[at + c] - mean[r]) * rstd[r];
            dbeta[c] += dy[at + c];
        }
        norm_row_bwd(&(norm_row){x + at, dy + at, gamma, mean[r], rstd[r], dx + at}, features, true);
    }
    add_to_result(call, 5);
}

void reference_rms_norm(const reference_call *call)
{
    const double *x = call->in[0], *gamma = call->in[1];
    double *y = call->out[0], *rstd = call->out[1];
    const uint64_t features = call->in_count[1], rows = call->out_count[1];
    for (uint64_t r = 0; r < rows; r++) {
        double squares = 0.0;
        for (uint64_t c = 0; c < features; c++) {
            squares += x[r * features + c] * x[r * features + c];
        }
        rstd[r] = 1.0 / sqrt(squares / (double)features + call->query->attr.epsilon);
        for (uint64_t c = 0; c < features; c++) {
            y[r * features + c] = x[r * features + c] * rstd[r] * gamma[c];
        }
    }
}

void reference_rms_norm_bwd(const reference_call *call)
{
    const double *x = call->in[0], *dy = call->in[1], *gamma = call->in[2], *rstd = call->in[3];
    double *dx = call->out[0], *dgamma = call->out[1];
    const uint64_t features = call->in_count[2], rows = call->in_count[3];
    memset(dgamma, 0, features * sizeof *dgamma);
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t at = r * features;
        for (uint64_t c = 0; c < features; c++) {
            dgamma[c] += dy[at + c] * x[at + c] * rstd[r];
        }
        norm_row_bwd(&(norm_row){x + at, dy + at, gamma, 0.0, rstd[r], dx + at}, features, false);
    }
    add_to_result(call, 4);
}

void reference_embedding(const reference_call *call)
{
    const int32_t *ids = call->in[0];
    const double *table = call->in[1];
    double *y = call->out[0];
    const int64_t entries = call->query->in[1].shape.dim[0];
    const uint64_t features = (uint64_t)call->query->in[1].shape.dim[1];
    for (uint64_t r = 0; r < call->in_count[0]; r++) {
        const bool found = ids[r] >= 0 && ids[r] < entries;
        for (uint64_t d = 0; d < features; d++) {
            y[r * features + d] = found ? table[(uint64_t)ids[r] * features + d] : 0.0;
        }
    }
}

void reference_embedding_bwd(const reference_call *call)
{
    const int32_t *ids = call->in[0];
    const double *dy = call->in[1];
    double *dtable = call->out[0];
    const int64_t entries = call->query->out[0].shape.dim[0];
    const uint64_t features = (uint64_t)call->query->out[0].shape.dim[1];
    memset(dtable, 0, call->out_count[0] * sizeof *dtable);
    for (uint64_t r = 0; r < call->in_count[0]; r++) {
        for (uint64_t d = 0; ids[r] >= 0 && ids[r] < entries && d < features; d++) {
            dtable[(uint64_t)ids[r] * features + d] += dy[r * features + d];
        }
    }
}

void reference_add_broadcast(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = a[i] + b[i % call->in_count[1]];
    }
}

void reference_broadcast(const reference_call *call)
{
    const double *b = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = b[i % call->in_count[0]];
    }
}

// `to` = `from` where the mask of this update keeps it, and the mask where it is asked for.
static void draw(const reference_call *call, const double *from, double *to, uint8_t *mask)
{
    const dropout_draw d = dropout_begin(&call->query->attr, call->io->seed, call->io->update);
    const uint64_t count = call->out_count[0],
                   per_sample = count / (uint64_t)call->query->out[0].shape.dim[0];
    for (uint64_t i = 0; i < count; i++) {
        const bool kept = dropout_keeps(&d, call->io->first_sample + i / per_sample, i % per_sample);
        to[i] = kept ? from[i] * d.scale : 0.0;
        if (mask != NULL) {
            mask[i] = kept;
        }
    }
}

void reference_dropout(const reference_call *call)
{
    draw(call, call->in[0], call->out[0], call->query->out_count > 1 ? call->out[1] : NULL);
}

void reference_dropout_bwd(const reference_call *call)
{
    draw(call, call->in[0], call->out[0], NULL);
}

void reference_dropout_bwd_mask(const reference_call *call)
{
    const uint8_t *mask = call->in[0];
    const double *dy = call->in[1], scale = 1.0 / (1.0 - call->query->attr.rate);
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        dx[i] = mask[i] != 0 ? dy[i] * scale : 0.0;
    }
}

static void multiply_samples(const reference_call *call, const double *x, const double *factors)
{
    const uint64_t per_sample = call->out_count[0] / (uint64_t)call->query->out[0].shape.dim[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        ((double *)call->out[0])[i] = x[i] * factors[i / per_sample];
    }
}

void reference_drop_path(const reference_call *call)
{
    const dropout_draw d = dropout_begin(&call->query->attr, call->io->seed, call->io->update);
    double *factors = call->out[1];
    for (uint64_t n = 0; n < call->out_count[1]; n++) {
        factors[n] = dropout_factor(&d, call->io->first_sample + n);
    }
    multiply_samples(call, call->in[0], factors);
}

void reference_drop_path_bwd(const reference_call *call)
{
    multiply_samples(call, call->in[1], call->in[0]);
}
