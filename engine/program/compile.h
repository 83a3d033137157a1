// SPDX-License-Identifier: Apache-2.0
// From a model and knobs to a program: the passes, in their one order.
#ifndef PROGRAM_COMPILE_H
#define PROGRAM_COMPILE_H

#include "headroom/knobs.h"

#include "model/model.h"
#include "program/program.h"
#include "program/target.h"

// Compiles one step. `batch` is the samples of this program (a partial batch has its own program; its input
// slots are still the full batch.size of the knobs, so that persistent tensors are the same in all programs). Where
// workspace.limit is too small for one operation, the advice is a limit that is large enough for all.
HR_MUST_CHECK hr_status program_compile(const hr_model *model, const hr_knobs *knobs, program_mode mode,
                                        uint32_t batch, const hr_target *target, program **out, hr_err *err);

// The types that precision.policy stands for: of variables, and of what is computed with them.
void precision_types(const hr_knobs *knobs, hr_dtype *variables, hr_dtype *compute);

#endif
