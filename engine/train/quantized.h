// SPDX-License-Identifier: Apache-2.0
// Weights of a store as whole numbers, and back: the tensors of a quantised save.
//
//   int8, int8_weights   NAME int8 [I,O]        NAME:scale float32 [O]
//   int4_weights         NAME uint8 [I,O/2]     NAME:scale float32 [G,O]   NAME:zero int8 [G,O]     (base/quantize.h)
//   of a table           NAME [V,D], [V,D/2]    NAME:scale [V], [V,G]      NAME:zero [V,G]          with the same types
//
// Which are quantised says model_param_quantized; learned positions, convolutions and all else stay.
#ifndef TRAIN_QUANTIZED_H
#define TRAIN_QUANTIZED_H

#include "headroom/deploy.h"

#include "model/model.h"
#include "train/store.h"

// Into `to`, which starts empty and is the caller's to deinit, also after a failure: the parameters of the model that `from` holds, in
// canonical order. SAVE error where a value is no number.
HR_MUST_CHECK hr_status quantized_make(const store *from, const hr_model *m, hr_quantize mode, store *to,
                                       hr_err *err);
// What a product with the whole numbers computes with, float32, into `to` as above. SAVE error, naming `path`, where a tensor is missing
// or has another shape than the model's needs.
HR_MUST_CHECK hr_status quantized_back(const store *from, const hr_model *m, hr_quantize mode,
                                       const char *path, store *to, hr_err *err);

#endif
