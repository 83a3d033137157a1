// SPDX-License-Identifier: Apache-2.0
// What of a training under compress.lora is deployed where its model is not: the weights with what the adapters learned, or the
// adapters alone. Weights are those of a store under the names of the model. Engine's thread.
#ifndef TRAIN_ADAPTED_H
#define TRAIN_ADAPTED_H

#include <jansson.h>

#include "model/model.h"
#include "train/store.h"

// Into `to`, which starts empty and is the caller's to deinit, also after a failure: the parameters of the model without compress.lora.
// W + scale·A·B is computed in double and written in the type of A; what was held as whole numbers (compress.lora_base) is
// real. MODEL error where a layer reads the weights without the adapter; NOMEM; SAVE where a part is missing.
HR_MUST_CHECK hr_status adapted_merge(const store *weights, const hr_model *m, store *to, hr_err *err);

// Into `to`, as above: A and B of every target, and the model's running statistics, which move while adapters are trained.
HR_MUST_CHECK hr_status adapted_alone(const store *weights, const hr_model *m, store *to, hr_err *err);
// What a stranger needs to use them, as metadata of a save; the caller's. NULL: no host memory.
//
//   adapters "1"   lora_rank, lora_alpha   lora_targets: names of the weights, commas between
//   base_held: what the base was held as   base_sha256: of its weights as they lie in memory, in canonical order: what a run of the
//                                          base reports as weights_sha256
json_t *adapted_about(const store *weights, const hr_model *m);

#endif
