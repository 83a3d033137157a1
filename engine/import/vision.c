// SPDX-License-Identifier: Apache-2.0
// Vision transformers: defaults of configuration_vit.py and configuration_deit.py, layers as their modeling_*.py build them
// (huggingface/transformers 5.24).
#include <inttypes.h>
#include <string.h>

#include "importer.h"

enum { SIDE_MAX = 16384, CHANNELS_MAX = 4096 }; // an image of them is the largest tensor

typedef struct vit {
    importer *m;
    int64_t hidden, inner, layers, heads, side, patch, channels, labels;
    double range, epsilon, dropout, attention_dropout;
    bool qkv_bias, distilled;
    const char *act;
} vit;

static void read_keys(vit *v)
{
    config *c = &v->m->c;
    v->hidden = config_count(c, "hidden_size", 768, 1, MODEL_TEXT_COUNT);
    v->inner = config_count(c, "intermediate_size", 3072, 1, MODEL_TEXT_COUNT);
    v->layers = config_count(c, "num_hidden_layers", 12, 1, MODEL_TEXT_ROUNDS);
    v->heads = config_count(c, "num_attention_heads", 12, 1, MODEL_TEXT_HEADS);
    v->side = config_count(c, "image_size", 224, 1, SIDE_MAX);
    v->patch = config_count(c, "patch_size", 16, 1, SIDE_MAX);
    v->channels = config_count(c, "num_channels", 3, 1, CHANNELS_MAX);
    v->labels = import_labels(v->m);
    v->range = config_real(c, "initializer_range", 0.02, 0, 1000);
    v->epsilon = config_real(c, "layer_norm_eps", 1e-12, 1e-12, 1);
    v->dropout = config_real(c, "hidden_dropout_prob", 0, 0, IMPORT_RATE_MAX);
    v->attention_dropout = config_real(c, "attention_probs_dropout_prob", 0, 0, IMPORT_RATE_MAX);
    v->qkv_bias = config_flag(c, "qkv_bias", true);
    v->act = import_activation(v->m, "hidden_act", "gelu");
    if (v->hidden % v->heads != 0) {
        config_refuse(c, "num_attention_heads", "needs to divide the hidden_size %" PRId64 ", had %" PRId64,
                      v->hidden, v->heads);
    }
    if (v->side < v->patch) {
        config_refuse(c, "patch_size", "needs at most the image_size %" PRId64 ", had %" PRId64, v->side,
                      v->patch);
    }
    if (v->labels < 2) {
        config_refuse(c, "num_labels", "needs at least 2 classes of images, had %" PRId64, v->labels);
    }
}

static void write_head_lines(const vit *v)
{
    model_text *t = &v->m->t;
    char range[CONFIG_REAL_TEXT], number[CONFIG_REAL_TEXT], more[64] = "";
    (void)config_real_text(v->range, range);
    if (v->attention_dropout > 0) {
        (void)snprintf(more, sizeof more, "dropout: %s, ", config_real_text(v->attention_dropout, number));
    }
    if (v->side % v->patch == 0) {
        model_line(t, "sizes: {resolution: %" PRId64 ", depth: %" PRId64 "}", v->side, v->layers);
        model_line(t, "input: {shape: [$resolution, $resolution, %" PRId64 "]}", v->channels);
    } else { // the library leaves the edge out
        model_line(t, "sizes: {depth: %" PRId64 "}", v->layers);
        model_line(t, "input: {shape: [%" PRId64 ", %" PRId64 ", %" PRId64 "]}", v->side, v->side,
                   v->channels);
    }
    model_line(t, "classes: %" PRId64, v->labels);
    model_line(t, "loss: softmax_cross_entropy");
    model_line(t, "defaults:");
    model_line(t, "  layer_norm: {epsilon: %s}", config_real_text(v->epsilon, number));
    model_line(t, "  dense: {init: truncated_normal, init_scale: %s}", range);
    model_line(t, "  attention:");
    model_line(t, "    {heads: %" PRId64 ", %s%sinit: truncated_normal, init_scale: %s}", v->heads, more,
               v->qkv_bias ? "" : "bias: false, output_bias: true, ", range);
}

static void write_norm(const vit *v, const char *name)
{
    model_layer(&v->m->t, "name: %s, kind: layer_norm", name);
    model_weights(&v->m->t, 1, v->hidden, true);
}

static void write_embeddings(const vit *v)
{
    model_text *t = &v->m->t;
    char range[CONFIG_REAL_TEXT];
    const int64_t across = v->side / v->patch;
    const int64_t tokens = v->distilled ? 2 : 1;
    (void)config_real_text(v->range, range);
    model_layer(t, "name: patches, kind: conv2d, filters: %" PRId64 ", kernel: %" PRId64 ", stride: %" PRId64,
                v->hidden, v->patch, v->patch);
    model_weights(t, v->patch * v->patch * v->channels, v->hidden, true);
    if (v->side % v->patch == 0) {
        model_layer(t,
                    "name: sequence, kind: reshape, shape: [$resolution/%" PRId64 "*$resolution/%" PRId64
                    ", %" PRId64 "]",
                    v->patch, v->patch, v->hidden);
    } else {
        model_layer(t, "name: sequence, kind: reshape, shape: [%" PRId64 ", %" PRId64 "]", across * across,
                    v->hidden);
    }
    if (v->distilled) {
        model_layer(t, "name: distillation_token, kind: class_token, init: truncated_normal, init_scale: %s",
                    range);
    }
    model_layer(t, "name: class_token, kind: class_token, init: truncated_normal, init_scale: %s", range);
    model_weights(t, tokens, v->hidden, false);
    model_layer(t, "name: position, kind: position_embedding, init: truncated_normal, init_scale: %s", range);
    model_weights(t, across * across + tokens, v->hidden, false);
    model_fits(t, across * across + tokens, v->inner);
    import_dropout(v->m, "embeddings_dropout", v->dropout);
}

static void write_block(const vit *v)
{
    model_text *t = &v->m->t;
    write_norm(v, "\"block{i}_ln_1\"");
    model_layer(t, "name: \"block{i}_attention\", kind: attention");
    for (int k = 0; k < 3; k++) {
        model_weights(t, v->hidden, v->hidden, v->qkv_bias);
    }
    model_weights(t, v->hidden, v->hidden, true);
    import_dropout(v->m, "\"block{i}_attention_dropout\"", v->dropout);
    model_layer(t, "name: \"block{i}_mid\", kind: add, inputs: [previous, before]");
    write_norm(v, "\"block{i}_ln_2\"");
    model_layer(t, "name: \"block{i}_mlp_1\", kind: dense, units: %" PRId64 ", activation: %s", v->inner,
                v->act);
    model_weights(t, v->hidden, v->inner, true);
    model_layer(t, "name: \"block{i}_mlp_2\", kind: dense, units: %" PRId64, v->hidden);
    model_weights(t, v->inner, v->hidden, true);
    import_dropout(v->m, "\"block{i}_mlp_dropout\"", v->dropout);
    model_layer(t, "name: \"block{i}_out\", kind: add, inputs: [\"block{i}_mid\", previous]");
}

void import_vit(importer *m)
{
    vit v = {.m = m, .distilled = strncmp(m->architecture, "DeiT", 4) == 0};
    read_keys(&v);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    write_head_lines(&v);
    write_embeddings(&v);
    model_repeat(&m->t, v.layers);
    write_block(&v);
    model_repeat_end(&m->t);
    write_norm(&v, "norm");
    model_layer(&m->t, "name: first_token, kind: slice, axis: 1, from: 0, count: 1");
    model_layer(&m->t, "name: first_token_features, kind: reshape, shape: [%" PRId64 "]", v.hidden);
    model_layer(&m->t, "name: head, kind: dense, units: %" PRId64, v.labels);
    model_weights(&m->t, v.hidden, v.labels, true);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adamw, learning_rate: 1e-3, weight_decay: 0.1}\n";
}
