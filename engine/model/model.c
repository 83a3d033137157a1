// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <pthread.h>
#include <stdio.h>

#include "base/host_mem.h"
#include "knobs/preset_model.h"
#include "model/compress.h"
#include "model/read.h"
#include "model/sizes.h"
#include "model/whole.h"
#include "model/widths.h"

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

void model_publish(model_builder *b)
{
    hr_model *m = &b->model;
    m->params = b->params.data;
    m->values = b->values.data;
    m->nodes = b->nodes.data;
    m->layers = b->layers.data;
    m->losses = b->losses.data;
    m->param_count = b->params.count;
    m->value_count = b->values.count;
    m->node_count = b->nodes.count;
    m->layer_count = b->layers.count;
    m->loss_count = b->losses.count;
    b->file = NULL;
    b->sizes = (model_sizes){.knobs = NULL};
    b->widths = (model_widths){.sections = NULL};
    b->node = NULL;
}

// A file that is good by itself, under a size that does not suit it: the size is what to turn.
static void try_own_size(const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    const hr_knobs *own = hr_preset_knobs(preset);
    for (int k = 0; k < HR_KNOB_COUNT; k++) {
        const hr_knob_id id = (hr_knob_id)k;
        char value[HR_KNOB_TEXT_MAX];
        if (hr_knob_is_size(id) && hr_knob_is_set(own, id) &&
            (!hr_knob_is_set(knobs, id) || hr_knob_int(knobs, id) != hr_knob_int(own, id))) {
            hr_err_try(err, "-s %s=%s", hr_knob_rows(NULL)[id].key, hr_knob_format(own, id, value));
            return;
        }
    }
}

static hr_status read_model(model_builder *b, const yaml_node *root, const char *name, char **problems,
                            hr_err *err)
{
    model_read(b, root, name);
    if (b->nomem) {
        return HR_FAIL(err, NOMEM, "model of preset '%s': %u layers read", name, b->layers.count);
    }
    HR_TRY(b->problems > 0 ? fail_with_problems(widths_blamed(b), problems, err)
                           : sizes_check_knobs(b, name, err));
    b->model.most_parameters = b->model.parameters;
    HR_TRY(model_compress(b, b->sizes.knobs, name, err));
    if (b->model.parameters > b->model.most_parameters) {
        b->model.most_parameters = b->model.parameters;
    }
    return HR_OK;
}

// One reading, `with_widths` or as wide as the model says.
static hr_status read_once(const hr_preset *preset, const hr_knobs *knobs, bool with_widths,
                           model_builder **out, char **problems, hr_err *err)
{
    static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER; // problems go into the file
    yaml_file *file = NULL;
    const yaml_node *root = preset_model(preset, &file);
    model_builder *b = hr_calloc(1, sizeof *b);
    if (!b) {
        return HR_FAIL(err, NOMEM, "model of preset '%s'", hr_preset_name(preset));
    }
    b->file = file;
    b->sizes.knobs = knobs;
    if (with_widths) {
        b->widths.sections = preset_model_widths(preset, &b->widths.count);
    }
    pthread_mutex_lock(&reading);
    const hr_status status = read_model(b, root, hr_preset_name(preset), problems, err);
    widths_forget_problems(b);
    yaml_problems_forget(file);
    pthread_mutex_unlock(&reading);
    if (status != HR_OK) {
        model_destroy(&b->model);
        return status;
    }
    *out = b;
    return HR_OK;
}

// Where the model is wrong as it is, widths are not to blame: its own problems take the place of those with them.
static hr_status blame_widths(const hr_preset *preset, const hr_knobs *knobs, char **problems, hr_err *err)
{
    model_builder *whole = NULL;
    char *own = NULL;
    hr_err reason = {0};
    const hr_status status = read_once(preset, knobs, false, &whole, problems ? &own : NULL, &reason);
    if (status == HR_OK) {
        model_destroy(&whole->model);
        return HR_MODEL;
    }
    if (problems) {
        hr_free(*problems);
        *problems = own;
    }
    if (err) {
        *err = reason;
    }
    return status;
}

hr_status model_read_whole(const hr_preset *preset, const hr_knobs *knobs, model_builder **out,
                           char **problems, hr_err *err)
{
    uint32_t widths = 0;
    *out = NULL;
    if (problems) {
        *problems = NULL;
    }
    hr_status status = read_once(preset, knobs, true, out, problems, err);
    (void)preset_model_widths(preset, &widths);
    if (status == HR_MODEL && widths > 0) {
        status = blame_widths(preset, knobs, problems, err);
    }
    if (status == HR_MODEL) {
        try_own_size(preset, knobs, err);
    }
    HR_TRY(status);
    (*out)->model.own_params = (*out)->params.count;
    (*out)->model.own_layers = (*out)->layers.count;
    return HR_OK;
}

uint32_t model_data_slots(const hr_model *model)
{
    return model->slot_count - model->slots[model->slot_count - 1].answers;
}

bool model_normalises_batches(const hr_model *model)
{
    uint32_t k = 0;
    while (k < model->node_count && model->nodes[k].op != HR_OP_BATCH_NORM) {
        k++;
    }
    return k < model->node_count;
}

bool model_takes_images(const hr_model *model)
{
    const model_value *x = &model->values[model->slots[0].value],
                      *label = &model->values[model->slots[1].value];
    return model_data_slots(model) == 2 && x->dtype == HR_F32 && (x->shape.rank == 2 || x->shape.rank == 4) &&
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

// What one reader wants; learned places, convolutions, cells and all else want the numbers themselves.
static model_quantized read_as(const model_node *node, uint32_t operand)
{
    const bool weights = operand == 1 && (node->op == HR_OP_DENSE || node->op == HR_OP_EMBEDDING);
    const bool by_row = node->op == HR_OP_EMBEDDING || (node->attr.flags & OP_FLAG_TRANSPOSE) != 0;
    return !weights ? MODEL_AS_IT_IS : by_row ? MODEL_BY_ROW : MODEL_BY_COLUMN;
}

model_quantized model_param_quantized(const hr_model *model, uint32_t param)
{
    const model_param *p = &model->params[param];
    model_quantized as = MODEL_AS_IT_IS;
    if (p->shape.rank != 2 || p->held != HELD_REAL) {
        return as;
    }
    for (uint32_t n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        for (uint32_t k = 0; k < node->in_count; k++) {
            if (node->in[k].is_param && node->in[k].index == param) {
                const model_quantized wanted = read_as(node, k);
                if (wanted == MODEL_AS_IT_IS || (as != MODEL_AS_IT_IS && as != wanted)) {
                    return MODEL_AS_IT_IS;
                }
                as = wanted;
            }
        }
    }
    return as;
}
