// SPDX-License-Identifier: Apache-2.0
// Lines as the layers of a preset.
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "keras.h"

static const char *const takes_activation[] = {
    "dense",      "conv2d", "depthwise_conv2d", "separable_conv2d", "conv2d_transpose",
    "batch_norm", "add",    "multiply"};
static const char *const is_activation[] = {"relu",    "relu6",      "gelu", "silu",     "tanh",
                                            "sigmoid", "hard_swish", "mish", "softplus", "hard_sigmoid"};

static bool is_one_of(const char *kind, const char *const *words, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (strcmp(words[k], kind) == 0) {
            return true;
        }
    }
    return false;
}

// What the outputs need; lines read only lines before them.
static void mark_alive(keras_walk *w, const uint32_t *outputs, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        w->lines.data[outputs[k]].alive = w->lines.data[outputs[k]].is_output = true;
    }
    for (uint32_t k = w->lines.count; k-- > 0;) {
        const keras_line *line = &w->lines.data[k];
        for (uint32_t s = 0; line->alive && s < line->input_count; s++) {
            w->lines.data[line->inputs[s]].alive = true;
            w->lines.data[line->inputs[s]].readers++;
        }
    }
}

static bool is_binary(const keras_walk *w)
{
    return w->loss.kind == KERAS_LOSS_BINARY || w->loss.kind == KERAS_LOSS_FOCAL;
}

static bool only_moves(const keras_line *line)
{
    static const char *const words[] = {"reshape", "flatten", "permute", "slice", "upsample"};
    return is_one_of(line->kind, words, sizeof words / sizeof *words) &&
           strstr(line->attrs, "bilinear") == NULL;
}

// What the sigmoid reads becomes the output, or what moves it there: *last, KERAS_NONE when nothing does.
static void bypass(keras_walk *w, uint32_t sigmoid, uint32_t last, uint32_t *output)
{
    keras_line *gone = &w->lines.data[sigmoid];
    const uint32_t logits = gone->inputs[0];
    if (!gone->alive) { // another output was its
        *output = logits;
        return;
    }
    w->lines.data[logits].is_logits = true;
    w->lines.data[logits].readers++;
    if (last == KERAS_NONE) {
        *output = logits;
        w->lines.data[logits].readers--; // a loss is none
        w->lines.data[logits].is_output = true;
        gone->is_output = false;
    } else {
        w->lines.data[last].inputs[0] = logits;
        gone->readers--;
    }
    if (gone->readers == 0 && !gone->is_output) {
        gone->alive = false;
        w->lines.data[logits].readers--;
    }
}

// Binary losses take logits: the sigmoid that only moves part from an output is left out, or it is said that it cannot be.
static void judge_logits(keras_walk *w, uint32_t *output)
{
    uint32_t at = *output, last = KERAS_NONE;
    while (only_moves(&w->lines.data[at]) && w->lines.data[at].readers <= (at != *output)) {
        last = at;
        at = w->lines.data[at].inputs[0];
    }
    if (w->lines.data[at].is_logits) {
        *output = last == KERAS_NONE ? at : *output;
    } else if (strcmp(w->lines.data[at].kind, "sigmoid") == 0) {
        bypass(w, at, last, output);
        keras_note(w, "The last sigmoid is left out: the binary cross entropy has its own.");
    } else {
        keras_note(w,
                   "The loss was compiled for probabilities (from_logits is false), and no sigmoid before it "
                   "can be left out: the outputs are taken as logits.");
    }
}

static uint32_t standing(const keras_walk *w, uint32_t line)
{
    const uint32_t instead = w->lines.data[line].instead;
    return instead > 0 ? instead - 1 : line;
}

// A layer that only an activation reads takes it as its own.
static void move_activations(keras_walk *w)
{
    for (uint32_t k = 0; k < w->lines.count; k++) {
        keras_line *line = &w->lines.data[k];
        if (!line->alive || line->input_count == 0) {
            continue;
        }
        const uint32_t from = standing(w, line->inputs[0]);
        keras_line *before = &w->lines.data[from];
        const keras_line *source = &w->lines.data[line->inputs[0]];
        if (is_one_of(line->kind, is_activation, sizeof is_activation / sizeof *is_activation) &&
            is_one_of(before->kind, takes_activation, sizeof takes_activation / sizeof *takes_activation) &&
            before->activation == NULL && source->readers == 1 && !source->is_output) {
            before->activation = line->kind;
            line->instead = from + 1;
        }
        for (uint32_t s = 0; s < line->input_count; s++) {
            line->inputs[s] = standing(w, line->inputs[s]);
        }
    }
}

// Weights stand where they are first used of what is left; *line is told whose it shares.
static void settle_owner(keras_walk *w, uint32_t at)
{
    keras_line *line = &w->lines.data[at];
    if (line->share == 0) {
        return;
    }
    keras_line *first = &w->lines.data[line->share - 1];
    if (!first->alive && first->share == 0) { // from now on this one has them
        first->share = at + 1;
        line->share = 0;
    } else if (!first->alive) {
        line->share = first->share;
    }
}

static const char *name_of(const keras_walk *w, uint32_t line)
{
    const char *name = intern_text(&w->names, w->lines.data[line].name);
    return name != NULL ? name : "input";
}

static void put_layer(keras_walk *w, uint32_t at, uint32_t above)
{
    const keras_line *line = &w->lines.data[at];
    text *out = &w->t->layers;
    text_append(out, "    - {name: %s, kind: %s", name_of(w, at), line->kind);
    if (line->input_count > 1) {
        for (uint32_t k = 0; k < line->input_count; k++) {
            text_append(out, "%s%s", k == 0 ? ", inputs: [" : ", ", name_of(w, line->inputs[k]));
        }
        text_append(out, "]");
    } else if (line->inputs[0] != above) {
        text_append(out, ", input: %s", name_of(w, line->inputs[0]));
    }
    text_append(out, "%s", line->attrs);
    if (line->classes > 0 && line->classes != w->lines.data[line->inputs[0]].classes) {
        text_append(out, ", vocabulary: %lld", (long long)line->classes);
    }
    if (line->activation != NULL) {
        text_append(out, ", activation: %s", line->activation);
    }
    if (line->share > 0) {
        text_append(out, ", share: %s", name_of(w, line->share - 1));
    } else {
        w->t->parameters += line->parameters;
    }
    text_append(out, "}\n");
}

static void put_input(keras_walk *w, uint32_t at, bool alone)
{
    const keras_line *line = &w->lines.data[at];
    text *out = &w->t->head;
    text_append(out, alone ? "  input: {" : "    - {name: %s, ", name_of(w, at));
    if (line->classes > 0) {
        text_append(out, "type: int32, classes: %lld, ", (long long)line->classes);
    }
    text_append(out, "shape: [");
    for (uint32_t k = 0; k < line->shape.rank; k++) {
        text_append(out, "%s%lld", k > 0 ? ", " : "", (long long)line->shape.side[k]);
    }
    text_append(out, "]}\n");
}

// "focal", or "{kind: focal, gamma: 2, alpha: 0" where a list of losses has to say more.
static void put_kind(const keras_walk *w, bool ids, bool in_list, char out[96])
{
    static const char *const words[] = {[KERAS_LOSS_UNSAID] = "mean_squared_error",
                                        [KERAS_LOSS_SOFTMAX] = "mean_squared_error", // of one number
                                        [KERAS_LOSS_SQUARED] = "mean_squared_error",
                                        [KERAS_LOSS_BINARY] = "binary_cross_entropy",
                                        [KERAS_LOSS_FOCAL] = "focal"};
    const char *word = ids ? "softmax_cross_entropy" : words[w->loss.kind];
    char gamma[CONFIG_REAL_TEXT], alpha[CONFIG_REAL_TEXT];
    if (in_list && w->loss.kind == KERAS_LOSS_FOCAL) {
        (void)snprintf(out, 96, "{kind: focal, gamma: %s, alpha: %s", config_real_text(w->loss.gamma, gamma),
                       config_real_text(w->loss.alpha, alpha));
    } else {
        (void)snprintf(out, 96, in_list ? "{kind: %s" : "%s", word);
    }
}

// The labels and losses: one for each output.
static void put_losses(keras_walk *w, const uint32_t *outputs, uint32_t count)
{
    const keras_shape *s = &w->lines.data[outputs[0]].shape;
    const long long last = s->rank > 0 ? (long long)s->side[s->rank - 1] : 1;
    const bool ids = last > 1 && (w->loss.kind == KERAS_LOSS_UNSAID || w->loss.kind == KERAS_LOSS_SOFTMAX);
    const bool list = count > 1 || w->loss.kind == KERAS_LOSS_FOCAL;
    char kind[96];
    put_kind(w, ids, list, kind);
    if (ids && count == 1 && s->rank < 3) {
        model_line(w->t, "classes: %lld", last);
    } else if (ids) {
        model_line(w->t, "labels: {type: int32, classes: %lld}", last);
    } else if (count > 1 || s->rank >= 3) {
        model_line(w->t, "labels: {type: float32}");
    }
    if (!list) {
        model_line(w->t, "loss: %s", kind);
        return;
    }
    model_line(w->t, "losses:");
    for (uint32_t k = 0; k < count; k++) {
        model_line(w->t, "  - %s, prediction: %s}", kind, name_of(w, standing(w, outputs[k])));
    }
}

void keras_write(keras_walk *w, uint32_t *outputs, uint32_t count)
{
    const uint32_t inputs = w->top->inputs.count;
    uint32_t above = 0; // the inputs are the first lines
    mark_alive(w, outputs, count);
    for (uint32_t k = 0; k < count && is_binary(w) && !w->loss.of_logits; k++) {
        judge_logits(w, &outputs[k]);
    }
    move_activations(w);
    if (inputs > 1) {
        model_line(w->t, "inputs:");
    }
    for (uint32_t k = 0; k < inputs; k++) {
        put_input(w, k, inputs == 1);
    }
    put_losses(w, outputs, count);
    for (uint32_t k = inputs; k < w->lines.count; k++) {
        if (w->lines.data[k].alive && w->lines.data[k].instead == 0) {
            settle_owner(w, k);
            put_layer(w, k, above);
            above = k;
        }
    }
}
