// SPDX-License-Identifier: Apache-2.0
// How long a card takes for an instruction: a launch, and then its arithmetic or its memory traffic, whichever is
// longer (S. Williams, A. Waterman, D. Patterson: "Roofline", CACM 52(4), 2009), at the rates of the card file. What
// is published is the best a card can do: a real step takes longer, and never less.
#ifndef DEVICE_ROOFLINE_H
#define DEVICE_ROOFLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/card.h"

#include "program/program.h"

// What is asked how long an instruction takes: a card, and what the knobs let its kernels do.
typedef struct roofline {
    hr_card card;
    bool tf32; // float32 products run at the card's TF32 rate, where it has one
} roofline;

// Copies on the lanes h2d and d2h go at the speed of the link. 0 for what the executor does itself.
uint64_t roofline_ns(const roofline *r, const program *p, const instr *i);

#endif
