// SPDX-License-Identifier: Apache-2.0
// The model mapping:
//
//   name: cifar10_separable_cnn
//   input: {shape: [32, 32, 3]}          height, width, channels of one sample; see read_inputs.c
//   classes: 10                          see read_losses.c
//   loss: softmax_cross_entropy
//   sizes: {width: 64}                   see sizes.h
//   defaults: {conv2d: {bias: false}}    see read_attrs.c
//   layers:                              see read_layers.c
//     - {name: conv1, kind: conv2d, filters: 32, kernel: 3}
//     - {kind: relu}                      the layer before it is its input
//     - {kind: add, inputs: [conv1, relu]}
#include "model/read.h"

#include "headroom/event.h"

#include "model/reader.h"
#include "model/sizes.h"
#include "model/widths.h"
#include "model/words.h"

static const char layers_form[] = "the model needs layers: a list of at least one layer";

static void read_name(model_builder *b, const yaml_node *root, const char *default_name)
{
    const yaml_node *node = yaml_find(root, "name");
    if (node && (node->kind != YAML_SCALAR || !model_is_name(node->text))) {
        builder_problem_at(b, node->line, node->column, MODEL_NAME_RULE);
        return;
    }
    b->model.name = model_keep_name(b, node ? node->text : default_name);
}

static const yaml_node *find_layers(model_builder *b, const yaml_node *root)
{
    const yaml_node *layers = yaml_find(root, "layers");
    if (!layers && !(b->problems > 0 && is_misspelt(root, "layers"))) {
        builder_problem_at(b, root->line, root->column, "%s", layers_form);
    }
    if (layers && (layers->kind != YAML_SEQUENCE || layers->count == 0)) {
        builder_problem_at(b, layers->line, layers->column, "%s", layers_form);
        return NULL;
    }
    return layers;
}

static void read_all(model_reader *r, const yaml_node *root, const char *default_name)
{
    static const char *const words[] = {"name", "input",  "inputs", "classes",  "labels",
                                        "loss", "losses", "sizes",  "defaults", "layers"};
    losses_spec losses = {.label_count = 0};
    reader_refuse_other_keys(r->b, root, "the model", words, sizeof words / sizeof *words);
    r->b->sizes.written = yaml_find(root, "sizes"); // their values are knobs: knobs/preset.c read them
    read_name(r->b, root, default_name);
    read_inputs(r, root);
    read_losses(r, root, &losses);
    if (yaml_find(root, "defaults")) {
        read_defaults(r, yaml_find(root, "defaults"));
    }
    r->layers = find_layers(r->b, root);
    if (r->layers && !r->b->nomem) {
        read_layers(r);
    }
    if (!r->b->nomem) {
        add_losses(r, &losses);
        sizes_refuse_unused(r->b);
        widths_refuse_unknown(r->b, &r->names);
    }
}

void model_read(model_builder *b, const yaml_node *root, const char *default_name)
{
    b->layer = b->shared.layer = HR_NO_ID;
    if (root->kind != YAML_MAPPING) {
        builder_problem_at(b, root->line, root->column,
                           "the model must be a mapping with input, classes and layers");
        return;
    }
    model_reader r = {.b = b, .defaults = hr_calloc(LAYER_KIND_COUNT, sizeof *r.defaults)};
    if (r.defaults) {
        read_all(&r, root, default_name);
    } else {
        builder_nomem(b);
    }
    hr_free(r.defaults);
    name_table_deinit(&r.names);
    vec_deinit(&r.notes);
}
