// SPDX-License-Identifier: Apache-2.0
// The layers of a model, one after the other: name, inputs, attributes, expansion. A layer can name only layers
// above it, so that a model has no cycles and one pass over the list is enough.
//
//   - {name: conv1, kind: conv2d, filters: 32, kernel: 3}
//   - {kind: relu}                                  the layer above is its input
//   - {kind: add, inputs: [conv1, previous]}
//   - {name: head, kind: dense, units: 10, share: other}   takes the other layer's parameters: one tensor, one gradient
//   - repeat: 12                                    rounds 0 … 11; `before` is the layer above the round
//     index: i
//     layers:
//       - {name: "h{i}", kind: dense, units: 64}
//       - {kind: add, inputs: [before, "h{i}"]}
#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/reader.h"
#include "model/widths.h"
#include "model/words.h"

// ---- names ----------------------------------------------------------------------------------------------------

// "dense", then "dense_1", "dense_2" …, passing over names that a person gave.
static const char *next_name(model_reader *r, layer_kind_id id)
{
    const char *kind = layer_kind_at(id)->name;
    uint32_t *count = &r->unnamed[id];
    for (;;) {
        const char *name = *count == 0 ? arena_print(&r->b->names, "%s", kind)
                                       : arena_print(&r->b->names, "%s_%u", kind, *count);
        if (!name) {
            builder_nomem(r->b);
            return NULL;
        }
        ++*count;
        if (name_table_find(&r->names, name) == HR_NO_ID) {
            return name;
        }
    }
}

// What the layer is called, right or wrong: a layer without a good name is known by its number.
static const char *name_layer(model_reader *r, const yaml_node *written, const char *word, layer_kind_id id)
{
    if (model_is_name(word)) {
        return model_keep_name(r->b, word);
    }
    if (!written && id != LAYER_KIND_COUNT) {
        return next_name(r, id);
    }
    const char *number = arena_print(&r->b->names, "#%u", r->b->layers.count + 1);
    if (!number) {
        builder_nomem(r->b);
    }
    return number;
}

static bool is_reserved(const char *name)
{
    return strcmp(name, "input") == 0 || strcmp(name, "before") == 0 || strcmp(name, "previous") == 0;
}

static void register_name(model_reader *r, const yaml_node *written, const char *word)
{
    model_builder *b = r->b;
    const char *name = b->layers.data[b->layer].name;
    const yaml_node *at = written ? written : b->node;
    const uint32_t other = name_table_find(&r->names, name);
    if (written && !model_is_name(word)) {
        builder_problem_at(b, at->line, at->column, MODEL_NAME_RULE);
    } else if (is_reserved(name)) {
        builder_problem_at(b, at->line, at->column, "'%s' has a meaning of its own: choose another name",
                           name);
    } else if (other != HR_NO_ID && other & NAME_IS_SLOT) {
        builder_problem_at(b, at->line, at->column, "an input of the model has this name already");
    } else if (other != HR_NO_ID) {
        builder_problem_at(b, at->line, at->column, "the layer at line %u has this name already%s",
                           r->notes.data[other].line,
                           r->round ? ": in a repeat, names need its index, as in \"conv{i}\"" : "");
    } else if (!name_table_add(&r->names, name, b->layer)) {
        builder_nomem(b);
    }
}

// ---- inputs ---------------------------------------------------------------------------------------------------

static void say_inputs(model_reader *r, const layer_kind *kind, const yaml_node *at)
{
    if (kind->min_inputs == kind->max_inputs) {
        builder_problem_at(r->b, at->line, at->column, "needs %s inputs: write inputs: [NAME, NAME]",
                           kind->min_inputs == 2 ? "two" : "more");
    } else {
        builder_problem_at(r->b, at->line, at->column, "needs %u to %u inputs: write inputs: [NAME, NAME]",
                           kind->min_inputs, kind->max_inputs);
    }
    r->unresolved = true;
}

static void read_list_of_inputs(model_reader *r, const layer_kind *kind, const yaml_node *inputs,
                                layer_spec *spec)
{
    if (inputs->kind != YAML_SEQUENCE || inputs->count < kind->min_inputs ||
        inputs->count > kind->max_inputs) {
        say_inputs(r, kind, inputs);
        return;
    }
    for (const yaml_node *one = inputs->child; one; one = one->next) {
        spec->input[spec->input_count++] = reader_use(r, one);
    }
}

static void read_layer_inputs(model_reader *r, const layer_kind *kind, const yaml_node *node,
                              layer_spec *spec)
{
    const yaml_node *inputs = yaml_find(node, "inputs");
    const yaml_node *input = yaml_find(node, "input");
    if (inputs && kind->max_inputs == 1) {
        builder_problem_at(r->b, inputs->key_line, inputs->key_column, "takes one input: write input: NAME");
        r->unresolved = true;
    } else if (inputs && !input) {
        read_list_of_inputs(r, kind, inputs, spec);
    } else if (kind->min_inputs > 1 || (inputs && input)) {
        say_inputs(r, kind, inputs ? inputs : node);
    } else {
        spec->input[spec->input_count++] = input ? reader_use(r, input) : reader_use_previous(r);
    }
}

// A layer of no known kind still uses what it names, so that the layers above it are not blamed.
static void mark_inputs(model_reader *r, const yaml_node *node)
{
    const yaml_node *input = node->kind == YAML_MAPPING ? yaml_find(node, "input") : NULL;
    const yaml_node *inputs = node->kind == YAML_MAPPING ? yaml_find(node, "inputs") : NULL;
    if (input) {
        (void)reader_use(r, input);
    } else if (!inputs) {
        (void)reader_use_previous(r);
    }
    for (const yaml_node *one = inputs ? inputs->child : NULL; one && r->b->problems < MODEL_MAX_PROBLEMS;
         one = one->next) {
        (void)reader_use(r, one);
    }
}

static void check_input(model_builder *b, const layer_kind *kind, const model_value *value, bool may_be_bias)
{
    char had[SHAPE_TEXT_MAX];
    const hr_shape *shape = &value->shape;
    if (!value->batched) {
        if (!may_be_bias) {
            builder_problem(
                b, "cannot take '%s', one bias for all samples: it is the last input of an attention",
                value->name);
        }
    } else if (kind->needs == LAYER_NEEDS_IDS && value->dtype != HR_I32) {
        builder_problem(b, "needs ids: an input of the model with type: int32");
    } else if (kind->needs != LAYER_NEEDS_IDS && value->dtype != HR_F32) {
        builder_problem(b, "needs real numbers, and '%s' are ids: put an embedding layer between them",
                        value->name);
    } else if (kind->needs == LAYER_NEEDS_IMAGE && shape->rank != 4) {
        builder_problem(b, "needs an image [height, width, channels], had %s: put a reshape layer before it",
                        sample_shape_text(shape, had));
    } else if ((kind->needs == LAYER_NEEDS_SEQUENCE || kind->needs == LAYER_NEEDS_BIASED) &&
               shape->rank != 3) {
        builder_problem(b, "needs a sequence [places, features], had %s: put a reshape layer before it",
                        sample_shape_text(shape, had));
    }
}

// ---- one layer ------------------------------------------------------------------------------------------------

static void report_bad_kind(model_builder *b, const yaml_node *kind)
{
    const char *words[LAYER_KIND_COUNT];
    for (layer_kind_id id = 0; id < LAYER_KIND_COUNT; id++) {
        words[id] = layer_kind_at(id)->name;
    }
    const yaml_node *at = kind ? kind : b->node;
    char near[WORDS_MAX];
    (void)did_you_mean(kind && kind->kind == YAML_SCALAR ? kind->text : NULL, words, LAYER_KIND_COUNT, near);
    builder_problem_at(b, at->line, at->column, "needs a kind%s",
                       near[0] != '\0' ? near
                                       : " such as dense, conv2d or attention: `headroom manual "
                                         "headroom-presets.5` has them all");
}

// Appends the layer, so that everything said from here on can name it. False when memory is short.
static bool begin_layer(model_reader *r, const yaml_node *node, const char *name, const char *kind)
{
    model_builder *b = r->b;
    model_layer *layer = name ? vec_push(&b->layers) : NULL;
    layer_note *note = layer ? vec_push(&r->notes) : NULL;
    if (!note) {
        builder_nomem(b);
        return false;
    }
    *layer = (model_layer){.name = name, .kind = kind, .output = HR_NO_ID};
    b->layer = b->layers.count - 1;
    *note = (layer_note){.line = node->line,
                         .column = node->column,
                         .params = {.layer = b->layer, .first = b->params.count, .end = b->params.count}};
    b->shared.layer = HR_NO_ID;
    b->widths.here = (model_width){.node = NULL};
    return true;
}

static void read_share(model_reader *r, const yaml_node *share)
{
    const uint32_t layer = reader_layer(r, share);
    if (layer == HR_NO_ID) {
        return;
    }
    const bool good = r->b->layers.data[layer].output != HR_NO_ID;
    r->b->broken = r->b->broken || !good;
    r->b->shared = r->notes.data[layer].params;
}

static void read_known_layer(model_reader *r, layer_kind_id id, const yaml_node *node)
{
    model_builder *b = r->b;
    const layer_kind *kind = layer_kind_at(id);
    layer_spec spec = {.input_count = 0};
    read_layer_inputs(r, kind, node, &spec);
    for (uint32_t k = 0; k < spec.input_count && !b->broken; k++) {
        const bool last = k > 0 && k + 1 == spec.input_count;
        check_input(b, kind, &b->values.data[spec.input[k]], last && kind->needs == LAYER_NEEDS_BIASED);
    }
    if (yaml_find(node, "share")) {
        read_share(r, yaml_find(node, "share"));
    }
    read_attrs(r, id, node, &spec);
    if (!b->broken) {
        const uint32_t output = kind->expand(b, &spec);
        b->layers.data[b->layer].output = b->broken ? HR_NO_ID : output;
    }
    layer_note *note = &r->notes.data[b->layer];
    note->params.end = b->params.count;
    note->width = widths_left(b, kind, b->layers.data[b->layer].name);
    if (b->shared.layer != HR_NO_ID) {
        note->params = b->shared;
    }
}

static void read_layer(model_reader *r, const yaml_node *node)
{
    model_builder *b = r->b;
    b->node = node;
    b->broken = false;
    const bool mapping = node->kind == YAML_MAPPING;
    const yaml_node *kind_node = mapping ? yaml_find(node, "kind") : NULL;
    const yaml_node *written = mapping ? yaml_find(node, "name") : NULL;
    const bool kind_is_word = kind_node && kind_node->kind == YAML_SCALAR && model_is_name(kind_node->text);
    const layer_kind_id id = kind_is_word ? layer_kind_find(kind_node->text) : LAYER_KIND_COUNT;
    // Of a kind that is not ours the file's own word serves: such a model does not outlive the file.
    const char *kind_word = id != LAYER_KIND_COUNT ? layer_kind_at(id)->name
                            : kind_is_word         ? kind_node->text
                                                   : "no kind";
    char out[READER_WORD_MAX];
    const char *word = written ? reader_word(r, written, out) : NULL;
    if (!begin_layer(r, node, name_layer(r, written, word, id), kind_word)) {
        return;
    }
    register_name(r, written, word);
    if (!mapping) {
        builder_problem(b, "a layer is a mapping such as {kind: dense, units: 10}");
        mark_inputs(r, node);
    } else if (id == LAYER_KIND_COUNT) {
        report_bad_kind(b, kind_node);
        mark_inputs(r, node);
    } else {
        read_known_layer(r, id, node);
    }
}

// ---- lists and repeats ----------------------------------------------------------------------------------------

static void read_list(model_reader *r, const yaml_node *layers);

static const attr_row repeat_row = {
    .name = "repeat", .type = ATTR_TYPE_INT, .min = 1, .max = MODEL_MAX_LAYERS};

// What stands in a repeat is read round by round. After a round with a problem the others would only say it again.
static void read_rounds(model_reader *r, const yaml_node *layers, const char *index, int64_t rounds)
{
    repeat_round round = {.outer = r->round, .index = index};
    const uint32_t problems = r->b->problems;
    r->round = &round;
    for (; round.number < rounds && r->b->problems == problems && !r->b->nomem; round.number++) {
        round.first_layer = r->b->layers.count;
        read_list(r, layers);
    }
    r->cut = r->cut || round.number < rounds;
    r->round = round.outer;
}

static void read_repeat(model_reader *r, const yaml_node *node)
{
    static const char *const words[] = {"repeat", "index", "layers"};
    model_builder *b = r->b;
    const uint32_t problems = b->problems;
    attr_value rounds = {0};
    const yaml_node *index = yaml_find(node, "index");
    const yaml_node *layers = yaml_find(node, "layers");
    b->layer = HR_NO_ID;
    b->node = node;
    reader_refuse_other_keys(b, node, "a repeat", words, sizeof words / sizeof *words);
    attr_read(b, &repeat_row, yaml_find(node, "repeat"), &rounds);
    if (index && (index->kind != YAML_SCALAR || !model_is_name(index->text) || strpbrk(index->text, "-."))) {
        builder_problem_at(b, index->line, index->column,
                           "the index of a repeat needs a plain name such as i");
    }
    if (!layers || layers->kind != YAML_SEQUENCE || layers->count == 0) {
        const yaml_node *at = layers ? layers : node;
        builder_problem_at(b, at->line, at->column, "a repeat needs layers: a list of at least one layer");
    }
    if (b->problems == problems) {
        read_rounds(r, layers, index ? index->text : NULL, rounds.integer);
    } else {
        r->cut = r->unresolved = true;
    }
}

static bool may_go_on(model_reader *r, const yaml_node *node)
{
    model_builder *b = r->b;
    if (b->layers.count == MODEL_MAX_LAYERS && b->problems == 0) {
        b->layer = HR_NO_ID;
        builder_problem_at(b, node->line, node->column,
                           "the model has more than %d layers, repeats written out", MODEL_MAX_LAYERS);
    }
    return !b->nomem && b->layers.count < MODEL_MAX_LAYERS && b->problems < MODEL_MAX_PROBLEMS;
}

static void read_list(model_reader *r, const yaml_node *layers)
{
    for (const yaml_node *node = layers->child; node; node = node->next) {
        if (!may_go_on(r, node)) {
            r->unresolved = r->cut = true;
            return;
        }
        if (node->kind == YAML_MAPPING && yaml_find(node, "repeat")) {
            read_repeat(r, node);
        } else {
            read_layer(r, node);
        }
    }
}

void read_layers(model_reader *r)
{
    read_list(r, r->layers);
    r->b->layer = HR_NO_ID;
    r->b->widths.here = (model_width){.node = NULL};
}
