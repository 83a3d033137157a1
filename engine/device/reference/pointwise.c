// SPDX-License-Identifier: Apache-2.0
// Input and read-back, activations, addition, loss and optimizers.
#include <math.h>
#include <string.h>

#include "kernels.h"

void reference_input(const reference_call *call)
{
    const uint64_t count = call->out_count[0];
    const hr_dtype dtype = (hr_dtype)call->query->out[0].dtype;
    const void *from = call->io->slot[call->query->attr.slot];
    if (dtype == HR_I32 || dtype == HR_U8) {
        memcpy(call->out[0], from, count * dtype_bytes(dtype));
        return;
    }
    double *x = call->out[0];
    for (uint64_t i = 0; i < count; i++) {
        x[i] = (double)((const float *)from)[i];
    }
}

void reference_read(const reference_call *call)
{
    if (call->query->attr.slot == READ_CORRECT) {
        call->io->correct += *(const int32_t *)call->in[0];
    } else {
        call->io->loss += step_io_weight(call->io, &call->query->attr) * *(const double *)call->in[0];
    }
}

static double positive(double v)
{
    return v > 0.0 ? v : 0.0;
}

void reference_act(const reference_call *call)
{
    if (call->query->attr.act != HR_ACT_RELU) {
        return;
    }
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = positive(y[i]);
    }
}

void reference_relu(const reference_call *call)
{
    const double *x = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = positive(x[i]);
    }
}

void reference_relu_bwd(const reference_call *call)
{
    const double *y = call->in[0], *dy = call->in[1];
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        dx[i] = y[i] > 0.0 ? dy[i] : 0.0;
    }
}

void reference_add(const reference_call *call)
{
    const double *a = call->in[0], *b = call->in[1];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = a[i] + b[i];
    }
    reference_act(call);
}

static uint64_t arg_max(const double *values, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t k = 1; k < count; k++) {
        if (values[k] > values[best]) {
            best = k;
        }
    }
    return best;
}

// loss = mean of log Σ exp(z − max) − (z_label − max): never the logarithm of a rounded probability.
void reference_softmax_xent(const reference_call *call)
{
    const uint64_t samples = (uint64_t)call->query->out[0].shape.dim[0];
    const uint64_t classes = (uint64_t)call->query->out[0].shape.dim[1];
    const int32_t *labels = call->in[1];
    double *loss = call->out[1], total = 0.0;
    for (uint64_t n = 0; n < samples; n++) {
        const double *z = (const double *)call->in[0] + n * classes;
        double *p = (double *)call->out[0] + n * classes;
        const double largest = z[arg_max(z, classes)], chosen = z[labels[n]];
        double sum = 0.0;
        for (uint64_t k = 0; k < classes; k++) {
            p[k] = exp(z[k] - largest);
            sum += p[k];
        }
        for (uint64_t k = 0; k < classes; k++) {
            p[k] /= sum;
        }
        total += log(sum) - (chosen - largest);
    }
    *loss = total / (double)samples;
}

void reference_softmax_xent_bwd(const reference_call *call)
{
    const uint64_t samples = (uint64_t)call->query->out[0].shape.dim[0];
    const uint64_t classes = (uint64_t)call->query->out[0].shape.dim[1];
    const double *p = call->in[0];
    const int32_t *labels = call->in[1];
    double *dz = call->out[0];
    for (uint64_t i = 0; i < samples * classes; i++) {
        const double target = i % classes == (uint64_t)labels[i / classes] ? 1.0 : 0.0;
        dz[i] = (p[i] - target) / (double)samples;
    }
}

void reference_accuracy(const reference_call *call)
{
    const uint64_t samples = (uint64_t)call->query->in[0].shape.dim[0];
    const uint64_t classes = (uint64_t)call->query->in[0].shape.dim[1];
    const double *z = call->in[0];
    const int32_t *labels = call->in[1];
    int32_t *correct = call->out[0];
    *correct = 0;
    for (uint64_t n = 0; n < samples; n++) {
        *correct += arg_max(z + n * classes, classes) == (uint64_t)labels[n];
    }
}

void reference_sgd(const reference_call *call)
{
    double *w = call->in[0];
    const double *g = call->in[1];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        w[i] -= call->io->learning_rate * g[i];
    }
}

void reference_momentum(const reference_call *call)
{
    double *w = call->in[0], *v = call->in[2];
    const double *g = call->in[1];
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        v[i] = call->query->attr.momentum * v[i] - call->io->learning_rate * g[i];
        w[i] += v[i];
    }
}

void reference_adam(const reference_call *call)
{
    const op_attr *a = &call->query->attr;
    double *w = call->in[0], *m = call->in[2], *v = call->in[3];
    const double *g = call->in[1];
    const double t = (double)call->io->update;
    const double rate = call->io->learning_rate * sqrt(1.0 - pow(a->beta2, t)) / (1.0 - pow(a->beta1, t));
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        m[i] += (g[i] - m[i]) * (1.0 - a->beta1);
        v[i] += (g[i] * g[i] - v[i]) * (1.0 - a->beta2);
        w[i] -= rate * m[i] / (sqrt(v[i]) + a->epsilon);
    }
}
