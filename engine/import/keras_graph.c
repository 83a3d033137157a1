// SPDX-License-Identifier: Apache-2.0
// Layers and their calls out of the JSON of a Sequential or Functional model: `inbound_nodes` of Keras 3, where each tensor says
// its keras_history, and of Keras 2, where a list says layer, call and tensor.
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "keras.h"

enum { ARGUMENT_DEPTH = 8 };

typedef struct reading {
    const char *path;
    keras_graph *g;
    intern names;
    char why[160];
    bool nomem;
} reading;

static void wrong(reading *r, const char *name, const char *what)
{
    if (r->why[0] == '\0') {
        (void)snprintf(r->why, sizeof r->why, "the layer '%.60s' %s", name, what);
    }
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
    const char *word = json_string_value(json_object_get(object, key));
    return word != NULL ? word : otherwise;
}

bool keras_is_model(const char *class_name)
{
    return strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
           strcmp(class_name, "Model") == 0;
}

// ---- layers ---------------------------------------------------------------------------------------------------

static keras_layer *add_layer(reading *r, const json_t *whole)
{
    keras_layer *layer = vec_push(&r->g->layers);
    if (layer == NULL) {
        r->nomem = true;
        return NULL;
    }
    const json_t *said = json_object_get(whole, "config");
    *layer = (keras_layer){.whole = whole,
                           .config = said,
                           .class_name = text_of(whole, "class_name", ""),
                           .name = text_of(said, "name", text_of(whole, "name", "")),
                           .first_node = r->g->nodes.count};
    if (strlen(layer->name) > KERAS_NAME_BYTES || strlen(text_of(whole, "name", "")) > KERAS_NAME_BYTES) {
        wrong(r, layer->name, "has a longer name than a layer can have");
    }
    return layer;
}

static keras_node *add_node(reading *r, uint32_t layer)
{
    keras_node *node = vec_push(&r->g->nodes);
    if (node == NULL) {
        r->nomem = true;
        return NULL;
    }
    *node = (keras_node){.layer = layer, .first_ref = r->g->refs.count};
    r->g->layers.data[layer].node_count++;
    return node;
}

static void add_ref(reading *r, keras_ref ref)
{
    keras_ref *place = vec_push(&r->g->refs);
    if (place == NULL) {
        r->nomem = true;
        return;
    }
    *place = ref;
    r->g->nodes.data[r->g->nodes.count - 1].ref_count++;
}

// ---- Sequential -----------------------------------------------------------------------------------------------

static void read_chain(reading *r, const json_t *said)
{
    const json_t *list = json_object_get(said, "layers");
    const char *first = text_of(json_array_get(list, 0), "class_name", "");
    if (strcmp(first, "InputLayer") != 0 && add_layer(r, NULL) != NULL) {
        r->g->layers.data[0].class_name = "InputLayer";
        r->g->layers.data[0].config = json_object_get(json_array_get(list, 0), "config");
        r->g->layers.data[0].name = "input";
        (void)add_node(r, 0);
    }
    for (size_t k = 0; k < json_array_size(list) && !r->nomem; k++) {
        if (add_layer(r, json_array_get(list, k)) == NULL) {
            return;
        }
        const keras_node *node = add_node(r, r->g->layers.count - 1);
        if (node != NULL && r->g->nodes.count > 1) {
            add_ref(r, (keras_ref){.node = r->g->nodes.count - 2});
        }
    }
    if (!r->nomem && r->g->nodes.count > 0) {
        keras_ref *in = vec_push(&r->g->inputs), *out = vec_push(&r->g->outputs);
        r->nomem = in == NULL || out == NULL;
        if (!r->nomem) {
            out->node = r->g->nodes.count - 1;
        }
    }
}

// ---- Functional -----------------------------------------------------------------------------------------------

// What [layer, call, tensor] names. In Keras 2 everywhere, and in Keras 3 as a result of the model, a model's calls within
// another are counted from 1.
static bool find_ref(reading *r, const json_t *history, bool of_model, keras_ref *out)
{
    const char *name = json_string_value(json_array_get(history, 0));
    const json_t *call = json_array_get(history, 1), *tensor = json_array_get(history, 2);
    const uint32_t found = name != NULL ? intern_find(&r->names, name, strlen(name)) : INTERN_NONE;
    if (found == INTERN_NONE || !json_is_integer(call) || !json_is_integer(tensor)) {
        wrong(r, name != NULL ? name : "", "is named, and there is none");
        return false;
    }
    const keras_layer *layer = &r->g->layers.data[found];
    const bool later = r->g->legacy ? keras_is_model(layer->class_name)
                                    : of_model && keras_is_model(layer->class_name) &&
                                          strcmp(layer->class_name, "Sequential") != 0;
    const json_int_t index = json_integer_value(call) - (later ? 1 : 0), output = json_integer_value(tensor);
    if (index < 0 || index >= (json_int_t)layer->node_count || output < 0 || output > 255) {
        wrong(r, layer->name, "is named with a call that is not in the file");
        return false;
    }
    *out = (keras_ref){.node = layer->first_node + (uint32_t)index, .output = (uint32_t)output};
    return true;
}

static bool is_history(const reading *r, const json_t *value)
{
    return r->g->legacy && json_array_size(value) >= 3 && json_is_string(json_array_get(value, 0)) &&
           json_is_integer(json_array_get(value, 1)) && json_is_integer(json_array_get(value, 2));
}

static void take_tensors(reading *r, const json_t *value, int depth);

// Keywords stand in the file as the call had them; query, value and key are what attention is given in this order.
// NOLINTNEXTLINE(misc-no-recursion): ARGUMENT_DEPTH bounds it
static void take_keywords(reading *r, const json_t *words, int depth)
{
    static const char *const first[] = {"query", "value", "key"};
    const char *key = NULL;
    json_t *one = NULL;
    for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
        take_tensors(r, json_object_get(words, first[k]), depth);
    }
    json_object_foreach((json_t *)(uintptr_t)words, key, one)
    {
        bool taken = false;
        for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
            taken = taken || strcmp(key, first[k]) == 0;
        }
        if (!taken) {
            take_tensors(r, one, depth);
        }
    }
}

// Every tensor of an argument, in order.
// NOLINTNEXTLINE(misc-no-recursion): ARGUMENT_DEPTH bounds it
static void take_tensors(reading *r, const json_t *value, int depth)
{
    keras_ref ref;
    r->g->parts++;
    if (depth > ARGUMENT_DEPTH || r->nomem) {
        return;
    }
    if (is_history(r, value)) {
        if (find_ref(r, value, false, &ref)) {
            add_ref(r, ref);
        }
        const json_t *words = json_array_get(value, 3);
        if (words != NULL) {
            take_tensors(r, words, depth + 1);
        }
    } else if (json_is_array(value)) {
        for (size_t k = 0; k < json_array_size(value); k++) {
            take_tensors(r, json_array_get(value, k), depth + 1);
        }
    } else if (json_is_object(value)) {
        const char *of = text_of(value, "class_name", "");
        if (strcmp(of, "__keras_tensor__") == 0) {
            if (find_ref(r, json_object_get(json_object_get(value, "config"), "keras_history"), false,
                         &ref)) {
                add_ref(r, ref);
            }
        } else if (strcmp(of, "__tuple__") == 0) {
            take_tensors(r, json_object_get(value, "items"), depth + 1);
        } else if (of[0] == '\0') {
            take_keywords(r, value, depth + 1);
        }
    }
}

static void read_layers(reading *r, const json_t *list)
{
    for (size_t k = 0; k < json_array_size(list) && !r->nomem && r->why[0] == '\0'; k++) {
        const keras_layer *layer = add_layer(r, json_array_get(list, k));
        if (layer == NULL) {
            return;
        }
        const json_t *calls = json_object_get(layer->whole, "inbound_nodes");
        r->g->legacy = r->g->legacy || json_is_array(json_array_get(calls, 0));
        const char *named = text_of(layer->whole, "name", layer->name); // calls say this one
        const uint32_t number = intern_add(&r->names, named, strlen(named));
        r->nomem = number == INTERN_NONE;
        if (!r->nomem && number != r->g->layers.count - 1) {
            wrong(r, named, "is there twice");
        }
        const bool begins = strcmp(layer->class_name, "InputLayer") == 0;
        for (size_t c = 0; c < (begins ? 1 : json_array_size(calls)) && !r->nomem; c++) {
            (void)add_node(r, r->g->layers.count - 1);
        }
    }
}

// Refs of all calls, in the order of the calls; add_ref counts at the last node, so that they are read into it one by one.
static void read_calls(reading *r)
{
    const uint32_t count = r->g->nodes.count;
    for (uint32_t k = 0; k < count && !r->nomem; k++) {
        r->g->nodes.count = k + 1;
        keras_node *node = &r->g->nodes.data[k];
        const keras_layer *layer = &r->g->layers.data[node->layer];
        node->first_ref = r->g->refs.count;
        if (strcmp(layer->class_name, "InputLayer") == 0) {
            continue;
        }
        const json_t *call =
            json_array_get(json_object_get(layer->whole, "inbound_nodes"), k - layer->first_node);
        if (json_is_object(call)) {
            node->args = json_object_get(call, "args");
            node->kwargs = json_object_get(call, "kwargs");
            take_tensors(r, node->args, 0);
            take_tensors(r, node->kwargs, 0);
        } else {
            const json_t *only = is_history(r, call) ? call : json_array_get(call, 0);
            node->kwargs = json_array_get(only, 3);
            take_tensors(r, call, 0);
        }
    }
    r->g->nodes.count = count;
}

// `output_layers`: one, a list of them, or an object of them.
static void read_ends(reading *r, const json_t *list, bool inputs)
{
    const bool one = json_is_string(json_array_get(list, 0));
    const size_t count = one ? 1 : json_is_object(list) ? json_object_size(list) : json_array_size(list);
    void *at = json_object_iter((json_t *)(uintptr_t)list);
    for (size_t k = 0; k < count && r->why[0] == '\0' && !r->nomem; k++) {
        keras_ref ref;
        const json_t *history = one                    ? list
                                : json_is_object(list) ? json_object_iter_value(at)
                                                       : json_array_get(list, k);
        at = json_is_object(list) ? json_object_iter_next((json_t *)(uintptr_t)list, at) : NULL;
        if (find_ref(r, history, true, &ref)) {
            keras_ref *place = inputs ? vec_push(&r->g->inputs) : vec_push(&r->g->outputs);
            r->nomem = place == NULL;
            if (place != NULL) {
                *place = ref;
            }
        }
    }
}

hr_status keras_graph_read(const char *path, const json_t *model, keras_graph *out, hr_err *err)
{
    reading r = {.path = path, .g = out};
    const json_t *said = json_object_get(model, "config");
    *out = (keras_graph){.legacy = false};
    if (!json_is_array(json_object_get(said, "layers"))) {
        wrong(&r, text_of(said, "name", text_of(model, "class_name", "")),
              "is a model without a list of layers");
    } else if (strcmp(text_of(model, "class_name", ""), "Sequential") == 0) {
        read_chain(&r, said);
    } else {
        read_layers(&r, json_object_get(said, "layers"));
        if (!r.nomem && r.why[0] == '\0') {
            read_calls(&r);
            read_ends(&r, json_object_get(said, "input_layers"), true);
            read_ends(&r, json_object_get(said, "output_layers"), false);
        }
    }
    if (!r.nomem && r.why[0] == '\0' && (out->inputs.count == 0 || out->outputs.count == 0)) {
        wrong(&r, text_of(said, "name", ""), "is a model without inputs or outputs");
    }
    if (!r.nomem && r.why[0] == '\0' && !keras_graph_order(out, &r.nomem) && !r.nomem) {
        wrong(&r, text_of(said, "name", ""), "has calls that go round in a circle");
    }
    intern_deinit(&r.names);
    out->parts += (uint64_t)out->layers.count + out->nodes.count + out->refs.count + out->inputs.count +
                  out->outputs.count;
    if (r.nomem) {
        return HR_FAIL(err, NOMEM, "%.200s: no memory to read it", path);
    }
    if (r.why[0] != '\0') {
        const hr_status status = HR_FAIL(err, PRESET, "%.200s: %s", path, r.why);
        hr_err_try(err, "the file as Keras writes it: model.to_json(), or model.save('model.keras')");
        return status;
    }
    return HR_OK;
}

void keras_graph_deinit(keras_graph *g)
{
    vec_deinit(&g->layers);
    vec_deinit(&g->nodes);
    vec_deinit(&g->refs);
    vec_deinit(&g->inputs);
    vec_deinit(&g->outputs);
    vec_deinit(&g->order);
}
