// SPDX-License-Identifier: Apache-2.0
#include "onnx_write.h"

#include <inttypes.h>
#include <string.h>

#include "model_text.h"
#include "onnx_layers.h"

enum { NAME_BYTES = 60, OUTPUTS_MAX = 8 };

typedef struct writer {
    walk *w;
    layer **layers; // in their order
    uint32_t count;
    layer *outputs[OUTPUTS_MAX];
    uint32_t output_count;
    int64_t places; // dimensions of an output
    intern names;
    VEC(uint32_t) again; // of each name, how many have asked for it since
    layer **owners;      // of each tensor of the file
    uint64_t parameters;
    text head, lines;
} writer;

static bool is_kind(const layer *l, const char *kind)
{
    return strcmp(l->kind, kind) == 0;
}

static bool is_one_of(const char *kind, const char *const *words, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (strcmp(words[k], kind) == 0) {
            return true;
        }
    }
    return false;
}

// ---- which layers ---------------------------------------------------------------------------------------------

static bool same_layer_shape(const layer *a, const layer *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

// The first tensor is what the loss judges, and so are others of its shape (auxiliary heads).
static bool find_outputs(writer *r)
{
    walk *w = r->w;
    uint32_t left = 0;
    for (const onnx_value *o = w->g->outputs; o != NULL; o = o->next) {
        const tensor *t = o->value == ONNX_NOTHING ? NULL : w->values[o->value].tensor;
        if (t == NULL || t->layer->open == OPEN_PARAMETER) {
            continue;
        }
        if (t->layer->open != OPEN_NOT && r->output_count > 0) {
            left++;
            continue;
        }
        if (!walk_is_closed(w, t)) {
            return false;
        }
        if (is_kind(t->layer, "input")) {
            return walk_refuse(w, "its output '%.60s' is an input as it is", o->name);
        }
        if (r->output_count > 0 &&
            (!same_layer_shape(t->layer, r->outputs[0]) || r->output_count == OUTPUTS_MAX)) {
            left++;
        } else {
            r->outputs[r->output_count++] = t->layer;
        }
    }
    if (left > 0) {
        walk_note(w, "%u more outputs are left out: the loss judges the first and those of its shape.", left);
    }
    return r->output_count > 0 || walk_refuse(w, "it has no output that a loss could judge") != NULL;
}

static bool collect(writer *r)
{
    uint32_t count = 0;
    for (layer *l = r->w->first; l != NULL; l = l->next) {
        count++;
    }
    r->layers = onnx_take(r->w->g, count + 1, sizeof *r->layers);
    for (layer *l = r->w->first; r->layers != NULL && l != NULL; l = l->next) {
        r->layers[r->count++] = l;
    }
    return r->layers != NULL;
}

// Those that reach an output, with how many read each.
static void keep_alive(writer *r)
{
    uint32_t kept = 0;
    for (uint32_t k = 0; k < r->output_count; k++) {
        r->outputs[k]->seen = true;
    }
    for (uint32_t k = r->count; k-- > 0;) {
        const layer *l = r->layers[k];
        for (uint32_t i = 0; l->seen && i < l->input_count; i++) {
            l->inputs[i]->seen = true;
            l->inputs[i]->readers++;
        }
    }
    for (uint32_t k = 0; k < r->count; k++) {
        if (r->layers[k]->seen) {
            r->layers[kept++] = r->layers[k];
        }
    }
    r->count = kept;
}

static bool is_output(const writer *r, const layer *l)
{
    for (uint32_t k = 0; k < r->output_count; k++) {
        if (r->outputs[k] == l) {
            return true;
        }
    }
    return false;
}

static layer *kept_of(layer *l)
{
    return l->gone != NULL ? l->gone : l;
}

// A layer that only an activation reads takes it as its own.
static void merge_activations(writer *r)
{
    static const char *const activations[] = {"relu",    "relu6",      "gelu",         "silu", "tanh",
                                              "sigmoid", "hard_swish", "hard_sigmoid", "mish", "softplus"};
    static const char *const takers[] = {"conv2d",  "depthwise_conv2d", "conv2d_transpose", "conv1d",
                                         "dense",   "batch_norm",       "group_norm",       "add",
                                         "multiply"};
    uint32_t kept = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        layer *l = r->layers[k];
        layer *before = l->input_count == 1 ? kept_of(l->inputs[0]) : NULL;
        if (before != NULL && is_one_of(l->kind, activations, sizeof activations / sizeof *activations) &&
            !is_output(r, l->inputs[0]) && is_one_of(before->kind, takers, sizeof takers / sizeof *takers) &&
            before->activation == NULL && l->inputs[0]->readers == 1) {
            before->activation = layer_attribute_text(l, "approximate") != NULL ? "gelu_tanh" : l->kind;
            l->gone = before;
            continue;
        }
        for (uint32_t i = 0; i < l->input_count; i++) {
            l->inputs[i] = kept_of(l->inputs[i]);
        }
        r->layers[kept++] = l;
    }
    r->count = kept;
    for (uint32_t k = 0; k < r->output_count; k++) {
        r->outputs[k] = kept_of(r->outputs[k]);
    }
}

// ---- names ----------------------------------------------------------------------------------------------------

static const char *word_of(const layer *l, char out[2 * ONNX_NAME])
{
    const char *weight = l->param_count > 0 ? l->params[0]->name : "";
    const bool own = l->path[0] == '\0' && weight[0] != '\0' && strchr(weight, ':') == NULL &&
                     strncmp(weight, "val_", 4) != 0;
    if (l->path[0] != '\0') {
        return l->path;
    }
    if (own) {
        return weight;
    }
    if (l->name[0] == '\0') {
        return l->kind;
    }
    const bool whole = l->param_count > 0 || is_kind(l, "batch_norm");
    (void)snprintf(out, 2 * ONNX_NAME, "%s%s%s", l->name, whole ? "" : ".", whole ? "" : l->kind);
    return out;
}

// The letters, digits, '_', '-' and '.' of a word, its last 60.
static void plain_word(const char *word, char out[NAME_BYTES + 16])
{
    static const char *const reserved[] = {"input", "before", "previous", "labels",
                                           "probs", "loss",   "correct"};
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const size_t length = strlen(word);
    uint32_t used = 0;
    const char *at = length > NAME_BYTES ? word + length - NAME_BYTES : word;
    for (at += strspn(at, "-./"); *at != '\0'; at++) {
        out[used++] = strchr(allowed, *at) != NULL ? *at : '_';
    }
    out[used] = '\0';
    if (used == 0 || is_one_of(out, reserved, sizeof reserved / sizeof *reserved)) {
        (void)snprintf(out + used, 16, "%slayer", used == 0 ? "" : "_");
    }
}

// "relu", then "relu_1", "relu_2" …
static const char *unique_name(writer *r, const char *word)
{
    char plain[NAME_BYTES + 16], name[NAME_BYTES + 32];
    plain_word(word, plain);
    (void)text_copy(name, sizeof name, plain);
    const uint32_t first = intern_find(&r->names, plain, strlen(plain));
    while (intern_find(&r->names, name, strlen(name)) != INTERN_NONE) {
        (void)snprintf(name, sizeof name, "%s_%u", plain, ++r->again.data[first]);
    }
    if (intern_add(&r->names, name, strlen(name)) == INTERN_NONE || vec_push(&r->again) == NULL) {
        r->head.failed = true;
    }
    return r->head.failed ? NULL : onnx_print(r->w->g, "%s", name);
}

static bool name_layers(writer *r)
{
    char word[2 * ONNX_NAME];
    uint32_t inputs = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        inputs += is_kind(r->layers[k], "input") ? 1 : 0;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        layer *l = r->layers[k];
        l->name = is_kind(l, "input") && inputs == 1 ? "input"
                  : is_kind(l, "input")              ? unique_name(r, l->path)
                                                     : unique_name(r, word_of(l, word));
        if (l->name == NULL) {
            return false;
        }
    }
    return true;
}

// ---- weights --------------------------------------------------------------------------------------------------

static uint64_t elements(const onnx_tensor *t)
{
    uint64_t count = 1;
    for (uint32_t k = 0; k < t->rank; k++) {
        count *= (uint64_t)t->dims[k]; // counted by the reader
    }
    return count;
}

// The exporter by TorchScript writes a table that the output shares with the embedding again, turned.
static bool find_tied(writer *r, layer *l)
{
    if (!is_kind(l, "dense") || l->stored || l->param_count == 0 ||
        strncmp(l->params[0]->name, "onnx::MatMul", 12) != 0) {
        return true;
    }
    for (uint32_t k = 0; k < r->count && !l->stored && numbers_work(r->w->g, 1); k++) {
        const layer *table = r->layers[k];
        if (is_kind(table, "embedding") && numbers_are_turned(r->w->g, table->params[0], l->params[0])) {
            l->params[0] = table->params[0];
            l->stored = true;
        }
    }
    return r->w->g->status == HR_OK;
}

static bool is_float_type(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_DOUBLE || type == ONNX_FLOAT16 || type == ONNX_BFLOAT16;
}

// Who holds the matrix, or that the layer does now. Vectors are never shared: exporters write those of equal values once.
static layer **owner_of(writer *r, const onnx_tensor *t)
{
    return t->rank < 2 ? NULL : &r->owners[t->number];
}

static bool share_with(writer *r, layer *l, layer *other)
{
    const bool table = is_kind(other, "embedding") || (is_kind(other, "dense") && !other->stored);
    const bool crossed = is_kind(l, "dense") && (is_kind(other, "dense") || is_kind(other, "embedding"));
    if (!crossed && (strcmp(l->kind, other->kind) != 0 || is_kind(l, "attention"))) {
        return walk_refuse(r->w, "'%.60s' shares weights with '%.60s', which is no layer of its kind",
                           l->name, other->name);
    }
    l->share = other;
    l->transposed = crossed && l->stored == table;
    return true;
}

static bool count_weights(writer *r, layer *l)
{
    if (!windows_are_whole(r->w, l)) {
        return false;
    }
    for (uint32_t k = 0; k < l->param_count; k++) {
        if (!is_float_type(l->params[k]->type)) {
            return walk_refuse(r->w,
                               "'%.60s' learns '%.60s', whose elements are no floats but of ONNX's type %d",
                               l->name, l->params[k]->name, (int)l->params[k]->type);
        }
        layer **owner = owner_of(r, l->params[k]);
        if (owner != NULL && *owner != NULL && *owner != l) {
            if (!share_with(r, l, *owner)) {
                return false;
            }
            continue;
        }
        if (owner != NULL) {
            *owner = l;
        }
        r->parameters += elements(l->params[k]);
    }
    r->parameters += is_kind(l, "batch_norm") || is_kind(l, "opaque") ? (uint64_t)l->count : 0;
    return true;
}

// ---- lines ----------------------------------------------------------------------------------------------------

// What our layers take where an attribute is not written.
static bool is_usual(const layer *l, const layer_attribute *a)
{
    static const char *const usual[][2] = {
        {"padding", "0"}, {"groups", "1"}, {"multiplier", "1"}, {"bias", "true"}, {"causal", "false"},
        {"from", "0"},    {"of", "sum"},   {"slope", "0.01"},   {"stride", "1"},
    };
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++) {
        if (strcmp(a->key, usual[k][0]) == 0 && strcmp(a->text, usual[k][1]) == 0) {
            const bool pools = strstr(l->kind, "_pool") != NULL, norms = strstr(l->kind, "_norm") != NULL;
            return !(pools && strcmp(a->key, "stride") == 0) && !(norms && strcmp(a->key, "groups") == 0);
        }
    }
    return false;
}

static void put_input_names(text *t, const layer *l, const layer *above)
{
    if (l->input_count > 1) {
        text_append(t, ", inputs: [");
        for (uint32_t k = 0; k < l->input_count; k++) {
            text_append(t, "%s%s", k > 0 ? ", " : "", l->inputs[k]->name);
        }
        text_append(t, "]");
    } else if (l->inputs[0] != above) {
        text_append(t, ", input: %s", l->inputs[0]->name);
    }
}

static void put_layer(writer *r, const layer *l, const layer *above)
{
    text *t = &r->lines;
    text_append(t, "    - {name: %s, kind: %s", l->name, l->kind);
    put_input_names(t, l, above);
    for (uint32_t k = 0; k < l->attribute_count; k++) {
        const layer_attribute *a = &l->attributes[k];
        const bool merged = l->activation != NULL && strcmp(a->key, "approximate") == 0;
        const bool own = l->share != NULL && l->bias && strcmp(a->key, "bias") == 0;
        if (own) {
            text_append(t, ", bias: own");
        } else if (!merged && !is_usual(l, a)) {
            text_append(t, ", %s: %s", a->key, a->text);
        }
    }
    if (is_kind(l, "position_embedding") && l->params[0]->rank >= 2) {
        const int64_t rows = l->params[0]->dims[l->params[0]->rank - 2];
        if (rows != l->shape[1]) {
            text_append(t, ", rows: %" PRId64, rows);
        }
    }
    if (l->activation != NULL) {
        text_append(t, ", activation: %s", l->activation);
    }
    if (l->share != NULL) {
        text_append(t, "%s, share: %s", l->transposed ? ", transpose: true" : "", l->share->name);
    }
    text_append(t, "}\n");
}

static void put_shape(writer *r, const layer *l)
{
    for (uint32_t k = 1; k < l->rank; k++) {
        text_append(&r->head, k > 1 ? ", " : "[");
        if (r->w->open_sequence != NULL && l->shape[k] == r->w->sequence) {
            text_append(&r->head, "$sequence");
        } else {
            text_append(&r->head, "%" PRId64, l->shape[k]);
        }
    }
    text_append(&r->head, "]");
}

static void put_inputs(writer *r)
{
    uint32_t inputs = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        inputs += is_kind(r->layers[k], "input") ? 1 : 0;
    }
    if (r->w->open_sequence != NULL) {
        text_append(&r->head, "  sizes: {sequence: %" PRId64 "}\n", r->w->sequence_begins);
        walk_note(r->w, "The length '%.40s' is left open: model.sequence begins at %" PRId64 ".",
                  r->w->open_sequence, r->w->sequence_begins);
    }
    text_append(&r->head, inputs > 1 ? "  inputs:\n" : "");
    for (uint32_t k = 0; k < r->count; k++) {
        const layer *l = r->layers[k];
        if (!is_kind(l, "input")) {
            continue;
        }
        text_append(&r->head, inputs > 1 ? "    - {name: %s, " : "  input: {", l->name);
        if (l->classes > 0) {
            text_append(&r->head, "type: int32, classes: %" PRId64 ", ", l->classes);
        }
        text_append(&r->head, "shape: ");
        put_shape(r, l);
        text_append(&r->head, "}\n");
    }
}

// The labels and losses: one for each output.
static void put_losses(writer *r)
{
    const layer *first = r->outputs[0];
    const int64_t last = first->shape[first->rank - 1];
    const char *kind = last > 1 ? "softmax_cross_entropy" : "mean_squared_error";
    if (r->output_count == 1 && first->rank <= 3) {
        if (last > 1) {
            text_append(&r->head, "  classes: %" PRId64 "\n", last);
        }
        text_append(&r->head, "  loss: %s\n", kind);
        return;
    }
    if (last > 1) {
        text_append(&r->head, "  labels: {type: int32, classes: %" PRId64 "}\n", last);
    } else {
        text_append(&r->head, "  labels: {type: float32}\n");
    }
    if (r->output_count == 1) {
        text_append(&r->head, "  loss: %s\n", kind);
        return;
    }
    walk_note(r->w, "%u outputs of one shape: each has a loss of weight 1.", r->output_count);
    text_append(&r->head, "  losses:\n");
    for (uint32_t k = 0; k < r->output_count; k++) {
        text_append(&r->head, "    - {kind: %s, prediction: %s}\n", kind, r->outputs[k]->name);
    }
}

static void put_layers(writer *r)
{
    const layer *above = NULL;
    for (uint32_t k = 0; k < r->count && above == NULL; k++) {
        above = is_kind(r->layers[k], "input") ? r->layers[k] : NULL;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        if (!is_kind(r->layers[k], "input")) {
            put_layer(r, r->layers[k], above);
            above = r->layers[k];
        }
    }
}

// "2 nodes are opaque (Resize, NonZero): …"
static void put_opaque_note(writer *r)
{
    char words[100] = "";
    uint32_t count = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        const layer *l = r->layers[k];
        const size_t used = strlen(words);
        if (!is_kind(l, "opaque")) {
            continue;
        }
        count++;
        if (strstr(words, l->op) == NULL && used + strlen(l->op) + 3 < sizeof words) {
            (void)snprintf(words + used, sizeof words - used, "%s%s", used > 0 ? ", " : "", l->op);
        }
    }
    if (count > 0) {
        walk_note(r->w,
                  "%u layer%s opaque (%s): their shapes are the file's, they keep all that they read and "
                  "give, and what "
                  "they compute, need for it and take of time is not known.",
                  count, count > 1 ? "s are" : " is", words);
    }
}

static void put_notes(writer *r)
{
    walk *w = r->w;
    bool drops = false;
    put_opaque_note(r);
    for (uint32_t k = 0; k < r->count; k++) {
        drops = drops || is_kind(r->layers[k], "dropout") ||
                layer_attribute_text(r->layers[k], "dropout") != NULL;
    }
    if (w->folded_norms > 0) {
        walk_note(w,
                  "%u batch norms that the exporter had multiplied into convolutions stand behind them "
                  "again, with two weights a "
                  "channel.",
                  w->folded_norms);
    }
    if (!drops) {
        walk_note(w, "The file has no dropout, which an export for inference leaves out.");
    }
}

// The type of the first matrix, or of the first input of floats where there is none.
static int32_t type_of(const writer *r)
{
    for (uint32_t k = 0; k < r->count; k++) {
        for (uint32_t p = 0; p < r->layers[k]->param_count; p++) {
            if (r->layers[k]->params[p]->rank > 1) {
                return r->layers[k]->params[p]->type;
            }
        }
    }
    for (const onnx_value *v = r->w->g->inputs; v != NULL; v = v->next) {
        if (is_float_type(v->type)) {
            return v->type;
        }
    }
    return ONNX_FLOAT;
}

// Weights in two bytes are trained under the mixed policy of that type, as those of a Hugging Face configuration are.
static void put_policy(writer *r, text *knobs)
{
    const int32_t type = type_of(r);
    const char *policy = type == ONNX_FLOAT16    ? "mixed_float16"
                         : type == ONNX_BFLOAT16 ? "mixed_bfloat16"
                         : type == ONNX_DOUBLE   ? "float64"
                                                 : "float32";
    uint32_t others = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        for (uint32_t p = 0; p < r->layers[k]->param_count; p++) {
            others += r->layers[k]->params[p]->type != type ? 1 : 0;
        }
    }
    if (type == ONNX_FLOAT16 || type == ONNX_BFLOAT16) {
        walk_note(r->w,
                  "The file's weights take two bytes: precision.policy %s trains float32 ones beside them.",
                  policy);
    }
    if (others > 0) {
        walk_note(r->w, "%u weights have another type than the first: precision.policy is the first's.",
                  others);
    }
    if (type != ONNX_FLOAT) {
        text_append(knobs, "precision: {policy: %s}\n", policy);
    }
}

static void put_preset(writer *r, const char *name, text *model, text *knobs)
{
    char parameters[32], plain[MODEL_NAME + 1];
    const onnx_graph *g = r->w->g;
    model_number(r->parameters, parameters);
    model_name(name, plain);
    text_append(model, "title: \"%s, from an ONNX file\"\n", plain);
    text_append(model, "description: \"%s as its ONNX file (opset %" PRId64 ") says it: %s parameters.\"\n",
                plain, g->opset, parameters);
    put_notes(r);
    put_policy(r, knobs);
    text_append(model, "note: \"%s\"\n", r->w->notes.data == NULL ? "" : r->w->notes.data);
    text_append(model, "model:\n  name: %s\n", plain);
    text_append_bytes(model, r->head.data, r->head.length);
    text_append(model, "  layers:\n");
    text_append_bytes(model, r->lines.data, r->lines.length);
    text_append(knobs, "device: {kind: plan}\nbatch: {size: %" PRId64 "}\n",
                r->w->fixed_batch > 0 ? r->w->fixed_batch : INT64_C(1));
}

static bool prepare(writer *r)
{
    walk *w = r->w;
    w->node = NULL;
    if (!find_outputs(r) || !collect(r)) {
        return false;
    }
    keep_alive(r);
    merge_activations(r);
    r->owners = onnx_take(w->g, (size_t)w->g->tensor_count + 1, sizeof *r->owners);
    if (r->owners == NULL || !name_layers(r)) {
        return false;
    }
    for (uint32_t k = 0; k < r->count; k++) {
        if (!find_tied(r, r->layers[k]) || !count_weights(r, r->layers[k])) {
            return false;
        }
    }
    return true;
}

bool onnx_write(walk *w, const char *name, text *model, text *knobs)
{
    writer r = {.w = w};
    const bool good = prepare(&r);
    if (good) {
        put_inputs(&r);
        put_losses(&r);
        put_layers(&r);
        put_preset(&r, name, model, knobs);
    }
    model->failed = model->failed || r.head.failed || r.lines.failed || w->notes.failed;
    text_deinit(&r.head);
    text_deinit(&r.lines);
    intern_deinit(&r.names);
    vec_deinit(&r.again);
    return good;
}
