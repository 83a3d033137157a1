// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <stdio.h>

#include "base/host_mem.h"
#include "knobs/preset_model.h"
#include "model/read.h"

// Every problem into *problems, the first into *err.
static hr_status fail_with_problems(const yaml_file *file, char **problems, hr_err *err)
{
    if (problems) {
        *problems = yaml_problems_text(file);
    }
    hr_err first = {0};
    if (yaml_status(file, &first) != HR_PRESET) {
        return HR_FAIL(err, NOMEM, "%s: no memory to say what is wrong with the model", yaml_name(file));
    }
    const size_t count = yaml_problem_count(file);
    char more[64] = "";
    if (count > 1) {
        (void)snprintf(more, sizeof more, " (the first of %zu problems)", count);
    }
    const hr_status status = HR_FAIL(err, MODEL, "%s%s", first.sentence, more);
    hr_err_try(err, "%s", first.hint);
    return status;
}

static void publish(model_builder *b)
{
    hr_model *m = &b->model;
    m->params = b->params.data;
    m->values = b->values.data;
    m->nodes = b->nodes.data;
    m->layers = b->layers.data;
    m->param_count = b->params.count;
    m->value_count = b->values.count;
    m->node_count = b->nodes.count;
    m->layer_count = b->layers.count;
    b->file = NULL;
    b->node = NULL;
}

hr_status model_create(const hr_preset *preset, hr_model **out, char **problems, hr_err *err)
{
    *out = NULL;
    if (problems) {
        *problems = NULL;
    }
    yaml_file *file = NULL;
    const yaml_node *root = preset_model(preset, &file);
    model_builder *b = hr_calloc(1, sizeof *b);
    if (!b) {
        return HR_FAIL(err, NOMEM, "model of preset '%s'", hr_preset_name(preset));
    }
    b->file = file;
    model_read(b, root, hr_preset_name(preset));
    if (b->nomem || b->problems > 0) {
        const hr_status status = b->nomem ? HR_FAIL(err, NOMEM, "model of preset '%s': %u layers read",
                                                    hr_preset_name(preset), b->layers.count)
                                          : fail_with_problems(file, problems, err);
        model_destroy(&b->model);
        return status;
    }
    publish(b);
    *out = &b->model;
    return HR_OK;
}

hr_status hr_preset_check_model(const hr_preset *preset, char **problems, hr_err *err)
{
    hr_model *m = NULL;
    HR_TRY(model_create(preset, &m, problems, err));
    model_destroy(m);
    return HR_OK;
}

bool model_takes_images(const hr_model *model)
{
    const model_value *x = &model->values[model->slots[0].value],
                      *label = &model->values[model->slots[1].value];
    return model->slot_count == 2 && x->dtype == HR_F32 && (x->shape.rank == 2 || x->shape.rank == 4) &&
           label->dtype == HR_I32 && label->shape.rank == 1;
}

void model_destroy(hr_model *model)
{
    if (!model) {
        return;
    }
    model_builder *b = (model_builder *)(void *)model;
    builder_deinit(b);
    hr_free(b);
}
