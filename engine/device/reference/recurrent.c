// SPDX-License-Identifier: Apache-2.0
// LSTM: Hochreiter, Schmidhuber 1997, with Keras' gates i, f, c, o:
//
//   i, f, o = sigmoid, j = tanh of (x·Wx + b + h(t−1)·Wh);  c = f*c(t−1) + i*j;  h = o*tanh(c)
//
// GRU: Cho et al. 2014, in the form of cuDNN, PyTorch and Keras (reset_after), with Keras' gates z, r, n:
//
//   q = h(t−1)·Wh + bh;  z, r = sigmoid of (g + q);  n = tanh(g + r*q);  h = z*h(t−1) + (1−z)*n
#include <math.h>
#include <string.h>

#include "kernels.h"

typedef struct lstm {
    uint64_t samples, steps, units;
} lstm;

// Of gates [N, T, 4H].
static lstm lstm_of(const op_operand *gates)
{
    return (lstm){(uint64_t)gates->shape.dim[0], (uint64_t)gates->shape.dim[1],
                  (uint64_t)gates->shape.dim[2] / 4};
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

// One step of one sample: the four activated gates and the new state. `before` are NULL at the first step.
typedef struct cell {
    const double *h_before, *c_before;
    double *h, *c, *a;
} cell;

static void gates(const lstm *l, const double *g, const double *wh, const cell *s)
{
    const uint64_t width = 4 * l->units;
    for (uint64_t k = 0; k < width; k++) {
        double sum = g[k];
        for (uint64_t i = 0; s->h_before != NULL && i < l->units; i++) {
            sum += s->h_before[i] * wh[i * width + k];
        }
        s->a[k] = k / l->units == 2 ? tanh(sum) : sigmoid(sum);
    }
}

void reference_lstm(const reference_call *call)
{
    const lstm l = lstm_of(&call->query->in[0]);
    const uint64_t H = l.units;
    double *h = call->out[0], *c = call->out[1], *a = call->out[2];
    for (uint64_t row = 0; row < l.samples * l.steps; row++) {
        const bool first = row % l.steps == 0;
        const cell s = {first ? NULL : h + (row - 1) * H, first ? NULL : c + (row - 1) * H, h + row * H,
                        c + row * H, a + row * 4 * H};
        gates(&l, (const double *)call->in[0] + row * 4 * H, call->in[1], &s);
        for (uint64_t k = 0; k < H; k++) {
            s.c[k] = (first ? 0.0 : s.a[H + k] * s.c_before[k]) + s.a[k] * s.a[2 * H + k];
            s.h[k] = s.a[3 * H + k] * tanh(s.c[k]);
        }
    }
}

// dg of one step from dh and dc, which becomes the dc of the step before. dg may lie on the gates.
static void gate_gradients(uint64_t H, const double *a, const double *c, const double *c_before,
                           const double *dh, double *dc, double *dg)
{
    for (uint64_t k = 0; k < H; k++) {
        const double i = a[k], f = a[H + k], j = a[2 * H + k], o = a[3 * H + k], squashed = tanh(c[k]);
        dc[k] += dh[k] * o * (1.0 - squashed * squashed);
        dg[k] = dc[k] * j * i * (1.0 - i);
        dg[H + k] = c_before == NULL ? 0.0 : dc[k] * c_before[k] * f * (1.0 - f);
        dg[2 * H + k] = dc[k] * i * (1.0 - j * j);
        dg[3 * H + k] = dh[k] * squashed * o * (1.0 - o);
        dc[k] *= f;
    }
}

static void weight_gradient(const lstm *l, const double *h, const double *dg, double *dwh)
{
    const uint64_t H = l->units, width = 4 * H;
    memset(dwh, 0, H * width * sizeof *dwh);
    for (uint64_t row = 0; row < l->samples * l->steps; row++) {
        for (uint64_t i = 0; row % l->steps != 0 && i < H; i++) {
            for (uint64_t k = 0; k < width; k++) {
                dwh[i * width + k] += h[(row - 1) * H + i] * dg[row * width + k];
            }
        }
    }
}

// The carried gradients of a sample, dh and dc, take the room of dwh until it is computed.
void reference_lstm_bwd(const reference_call *call)
{
    const lstm l = lstm_of(&call->query->in[3]);
    const uint64_t H = l.units, width = 4 * H;
    const double *wh = call->in[0], *h = call->in[1], *c = call->in[2], *a = call->in[3], *dy = call->in[4];
    double *dg = call->out[0], *dwh = call->out[1], *dh = dwh, *dc = dwh + H;
    for (uint64_t row = l.samples * l.steps; row-- > 0;) {
        const bool first = row % l.steps == 0, last = (row + 1) % l.steps == 0;
        if (last) {
            memset(dwh, 0, 2 * H * sizeof *dwh);
        }
        for (uint64_t k = 0; k < H; k++) {
            dh[k] += dy[row * H + k];
        }
        gate_gradients(H, a + row * width, c + row * H, first ? NULL : c + (row - 1) * H, dh, dc,
                       dg + row * width);
        for (uint64_t i = 0; i < H; i++) {
            dh[i] = 0.0;
            for (uint64_t k = 0; k < width; k++) {
                dh[i] += dg[row * width + k] * wh[i * width + k];
            }
        }
    }
    weight_gradient(&l, h, dg, dwh);
}

// ---- GRU ------------------------------------------------------------------------------------------------------

void reference_gru(const reference_call *call)
{
    const int64_t *dim = call->query->out[0].shape.dim;
    const uint64_t rows = (uint64_t)(dim[0] * dim[1]), steps = (uint64_t)dim[1], H = (uint64_t)dim[2];
    const double *wh = call->in[1], *bh = call->in[2];
    for (uint64_t row = 0; row < rows; row++) {
        const double *g = (const double *)call->in[0] + row * 3 * H;
        double *h = (double *)call->out[0] + row * H, *a = (double *)call->out[1] + row * 4 * H;
        const double *before = row % steps == 0 ? NULL : h - H;
        for (uint64_t k = 0; k < 3 * H; k++) {
            double q = bh[k];
            for (uint64_t i = 0; before != NULL && i < H; i++) {
                q += before[i] * wh[i * 3 * H + k];
            }
            a[k < 2 * H ? k : k + H] = k < 2 * H ? sigmoid(g[k] + q) : q;
        }
        for (uint64_t k = 0; k < H; k++) {
            a[2 * H + k] = tanh(g[2 * H + k] + a[H + k] * a[3 * H + k]);
            h[k] = (before == NULL ? 0.0 : a[k] * before[k]) + (1.0 - a[k]) * a[2 * H + k];
        }
    }
}

// dg of one step from dh, which becomes what of it h(t−1) has directly.
static void gru_gradients(uint64_t H, const double *a, const double *before, double *dh, double *dg)
{
    for (uint64_t k = 0; k < H; k++) {
        const double z = a[k], r = a[H + k], n = a[2 * H + k];
        const double dn = dh[k] * (1.0 - z) * (1.0 - n * n);
        dg[k] = dh[k] * ((before == NULL ? 0.0 : before[k]) - n) * z * (1.0 - z);
        dg[H + k] = dn * a[3 * H + k] * r * (1.0 - r);
        dg[2 * H + k] = dn;
        dh[k] *= z;
    }
}

// dq is dg but for n, where it is r*dg. The carried dh of a sample takes the room of dbh until that is computed.
void reference_gru_bwd(const reference_call *call)
{
    const int64_t *dim = call->query->in[1].shape.dim;
    const uint64_t rows = (uint64_t)(dim[0] * dim[1]), steps = (uint64_t)dim[1], H = (uint64_t)dim[2];
    const double *wh = call->in[0], *h = call->in[1], *a = call->in[2], *dy = call->in[3];
    double *dg = call->out[0], *dwh = call->out[1], *dbh = call->out[2], *dh = dbh;
    for (uint64_t row = rows; row-- > 0;) {
        const double *before = row % steps == 0 ? NULL : h + (row - 1) * H;
        for (uint64_t k = 0; k < H; k++) {
            dh[k] = ((row + 1) % steps == 0 ? 0.0 : dh[k]) + dy[row * H + k];
        }
        gru_gradients(H, a + row * 4 * H, before, dh, dg + row * 3 * H);
        for (uint64_t i = 0; i < H; i++) {
            for (uint64_t k = 0; k < 3 * H; k++) {
                const double r = k < 2 * H ? 1.0 : a[row * 4 * H + k - H];
                dh[i] += r * dg[row * 3 * H + k] * wh[i * 3 * H + k];
            }
        }
    }
    memset(dwh, 0, 3 * H * H * sizeof *dwh);
    memset(dbh, 0, 3 * H * sizeof *dbh);
    for (uint64_t row = 0; row < rows; row++) {
        for (uint64_t k = 0; k < 3 * H; k++) {
            const double dq = (k < 2 * H ? 1.0 : a[row * 4 * H + k - H]) * dg[row * 3 * H + k];
            dbh[k] += dq;
            for (uint64_t i = 0; row % steps != 0 && i < H; i++) {
                dwh[i * 3 * H + k] += h[(row - 1) * H + i] * dq;
            }
        }
    }
}
