// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"
#include "model/teacher.h"
#include "model/whole.h"

hr_status model_create(const hr_preset *preset, const hr_knobs *knobs, hr_model **out, char **problems,
                       hr_err *err)
{
    model_builder *b = NULL;
    *out = NULL;
    HR_TRY(model_read_whole(preset, knobs, &b, problems, err));
    const hr_status status = teacher_add(b, preset, knobs, err);
    if (status != HR_OK) {
        model_destroy(&b->model);
        return status;
    }
    model_publish(b);
    *out = &b->model;
    return HR_OK;
}

hr_status hr_preset_check_model(const hr_preset *preset, char **problems, hr_err *err)
{
    hr_model *m = NULL;
    HR_TRY(model_create(preset, hr_preset_knobs(preset), &m, problems, err));
    model_destroy(m);
    return HR_OK;
}
