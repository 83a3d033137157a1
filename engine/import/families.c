// SPDX-License-Identifier: Apache-2.0
// The families of networks that are read by what a file says of their sizes: one table for a config.json of Hugging Face and for
// the metadata of a GGUF file.
#include "families.h"

#include <stdio.h>
#include <string.h>

enum { KNOWN_MAX = 800 };

// The first of a model_type is what a file without architectures means.
static const struct {
    const char *architecture, *type;
    import_family write;
    const char *gguf; // what GGUF calls it; NULL: it is not read from there
    bool experts;     // of those that have one name there
} families[] = {
    {"LlamaForCausalLM", "llama", import_decoder, "llama", false},
    {"MistralForCausalLM", "mistral", import_decoder, NULL, false},
    {"Qwen2ForCausalLM", "qwen2", import_decoder, "qwen2", false},
    {"Qwen3ForCausalLM", "qwen3", import_decoder, "qwen3", false},
    {"MixtralForCausalLM", "mixtral", import_decoder, "llama", true},
    {"Qwen3MoeForCausalLM", "qwen3_moe", import_decoder, "qwen3moe", true},
    {"GemmaForCausalLM", "gemma", import_decoder, "gemma", false},
    {"Gemma2ForCausalLM", "gemma2", import_decoder, "gemma2", false},
    {"Phi3ForCausalLM", "phi3", import_decoder, "phi3", false},
    {"Starcoder2ForCausalLM", "starcoder2", import_decoder, "starcoder2", false},
    {"SeedOssForCausalLM", "seed_oss", import_decoder, "seed_oss", false},
    {"Ernie4_5ForCausalLM", "ernie4_5", import_decoder, "ernie4_5", false},
    {"GraniteForCausalLM", "granite", import_decoder, "granite", false},
    {"GPT2LMHeadModel", "gpt2", import_gpt2, "gpt2", false},
    {"GPTBigCodeForCausalLM", "gpt_bigcode", import_gpt2, NULL, false},
    {"OPTForCausalLM", "opt", import_opt, NULL, false},
    {"BertForMaskedLM", "bert", import_encoder, NULL, false},
    {"BertModel", "bert", import_encoder, NULL, false},
    {"BertForSequenceClassification", "bert", import_encoder, NULL, false},
    {"BertForTokenClassification", "bert", import_encoder, NULL, false},
    {"RobertaForMaskedLM", "roberta", import_encoder, NULL, false},
    {"RobertaModel", "roberta", import_encoder, NULL, false},
    {"RobertaForSequenceClassification", "roberta", import_encoder, NULL, false},
    {"RobertaForTokenClassification", "roberta", import_encoder, NULL, false},
    {"XLMRobertaForMaskedLM", "xlm-roberta", import_encoder, NULL, false},
    {"XLMRobertaModel", "xlm-roberta", import_encoder, NULL, false},
    {"XLMRobertaForSequenceClassification", "xlm-roberta", import_encoder, NULL, false},
    {"XLMRobertaForTokenClassification", "xlm-roberta", import_encoder, NULL, false},
    {"CamembertForMaskedLM", "camembert", import_encoder, NULL, false},
    {"CamembertModel", "camembert", import_encoder, NULL, false},
    {"CamembertForSequenceClassification", "camembert", import_encoder, NULL, false},
    {"CamembertForTokenClassification", "camembert", import_encoder, NULL, false},
    {"DistilBertForMaskedLM", "distilbert", import_encoder, NULL, false},
    {"DistilBertModel", "distilbert", import_encoder, NULL, false},
    {"DistilBertForSequenceClassification", "distilbert", import_encoder, NULL, false},
    {"DistilBertForTokenClassification", "distilbert", import_encoder, NULL, false},
    {"T5ForConditionalGeneration", "t5", import_t5, NULL, false},
    {"MT5ForConditionalGeneration", "mt5", import_t5, NULL, false},
    {"ViTForImageClassification", "vit", import_vit, NULL, false},
    {"DeiTForImageClassification", "deit", import_vit, NULL, false},
    {"ResNetForImageClassification", "resnet", import_resnet, NULL, false},
};
enum { FAMILIES = sizeof families / sizeof *families };

// Well-known ones, and what our layer language lacks for them.
static const char *const lacking[][2] = {
    {"Qwen2MoeForCausalLM", "an expert of all tokens behind a gate"},
    {"OlmoeForCausalLM", "a norm over all heads of queries together"},
    {"DeepseekV2ForCausalLM", "latent attention"},
    {"DeepseekV3ForCausalLM", "latent attention"},
    {"GptOssForCausalLM", "attention with sinks"},
    {"PhiForCausalLM", "rotary positions over a part of each head"},
    {"GPTNeoXForCausalLM", "rotary positions over a part of each head"},
    {"GPTJForCausalLM", "rotary positions over a part of each head"},
    {"StableLmForCausalLM", "rotary positions over a part of each head"},
    {"GlmForCausalLM", "rotary positions over a part of each head"},
    {"NemotronForCausalLM", "rotary positions over a part of each head"},
    {"BloomForCausalLM", "ALiBi positions"},
    {"MPTForCausalLM", "ALiBi positions"},
    {"MptForCausalLM", "ALiBi positions"},
    {"CohereForCausalLM", "layer norm without a shift"},
    {"OlmoForCausalLM", "layer norm without weights"},
    {"Olmo2ForCausalLM", "a norm over all heads of queries together"},
    {"Gemma3ForCausalLM", "a rotary base for each kind of layers"},
    {"GPTNeoForCausalLM", "attention within a window"},
    {"MambaForCausalLM", "state-space layers"},
    {"SwinForImageClassification", "attention within shifted windows"},
    {"CLIPModel", "a loss between two encoders"},
};

// ---- of a config.json ---------------------------------------------------------------------------------------------

static int family_of(const char *architecture, const char *type)
{
    for (int k = 0; k < FAMILIES; k++) {
        if (architecture != NULL ? strcmp(families[k].architecture, architecture) == 0
                                 : strcmp(families[k].type, type) == 0) {
            return k;
        }
    }
    return -1;
}

static void refuse_family(config *c, const char *word)
{
    char known[KNOWN_MAX];
    size_t used = 0;
    for (size_t k = 0; k < sizeof lacking / sizeof *lacking; k++) {
        if (strcmp(lacking[k][0], word) == 0) {
            config_refuse(c, "architectures", "says %s: %s is not in the layer language", word,
                          lacking[k][1]);
            return;
        }
    }
    known[0] = '\0';
    const char *last = "";
    for (int k = 0; k < FAMILIES; k++) {
        if (strcmp(families[k].type, last) != 0) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", k > 0 ? ", " : "",
                                     families[k].type);
            last = families[k].type;
        }
    }
    config_refuse(c, config_find(c, "architectures") != NULL ? "architectures" : "model_type",
                  "says '%.60s', which is none of those that are read: %s", word, known);
}

import_family family_of_config(importer *m)
{
    config *c = &m->c;
    const json_t *list = config_find(c, "architectures");
    const char *type = config_word(c, "model_type", NULL);
    const json_t *first = json_is_array(list) && json_array_size(list) > 0 ? json_array_get(list, 0) : NULL;
    const char *word = json_string_value(first);
    if (list != NULL && word == NULL && json_array_size(list) > 0) {
        config_refuse_value(c, "architectures", "needs a list of names such as [\"LlamaForCausalLM\"]");
    } else if (word == NULL && type == NULL) {
        config_refuse(c, "architectures",
                      "or model_type is needed, as a config.json of Hugging Face has them, and "
                      "neither is there");
    }
    if (config_status(c) != HR_OK) {
        return NULL;
    }
    const int k = family_of(word, type);
    if (k < 0) {
        refuse_family(c, word != NULL ? word : type);
        return NULL;
    }
    m->architecture = families[k].architecture;
    return families[k].write;
}

// ---- of a GGUF file -------------------------------------------------------------------------------------------

static int family_called(const char *word, bool has_experts)
{
    for (int k = 0; k < FAMILIES; k++) {
        if (families[k].gguf != NULL && strcmp(families[k].gguf, word) == 0 &&
            families[k].experts == has_experts) {
            return k;
        }
    }
    return -1;
}

bool family_knows_gguf(const char *word, bool has_experts)
{
    return family_called(word, has_experts) >= 0;
}

static void refuse_gguf(config *c, const char *word)
{
    char known[KNOWN_MAX];
    size_t used = 0;
    known[0] = '\0';
    for (int k = 0; k < FAMILIES; k++) {
        if (families[k].gguf != NULL && used < sizeof known) {
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s%s", used > 0 ? ", " : "",
                                     families[k].gguf, families[k].experts ? " with experts" : "");
        }
    }
    config_refuse(c, "general.architecture", "says '%.40s', which is none of those that are read: %s", word,
                  known);
    hr_err_try(c->err, "headroom plan '%.200s', for what its weights take", c->path);
}

import_family family_of_gguf(importer *m, const char *word, bool has_experts)
{
    const int k = family_called(word, has_experts);
    if (k < 0) {
        refuse_gguf(&m->c, word);
        return NULL;
    }
    m->architecture = families[k].architecture;
    return families[k].write;
}
