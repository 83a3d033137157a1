// SPDX-License-Identifier: Apache-2.0
// GPT-2, and GPTBigCode, which has one head of keys and values for all: defaults of configuration_gpt2.py and
// configuration_gpt_bigcode.py, layers as their modeling_*.py build them (huggingface/transformers 5.24).
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "importer.h"

typedef struct gpt2 {
    importer *m;
    int64_t vocabulary, hidden, inner, layers, heads, kv_heads, positions;
    double range, residual_dropout;
    const char *act;
} gpt2;

// What changes the arithmetic and no size.
static void say_scales(importer *m)
{
    config *c = &m->c;
    if (!config_flag(c, "scale_attn_weights", true)) {
        model_note(&m->t,
                   "scale_attn_weights false is left out: scores are scaled by the features of a head.");
    }
    if (config_flag(c, "scale_attn_by_inverse_layer_idx", false)) {
        model_note(&m->t, "scale_attn_by_inverse_layer_idx is left out, which changes no size.");
    }
    if (config_flag(c, "reorder_and_upcast_attn", false)) {
        model_note(&m->t, "reorder_and_upcast_attn is left out: streaming attention sums in float32.");
    }
}

static void read_keys(gpt2 *g)
{
    config *c = &g->m->c;
    g->vocabulary = config_count(c, "vocab_size", 50257, 2, MODEL_TEXT_COUNT);
    g->hidden = config_count(c, config_either(c, "hidden_size", "n_embd"), 768, 1, MODEL_TEXT_COUNT / 4);
    g->inner = config_count(c, "n_inner", 4 * g->hidden, 1, MODEL_TEXT_COUNT);
    g->layers = config_count(c, config_either(c, "num_hidden_layers", "n_layer"), 12, 1, MODEL_TEXT_ROUNDS);
    g->heads = config_count(c, config_either(c, "num_attention_heads", "n_head"), 12, 1, MODEL_TEXT_HEADS);
    const bool big_code = strcmp(g->m->architecture, "GPTBigCodeForCausalLM") == 0;
    g->kv_heads = big_code && config_flag(c, "multi_query", true) ? 1 : g->heads;
    g->positions = config_count(c, config_either(c, "max_position_embeddings", "n_positions"), 1024, 1,
                                MODEL_TEXT_COUNT);
    g->range = config_real(c, "initializer_range", 0.02, 0, 1000);
    g->residual_dropout = config_real(c, "resid_pdrop", 0.1, 0, IMPORT_RATE_MAX);
    g->act = import_activation(g->m, "activation_function", big_code ? "gelu_pytorch_tanh" : "gelu_new");
    g->m->sequence = g->positions < IMPORT_SEQUENCE ? g->positions : IMPORT_SEQUENCE;
    if (g->hidden % g->heads != 0) {
        config_refuse(c, "n_head", "needs to divide the n_embd %" PRId64 ", had %" PRId64, g->hidden,
                      g->heads);
    }
    if (config_flag(c, "add_cross_attention", false)) {
        config_refuse(c, "add_cross_attention",
                      "needs to be false: a decoder behind an encoder is a model of "
                      "two files");
    }
}

static void write_defaults(const gpt2 *g, const char *range, const char *output)
{
    config *c = &g->m->c;
    char epsilon[CONFIG_REAL_TEXT], rate[CONFIG_REAL_TEXT];
    const double dropout = config_real(c, "attn_pdrop", 0.1, 0, IMPORT_RATE_MAX);
    model_line(&g->m->t, "defaults:");
    model_line(&g->m->t, "  layer_norm: {epsilon: %s}",
               config_real_text(config_real(c, "layer_norm_epsilon", 1e-5, 1e-12, 1), epsilon));
    model_line(&g->m->t, "  dense: {init: normal, init_scale: %s}", range);
    model_line(&g->m->t, "  attention:");
    model_line(&g->m->t, "    {heads: %" PRId64 ", kv_heads: %" PRId64 ", causal: true, dropout: %s,",
               g->heads, g->kv_heads, config_real_text(dropout, rate));
    model_line(&g->m->t, "     init: normal, init_scale: %s,", range);
    model_line(&g->m->t, "     output_init_scale: %s}", output);
}

static void write_norm(const gpt2 *g, const char *name)
{
    model_layer(&g->m->t, "name: %s, kind: layer_norm", name);
    model_weights(&g->m->t, 1, g->hidden, true);
}

static void write_block(const gpt2 *g, const char *output)
{
    model_text *t = &g->m->t;
    write_norm(g, "\"h{i}_ln_1\"");
    model_layer(t, "name: \"h{i}_attn\", kind: attention, packed: views");
    for (int k = 0; k < 2; k++) {
        model_weights(t, g->hidden, g->hidden, true);
        model_weights(t, g->hidden, g->hidden / g->heads * g->kv_heads, true);
    }
    import_dropout(g->m, "\"h{i}_attn_dropout\"", g->residual_dropout);
    model_layer(t, "name: \"h{i}_mid\", kind: add, inputs: [before, previous]");
    write_norm(g, "\"h{i}_ln_2\"");
    model_layer(t, "name: \"h{i}_mlp_fc\", kind: dense, units: %" PRId64 ", activation: %s", g->inner,
                g->act);
    model_weights(t, g->hidden, g->inner, true);
    model_layer(t, "name: \"h{i}_mlp_proj\", kind: dense, units: %" PRId64 ", init_scale: %s", g->hidden,
                output);
    model_weights(t, g->inner, g->hidden, true);
    import_dropout(g->m, "\"h{i}_mlp_dropout\"", g->residual_dropout);
    model_layer(t, "name: \"h{i}_out\", kind: add, inputs: [\"h{i}_mid\", previous]");
}

static void write_layers(const gpt2 *g, const char *range, const char *output)
{
    model_text *t = &g->m->t;
    const bool tied = config_flag(&g->m->c, "tie_word_embeddings", true);
    model_layer(t, "name: wte, kind: embedding, units: %" PRId64 ", init: normal, init_scale: %s", g->hidden,
                range);
    model_weights(t, g->vocabulary, g->hidden, false);
    model_layer(t, "name: wpe, kind: position_embedding, rows: %" PRId64 ", init: normal, init_scale: %s",
                g->positions, range);
    model_weights(t, g->positions, g->hidden, false);
    import_dropout(g->m, "embed_dropout", config_real(&g->m->c, "embd_pdrop", 0.1, 0, IMPORT_RATE_MAX));
    model_repeat(t, g->layers);
    write_block(g, output);
    model_repeat_end(t);
    write_norm(g, "ln_f");
    model_layer(t, "name: lm_head, kind: dense, units: %" PRId64 ", bias: false%s", g->vocabulary,
                tied ? ", transpose: true, share: wte" : "");
    if (!tied) {
        model_weights(t, g->hidden, g->vocabulary, false);
    }
}

void import_gpt2(importer *m)
{
    gpt2 g = {.m = m};
    char range[CONFIG_REAL_TEXT], output[CONFIG_REAL_TEXT];
    read_keys(&g);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    (void)config_real_text(g.range, range);
    // What is added to the stream begins smaller, by the root of how often that happens. 0 would mean: the same.
    const double scale = g.range / sqrt(2 * (double)g.layers);
    (void)snprintf(output, sizeof output, "%.4g", scale);
    import_token_lines(m, g.layers, g.vocabulary);
    import_say_length(m, g.positions);
    write_defaults(&g, range, output);
    write_layers(&g, range, output);
    say_scales(m);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adamw, learning_rate: 6e-4, weight_decay: 0.1}\n";
}
