// SPDX-License-Identifier: Apache-2.0
// Seeded initial values. A script repeats them with numpy:
//
//   key     = philox_key_of(seed, "init/" + name)                       engine/base/philox.h
//   word[i] = philox(key, counter = i // 4)[i % 4]
//   u       = float32(word >> 8) * 2**-24                               in [0, 1), exact
//   limit   = float32(sqrt(6 / (fan_in + fan_out)))                     Glorot; 6 / fan_in for He; in float64
//   value   = (2 * u - 1) * limit                                       in float32; only the product rounds
//
// A value depends on its own index alone, so that any part can be made on any thread.
//
// X. Glorot, Y. Bengio: "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010;
// K. He et al.: "Delving deep into rectifiers", ICCV 2015; fans as Keras counts them.
#include <math.h>
#include <stdio.h>

#include "base/philox.h"
#include "model/model.h"

static void fill(float *values, uint64_t elements, float value)
{
    for (uint64_t i = 0; i < elements; i++) {
        values[i] = value;
    }
}

static void fill_uniform(float *values, uint64_t elements, philox_key key, double variance_scale)
{
    const float limit = (float)sqrt(variance_scale);
    uint32_t word[4];
    for (uint64_t i = 0; i < elements; i++) {
        if (i % 4 == 0) {
            philox(key, i / 4, 0, word);
        }
        values[i] = (2.0f * philox_uniform(word[i % 4]) - 1.0f) * limit;
    }
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
    case MODEL_INIT_GLOROT_UNIFORM:
        fill_uniform(values, elements, key_of(seed, p->name), 6.0 / (fan_in + fan_out));
        break;
    case MODEL_INIT_HE_UNIFORM:
        fill_uniform(values, elements, key_of(seed, p->name), 6.0 / fan_in);
        break;
    }
}
