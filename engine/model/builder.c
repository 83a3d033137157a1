// SPDX-License-Identifier: Apache-2.0
#include "model/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "knobs/preset_model.h"

void builder_deinit(model_builder *b)
{
    vec_deinit(&b->params);
    vec_deinit(&b->values);
    vec_deinit(&b->nodes);
    vec_deinit(&b->layers);
    vec_deinit(&b->losses);
    vec_deinit(&b->layer_losses);
    arena_deinit(&b->names);
}

// " (width 16 of FILE:LINE)", the width that a problem at hand may be for; "" without one.
static void say_width(const model_builder *b, char *words, size_t size)
{
    const model_width *w = b->widths.here.node != NULL ? &b->widths.here : &b->widths.last;
    words[0] = '\0';
    if (w->node != NULL) {
        (void)snprintf(words, size, " (width %s of %s:%u)", w->node->text, yaml_name(w->section->file),
                       w->node->key_line);
    }
}

static void report(model_builder *b, uint32_t line, uint32_t column, const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

static void report(model_builder *b, uint32_t line, uint32_t column, const char *format, va_list arguments)
{
    char sentence[HR_ERR_TEXT_MAX] = "", width[HR_ERR_TEXT_MAX];
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    say_width(b, width, sizeof width);
    if (b->layer == HR_NO_ID) {
        yaml_problem(b->file, line, column, "%s%s", sentence, width);
    } else {
        const model_layer *layer = &b->layers.data[b->layer];
        yaml_problem(b->file, line, column, "layer '%s' (%s): %s%s", layer->name, layer->kind, sentence,
                     width);
    }
    b->problems++;
    b->broken = true;
}

void builder_problem_at(model_builder *b, uint32_t line, uint32_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(b, line, column, format, arguments);
    va_end(arguments);
}

void builder_problem(model_builder *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(b, b->node ? b->node->line : 1, b->node ? b->node->column : 1, format, arguments);
    va_end(arguments);
}

void builder_nomem(model_builder *b)
{
    b->nomem = true;
    b->broken = true;
}

model_ref ref_value(uint32_t index)
{
    return (model_ref){.is_param = false, .index = index};
}

model_ref ref_param(uint32_t index)
{
    return (model_ref){.is_param = true, .index = index};
}

const char *sample_shape_text(const hr_shape *shape, char text[SHAPE_TEXT_MAX])
{
    hr_shape sample = shape_of(shape->rank - 1, shape->dim + 1);
    return shape_text(&sample, text, SHAPE_TEXT_MAX);
}

// Sizes that cannot be meant: libraries count dimensions in 32 bits, and no machine has this much memory.
static bool size_is_sane(model_builder *b, const char *suffix, const hr_shape *shape)
{
    uint64_t elements;
    bool sane = shape_elements(shape, &elements) && elements <= MODEL_MAX_ELEMENTS;
    for (uint32_t i = 0; sane && i < shape->rank; i++) {
        sane = shape->dim[i] <= INT32_MAX;
    }
    if (!sane) {
        char text[SHAPE_TEXT_MAX];
        builder_problem(b,
                        "'%s' of %s is beyond the largest tensor (2^40 elements, 2^31 - 1 in one dimension)",
                        suffix, shape_text(shape, text, sizeof text));
    }
    return sane;
}

static char *full_name(model_builder *b, const char *suffix)
{
    char *name = b->layer == HR_NO_ID
                     ? arena_print(&b->names, "%s", suffix)
                     : arena_print(&b->names, "%s/%s", b->layers.data[b->layer].name, suffix);
    if (!name) {
        builder_nomem(b);
    }
    return name;
}

// The totals cannot wrap: at most 2^40 elements in each parameter, and a file of 1 MiB has few of them.
static void count_param(model_builder *b, const model_param *param)
{
    uint64_t elements = 0;
    (void)shape_elements(&param->shape, &elements);
    b->layers.data[b->layer].parameters += elements;
    b->model.parameters += elements;
    b->model.trainable_parameters += param->trainable ? elements : 0;
}

static uint32_t shared_param(model_builder *b, const char *suffix, const model_param *param)
{
    const model_layer *owner = &b->layers.data[b->shared.layer];
    char had[SHAPE_TEXT_MAX], needed[SHAPE_TEXT_MAX];
    for (uint32_t k = b->shared.first; k < b->shared.end; k++) {
        const model_param *theirs = &b->params.data[k];
        if (strcmp(strrchr(theirs->name, '/') + 1, suffix) != 0) {
            continue;
        }
        if (shape_equal(&theirs->shape, &param->shape)) {
            return k;
        }
        builder_problem(b, "cannot share '%s': needed %s, had %s", theirs->name,
                        shape_text(&param->shape, needed, sizeof needed),
                        shape_text(&theirs->shape, had, sizeof had));
        return HR_NO_ID;
    }
    builder_problem(b, "cannot share '%s' of layer '%s' (%s), which has none%s", suffix, owner->name,
                    owner->kind, strcmp(suffix, "bias") == 0 ? ": write bias: false" : "");
    return HR_NO_ID;
}

uint32_t builder_param(model_builder *b, const char *suffix, const model_param *param)
{
    if (b->broken || !size_is_sane(b, suffix, &param->shape)) {
        return HR_NO_ID;
    }
    if (b->shared.layer != HR_NO_ID) {
        return shared_param(b, suffix, param);
    }
    const char *name = full_name(b, suffix);
    model_param *added = name ? vec_push(&b->params) : NULL;
    if (!added) {
        builder_nomem(b);
        return HR_NO_ID;
    }
    *added = *param;
    added->name = name;
    added->layer = b->layer;
    count_param(b, param);
    return b->params.count - 1;
}

uint32_t builder_value(model_builder *b, const node_out *out, const op_operand *operand)
{
    if (b->broken || !size_is_sane(b, out->suffix, &operand->shape)) {
        return HR_NO_ID;
    }
    const char *name = full_name(b, out->suffix);
    model_value *added = name ? vec_push(&b->values) : NULL;
    if (!added) {
        builder_nomem(b);
        return HR_NO_ID;
    }
    *added = (model_value){.name = name,
                           .shape = operand->shape,
                           .dtype = (hr_dtype)operand->dtype,
                           .batched = out->batched,
                           .layer = b->layer};
    return b->values.count - 1;
}

static op_operand operand_of(const model_builder *b, model_ref ref)
{
    if (ref.is_param) {
        return (op_operand){
            .shape = b->params.data[ref.index].shape, .dtype = HR_F32, .layout = HR_LAYOUT_PLAIN};
    }
    const model_value *value = &b->values.data[ref.index];
    return (op_operand){.shape = value->shape, .dtype = (uint32_t)value->dtype, .layout = HR_LAYOUT_PLAIN};
}

// Appends a node whose outputs have the shapes of `outputs`.
static uint32_t append_node(model_builder *b, const model_node *node, const node_out *out,
                            const op_operand *outputs)
{
    model_node complete = *node;
    complete.layer = b->layer;
    for (uint32_t i = 0; i < node->out_count; i++) {
        complete.out[i] = builder_value(b, &out[i], &outputs[i]);
    }
    if (b->broken) {
        return HR_NO_ID;
    }
    model_node *added = vec_push(&b->nodes);
    if (!added) {
        builder_nomem(b);
        return HR_NO_ID;
    }
    *added = complete;
    return complete.out[0];
}

uint32_t builder_node(model_builder *b, const model_node *node, const node_out *out)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    op_operand inputs[OP_MAX_IN] = {0};
    op_operand outputs[OP_MAX_OUT] = {0};
    for (uint32_t i = 0; i < node->in_count; i++) {
        inputs[i] = operand_of(b, node->in[i]);
    }
    hr_err err = {0};
    if (op_row_of(node->op)->shape(&node->attr, inputs, node->in_count, outputs, node->out_count, &err) !=
        HR_OK) {
        char text[SHAPE_TEXT_MAX];
        builder_problem(b, "on %s: %s", sample_shape_text(&inputs[0].shape, text), err.sentence);
        return HR_NO_ID;
    }
    return append_node(b, node, out, outputs);
}

uint32_t builder_reshape(model_builder *b, uint32_t input, const hr_shape *shape, const char *suffix)
{
    if (b->broken) {
        return HR_NO_ID;
    }
    const model_node node = {.op = HR_OP_RESHAPE, .in_count = 1, .out_count = 1, .in = {ref_value(input)}};
    op_operand output = operand_of(b, node.in[0]);
    output.shape = *shape;
    return append_node(b, &node, &(node_out){suffix, true}, &output);
}

void builder_layer_loss(model_builder *b, uint32_t value, uint32_t prediction, double weight)
{
    model_loss *added = b->broken ? NULL : vec_push(&b->layer_losses);
    if (added) {
        *added = (model_loss){.value = value,
                              .prediction = prediction,
                              .labels = HR_NO_ID,
                              .weight = weight,
                              .evaluated = weight};
    } else if (!b->broken) {
        builder_nomem(b);
    }
}
