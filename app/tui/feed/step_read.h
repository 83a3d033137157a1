// SPDX-License-Identifier: Apache-2.0
// A step plan as the screens read it.
#ifndef TUI_FEED_STEP_READ_H
#define TUI_FEED_STEP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/step_plan.h"

// Mends what is not to be trusted (step_check.c).
void step_check(hr_step_plan *p);
// A line of the listing as the step plan has it, and as tables show it: an alloc without its bytes, which have a column.
const char *step_line(const hr_step_plan *p, uint32_t instr);
const char *step_short_line(const hr_step_plan *p, uint32_t instr, char *text, size_t size);
const char *step_tensor_name(const hr_step_plan *p, uint32_t tensor);
const char *step_layer_name(const hr_step_plan *p, uint32_t layer); // "—" for none
// Whether it says what tensors are for: a recorded step does not.
bool step_tells_categories(const hr_step_plan *p);
// Whether that instruction was reached at all.
bool step_is_reached(const hr_step_plan *p, uint32_t instr);
// What people call it: the tensor that it takes or frees, or its layer and operation.
const char *step_name(const hr_step_plan *p, uint32_t instr);
// Bytes that an instruction takes or gives back.
double step_change_bytes(const hr_step_plan *p, uint32_t instr);

#endif
