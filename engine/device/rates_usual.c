// SPDX-License-Identifier: Apache-2.0
#include "device/rates_usual.h"

// Of one thread: products by the lane, everything else by the thread; 0: it does not matter. From a calibration of an AMD EPYC
// (Zen 3, AVX2, two threads), rounded.
typedef struct usual {
    double start_us, gflops_lane, gflops, gbytes;
} usual;

static const usual table[COST_FAMILY_COUNT][RATE_WIDTHS] = {
    [COST_PRODUCT] = {{1, 9, 0, 5}, {1, 5.5, 0, 1.7}},
    [COST_CONV] = {{15, 7, 0, 9}, {15, 5, 0, 1.4}},
    [COST_CONV_DATA] = {{13, 6.2, 0, 12}, {13, 4.8, 0, 1}},
    [COST_CONV_WEIGHTS] = {{13, 8, 0, 2}, {13, 3.4, 0, 1.3}},
    [COST_DEPTHWISE] = {{8, 1.6, 0, 1.7}, {8, 0.9, 0, 0.25}},
    [COST_ATTENTION] = {{4, 6, 0, 1.4}, {4, 4, 0, 0.4}},
    [COST_NORM] = {{2.4, 0, 0, 4}, {2.4, 0, 40, 1.2}},
    [COST_ELEMENTWISE] = {{1, 0, 1.7, 12}, {1, 0, 0.4, 12}},
    [COST_REDUCTION] = {{4, 0, 1.3, 12}, {4, 0, 0.65, 12}},
    [COST_EMBEDDING] = {{23, 0, 0.7, 12}, {29, 0, 0.26, 12}},
    [COST_UPDATE] = {{0.5, 0, 24, 12}, {0.5, 0, 24, 12}},
    [COST_COPY] = {{0.5, 0, 0, 1.5}, {0.5, 0, 0, 5}},
};

static const double line_seconds = 2.5e-7;

static double seconds_each(double per_second)
{
    return per_second > 0 ? 1 / per_second : 0;
}

static cost_rate rate_of(const usual *u, double threads, double lanes)
{
    return (cost_rate){.start_seconds = u->start_us * 1e-6,
                       .seconds_per_flop = seconds_each((u->gflops_lane * lanes + u->gflops) * threads * 1e9),
                       .seconds_per_byte = seconds_each(u->gbytes * threads * 1e9),
                       .instructions = 1};
}

void rates_usual(cost_rates *out, double threads, double lanes, bool has_half)
{
    *out = (cost_rates){.line_seconds = line_seconds, .spread = RATES_USUAL_SPREAD};
    for (int f = 0; f < COST_FAMILY_COUNT; f++) {
        for (int w = 0; w < RATE_WIDTHS; w++) {
            const rate_width width = has_half ? RATE_FLOAT32 : (rate_width)w;
            out->of[f][w] = rate_of(&table[f][width], threads, lanes);
        }
    }
}
