// SPDX-License-Identifier: Apache-2.0
// Seeded initial values. A script repeats them with numpy:
//
//   key     = philox_key_of(seed, "init/" + name)                       engine/base/philox.h
//   word[i] = philox(key, counter = i // 4)[i % 4]
//   u       = float32(word >> 8) * 2**-24                               in [0, 1), exact
//   limit   = float32(sqrt(6 / (fan_in + fan_out)))                     Glorot; 6 / fan_in for He; in float64; uniform: as written
//   value   = (2 * u - 1) * limit                                       in float32; only the product rounds
//
//   p       = (word + 0.5) * 2**-32                                     normal, in float64
//   p       = ndtr(-2) + p * (ndtr(2) - ndtr(-2))                       truncated normal
//   value   = float32(ndtri(p) * deviation)                             ndtri: inverse of the normal distribution
//
// A value depends on its own index alone, so that any part can be made on any thread. ndtri is written out here,
// because the logarithms of C libraries differ in their last bit from one processor to the next.
//
// X. Glorot, Y. Bengio: "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010;
// K. He et al.: "Delving deep into rectifiers", ICCV 2015; fans as Keras counts them.
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "model/model.h"

#define NORMAL_BELOW_MINUS_TWO 0.022750131948179207 // ndtr(-2)

static void fill(float *values, uint64_t elements, float value)
{
    for (uint64_t i = 0; i < elements; i++) {
        values[i] = value;
    }
}

static void fill_uniform(float *values, uint64_t elements, philox_key key, float limit)
{
    uint32_t word[4];
    for (uint64_t i = 0; i < elements; i++) {
        if (i % 4 == 0) {
            philox(key, i / 4, 0, word);
        }
        values[i] = (2.0f * philox_uniform(word[i % 4]) - 1.0f) * limit;
    }
}

// ln(x) for 0 < x < 1 through atanh: |z| < 0.172 leaves less than 1e-17 behind the last term.
static double log_of(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2;
        exponent--;
    }
    const double z = (mantissa - 1) / (mantissa + 1);
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) {
        sum = sum * z * z + 1.0 / k;
    }
    return 2 * z * sum + exponent * 0.69314718055994531;
}

static double polynomial(const double *c, int count, double x)
{
    double sum = 0;
    while (count > 0) {
        sum = sum * x + c[--count];
    }
    return sum;
}

// M. J. Wichura: "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988),
// PPND16: about 1 part in 10^16. Numerator and denominator for the middle and for the flanks; its far tails begin
// below any p here, which is at least 2^-33.
static const double as241[2][2][8] = {
    {{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
      4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
     {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
      3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}},
    {{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2,
      7.74545014278341407640e-4},
     {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
      1.05075007164441684324e-9}},
};

static double ratio(int row, double x)
{
    return polynomial(as241[row][0], 8, x) / polynomial(as241[row][1], 8, x);
}

static double normal_quantile(double p)
{
    const double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        return q * ratio(0, 0.180625 - q * q);
    }
    const double r = sqrt(-log_of(q < 0 ? p : 1 - p));
    const double tail = ratio(1, r - 1.6);
    return q < 0 ? -tail : tail;
}

// Of the standard normal distribution what lies from `low` on, `span` of it, times `deviation`.
static void fill_normal(float *values, uint64_t elements, philox_key key, double deviation, double low,
                        double span)
{
    uint32_t word[4];
    for (uint64_t i = 0; i < elements; i++) {
        if (i % 4 == 0) {
            philox(key, i / 4, 0, word);
        }
        const double p = ((double)word[i % 4] + 0.5) * 0x1p-32;
        values[i] = (float)(normal_quantile(low + p * span) * deviation);
    }
}

// Keras's unit_forget_bias over gates in the order i, f, c, o.
static void fill_forget(float *values, uint64_t elements)
{
    fill(values, elements, 0.0f);
    fill(values + elements / 4, elements / 4, 1.0f);
}

static philox_key key_of(uint64_t seed, const char *name)
{
    char purpose[128]; // a layer's name has at most 64 characters
    (void)snprintf(purpose, sizeof purpose, "init/%s", name);
    return philox_key_of(seed, purpose);
}

void model_init_param(const hr_model *model, uint32_t index, uint64_t seed, float *values)
{
    const model_param *p = &model->params[index];
    const double fan_in = (double)p->fan_in;
    const double fan_out = (double)p->fan_out;
    uint64_t elements = 0; // was checked when the parameter was declared
    (void)shape_elements(&p->shape, &elements);
    switch (p->init) {
    case MODEL_INIT_ZEROS:
        fill(values, elements, 0.0f);
        break;
    case MODEL_INIT_ONES:
        fill(values, elements, 1.0f);
        break;
    case MODEL_INIT_CONSTANT:
        fill(values, elements, (float)p->init_scale);
        break;
    case MODEL_INIT_GLOROT_UNIFORM:
        fill_uniform(values, elements, key_of(seed, p->name), (float)sqrt(6.0 / (fan_in + fan_out)));
        break;
    case MODEL_INIT_HE_UNIFORM:
        fill_uniform(values, elements, key_of(seed, p->name), (float)sqrt(6.0 / fan_in));
        break;
    case MODEL_INIT_UNIFORM:
        fill_uniform(values, elements, key_of(seed, p->name), (float)p->init_scale);
        break;
    case MODEL_INIT_NORMAL:
        fill_normal(values, elements, key_of(seed, p->name), p->init_scale, 0.0, 1.0);
        break;
    case MODEL_INIT_TRUNCATED_NORMAL:
        fill_normal(values, elements, key_of(seed, p->name), p->init_scale, NORMAL_BELOW_MINUS_TWO,
                    1 - 2 * NORMAL_BELOW_MINUS_TWO);
        break;
    case MODEL_INIT_FORGET_BIAS:
        fill_forget(values, elements);
        break;
    }
}
