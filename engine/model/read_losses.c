// SPDX-License-Identifier: Apache-2.0
// Labels and losses:
//
//   classes: 10                                    one label, an id below 10 for each row of logits
//   loss: softmax_cross_entropy
//
//   labels:
//     - {name: digit, type: int32, classes: 10}    its shape follows from what is compared with it
//     - {name: target, type: float32}
//   losses:
//     - {kind: softmax_cross_entropy, prediction: logits, labels: digit}
//     - {kind: mean_squared_error, prediction: decoded, labels: target, weight: 0.1}
//     - {kind: focal, prediction: boxes, labels: hits, gamma: 2, alpha: 0.25}     of logits, as binary_cross_entropy
#include <stdio.h>
#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/reader.h"
#include "model/words.h"

typedef enum loss_kind { LOSS_CROSS_ENTROPY, LOSS_SQUARED_ERROR, LOSS_KL, LOSS_BINARY, LOSS_FOCAL } loss_kind;

#define MAX_COUNT 16777216

static const attr_row kind_row = {
    .name = "loss",
    .type = ATTR_TYPE_CHOICE,
    .choices = {"softmax_cross_entropy", "mean_squared_error", "kl", "binary_cross_entropy", "focal"}};
static const attr_row weight_row = {.name = "weight", .type = ATTR_TYPE_REAL, .min = 1e-6, .max = 1e6};
static const attr_row temperature_row = {
    .name = "temperature", .type = ATTR_TYPE_REAL, .min = 0.01, .max = 1000};
static const attr_row gamma_row = {.name = "gamma", .type = ATTR_TYPE_REAL, .min = 0, .max = 100};
static const attr_row alpha_row = {.name = "alpha", .type = ATTR_TYPE_REAL, .min = 0, .max = 0.999999};
static const attr_row classes_row = {.name = "classes", .type = ATTR_TYPE_INT, .min = 2, .max = MAX_COUNT};
static const attr_row shape_row = {
    .name = "labels shape", .type = ATTR_TYPE_SHAPE, .min = 1, .max = MAX_COUNT};
static const attr_row type_row = {
    .name = "type", .type = ATTR_TYPE_CHOICE, .choices = {"float32", "int32", "uint8"}};

// Reads the mapping's `key` under the row; false when it is not there.
static bool take(model_builder *b, const yaml_node *mapping, const char *key, const attr_row *row,
                 attr_value *out)
{
    const yaml_node *node = yaml_find(mapping, key);
    if (node) {
        attr_read(b, row, node, out);
    }
    return node != NULL;
}

// ---- what was written -----------------------------------------------------------------------------------------

static void read_label(model_reader *r, const yaml_node *node, losses_spec *out)
{
    static const char *const words[] = {"name", "type", "shape", "classes"};
    static const hr_dtype types[] = {HR_F32, HR_I32, HR_U8};
    model_builder *b = r->b;
    label_spec *label = &out->labels[out->label_count++];
    *label = (label_spec){.node = node, .name = "labels"};
    if (node->kind != YAML_MAPPING) {
        builder_problem_at(b, node->line, node->column,
                           "labels are mappings such as {type: int32, classes: 10}");
        return;
    }
    attr_value type = {0}, shape = {.shape = {.rank = 0}}, classes = {0};
    reader_refuse_other_keys(b, node, "a label", words, sizeof words / sizeof *words);
    const yaml_node *name = yaml_find(node, "name");
    if (name && (name->kind != YAML_SCALAR || !model_is_name(name->text))) {
        builder_problem_at(b, name->line, name->column, MODEL_NAME_RULE);
    } else if (name) {
        label->name = name->text;
    }
    label->typed = take(b, node, "type", &type_row, &type);
    label->shaped = take(b, node, "shape", &shape_row, &shape);
    label->dtype = types[type.integer];
    label->shape = shape.shape;
    (void)take(b, node, "classes", &classes_row, &classes);
    label->classes = (uint32_t)classes.integer;
}

static void check_label_name(model_reader *r, const losses_spec *s, uint32_t k)
{
    static const char *const reserved[] = {"probs", "loss", "correct"};
    const label_spec *label = &s->labels[k];
    bool taken = name_table_find(&r->names, label->name) != HR_NO_ID;
    for (uint32_t other = 0; other < k; other++) {
        taken = taken || strcmp(s->labels[other].name, label->name) == 0;
    }
    for (size_t n = 0; n < sizeof reserved / sizeof *reserved; n++) {
        taken = taken || strncmp(label->name, reserved[n], strlen(reserved[n])) == 0;
    }
    if (taken && label->node) {
        builder_problem_at(r->b, label->node->line, label->node->column,
                           "a label needs a name of its own, had '%s'", label->name);
    }
}

static void read_labels(model_reader *r, const yaml_node *root, losses_spec *out)
{
    model_builder *b = r->b;
    const yaml_node *labels = yaml_find(root, "labels");
    const bool list = labels && labels->kind == YAML_SEQUENCE;
    const uint32_t room = MODEL_MAX_SLOTS - b->model.slot_count;
    if (list && (labels->count == 0 || labels->count > room)) {
        builder_problem_at(b, labels->line, labels->column,
                           "inputs and labels together may be %d, and there must be a label: had %u and %u",
                           MODEL_MAX_SLOTS, b->model.slot_count, labels->count);
        return;
    }
    if (!labels) {
        out->labels[out->label_count++] = (label_spec){.name = "labels"};
    } else if (!list) {
        read_label(r, labels, out);
    }
    for (const yaml_node *node = list ? labels->child : NULL; node; node = node->next) {
        read_label(r, node, out);
    }
    for (uint32_t k = 0; k < out->label_count; k++) {
        check_label_name(r, out, k);
    }
}

static uint32_t label_of(model_reader *r, const yaml_node *node, const losses_spec *s)
{
    const char *words[MODEL_MAX_SLOTS];
    for (uint32_t k = 0; k < s->label_count; k++) {
        words[k] = s->labels[k].name;
        if (!node || (node->kind == YAML_SCALAR && strcmp(node->text, words[k]) == 0)) {
            return k;
        }
    }
    char had[HAD_MAX], near[WORDS_MAX];
    builder_problem_at(
        r->b, node->line, node->column, "no label is called %s%s", had_node(node, had),
        did_you_mean(node->kind == YAML_SCALAR ? node->text : NULL, words, s->label_count, near));
    return 0;
}

// A focal loss is torchvision's and Lin et al.'s unless the file says otherwise.
static loss_spec loss_as_usual(const yaml_node *node, int64_t kind)
{
    return (loss_spec){.node = node, .kind = kind, .weight = 1, .temperature = 1, .gamma = 2, .alpha = 0.25};
}

// A number that one kind of loss alone has.
static double take_of_kind(model_builder *b, const loss_spec *loss, const attr_row *row, loss_kind kind,
                           double usual)
{
    attr_value value = {.real = usual};
    if (take(b, loss->node, row->name, row, &value) && loss->kind != kind) {
        const yaml_node *at = yaml_find(loss->node, row->name);
        builder_problem_at(b, at->line, at->column, "%s belongs to the loss %s", row->name,
                           kind_row.choices[kind]);
    }
    return value.real;
}

static void read_loss(model_reader *r, const yaml_node *node, losses_spec *out)
{
    static const char *const words[] = {"kind",        "prediction", "labels", "weight",
                                        "temperature", "gamma",      "alpha"};
    model_builder *b = r->b;
    loss_spec *loss = &out->losses[out->loss_count++];
    *loss = loss_as_usual(node, LOSS_CROSS_ENTROPY);
    if (node->kind != YAML_MAPPING) {
        builder_problem_at(b, node->line, node->column,
                           "losses are mappings such as {kind: softmax_cross_entropy, prediction: LAYER}");
        return;
    }
    attr_value kind = {0}, weight = {.real = loss->weight};
    reader_refuse_other_keys(b, node, "a loss", words, sizeof words / sizeof *words);
    if (!take(b, node, "kind", &kind_row, &kind)) {
        builder_problem_at(b, node->line, node->column, "a loss needs a kind");
    }
    (void)take(b, node, "weight", &weight_row, &weight);
    loss->kind = kind.integer;
    loss->temperature = take_of_kind(b, loss, &temperature_row, LOSS_KL, loss->temperature);
    loss->gamma = take_of_kind(b, loss, &gamma_row, LOSS_FOCAL, loss->gamma);
    loss->alpha = take_of_kind(b, loss, &alpha_row, LOSS_FOCAL, loss->alpha);
    loss->prediction = yaml_find(node, "prediction");
    loss->label = label_of(r, yaml_find(node, "labels"), out);
    loss->weight = weight.real;
}

// The short form: `loss` and `classes` of the one label.
static void read_short(model_reader *r, const yaml_node *root, losses_spec *out)
{
    model_builder *b = r->b;
    attr_value kind = {0}, classes = {0};
    const uint32_t problems = b->problems;
    const yaml_node *loss = yaml_find(root, "loss");
    if (loss != NULL && loss->kind == YAML_MAPPING) {
        builder_problem_at(b, loss->line, loss->column,
                           "a loss with attributes stands in a list: losses: [{kind: …}]");
        return;
    }
    (void)take(b, root, "loss", &kind_row, &kind);
    const bool known = b->problems == problems; // of another loss nobody knows whether it has classes
    label_spec *label = &out->labels[0];
    if (take(b, root, "classes", &classes_row, &classes)) {
        label->classes = (uint32_t)classes.integer;
    } else if (known && kind.integer == LOSS_CROSS_ENTROPY && label->classes == 0 &&
               !(b->problems > 0 && is_misspelt(root, "classes"))) {
        builder_problem_at(b, root->line, root->column, "the model needs classes: N");
    }
    out->losses[out->loss_count++] = loss_as_usual(root, kind.integer);
}

void read_losses(model_reader *r, const yaml_node *root, losses_spec *out)
{
    model_builder *b = r->b;
    const yaml_node *losses = yaml_find(root, "losses");
    read_labels(r, root, out);
    if (!losses && out->label_count > 0) {
        read_short(r, root, out);
        return;
    }
    if (!losses) {
        return;
    }
    if (losses->kind != YAML_SEQUENCE || losses->count == 0 || losses->count > MODEL_MAX_LOSSES) {
        builder_problem_at(b, losses->line, losses->column, "losses must be a list of 1 to %d mappings",
                           MODEL_MAX_LOSSES);
        return;
    }
    static const char *const others[] = {"loss", "classes"};
    for (size_t k = 0; k < 2; k++) {
        const yaml_node *other = yaml_find(root, others[k]);
        if (other) {
            builder_problem_at(b, other->key_line, other->key_column,
                               "stands beside losses: write it with the %s it belongs to",
                               k ? "label" : "loss");
        }
    }
    for (const yaml_node *node = losses->child; node; node = node->next) {
        read_loss(r, node, out);
    }
}

// ---- what it means --------------------------------------------------------------------------------------------

// The sentence begins with the layer.
static void blame_layer(model_reader *r, uint32_t layer, const char *sentence)
{
    r->b->layer = layer;
    builder_problem_at(r->b, r->notes.data[layer].line, r->notes.data[layer].column, "%s", sentence);
    r->b->layer = HR_NO_ID;
}

static void check_label_type(model_reader *r, const label_spec *label, const loss_spec *loss)
{
    const bool ids = loss->kind == LOSS_CROSS_ENTROPY;
    if (label->typed && ids != (label->dtype != HR_F32)) {
        builder_problem_at(r->b, label->node->line, label->node->column,
                           "label '%s' needs type %s under its loss, had %s", label->name,
                           ids ? "int32 or uint8" : "float32", dtype_name(label->dtype));
    } else if (label->typed && label->dtype == HR_U8 && label->classes > 256) {
        builder_problem_at(r->b, label->node->line, label->node->column,
                           "label '%s' has %u classes, and uint8 counts to 256", label->name, label->classes);
    }
}

// An image has one class unless the file says that its places have: a forgotten flatten is no segmentation.
static bool forgot_to_flatten(const model_reader *r, const label_spec *label, const hr_shape *prediction)
{
    const model_value *input = &r->b->values.data[r->b->model.slots[0].value];
    return label->node == NULL && input->dtype == HR_F32 && input->shape.rank == 4 && prediction->rank > 2;
}

// Do label and loss go with what the layer gives?
static bool labels_fit(model_reader *r, const label_spec *label, const loss_spec *loss, uint32_t layer)
{
    model_builder *b = r->b;
    const uint32_t problems = b->problems;
    const hr_shape shape = b->values.data[b->layers.data[layer].output].shape;
    char had[SHAPE_TEXT_MAX], sentence[256];
    if (!b->values.data[b->layers.data[layer].output].batched) {
        blame_layer(r, layer, "is one bias for all samples, and a loss judges samples");
    } else if (loss->kind == LOSS_CROSS_ENTROPY && label->classes == 0) {
        const yaml_node *at = label->node ? label->node : loss->node;
        builder_problem_at(b, at->line, at->column, "label '%s' needs classes: N", label->name);
    } else if (loss->kind == LOSS_CROSS_ENTROPY && shape.dim[shape.rank - 1] != (int64_t)label->classes) {
        (void)snprintf(sentence, sizeof sentence,
                       "gives %s, but under its loss it must give %u, one for each class",
                       sample_shape_text(&shape, had), label->classes);
        blame_layer(r, layer, sentence);
    } else if (loss->kind == LOSS_CROSS_ENTROPY && forgot_to_flatten(r, label, &shape)) {
        (void)snprintf(
            sentence, sizeof sentence,
            "gives %s, classes for every place of the image: put a flatten or global_avg_pool before "
            "it, or say labels: {type: int32, classes: %u} if every place has a label",
            sample_shape_text(&shape, had), label->classes);
        blame_layer(r, layer, sentence);
    }
    check_label_type(r, label, loss);
    return b->problems == problems;
}

// What a label for this prediction looks like.
static op_operand label_operand(const model_reader *r, const label_spec *label, const loss_spec *loss,
                                uint32_t layer)
{
    op_operand operand = {.shape = r->b->values.data[r->b->layers.data[layer].output].shape, .dtype = HR_F32};
    if (loss->kind == LOSS_CROSS_ENTROPY) {
        operand.shape.dim[--operand.shape.rank] = 0;
        operand.dtype = label->typed ? (uint32_t)label->dtype : HR_I32;
    }
    return operand;
}

// Whether the loss takes targets from 0 to 1.
static bool is_binary(const loss_spec *loss)
{
    return loss->kind == LOSS_BINARY || loss->kind == LOSS_FOCAL;
}

// `binary`: a loss that names it takes targets from 0 to 1.
static void add_label(model_reader *r, const label_spec *label, const loss_spec *loss, bool binary,
                      uint32_t layer)
{
    model_builder *b = r->b;
    const op_operand operand = label_operand(r, label, loss, layer);
    model_slot *slot = &b->model.slots[b->model.slot_count++];
    *slot = (model_slot){.value = HR_NO_ID,
                         .is_label = true,
                         .binary = binary,
                         .classes = loss->kind == LOSS_CROSS_ENTROPY ? label->classes : 0};
    const hr_shape sample = shape_of(operand.shape.rank - 1, operand.shape.dim + 1);
    if (label->shaped && !shape_equal(&label->shape, &sample)) {
        char had[SHAPE_TEXT_MAX], needed[SHAPE_TEXT_MAX];
        builder_problem_at(b, label->node->line, label->node->column,
                           "label '%s' must have the shape %s of what is compared with it, had %s",
                           label->name, shape_text(&sample, needed, sizeof needed),
                           shape_text(&label->shape, had, sizeof had));
        return;
    }
    b->broken = false;
    b->node = label->node;
    slot->value = builder_value(b, &(node_out){label->name, true}, &operand);
}

static void push_loss(model_builder *b, const model_loss *loss)
{
    model_loss *added = vec_push(&b->losses);
    if (added) {
        *added = *loss;
    } else {
        builder_nomem(b);
    }
}

static void add_loss(model_reader *r, const loss_spec *loss, uint32_t layer, uint32_t labels)
{
    static const struct {
        hr_op op;
        uint32_t outputs;
    } rows[] = {[LOSS_CROSS_ENTROPY] = {HR_OP_SOFTMAX_XENT, 2},
                [LOSS_SQUARED_ERROR] = {HR_OP_MSE, 1},
                [LOSS_KL] = {HR_OP_KL, 2},
                [LOSS_BINARY] = {HR_OP_BINARY_XENT, 1},
                [LOSS_FOCAL] = {HR_OP_FOCAL, 1}};
    model_builder *b = r->b;
    const uint32_t k = b->losses.count;
    char probs[24] = "probs", name[24] = "loss";
    if (k > 0) {
        (void)snprintf(probs, sizeof probs, "probs_%u", k);
        (void)snprintf(name, sizeof name, "loss_%u", k);
    }
    const node_out out[] = {{probs, true}, {name, false}};
    const uint32_t count = rows[loss->kind].outputs;
    const uint32_t prediction = b->layers.data[layer].output;
    const model_node node = {
        .op = rows[loss->kind].op,
        .attr = {.scale = loss->weight != 1 ? loss->weight : 0,
                 .epsilon = loss->kind == LOSS_KL ? loss->temperature : 0,
                 .rate = loss->kind == LOSS_FOCAL ? loss->gamma : 0,
                 .momentum = loss->kind == LOSS_FOCAL ? loss->alpha : 0},
        .in_count = 2,
        .out_count = count,
        .in = {ref_value(prediction), ref_value(labels)},
    };
    b->broken = false;
    b->node = loss->node;
    const uint32_t first = builder_node(b, &node, &out[2 - count]);
    push_loss(b, &(model_loss){.value = first + count - 1,
                               .prediction = prediction,
                               .labels = labels,
                               .weight = loss->weight,
                               .evaluated = loss->weight,
                               .classifies = loss->kind == LOSS_CROSS_ENTROPY});
}

static void report_unused(model_reader *r)
{
    model_builder *b = r->b;
    for (uint32_t k = 0; k < b->model.slot_count; k++) {
        if (!r->slot_used[k] && b->model.slots[k].value != HR_NO_ID) {
            builder_problem_at(b, r->slot_node[k]->line, r->slot_node[k]->column,
                               "input '%s' feeds nothing: no layer takes it",
                               b->values.data[b->model.slots[k].value].name);
        }
    }
    for (uint32_t i = 0; i < b->layers.count && b->problems < MODEL_MAX_PROBLEMS; i++) {
        if (!r->notes.data[i].used) {
            blame_layer(r, i, "feeds nothing: no layer below it and no loss takes it as input");
        }
    }
}

// The layers that the losses judge, marked as used.
static void find_predictions(model_reader *r, const losses_spec *s, uint32_t layer[MODEL_MAX_LOSSES])
{
    r->unresolved = r->unresolved || s->loss_count == 0;
    for (uint32_t k = 0; k < s->loss_count; k++) {
        const yaml_node *prediction = s->losses[k].prediction;
        r->b->node = s->losses[k].node;
        layer[k] = prediction ? reader_layer(r, prediction) : r->b->layers.count - 1;
        if (layer[k] != HR_NO_ID) {
            r->notes.data[layer[k]].used = true;
        }
    }
}

void add_losses(model_reader *r, const losses_spec *s)
{
    model_builder *b = r->b;
    uint32_t layer[MODEL_MAX_LOSSES] = {0};
    const uint32_t inputs = b->model.slot_count;
    if (b->layers.count == 0) {
        return; // said
    }
    find_predictions(r, s, layer);
    if (!r->unresolved) {
        report_unused(r);
    }
    for (uint32_t n = 0; n < s->label_count && b->problems == 0 && !b->nomem; n++) {
        uint32_t k = s->loss_count;
        bool binary = false;
        for (uint32_t j = s->loss_count; j-- > 0;) {
            if (s->losses[j].label == n) {
                k = j; // the first in the end
                binary = binary || is_binary(&s->losses[j]);
            }
        }
        if (k == s->loss_count) {
            const yaml_node *at = s->labels[n].node;
            builder_problem_at(b, at->line, at->column,
                               "label '%s' is compared with nothing: no loss names it", s->labels[n].name);
        } else if (labels_fit(r, &s->labels[n], &s->losses[k], layer[k])) {
            add_label(r, &s->labels[n], &s->losses[k], binary, layer[k]);
        }
    }
    for (uint32_t k = 0; k < s->loss_count && b->problems == 0 && !b->nomem; k++) {
        if (labels_fit(r, &s->labels[s->losses[k].label], &s->losses[k], layer[k])) {
            add_loss(r, &s->losses[k], layer[k], b->model.slots[inputs + s->losses[k].label].value);
        }
    }
    for (uint32_t k = 0; k < b->layer_losses.count && !b->nomem; k++) {
        push_loss(b, &b->layer_losses.data[k]);
    }
}
