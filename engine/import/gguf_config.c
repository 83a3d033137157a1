// SPDX-License-Identifier: Apache-2.0
// The metadata of a GGUF file as the keys of a config.json. What no key says its tensors do: the vocabulary, whether the head has
// weights of its own, biases.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gguf.h"

enum { KEY_BYTES = 192, AS_MAX = 2 };

// `[llm].KEY` of the format, and the keys of the library that mean it.
static const struct {
    const char *key, *as[AS_MAX];
    bool needed, real;
} rows[] = {
    {"context_length", {"max_position_embeddings"}, true, false},
    {"embedding_length", {"hidden_size"}, true, false},
    {"block_count", {"num_hidden_layers"}, true, false},
    {"feed_forward_length", {"intermediate_size", "n_inner"}, true, false},
    {"attention.head_count", {"num_attention_heads"}, true, false},
    {"attention.head_count_kv", {"num_key_value_heads"}, false, false},
    {"attention.key_length", {"head_dim"}, false, false},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps"}, false, true},
    {"attention.layer_norm_epsilon", {"norm_epsilon", "layer_norm_epsilon"}, false, true},
    {"attention.sliding_window", {"sliding_window"}, false, false},
    {"rope.freq_base", {"rope_theta"}, false, true},
    {"expert_count", {"num_local_experts", "num_experts"}, false, false},
    {"expert_used_count", {"num_experts_per_tok"}, false, false},
    {"expert_feed_forward_length", {"moe_intermediate_size"}, false, false},
    {"attn_logit_softcapping", {"attn_logit_softcapping"}, false, true},
    {"final_logit_softcapping", {"final_logit_softcapping"}, false, true},
    {"embedding_scale", {"embedding_multiplier"}, false, true},
    {"residual_scale", {"residual_multiplier"}, false, true},
    {"attention.scale", {"attention_multiplier"}, false, true},
    {"logit_scale", {"logits_scaling"}, false, true},
};

static const json_t *value_of(const gguf *g, const char *key)
{
    const json_t *value = json_object_get(g->keys, key);
    return json_is_null(value) ? NULL : value;
}

// `ARCHITECTURE.KEY`
static const json_t *own_value(const gguf *g, const char *key)
{
    char whole[KEY_BYTES];
    (void)snprintf(whole, sizeof whole, "%.120s.%s", gguf_word(g, "general.architecture"), key);
    return value_of(g, whole);
}

const char *gguf_word(const gguf *g, const char *key)
{
    const char *word = json_string_value(value_of(g, key));
    return word == NULL ? "" : word;
}

int64_t gguf_split_count(const gguf *g)
{
    const json_int_t count = json_integer_value(value_of(g, "split.count"));
    return count < 1 ? 1 : count;
}

int64_t gguf_expert_count(const gguf *g)
{
    return json_integer_value(own_value(g, "expert_count"));
}

// ---- the object -----------------------------------------------------------------------------------------------

typedef struct writer {
    const gguf *g;
    json_t *root;
    hr_status status;
} writer;

static void put(writer *w, const char *key, json_t *value) // takes the value
{
    if (w->status != HR_OK) {
        json_decref(value);
    } else if (value == NULL || json_object_set_new(w->root, key, value) != 0) {
        w->status = HR_FAIL(w->g->list.err, NOMEM, "%.200s: no memory to read it", w->g->list.path);
    }
}

static void refuse_missing(writer *w, const char *key)
{
    if (w->status == HR_OK) {
        w->status = HR_FAIL(w->g->list.err, PRESET, "%.160s: %.60s.%s is needed, and is not in its metadata",
                            w->g->list.path, gguf_word(w->g, "general.architecture"), key);
        hr_err_try(w->g->list.err, "the file as a current converter of llama.cpp writes it");
    }
}

// A number for all layers; one of the library's keys would be refused by a name that the file does not have.
static void check_number(writer *w, const char *key, const json_t *value, bool real)
{
    if (w->status == HR_OK && !json_is_integer(value) && !(real && json_is_real(value))) {
        const bool list = json_is_array(value) || json_is_object(value);
        w->status =
            HR_FAIL(w->g->list.err, PRESET, "%.160s: %.60s.%s needs %s, had %s", w->g->list.path,
                    gguf_word(w->g, "general.architecture"), key, real ? "one number" : "one whole number",
                    list                    ? "a list: layers that differ from one another are not read"
                    : json_is_real(value)   ? "a fraction"
                    : json_is_string(value) ? "a text"
                                            : "a flag");
        hr_err_try(w->g->list.err, "the file as a current converter of llama.cpp writes it");
    }
}

// An adapter has an architecture as well, and the metadata of none.
static void check_kind(writer *w)
{
    const char *kind = gguf_word(w->g, "general.type");
    if (w->status == HR_OK && kind[0] != '\0' && strcmp(kind, "model") != 0) {
        w->status = HR_FAIL(w->g->list.err, PRESET,
                            "%.160s: general.type says '%.40s', and only a 'model' names its network",
                            w->g->list.path, kind);
        hr_err_try(w->g->list.err, "the file of the model that it belongs to");
    }
}

static void put_rows(writer *w)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const json_t *value = own_value(w->g, rows[k].key);
        if (value == NULL && rows[k].needed) {
            refuse_missing(w, rows[k].key);
        } else if (value != NULL) {
            check_number(w, rows[k].key, value, rows[k].real);
        }
        for (size_t i = 0; value != NULL && i < AS_MAX && rows[k].as[i] != NULL; i++) {
            put(w, rows[k].as[i], json_incref((json_t *)(uintptr_t)value));
        }
    }
}

// What the format means where a key is missing, and the library would take its own default.
static void put_meant(writer *w)
{
    const gguf *g = w->g;
    const bool is_llama = strcmp(gguf_word(g, "general.architecture"), "llama") == 0;
    const json_t *heads = own_value(g, "attention.head_count");
    if (own_value(g, "attention.head_count_kv") == NULL && heads != NULL) {
        put(w, "num_key_value_heads", json_incref((json_t *)(uintptr_t)heads));
    }
    if (gguf_expert_count(g) > 0 && own_value(g, "expert_used_count") == NULL) {
        refuse_missing(w, "expert_used_count");
    }
    if (gguf_expert_count(g) > 0 && !is_llama && own_value(g, "expert_feed_forward_length") == NULL) {
        refuse_missing(w, "expert_feed_forward_length");
    }
}

// The width of a head, which positions may turn a part of.
static void put_heads(writer *w)
{
    const gguf *g = w->g;
    const json_int_t heads = json_integer_value(own_value(g, "attention.head_count"));
    const json_int_t hidden = json_integer_value(own_value(g, "embedding_length"));
    const json_t *keys = own_value(g, "attention.key_length"),
                 *values = own_value(g, "attention.value_length");
    const json_int_t shared_out = heads > 0 && hidden % heads == 0 ? hidden / heads : 0;
    const json_int_t width = keys != NULL ? json_integer_value(keys) : shared_out;
    const json_int_t turned = json_integer_value(own_value(g, "rope.dimension_count"));
    if (width < 1) {
        refuse_missing(w, "attention.key_length");
    }
    if (w->status == HR_OK && values != NULL && json_integer_value(values) != width) {
        w->status = HR_FAIL(g->list.err, PRESET,
                            "%.160s: attention.value_length needs the %" JSON_INTEGER_FORMAT
                            " features of a key, had %" JSON_INTEGER_FORMAT
                            ": latent attention is not in the layer language",
                            g->list.path, width, json_integer_value(values));
    }
    if (turned > 0 && turned != width) {
        put(w, "partial_rotary_factor", json_real((double)turned / (double)width));
    }
    put(w, "head_dim", json_integer(width));
    put(w, "query_pre_attn_scalar", json_integer(width)); // no key says another
}

// What the tensors say; of a file that is a part of several, only what is in it.
static void put_tensors(writer *w)
{
    const gguf *g = w->g;
    const json_t *tokens = value_of(g, "tokenizer.ggml.tokens"), *said = own_value(g, "vocab_size");
    const json_int_t named =
        said != NULL ? json_integer_value(said) : json_integer_value(json_object_get(tokens, "count"));
    const json_int_t rows_of_table = g->vocabulary <= INT64_MAX ? (json_int_t)g->vocabulary : 0;
    if (rows_of_table == 0 && named == 0) {
        refuse_missing(w, "vocab_size");
    }
    put(w, "vocab_size", json_integer(rows_of_table > 0 ? rows_of_table : named));
    if (g->vocabulary > 0 && gguf_split_count(g) == 1 &&
        strcmp(gguf_word(g, "general.architecture"), "gpt2") != 0) {
        put(w, "tie_word_embeddings", json_boolean(!g->has_output)); // GPT-2's are, and old files have both
    }
    put(w, "attention_bias", json_boolean(g->has_query_bias));
    put(w, "attention_out_bias", json_boolean(g->has_output_bias));
    put(w, "use_bias", json_boolean(g->has_query_bias));
    put(w, "mlp_bias", json_boolean(g->has_inner_bias));
    put(w, "norm_topk_prob", json_true()); // as llama.cpp computes those that have experts
}

static void put_scaling(writer *w)
{
    const char *word = json_string_value(own_value(w->g, "rope.scaling.type"));
    if (word != NULL && strcmp(word, "none") != 0) {
        json_t *scaling = json_object();
        json_t *type = json_string(word);
        if (scaling == NULL || type == NULL || json_object_set_new(scaling, "rope_type", type) != 0) {
            json_decref(scaling);
            scaling = NULL;
        }
        put(w, "rope_scaling", scaling);
    }
}

// The type of most of its bytes; what is quantized is trained from two bytes.
static void put_type(writer *w)
{
    const tensor_sum *most = NULL;
    for (uint32_t k = 0; k < w->g->list.sum_count; k++) {
        const tensor_sum *sum = &w->g->list.sums[k];
        most = sum->type->real && (most == NULL || sum->bytes > most->bytes) ? sum : most;
    }
    const char *name = most == NULL ? "F32" : most->type->name;
    put(w, "dtype",
        json_string(strcmp(name, "F32") == 0 || strcmp(name, "F64") == 0 ? "float32"
                    : strcmp(name, "F16") == 0                           ? "float16"
                                                                         : "bfloat16"));
}

json_t *gguf_config(const gguf *g, hr_status *status)
{
    writer w = {.g = g, .root = json_object(), .status = HR_OK};
    if (w.root == NULL) {
        w.status = HR_FAIL(g->list.err, NOMEM, "%.200s: no memory to read it", g->list.path);
    }
    check_kind(&w);
    put_rows(&w);
    put_meant(&w);
    put_heads(&w);
    put_tensors(&w);
    put_scaling(&w);
    put_type(&w);
    *status = w.status;
    if (w.status != HR_OK) {
        json_decref(w.root);
        return NULL;
    }
    return w.root;
}
