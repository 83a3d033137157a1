// SPDX-License-Identifier: Apache-2.0
// Another program's file as a preset: which reader takes it; of a config.json of Hugging Face which family writes it, and what
// stands around the layers.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "importer.h"
#include "keras.h"
#include "knobs/preset_import.h"
#include "onnx.h"
#include "weights.h"

enum { KNOWN_MAX = 800 };

// The first of a model_type is what a file without architectures means.
static const struct {
    const char *architecture, *type;
    import_family write;
} families[] = {
    {"LlamaForCausalLM", "llama", import_decoder},
    {"MistralForCausalLM", "mistral", import_decoder},
    {"Qwen2ForCausalLM", "qwen2", import_decoder},
    {"Qwen3ForCausalLM", "qwen3", import_decoder},
    {"MixtralForCausalLM", "mixtral", import_decoder},
    {"Qwen3MoeForCausalLM", "qwen3_moe", import_decoder},
    {"GemmaForCausalLM", "gemma", import_decoder},
    {"Gemma2ForCausalLM", "gemma2", import_decoder},
    {"Phi3ForCausalLM", "phi3", import_decoder},
    {"Starcoder2ForCausalLM", "starcoder2", import_decoder},
    {"SeedOssForCausalLM", "seed_oss", import_decoder},
    {"Ernie4_5ForCausalLM", "ernie4_5", import_decoder},
    {"GraniteForCausalLM", "granite", import_decoder},
    {"GPT2LMHeadModel", "gpt2", import_gpt2},
    {"GPTBigCodeForCausalLM", "gpt_bigcode", import_gpt2},
    {"OPTForCausalLM", "opt", import_opt},
    {"BertForMaskedLM", "bert", import_encoder},
    {"BertModel", "bert", import_encoder},
    {"BertForSequenceClassification", "bert", import_encoder},
    {"BertForTokenClassification", "bert", import_encoder},
    {"RobertaForMaskedLM", "roberta", import_encoder},
    {"RobertaModel", "roberta", import_encoder},
    {"RobertaForSequenceClassification", "roberta", import_encoder},
    {"RobertaForTokenClassification", "roberta", import_encoder},
    {"XLMRobertaForMaskedLM", "xlm-roberta", import_encoder},
    {"XLMRobertaModel", "xlm-roberta", import_encoder},
    {"XLMRobertaForSequenceClassification", "xlm-roberta", import_encoder},
    {"XLMRobertaForTokenClassification", "xlm-roberta", import_encoder},
    {"CamembertForMaskedLM", "camembert", import_encoder},
    {"CamembertModel", "camembert", import_encoder},
    {"CamembertForSequenceClassification", "camembert", import_encoder},
    {"CamembertForTokenClassification", "camembert", import_encoder},
    {"DistilBertForMaskedLM", "distilbert", import_encoder},
    {"DistilBertModel", "distilbert", import_encoder},
    {"DistilBertForSequenceClassification", "distilbert", import_encoder},
    {"DistilBertForTokenClassification", "distilbert", import_encoder},
    {"ViTForImageClassification", "vit", import_vit},
    {"DeiTForImageClassification", "deit", import_vit},
    {"ResNetForImageClassification", "resnet", import_resnet},
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
    {"T5ForConditionalGeneration", "relative position bias"},
    {"MT5ForConditionalGeneration", "relative position bias"},
    {"MambaForCausalLM", "state-space layers"},
    {"SwinForImageClassification", "attention within shifted windows"},
    {"CLIPModel", "a loss between two encoders"},
};

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length >= tail && strcmp(path + length - tail, ending) == 0;
}

// ---- which family ---------------------------------------------------------------------------------------------

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

// The architecture, or what a file without one means by its model_type. NULL: refused.
static import_family find_family(importer *m)
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

// ---- the preset -----------------------------------------------------------------------------------------------

// Weights in two bytes are trained under the mixed policy of that type, with float32 weights beside them.
static const char *policy_of(importer *m)
{
    config *c = &m->c;
    const char *key = config_find(c, "dtype") != NULL ? "dtype" : "torch_dtype";
    const char *type = config_word(c, key, "float32");
    const char *plain = strncmp(type, "torch.", 6) == 0 ? type + 6 : type;
    const char *policy = strcmp(plain, "bfloat16") == 0  ? "mixed_bfloat16"
                         : strcmp(plain, "float16") == 0 ? "mixed_float16"
                                                         : "float32";
    if (policy[0] == 'f' && strcmp(plain, "float32") != 0) {
        config_refuse_value(c, key, "needs float32, float16 or bfloat16");
    }
    return policy;
}

// Keys of any family that change parameters in a way that is not in the layer language, and the word that does not.
static void refuse_what_changes_parameters(config *c)
{
    static const struct {
        const char *key, *harmless, *instead;
    } rows[] = {
        {"per_layer_config", NULL, "needs to be empty: layers that differ from one another are not read"},
        {"pruned_heads", NULL, "needs to be empty: heads that are missing in single layers are not read"},
        {"position_embedding_type", "absolute",
         "needs absolute: relative positions are not in the layer language"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const json_t *value = config_find(c, rows[k].key);
        const bool empty = value == NULL || (json_is_object(value) && json_object_size(value) == 0);
        const bool harmless = rows[k].harmless != NULL && json_is_string(value) &&
                              strcmp(json_string_value(value), rows[k].harmless) == 0;
        if (!empty && !harmless) {
            config_refuse_value(c, rows[k].key, "%s", rows[k].instead);
        }
    }
    if (config_flag(c, "sinusoidal_pos_embds", false)) {
        config_refuse(c, "sinusoidal_pos_embds",
                      "needs to be false: a table that is not trained is not in the layer language");
    }
}

static void put_model(const importer *m, const char *name, text *model)
{
    char parameters[32], length[48] = "";
    model_number(m->t.parameters, parameters);
    if (m->sequence > 0) {
        (void)snprintf(length, sizeof length, ", %" PRId64 " tokens", m->sequence);
    }
    text_append(model, "title: \"%s: %s%s\"\n", name, m->architecture, length);
    text_append(model, "description: \"%s as its %s says it: %s parameters.\"\n", name, m->file, parameters);
    if (m->t.notes.length > 0) {
        text_append(model, "note: \"%s\"\n", m->t.notes.data);
    }
    text_append(model, "model:\n  name: %s\n", name);
    text_append_bytes(model, m->t.head.data, m->t.head.length);
    text_append(model, "  layers:\n");
    text_append_bytes(model, m->t.layers.data, m->t.layers.length);
}

// The groups of a preset, and what any family says of them.
static hr_status read_around(importer *m, text *knobs)
{
    if (config_status(&m->c) != HR_OK) {
        return config_status(&m->c);
    }
    const char *policy = policy_of(m);
    refuse_what_changes_parameters(&m->c);
    if (config_find(&m->c, "quantization_config") != NULL) {
        model_note(&m->t, "quantization_config is left out: weights are as precision.policy has them.");
    }
    if (m->t.large[0] > 0) {
        config_refuse(&m->c, "it",
                      "says a tensor of %" PRId64 " x %" PRId64
                      ", beyond the largest tensor of 2^40 elements",
                      m->t.large[0], m->t.large[1]);
    }
    HR_TRY(config_status(&m->c));
    HR_TRY(weights_compare(&m->c, &m->t));
    text_append(knobs, "device: {kind: plan}\nprecision: {policy: %s}\n%s", policy, m->knobs);
    return HR_OK;
}

static hr_status finish(const importer *m, const char *name, text *model, const text *knobs, hr_err *err)
{
    char plain[MODEL_NAME + 1];
    model_name(name, plain);
    if (!model_text_failed(&m->t)) {
        put_model(m, plain, model);
    }
    if (model_text_failed(&m->t) || model->failed || knobs->failed) {
        return HR_FAIL(err, NOMEM, "%s: no memory to make a preset of it", m->c.path);
    }
    return HR_OK;
}

// ---- which reader ---------------------------------------------------------------------------------------------

static hr_status import_hugging_face(importer *m, text *knobs)
{
    const import_family write = find_family(m);
    if (write != NULL) {
        write(m);
    }
    return read_around(m, knobs);
}

static bool is_keras(const config *c)
{
    return json_is_string(json_object_get(c->root, "class_name")) &&
           json_object_get(c->root, "config") != NULL;
}

static bool is_any(const config *c)
{
    return c->root != NULL;
}

// Of a file of JSON: what is in it decides. The first that knows it reads it.
static const struct {
    bool (*knows)(const config *c);
    hr_status (*read)(importer *m, text *knobs);
    const char *file; // what the file is called in a description
} json_readers[] = {
    {is_keras, import_keras, "Keras file"},
    {is_any, import_hugging_face, "Hugging Face config.json"},
};

static hr_status import_json(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    importer m = {.knobs = ""};
    size_t k = 0;
    hr_status status = ends_with(path, ".keras") ? keras_open(path, &m.c, err) : config_open(path, &m.c, err);
    if (status == HR_OK) {
        while (!json_readers[k].knows(&m.c)) {
            k++;
        }
        m.file = json_readers[k].file;
        status = json_readers[k].read(&m, knobs);
    }
    status = status == HR_OK ? finish(&m, name, model, knobs, err) : status;
    model_text_deinit(&m.t);
    config_close(&m.c);
    return status;
}

hr_status preset_import(const char *path, const char *name, text *model, text *knobs, hr_err *err)
{
    return ends_with(path, ".onnx") ? onnx_import(path, name, model, knobs, err)
                                    : import_json(path, name, model, knobs, err);
}
