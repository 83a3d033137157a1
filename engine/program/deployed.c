// SPDX-License-Identifier: Apache-2.0
#include "program/deployed.h"

#include <string.h>

#include "headroom/words.h"

#include "base/quantize.h"
#include "program/draft.h"

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

hr_status hr_quantize_parse(const char *word, hr_quantize *out, hr_err *err)
{
    for (int k = 0; k < HR_QUANTIZE_COUNT; k++) {
        if (strcmp(word, mode_names[k]) == 0) {
            *out = (hr_quantize)k;
            return HR_OK;
        }
    }
    const char *near = hr_word_nearest(word, mode_names, HR_QUANTIZE_COUNT);
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

void deployed_parts_of(const hr_shape *shape, hr_quantize mode, deployed_parts *out)
{
    const int64_t rows = shape->dim[0], columns = shape->dim[1];
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)rows);
    *out = (deployed_parts){.q = *shape, .scale = shape_of(1, &columns), .q_type = HR_I8};
    if (mode == HR_QUANTIZE_INT4_WEIGHTS) {
        out->q.dim[1] = (int64_t)quantize_int4_pitch((uint64_t)columns);
        out->q_type = HR_U8;
        out->scale = out->zero = shape_of(2, (const int64_t[]){groups, columns});
    }
}

static uint64_t bytes_of(const hr_shape *shape, hr_dtype dtype)
{
    const op_operand o = {.shape = *shape, .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
    uint64_t bytes = 0, padding_bytes = 0;
    (void)operand_bytes(&o, &bytes, &padding_bytes);
    return bytes;
}

static uint64_t bytes_of_parts(const hr_shape *shape, hr_quantize mode)
{
    deployed_parts parts;
    deployed_parts_of(shape, mode, &parts);
    return bytes_of(&parts.q, parts.q_type) + bytes_of(&parts.scale, HR_F32) +
           (parts.zero.rank > 0 ? bytes_of(&parts.zero, HR_I8) : 0);
}

deployed_size deployed_size_of(const hr_model *model, const hr_knobs *knobs)
{
    const hr_quantize mode = mode_of(knobs);
    deployed_size size = {0, 0};
    hr_dtype variables, compute;
    precision_types(knobs, &variables, &compute);
    for (uint32_t k = 0; k < model->own_params; k++) {
        const hr_shape *shape = &model->params[k].shape;
        const uint64_t bytes = bytes_of(shape, variables);
        const bool taken = mode != HR_QUANTIZE_NONE && model_param_is_dense(model, k);
        size.stripped_bytes += bytes;
        size.bytes += taken ? bytes_of_parts(shape, mode) : bytes;
    }
    return size;
}
