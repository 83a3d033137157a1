// SPDX-License-Identifier: Apache-2.0
#include "train/shrink.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "headroom/knob_export.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "train/held.h"

#define SHRINK_MARK "# Written by headroom export: "

enum { SHRINK_PRESET_BYTES = 1 << 24 };

// ---- which filters go -----------------------------------------------------------------------------------------

static bool *filters_of(const shrinking *s, uint32_t kernel)
{
    return &s->gone[s->first[kernel]];
}

static int64_t count_of(const shrinking *s, uint32_t kernel)
{
    return (int64_t)(s->first[kernel + 1] - s->first[kernel]);
}

static bool lay_out(shrinking *s)
{
    const uint32_t count = s->model->param_count;
    s->first = hr_calloc(count + 1, sizeof *s->first);
    for (uint32_t k = 0; s->first != NULL && k < count; k++) {
        s->first[k + 1] = s->first[k] + (uint64_t)model_filters(s->model, &s->channels, k);
    }
    s->gone = s->first == NULL ? NULL : hr_calloc(s->first[count] + 1, sizeof *s->gone);
    for (uint64_t k = 0; s->gone != NULL && k < s->first[count]; k++) {
        s->gone[k] = true;
    }
    return s->gone != NULL;
}

// From one place of an axis to the next.
static uint64_t step_of(const hr_shape *shape, int32_t axis)
{
    uint64_t step = 1;
    for (uint32_t k = (uint32_t)axis + 1; k < shape->rank; k++) {
        step *= (uint64_t)shape->dim[k];
    }
    return step;
}

// A filter with a number in this part stays.
static void judge_part(shrinking *s, const channel_part *part, const stored_tensor *w)
{
    const int64_t filters = count_of(s, part->kernel);
    const uint64_t step = step_of(&w->shape, part->axis), side = (uint64_t)w->shape.dim[part->axis];
    bool *gone = filters_of(s, part->kernel);
    uint64_t elements = 0;
    (void)shape_elements(&w->shape, &elements);
    for (uint64_t k = 0; k < elements; k++) {
        const int64_t filter = channel_filter_at(part, filters, (int64_t)(k / step % side));
        if (filter >= 0 && gone[filter]) {
            gone[filter] = fpclassify(store_value(w, k)) == FP_ZERO;
        }
    }
}

// Running statistics say nothing of what a gain of 0 makes of a channel.
static bool is_judged(const shrinking *s, const channel_part *part)
{
    return part->role != CHANNEL_READS && count_of(s, part->kernel) > 0 &&
           s->model->params[part->param].category == HR_CATEGORY_WEIGHTS;
}

static void keep_one(shrinking *s, uint32_t kernel)
{
    const int64_t filters = count_of(s, kernel);
    bool *gone = filters_of(s, kernel), all = filters > 0;
    for (int64_t k = 0; k < filters; k++) {
        all = all && gone[k];
    }
    if (all) {
        gone[0] = false;
    }
    for (int64_t k = 0; k < filters; k++) {
        s->any = s->any || gone[k];
    }
}

hr_status shrink_open(const hr_model *model, const store *weights, shrinking *out, hr_err *err)
{
    *out = (shrinking){.model = model};
    HR_TRY(model_channels_of(model, &out->channels, err));
    if (!lay_out(out)) {
        return HR_FAIL(err, NOMEM, "no host memory for the filters of model %.64s", model->name);
    }
    for (uint32_t k = 0; k < out->channels.parts.count; k++) {
        const channel_part *part = &out->channels.parts.data[k];
        const stored_tensor *w = store_find(weights, model->params[part->param].name);
        if (w != NULL && is_judged(out, part)) {
            judge_part(out, part, w);
        }
    }
    for (uint32_t k = 0; k < model->param_count; k++) {
        keep_one(out, k);
    }
    return HR_OK;
}

void shrink_close(shrinking *s)
{
    model_channels_deinit(&s->channels);
    hr_free(s->first);
    hr_free(s->gone);
    *s = (shrinking){.model = NULL};
}

// ---- weights without them -------------------------------------------------------------------------------------

static bool place_goes(const shrinking *s, uint32_t param, int32_t axis, int64_t place)
{
    for (uint32_t k = 0; k < s->channels.parts.count; k++) {
        const channel_part *part = &s->channels.parts.data[k];
        const bool here = part->param == param && part->axis == axis;
        const int64_t filter = here ? channel_filter_at(part, count_of(s, part->kernel), place) : -1;
        if (filter >= 0 && filters_of(s, part->kernel)[filter]) {
            return true;
        }
    }
    return false;
}

// Of each axis which places stay, one axis behind the other.
static bool *find_places(const shrinking *s, uint32_t param, hr_shape *left)
{
    const hr_shape *shape = &s->model->params[param].shape;
    uint64_t sum = 0;
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        sum += (uint64_t)shape->dim[axis];
    }
    bool *stays = hr_calloc(sum + 1, sizeof *stays), *at = stays;
    *left = *shape;
    for (uint32_t axis = 0; stays != NULL && axis < shape->rank; axis++) {
        for (int64_t place = 0; place < shape->dim[axis]; place++) {
            at[place] = !place_goes(s, param, (int32_t)axis, place);
            left->dim[axis] -= !at[place];
        }
        at += shape->dim[axis];
    }
    return stays;
}

static bool element_stays(const hr_shape *shape, const bool *stays, uint64_t k)
{
    for (uint32_t axis = 0; axis < shape->rank; axis++) {
        if (!stays[k / step_of(shape, (int32_t)axis) % (uint64_t)shape->dim[axis]]) {
            return false;
        }
        stays += shape->dim[axis];
    }
    return true;
}

static bool shrink_one(const shrinking *s, uint32_t param, const stored_tensor *from, store *to)
{
    hr_shape left;
    uint64_t elements = 0, kept = 0;
    const uint64_t bytes = dtype_bytes(from->dtype);
    bool *stays = find_places(s, param, &left);
    stored_tensor *made =
        stays == NULL ? NULL : store_add(to, from->name, &left, from->dtype, from->category);
    (void)shape_elements(&from->shape, &elements);
    for (uint64_t k = 0; made != NULL && k < elements; k++) {
        if (element_stays(&from->shape, stays, k)) {
            memcpy((char *)made->data + kept++ * bytes, (const char *)from->data + k * bytes, bytes);
        }
    }
    hr_free(stays);
    return made != NULL;
}

hr_status shrink_weights(const shrinking *s, const store *weights, store *to, hr_err *err)
{
    for (uint32_t k = 0; k < s->model->own_params; k++) {
        const model_param *p = &s->model->params[k];
        const stored_tensor *from = store_find(weights, p->name);
        const bool whole = p->held != HELD_REAL; // what stands beside adapters keeps its filters
        if (from != NULL &&
            (whole ? store_add_as(to, p->name, from, from->dtype) == NULL : !shrink_one(s, k, from, to))) {
            return HR_FAIL(err, NOMEM, "no host memory for what stays of %s", p->name);
        }
        HR_TRY(held_copy_scales(weights, p, to, err));
    }
    return HR_OK;
}

// ---- the narrower model ---------------------------------------------------------------------------------------

static uint64_t count_gone(const shrinking *s, uint32_t kernel)
{
    uint64_t gone = 0;
    for (int64_t k = 0; k < count_of(s, kernel); k++) {
        gone += filters_of(s, kernel)[k];
    }
    return gone;
}

hr_status shrink_layers(const shrinking *s, hr_deploy_layer **out, size_t *count, hr_err *err)
{
    *count = 0;
    *out = hr_calloc(s->model->param_count + 1, sizeof **out);
    if (*out == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the layers of model %.64s", s->model->name);
    }
    for (uint32_t k = 0; k < s->model->param_count; k++) {
        const uint64_t gone = count_gone(s, k);
        if (gone > 0) {
            hr_deploy_layer *to = &(*out)[(*count)++];
            const model_layer *layer = &s->model->layers[s->model->params[k].layer];
            (void)text_copy(to->name, sizeof to->name, layer->name);
            to->filters = (uint64_t)count_of(s, k);
            to->deployed_filters = to->filters - gone;
        }
    }
    return HR_OK;
}

// What is over: pruning, and the training that was.
static hr_status end_training(hr_knobs *knobs, hr_err *err)
{
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_COMPRESS_PRUNE, "none", err));
    HR_TRY(hr_knobs_set(knobs, HR_KNOB_TRAIN_SAVE, "", err));
    return hr_knobs_set(knobs, HR_KNOB_TRAIN_RESUME, "", err);
}

hr_status shrink_preset(const shrunk_preset *p, text *out, hr_err *err)
{
    hr_knobs knobs = *p->knobs;
    char *words = NULL;
    HR_TRY(end_training(&knobs, err));
    HR_TRY(hr_knob_export("preset", p->preset, &knobs, p->path, &words, err));
    text_append(out, SHRINK_MARK "the model without the filters that were pruned\n%swidths:\n", words);
    hr_knob_export_free(words);
    for (size_t k = 0; k < p->layer_count; k++) {
        text_append(out, "  \"%s\": %llu\n", p->layers[k].name,
                    (unsigned long long)p->layers[k].deployed_filters);
    }
    return out->failed ? HR_FAIL(err, NOMEM, "no host memory for a preset") : HR_OK;
}

char *shrink_preset_path(const char *weights)
{
    static const char ending[] = ".safetensors";
    const size_t length = strlen(weights), least = sizeof ending - 1;
    const bool ends = length > least && strcmp(weights + length - least, ending) == 0;
    text path = {0};
    text_append(&path, "%.*s.yaml", (int)(ends ? length - least : length), weights);
    return text_take(&path);
}

void shrink_try_preset(const char *weights, const char *command, const char *option, hr_err *err)
{
    char *path = shrink_preset_path(weights);
    if (path != NULL && access(path, F_OK) == 0 && shrink_check_preset(path, NULL) == HR_OK) {
        hr_err_try(err, "headroom %s %s %s%s", command, path, option, weights);
    }
    hr_free(path);
}

hr_status shrink_check_preset(const char *path, hr_err *err)
{
    char *words = NULL;
    size_t bytes = 0;
    if (access(path, F_OK) != 0) {
        return HR_OK;
    }
    HR_TRY(file_read(path, SHRINK_PRESET_BYTES, &words, &bytes, err));
    const bool ours = strncmp(words, SHRINK_MARK, strlen(SHRINK_MARK)) == 0;
    hr_free(words);
    return ours ? HR_OK
                : HR_FAIL(err, WRITE,
                          "%s: needed a preset that export wrote or no file, had something else; nothing "
                          "there was changed",
                          path);
}
