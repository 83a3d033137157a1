// SPDX-License-Identifier: Apache-2.0
// T5 and mT5: defaults of configuration_t5.py and configuration_mt5.py, layers as modeling_t5.py builds them
// (huggingface/transformers 5.24). The published checkpoints that say tie_word_embeddings: false (T5 1.1, Flan, mT5) hold an
// output layer of their own, and so has what is written.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "importer.h"

// Tokens of a sample: what spans are taken out of 512, and what is left of the spans (Raffel et al. 2020, 3.1.4).
enum { SOURCE_TOKENS = 512, TARGET_TOKENS = 114 };
enum { PROJECTIONS = 3, BUCKETS_MAX = 256, NAME_MAX_BYTES = 48 };

typedef struct t5 {
    importer *m;
    int64_t vocabulary, width, features, inner, layers, decoder_layers, heads, buckets, distance;
    double epsilon, factor, dropout;
    bool gated, tied, scaled;
    const char *act;
} t5;

static void read_network(t5 *o, bool multilingual)
{
    static const char *const forms[][2] = {
        {"relu", "relu"}, {"gelu", "gelu"}, {"silu", "silu"}, {"gelu_new", "gelu_tanh"}};
    config *c = &o->m->c;
    const char *word = config_word(c, "feed_forward_proj", multilingual ? "gated-gelu" : "relu");
    o->gated = strncmp(word, "gated-", 6) == 0;
    const char *act = o->gated ? word + 6 : word;
    if (strcmp(word, "gated-gelu") == 0) { // the library's own exception
        act = "gelu_new";
        model_note(&o->m->t,
                   "gelu_new is planned as one operation: the library's own is made of several, for which "
                   "PyTorch keeps three more tensors of its size.");
    }
    for (size_t k = 0; k < sizeof forms / sizeof *forms && o->act == NULL; k++) {
        o->act = strcmp(act, forms[k][0]) == 0 ? forms[k][1] : NULL;
    }
    if (o->act == NULL) {
        o->act = "relu";
        config_refuse_value(c, "feed_forward_proj",
                            "needs relu, gelu, silu or gelu_new, or gated- before one");
    }
}

static void read_keys(t5 *o)
{
    config *c = &o->m->c;
    const bool multilingual = strcmp(o->m->architecture, "MT5ForConditionalGeneration") == 0;
    o->vocabulary = config_count(c, "vocab_size", multilingual ? 250112 : 32128, 2, MODEL_TEXT_COUNT);
    o->width = config_count(c, "d_model", 512, 1, MODEL_TEXT_COUNT);
    o->features = config_count(c, "d_kv", 64, 1, MODEL_TEXT_HEADS);
    o->inner = config_count(c, "d_ff", multilingual ? 1024 : 2048, 1, MODEL_TEXT_COUNT);
    o->layers = config_count(c, "num_layers", multilingual ? 8 : 6, 1, MODEL_TEXT_ROUNDS);
    o->decoder_layers = config_count(c, "num_decoder_layers", o->layers, 1, MODEL_TEXT_ROUNDS);
    o->heads = config_count(c, "num_heads", multilingual ? 6 : 8, 1, MODEL_TEXT_HEADS);
    o->buckets = config_count(c, "relative_attention_num_buckets", 32, 4, BUCKETS_MAX);
    o->distance = config_count(c, "relative_attention_max_distance", 128, 2, MODEL_TEXT_COUNT);
    o->dropout = config_real(c, "dropout_rate", 0.1, 0, IMPORT_RATE_MAX);
    o->epsilon = config_real(c, "layer_norm_epsilon", 1e-6, 1e-12, 1);
    o->factor = config_real(c, "initializer_factor", 1, 0, 1000);
    o->tied = config_flag(c, "tie_word_embeddings", true);
    o->scaled = o->tied && !multilingual;
    o->m->sequence = SOURCE_TOKENS;
    read_network(o, multilingual);
}

static void write_head(const t5 *o)
{
    model_text *t = &o->m->t;
    model_line(t, "sizes: {sequence: %" PRId64 ", depth: %" PRId64 "}", o->m->sequence, o->layers);
    model_line(t, "inputs:");
    model_line(t, "  - {name: tokens, type: int32, classes: %" PRId64 ", shape: [$sequence]}", o->vocabulary);
    model_line(t, "  - {name: target, type: int32, classes: %" PRId64 ", shape: [%d]}", o->vocabulary,
               TARGET_TOKENS);
    model_line(t, "classes: %" PRId64, o->vocabulary);
    model_line(t, "loss: softmax_cross_entropy");
    model_note(t,
               "A sample is %d tokens and a target of %d, what T5 was trained with: the first is "
               "model.sequence.",
               SOURCE_TOKENS, TARGET_TOKENS);
}

// Queries and keys of the library begin with deviations of 1/sqrt(width*features) and 1/sqrt(width): both get the root of
// the two's product, which makes the same scores.
static void write_defaults(const t5 *o)
{
    model_text *t = &o->m->t;
    char norm[CONFIG_REAL_TEXT], dense[CONFIG_REAL_TEXT], query[CONFIG_REAL_TEXT], out[CONFIG_REAL_TEXT],
        rate[CONFIG_REAL_TEXT];
    const double scale = o->factor / sqrt((double)o->width);
    (void)config_real_text(scale, dense);
    (void)config_real_text(scale / sqrt(sqrt((double)o->features)), query);
    (void)config_real_text(o->factor / sqrt((double)(o->heads * o->features)), out);
    model_line(t, "defaults:");
    model_line(t, "  rms_norm: {epsilon: %s}", config_real_text(o->epsilon, norm));
    model_line(t, "  dense: {bias: false, init: normal, init_scale: %s}", dense);
    model_line(t,
               "  relative_bias: {heads: %" PRId64 ", buckets: %" PRId64 ", distance: %" PRId64
               ", init: normal, init_scale: %s}",
               o->heads, o->buckets, o->distance, dense);
    model_line(t, "  attention:");
    model_line(t,
               "    {heads: %" PRId64 ", head_dim: %" PRId64
               ", scale: 1, form: materialised, dropout: %s, bias: false, init: normal, init_scale: %s, "
               "output_init_scale: %s}",
               o->heads, o->features, config_real_text(o->dropout, rate), query, out);
}

static void write_norm(const t5 *o, const char *side, const char *what)
{
    model_layer(&o->m->t, "name: \"%s_%s_norm\", kind: rms_norm", side, what);
    model_weights(&o->m->t, 1, o->width, false);
}

static void write_drop(const t5 *o, const char *side, const char *what)
{
    char name[NAME_MAX_BYTES];
    (void)snprintf(name, sizeof name, "\"%s_%s_dropout\"", side, what);
    import_dropout(o->m, name, o->dropout);
}

static void write_attention(const t5 *o, const char *side, const char *what, const char *rest)
{
    model_text *t = &o->m->t;
    const int64_t all = o->heads * o->features;
    write_norm(o, side, what);
    model_layer(t, "name: \"%s_%s\", kind: attention, inputs: [previous, %s", side, what, rest);
    for (int k = 0; k < PROJECTIONS; k++) {
        model_weights(t, o->width, all, false);
    }
    model_weights(t, all, o->width, false);
    write_drop(o, side, what);
}

static void write_network(const t5 *o, const char *side, const char *before)
{
    model_text *t = &o->m->t;
    char scale[CONFIG_REAL_TEXT];
    write_norm(o, side, "ff");
    model_layer(t, "name: \"%s_wi\", kind: dense, units: %" PRId64 ", activation: %s", side, o->inner,
                o->act);
    model_weights(t, o->width, o->inner, false);
    if (o->gated) {
        model_layer(t, "name: \"%s_gate\", kind: dense, input: \"%s_ff_norm\", units: %" PRId64, side, side,
                    o->inner);
        model_weights(t, o->width, o->inner, false);
        model_layer(t, "name: \"%s_gated\", kind: multiply, inputs: [\"%s_wi\", previous]", side, side);
    }
    write_drop(o, side, "wi");
    model_layer(t, "name: \"%s_wo\", kind: dense, units: %" PRId64 ", init_scale: %s", side, o->width,
                config_real_text(o->factor / sqrt((double)o->inner), scale));
    model_weights(t, o->inner, o->width, false);
    write_drop(o, side, "wo");
    model_layer(t, "name: \"%s_out\", kind: add, inputs: [\"%s_%s_add\", previous]", side, side, before);
}

// The table of biases stands before what is dropped, which the first block adds to.
static void begin_side(const t5 *o, const char *side, const char *from, const char *places, const char *rest)
{
    model_layer(&o->m->t, "name: %s_bias, kind: relative_bias, input: %s%s", side, from, rest);
    model_weights(&o->m->t, o->buckets, o->heads, false);
    if (o->dropout > 0) {
        char rate[CONFIG_REAL_TEXT];
        model_layer(&o->m->t, "name: %s_dropout, kind: dropout, input: %s, rate: %s", side, from,
                    config_real_text(o->dropout, rate));
    } else {
        model_layer(&o->m->t, "name: %s_begin, kind: reshape, input: %s, shape: [%s, %" PRId64 "]", side,
                    from, places, o->width);
    }
}

static void write_encoder(const t5 *o)
{
    model_text *t = &o->m->t;
    char scale[CONFIG_REAL_TEXT];
    model_layer(
        t, "name: shared, kind: embedding, input: tokens, units: %" PRId64 ", init: normal, init_scale: %s",
        o->width, config_real_text(o->factor, scale));
    model_weights(t, o->vocabulary, o->width, false);
    begin_side(o, "encoder", "shared", "$sequence", "");
    model_repeat(t, o->layers);
    write_attention(o, "encoder_{i}", "attn", "encoder_bias]");
    model_layer(t, "name: \"encoder_{i}_attn_add\", kind: add, inputs: [before, previous]");
    write_network(o, "encoder_{i}", "attn");
    model_repeat_end(t);
    model_layer(t, "name: encoder_norm, kind: rms_norm");
    model_weights(t, 1, o->width, false);
    import_dropout(o->m, "encoder_out", o->dropout);
}

static void write_decoder(const t5 *o)
{
    model_text *t = &o->m->t;
    char places[16];
    (void)snprintf(places, sizeof places, "%d", TARGET_TOKENS);
    model_layer(t, "name: words, kind: embedding, input: target, units: %" PRId64 ", share: shared",
                o->width);
    begin_side(o, "decoder", "words", places, ", causal: true");
    (o->decoder_layers == o->layers ? model_repeat : model_rounds)(t, o->decoder_layers);
    write_attention(o, "decoder_{i}", "attn", "decoder_bias], causal: true");
    model_layer(t, "name: \"decoder_{i}_attn_add\", kind: add, inputs: [before, previous]");
    write_attention(o, "decoder_{i}", "cross", o->dropout > 0 ? "encoder_out]" : "encoder_norm]");
    model_layer(t,
                "name: \"decoder_{i}_cross_add\", kind: add, inputs: [\"decoder_{i}_attn_add\", previous]");
    write_network(o, "decoder_{i}", "cross");
    model_repeat_end(t);
    model_layer(t, "name: decoder_norm, kind: rms_norm");
    model_weights(t, 1, o->width, false);
    import_dropout(o->m, "decoder_out", o->dropout);
}

static void write_output(const t5 *o)
{
    model_text *t = &o->m->t;
    char factor[CONFIG_REAL_TEXT];
    if (o->scaled) {
        model_layer(t, "name: scaled, kind: scale, factor: %s",
                    config_real_text(1 / sqrt((double)o->width), factor));
    }
    model_layer(t, "name: lm_head, kind: dense, units: %" PRId64 "%s", o->vocabulary,
                o->tied ? ", transpose: true, share: shared" : "");
    if (!o->tied) {
        model_weights(t, o->width, o->vocabulary, false);
    }
}

void import_t5(importer *m)
{
    t5 o = {.m = m};
    read_keys(&o);
    if (config_status(&m->c) != HR_OK) {
        return;
    }
    write_head(&o);
    write_defaults(&o);
    write_encoder(&o);
    write_decoder(&o);
    write_output(&o);
    m->knobs = "batch: {size: 8}\n"
               "execution: {mode: graph}\n"
               "optimizer: {kind: adafactor, learning_rate: 1e-3}\n";
}
