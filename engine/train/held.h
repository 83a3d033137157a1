// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers (compress.lora_base) in a store. In a store and a save the parts have the
// names of their tensors: NAME, NAME:scale, NAME:zero. Engine's thread.
#ifndef TRAIN_HELD_H
#define TRAIN_HELD_H

#include "model/model.h"
#include "train/store.h"

// Does the store have what parameter p begins with or goes on from: its parts, or real weights to make them of?
bool held_is_there(const store *s, const model_param *p);
// The name of what stands beside real weights as if they were whole numbers; NULL: nothing does.
const char *held_beside_real(const store *s, const model_param *p);
// Appends what stands beside its numbers, which the caller copies: scales and zero points. NOMEM error; SAVE where one is missing.
HR_MUST_CHECK hr_status held_copy_scales(const store *s, const model_param *p, store *to, hr_err *err);

// The weights that the parts stand for, in the parameter's shape; the caller frees with hr_free. NOMEM error; SAVE where a part is
// missing.
HR_MUST_CHECK hr_status held_real(const store *s, const model_param *p, float **w, hr_err *err);
// Of the weights that the parts stand for, how many are 0. NOMEM error; SAVE where a part is missing.
HR_MUST_CHECK hr_status held_zeros(const store *s, const model_param *p, uint64_t *zeros, hr_err *err);

#endif
