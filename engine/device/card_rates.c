// SPDX-License-Identifier: Apache-2.0
#include "device/card_rates.h"

#include <math.h>

// Large products: 8.0 and 9.0: S. Bekman's measured "maximum achievable matmul FLOPS" (A100 268 of 312, H100 794 of 989
// TFLOP/s, B200 1,745 of 2,250; github.com/stas00/ml-engineering, compute/accelerator), and SemiAnalysis' 720 of 989 for
// the shapes of language models; 7.0: Z. Jia et al., "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking"
// (arXiv 1804.06826: 83 of 112 TFLOP/s in the largest product, 750 of 900 GB/s); 7.5: the same authors on the T4 (arXiv
// 1903.07486: 42 of 65 TFLOP/s, 68 % of the bandwidth under a power limit of 70 W). GeForce cards multiply two-byte
// numbers at half the speed of their tensor cores when they sum in float32, and come close to that. Fused attention:
// T. Dao, FlashAttention-2 (arXiv 2307.08691: 50 to 73 % of an A100 forward, less backward and with short sequences).
// Bandwidth: copies of large arrays, as BabelStream and others publish them. Convolutions were fitted to the rows of
// docs/published_throughput.md that say so; generations without such a row take the figures of the one nearest to them.
//
//  capability  tensor  tensor32  vector  conv  conv32  attention  memory  lanes  hertz
static const card_rates rows[] = {
    // clang-format off
    { 60,        0.80,   0.80,     0.85,   0.90, 0.90,   0.30,      0.75,    64,   1.33e9},
    { 61,        0.80,   0.80,     0.80,   0.90, 0.90,   0.30,      0.80,   128,   1.60e9},
    { 70,        0.60,   0.60,     0.88,   1.00, 0.90,   0.30,      0.83,    64,   1.53e9},
    { 75,        0.62,   0.62,     0.75,   0.90, 0.90,   0.30,      0.75,    64,   1.59e9},
    { 80,        0.82,   0.75,     0.90,   0.80, 0.42,   0.50,      0.86,    64,   1.41e9},
    { 86,        0.92,   0.90,     0.70,   1.00, 0.90,   0.55,      0.88,   128,   1.70e9},
    { 89,        0.90,   0.90,     0.65,   1.00, 0.90,   0.55,      0.88,   128,   2.52e9},
    { 90,        0.75,   0.62,     0.75,   0.75, 0.42,   0.45,      0.90,   128,   1.98e9},
    {100,        0.70,   0.62,     0.75,   0.75, 0.42,   0.45,      0.90,   128,   1.97e9},
    {120,        0.85,   0.85,     0.65,   1.00, 0.90,   0.50,      0.88,   128,   2.41e9},
    // clang-format on
};

const card_rates *card_rates_of(const hr_card *card)
{
    const uint32_t capability = card->compute_major * 10 + card->compute_minor;
    const card_rates *found = rows;
    for (size_t k = 1; k < sizeof rows / sizeof *rows && rows[k].capability <= capability; k++) {
        found = &rows[k];
    }
    return found;
}

double card_multiprocessors(const hr_card *card)
{
    const card_rates *r = card_rates_of(card);
    return card->multiprocessors > 0 ? card->multiprocessors
                                     : fmax(round(card->float32_flops / (2 * r->lanes * r->hertz)), 1);
}
