// SPDX-License-Identifier: Apache-2.0
// Which source the knobs mean, and whether the model can be trained on it.
#include "data/source.h"

#include <stdio.h>
#include <string.h>

bool data_form_is_image(const data_form *model, data_shape *shape)
{
    const data_slot *x = &model->slot[0], *label = &model->slot[1];
    if (model->count != 2 || x->type != DATA_FLOAT || (x->rank != 1 && x->rank != 3) ||
        label->type != DATA_IDS || label->rank != 0) {
        return false;
    }
    *shape = x->rank == 3 ? (data_shape){x->dim[0], x->dim[1], x->dim[2], label->classes}
                          : (data_shape){1, 1, x->dim[0], label->classes};
    return true;
}

static hr_status open_images(const hr_knobs *knobs, const data_shape *model, data_source **out, hr_err *err)
{
    const char *path = hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH);
    bool any = hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "auto");
    if (hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "generated") || (any && path[0] == '\0')) {
        return source_generated_open(model, out, err);
    }
    bool mnist = hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "mnist");
    if (path[0] == '\0') {
        hr_status status = HR_FAIL(err, DATA, "pipeline.source=%s: needed pipeline.path, had none",
                                   hr_knob_text(knobs, HR_KNOB_PIPELINE_SOURCE));
        hr_err_try(err, "-s pipeline.path=%s, or -s pipeline.source=generated",
                   mnist ? "FOLDER" : "cifar-10-binary.tar.gz");
        return status;
    }
    if (mnist || (any && source_mnist_is_at(path))) {
        return source_mnist_open(path, out, err);
    }
    return source_cifar_open(path, out, err);
}

static hr_status check_model(const data_source *s, const data_shape *model, hr_err *err)
{
    const pipeline_info *info = &s->info;
    bool flat = model->height == 1 && model->width == 1 && model->channels == data_source_values(s);
    bool same =
        model->height == info->height && model->width == info->width && model->channels == info->channels;
    if (!flat && !same) {
        hr_status status =
            HR_FAIL(err, DATA, "%s: needed images of %ux%ux%u for this model, had %ux%ux%u", info->label,
                    model->height, model->width, model->channels, info->height, info->width, info->channels);
        hr_err_try(err, "-s pipeline.source=generated, or a model whose input is %ux%ux%u", info->height,
                   info->width, info->channels);
        return status;
    }
    if (model->classes < info->classes) {
        hr_status status = HR_FAIL(err, DATA, "%s: needed a model with %u classes, had %u", info->label,
                                   info->classes, model->classes);
        hr_err_try(err, "-s pipeline.source=generated, or a model whose last layer has %u units",
                   info->classes);
        return status;
    }
    return HR_OK;
}

static hr_status open_checked_images(const hr_knobs *knobs, const data_shape *model, data_source **out,
                                     hr_err *err)
{
    data_source *s;
    HR_TRY(open_images(knobs, model, &s, err));
    hr_status status = check_model(s, model, err);
    if (status != HR_OK) {
        data_source_close(s);
        return status;
    }
    *out = s;
    return HR_OK;
}

static hr_status open_other(const hr_knobs *knobs, const data_form *model, data_source **out, hr_err *err)
{
    const char *path = hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH);
    bool any = hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "auto");
    if (hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "generated") || (any && path[0] == '\0')) {
        return source_synthetic_open(model, out, err);
    }
    char text[64];
    hr_status status = HR_FAIL(err, DATA, "pipeline.source=%s has images with one class each: needed %s",
                               hr_knob_text(knobs, HR_KNOB_PIPELINE_SOURCE),
                               data_slot_text(&model->slot[0], text, sizeof text));
    hr_err_try(err, "-s pipeline.source=generated");
    return status;
}

hr_status data_source_open(const hr_knobs *knobs, const data_form *model, data_source **out, hr_err *err)
{
    data_shape shape;
    *out = NULL;
    HR_TRY(data_form_is_image(model, &shape) ? open_checked_images(knobs, &shape, out, err)
                                             : open_other(knobs, model, out, err));
    (*out)->form = *model;
    return HR_OK;
}

void data_source_close(data_source *s)
{
    if (s != NULL) {
        s->ops->close(s);
    }
}

hr_status data_source_fetch(const data_source *s, data_set set, uint32_t index, uint8_t *room, data_raw *out,
                            hr_err *err)
{
    return s->ops->fetch(s, set, index, room, out, err);
}

uint64_t data_source_samples(const data_source *s, data_set set)
{
    return set == DATA_EVAL ? s->info.eval_samples : s->info.train_samples;
}

uint64_t data_source_size(const data_source *s, data_set set, uint32_t index)
{
    return s->ops->size != NULL ? s->ops->size(s, set, index) : s->raw_bytes;
}

uint64_t data_source_set_bytes(const data_source *s, data_set set)
{
    const uint64_t samples = data_source_samples(s, set);
    uint64_t sum = 0;
    if (s->ops->size == NULL) {
        return samples * s->raw_bytes;
    }
    for (uint64_t k = 0; k < samples; k++) {
        sum += s->ops->size(s, set, (uint32_t)k);
    }
    return sum;
}
