// SPDX-License-Identifier: Apache-2.0
#include "train/wire.h"

void wire_types(const build *b, const hr_model *model, pipeline_wire *out)
{
    *out = (pipeline_wire){.pinned = {.take = NULL}, .answers = host_answers(model)};
    host_types(b->programs[BUILD_TRAIN], model, out->train);
    host_types(b->programs[BUILD_EVAL], model, out->eval);
}

void wire_foresee(const build *b, const hr_model *model, const hr_knobs *knobs, host_outlook *out)
{
    host_outlook_make(knobs, model, b->programs[BUILD_TRAIN], b->programs[BUILD_EVAL], b->device, out);
}
