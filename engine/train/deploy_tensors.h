// SPDX-License-Identifier: Apache-2.0
// What export says of each tensor. Engine's thread.
#ifndef TRAIN_DEPLOY_TENSORS_H
#define TRAIN_DEPLOY_TENSORS_H

#include "headroom/deploy.h"

#include "model/model.h"
#include "train/store.h"

// Of the model that is deployed, under the names of its parameters.
typedef struct deploy_stores {
    const store *trained;  // what the save has
    const store *stripped; // the same; of merged adapters, what they were merged into
    const store *left;     // without filters that are gone
    const store *deployed; // as it is written
    const store *back;     // what that computes with
} deploy_stores;

// Fills out->tensors by out->quantize: of all parameters, or of those alone that are deployed. NOMEM error; SAVE where a part of
// whole numbers is missing.
HR_MUST_CHECK hr_status deploy_describe(const hr_model *m, const deploy_stores *s, bool deployed_alone,
                                        hr_deploy *out, hr_err *err);

#endif
