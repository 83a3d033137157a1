// SPDX-License-Identifier: Apache-2.0
// A worker that a fault has ended, and whether the same start would end the same way: at once where the processor lacks an
// instruction, else from the second time on that the same signal came in the same instruction of the program.
#ifndef TUI_FEED_DEATH_H
#define TUI_FEED_DEATH_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/session.h"

enum { DEATH_TEXT_MAX = 512 };

typedef struct death {
    int signal; // 0: no fault yet
    uint32_t instr;
    hr_knobs knobs; // it was started with
    bool certain;
    char what
        [DEATH_TEXT_MAX]; // "SIGILL in conv1/conv2d (instruction 3), computed by onednn … with avx512_core_amx"
    char remedy[DEATH_TEXT_MAX]; // what avoids it
} death;

#endif
