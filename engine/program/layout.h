// SPDX-License-Identifier: Apache-2.0
// What the pass layout decides (passes/layout.c) and how it is written into the list (passes/layout_copies.c).
// Private to program/.
//
//   plain operation → image → blocked operation     y → reorder → y:blocked → conv2d
//
// An instruction has all its images in one layout; an image lies as the instruction that writes it has it, and who
// reads it in the other layout reads a copy. Backward has copies of its own, so that none waits from one phase for
// the next, unless the copy can stand for the image.
#ifndef PROGRAM_LAYOUT_H
#define PROGRAM_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "program/draft.h"

typedef enum layout_time { LAYOUT_EARLY, LAYOUT_LATE, LAYOUT_TIMES } layout_time; // forward; from backward on

typedef struct layout_image {
    bool may_block; // else its copies and users are plain
    bool blocked;   // as its writer has it
    uint32_t writers;
    uint32_t readers[LAYOUT_TIMES][2]; // [.][1]: those that want it blocked
} layout_image;

typedef struct layout_choice {
    draft *d;
    layout_image *images; // [tensors]
    bool *may_block;      // [instructions]
    bool *blocked;        // [instructions] what was chosen
} layout_choice;

layout_time layout_time_of(const instr *i);
// Does one copy serve both times, because nobody reads the image itself when backward has begun?
bool layout_shares_copy(const layout_choice *c, uint32_t tensor_id);
// Copies that the image has to have.
unsigned layout_copies_of(const layout_choice *c, uint32_t tensor_id);
// Lays the images as c->blocked says and puts reorders before the first readers of the copies.
HR_MUST_CHECK hr_status layout_apply(const layout_choice *c, hr_err *err);

#endif
