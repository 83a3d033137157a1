// SPDX-License-Identifier: Apache-2.0
// What kernels reach of a card's published rates, by generation: shares between 0 and 1.
#ifndef DEVICE_CARD_RATES_H
#define DEVICE_CARD_RATES_H

#include <stdint.h>

#include "headroom/card.h"

typedef struct card_rates {
    uint32_t capability; // 80: this row is for compute capability 8.0 up to the next row's
    double tensor;       // of the tensor cores' rate, by a large product of two-byte numbers
    double tensor32;     // the same of float32 numbers rounded to TF32
    double vector;       // of the ordinary units' rate, by a large product
    double conv, conv32; // of a product's share on tensor cores, by a convolution of the same extent; of TF32
    double attention;    // of the tensor cores' rate, by fused attention
    double memory;       // of the bandwidth, by a kernel that reads and writes once
    uint32_t lanes;      // float32 units of a multiprocessor
    double hertz;        // at which the published rates are meant
} card_rates;

// Of the card's compute capability; the oldest row for what is older still.
const card_rates *card_rates_of(const hr_card *card);
// How many it has, from its float32 rate.
double card_multiprocessors(const hr_card *card);

#endif
