// SPDX-License-Identifier: Apache-2.0
// The inputs of a model:
//
//   input: {shape: [32, 32, 3]}                            one, of float32; layers call it `input`
//   inputs:
//     - {name: tokens, type: int32, classes: 30522, shape: [512]}
//     - {name: types, type: int32, classes: 2, shape: [512]}
#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/reader.h"
#include "model/words.h"

#define MAX_SIDE 16777216

static const attr_row shape_row = {.name = "input shape", .type = ATTR_TYPE_SHAPE, .min = 1, .max = MAX_SIDE};
static const attr_row classes_row = {.name = "classes", .type = ATTR_TYPE_INT, .min = 1, .max = MAX_SIDE};
static const attr_row type_row = {.name = "type", .type = ATTR_TYPE_CHOICE, .choices = {"float32", "int32"}};

static const char input_form[] =
    "the model needs input: {shape: [height, width, channels]}, or another list of "
    "one to four sizes";

// The value of the slot; it stays HR_NO_ID when the shape is not good.
static void add_slot(model_reader *r, const yaml_node *at, const char *name, const hr_shape *sample,
                     hr_dtype dtype)
{
    model_builder *b = r->b;
    op_operand operand = {.shape = {.rank = sample->rank + 1, .dim = {1}}, .dtype = (uint32_t)dtype};
    memcpy(&operand.shape.dim[1], sample->dim, sample->rank * sizeof sample->dim[0]);
    b->node = at;
    b->broken = false;
    b->model.slots[b->model.slot_count].value = builder_value(b, &(node_out){name, true}, &operand);
}

static const char *input_name(model_reader *r, const yaml_node *input, bool several)
{
    static const char *const reserved[] = {"labels", "probs", "loss", "correct", "before", "previous"};
    model_builder *b = r->b;
    const yaml_node *node = yaml_find(input, "name");
    if (!node) {
        if (several) {
            builder_problem_at(b, input->line, input->column, "each of several inputs needs a name");
        }
        return "input";
    }
    bool good = node->kind == YAML_SCALAR && model_is_name(node->text);
    if (!good) {
        builder_problem_at(b, node->line, node->column, MODEL_NAME_RULE);
        return "input";
    }
    for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++) {
        if (strcmp(node->text, reserved[k]) == 0) {
            builder_problem_at(b, node->line, node->column,
                               "'%s' has a meaning of its own: choose another name", node->text);
        }
    }
    if (name_table_find(&r->names, node->text) != HR_NO_ID) {
        builder_problem_at(b, node->line, node->column, "two inputs are called '%s'", node->text);
        r->slot_used[b->model.slot_count] = true; // it cannot be named: no second complaint
    }
    return node->text;
}

// Ids need to know how many there are.
static uint32_t read_classes(model_builder *b, const yaml_node *input, hr_dtype dtype)
{
    const yaml_node *node = yaml_find(input, "classes");
    attr_value classes = {0};
    if (node) {
        attr_read(b, &classes_row, node, &classes);
    } else if (dtype == HR_I32) {
        builder_problem_at(b, input->line, input->column,
                           "an input of ids needs classes: how many there are");
    }
    return dtype == HR_I32 ? (uint32_t)classes.integer : 0;
}

static hr_shape read_shape(model_builder *b, const yaml_node *input)
{
    const yaml_node *node = yaml_find(input, "shape");
    attr_value shape = {.shape = {.rank = 0}};
    if (node && node->kind == YAML_SEQUENCE && node->count > 0) {
        attr_read(b, &shape_row, node, &shape);
    } else if (node || !(b->problems > 0 && is_misspelt(input, "shape"))) {
        const yaml_node *at = node ? node : input;
        builder_problem_at(b, at->line, at->column, "%s", input_form);
    }
    return shape.shape;
}

static void read_one_input(model_reader *r, const yaml_node *input, bool several)
{
    static const char *const words[] = {"name", "type", "shape", "classes"};
    model_builder *b = r->b;
    const uint32_t slot = b->model.slot_count;
    attr_value type = {0};
    reader_refuse_other_keys(b, input, "input", words, sizeof words / sizeof *words);
    const char *name = model_keep_name(b, input_name(r, input, several));
    if (yaml_find(input, "type")) {
        attr_read(b, &type_row, yaml_find(input, "type"), &type);
    }
    const hr_dtype dtype = type.integer == 1 ? HR_I32 : HR_F32;
    const hr_shape shape = read_shape(b, input);
    if (shape.rank > 0 && name) {
        add_slot(r, yaml_find(input, "shape"), name, &shape, dtype);
    }
    b->model.slots[slot].classes = read_classes(b, input, dtype);
    r->slot_node[slot] = input;
    if (name && name_table_find(&r->names, name) == HR_NO_ID &&
        !name_table_add(&r->names, name, NAME_IS_SLOT | slot)) {
        builder_nomem(b);
    }
    b->model.slot_count++;
}

static void read_list(model_reader *r, const yaml_node *inputs)
{
    model_builder *b = r->b;
    if (inputs->kind != YAML_SEQUENCE || inputs->count == 0 || inputs->count >= MODEL_MAX_SLOTS) {
        builder_problem_at(b, inputs->line, inputs->column,
                           "inputs must be a list of 1 to %d mappings such as {name: tokens, type: int32, "
                           "classes: 1000, shape: [128]}",
                           MODEL_MAX_SLOTS - 1);
        return;
    }
    for (const yaml_node *input = inputs->child; input; input = input->next) {
        if (input->kind == YAML_MAPPING) {
            read_one_input(r, input, inputs->count > 1);
        } else {
            builder_problem_at(b, input->line, input->column, "%s", input_form);
        }
    }
}

void read_inputs(model_reader *r, const yaml_node *root)
{
    model_builder *b = r->b;
    const yaml_node *input = yaml_find(root, "input");
    const yaml_node *inputs = yaml_find(root, "inputs");
    for (uint32_t k = 0; k < MODEL_MAX_SLOTS; k++) {
        b->model.slots[k].value = HR_NO_ID;
    }
    if (input && inputs) {
        builder_problem_at(b, inputs->key_line, inputs->key_column, "stands beside input: write one of them");
    } else if (inputs) {
        read_list(r, inputs);
    } else if (input && input->kind == YAML_MAPPING) {
        read_one_input(r, input, false);
    } else if (input || !(b->problems > 0 && is_misspelt(root, "input"))) {
        const yaml_node *at = input ? input : root;
        builder_problem_at(b, at->line, at->column, "%s", input_form);
    }
    if (b->model.slot_count == 0) { // the layers are read all the same, for what is wrong with them
        b->model.slot_count = 1;
        if (!name_table_add(&r->names, "input", NAME_IS_SLOT)) {
            builder_nomem(b);
        }
    }
}
