// SPDX-License-Identifier: Apache-2.0
#include "program/deployed.h"

#include <string.h>

#include "headroom/words.h"

#include "base/quantize.h"
#include "knobs/prune.h"
#include "model/channels.h"
#include "ops/prune.h"
#include "program/compile.h"

// ---- modes ----------------------------------------------------------------------------------------------------

static const char *const mode_names[] = {
#define X(id, text) text,
    HR_QUANTIZE_MAP(X)
#undef X
};

const char *hr_quantize_name(hr_quantize mode)
{
    return mode_names[mode];
}

// What begins with the word is what was meant, before what is spelled alike: int4 is no int8.
static const char *nearest_mode(const char *word)
{
    for (int k = 0; k < HR_QUANTIZE_COUNT; k++) {
        if (word[0] != '\0' && strncmp(mode_names[k], word, strlen(word)) == 0) {
            return mode_names[k];
        }
    }
    return hr_word_nearest(word, mode_names, HR_QUANTIZE_COUNT);
}

hr_status hr_quantize_parse(const char *word, hr_quantize *out, hr_err *err)
{
    for (int k = 0; k < HR_QUANTIZE_COUNT; k++) {
        if (strcmp(word, mode_names[k]) == 0) {
            *out = (hr_quantize)k;
            return HR_OK;
        }
    }
    const char *near = nearest_mode(word);
    (void)HR_FAIL(err, USAGE, "--quantize needs int8, int8_weights, int4_weights or none, had '%.64s'%s%s%s",
                  word, near == NULL ? "" : " — did you mean '", near == NULL ? "" : near,
                  near == NULL ? "" : "'?");
    hr_err_try(err, "--quantize %s", near == NULL ? mode_names[HR_QUANTIZE_INT8] : near);
    return HR_USAGE;
}

// NONE of a value that export has not.
static hr_quantize mode_of(const hr_knobs *knobs)
{
    int mode = HR_QUANTIZE_COUNT - 1;
    while (mode > HR_QUANTIZE_NONE && !hr_knob_is(knobs, HR_KNOB_COMPRESS_QUANTIZE, mode_names[mode])) {
        mode--;
    }
    return (hr_quantize)mode;
}

// ---- bytes ----------------------------------------------------------------------------------------------------

static int64_t groups_of(int64_t count)
{
    return (int64_t)quantize_int4_groups((uint64_t)count);
}

void deployed_parts_of(const hr_shape *shape, hr_quantize mode, bool by_row, deployed_parts *out)
{
    const int64_t rows = shape->dim[0], columns = shape->dim[1];
    *out = (deployed_parts){.q = *shape, .scale = shape_of(1, by_row ? &rows : &columns), .q_type = HR_I8};
    if (mode == HR_QUANTIZE_INT4_WEIGHTS) {
        const hr_shape scales = by_row ? shape_of(2, (const int64_t[]){rows, groups_of(columns)})
                                       : shape_of(2, (const int64_t[]){groups_of(rows), columns});
        out->q.dim[1] = (int64_t)quantize_int4_pitch((uint64_t)columns);
        out->q_type = HR_U8;
        out->scale = out->zero = scales;
    }
}

static uint64_t bytes_of(const hr_shape *shape, hr_dtype dtype)
{
    const op_operand o = {.shape = *shape, .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
    uint64_t bytes = 0, padding_bytes = 0;
    (void)operand_bytes(&o, &bytes, &padding_bytes);
    return bytes;
}

static uint64_t bytes_of_parts(const hr_shape *shape, hr_quantize mode, model_quantized as)
{
    deployed_parts parts;
    deployed_parts_of(shape, mode, as == MODEL_BY_ROW, &parts);
    return bytes_of(&parts.q, parts.q_type) + bytes_of(&parts.scale, HR_F32) +
           (parts.zero.rank > 0 ? bytes_of(&parts.zero, HR_I8) : 0);
}

// As it is trained, or held beside adapters.
static uint64_t held_bytes(const model_param *p, hr_dtype variables)
{
    uint64_t sum = 0;
    held_parts parts;
    if (p->held == HELD_REAL) {
        return bytes_of(&p->shape, variables);
    }
    held_parts_of(&p->shape, p->held, &parts);
    for (uint32_t k = 0; k < parts.count; k++) {
        sum += bytes_of(&parts.part[k].shape, (hr_dtype)parts.part[k].dtype);
    }
    return sum;
}

// Filters of a kernel that are gone at the end of the schedule.
static int64_t filters_gone(const hr_model *model, const model_channels *c, const prune_choice *choice,
                            uint32_t kernel)
{
    const op_attr last = {.offset = 1,
                          .count = 1,
                          .stride_h = 1,
                          .epsilon = choice->to,
                          .momentum = choice->to,
                          .base = 1.0,
                          .rule = PRUNE_FILTERS};
    const int64_t filters = model_filters(model, c, kernel);
    const bool goes = filters > 0 && model->params[kernel].trainable;
    return goes ? filters - (int64_t)prune_kept(&last, (uint64_t)filters, 1) : 0;
}

static hr_shape shape_left(const hr_model *model, const model_channels *c, const prune_choice *choice,
                           uint32_t param)
{
    hr_shape left = model->params[param].shape;
    for (uint32_t k = 0; k < c->parts.count; k++) {
        const channel_part *part = &c->parts.data[k];
        if (part->param == param) {
            const int64_t rounds = model->params[param].shape.dim[part->axis] / part->pitch;
            left.dim[part->axis] -= rounds * part->each * filters_gone(model, c, choice, part->kernel);
        }
    }
    return left;
}

hr_status deployed_size_of(const hr_model *model, const hr_knobs *knobs, deployed_size *out, hr_err *err)
{
    const hr_quantize mode = mode_of(knobs);
    model_channels channels = {.may_go = NULL};
    prune_choice choice;
    hr_dtype variables, compute;
    precision_types(knobs, &variables, &compute);
    (void)prune_choice_of(knobs, &choice);
    const bool shrinks = choice.prunes && choice.structure == PRUNE_BY_FILTER;
    const hr_status status = shrinks ? model_channels_of(model, &channels, err) : HR_OK;
    *out = (deployed_size){0, 0};
    for (uint32_t k = 0; k < model->own_params && status == HR_OK; k++) {
        const hr_shape *shape = &model->params[k].shape;
        const hr_shape left = shrinks ? shape_left(model, &channels, &choice, k) : *shape;
        const uint64_t bytes = held_bytes(&model->params[k], variables);
        const model_quantized as =
            mode == HR_QUANTIZE_NONE ? MODEL_AS_IT_IS : model_param_quantized(model, k);
        out->stripped_bytes += bytes;
        out->bytes += as != MODEL_AS_IT_IS ? bytes_of_parts(&left, mode, as)
                      : shrinks            ? bytes_of(&left, variables)
                                           : bytes;
    }
    model_channels_deinit(&channels);
    return status;
}
