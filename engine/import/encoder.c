// SPDX-License-Identifier: Apache-2.0
// BERT, RoBERTa and those built as it is, DistilBERT: defaults of their configuration_*.py, layers as their modeling_*.py
// build them (huggingface/transformers 5.24), with the heads for masked tokens, sequences and tokens.
#include <inttypes.h>
#include <string.h>

#include "importer.h"

// The keys that one library calls differently from family to family.
typedef struct encoder_form {
    const char *prefix; // of the architecture
    const char *hidden, *inner, *layers, *heads, *act, *dropout, *attention_dropout, *head_dropout;
    int64_t layer_count, vocabulary;
    double head_rate; // 0: that of `dropout`
    bool segments, pooler;
    bool after_padding; // places begin behind the row of padding, and the head is RoBERTa's
} encoder_form;

#define BERT_KEYS                                                                                            \
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "hidden_act",            \
        "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", 12

static const encoder_form forms[] = {
    {"Bert", BERT_KEYS, 30522, 0, true, true, false},
    {"Roberta", BERT_KEYS, 50265, 0, true, true, true},
    {"XLMRoberta", BERT_KEYS, 30522, 0, true, true, true},
    {"Camembert", BERT_KEYS, 30522, 0, true, true, true},
    {"DistilBert", "dim", "hidden_dim", "n_layers", "n_heads", "activation", "dropout", "attention_dropout",
     "seq_classif_dropout", 6, 30522, 0.2, false, false, false},
};

typedef enum encoder_task { TASK_NONE, TASK_MASKED, TASK_SEQUENCE, TASK_TOKENS } encoder_task;

typedef struct encoder {
    importer *m;
    const encoder_form *form;
    encoder_task task;
    int64_t vocabulary, hidden, inner, layers, heads, types, rows, first_row, labels;
    double range, epsilon, dropout, attention_dropout, head_dropout;
    bool tied, regression;
    const char *act;
} encoder;

// ---- keys -----------------------------------------------------------------------------------------------------

static encoder_task task_of(const char *architecture, const char *prefix)
{
    const char *rest = architecture + strlen(prefix);
    return strcmp(rest, "ForMaskedLM") == 0                 ? TASK_MASKED
           : strcmp(rest, "ForSequenceClassification") == 0 ? TASK_SEQUENCE
           : strcmp(rest, "ForTokenClassification") == 0    ? TASK_TOKENS
                                                            : TASK_NONE;
}

static void read_problem(encoder *e)
{
    const char *type = config_word(&e->m->c, "problem_type", "");
    if (e->task == TASK_SEQUENCE && strcmp(type, "multi_label_classification") == 0) {
        config_refuse_value(
            &e->m->c, "problem_type",
            "needs single_label_classification or regression: a loss for several labels at once is "
            "not in the layer language");
    }
    e->regression = e->task == TASK_SEQUENCE && (e->labels == 1 || strcmp(type, "regression") == 0);
    if ((e->task == TASK_SEQUENCE || e->task == TASK_TOKENS) && !e->regression && e->labels < 2) {
        config_refuse(&e->m->c, "num_labels", "needs at least 2 labels to choose from, had %" PRId64,
                      e->labels);
    }
}

static void read_keys(encoder *e)
{
    config *c = &e->m->c;
    const encoder_form *f = e->form;
    e->vocabulary = config_count(c, "vocab_size", f->vocabulary, 2, MODEL_TEXT_COUNT);
    e->hidden = config_count(c, config_either(c, "hidden_size", f->hidden), 768, 1, MODEL_TEXT_COUNT);
    e->inner = config_count(c, f->inner, 3072, 1, MODEL_TEXT_COUNT);
    e->layers = config_count(c, config_either(c, "num_hidden_layers", f->layers), f->layer_count, 1,
                             MODEL_TEXT_ROUNDS);
    e->heads = config_count(c, config_either(c, "num_attention_heads", f->heads), 12, 1, MODEL_TEXT_HEADS);
    e->types = config_count(c, "type_vocab_size", 2, 1, MODEL_TEXT_COUNT);
    e->rows = config_count(c, "max_position_embeddings", 512, 1, MODEL_TEXT_COUNT);
    e->first_row = f->after_padding ? config_count(c, "pad_token_id", 1, 0, MODEL_TEXT_COUNT) + 1 : 0;
    e->range = config_real(c, "initializer_range", 0.02, 0, 1000);
    e->epsilon = f->segments ? config_real(c, "layer_norm_eps", 1e-12, 1e-12, 1) : 1e-12;
    e->dropout = config_real(c, f->dropout, 0.1, 0, IMPORT_RATE_MAX);
    e->attention_dropout = config_real(c, f->attention_dropout, 0.1, 0, IMPORT_RATE_MAX);
    const bool own_rate = e->task == TASK_SEQUENCE || f->segments;
    e->head_dropout = own_rate ? config_real(c, f->head_dropout, f->head_rate > 0 ? f->head_rate : e->dropout,
                                             0, IMPORT_RATE_MAX)
                               : e->dropout;
    e->tied = config_flag(c, "tie_word_embeddings", true);
    e->act = import_activation(e->m, f->act, "gelu");
    e->labels = import_labels(e->m);
    if (e->first_row >= e->rows) {
        config_refuse(c, "pad_token_id",
                      "needs to leave places of the %" PRId64 " max_position_embeddings, had %" PRId64,
                      e->rows, e->first_row - 1);
    }
    e->m->sequence = e->rows - e->first_row < IMPORT_SEQUENCE ? e->rows - e->first_row : IMPORT_SEQUENCE;
    read_problem(e);
    if (e->hidden % e->heads != 0) {
        config_refuse(c, f->heads, "needs to divide the %s %" PRId64 ", had %" PRId64, f->hidden, e->hidden,
                      e->heads);
    }
    if (config_flag(c, "is_decoder", false) || config_flag(c, "add_cross_attention", false)) {
        config_refuse(c, "is_decoder",
                      "and add_cross_attention need to be false: this reader writes an encoder");
    }
}

// ---- lines ----------------------------------------------------------------------------------------------------

static void write_inputs(const encoder *e)
{
    model_text *t = &e->m->t;
    model_line(t, "sizes: {sequence: %" PRId64 ", depth: %" PRId64 "}", e->m->sequence, e->layers);
    model_line(t, "inputs:");
    model_line(t, "  - {name: tokens, type: int32, classes: %" PRId64 ", shape: [$sequence]}", e->vocabulary);
    if (e->form->segments) {
        model_line(t, "  - {name: segments, type: int32, classes: %" PRId64 ", shape: [$sequence]}",
                   e->types);
    }
    if (e->task == TASK_NONE || e->regression) {
        model_line(t, "loss: mean_squared_error");
    } else {
        model_line(t, "classes: %" PRId64, e->task == TASK_MASKED ? e->vocabulary : e->labels);
        model_line(t, "loss: softmax_cross_entropy");
    }
    if (e->task == TASK_NONE) {
        model_note(t, "%s has no loss: its output is compared with a given one, which adds no parameters.",
                   e->m->architecture);
    }
}

static void write_defaults(const encoder *e)
{
    model_text *t = &e->m->t;
    char range[CONFIG_REAL_TEXT], number[CONFIG_REAL_TEXT];
    (void)config_real_text(e->range, range);
    model_line(t, "defaults:");
    model_line(t, "  embedding: {units: %" PRId64 ", init: normal, init_scale: %s}", e->hidden, range);
    model_line(t, "  layer_norm: {epsilon: %s}", config_real_text(e->epsilon, number));
    model_line(t, "  dense: {init: normal, init_scale: %s}", range);
    model_line(t, "  attention:");
    model_line(t, "    {heads: %" PRId64 ", dropout: %s, init: normal, init_scale: %s}", e->heads,
               config_real_text(e->attention_dropout, number), range);
}

static void write_norm(const encoder *e, const char *name)
{
    model_layer(&e->m->t, "name: %s, kind: layer_norm", name);
    model_weights(&e->m->t, 1, e->hidden, true);
}

static void write_embeddings(const encoder *e)
{
    model_text *t = &e->m->t;
    char range[CONFIG_REAL_TEXT];
    model_layer(t, "name: word, kind: embedding, input: tokens");
    model_weights(t, e->vocabulary, e->hidden, false);
    if (e->form->segments) {
        model_layer(t, "name: segment, kind: embedding, input: segments");
        model_weights(t, e->types, e->hidden, false);
        model_layer(t, "name: embeddings, kind: add, inputs: [word, segment]");
    }
    model_layer(t,
                "name: position, kind: position_embedding, rows: %" PRId64 ", from: %" PRId64
                ", init: normal, init_scale: %s",
                e->rows, e->first_row, config_real_text(e->range, range));
    model_weights(t, e->rows, e->hidden, false);
    write_norm(e, "embeddings_norm");
    import_dropout(e->m, "embeddings_dropout", e->dropout);
}

static void write_block(const encoder *e)
{
    model_text *t = &e->m->t;
    model_layer(t, "name: \"layer{i}_attention\", kind: attention");
    for (int k = 0; k < 4; k++) {
        model_weights(t, e->hidden, e->hidden, true);
    }
    if (e->form->segments) { // DistilBERT has none here
        import_dropout(e->m, "\"layer{i}_attention_dropout\"", e->dropout);
    }
    model_layer(t, "name: \"layer{i}_attention_add\", kind: add, inputs: [before, previous]");
    write_norm(e, "\"layer{i}_attention_norm\"");
    model_layer(t, "name: \"layer{i}_intermediate\", kind: dense, units: %" PRId64 ", activation: %s",
                e->inner, e->act);
    model_weights(t, e->hidden, e->inner, true);
    model_layer(t, "name: \"layer{i}_output\", kind: dense, units: %" PRId64, e->hidden);
    model_weights(t, e->inner, e->hidden, true);
    import_dropout(e->m, "\"layer{i}_output_dropout\"", e->dropout);
    model_layer(t,
                "name: \"layer{i}_output_add\", kind: add, inputs: [\"layer{i}_attention_norm\", previous]");
    write_norm(e, "\"layer{i}_output_norm\"");
}

static void write_dense(const encoder *e, const char *name, int64_t units, const char *more)
{
    model_layer(&e->m->t, "name: %s, kind: dense, units: %" PRId64 "%s", name, units, more);
    model_weights(&e->m->t, e->hidden, units, true);
}

// ---- heads ----------------------------------------------------------------------------------------------------

static void write_masked(const encoder *e)
{
    model_text *t = &e->m->t;
    char act[48];
    (void)snprintf(act, sizeof act, ", activation: %s", e->form->after_padding ? "gelu" : e->act);
    write_dense(e, "transform", e->hidden, act);
    write_norm(e, "transform_norm");
    if (!e->tied) {
        write_dense(e, "decoder", e->vocabulary, "");
        model_note(t, "The bias beside the decoder's own, which nothing reads where tie_word_embeddings is "
                      "false, is left out.");
        return;
    }
    model_layer(t, "name: decoder, kind: dense, units: %" PRId64 ", bias: own, transpose: true, share: word",
                e->vocabulary);
    model_weights(t, 1, e->vocabulary, false); // the bias
}

static void write_first(const encoder *e)
{
    model_text *t = &e->m->t;
    model_layer(t, "name: first_token, kind: slice, axis: 1, from: 0, count: 1");
    model_layer(t, "name: first_token_features, kind: reshape, shape: [%" PRId64 "]", e->hidden);
}

// One dense layer between the first token and the classes: BERT's pooler, DistilBERT's, RoBERTa's with dropout before it.
static void write_sequence(const encoder *e)
{
    write_first(e);
    if (e->form->after_padding) {
        import_dropout(e->m, "first_dropout", e->head_dropout);
    }
    write_dense(e,
                e->form->after_padding ? "head"
                : e->form->pooler      ? "pooler"
                                       : "pre_classifier",
                e->hidden, e->form->pooler ? ", activation: tanh" : ", activation: relu");
    import_dropout(e->m, "classifier_dropout", e->head_dropout);
    write_dense(e, "classifier", e->labels, "");
}

static void write_task(const encoder *e)
{
    if (e->task == TASK_MASKED) {
        write_masked(e);
    } else if (e->task == TASK_SEQUENCE) {
        write_sequence(e);
    } else if (e->task == TASK_TOKENS) {
        import_dropout(e->m, "classifier_dropout", e->head_dropout);
        write_dense(e, "classifier", e->labels, "");
    } else if (e->form->pooler) {
        write_first(e);
        write_dense(e, "pooler", e->hidden, ", activation: tanh");
    }
}

void import_encoder(importer *m)
{
    size_t row = sizeof forms / sizeof *forms - 1;
    while (strncmp(forms[row].prefix, m->architecture, strlen(forms[row].prefix)) != 0) {
        row--;
    }
    encoder e = {.m = m, .form = &forms[row], .task = task_of(m->architecture, forms[row].prefix)};
    read_keys(&e);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    write_inputs(&e);
    import_say_length(m, e.rows - e.first_row);
    write_defaults(&e);
    write_embeddings(&e);
    model_repeat(&m->t, e.layers);
    write_block(&e);
    model_repeat_end(&m->t);
    write_task(&e);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adamw, learning_rate: 1e-4, weight_decay: 0.01}\n";
}
