// SPDX-License-Identifier: Apache-2.0
// From calls to lines: names, weights that are shared, models within models, and all that is refused.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "keras.h"

enum { NAME_SHOWN = 60, NAME_BYTES = 96, MODEL_OUTPUTS = 64 };

void keras_walk_deinit(keras_walk *w)
{
    vec_deinit(&w->lines);
    vec_deinit(&w->name_counts);
    vec_deinit(&w->first_lines);
    vec_deinit(&w->problems);
    intern_deinit(&w->names);
    intern_deinit(&w->owners);
    intern_deinit(&w->reasons);
}

uint32_t keras_refuse(keras_walk *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->why[0] == '\0') {
        (void)vsnprintf(w->why, sizeof w->why, format, args);
    }
    va_end(args);
    return KERAS_NONE;
}

// ---- names ----------------------------------------------------------------------------------------------------

static bool is_taken(const char *word)
{
    static const char *const words[] = {"input", "before", "previous", "labels", "probs", "loss", "correct"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        if (strcmp(words[k], word) == 0) {
            return true;
        }
    }
    return false;
}

// The name's letters, digits, '_', '.' and '-', the last NAME_SHOWN of them.
static void plain_word(const char *name, const char *suffix, char out[NAME_BYTES])
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    const size_t tail = strlen(suffix);
    while (*name == '-') {
        name++;
    }
    const size_t length = strlen(name), most = NAME_SHOWN - tail;
    name += length > most ? length - most : 0;
    (void)snprintf(out, NAME_BYTES, "%s%s%s", name, suffix, name[0] == '\0' && tail == 0 ? "layer" : "");
    for (char *c = out; *c != '\0'; c++) {
        *c = strchr(allowed, *c) != NULL ? *c : '_';
    }
    if (is_taken(out)) {
        (void)strcat(out, "_layer");
    }
}

// How often the name has come, this time counted; 0: no memory.
static uint32_t count_name(keras_walk *w, const char *word, uint32_t *number)
{
    *number = intern_add(&w->names, word, strlen(word));
    if (*number != INTERN_NONE && *number == w->name_counts.count && vec_push(&w->name_counts) == NULL) {
        *number = INTERN_NONE;
    }
    w->nomem = w->nomem || *number == INTERN_NONE;
    return *number == INTERN_NONE ? 0 : ++w->name_counts.data[*number];
}

static uint32_t unique_name(keras_walk *w, const char *name, const char *suffix)
{
    char word[NAME_BYTES], numbered[NAME_BYTES + 16];
    uint32_t number = 0;
    plain_word(name, suffix, word);
    for (uint32_t come = count_name(w, word, &number); come > 1; come = count_name(w, word, &number)) {
        (void)snprintf(numbered, sizeof numbered, "%s_%u", word, come - 1);
        const size_t length = strlen(numbered);
        (void)text_copy(word, sizeof word, numbered + (length > NAME_SHOWN ? length - NAME_SHOWN : 0));
    }
    return number;
}

// ---- lines ----------------------------------------------------------------------------------------------------

bool keras_same_shape(const keras_shape *a, const keras_shape *b)
{
    return a->rank == b->rank && memcmp(a->side, b->side, a->rank * sizeof *a->side) == 0;
}

int64_t keras_product(const keras_shape *s)
{
    int64_t product = 1;
    for (uint32_t k = 0; k < s->rank; k++) {
        product = product > MODEL_TEXT_ELEMENTS / s->side[k] ? MODEL_TEXT_ELEMENTS : product * s->side[k];
    }
    return product;
}

uint64_t keras_weights(const int64_t *sides, int count)
{
    keras_shape s = {.rank = (uint32_t)count};
    memcpy(s.side, sides, (size_t)count * sizeof *sides);
    return (uint64_t)keras_product(&s);
}

const keras_line *keras_input(const keras_walk *w, uint32_t k)
{
    return &w->lines.data[w->inputs[k]];
}

static uint32_t add_line(keras_walk *w, const char *kind, const uint32_t *inputs, uint32_t count,
                         const keras_shape *shape)
{
    if (w->lines.count >= KERAS_LINES) {
        return keras_refuse(w, "beyond the %d layers of a model", KERAS_LINES);
    }
    keras_line *line = vec_push(&w->lines);
    if (line == NULL) {
        w->nomem = true;
        return KERAS_NONE;
    }
    *line = (keras_line){.kind = kind, .shape = *shape, .input_count = count, .name = KERAS_NONE};
    if (count > 0) {
        memcpy(line->inputs, inputs, count * sizeof *inputs);
    }
    return w->lines.count - 1;
}

static bool shape_is_good(keras_walk *w, const keras_shape *shape)
{
    for (uint32_t k = 0; k < shape->rank; k++) {
        if (shape->side[k] < 1) {
            (void)keras_refuse(w, "leaves nothing of what it is given");
            return false;
        }
    }
    if (keras_product(shape) >= MODEL_TEXT_ELEMENTS) {
        (void)keras_refuse(w, "a tensor beyond the largest of 2^40 elements");
    }
    return w->why[0] == '\0';
}

uint32_t keras_emit_of(keras_walk *w, const char *kind, const uint32_t *inputs, uint32_t count,
                       const keras_shape *shape, const char *suffix)
{
    for (uint32_t k = 0; k < count; k++) {
        if (inputs[k] == KERAS_NONE) {
            return KERAS_NONE;
        }
        if (strncmp(w->lines.data[inputs[k]].kind, "plus3", 5) == 0) {
            return keras_refuse(w, "reads a sum with a number, for which there is no layer");
        }
    }
    if (!shape_is_good(w, shape)) {
        return KERAS_NONE;
    }
    uint32_t sources[KERAS_INPUTS] = {0}; // the lines may move
    memcpy(sources, inputs, count * sizeof *inputs);
    const uint32_t line = add_line(w, kind, sources, count, shape);
    if (line != KERAS_NONE) {
        w->lines.data[line].name = unique_name(w, w->layer->name, suffix);
    }
    return line;
}

uint32_t keras_emit(keras_walk *w, const char *kind, const keras_shape *shape)
{
    return keras_emit_of(w, kind, w->inputs, w->input_count, shape, "");
}

void keras_say(keras_walk *w, uint32_t line, const char *format, ...)
{
    if (line == KERAS_NONE) {
        return;
    }
    char *attrs = w->lines.data[line].attrs;
    const size_t used = strlen(attrs);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(attrs + used, sizeof w->lines.data[line].attrs - used, format, args);
    va_end(args);
}

void keras_say_pair(keras_walk *w, uint32_t line, const char *key, const int64_t pair[2], int64_t otherwise)
{
    if (pair[0] != pair[1]) {
        keras_say(w, line, ", %s: [%lld, %lld]", key, (long long)pair[0], (long long)pair[1]);
    } else if (pair[0] != otherwise) {
        keras_say(w, line, ", %s: %lld", key, (long long)pair[0]);
    }
}

void keras_say_real(keras_walk *w, uint32_t line, const char *key, double value, double otherwise)
{
    char number[CONFIG_REAL_TEXT];
    if (value != otherwise) {
        keras_say(w, line, ", %s: %s", key, config_real_text(value, number));
    }
}

uint32_t keras_reshaped(keras_walk *w, uint32_t line, const keras_shape *shape, const char *suffix)
{
    const keras_shape *had = line == KERAS_NONE ? NULL : &w->lines.data[line].shape;
    if (had == NULL || keras_same_shape(had, shape)) {
        return line;
    }
    const uint32_t out = keras_emit_of(w, "reshape", &line, 1, shape, suffix);
    keras_say(w, out, ", shape: [");
    for (uint32_t k = 0; k < shape->rank; k++) {
        keras_say(w, out, "%s%lld", k > 0 ? ", " : "", (long long)shape->side[k]);
    }
    keras_say(w, out, "]");
    return out;
}

// Layers are told apart by where they stand in the file, or by the number that Keras gives one that stands twice.
static uint32_t owner_of(keras_walk *w)
{
    char word[48];
    const json_t *shared = json_object_get(w->layer->whole, "shared_object_id");
    if (json_is_integer(shared)) {
        (void)snprintf(word, sizeof word, "#%lld", (long long)json_integer_value(shared));
    } else {
        (void)snprintf(word, sizeof word, "%p", (const void *)w->layer->whole);
    }
    return intern_add(&w->owners, word, strlen(word));
}

void keras_own(keras_walk *w, uint32_t line, uint64_t parameters)
{
    if (line == KERAS_NONE) {
        return;
    }
    const uint32_t owner = owner_of(w);
    if (owner == INTERN_NONE || (owner == w->first_lines.count && vec_push(&w->first_lines) == NULL)) {
        w->nomem = true;
        return;
    }
    uint32_t *first = &w->first_lines.data[owner];
    if (*first == 0) {
        *first = line + 1;
        w->frozen += json_is_false(json_object_get(w->layer->config, "trainable"));
    } else {
        w->lines.data[line].share = *first;
    }
    w->lines.data[line].parameters = parameters;
}

// ---- problems -------------------------------------------------------------------------------------------------

static void keep_problem(keras_walk *w)
{
    char words[256];
    (void)snprintf(words, sizeof words, "%.60s\x1f%s", w->layer->class_name, w->why);
    const uint32_t number = intern_add(&w->reasons, words, strlen(words));
    w->why[0] = '\0';
    if (number == INTERN_NONE || (number == w->problems.count && vec_push(&w->problems) == NULL)) {
        w->nomem = true;
        return;
    }
    keras_problem *p = &w->problems.data[number];
    if (p->count++ == 0) {
        p->text = number;
        p->name = w->layer->name;
    }
}

static hr_status refuse_all(const keras_walk *w, hr_err *err)
{
    char all[360];
    size_t used = 0;
    all[0] = '\0';
    for (uint32_t k = 0; k < w->problems.count && used < sizeof all - 1; k++) {
        const keras_problem *p = &w->problems.data[k];
        const char *words = intern_text(&w->reasons, p->text), *why = strchr(words, '\x1f');
        char more[32] = "";
        if (p->count > 1) {
            (void)snprintf(more, sizeof more, " and %u more", p->count - 1);
        }
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s '%.60s'%s: %s", k > 0 ? "; " : "",
                                 (int)(why - words), words, p->name, more, why + 1);
    }
    for (char *c = all; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    if (w->problems.count == 0) {
        (void)snprintf(all, sizeof all, "an output that no layer gives");
    }
    const hr_status status = HR_FAIL(err, PRESET, "%.120s: not in the layer language: %s%s", w->path, all,
                                     used >= sizeof all ? "..." : "");
    hr_err_try(err, "headroom presets, for a model like it that can be copied and changed");
    return status;
}

// ---- the walk -------------------------------------------------------------------------------------------------

static hr_status walk_graph(keras_walk *w, const keras_graph *g, const uint32_t *inputs, uint32_t *outputs,
                            hr_err *err);

// The graph of a model that is a layer here. False: refused.
static hr_status walk_nested(keras_walk *w, uint32_t *outputs, uint32_t *count, hr_err *err)
{
    keras_graph inner = {0};
    const keras_walk here = *w;
    *count = 0;
    if (w->depth >= KERAS_DEPTH) {
        (void)keras_refuse(w, "models in one another, more than %d deep", KERAS_DEPTH);
        return HR_OK;
    }
    if (w->parts > KERAS_PARTS) {
        (void)keras_refuse(
            w, "models in one another whose layers and calls, counted at each call, are more than %d",
            KERAS_PARTS);
        return HR_OK;
    }
    hr_status status = keras_graph_read(w->path, w->layer->whole, &inner, err);
    w->parts += inner.parts;
    if (status == HR_OK && (inner.inputs.count != w->input_count || inner.outputs.count > MODEL_OUTPUTS)) {
        (void)keras_refuse(w, "a model with other inputs than it is given, or more than %d outputs",
                           MODEL_OUTPUTS);
    } else if (status == HR_OK) {
        w->depth++;
        status = walk_graph(w, &inner, here.inputs, outputs, err);
        w->depth--;
        *count = inner.outputs.count;
        w->layer = here.layer;
        w->node = here.node;
        w->inputs = here.inputs;
        w->input_count = here.input_count;
    }
    keras_graph_deinit(&inner);
    return status;
}

static bool all_there(const uint32_t *lines, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        if (lines[k] == KERAS_NONE) {
            return false;
        }
    }
    return true;
}

static uint32_t call_row(keras_walk *w)
{
    const char *module = json_string_value(json_object_get(w->layer->whole, "module"));
    uint32_t most = 0;
    const keras_row row = w->row_of(w->layer->class_name, &most);
    if (module != NULL && strcmp(module, "keras") != 0 && strncmp(module, "keras.", 6) != 0 &&
        strncmp(module, "tf_keras", 8) != 0) {
        return keras_refuse(w, "a class of %.60s, which no file describes", module);
    }
    if (row == NULL) {
        return keras_refuse(w, "no layer of headroom does this");
    }
    if (w->input_count < 1 || w->input_count > most) {
        return keras_refuse(w, "is given %u tensors", w->input_count);
    }
    const uint32_t line = row(w);
    return w->why[0] == '\0' ? line : KERAS_NONE;
}

typedef struct results { // of the calls of one graph
    uint32_t *first, *count;
    VEC(uint32_t) lines;
    VEC(uint32_t) inputs; // of the call at hand
} results;

static uint32_t result_of(const results *made, keras_ref ref)
{
    return ref.output < made->count[ref.node] ? made->lines.data[made->first[ref.node] + ref.output]
                                              : KERAS_NONE;
}

static bool keep_results(keras_walk *w, results *made, uint32_t node, const uint32_t *lines, uint32_t count)
{
    made->first[node] = made->lines.count;
    made->count[node] = count;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t *place = vec_push(&made->lines);
        w->nomem = w->nomem || place == NULL;
        if (place == NULL) {
            made->count[node] = 0;
            return false;
        }
        *place = lines[k];
    }
    return true;
}

static hr_status step(keras_walk *w, const keras_graph *g, results *made, uint32_t at, hr_err *err)
{
    const keras_node *node = &g->nodes.data[at];
    uint32_t lines[MODEL_OUTPUTS] = {KERAS_NONE}, count = 1;
    made->inputs.count = 0;
    for (uint32_t k = 0; k < node->ref_count; k++) {
        uint32_t *place = vec_push(&made->inputs);
        if (place == NULL) {
            w->nomem = true;
            return HR_OK;
        }
        *place = result_of(made, g->refs.data[node->first_ref + k]);
    }
    w->layer = &g->layers.data[node->layer];
    w->node = node;
    w->inputs = made->inputs.data;
    w->input_count = node->ref_count;
    if (all_there(w->inputs, w->input_count)) { // what follows a call that was refused says nothing new
        if (++w->work > 2 * KERAS_LINES) {
            (void)keras_refuse(w, "beyond the %d layers of a model", KERAS_LINES);
        } else if (keras_is_model(w->layer->class_name)) {
            HR_TRY(walk_nested(w, lines, &count, err));
        } else {
            lines[0] = call_row(w);
        }
        if (w->why[0] != '\0') {
            lines[0] = KERAS_NONE;
            count = 1;
            keep_problem(w);
        }
    }
    (void)keep_results(w, made, at, lines, count);
    return HR_OK;
}

static hr_status walk_graph(keras_walk *w, const keras_graph *g, const uint32_t *inputs, uint32_t *outputs,
                            hr_err *err)
{
    hr_status status = HR_OK;
    results made = {.first = hr_calloc(g->nodes.count, sizeof *made.first),
                    .count = hr_calloc(g->nodes.count, sizeof *made.count)};
    w->nomem = w->nomem || made.first == NULL || made.count == NULL;
    w->work += g->layers.count; // reading it took that much
    for (uint32_t k = 0; k < g->inputs.count && !w->nomem; k++) {
        (void)keep_results(w, &made, g->inputs.data[k].node, &inputs[k], 1);
    }
    for (uint32_t k = 0; k < g->order.count && !w->nomem && status == HR_OK; k++) {
        status = step(w, g, &made, g->order.data[k], err);
    }
    for (uint32_t k = 0; k < g->outputs.count; k++) {
        outputs[k] = w->nomem || status != HR_OK ? KERAS_NONE : result_of(&made, g->outputs.data[k]);
    }
    vec_deinit(&made.lines);
    vec_deinit(&made.inputs);
    hr_free(made.first);
    hr_free(made.count);
    return status == HR_OK && w->nomem ? HR_FAIL(err, NOMEM, "%.200s: no memory to read it", w->path)
                                       : status;
}

// ---- the model ------------------------------------------------------------------------------------------------

// `batch_shape`, of Keras 2 `batch_input_shape`; of a Sequential without an input perhaps what it was built with.
static const json_t *shape_of_input(const keras_layer *layer)
{
    const json_t *shape = json_object_get(layer->config, "batch_shape");
    shape = json_is_array(shape) ? shape : json_object_get(layer->config, "batch_input_shape");
    return json_is_array(shape) ? shape : NULL;
}

static uint32_t take_input(keras_walk *w, const keras_layer *layer, bool alone)
{
    const json_t *shape = shape_of_input(layer);
    keras_shape s = {0};
    const size_t sides = json_array_size(shape);
    w->layer = layer;
    if (sides < 2 || sides > KERAS_DIMS + 1) {
        return keras_refuse(w, "an input without a shape of 1 to %d sizes; try: keras.Input first",
                            KERAS_DIMS);
    }
    for (size_t k = 1; k < sides; k++) {
        const json_t *side = json_array_get(shape, k);
        if (!json_is_integer(side) || json_integer_value(side) < 1 ||
            json_integer_value(side) > MODEL_TEXT_COUNT) {
            return keras_refuse(w, "a size that is not fixed; try: an Input with every size");
        }
        s.side[s.rank++] = json_integer_value(side);
    }
    if (!shape_is_good(w, &s)) {
        return KERAS_NONE;
    }
    const uint32_t line = add_line(w, "input", NULL, 0, &s);
    if (line != KERAS_NONE && !alone) {
        w->lines.data[line].name = unique_name(w, layer->name, "");
    }
    return line;
}

hr_status keras_walk_model(keras_walk *w, const keras_graph *g, uint32_t *outputs, hr_err *err)
{
    uint32_t *inputs = hr_calloc(g->inputs.count, sizeof *inputs);
    w->nomem = inputs == NULL;
    w->top = g;
    for (uint32_t k = 0; k < g->inputs.count && !w->nomem; k++) {
        const keras_layer *layer = &g->layers.data[g->nodes.data[g->inputs.data[k].node].layer];
        inputs[k] = take_input(w, layer, g->inputs.count == 1);
        if (w->why[0] != '\0') {
            keep_problem(w);
        }
    }
    hr_status status = HR_OK;
    if (w->problems.count == 0 && !w->nomem) {
        status = walk_graph(w, g, inputs, outputs, err);
    }
    hr_free(inputs);
    if (status != HR_OK || w->nomem) {
        return status != HR_OK ? status : HR_FAIL(err, NOMEM, "%.200s: no memory to read it", w->path);
    }
    for (uint32_t k = 0; k < g->outputs.count && w->problems.count == 0 && !w->nomem; k++) {
        if (outputs[k] != KERAS_NONE && strncmp(w->lines.data[outputs[k]].kind, "plus3", 5) == 0) {
            outputs[k] = KERAS_NONE; // a sum with a number
        }
    }
    if (w->frozen > 0) {
        model_note(w->t, "%u %s frozen in Keras, and %s.", w->frozen,
                   w->frozen == 1 ? "layer is" : "layers are",
                   w->frozen == 1 ? "is written as it trains" : "are written as they train");
    }
    return w->problems.count > 0 || !all_there(outputs, g->outputs.count) ? refuse_all(w, err) : HR_OK;
}
