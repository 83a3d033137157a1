// SPDX-License-Identifier: Apache-2.0
// Small networks by chance, for tests of what a step keeps.
#ifndef TESTS_PROGRAM_DRAWN_NETWORK_H
#define TESTS_PROGRAM_DRAWN_NETWORK_H

#include <inttypes.h>
#include <stdio.h>

#include "program/model_from_text.h"

enum { DRAWN_TEXT = 8192 };

static inline uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

// Convolutions, normalisations, and here and there a sum with what was the same size before.
static inline hr_model *draw_network(uint64_t seed)
{
    char text[DRAWN_TEXT];
    uint64_t state = seed;
    uint32_t names = 0, same = 0;
    int at = snprintf(text, sizeof text,
                      "device: {vram: 1GiB}\nmodel:\n  input: {shape: [8, 8, 3]}\n  classes: 4\n"
                      "  layers:\n");
    const uint32_t layers = 3 + (uint32_t)draw(&state, 24);
    uint64_t filters = 0;
    for (uint32_t l = 0; l < layers; l++) {
        const size_t left = sizeof text - (size_t)at;
        const uint64_t kind = filters == 0 ? 0 : draw(&state, 4);
        if (kind <= 1) {
            const uint64_t wanted = filters != 0 && draw(&state, 3) != 0 ? filters : 4 + draw(&state, 28);
            same = wanted == filters ? same : names;
            filters = wanted;
            at += snprintf(text + at, left,
                           "    - {name: l%" PRIu32 ", kind: conv2d, filters: %" PRIu64
                           ", kernel: 3, padding: 1, bias: false}\n",
                           names, filters);
        } else if (kind == 2) {
            at += snprintf(text + at, left,
                           "    - {name: l%" PRIu32 ", kind: batch_norm, activation: relu}\n", names);
        } else if (same + 1 < names) {
            at += snprintf(text + at, left,
                           "    - {name: l%" PRIu32 ", kind: add, inputs: [l%" PRIu32 ", l%" PRIu32 "]}\n",
                           names, names - 1, same + (uint32_t)draw(&state, names - 1 - same));
        } else {
            continue;
        }
        names++;
    }
    snprintf(text + at, sizeof text - (size_t)at,
             "    - {name: gap, kind: global_avg_pool}\n    - {name: out, kind: dense, units: 4}\n");
    return model_from_text(text);
}

#endif
