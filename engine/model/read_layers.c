// SPDX-License-Identifier: Apache-2.0
// The layers of a model, one after the other: name, inputs, attributes, expansion. A layer can name only layers
// above it, so that a model has no cycles and one pass over the list is enough.
#include <string.h>

#include "headroom/event.h"

#include "model/attr_read.h"
#include "model/names.h"
#include "model/read.h"
#include "model/words.h"

typedef struct layer_note {
    uint32_t line, column; // where the layer stands
    bool used;             // some later layer reads it
} layer_note;

typedef struct reader {
    model_builder *b;
    name_table names;                   // of the layers so far
    VEC(layer_note) notes;              // one for each layer
    uint32_t unnamed[LAYER_KIND_COUNT]; // per kind, for Keras-style names
    bool unresolved;                    // some input names no layer: which layers feed nothing cannot be told
} reader;

static const char input_word[] = "input"; // the model's input, where a layer's name is expected

// ---- names ----------------------------------------------------------------------------------------------------

// "dense", then "dense_1", "dense_2" …, passing over names that a person gave.
static const char *next_name(reader *r, const layer_kind *kind)
{
    uint32_t *count = &r->unnamed[kind - layer_kind_at(0)];
    for (;;) {
        const char *name = *count == 0 ? arena_print(&r->b->names, "%s", kind->name)
                                       : arena_print(&r->b->names, "%s_%u", kind->name, *count);
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
static const char *name_layer(reader *r, const yaml_node *name, const layer_kind *kind)
{
    if (name && model_is_name(name)) {
        return model_keep_name(r->b, name->text);
    }
    if (!name && kind) {
        return next_name(r, kind);
    }
    const char *number = arena_print(&r->b->names, "#%u", r->b->layers.count + 1);
    if (!number) {
        builder_nomem(r->b);
    }
    return number;
}

static void register_name(reader *r, const yaml_node *written)
{
    model_builder *b = r->b;
    const char *name = b->layers.data[b->layer].name;
    const yaml_node *at = written ? written : b->node;
    if (written && !model_is_name(written)) {
        builder_problem_at(b, at->line, at->column, MODEL_NAME_RULE);
    } else if (strcmp(name, input_word) == 0) {
        builder_problem_at(b, at->line, at->column, "'input' is the model's own input: choose another name");
    } else if (name_table_find(&r->names, name) != HR_NO_ID) {
        builder_problem_at(b, at->line, at->column, "the layer at line %u has this name already",
                           r->notes.data[name_table_find(&r->names, name)].line);
    } else if (!name_table_add(&r->names, name, b->layer)) {
        builder_nomem(b);
    }
}

// ---- inputs ---------------------------------------------------------------------------------------------------

// Suggests among the layers just above: far enough for a slip of the keys, and no search through them all.
static void report_unknown_input(reader *r, const yaml_node *node)
{
    enum { LOOK_BACK = 32 };
    const char *words[LOOK_BACK + 1] = {input_word};
    size_t count = 1;
    for (uint32_t i = r->b->layer; i > 0 && count <= LOOK_BACK; i--) {
        words[count++] = r->b->layers.data[i - 1].name;
    }
    char had[HAD_MAX], near[WORDS_MAX];
    builder_problem_at(r->b, node->line, node->column, "no layer above it is called %s%s",
                       had_node(node, had),
                       did_you_mean(model_is_name(node) ? node->text : NULL, words, count, near));
    r->unresolved = true;
}

// A value as an input; a broken one breaks its readers without another word.
static uint32_t use_value(reader *r, uint32_t value)
{
    r->b->broken = r->b->broken || value == HR_NO_ID;
    return value;
}

static uint32_t use_layer(reader *r, uint32_t layer)
{
    r->notes.data[layer].used = true;
    return use_value(r, r->b->layers.data[layer].output);
}

static uint32_t use_previous(reader *r)
{
    return r->b->layer == 0 ? use_value(r, r->b->model.slots[0].value) : use_layer(r, r->b->layer - 1);
}

static uint32_t use_named(reader *r, const yaml_node *node)
{
    if (model_is_name(node) && strcmp(node->text, input_word) == 0) {
        return use_value(r, r->b->model.slots[0].value);
    }
    const uint32_t layer = model_is_name(node) ? name_table_find(&r->names, node->text) : HR_NO_ID;
    if (layer == HR_NO_ID || layer == r->b->layer) {
        report_unknown_input(r, node);
        return HR_NO_ID;
    }
    return use_layer(r, layer);
}

static void read_one_input(reader *r, const yaml_node *node, layer_spec *spec)
{
    const yaml_node *plural = yaml_find(node, "inputs");
    const yaml_node *input = yaml_find(node, input_word);
    if (plural) {
        builder_problem_at(r->b, plural->key_line, plural->key_column, "takes one input: write input: NAME");
        r->unresolved = true;
        return;
    }
    spec->input[0] = input ? use_named(r, input) : use_previous(r);
}

static void read_two_inputs(reader *r, const yaml_node *node, layer_spec *spec)
{
    const yaml_node *inputs = yaml_find(node, "inputs");
    if (!inputs || inputs->kind != YAML_SEQUENCE || inputs->count != LAYER_MAX_INPUTS ||
        yaml_find(node, input_word)) {
        const yaml_node *at = inputs ? inputs : node;
        builder_problem_at(r->b, at->line, at->column, "needs two inputs: write inputs: [NAME, NAME]");
        r->unresolved = true;
        return;
    }
    spec->input[0] = use_named(r, inputs->child);
    spec->input[1] = use_named(r, inputs->child->next);
}

static void check_input_shape(model_builder *b, const layer_kind *kind, const layer_spec *spec)
{
    if (b->broken) {
        return;
    }
    char had[SHAPE_TEXT_MAX];
    const hr_shape *shape = &b->values.data[spec->input[0]].shape;
    if (kind->needs == LAYER_NEEDS_IMAGE && shape->rank != 4) {
        builder_problem(b, "needs an image [height, width, channels], had %s: put a reshape layer before it",
                        sample_shape_text(shape, had));
    } else if (kind->needs == LAYER_NEEDS_FEATURES && shape->rank != 2) {
        builder_problem(b, "needs plain features, had %s: put a flatten layer before it",
                        sample_shape_text(shape, had));
    }
}

// ---- attributes -----------------------------------------------------------------------------------------------

static bool is_common_key(const char *key)
{
    return strcmp(key, "name") == 0 || strcmp(key, "kind") == 0 || strcmp(key, input_word) == 0 ||
           strcmp(key, "inputs") == 0;
}

static attr_id find_attr(const layer_kind *kind, const char *key)
{
    const uint8_t *id = kind->attrs;
    while (*id != ATTR_NONE && strcmp(attr_row_of(*id)->name, key) != 0) {
        id++;
    }
    return *id;
}

static void report_unknown_attr(model_builder *b, const layer_kind *kind, const yaml_node *node)
{
    const char *words[LAYER_MAX_ATTRS + 3] = {"name", "kind", kind->inputs == 1 ? input_word : "inputs"};
    size_t count = 3;
    for (const uint8_t *id = kind->attrs; *id != ATTR_NONE; id++) {
        words[count++] = attr_row_of(*id)->name;
    }
    char had[HAD_MAX], near[WORDS_MAX];
    builder_problem_at(b, node->key_line, node->key_column, "has no attribute %s%s", had_word(node->key, had),
                       did_you_mean(node->key, words, count, near));
}

static void read_attrs(model_builder *b, const layer_kind *kind, const yaml_node *node, layer_spec *spec)
{
    uint32_t written = 0; // bit per attr_id
    for (const uint8_t *id = kind->attrs; *id != ATTR_NONE; id++) {
        spec->value[*id] = attr_default(attr_row_of(*id));
    }
    for (const yaml_node *child = node->child; child; child = child->next) {
        const attr_id id = is_common_key(child->key) ? ATTR_NONE : find_attr(kind, child->key);
        if (id != ATTR_NONE) {
            attr_read(b, attr_row_of(id), child, &spec->value[id]);
            written |= UINT32_C(1) << id;
        } else if (!is_common_key(child->key) && b->problems < MODEL_MAX_PROBLEMS) {
            report_unknown_attr(b, kind, child);
        }
    }
    for (const uint8_t *id = kind->attrs; *id != ATTR_NONE; id++) {
        const attr_row *row = attr_row_of(*id);
        if (row->required && !(written & UINT32_C(1) << *id) && !is_misspelt(node, row->name)) {
            builder_problem(b, "needs %s", row->name);
        }
    }
}

// ---- layers ---------------------------------------------------------------------------------------------------

static void report_bad_kind(model_builder *b, const yaml_node *kind)
{
    const char *words[LAYER_KIND_COUNT];
    for (size_t i = 0; i < LAYER_KIND_COUNT; i++) {
        words[i] = layer_kind_at(i)->name;
    }
    const yaml_node *at = kind ? kind : b->node;
    char list[WORDS_MAX], near[WORDS_MAX];
    builder_problem_at(
        b, at->line, at->column, "needs a kind: one of %s%s", word_list(words, LAYER_KIND_COUNT, list),
        did_you_mean(kind && kind->kind == YAML_SCALAR ? kind->text : NULL, words, LAYER_KIND_COUNT, near));
}

// Appends the layer, so that everything said from here on can name it. False when memory is short.
static bool begin_layer(reader *r, const yaml_node *node, const char *name, const char *kind)
{
    model_builder *b = r->b;
    model_layer *layer = name ? vec_push(&b->layers) : NULL;
    layer_note *note = layer ? vec_push(&r->notes) : NULL;
    if (!note) {
        builder_nomem(b);
        return false;
    }
    *layer = (model_layer){.name = name, .kind = kind, .output = HR_NO_ID};
    *note = (layer_note){.line = node->line, .column = node->column};
    b->layer = b->layers.count - 1;
    return true;
}

// A layer of no known kind still uses what it names, so that the layers above it are not blamed.
static void mark_inputs(reader *r, const yaml_node *node)
{
    const yaml_node *input = node->kind == YAML_MAPPING ? yaml_find(node, input_word) : NULL;
    const yaml_node *inputs = node->kind == YAML_MAPPING ? yaml_find(node, "inputs") : NULL;
    if (input) {
        (void)use_named(r, input);
    } else if (!inputs) {
        (void)use_previous(r);
    }
    for (const yaml_node *one = inputs ? inputs->child : NULL; one && r->b->problems < MODEL_MAX_PROBLEMS;
         one = one->next) {
        (void)use_named(r, one);
    }
}

static void read_known_layer(reader *r, const layer_kind *kind, const yaml_node *node)
{
    model_builder *b = r->b;
    layer_spec spec = {.input = {HR_NO_ID, HR_NO_ID}};
    (kind->inputs == 1 ? read_one_input : read_two_inputs)(r, node, &spec);
    check_input_shape(b, kind, &spec);
    read_attrs(b, kind, node, &spec);
    if (!b->broken) {
        const uint32_t output = kind->expand(b, &spec);
        b->layers.data[b->layer].output = b->broken ? HR_NO_ID : output;
    }
}

static void read_layer(reader *r, const yaml_node *node)
{
    model_builder *b = r->b;
    b->node = node;
    b->broken = false;
    const bool mapping = node->kind == YAML_MAPPING;
    const yaml_node *kind_node = mapping ? yaml_find(node, "kind") : NULL;
    const yaml_node *name = mapping ? yaml_find(node, "name") : NULL;
    const bool word = kind_node && model_is_name(kind_node);
    const layer_kind *kind = word ? layer_kind_of(kind_node->text) : NULL;
    // Of a kind that is not ours the file's own word serves: such a model does not outlive the file.
    const char *kind_word = kind ? kind->name : word ? kind_node->text : "no kind";

    if (!begin_layer(r, node, name_layer(r, name, kind), kind_word)) {
        return;
    }
    register_name(r, name);
    if (!mapping) {
        builder_problem(b, "a layer is a mapping such as {kind: dense, units: 10}");
        mark_inputs(r, node);
    } else if (!kind) {
        report_bad_kind(b, kind_node);
        mark_inputs(r, node);
    } else {
        read_known_layer(r, kind, node);
    }
}

static void report_unused(reader *r)
{
    model_builder *b = r->b;
    for (uint32_t i = 0; i + 1 < b->layers.count && b->problems < MODEL_MAX_PROBLEMS; i++) {
        if (!r->notes.data[i].used) {
            b->layer = i;
            builder_problem_at(b, r->notes.data[i].line, r->notes.data[i].column,
                               "feeds nothing: no layer below it takes it as input");
        }
    }
}

static void read_all(reader *r, const yaml_node *layers)
{
    model_builder *b = r->b;
    for (const yaml_node *node = layers->child; node && !b->nomem; node = node->next) {
        if (b->problems >= MODEL_MAX_PROBLEMS) {
            r->unresolved = true;
            break;
        }
        read_layer(r, node);
    }
    if (!b->nomem && !r->unresolved) {
        report_unused(r);
    }
}

void model_read_layers(model_builder *b, const yaml_node *layers)
{
    reader r = {.b = b};
    read_all(&r, layers);
    name_table_deinit(&r.names);
    vec_deinit(&r.notes);
}
