// SPDX-License-Identifier: Apache-2.0
// Which source the knobs mean, and whether the model can be trained on it.
#include "data/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static hr_status check_size(const data_form *model, hr_err *err)
{
    char text[64];
    if (data_form_is_small(model)) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA, "data of a model: needed samples of at most %d bytes, had %s and what goes with them",
        INT32_MAX, data_slot_text(&model->slot[0], text, sizeof text));
    hr_err_try(err, "a preset whose input is smaller: headroom run demo");
    return status;
}

// ---- the kinds --------------------------------------------------------------------------------------------------

static hr_status open_generated(const char *path, const data_form *model, data_source **out, hr_err *err)
{
    (void)path;
    data_shape shape;
    return data_form_is_image(model, &shape) ? source_generated_open(&shape, out, err)
                                             : source_synthetic_open(model, out, err);
}

// One row a choice of pipeline.source, in the order in which `auto` asks them.
static const struct source_kind {
    const char *name;
    source_open *open;
    hr_status (*open_with)(const hr_knobs *knobs, const char *path, const data_form *model, data_source **out,
                           hr_err *err);                     // instead of open: what the knobs say matters
    bool (*is_at)(const char *path, const data_form *model); // whether auto takes it; NULL: not of itself
    bool images_only;                                        // with one class each
    const char *example;                                     // of pipeline.path; NULL: it needs none
} kinds[] = {
    {.name = "generated", .open = open_generated},
    {.name = "mnist",
     .open = source_mnist_open,
     .is_at = source_mnist_is_at,
     .images_only = true,
     .example = "FOLDER"},
    {.name = "tokens", .open = source_tokens_open, .is_at = source_tokens_is_at, .example = "train.bin"},
    {.name = "text", .open = source_text_open, .is_at = source_text_is_at, .example = "input.txt"},
    {.name = "csv", .open = source_csv_open, .is_at = source_csv_is_at, .example = "table.csv"},
    {.name = "tfrecord",
     .open_with = source_tfrecord_open,
     .is_at = source_tfrecord_is_at,
     .example = "train.tfrecord"},
    {.name = "npy", .open = source_npy_open, .is_at = source_npy_is_at, .example = "data.npz"},
    {.name = "images",
     .open_with = source_images_open,
     .is_at = source_images_is_at,
     .images_only = true,
     .example = "FOLDER"},
    {.name = "cifar10", .open = source_cifar_open, .images_only = true, .example = "cifar-10-binary.tar.gz"},
};

enum { KINDS = sizeof kinds / sizeof *kinds, KIND_GENERATED = 0, KIND_OF_UNKNOWN_FILES = KINDS - 1 };

static const struct source_kind *kind_meant(const hr_knobs *knobs, const char *path, const data_form *model)
{
    const bool any = hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "auto");
    if (any && path[0] == '\0') {
        return &kinds[KIND_GENERATED];
    }
    for (size_t k = 0; k < KINDS; k++) {
        if (any ? kinds[k].is_at != NULL && kinds[k].is_at(path, model)
                : hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, kinds[k].name)) {
            return &kinds[k];
        }
    }
    return &kinds[KIND_OF_UNKNOWN_FILES]; // says what it misses
}

// `auto` found nothing that it knows, for a model of which it knows no better guess.
static hr_status refuse_unknown(const char *path, const data_form *model, hr_err *err)
{
    char text[64];
    if (access(path, R_OK) != 0) {
        return HR_FAIL(err, DATA, "%s: needed a file or folder that can be read, had: %s", path,
                       strerror(errno));
    }
    const hr_status status =
        HR_FAIL(err, DATA, "%s: needed data for %s that pipeline.source=auto knows, had none", path,
                data_slot_text(&model->slot[0], text, sizeof text));
    hr_err_try(err, "headroom knobs pipeline.source, and one of these by its name");
    return status;
}

// Whether the kind is one for this model and has a path.
static hr_status check_kind(const struct source_kind *kind, const hr_knobs *knobs, const data_form *model,
                            hr_err *err)
{
    const char *source = hr_knob_text(knobs, HR_KNOB_PIPELINE_SOURCE);
    data_shape shape;
    char text[64];
    if (kind->images_only && !data_form_is_image(model, &shape)) {
        if (hr_knob_is(knobs, HR_KNOB_PIPELINE_SOURCE, "auto")) {
            return refuse_unknown(hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH), model, err);
        }
        hr_status status = HR_FAIL(err, DATA, "pipeline.source=%s has images with one class each: needed %s",
                                   source, data_slot_text(&model->slot[0], text, sizeof text));
        hr_err_try(err, "-s pipeline.source=generated");
        return status;
    }
    if (kind->example != NULL && !hr_knob_is_set(knobs, HR_KNOB_PIPELINE_PATH)) {
        hr_status status = HR_FAIL(err, DATA, "pipeline.source=%s: needed pipeline.path, had none", source);
        hr_err_try(err, "-s pipeline.path=%s, or -s pipeline.source=generated", kind->example);
        return status;
    }
    return HR_OK;
}

// ---- arrays -----------------------------------------------------------------------------------------------------

uint32_t data_source_array_bytes(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_ARRAY, "uint8")     ? 1
           : hr_knob_is(knobs, HR_KNOB_PIPELINE_ARRAY, "float32") ? 4
           : hr_knob_is(knobs, HR_KNOB_PIPELINE_ARRAY, "float64") ? 8
                                                                  : 0;
}

bool data_source_is_stacked(const hr_knobs *knobs)
{
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_MODE, "eager_stack");
}

// *s becomes the array of what it was; after an error it is as it was.
static hr_status open_array(const hr_knobs *knobs, data_source **s, hr_err *err)
{
    const uint32_t value_bytes = data_source_array_bytes(knobs);
    data_source *array;
    if (value_bytes == 0) {
        return HR_OK;
    }
    HR_TRY(source_array_open(*s, value_bytes, data_source_is_stacked(knobs), &array, err));
    *s = array;
    return HR_OK;
}

// ---- classes ----------------------------------------------------------------------------------------------------

// *s becomes those of its samples that have the classes of pipeline.filter; after an error it is as it was.
static hr_status filter_classes(const hr_knobs *knobs, data_source **s, hr_err *err)
{
    class_filter wanted;
    data_source *filter;
    if (!hr_knob_is_set(knobs, HR_KNOB_PIPELINE_FILTER)) {
        return HR_OK;
    }
    if (!class_filter_of(hr_knob_text(knobs, HR_KNOB_PIPELINE_FILTER), &wanted)) {
        return HR_FAIL(err, DATA, "pipeline.filter: needed label:CLASS,CLASS, had %s",
                       hr_knob_text(knobs, HR_KNOB_PIPELINE_FILTER));
    }
    HR_TRY(source_filter_open(*s, &wanted, &filter, err));
    *s = filter;
    return HR_OK;
}

// ---- how many ----------------------------------------------------------------------------------------------------

static void take_samples(const hr_knobs *knobs, data_source *s)
{
    const uint64_t wanted = (uint64_t)hr_knob_int(knobs, HR_KNOB_PIPELINE_SAMPLES);
    uint64_t *samples = &s->info.train_samples;
    if (hr_knob_is_set(knobs, HR_KNOB_PIPELINE_SAMPLES) && (s->is_endless || wanted < *samples)) {
        *samples = wanted;
    }
}

bool data_source_depends_on(hr_knob_id id)
{
    static const hr_knob_id ids[] = {
        HR_KNOB_PIPELINE_SOURCE, HR_KNOB_PIPELINE_PATH,   HR_KNOB_PIPELINE_SAMPLES, HR_KNOB_PIPELINE_ARRAY,
        HR_KNOB_PIPELINE_MODE,   HR_KNOB_PIPELINE_RESIZE, HR_KNOB_PIPELINE_BAD,     HR_KNOB_PIPELINE_FILTER};
    bool depends = false;
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
        depends = depends || ids[k] == id;
    }
    return depends;
}

static hr_status check_opened(const data_source *s, const data_form *model, hr_err *err)
{
    data_shape shape;
    if (data_form_is_image(model, &shape) && s->ops->decode != NULL) {
        HR_TRY(check_model(s, &shape, err));
    }
    return s->ops->check != NULL && !s->skips_bad ? s->ops->check(s, err) : HR_OK;
}

hr_status data_source_open(const hr_knobs *knobs, const data_form *model, data_source **out, hr_err *err)
{
    const char *path = hr_knob_text(knobs, HR_KNOB_PIPELINE_PATH);
    const struct source_kind *kind = kind_meant(knobs, path, model);
    data_source *s;
    *out = NULL;
    HR_TRY(check_size(model, err));
    HR_TRY(check_kind(kind, knobs, model, err));
    HR_TRY(kind->open_with != NULL ? kind->open_with(knobs, path, model, &s, err)
                                   : kind->open(path, model, &s, err));
    s->form = *model;
    s->skips_bad = hr_knob_is(knobs, HR_KNOB_PIPELINE_BAD, "skip");
    // Of drawn samples those that have the classes stay; of all others that have them the first so many.
    if (s->is_endless || !hr_knob_is_set(knobs, HR_KNOB_PIPELINE_FILTER)) {
        take_samples(knobs, s);
    }
    hr_status status = check_opened(s, model, err);
    if (status == HR_OK) {
        status = filter_classes(knobs, &s, err);
        take_samples(knobs, s);
    }
    if (status == HR_OK) {
        status = open_array(knobs, &s, err);
    }
    if (status != HR_OK) {
        data_source_close(s);
        return status;
    }
    *out = s;
    return HR_OK;
}
