// SPDX-License-Identifier: Apache-2.0
// Fake quantization: its arithmetic is float32 on every device (ops/fake_quant.h).
#include "ops/fake_quant.h"

#include <math.h>

#include "kernels.h"

// The largest absolute value of what stands at `first` and every `step` elements behind it.
static float largest_of(const double *w, uint64_t first, uint64_t step, uint64_t count)
{
    float largest = 0.0F;
    for (uint64_t i = first; i < count; i += step) {
        largest = fmaxf(largest, fabsf((float)w[i]));
    }
    return largest;
}

void reference_fake_quant_weights(const reference_call *call)
{
    const hr_shape *shape = &call->query->in[0].shape;
    const double *w = call->in[0];
    double *y = call->out[0];
    const uint64_t count = call->in_count[0];
    const uint64_t channels = call->query->attr.count == 0 ? 1 : (uint64_t)shape->dim[shape->rank - 1];
    for (uint64_t c = 0; c < channels; c++) {
        const fake_quant_levels l = fake_quant_of_weights(largest_of(w, c, channels, count));
        for (uint64_t i = c; i < count; i += channels) {
            y[i] = (double)fake_quant_value(&l, (float)w[i]);
        }
    }
}

static fake_quant_levels levels_of(const reference_call *call)
{
    const double *range = call->in[1];
    return fake_quant_of_range((const float[2]){(float)range[0], (float)range[1]});
}

void reference_fake_quant(const reference_call *call)
{
    const fake_quant_levels l = levels_of(call);
    const double *x = call->in[0];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        ((double *)call->out[0])[i] = (double)fake_quant_value(&l, (float)x[i]);
    }
}

void reference_fake_quant_bwd(const reference_call *call)
{
    const fake_quant_levels l = levels_of(call);
    const double *x = call->in[0], *dy = call->in[2];
    for (uint64_t i = 0; i < call->out_count[0]; i++) {
        ((double *)call->out[0])[i] = fake_quant_passes(&l, (float)x[i]) ? dy[i] : 0.0;
    }
}

void reference_track_range(const reference_call *call)
{
    const double *x = call->in[0];
    double *range = call->in[1];
    float below = 0.0F, above = 0.0F;
    for (uint64_t i = 0; i < call->in_count[0]; i++) {
        below = fmaxf(below, -(float)x[i]);
        above = fmaxf(above, (float)x[i]);
    }
    const double decay = call->query->attr.momentum;
    range[0] = (double)fake_quant_moved((float)range[0], below, decay);
    range[1] = (double)fake_quant_moved((float)range[1], above, decay);
}
