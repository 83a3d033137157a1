// SPDX-License-Identifier: Apache-2.0
// The models of one preset: one for each choice of what shapes it (model.*, compress.*), read when it is asked for. Any thread.
#ifndef MODEL_SHELF_H
#define MODEL_SHELF_H

#include "model/model.h"

typedef struct model_shelf model_shelf;

// Holds the preset until it is closed.
HR_MUST_CHECK hr_status model_shelf_open(const hr_preset *preset, model_shelf **out, hr_err *err);
void model_shelf_close(model_shelf *shelf); // nothing may be taken then; NULL: nothing

// The model under these knobs, the caller's until it is given back. Errors as model_create.
HR_MUST_CHECK hr_status model_shelf_take(model_shelf *shelf, const hr_knobs *knobs, const hr_model **out,
                                         hr_err *err);
void model_shelf_give_back(model_shelf *shelf, const hr_model *model); // NULL: nothing

// The name of the first parameter of `from` that `to` lacks in that shape, or of `to` that `from` lacks; NULL: learned
// values of one are those of the other. Adapters (compress.lora) that only `to` has begin there, and are no other ones.
const char *model_first_other_param(const hr_model *from, const hr_model *to);

#endif
