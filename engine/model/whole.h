// SPDX-License-Identifier: Apache-2.0
// A preset's model by itself, without what teaches it: what model_create and a teacher begin with.
#ifndef MODEL_WHOLE_H
#define MODEL_WHOLE_H

#include "model/builder.h"

// Errors as model_create. *out is whole but for a teacher; the caller publishes it, or destroys &(*out)->model.
HR_MUST_CHECK hr_status model_read_whole(const hr_preset *preset, const hr_knobs *knobs, model_builder **out,
                                         char **problems, hr_err *err);
// Its model is read from here on; nothing more may be added.
void model_publish(model_builder *b);

#endif
