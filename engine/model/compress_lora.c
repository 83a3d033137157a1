// SPDX-License-Identifier: Apache-2.0
// compress.lora: y = x·W + b + (alpha / R)·(x·A)·B beside every target; A and B alone are trained.
//
// E. J. Hu et al.: "LoRA: low-rank adaptation of large language models", ICLR 2022. As in PEFT: A begins uniform within
// 1 / sqrt(features) (Kaiming's with a = sqrt(5)), B with zeros, so that the first step's function is the model's own. Of a
// convolution A is one of the same kernel, stride and padding to R channels, B one of 1x1. The factor stands on the
// R features in the middle, where it costs least; PEFT has it behind B.
#include "model/compress_lora.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

static bool is_attention(const compressor *c, const model_node *node)
{
    const char *kind = c->b->layers.data[node->layer].kind;
    return node->op == HR_OP_DENSE &&
           (strcmp(kind, "attention") == 0 || strcmp(kind, "window_attention") == 0);
}

static bool is_dense(const compressor *c, const model_node *node)
{
    return node->op == HR_OP_DENSE && strcmp(c->b->layers.data[node->layer].kind, "dense") == 0;
}

static bool is_listed(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        const size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, name, length) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

static bool is_named(const compressor *c, const model_node *node, const char *names)
{
    const char *name = strrchr(c->b->params.data[node->in[1].index].name, '/') + 1;
    return is_attention(c, node) && is_listed(names, name);
}

static bool is_target(const compressor *c, const model_node *node)
{
    if (!compress_is_product(node)) {
        return false;
    }
    switch (c->lora.targets) {
    case LORA_QV:
        return is_named(c, node, "query_weights,value_weights");
    case LORA_QKV:
        return is_named(c, node, "query_weights,key_weights,value_weights");
    case LORA_ATTENTION:
        return is_attention(c, node);
    case LORA_DENSE:
        return is_dense(c, node);
    case LORA_CONV:
        return node->op == HR_OP_CONV2D;
    case LORA_LIST:
        return is_listed(c->lora.list, c->b->layers.data[node->layer].name);
    case LORA_AUTO:
    case LORA_ALL:
        break;
    }
    return true;
}

static bool has_target(const compressor *c)
{
    bool has = false;
    for (uint32_t n = 0; n < c->b->nodes.count && !has; n++) {
        has = is_target(c, &c->b->nodes.data[n]);
    }
    return has;
}

static void decide(compressor *c)
{
    static const lora_targets order[] = {LORA_QV, LORA_DENSE, LORA_CONV, LORA_ALL};
    bool has = c->lora.targets != LORA_AUTO;
    for (size_t k = 0; k < sizeof order / sizeof *order && !has; k++) {
        c->lora.targets = order[k];
        has = has_target(c);
    }
}

// Each name of a list must be a layer with a target.
static hr_status check_list(compressor *c, hr_err *err)
{
    const char *list = c->lora.list;
    char name[MODEL_NAME_MAX + 1];
    bool found = true;
    for (const char *at = list; *at != '\0' && found; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        c->lora.list = name;
        found = has_target(c);
        at += length;
    }
    c->lora.list = list;
    if (found) {
        return HR_OK;
    }
    const hr_status status =
        HR_FAIL(err, KNOB, "compress.lora_targets: model %.64s has no layer '%s' that multiplies by weights",
                c->model, name);
    hr_err_try(err, "-s compress.lora_targets=auto");
    return status;
}

hr_status compress_lora_begin(compressor *c, hr_err *err)
{
    decide(c);
    if (c->lora.targets == LORA_LIST) {
        HR_TRY(check_list(c, err));
    }
    if (!has_target(c)) {
        const hr_status status = HR_FAIL(err, KNOB, "compress.lora_targets=%s: model %.64s has no such layer",
                                         hr_knob_text(c->knobs, HR_KNOB_COMPRESS_LORA_TARGETS), c->model);
        hr_err_try(err, "-s compress.lora_targets=auto");
        return status;
    }
    for (uint32_t k = 0; k < c->b->params.count; k++) {
        c->b->params.data[k].trainable = false;
    }
    return HR_OK;
}

static const char first_half[] = "lora_a", second_half[] = "lora_b";

bool model_is_adapter_name(const char *name)
{
    const size_t length = strlen(name), least = sizeof first_half - 1;
    return length > least && strcmp(name + length - least, first_half) == 0;
}

// ---- adapters ------------------------------------------------------------------------------------------------------

// A [features, R] or [kh, kw, channels, R], B [R, units] or [1, 1, R, filters].
static void make_adapter(compressor *c, uint32_t like)
{
    const hr_shape w = c->b->params.data[like].shape;
    const int64_t rank = c->lora.rank, units = w.dim[w.rank - 1];
    uint64_t fan_in = 1;
    for (uint32_t k = 0; k + 1 < w.rank; k++) {
        fan_in *= (uint64_t)w.dim[k];
    }
    model_param down = {.shape = w,
                        .category = HR_CATEGORY_WEIGHTS,
                        .trainable = true,
                        .adapter = true,
                        .init = MODEL_INIT_UNIFORM,
                        .init_scale = 1 / sqrt((double)fan_in),
                        .fan_in = fan_in,
                        .fan_out = (uint64_t)rank};
    down.shape.dim[w.rank - 1] = rank;
    model_param up = {.shape = shape_of(2, (const int64_t[]){rank, units}),
                      .category = HR_CATEGORY_WEIGHTS,
                      .trainable = true,
                      .adapter = true,
                      .init = MODEL_INIT_ZEROS,
                      .fan_in = (uint64_t)rank,
                      .fan_out = (uint64_t)units};
    if (w.rank == 4) {
        up.shape = shape_of(4, (const int64_t[]){1, 1, rank, units});
    }
    c->made[like][0] = compress_param(c, like, first_half, &down);
    c->made[like][1] = compress_param(c, like, second_half, &up);
}

static model_node product_of(const model_node *node, const op_attr *attr, uint32_t x, uint32_t weights)
{
    return (model_node){
        .op = node->op, .attr = *attr, .in_count = 2, .in = {ref_value(x), ref_param(weights)}};
}

// What the adapter adds to the result.
static uint32_t adapt(compressor *c, const model_node *node)
{
    const uint32_t weights = node->in[1].index, y = node->out[0];
    static const op_attr one = {.kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1, .groups = 1};
    const op_attr none = {.kernel_h = 0};
    const bool conv = node->op == HR_OP_CONV2D;
    if (c->made[weights][0] == HR_NO_ID) {
        c->b->params.data[weights].held = (held_as)c->lora.base;
        make_adapter(c, weights);
    }
    const model_node first =
        product_of(node, conv ? &node->attr : &none, node->in[0].index, c->made[weights][0]);
    uint32_t middle = compress_node(c, &first, y, "lora_down");
    if (c->lora.scale != 1) {
        const model_node scale = {
            .op = HR_OP_SCALE, .attr = {.scale = c->lora.scale}, .in_count = 1, .in = {ref_value(middle)}};
        middle = compress_node(c, &scale, y, "lora_scaled");
    }
    const model_node second = product_of(node, conv ? &one : &none, middle, c->made[weights][1]);
    return compress_node(c, &second, y, "lora_up");
}

void compress_lora_node(compressor *c, const model_node *node)
{
    if (!is_target(c, node)) {
        compress_keep(c, node);
        return;
    }
    const uint32_t base = compress_node(c, node, node->out[0], "base");
    const uint32_t added = adapt(c, node);
    model_node sum = {.op = HR_OP_ADD,
                      .layer = node->layer,
                      .in_count = 2,
                      .out_count = 1,
                      .in = {ref_value(base), ref_value(added)},
                      .out = {node->out[0]}};
    if (!c->b->broken) {
        compress_keep(c, &sum);
    }
}
