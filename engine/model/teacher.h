// SPDX-License-Identifier: Apache-2.0
// The teacher of compress.distill: the model of another preset beside the one in hand, as far as its logits need it.
//
//   student: input ─▶ layers ─▶ logits ─┬─▶ its losses, times alpha            own_params, own_layers
//                └──▶ teacher/layers ─▶ logits ─▶ T² KL, times 1 - alpha       behind them
//
// Under compress.distill_cache its logits are an input of the step instead, "teacher/logits", the last of the slots.
//
// Its layers, values and parameters are called "teacher/NAME". No gradient flows to it, and its losses, its labels and what
// only they need are left out. L = alpha L_student + (1 - alpha) T² mean KL(softmax(teacher / T) || softmax(student / T)) is
// keras.distillation's with LogitsDistillation(T, loss=keras.losses.KLDivergence()) in Keras 3.12, which clips probabilities
// below 1e-7 where ours does not. (Given as its default, the word "kl_divergence", Keras 3.12 leaves the softmax out.)
#ifndef MODEL_TEACHER_H
#define MODEL_TEACHER_H

#include "model/builder.h"

// Behind the student's losses: adds the teacher that `knobs` name, opened with as much trust as `preset` was; nothing where they
// name none. KNOB error when the preset cannot be opened, or the two do not take and give the same.
HR_MUST_CHECK hr_status teacher_add(model_builder *b, const hr_preset *preset, const hr_knobs *knobs,
                                    hr_err *err);

#endif
