// SPDX-License-Identifier: Apache-2.0
// ResNet: defaults of configuration_resnet.py, layers as modeling_resnet.py builds them (huggingface/transformers 5.24). How
// large an image is stands in another file of the folder: the size `resolution` says it, 224 as these were published.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "importer.h"

enum {
    STAGES_MAX = 16,
    NAME_BYTES = 64,
    BLOCK_BYTES = 48,
    CHANNELS_MAX = 65535,
    BLOCKS_MAX = 512,
    REDUCTION = 4,
    IMAGE = 224
};

typedef struct resnet {
    importer *m;
    int64_t channels, stem, labels, widths[STAGES_MAX], depths[STAGES_MAX];
    size_t stages;
    bool bottleneck, early, first_stage; // early: the stride in the first convolution of a bottleneck
    const char *act;
    char input[NAME_BYTES]; // the layer above the block in hand
} resnet;

static void read_keys(resnet *r)
{
    config *c = &r->m->c;
    static const int64_t widths[] = {256, 512, 1024, 2048}, depths[] = {3, 4, 6, 3};
    memcpy(r->widths, widths, sizeof widths);
    memcpy(r->depths, depths, sizeof depths);
    r->stages = config_counts(c, "hidden_sizes", r->widths, 4, STAGES_MAX, CHANNELS_MAX);
    const size_t stages = config_counts(c, "depths", r->depths, 4, STAGES_MAX, BLOCKS_MAX);
    r->channels = config_count(c, "num_channels", 3, 1, CHANNELS_MAX);
    r->stem = config_count(c, "embedding_size", 64, 1, CHANNELS_MAX);
    r->labels = import_labels(r->m);
    r->early = config_flag(c, "downsample_in_bottleneck", false);
    r->first_stage = config_flag(c, "downsample_in_first_stage", false);
    r->act = import_activation(r->m, "hidden_act", "relu");
    const char *type = config_word(c, "layer_type", "bottleneck");
    r->bottleneck = strcmp(type, "bottleneck") == 0;
    if (!r->bottleneck && strcmp(type, "basic") != 0) {
        config_refuse_value(c, "layer_type", "needs to be basic or bottleneck");
    }
    if (stages != r->stages) {
        config_refuse(c, "depths", "needs as many numbers as hidden_sizes, %zu, had %zu", r->stages, stages);
    }
    // The last of a 224-pixel image has a pixel left.
    if (r->stages + (r->first_stage ? 1 : 0) > 7) {
        config_refuse(c, "hidden_sizes", "needs at most %d stages for images of %d pixels, had %zu",
                      r->first_stage ? 6 : 7, IMAGE, r->stages);
    }
    for (size_t k = 0; r->bottleneck && k < r->stages; k++) {
        if (r->widths[k] < REDUCTION) {
            config_refuse(c, "hidden_sizes", "needs at least %d channels in a bottleneck, had %" PRId64,
                          REDUCTION, r->widths[k]);
        }
    }
    if (r->labels < 2) {
        config_refuse(c, "num_labels", "needs at least 2 classes of images, had %" PRId64, r->labels);
    }
}

typedef struct convolution {
    int64_t from, to, kernel, stride;
    const char *act; // behind its normalisation; NULL: none
} convolution;

// `names` is "layer1_0_%s1": of conv and bn.
static void write_convolution(const resnet *r, const char *names, const convolution *v, const char *input)
{
    model_text *t = &r->m->t;
    char conv[NAME_BYTES], norm[NAME_BYTES], act[48] = "", more[80] = "";
    (void)snprintf(conv, sizeof conv, "%.*sconv%s", (int)strcspn(names, "*"), names, strchr(names, '*') + 1);
    (void)snprintf(norm, sizeof norm, "%.*sbn%s", (int)strcspn(names, "*"), names, strchr(names, '*') + 1);
    if (v->act != NULL) {
        (void)snprintf(act, sizeof act, ", activation: %s", v->act);
    }
    if (input != NULL) {
        (void)snprintf(more, sizeof more, ", input: \"%s\"", input);
    }
    model_layer(t,
                "name: \"%s\", kind: conv2d%s, filters: %" PRId64 ", kernel: %" PRId64 ", stride: %" PRId64
                ", padding: %" PRId64,
                conv, more, v->to, v->kernel, v->stride, v->kernel / 2);
    model_weights(t, v->kernel * v->kernel * v->from, v->to, false);
    model_layer(t, "name: \"%s\", kind: batch_norm%s", norm, act);
    model_weights(t, 2, v->to, false);
}

// Two convolutions, or three; the last has no activation: it stands behind the sum. Those before it have ReLU, whatever hidden_act
// says, as ResNetConvLayer's default has it.
static void write_path(const resnet *r, const char *block, int64_t from, int64_t to, int64_t stride)
{
    char name[NAME_BYTES];
    const int64_t inner = r->bottleneck ? to / REDUCTION : to;
    const convolution basic[] = {{from, to, 3, stride, "relu"}, {to, to, 3, 1, NULL}};
    const convolution narrow[] = {{from, inner, 1, r->early ? stride : 1, "relu"},
                                  {inner, inner, 3, r->early ? 1 : stride, "relu"},
                                  {inner, to, 1, 1, NULL}};
    for (int k = 0; k < (r->bottleneck ? 3 : 2); k++) {
        (void)snprintf(name, sizeof name, "%s*%d", block, k + 1);
        write_convolution(r, name, r->bottleneck ? &narrow[k] : &basic[k], NULL);
    }
}

static void write_stage(resnet *r, size_t stage, int64_t from, int64_t stride)
{
    model_text *t = &r->m->t;
    char block[BLOCK_BYTES], name[NAME_BYTES], other[NAME_BYTES];
    const int64_t to = r->widths[stage];
    const int last = r->bottleneck ? 3 : 2;
    (void)snprintf(block, sizeof block, "layer%zu_0_", stage + 1);
    write_path(r, block, from, to, stride);
    (void)text_copy(other, sizeof other, r->input);
    if (from != to || stride != 1) {
        (void)snprintf(name, sizeof name, "%sdown_*", block);
        write_convolution(r, name, &(convolution){from, to, 1, stride, NULL}, r->input);
        (void)snprintf(other, sizeof other, "%sdown_bn", block);
    }
    model_layer(t, "name: %sadd, kind: add, inputs: [%sbn%d, %s], activation: %s", block, block, last, other,
                r->act);
    (void)snprintf(r->input, sizeof r->input, "%sadd", block);
    if (r->depths[stage] > 1) {
        (void)snprintf(block, sizeof block, "layer%zu_{i+1}_", stage + 1);
        model_rounds(t, r->depths[stage] - 1);
        write_path(r, block, to, to, 1);
        model_layer(t, "name: \"%sadd\", kind: add, inputs: [previous, before], activation: %s", block,
                    r->act);
        model_repeat_end(t);
        (void)snprintf(r->input, sizeof r->input, "layer%zu_%" PRId64 "_add", stage + 1,
                       r->depths[stage] - 1);
    }
}

static void write_lines(const resnet *r)
{
    model_text *t = &r->m->t;
    model_line(t, "sizes: {resolution: %d}", IMAGE);
    model_line(t, "input: {shape: [$resolution, $resolution, %" PRId64 "]}", r->channels);
    model_line(t, "classes: %" PRId64, r->labels);
    model_line(t, "loss: softmax_cross_entropy");
    model_line(t, "defaults:");
    model_line(t, "  conv2d: {bias: false, init: he_normal_fan_out}");
    model_line(t, "  batch_norm: {epsilon: 1e-5, momentum: 0.1}");
    model_note(t,
               "Images are %d pixels wide and high, which this file does not say: model.resolution turns it.",
               IMAGE);
}

void import_resnet(importer *m)
{
    resnet r = {.m = m, .input = "maxpool"};
    read_keys(&r);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    write_lines(&r);
    write_convolution(&r, "*1", &(convolution){r.channels, r.stem, 7, 2, r.act}, NULL);
    model_layer(&m->t, "name: maxpool, kind: max_pool, size: 3, stride: 2, padding: 1");
    int64_t from = r.stem;
    for (size_t k = 0; k < r.stages; k++) {
        write_stage(&r, k, from, k > 0 || r.first_stage ? 2 : 1);
        from = r.widths[k];
    }
    model_layer(&m->t, "name: avgpool, kind: global_avg_pool");
    model_layer(&m->t, "name: fc, kind: dense, units: %" PRId64, r.labels);
    model_weights(&m->t, from, r.labels, true);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: momentum, learning_rate: 0.1, momentum: 0.9}\n";
}
