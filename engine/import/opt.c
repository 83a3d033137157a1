// SPDX-License-Identifier: Apache-2.0
// OPT: defaults of configuration_opt.py, layers as modeling_opt.py builds them (huggingface/transformers 5.24). Its table of
// places has two rows before the first, which nothing reads.
#include <inttypes.h>

#include "importer.h"

enum { FIRST_ROW = 2 };

typedef struct opt {
    importer *m;
    int64_t vocabulary, hidden, inner, layers, heads, positions;
    double range, dropout, attention_dropout;
    bool bias, tied;
    const char *act;
} opt;

static void refuse_others(const opt *o)
{
    config *c = &o->m->c;
    if (!config_flag(c, "do_layer_norm_before", true)) {
        config_refuse(c, "do_layer_norm_before",
                      "needs to be true: this reader writes norms in front of each block");
    }
    if (config_count(c, "word_embed_proj_dim", o->hidden, 1, MODEL_TEXT_COUNT) != o->hidden) {
        config_refuse_value(c, "word_embed_proj_dim", "needs to be the hidden_size %" PRId64, o->hidden);
    }
    if (!config_flag(c, "layer_norm_elementwise_affine", true)) {
        config_refuse(c, "layer_norm_elementwise_affine",
                      "needs to be true: layer norm without weights is not in the layer language");
    }
    if (config_real(c, "layerdrop", 0, 0, 1) > 0) {
        model_note(&o->m->t, "layerdrop is left out: every step has all layers.");
    }
}

static void read_keys(opt *o)
{
    config *c = &o->m->c;
    o->vocabulary = config_count(c, "vocab_size", 50272, 2, MODEL_TEXT_COUNT);
    o->hidden = config_count(c, "hidden_size", 768, 1, MODEL_TEXT_COUNT);
    o->inner = config_count(c, "ffn_dim", 3072, 1, MODEL_TEXT_COUNT);
    o->layers = config_count(c, "num_hidden_layers", 12, 1, MODEL_TEXT_ROUNDS);
    o->heads = config_count(c, "num_attention_heads", 12, 1, MODEL_TEXT_HEADS);
    o->positions = config_count(c, "max_position_embeddings", 2048, 1, MODEL_TEXT_COUNT - FIRST_ROW);
    o->range = config_real(c, "init_std", 0.02, 0, 1000);
    o->dropout = config_real(c, "dropout", 0.1, 0, IMPORT_RATE_MAX);
    o->attention_dropout = config_real(c, "attention_dropout", 0, 0, IMPORT_RATE_MAX);
    o->bias = config_flag(c, "enable_bias", true);
    o->tied = config_flag(c, "tie_word_embeddings", true);
    o->act = import_activation(o->m, "activation_function", "relu");
    o->m->sequence = o->positions < IMPORT_SEQUENCE ? o->positions : IMPORT_SEQUENCE;
    if (o->hidden % o->heads != 0) {
        config_refuse(c, "num_attention_heads", "needs to divide the hidden_size %" PRId64 ", had %" PRId64,
                      o->hidden, o->heads);
    }
    refuse_others(o);
}

static void write_defaults(const opt *o)
{
    model_text *t = &o->m->t;
    char range[CONFIG_REAL_TEXT], rate[CONFIG_REAL_TEXT];
    const char *bias = o->bias ? "true" : "false";
    (void)config_real_text(o->range, range);
    model_line(t, "defaults:");
    model_line(t, "  layer_norm: {epsilon: 1e-05}");
    model_line(t, "  dense: {bias: %s, init: normal, init_scale: %s}", bias, range);
    model_line(t, "  attention:");
    model_line(t,
               "    {heads: %" PRId64 ", causal: true, dropout: %s, bias: %s, init: normal, init_scale: %s}",
               o->heads, config_real_text(o->attention_dropout, rate), bias, range);
}

static void write_norm(const opt *o, const char *name)
{
    model_layer(&o->m->t, "name: %s, kind: layer_norm", name);
    model_weights(&o->m->t, 1, o->hidden, true);
}

static void write_block(const opt *o)
{
    model_text *t = &o->m->t;
    write_norm(o, "\"layers_{i}_attn_norm\"");
    model_layer(t, "name: \"layers_{i}_attn\", kind: attention");
    for (int k = 0; k < 4; k++) {
        model_weights(t, o->hidden, o->hidden, o->bias);
    }
    import_dropout(o->m, "\"layers_{i}_attn_dropout\"", o->dropout);
    model_layer(t, "name: \"layers_{i}_mid\", kind: add, inputs: [before, previous]");
    write_norm(o, "\"layers_{i}_final_norm\"");
    model_layer(t, "name: \"layers_{i}_fc1\", kind: dense, units: %" PRId64 ", activation: %s", o->inner,
                o->act);
    model_weights(t, o->hidden, o->inner, o->bias);
    model_layer(t, "name: \"layers_{i}_fc2\", kind: dense, units: %" PRId64, o->hidden);
    model_weights(t, o->inner, o->hidden, o->bias);
    import_dropout(o->m, "\"layers_{i}_fc_dropout\"", o->dropout);
    model_layer(t, "name: \"layers_{i}_out\", kind: add, inputs: [\"layers_{i}_mid\", previous]");
}

static void write_layers(const opt *o)
{
    model_text *t = &o->m->t;
    char range[CONFIG_REAL_TEXT];
    const int64_t rows = o->positions + FIRST_ROW;
    (void)config_real_text(o->range, range);
    model_layer(t, "name: embed_tokens, kind: embedding, units: %" PRId64 ", init: normal, init_scale: %s",
                o->hidden, range);
    model_weights(t, o->vocabulary, o->hidden, false);
    model_layer(t,
                "name: embed_positions, kind: position_embedding, rows: %" PRId64
                ", from: %d, init: normal, init_scale: %s",
                rows, FIRST_ROW, range);
    model_weights(t, rows, o->hidden, false);
    model_repeat(t, o->layers);
    write_block(o);
    model_repeat_end(t);
    if (!config_flag(&o->m->c, "_remove_final_layer_norm", false)) {
        write_norm(o, "final_norm");
    }
    model_layer(t, "name: lm_head, kind: dense, units: %" PRId64 ", bias: false%s", o->vocabulary,
                o->tied ? ", transpose: true, share: embed_tokens" : "");
    if (!o->tied) {
        model_weights(t, o->hidden, o->vocabulary, false);
    }
}

void import_opt(importer *m)
{
    opt o = {.m = m};
    read_keys(&o);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    import_token_lines(m, o.layers, o.vocabulary);
    import_say_length(m, o.positions);
    write_defaults(&o);
    write_layers(&o);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adamw, learning_rate: 3e-4, weight_decay: 0.1}\n";
}
