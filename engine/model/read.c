// SPDX-License-Identifier: Apache-2.0
// The model mapping:
//
//   name: cifar10_separable_cnn
//   input: {shape: [32, 32, 3]}          height, width, channels of one sample
//   classes: 10
//   loss: softmax_cross_entropy
//   layers:
//     - {name: conv1, kind: conv2d, filters: 32, kernel: 3}
//     - {kind: relu}                      the layer before it is its input
//     - {kind: add, inputs: [conv1, relu]}
#include "model/read.h"

#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/words.h"

_Static_assert(MODEL_NAME_MAX == 64, "MODEL_NAME_RULE says so");

bool model_is_name(const yaml_node *node)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (node->kind != YAML_SCALAR) {
        return false;
    }
    const size_t length = strlen(node->text);
    return length > 0 && length <= MODEL_NAME_MAX && strspn(node->text, allowed) == length;
}

const char *model_keep_name(model_builder *b, const char *name)
{
    const char *kept = arena_print(&b->names, "%s", name);
    if (!kept) {
        builder_nomem(b);
    }
    return kept;
}

#define MAX_SIDE 16777216

static const attr_row classes_row = {.name = "classes", .type = ATTR_TYPE_INT, .min = 2, .max = MAX_SIDE};
static const attr_row loss_row = {
    .name = "loss", .type = ATTR_TYPE_CHOICE, .choices = {"softmax_cross_entropy"}};
static const attr_row input_row = {.name = "input shape", .type = ATTR_TYPE_SHAPE, .min = 1, .max = MAX_SIDE};

// The keys of `mapping` that are none of `words`; reported in order.
static void refuse_other_keys(model_builder *b, const yaml_node *mapping, const char *what,
                              const char *const *words, size_t count)
{
    for (const yaml_node *child = mapping->child; child && b->problems < MODEL_MAX_PROBLEMS;
         child = child->next) {
        size_t k = 0;
        while (k < count && strcmp(words[k], child->key) != 0) {
            k++;
        }
        if (k < count) {
            continue;
        }
        char had[HAD_MAX], near[WORDS_MAX];
        builder_problem_at(b, child->key_line, child->key_column, "%s has no key %s%s", what,
                           had_word(child->key, had), did_you_mean(child->key, words, count, near));
    }
}

// The mapping's `key`, or NULL with a problem said.
static const yaml_node *need(model_builder *b, const yaml_node *mapping, const char *key, const char *form)
{
    const yaml_node *found = yaml_find(mapping, key);
    if (!found && !is_misspelt(mapping, key)) {
        builder_problem_at(b, mapping->line, mapping->column, "the model needs %s", form);
    }
    return found;
}

// The value of the model's input; b->model.input stays HR_NO_ID when its shape is not good.
static void add_input(model_builder *b, const yaml_node *at, const hr_shape *sides)
{
    op_operand operand = {.shape = {.rank = sides->rank + 1, .dim = {1}}, .dtype = HR_F32};
    memcpy(&operand.shape.dim[1], sides->dim, sides->rank * sizeof sides->dim[0]);
    b->node = at;
    b->broken = false;
    b->model.slots[0].value = builder_value(b, &(node_out){"input", true}, &operand);
    b->model.slot_count = 1;
}

static void read_input(model_builder *b, const yaml_node *root)
{
    static const char form[] = "input: {shape: [height, width, channels]}";
    static const char *const words[] = {"shape"};
    const yaml_node *input = need(b, root, "input", form);
    if (!input) {
        return;
    }
    const bool mapping = input->kind == YAML_MAPPING;
    const yaml_node *shape = mapping ? yaml_find(input, "shape") : NULL;
    if (mapping) {
        refuse_other_keys(b, input, "input", words, 1);
    }
    attr_value sides = {.shape = {.rank = 0}};
    if (shape && shape->kind == YAML_SEQUENCE && shape->count == 3) {
        attr_read(b, &input_row, shape, &sides);
    } else if (shape || !mapping || !is_misspelt(input, "shape")) {
        const yaml_node *at = shape ? shape : input;
        builder_problem_at(b, at->line, at->column, "the model needs %s", form);
    }
    if (sides.shape.rank > 0) {
        add_input(b, shape, &sides.shape);
    }
}

static void read_classes(model_builder *b, const yaml_node *root)
{
    const yaml_node *node = need(b, root, "classes", "classes: N");
    attr_value value = {0};
    if (node) {
        attr_read(b, &classes_row, node, &value);
    }
    b->model.slots[1].classes = (uint32_t)value.integer;
}

static void read_name(model_builder *b, const yaml_node *root, const char *default_name)
{
    const yaml_node *node = yaml_find(root, "name");
    if (node && !model_is_name(node)) {
        builder_problem_at(b, node->line, node->column, MODEL_NAME_RULE);
        return;
    }
    b->model.name = model_keep_name(b, node ? node->text : default_name);
}

static void add_loss(model_builder *b)
{
    const uint32_t last = b->layers.count - 1;
    const hr_shape logits = b->values.data[b->layers.data[last].output].shape;
    model_slot *labels_slot = &b->model.slots[1];
    model_loss *loss = &b->model.losses[0];
    if (logits.rank != 2 || logits.dim[1] != (int64_t)labels_slot->classes) {
        char had[SHAPE_TEXT_MAX];
        b->layer = last;
        builder_problem(b, "gives %s, but as the last layer it must give %u, one for each class",
                        sample_shape_text(&logits, had), labels_slot->classes);
        return;
    }
    b->layer = HR_NO_ID;
    const op_operand labels = {.shape = shape_of(1, (const int64_t[]){1}), .dtype = HR_I32};
    const node_out out[] = {{"probs", true}, {"loss", false}};
    labels_slot->value = builder_value(b, &(node_out){"labels", true}, &labels);
    labels_slot->is_label = true;
    b->model.slot_count = 2;
    *loss = (model_loss){.prediction = b->layers.data[last].output,
                         .labels = labels_slot->value,
                         .weight = 1,
                         .classifies = true};
    const model_node node = {.op = HR_OP_SOFTMAX_XENT,
                             .in_count = 2,
                             .out_count = 2,
                             .in = {ref_value(loss->prediction), ref_value(loss->labels)}};
    loss->value = builder_node(b, &node, out) + 1;
    b->model.loss_count = 1;
}

static void read_head(model_builder *b, const yaml_node *root, const char *default_name)
{
    static const char *const words[] = {"name", "input", "classes", "loss", "layers"};
    attr_value loss = {0};
    refuse_other_keys(b, root, "the model", words, sizeof words / sizeof *words);
    read_name(b, root, default_name);
    read_input(b, root);
    read_classes(b, root);
    if (yaml_find(root, "loss")) {
        attr_read(b, &loss_row, yaml_find(root, "loss"), &loss);
    }
}

void model_read(model_builder *b, const yaml_node *root, const char *default_name)
{
    b->layer = HR_NO_ID;
    b->model.slots[0].value = HR_NO_ID;
    if (root->kind != YAML_MAPPING) {
        builder_problem_at(b, root->line, root->column,
                           "the model must be a mapping with input, classes and layers");
        return;
    }
    read_head(b, root, default_name);
    const yaml_node *layers = need(b, root, "layers", "layers: a list of at least one layer");
    if (!layers) {
        return;
    }
    if (layers->kind != YAML_SEQUENCE || layers->count == 0) {
        builder_problem_at(b, layers->line, layers->column,
                           "the model needs layers: a list of at least one layer");
        return;
    }
    model_read_layers(b, layers);
    if (!b->nomem && b->problems == 0) {
        add_loss(b);
    }
}
