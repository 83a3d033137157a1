// SPDX-License-Identifier: Apache-2.0
// The adapters of a model (compress.lora): which weights each stands beside, and what it adds to their product.
//
//   y = x·W + scale·(x·A)·B     W [.., features, units], A [.., features, R], B [.., R, units]
//
// Read from the nodes, so that it is what the forward pass computes. Any thread.
#ifndef MODEL_ADAPTERS_H
#define MODEL_ADAPTERS_H

#include "base/vec.h"
#include "model/model.h"

// Of params: a and b are adapters, shared as the weights are.
typedef struct model_adapter {
    uint32_t weights, a, b;
    double scale;        // alpha over the rank
    uint32_t plain_node; // that reads the weights without the adapter; HR_NO_ID: none
} model_adapter;

typedef VEC(model_adapter) model_adapter_list;

// In the order of the weights' first use; empty without compress.lora. NOMEM error; *out is to be deinitialised in any case.
HR_MUST_CHECK hr_status model_adapters_of(const hr_model *model, model_adapter_list *out, hr_err *err);
// Of these weights; NULL: none.
const model_adapter *model_adapter_of(const model_adapter_list *list, uint32_t weights);

#endif
