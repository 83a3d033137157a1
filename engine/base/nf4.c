// SPDX-License-Identifier: Apache-2.0
#include "base/nf4.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const float nf4_levels[NF4_LEVELS] = {-1.0F,
                                      -0.6961928009986877F,
                                      -0.5250730514526367F,
                                      -0.39491748809814453F,
                                      -0.28444138169288635F,
                                      -0.18477343022823334F,
                                      -0.09105003625154495F,
                                      0.0F,
                                      0.07958029955625534F,
                                      0.16093020141124725F,
                                      0.24611230194568634F,
                                      0.33791524171829224F,
                                      0.44070982933044434F,
                                      0.5626170039176941F,
                                      0.7229568362236023F,
                                      1.0F};

// bitsandbytes' borders, as its kernels have them written out: what lies on one is the level below.
static const float borders[NF4_LEVELS - 1] = {
    -0.8480964004993439F,  -0.6106329262256622F,  -0.4599952697753906F,   -0.33967943489551544F,
    -0.23460740596055984F, -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F,
    0.1202552504837513F,   0.2035212516784668F,   0.2920137718319893F,    0.3893125355243683F,
    0.5016634166240692F,   0.6427869200706482F,   0.8614784181118011F};

uint64_t nf4_bytes(uint64_t count)
{
    return (count + 1) / 2;
}

uint64_t nf4_blocks(uint64_t count)
{
    return (count + NF4_BLOCK - 1) / NF4_BLOCK;
}

static uint8_t level_of(float x)
{
    uint8_t level = 0;
    while (level < NF4_LEVELS - 1 && x > borders[level]) {
        level++;
    }
    return level;
}

static float largest_of(const float *w, uint64_t count)
{
    float largest = 0;
    bool finite = true;
    for (uint64_t k = 0; k < count; k++) {
        finite = finite && isfinite(w[k]);
        largest = fmaxf(largest, fabsf(w[k]));
    }
    return finite ? largest : NAN;
}

void quantize_nf4(const float *w, uint64_t count, uint8_t *q, float *scale)
{
    memset(q, 0, nf4_bytes(count));
    for (uint64_t first = 0; first < count; first += NF4_BLOCK) {
        const uint64_t length = count - first < NF4_BLOCK ? count - first : NF4_BLOCK;
        const float largest = largest_of(w + first, length);
        scale[first / NF4_BLOCK] = largest;
        for (uint64_t k = first; k < first + length; k++) {
            const float x = largest > 0 ? w[k] * (1 / largest) : 0;
            q[k / 2] |= (uint8_t)(level_of(x) << (k % 2 == 0 ? 4 : 0));
        }
    }
}

void dequantize_nf4(const uint8_t *q, const float *scale, uint64_t count, float *w)
{
    for (uint64_t k = 0; k < count; k++) {
        w[k] = nf4_levels[nf4_at(q, k)] * scale[k / NF4_BLOCK];
    }
}
