// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients (GELU: Hendrycks, Gimpel 2016, the exact form and the one by tanh; Mish: Misra 2019).
#include <math.h>

#include "kernels.h"

typedef double (*unary)(double v);
typedef double (*binary)(double v, double dy);

static void map(const reference_call *call, unary f)
{
    const double *x = call->in[0];
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = f(x[i]);
    }
}

static void map_gradient(const reference_call *call, binary f)
{
    const double *v = call->in[0], *dy = call->in[1];
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        dx[i] = f(v[i], dy[i]);
    }
}

static bool by_tanh(const reference_call *call)
{
    return (call->query->attr.flags & OP_FLAG_TANH) != 0;
}

static const double root_half = 0.70710678118654752440;       // sqrt(1/2)
static const double root_2_over_pi = 0.79788456080286535588;  // sqrt(2/pi)
static const double density_at_zero = 0.39894228040143267794; // 1/sqrt(2 pi)
static const double cubic = 0.044715;

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * root_half);
}

static double gelu_gradient(double x, double dy)
{
    return dy * (0.5 * erfc(-x * root_half) + x * density_at_zero * exp(-0.5 * x * x));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(root_2_over_pi * (x + cubic * x * x * x)));
}

static double gelu_tanh_gradient(double x, double dy)
{
    const double t = tanh(root_2_over_pi * (x + cubic * x * x * x));
    const double inner = root_2_over_pi * (1.0 + 3.0 * cubic * x * x);
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner);
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double sigmoid_gradient(double y, double dy)
{
    return dy * y * (1.0 - y);
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double silu_gradient(double x, double dy)
{
    const double s = sigmoid(x);
    return dy * s * (1.0 + x * (1.0 - s));
}

static double tanh_gradient(double y, double dy)
{
    return dy * (1.0 - y * y);
}

static double hard_sigmoid(double x)
{
    return x < -3.0 ? 0.0 : x > 3.0 ? 1.0 : x / 6.0 + 0.5;
}

static double hard_sigmoid_gradient(double y, double dy)
{
    return y > 0.0 && y < 1.0 ? dy / 6.0 : 0.0;
}

static double hard_swish(double x)
{
    return x * hard_sigmoid(x);
}

static double hard_swish_gradient(double x, double dy)
{
    return x < -3.0 ? 0.0 : x > 3.0 ? dy : dy * (x / 3.0 + 0.5);
}

static double softplus(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

static double softplus_gradient(double x, double dy)
{
    return dy * sigmoid(x);
}

static double mish(double x)
{
    return x * tanh(softplus(x));
}

static double mish_gradient(double x, double dy)
{
    const double t = tanh(softplus(x));
    return dy * (t + x * (1.0 - t * t) * sigmoid(x));
}

void reference_gelu(const reference_call *call)
{
    map(call, by_tanh(call) ? gelu_tanh : gelu);
}

void reference_gelu_bwd(const reference_call *call)
{
    map_gradient(call, by_tanh(call) ? gelu_tanh_gradient : gelu_gradient);
}

void reference_gelu_tanh(double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = gelu_tanh(values[i]);
    }
}

void reference_gelu_gradient(const double *x, double *gradient, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        gradient[i] = gelu_tanh_gradient(x[i], gradient[i]);
    }
}

void reference_silu(const reference_call *call)
{
    map(call, silu);
}

void reference_silu_bwd(const reference_call *call)
{
    map_gradient(call, silu_gradient);
}

void reference_tanh(const reference_call *call)
{
    map(call, tanh);
}

void reference_tanh_bwd(const reference_call *call)
{
    map_gradient(call, tanh_gradient);
}

void reference_sigmoid(const reference_call *call)
{
    map(call, sigmoid);
}

void reference_sigmoid_bwd(const reference_call *call)
{
    map_gradient(call, sigmoid_gradient);
}

void reference_hard_sigmoid(const reference_call *call)
{
    map(call, hard_sigmoid);
}

void reference_hard_sigmoid_bwd(const reference_call *call)
{
    map_gradient(call, hard_sigmoid_gradient);
}

void reference_hard_swish(const reference_call *call)
{
    map(call, hard_swish);
}

void reference_hard_swish_bwd(const reference_call *call)
{
    map_gradient(call, hard_swish_gradient);
}

void reference_softplus(const reference_call *call)
{
    map(call, softplus);
}

void reference_softplus_bwd(const reference_call *call)
{
    map_gradient(call, softplus_gradient);
}

void reference_mish(const reference_call *call)
{
    map(call, mish);
}

void reference_mish_bwd(const reference_call *call)
{
    map_gradient(call, mish_gradient);
}

void reference_leaky_relu(const reference_call *call)
{
    const double *x = call->in[0], slope = call->query->attr.rate;
    double *y = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        y[i] = x[i] > 0.0 ? x[i] : slope * x[i];
    }
}

void reference_leaky_relu_bwd(const reference_call *call)
{
    const double *y = call->in[0], *dy = call->in[1], slope = call->query->attr.rate;
    double *dx = call->out[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        dx[i] = y[i] > 0.0 ? dy[i] : slope * dy[i];
    }
}
