// SPDX-License-Identifier: Apache-2.0
// Decoders with rotary positions: Llama and the families that differ from it by a norm, a bias or an activation. Each is a
// row with the defaults of its configuration_*.py in huggingface/transformers (5.24), read in October 2026, and what its
// modeling_*.py builds that no key says. Layers are called as in the presets that come with headroom.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "importer.h"

typedef enum decoder_mlp { MLP_GATED, MLP_FUSED, MLP_PLAIN, MLP_EXPERTS } decoder_mlp;
typedef enum decoder_bias { BIAS_NONE, BIAS_INPUTS, BIAS_KEY, BIAS_INPUTS_KEY, BIAS_ALL_KEY } decoder_bias;

typedef struct decoder_form {
    const char *architecture;
    int64_t vocabulary, hidden, inner, layers, heads;
    int64_t kv_heads;  // 0: as many as heads
    int64_t head_dim;  // 0: those of the hidden size shared out
    int64_t positions; // max_position_embeddings
    double epsilon, theta;
    const char *act;
    const char *epsilon_key; // NULL: rms_norm_eps, and the norms are RMS norms; else layer norms
    // Of attention: none; those of queries, keys and values; as `attention_bias` says, of all four or of three;
    // `use_bias`, of the network too.
    decoder_bias bias;
    bool bias_default;
    decoder_mlp mlp;
    bool tied;
    bool mlp_bias;                             // a key says
    bool qk_norm;                              // each head of queries and keys by itself
    bool scaled;                               // the embedding by the root of its width
    bool post_norms;                           // behind attention and network too
    bool window_flag;                          // the window counts where use_sliding_window says so
    int64_t window;                            // sliding_window
    const char *drop_key, *embedding_drop_key; // of what attention and network add; NULL: none
    double scalar;                             // query_pre_attn_scalar; 0: no such key
    double softcap, attention_softcap;
    double rate;      // of dropout
    double range;     // initializer_range; 0: 0.02
    bool multipliers; // Granite's: of embedding, of what is added, of scores and logits
    // Of MLP_EXPERTS: their number and its key, those of a token, and the key of the width of one, which `inner` is. The
    // gates of a token sum to 1, or where `norm_topk_prob` says so.
    int64_t experts, choices;
    const char *experts_key, *inner_key;
    bool shares;
} decoder_form;

static const decoder_form forms[] = {
    {"LlamaForCausalLM", 32000, 4096, 11008, 32, 32, .positions = 2048, .epsilon = 1e-6, .theta = 1e4,
     .act = "silu", .bias = BIAS_KEY, .mlp_bias = true},
    {"MistralForCausalLM", 32000, 4096, 14336, 32, 32, .kv_heads = 8, .positions = 131072, .epsilon = 1e-6,
     .theta = 1e4, .act = "silu", .window = 4096},
    {"Qwen2ForCausalLM", 151936, 4096, 22016, 32, 32, .positions = 32768, .epsilon = 1e-6, .theta = 1e4,
     .act = "silu", .bias = BIAS_INPUTS, .window_flag = true, .window = 4096},
    {"Qwen3ForCausalLM", 151936, 4096, 22016, 32, 32, .head_dim = 128, .positions = 32768, .epsilon = 1e-6,
     .theta = 1e4, .act = "silu", .bias = BIAS_KEY, .qk_norm = true, .window_flag = true, .window = 4096},
    {"MixtralForCausalLM", 32000, 4096, 14336, 32, 32, .kv_heads = 8, .positions = 131072, .epsilon = 1e-5,
     .theta = 1e6, .act = "silu", .mlp = MLP_EXPERTS, .experts = 8, .choices = 2,
     .experts_key = "num_local_experts", .inner_key = "intermediate_size", .shares = true},
    {"Qwen3MoeForCausalLM",
     151936,
     2048,
     768,
     24,
     32,
     .kv_heads = 4,
     .positions = 32768,
     .epsilon = 1e-6,
     .theta = 1e4,
     .act = "silu",
     .bias = BIAS_KEY,
     .qk_norm = true,
     .window_flag = true,
     .window = 4096,
     .mlp = MLP_EXPERTS,
     .experts = 128,
     .choices = 8,
     .experts_key = "num_experts",
     .inner_key = "moe_intermediate_size"},
    {"GemmaForCausalLM", 256000, 3072, 24576, 28, 16, .head_dim = 256, .positions = 8192, .epsilon = 1e-6,
     .theta = 1e4, .act = "gelu_pytorch_tanh", .bias = BIAS_KEY, .tied = true, .scaled = true},
    {"Gemma2ForCausalLM",
     256000,
     2304,
     9216,
     26,
     8,
     .kv_heads = 4,
     .head_dim = 256,
     .positions = 8192,
     .epsilon = 1e-6,
     .theta = 1e4,
     .act = "gelu_pytorch_tanh",
     .bias = BIAS_KEY,
     .tied = true,
     .scaled = true,
     .post_norms = true,
     .window = 4096,
     .scalar = 256,
     .softcap = 30,
     .attention_softcap = 50},
    {"Phi3ForCausalLM", 32064, 3072, 8192, 32, 32, .positions = 4096, .epsilon = 1e-5, .theta = 1e4,
     .act = "silu", .mlp = MLP_FUSED, .drop_key = "resid_pdrop", .embedding_drop_key = "embd_pdrop"},
    {"Starcoder2ForCausalLM", 49152, 3072, 12288, 30, 24, .kv_heads = 2, .positions = 4096, .epsilon = 1e-5,
     .theta = 1e4, .act = "gelu_pytorch_tanh", .epsilon_key = "norm_epsilon", .bias = BIAS_ALL_KEY,
     .bias_default = true, .mlp = MLP_PLAIN, .tied = true, .drop_key = "residual_dropout",
     .embedding_drop_key = "embedding_dropout", .range = 0.018042},
    {"SeedOssForCausalLM", 155136, 4096, 27648, 64, 80, .kv_heads = 8, .head_dim = 128, .positions = 524288,
     .epsilon = 1e-6, .theta = 1e4, .act = "silu", .bias = BIAS_INPUTS_KEY, .bias_default = true,
     .mlp_bias = true, .drop_key = "residual_dropout", .rate = 0.1},
    {"Ernie4_5ForCausalLM", 103424, 1024, 3072, 18, 16, .kv_heads = 2, .head_dim = 128, .positions = 131072,
     .epsilon = 1e-5, .theta = 5e5, .act = "silu", .bias = BIAS_ALL_KEY, .tied = true},
    {"GraniteForCausalLM", 32000, 4096, 11008, 32, 32, .positions = 2048, .epsilon = 1e-6, .theta = 1e4,
     .act = "silu", .bias = BIAS_KEY, .mlp_bias = true, .multipliers = true},
};

// The keys of one file, read.
typedef struct decoder {
    importer *m;
    const decoder_form *form;
    int64_t vocabulary, hidden, inner, layers, heads, kv_heads, head_dim, positions;
    double epsilon, theta, range, attention_dropout, dropout;
    double embedding_scale, residual_scale; // 1: none
    bool tied, bias, output_bias, mlp_bias;
    const char *act;
    int64_t experts, choices; // of MLP_EXPERTS
    double balance;           // weight of each layer's loss
    bool shares;
} decoder;

// ---- keys -----------------------------------------------------------------------------------------------------

// The object that says how positions turn: `rope_parameters`, or `rope_scaling` as files before release 5 have it.
static const json_t *rope_object(const config *c, const char **key)
{
    *key = config_find(c, "rope_parameters") != NULL ? "rope_parameters" : "rope_scaling";
    return config_find(c, *key);
}

static double rope_number(decoder *d, const json_t *rope, const char *rope_key, const char *key,
                          double fallback)
{
    config *c = &d->m->c;
    const json_t *inner = json_object_get(rope, key);
    if (inner == NULL || json_is_null(inner)) {
        return config_real(c, key, fallback, 0, 1e12);
    }
    if (!json_is_number(inner) || json_number_value(inner) < 0 || json_number_value(inner) > 1e12) {
        config_refuse(c, rope_key, "needs a %s from 0 to 1e12", key);
        return fallback;
    }
    return json_number_value(inner);
}

static void read_rope(decoder *d)
{
    config *c = &d->m->c;
    const char *key;
    const json_t *rope = rope_object(c, &key);
    if (rope != NULL && !json_is_object(rope)) {
        config_refuse_value(c, key, "needs an object");
        return;
    }
    if (json_is_object(json_object_get(rope, "full_attention"))) {
        config_refuse(c, key, "differs between kinds of layers, which this reader does not write");
    }
    d->theta = rope_number(d, rope, key, "rope_theta", d->form->theta);
    if (d->theta < 1) {
        config_refuse(c, "rope_theta", "needs a base from 1 to 1e12");
    }
    if (rope_number(d, rope, key, "partial_rotary_factor", 1) != 1) {
        config_refuse(c, "partial_rotary_factor",
                      "needs to be 1: rotary positions over a part of each head are "
                      "not in the layer language");
    }
    const json_t *type = json_object_get(rope, json_object_get(rope, "rope_type") ? "rope_type" : "type");
    const char *word = json_string_value(type);
    if (word != NULL && strcmp(word, "default") != 0) {
        model_note(&d->m->t,
                   "%s '%.24s' is left out: positions turn by rope_theta alone, which changes no size.", key,
                   word);
    }
}

static void read_window(decoder *d)
{
    config *c = &d->m->c;
    const bool counts = d->form->window_flag ? config_flag(c, "use_sliding_window", false) : true;
    const int64_t otherwise = config_is_null(c, "sliding_window") ? 0 : d->form->window; // null: none
    const int64_t window = config_count(c, "sliding_window", otherwise, 0, INT64_MAX);
    if (counts && window > 0 && window < d->positions) {
        model_note(&d->m->t,
                   "sliding_window %" PRId64
                   " is left out: every place attends to all before it, and streaming "
                   "attention holds the same bytes.",
                   window);
    }
}

static void read_scores(decoder *d)
{
    config *c = &d->m->c;
    if (d->form->scalar == 0) {
        return;
    }
    const double scalar = config_real(c, "query_pre_attn_scalar", d->form->scalar, 1e-3, 1e6);
    const bool said = json_object_get(c->root, "attn_logit_softcapping") != NULL;
    const double cap =
        config_real(c, "attn_logit_softcapping", said ? 0 : d->form->attention_softcap, 0, 1e6);
    if (scalar != (double)d->head_dim) {
        model_note(&d->m->t,
                   "query_pre_attn_scalar %g is left out: scores are scaled by the %" PRId64
                   " features of a head, which changes no size.",
                   scalar, d->head_dim);
    }
    if (cap > 0) {
        model_note(
            &d->m->t,
            "attn_logit_softcapping %g is left out: streaming attention would bound its scores without a "
            "tensor for it.",
            cap);
    }
}

static void read_multipliers(decoder *d)
{
    config *c = &d->m->c;
    d->embedding_scale = d->form->scaled ? sqrt((double)d->hidden) : 1;
    d->residual_scale = 1;
    if (!d->form->multipliers) {
        return;
    }
    d->embedding_scale = config_real(c, "embedding_multiplier", 1, 1e-6, 1e6);
    d->residual_scale = config_real(c, "residual_multiplier", 1, 1e-6, 1e6);
    const double scores = config_real(c, "attention_multiplier", 1, 1e-9, 1e6);
    if (fabs(scores * sqrt((double)d->head_dim) - 1) > 1e-6) {
        model_note(&d->m->t,
                   "attention_multiplier %g is left out: scores are scaled by the root of the %" PRId64
                   " features of a head, which changes no size.",
                   scores, d->head_dim);
    }
}

static void read_biases(decoder *d)
{
    config *c = &d->m->c;
    const decoder_bias kind = d->form->bias;
    const char *key = kind == BIAS_ALL_KEY ? "use_bias" : "attention_bias";
    const bool said = kind >= BIAS_KEY && config_flag(c, key, d->form->bias_default);
    d->bias = kind == BIAS_INPUTS || said;
    d->output_bias = kind == BIAS_INPUTS       ? false
                     : kind == BIAS_INPUTS_KEY ? config_flag(c, "attention_out_bias", false)
                                               : said;
    d->mlp_bias = kind == BIAS_ALL_KEY ? said : d->form->mlp_bias && config_flag(c, "mlp_bias", false);
}

static void read_heads(decoder *d)
{
    config *c = &d->m->c;
    d->heads = config_count(c, "num_attention_heads", d->form->heads, 1, MODEL_TEXT_HEADS);
    const bool as_heads =
        d->form->kv_heads == 0 || d->form->kv_heads > d->heads || config_is_null(c, "num_key_value_heads");
    d->kv_heads =
        config_count(c, "num_key_value_heads", as_heads ? d->heads : d->form->kv_heads, 1, MODEL_TEXT_HEADS);
    d->head_dim = config_count(c, "head_dim", d->form->head_dim, 1, MODEL_TEXT_HEADS);
    if (d->head_dim == 0 && d->hidden % d->heads != 0) {
        config_refuse(c, "num_attention_heads", "needs to divide the hidden_size %" PRId64 ", had %" PRId64,
                      d->hidden, d->heads);
    }
    d->head_dim = d->head_dim == 0 ? d->hidden / d->heads : d->head_dim;
    if (d->heads % d->kv_heads != 0) {
        config_refuse(c, "num_key_value_heads",
                      "needs to divide the %" PRId64 " num_attention_heads, had %" PRId64, d->heads,
                      d->kv_heads);
    }
    if (d->head_dim < 2 || d->head_dim % 2 != 0) {
        config_refuse(c, "head_dim",
                      "needs an even number of features of a head, which rotary positions turn in pairs, had "
                      "%" PRId64,
                      d->head_dim);
    }
    if (d->heads > MODEL_TEXT_COUNT / (d->head_dim > 0 ? d->head_dim : 1)) {
        config_refuse(c, "head_dim", "times num_attention_heads needs at most %d, had %" PRId64 " x %" PRId64,
                      MODEL_TEXT_COUNT, d->head_dim, d->heads);
    }
}

// The library's loss of balance is one of all layers together: each has a share of its weight.
static void read_experts(decoder *d)
{
    config *c = &d->m->c;
    if (d->form->mlp != MLP_EXPERTS) {
        return;
    }
    d->experts = config_count(c, d->form->experts_key, d->form->experts, 1, MODEL_TEXT_EXPERTS);
    d->choices = config_count(c, "num_experts_per_tok", d->form->choices, 1, MODEL_TEXT_CHOICES);
    d->shares = d->form->shares || config_flag(c, "norm_topk_prob", false);
    const double weight = config_real(c, "router_aux_loss_coef", 0.001, 0, 1e6);
    d->balance = config_flag(c, "output_router_logits", false) ? weight / (double)d->layers : 0;
    if (d->choices > d->experts) {
        config_refuse(c, "num_experts_per_tok", "needs at most the %" PRId64 " %s, had %" PRId64, d->experts,
                      d->form->experts_key, d->choices);
    }
    const json_t *dense = config_find(c, "mlp_only_layers");
    if (config_count(c, "decoder_sparse_step", 1, 1, INT64_MAX) != 1 || json_array_size(dense) > 0) {
        config_refuse(c, json_array_size(dense) > 0 ? "mlp_only_layers" : "decoder_sparse_step",
                      "makes layers differ from each other, which this reader does not write");
    }
    if (config_real(c, "router_jitter_noise", 0, 0, 1) > 0) {
        model_note(&d->m->t, "router_jitter_noise is left out, which changes no size.");
    }
    model_note(&d->m->t,
               "An expert has as many slots as its share of a sample's tokens, so that all together hold the "
               "tokens that the library's hold; a token that finds none free goes without.");
}

static void read_keys(decoder *d)
{
    config *c = &d->m->c;
    const decoder_form *f = d->form;
    d->vocabulary = config_count(c, "vocab_size", f->vocabulary, 2, MODEL_TEXT_COUNT);
    d->hidden = config_count(c, "hidden_size", f->hidden, 1, MODEL_TEXT_COUNT);
    d->inner = config_count(c, f->inner_key == NULL ? "intermediate_size" : f->inner_key, f->inner, 1,
                            MODEL_TEXT_COUNT / 2);
    d->layers = config_count(c, "num_hidden_layers", f->layers, 1, MODEL_TEXT_ROUNDS);
    read_heads(d);
    d->positions = config_count(c, "max_position_embeddings", f->positions, 1, INT64_MAX);
    d->m->sequence = d->positions < IMPORT_SEQUENCE ? d->positions : IMPORT_SEQUENCE;
    d->epsilon =
        config_real(c, f->epsilon_key == NULL ? "rms_norm_eps" : f->epsilon_key, f->epsilon, 1e-12, 1);
    d->range = config_real(c, "initializer_range", f->range > 0 ? f->range : 0.02, 0, 1000);
    d->tied = config_flag(c, "tie_word_embeddings", f->tied);
    d->attention_dropout = config_real(c, "attention_dropout", f->rate, 0, IMPORT_RATE_MAX);
    d->dropout = f->drop_key == NULL ? 0 : config_real(c, f->drop_key, f->rate, 0, IMPORT_RATE_MAX);
    // Gemma's files say hidden_act for what was written before the activation was corrected.
    d->act = import_activation(
        d->m, config_find(c, "hidden_activation") != NULL ? "hidden_activation" : "hidden_act", f->act);
    read_experts(d);
    read_biases(d);
    read_rope(d);
    read_window(d);
    read_scores(d);
    read_multipliers(d);
}

// ---- layers ---------------------------------------------------------------------------------------------------

static void write_defaults(const decoder *d)
{
    model_text *t = &d->m->t;
    char epsilon[CONFIG_REAL_TEXT], theta[CONFIG_REAL_TEXT], range[CONFIG_REAL_TEXT], rate[CONFIG_REAL_TEXT];
    char more[160] = "";
    size_t used = 0;
    (void)config_real_text(d->epsilon, epsilon);
    (void)config_real_text(d->range, range);
    if (d->kv_heads != d->heads) {
        used += (size_t)snprintf(more, sizeof more, "kv_heads: %" PRId64 ", ", d->kv_heads);
    }
    if (d->head_dim * d->heads != d->hidden) {
        used += (size_t)snprintf(more + used, sizeof more - used, "head_dim: %" PRId64 ", ", d->head_dim);
    }
    if (d->form->qk_norm) {
        used += (size_t)snprintf(more + used, sizeof more - used, "qk_norm_epsilon: %s, ", epsilon);
    }
    if (d->attention_dropout > 0) {
        (void)snprintf(more + used, sizeof more - used, "dropout: %s, ",
                       config_real_text(d->attention_dropout, rate));
    }
    model_line(t, "defaults:");
    model_line(t, "  %s: {epsilon: %s}", d->form->epsilon_key == NULL ? "rms_norm" : "layer_norm", epsilon);
    model_line(t, "  dense: {bias: %s, init: normal, init_scale: %s}", d->mlp_bias ? "true" : "false", range);
    model_line(t, "  attention:");
    model_line(t, "    {heads: %" PRId64 ", %srotary: %s, causal: true, bias: %s%s,", d->heads, more,
               config_real_text(d->theta, theta), d->bias ? "true" : "false",
               d->bias == d->output_bias ? ""
               : d->output_bias          ? ", output_bias: true"
                                         : ", output_bias: false");
    model_line(t, "     init: normal, init_scale: %s}", range);
}

static void write_norm(const decoder *d, const char *name)
{
    const bool rms = d->form->epsilon_key == NULL;
    model_layer(&d->m->t, "name: %s, kind: %s", name, rms ? "rms_norm" : "layer_norm");
    model_weights(&d->m->t, 1, d->hidden, !rms);
}

static void write_dense(const decoder *d, const char *name, int64_t from, int64_t to, const char *more)
{
    model_layer(&d->m->t, "name: \"%s\", kind: dense, units: %" PRId64 "%s", name, to, more);
    model_weights(&d->m->t, from, to, d->mlp_bias);
}

static void write_scale(const decoder *d, const char *name)
{
    if (d->residual_scale != 1) {
        model_layer(&d->m->t, "name: \"%s\", kind: scale, factor: %.9g", name, d->residual_scale);
    }
}

static void write_attention(const decoder *d)
{
    model_text *t = &d->m->t;
    const int64_t queries = d->heads * d->head_dim, keys = d->kv_heads * d->head_dim;
    write_norm(d, "\"layers_{i}_input_norm\"");
    model_layer(t, "name: \"layers_{i}_attn\", kind: attention%s",
                d->form->mlp == MLP_FUSED ? ", packed: views" : ""); // Phi-3's qkv_proj
    model_weights(t, d->hidden, queries, d->bias);
    model_weights(t, d->hidden, keys, d->bias);
    model_weights(t, d->hidden, keys, d->bias);
    model_weights(t, queries, d->hidden, d->output_bias);
    if (d->form->qk_norm) {
        model_weights(t, 2, d->head_dim, false);
    }
    if (d->form->post_norms) {
        write_norm(d, "\"layers_{i}_post_attn_norm\"");
    }
    import_dropout(d->m, "\"layers_{i}_attn_dropout\"", d->dropout);
    write_scale(d, "layers_{i}_attn_scaled");
    model_layer(t, "name: \"layers_{i}_mid\", kind: add, inputs: [before, previous]");
}

static void write_gate(const decoder *d)
{
    char act[48];
    (void)snprintf(act, sizeof act, ", activation: %s", d->act);
    write_dense(d, "layers_{i}_gate_proj", d->hidden, d->inner, act);
    write_dense(d, "layers_{i}_up_proj", d->hidden, d->inner, ", input: \"layers_{i}_post_norm\"");
    model_layer(&d->m->t,
                "name: \"layers_{i}_gated\", kind: multiply, inputs: [\"layers_{i}_gate_proj\", previous]");
}

// One product for both halves, which are cut out of its result.
static void write_fused_gate(const decoder *d)
{
    model_text *t = &d->m->t;
    const char *kind = strcmp(d->act, "gelu_tanh") == 0 ? "gelu, approximate: true" : d->act;
    write_dense(d, "layers_{i}_gate_up_proj", d->hidden, 2 * d->inner, "");
    model_layer(t, "name: \"layers_{i}_gate\", kind: slice, axis: 2, from: 0, count: %" PRId64, d->inner);
    model_layer(t, "name: \"layers_{i}_act\", kind: %s", kind);
    model_layer(
        t,
        "name: \"layers_{i}_up\", kind: slice, input: \"layers_{i}_gate_up_proj\", axis: 2, from: %" PRId64
        ", count: %" PRId64,
        d->inner, d->inner);
    model_layer(t, "name: \"layers_{i}_gated\", kind: multiply, inputs: [\"layers_{i}_act\", previous]");
}

static void write_experts(const decoder *d)
{
    model_text *t = &d->m->t;
    char range[CONFIG_REAL_TEXT], balance[CONFIG_REAL_TEXT], more[64] = "";
    if (d->balance > 0) {
        (void)snprintf(more, sizeof more, ", balance: %s", config_real_text(d->balance, balance));
    }
    model_layer(t,
                "name: \"layers_{i}_experts\", kind: mixture_of_experts, experts: %" PRId64
                ", top_k: %" PRId64 ", units: %" PRId64
                ", capacity_factor: 1, normalise: %s%s, activation: %s, init: normal, "
                "init_scale: %s",
                d->experts, d->choices, d->inner, d->shares ? "true" : "false", more, d->act,
                config_real_text(d->range, range));
    model_weights(t, d->hidden, d->experts, false);
    for (int k = 0; k < 3; k++) {
        model_weights(t, d->experts * d->hidden, d->inner, false);
    }
}

// A network that all tokens go through.
static void write_dense_network(const decoder *d)
{
    char act[48];
    if (d->form->mlp == MLP_PLAIN) {
        (void)snprintf(act, sizeof act, ", activation: %s", d->act);
        write_dense(d, "layers_{i}_c_fc", d->hidden, d->inner, act);
    } else {
        (d->form->mlp == MLP_FUSED ? write_fused_gate : write_gate)(d);
    }
    write_dense(d, d->form->mlp == MLP_PLAIN ? "layers_{i}_c_proj" : "layers_{i}_down_proj", d->inner,
                d->hidden, "");
}

static void write_network(const decoder *d)
{
    model_text *t = &d->m->t;
    write_norm(d, "\"layers_{i}_post_norm\"");
    (d->form->mlp == MLP_EXPERTS ? write_experts : write_dense_network)(d);
    if (d->form->post_norms) {
        write_norm(d, "\"layers_{i}_post_mlp_norm\"");
    }
    import_dropout(d->m, "\"layers_{i}_mlp_dropout\"", d->dropout);
    write_scale(d, "layers_{i}_mlp_scaled");
    model_layer(t, "name: \"layers_{i}_out\", kind: add, inputs: [\"layers_{i}_mid\", previous]");
}

static void write_embedding(const decoder *d)
{
    model_text *t = &d->m->t;
    char range[CONFIG_REAL_TEXT];
    model_layer(t, "name: embed_tokens, kind: embedding, units: %" PRId64 ", init: normal, init_scale: %s",
                d->hidden, config_real_text(d->range, range));
    model_weights(t, d->vocabulary, d->hidden, false);
    if (d->embedding_scale != 1) {
        model_layer(t, "name: embed_scaled, kind: scale, factor: %.9g", d->embedding_scale);
    }
    if (d->form->embedding_drop_key != NULL) {
        import_dropout(d->m, "embed_dropout",
                       config_real(&d->m->c, d->form->embedding_drop_key, 0, 0, IMPORT_RATE_MAX));
    }
}

// What becomes of the head's output: bounded by a tanh, or scaled.
static void write_logits(const decoder *d)
{
    config *c = &d->m->c;
    model_text *t = &d->m->t;
    const bool said = json_object_get(c->root, "final_logit_softcapping") != NULL;
    const double cap = config_real(c, "final_logit_softcapping", said ? 0 : d->form->softcap, 1e-3, 1e6);
    const double scaling = config_real(c, "logits_scaling", 1, 1e-6, 1e6);
    if (d->form->softcap > 0 && cap > 0) {
        model_layer(t, "name: lm_head_over_cap, kind: scale, factor: %.9g", 1 / cap);
        model_layer(t, "name: lm_head_tanh, kind: tanh");
        model_layer(t, "name: logits, kind: scale, factor: %.9g", cap);
    } else if (d->form->multipliers && scaling != 1) {
        model_layer(t, "name: logits, kind: scale, factor: %.9g", 1 / scaling);
    }
}

static void write_head(const decoder *d)
{
    model_text *t = &d->m->t;
    write_norm(d, "norm");
    model_layer(t, "name: lm_head, kind: dense, units: %" PRId64 "%s%s", d->vocabulary,
                d->mlp_bias ? ", bias: false" : "", d->tied ? ", transpose: true, share: embed_tokens" : "");
    if (!d->tied) {
        model_weights(t, d->hidden, d->vocabulary, false);
    }
    write_logits(d);
}

void import_decoder(importer *m)
{
    size_t row = 0;
    while (strcmp(forms[row].architecture, m->architecture) != 0) {
        row++;
    }
    decoder d = {.m = m, .form = &forms[row]};
    read_keys(&d);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    import_token_lines(m, d.layers, d.vocabulary);
    import_say_length(m, d.positions);
    write_defaults(&d);
    write_embedding(&d);
    model_repeat(&m->t, d.layers);
    write_attention(&d);
    write_network(&d);
    model_repeat_end(&m->t);
    write_head(&d);
    m->knobs = "batch: {size: 1}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adamw, learning_rate: 3e-4, weight_decay: 0.1}\n";
    if (d.form->mlp == MLP_FUSED) {
        model_note(&m->t, "qkv_proj stands as three products, as large together.");
    }
}
