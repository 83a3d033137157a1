// SPDX-License-Identifier: Apache-2.0
// The cards that headroom knows by name, one row each, from their maker's sheets.
#ifndef KNOBS_CARD_TABLE_H
#define KNOBS_CARD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/card.h"

// Dense TFLOP/s; 0: not native. Products run on tensor cores where the card has them for the type.
typedef struct card_tflops {
    double float32, tf32, float16, bfloat16, float64, vector_float16, vector_bfloat16, vector_float64;
} card_tflops;

typedef struct card_row {
    const char *name, *title, *family;
    uint32_t year, capability; // 86: compute capability 8.6
    uint32_t multiprocessors, clock_mhz, tensor_clock_mhz;
    uint32_t bus_bits;
    double pin_gbits;
    uint32_t vram_mib, context_mib;
    double link_gbytes, memory_gbytes; // a second
    card_tflops tflops;
    const char *source;
} card_row;

const card_row *card_rows(size_t *count);
// False when no row is called so. Leaves properties_path empty.
bool card_of_table(const char *name, hr_card *card);

#endif
