// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of Hugging Face's config.json: as many parameters as are published, what cannot be held is refused
// with its key, what is left out is said, and no file of a stranger does more than be refused.
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "model/model.h"

static char folder[64];
static hr_preset *preset;
static hr_err err;

static const char *path_of(const char *leaf)
{
    static char path[4][256];
    static unsigned turn;
    char *out = path[turn++ % 4];
    (void)snprintf(out, sizeof path[0], "%s/%s", folder, leaf);
    return out;
}

static const char *put_bytes(const char *leaf, const char *data, size_t bytes)
{
    const char *path = path_of(leaf);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static const char *put(const char *leaf, const char *words)
{
    return put_bytes(leaf, words, strlen(words));
}

static void setup(void)
{
    (void)strcpy(folder, "/tmp/headroom-import-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    memset(&err, 0, sizeof err);
}

static void close_preset(void)
{
    hr_preset_close(preset);
    preset = NULL;
}

static void teardown(void)
{
    char command[128];
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static void open_good(const char *path)
{
    char *problems = NULL;
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(status == HR_OK, "%s: %s", path, problems != NULL ? problems : err.sentence);
}

// Opened, its model as its reader says: those that are trained.
static uint64_t parameters_of(const char *path)
{
    char *problems = NULL;
    hr_model *model = NULL;
    open_good(path);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, &problems, &err) == HR_OK, "%s: %s",
                  path, problems);
    const uint64_t parameters = model->trainable_parameters;
    model_destroy(model);
    return parameters;
}

// 1234567 as "1,234,567 parameters".
static void assert_description_says(uint64_t parameters)
{
    char wanted[64] = " parameters", digits[32];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)parameters);
    for (int k = 1; k <= length; k++) {
        memmove(wanted + 1, wanted, strlen(wanted) + 1);
        wanted[0] = digits[length - k];
        if (k % 3 == 0 && k < length) {
            memmove(wanted + 1, wanted, strlen(wanted) + 1);
            wanted[0] = ',';
        }
    }
    ck_assert_msg(strstr(hr_preset_description(preset), wanted) != NULL, "%s: not '%s'",
                  hr_preset_description(preset), wanted);
}

// ---- what is published ----------------------------------------------------------------------------------------

// Parameters as the models' pages and papers have them (tied weights once).
static const struct {
    const char *file;
    uint64_t parameters;
} published[] = {
    {"llama3_2_1b", 1235814400},
    {"llama3_1_8b", 8030261248},
    {"mistral_7b", 7241732096},
    {"mixtral_8x7b", 46702792704},
    {"qwen3_30b_a3b", 30532122624},
    {"qwen2_5_0_5b", 494032768},
    {"qwen2_5_7b", 7615616512},
    {"qwen3_0_6b", 596049920},
    {"qwen3_8b", 8190735360},
    {"gemma_2b", 2506172416},
    {"gemma2_2b", 2614341888},
    {"phi3_mini_4k", 3821079552},
    {"starcoder2_3b", 3030371328},
    {"gpt2_124m", 124439808},
    {"gpt2_1558m", 1557611200},
    {"bert_base_uncased", 109514298},
    {"bert_large_uncased", 335174458},
    {"distilbert_sst2", 66955010},
    {"t5_base", 222903552},
    {"flan_t5_base", 247577856},
    {"mt5_small", 300176768},
    {"vit_base_patch16_224", 86567656},
    {"roberta_base", 124697433},
    {"xlm_roberta_base", 278295186},
    {"opt_1_3b", 1315758080},
    {"starcoderbase_1b", 1137207296},
    {"granite_3_1_2b", 2533531648},
    {"resnet_50", 25557032},
    {"resnet_18", 11689512},
};

START_TEST(parameters_are_those_published)
{
    char path[128];
    (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", published[_i].file);
    ck_assert_msg(parameters_of(path) == published[_i].parameters, "%s", path);
    assert_description_says(published[_i].parameters);
    ck_assert_str_eq(hr_preset_path(preset), path);
    ck_assert_str_eq(hr_preset_name(preset), published[_i].file);
}
END_TEST

// ---- keys -----------------------------------------------------------------------------------------------------

#define LLAMA                                                                                                \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 16, "                  \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                      \
    "\"max_position_embeddings\": 8"
#define QWEN2                                                                                                \
    "{\"model_type\": \"qwen2\", \"vocab_size\": 64, \"hidden_size\": 16, \"intermediate_size\": 24, "       \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "                     \
    "\"max_position_embeddings\": 8, \"tie_word_embeddings\": true"
#define BERT(task)                                                                                           \
    "{\"architectures\": [\"" task "\"], \"vocab_size\": 64, \"hidden_size\": 16, "                          \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                      \
    "\"max_position_embeddings\": 8"
#define ROBERTA(task)                                                                                        \
    "{\"architectures\": [\"" task "\"], \"vocab_size\": 64, \"hidden_size\": 16, \"type_vocab_size\": 1, "  \
    "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                      \
    "\"max_position_embeddings\": 10"
#define OPT                                                                                                  \
    "{\"model_type\": \"opt\", \"vocab_size\": 64, \"hidden_size\": 16, \"ffn_dim\": 24, "                   \
    "\"word_embed_proj_dim\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                    \
    "\"max_position_embeddings\": 8"
#define VIT                                                                                                  \
    "{\"model_type\": \"vit\", \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, "   \
    "\"num_attention_heads\": 4, \"image_size\": 8, \"patch_size\": 4"

// Counted by hand: a layer of LLAMA has 4 x 16 x 16 + 3 x 16 x 24 + 32 = 2208, the rest 2 x 64 x 16 + 16 = 2064.
static const struct {
    const char *words;
    uint64_t parameters;
} counted[] = {
    {LLAMA "}", 2 * 2208 + 2064},
    {LLAMA ", \"tie_word_embeddings\": true}", 2 * 2208 + 2064 - 1024},
    {LLAMA ", \"num_key_value_heads\": 1}", 2 * (2208 - 2 * 16 * 12) + 2064},
    {LLAMA ", \"head_dim\": 8}", 2 * (2208 + 4 * 16 * 16) + 2064},
    {LLAMA ", \"attention_bias\": true}", 2 * (2208 + 4 * 16) + 2064},
    {LLAMA ", \"mlp_bias\": true}", 2 * (2208 + 2 * 24 + 16) + 2064},
    {LLAMA ", \"head_dim\": null, \"rope_scaling\": null}", 2 * 2208 + 2064},
    // queries, keys and values have a bias and the output has none
    {QWEN2 "}", 2 * (2208 - 2 * 16 * 8 + 16 + 8 + 8) + 2064 - 1024},
    // a layer has 4 x (256 + 16) + 2 x 16 x 24 + 24 + 16 + 4 x 16 = 1960; embeddings (64 + 2 + 8) x 16 + 32 = 1216
    {BERT("BertModel") "}", 2 * 1960 + 1216 + 272},
    {BERT("BertForMaskedLM") "}", 2 * 1960 + 1216 + 272 + 32 + 64},
    {BERT("BertForMaskedLM") ", \"tie_word_embeddings\": false}", 2 * 1960 + 1216 + 272 + 32 + 64 + 1024},
    {BERT("BertForSequenceClassification") ", \"num_labels\": 1}", 2 * 1960 + 1216 + 272 + 17},
    {BERT("BertForTokenClassification") ", \"num_labels\": 10, \"id2label\": {\"0\": \"A\", \"1\": \"B\", "
                                        "\"2\": \"C\"}}",
     2 * 1960 + 1216 + 3 * 17}, // the names decide
    {BERT("BertForTokenClassification") ", \"id2label\": {\"0\": \"A\", \"1\": \"B\", \"2\": \"C\"}}",
     2 * 1960 + 1216 + 51},
    // a layer has as many as BERT's; 4 x 4 x 3 x 16 + 16 of the patches, 16 + 5 x 16 of token and places, 32, 34
    {VIT "}", 2 * 1960 + 784 + 96 + 32 + 34},
    // two rows of places that nothing reads, and a dense layer behind the first token in place of the pooler
    {ROBERTA("RobertaModel") "}", 2 * 1960 + (64 + 1 + 10) * 16 + 32 + 272},
    {ROBERTA("RobertaForMaskedLM") "}", 2 * 1960 + (64 + 1 + 10) * 16 + 32 + 272 + 32 + 64},
    {ROBERTA("XLMRobertaForSequenceClassification") "}", 2 * 1960 + (64 + 1 + 10) * 16 + 32 + 272 + 34},
    // a layer has 4 x 272 + 2 x 16 x 24 + 24 + 16 + 64, and 32 behind them
    {OPT "}", 2 * 1960 + (64 + 10) * 16 + 32},
    {OPT ", \"enable_bias\": false}", 2 * (1960 - 4 * 16 - 24 - 16) + (64 + 10) * 16 + 32},
    {OPT ", \"_remove_final_layer_norm\": true, \"tie_word_embeddings\": false}",
     2 * 1960 + (64 + 10) * 16 + 64 * 16},
    // keys and values of one head of 4
    {"{\"model_type\": \"gpt_bigcode\", \"n_embd\": 16, \"n_inner\": 24, \"n_layer\": 2, \"n_head\": 4, "
     "\"vocab_size\": 64, \"n_positions\": 8}",
     2 * (1960 - 2 * (272 - 68)) + (64 + 8) * 16 + 32},
    {"{\"model_type\": \"seed_oss\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": "
     "4, "
     "\"head_dim\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 24, \"vocab_size\": 64, "
     "\"max_position_embeddings\": 8, \"attention_bias\": false, \"attention_out_bias\": true}",
     2 * (2208 + 16) + 2064},
    // GPT-2's own names and the library's for them: the latter decide
    {"{\"model_type\": \"gpt_bigcode\", \"n_embd\": 32, \"hidden_size\": 16, \"n_inner\": 24, "
     "\"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"vocab_size\": 64, \"max_position_embeddings\": 8}",
     2 * (1960 - 2 * (272 - 68)) + (64 + 8) * 16 + 32},
    // null is as many as heads; missing are the family's 8
    {"{\"model_type\": \"mistral\", \"num_hidden_layers\": 2, \"hidden_size\": 16, \"num_attention_heads\": "
     "16, "
     "\"head_dim\": 2, \"num_key_value_heads\": null, \"intermediate_size\": 24, \"vocab_size\": 64, "
     "\"max_position_embeddings\": 8, \"sliding_window\": null}",
     2 * (4 * 16 * 32 + 3 * 16 * 24 + 32) + 2 * 64 * 16 + 16},
    {VIT ", \"qkv_bias\": false}", 2 * (1960 - 48) + 784 + 96 + 32 + 34},
};

START_TEST(each_key_that_has_parameters_counts)
{
    ck_assert_msg(parameters_of(put("x.json", counted[_i].words)) == counted[_i].parameters, "%s",
                  counted[_i].words);
    assert_description_says(counted[_i].parameters);
    const bool headless = strstr(counted[_i].words, "Model\"") != NULL;
    const bool untied =
        strstr(counted[_i].words, "BertForMaskedLM\"]") != NULL && strstr(counted[_i].words, "tie_") != NULL;
    ck_assert_msg(strstr(hr_preset_note(preset), headless
                                                     ? "has no loss: its output is compared with a given one"
                                                 : untied ? "which nothing reads"
                                                          : "") != NULL,
                  "%s", hr_preset_note(preset));
    ck_assert_msg(headless || untied || hr_preset_note(preset)[0] == '\0', "%s", hr_preset_note(preset));
}
END_TEST

static const struct {
    const char *words, *note;
} noted[] = {
    {LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\"}}", "rope_scaling 'llama3' is left out"},
    {LLAMA ", \"rope_scaling\": {\"type\": \"x\\\"\\\\\\u00e4\"}}", "rope_scaling 'x'/?"},
    {LLAMA ", \"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 5e6}}",
     "rope_parameters 'yarn'"},
    {LLAMA ", \"sliding_window\": 4}", "sliding_window 4 is left out"},
    {LLAMA ", \"quantization_config\": {}}", "quantization_config is left out"},
    {"{\"model_type\": \"llama\", \"vocab_size\": 100, \"hidden_size\": 64, \"intermediate_size\": 96, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4}",
     ""},
    {"{\"model_type\": \"llama\"}",
     "The file leaves sizes out, which are then the library's defaults: vocab_size 32000, hidden_size 4096, "
     "intermediate_size 11008, num_hidden_layers 32, num_attention_heads 32."},
    {"{\"model_type\": \"llama\", \"vocab_size\": 100, \"hidden_size\": null, \"intermediate_size\": 96, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4}",
     "defaults: hidden_size 4096."},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 96, \"n_inner\": null}",
     "defaults: vocab_size 50257, n_layer 12, n_head 12."},
    {"{\"model_type\": \"resnet\"}", "hidden_sizes 256/512/1024/2048, depths 3/4/6/3, embedding_size 64."},
    {"{\"model_type\": \"gpt2\"}", "gelu_new is planned as one operation"},
    {"{\"model_type\": \"llama\", \"max_position_embeddings\": 131072}",
     "The model takes 131072 tokens: model.sequence begins at 4096."},
    {"{\"model_type\": \"gemma2\", \"query_pre_attn_scalar\": 144}", "query_pre_attn_scalar 144 is left out"},
    {"{\"model_type\": \"gemma2\"}", "attn_logit_softcapping 50 is left out"},
    {"{\"model_type\": \"granite\"}", "attention_multiplier 1 is left out"},
    {"{\"model_type\": \"resnet\"}", "Images are 224 pixels wide and high"},
    {"{\"model_type\": \"opt\", \"layerdrop\": 0.1}", "layerdrop is left out"},
    {"{\"model_type\": \"phi3\"}", "qkv_proj stands as three products"},
    {"{\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true}", "scale_attn_by_inverse"},
};

START_TEST(what_is_left_out_is_said)
{
    open_good(put("x.json", noted[_i].words));
    ck_assert_msg(strstr(hr_preset_note(preset), noted[_i].note) != NULL, "%s: %s", noted[_i].words,
                  hr_preset_note(preset));
    ck_assert_msg(noted[_i].note[0] != '\0' || hr_preset_note(preset)[0] == '\0', "%s",
                  hr_preset_note(preset));
}
END_TEST

START_TEST(the_type_of_the_weights_is_the_policy)
{
    static const char *const rows[][2] = {{"", "float32"},
                                          {", \"torch_dtype\": \"float32\"", "float32"},
                                          {", \"torch_dtype\": \"bfloat16\"", "mixed_bfloat16"},
                                          {", \"dtype\": \"float16\"", "mixed_float16"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char words[512], value[HR_KNOB_TEXT_MAX];
        (void)snprintf(words, sizeof words, LLAMA "%s}", rows[k][0]);
        open_good(put("x.json", words));
        ck_assert_str_eq(hr_knob_format(hr_preset_knobs(preset), HR_KNOB_PRECISION_POLICY, value),
                         rows[k][1]);
        close_preset();
    }
}
END_TEST

// ---- what is refused ------------------------------------------------------------------------------------------

static const struct {
    const char *words;
    const char *says[3];
} refused[] = {
    {"", {"x.json:1:1", "needed the JSON of a config.json"}},
    {"{\"architectures\": [\"Lla", {"x.json:1:", "needed the JSON"}},
    {"[1]", {"needed an object with the keys of a config.json"}},
    {"7", {"needed an object"}},
    {"{}", {"architectures or model_type is needed"}},
    {"{\"model_type\": 3}", {"model_type needs a text, had 3"}},
    {"{\"architectures\": \"LlamaForCausalLM\"}", {"architectures or model_type"}},
    {"{\"architectures\": [7]}", {"architectures needs a list of names", "had a list"}},
    {"{\"architectures\": [\"DeepseekV3ForCausalLM\"]}",
     {"DeepseekV3ForCausalLM: latent attention is not in the layer language"}},
    {"{\"model_type\": \"mixtral\", \"num_experts_per_tok\": 9}",
     {"num_experts_per_tok needs at most the 8 num_local_experts, had 9"}},
    {"{\"model_type\": \"mixtral\", \"num_local_experts\": 1025}",
     {"num_local_experts needs a whole number from 1 to 1024"}},
    {"{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 2}",
     {"decoder_sparse_step makes layers differ"}},
    {"{\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": [0]}", {"mlp_only_layers makes layers differ"}},
    {"{\"architectures\": [\"MyModel\"]}",
     {"'MyModel', which is none of those that are read: llama, mistral"}},
    {"{\"model_type\": \"none\"}", {"model_type says 'none'"}},
    {LLAMA ", \"num_hidden_layers\": 3}", {"needed the JSON", "duplicate"}},
    {LLAMA ", \"num_key_value_heads\": 3}",
     {"num_key_value_heads needs to divide the 4 num_attention_heads"}},
    {LLAMA ", \"num_key_value_heads\": 0}", {"num_key_value_heads needs a whole number from 1", "had 0"}},
    {LLAMA ", \"head_dim\": 3}", {"head_dim needs an even number"}},
    {LLAMA ", \"rms_norm_eps\": -1}", {"rms_norm_eps needs a number from 1e-12 to 1, had -1"}},
    {LLAMA ", \"rms_norm_eps\": \"1e-5\"}", {"rms_norm_eps needs a number", "had '1e-5'"}},
    {LLAMA ", \"attention_bias\": 1}", {"attention_bias needs true or false, had 1"}},
    {LLAMA ", \"hidden_act\": \"relu2\"}", {"hidden_act needs an activation", "had 'relu2'"}},
    {LLAMA ", \"hidden_act\": []}", {"hidden_act needs a text, had a list"}},
    {LLAMA ", \"rope_theta\": 0.5}", {"rope_theta needs a base from 1"}},
    {LLAMA ", \"rope_scaling\": 8}", {"rope_scaling needs an object, had 8"}},
    {LLAMA ", \"rope_parameters\": {\"rope_theta\": \"x\"}}", {"rope_parameters needs a rope_theta"}},
    {LLAMA ", \"rope_parameters\": {\"full_attention\": {}}}", {"rope_parameters differs between kinds"}},
    {LLAMA ", \"partial_rotary_factor\": 0.5}", {"partial_rotary_factor needs to be 1"}},
    {LLAMA ", \"torch_dtype\": \"int8\"}", {"torch_dtype needs float32, float16 or bfloat16, had 'int8'"}},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 1000000000000000000}",
     {"num_hidden_layers needs a whole number from 1 to 256, had 1000000000000000000"}},
    {"{\"model_type\": \"gpt2\", \"n_layer\": 257}", {"n_layer needs a whole number from 1 to 256, had 257"}},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 1e18}", {"num_hidden_layers", "had 1e+18"}},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 99999999999999999999}", {"needed the JSON"}},
    {"{\"model_type\": \"llama\", \"hidden_size\": -4096}", {"hidden_size needs", "had -4096"}},
    {"{\"model_type\": \"llama\", \"hidden_size\": 16777216, \"vocab_size\": 16777216}",
     {"says a tensor of 16777216 x 16777216, beyond the largest"}},
    {"{\"model_type\": \"llama\", \"head_dim\": 65534, \"num_attention_heads\": 65535, \"hidden_size\": 1}",
     {"head_dim times num_attention_heads needs at most 16777216"}},
    {"{\"model_type\": \"gpt2\", \"n_head\": 5}", {"n_head needs to divide the n_embd 768, had 5"}},
    {"{\"model_type\": \"gpt2\", \"add_cross_attention\": true}", {"add_cross_attention needs to be false"}},
    {"{\"model_type\": \"gpt2\", \"attn_pdrop\": 1.0}", {"attn_pdrop needs a number from 0 to 0.999, had 1"}},
    {BERT("BertForSequenceClassification") ", \"problem_type\": \"multi_label_classification\"}",
     {"problem_type needs single_label_classification"}},
    {BERT("BertForMaskedLM") ", \"is_decoder\": true}",
     {"is_decoder and add_cross_attention need to be false"}},
    {"{\"model_type\": \"roberta\", \"pad_token_id\": 511}",
     {"pad_token_id needs to leave places of the 512"}},
    {"{\"model_type\": \"opt\", \"do_layer_norm_before\": false}", {"do_layer_norm_before needs to be true"}},
    {"{\"model_type\": \"opt\", \"word_embed_proj_dim\": 512}", {"needs to be the hidden_size 768, had 512"}},
    {"{\"model_type\": \"opt\", \"layer_norm_elementwise_affine\": false}", {"layer norm without weights"}},
    {"{\"model_type\": \"resnet\", \"layer_type\": \"x\"}",
     {"layer_type needs to be basic or bottleneck, had 'x'"}},
    {"{\"model_type\": \"resnet\", \"depths\": [1, 2]}",
     {"depths needs as many numbers as hidden_sizes, 4, had 2"}},
    {"{\"model_type\": \"resnet\", \"depths\": []}",
     {"depths needs a list of 1 to 16 whole numbers", "had a list"}},
    {"{\"model_type\": \"resnet\", \"depths\": [1, 2, 3, 1e9]}", {"depths needs a list"}},
    {"{\"model_type\": \"resnet\", \"depths\": 3}", {"depths needs a list", "had 3"}},
    {"{\"model_type\": \"resnet\", \"hidden_sizes\": [1, 8, 8, 8]}",
     {"needs at least 4 channels in a bottleneck"}},
    {"{\"model_type\": \"resnet\", \"hidden_sizes\": [8,8,8,8,8,8,8,8], \"depths\": [1,1,1,1,1,1,1,1]}",
     {"hidden_sizes needs at most 7 stages"}},
    {VIT ", \"patch_size\": 9}", {"duplicate"}},
    {BERT("BertForTokenClassification") ", \"num_labels\": 1}", {"num_labels needs at least 2 labels"}},
    {BERT("BertModel") ", \"position_embedding_type\": \"relative_key\"}",
     {"position_embedding_type needs absolute"}},
    {BERT("BertModel") ", \"pruned_heads\": {\"1\": [0]}}", {"pruned_heads needs to be empty"}},
    {LLAMA ", \"per_layer_config\": {\"1\": {\"intermediate_size\": 512}}}",
     {"per_layer_config needs to be empty"}},
    {"{\"model_type\": \"distilbert\", \"sinusoidal_pos_embds\": true}",
     {"sinusoidal_pos_embds needs to be false"}},
    {"{\"model_type\": \"vit\", \"patch_size\": 225}",
     {"patch_size needs at most the image_size 224, had 225"}},
    {"{\"model_type\": \"vit\", \"image_size\": [224, 224]}",
     {"image_size needs a whole number", "had a list"}},
    {"{\"model_type\": \"vit\", \"num_labels\": 1}", {"num_labels needs at least 2"}},
    {"{\"schema\": \"headroom.report/1\", \"preset\": \"demo\"}",
     {"schema says that this is no network but what headroom writes, had 'headroom.report/1'"}},
    {"{\"model_type\": \"vit\", \"image_size\": 16384, \"patch_size\": 1, \"hidden_size\": 16777212}",
     {"beyond the largest tensor"}},
};

START_TEST(what_cannot_be_held_is_refused_with_its_key)
{
    char *problems = NULL;
    const hr_status status =
        hr_preset_open(put("x.json", refused[_i].words), false, &preset, &problems, &err);
    ck_assert_msg(status == HR_PRESET && problems == NULL, "%s: %d", refused[_i].words, (int)status);
    for (size_t k = 0; k < 3 && refused[_i].says[k] != NULL; k++) {
        ck_assert_msg(strstr(err.sentence, refused[_i].says[k]) != NULL, "%s", err.sentence);
    }
    ck_assert_msg(strstr(err.sentence, "x.json") != NULL && err.hint[0] != '\0', "%s", err.sentence);
}
END_TEST

// ---- strangers ------------------------------------------------------------------------------------------------

static void open_any(const char *path)
{
    char *problems = NULL;
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    if (status == HR_OK) {
        hr_model *model = NULL;
        const hr_status made = model_create(preset, hr_preset_knobs(preset), &model, &problems, &err);
        ck_assert_msg(made == HR_OK, "ours: %s", problems);
        model_destroy(model);
    } else {
        ck_assert_msg(err.sentence[0] != '\0' && problems == NULL, "%s", problems);
    }
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
}

START_TEST(a_file_cut_anywhere_is_refused_or_read)
{
    static const char whole[] = LLAMA ", \"rope_scaling\": {\"rope_type\": \"llama3\"}}";
    for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
        open_any(put_bytes("config.json", whole, bytes));
    }
}
END_TEST

START_TEST(as_many_blocks_as_the_knob_takes_are_read)
{
    open_any(put("x.json", "{\"model_type\": \"gpt2\", \"n_embd\": 12, \"n_layer\": 256}"));
    open_good(path_of("x.json"));
    ck_assert_int_eq(hr_knob_int(hr_preset_knobs(preset), HR_KNOB_MODEL_DEPTH), 256);
}
END_TEST

START_TEST(deep_and_long_files_are_refused)
{
    enum { LONG = (4 << 20) + 1 };
    char *data = malloc(LONG);
    memset(data, '[', LONG);
    ck_assert_int_eq(hr_preset_open(put_bytes("a.json", data, LONG - 1), false, &preset, NULL, &err),
                     HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "depth") != NULL, "%s", err.sentence);
    memset(data, ' ', LONG);
    ck_assert_int_eq(hr_preset_open(put_bytes("a.json", data, LONG), false, &preset, NULL, &err), HR_READ);
    free(data);
}
END_TEST

// Any word of any known key: refused, or read as a model that is one. Seeded; the keys are those of every family.
START_TEST(values_of_strangers_are_refused_or_are_models)
{
    static const char *const keys[] = {
        "hidden_size",
        "vocab_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "head_dim",
        "num_key_value_heads",
        "rms_norm_eps",
        "hidden_act",
        "n_embd",
        "n_layer",
        "n_head",
        "n_inner",
        "n_positions",
        "image_size",
        "patch_size",
        "num_channels",
        "num_labels",
        "type_vocab_size",
        "attention_dropout",
        "sliding_window",
        "rope_theta",
        "tie_word_embeddings",
        "id2label",
        "dim",
        "max_position_embeddings",
        "torch_dtype",
        "use_bias",
        "query_pre_attn_scalar",
    };
    static const char *const values[] = {"0",     "1",        "2",        "3",         "8",   "64",
                                         "1000",  "65535",    "-1",       "1e300",     "0.5", "true",
                                         "false", "null",     "\"gelu\"", "\"\"",      "[]",  "{}",
                                         "4096",  "16777216", "1e-12",    "2147483648"};
    static const char *const types[] = {"llama", "qwen3",   "gemma2",      "phi3",    "starcoder2",
                                        "gpt2",  "bert",    "distilbert",  "vit",     "deit",
                                        "opt",   "roberta", "gpt_bigcode", "granite", "resnet"};
    uint32_t seed = 17;
    for (int round = 0; round < 300; round++) {
        char words[2048];
        size_t used = (size_t)snprintf(words, sizeof words, "{\"model_type\": \"%s\"", types[round % 15]);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            seed = seed * 1664525 + 1013904223;
            if ((seed >> 16) % 4 == 0) {
                used += (size_t)snprintf(words + used, sizeof words - used, ", \"%s\": %s", keys[k],
                                         values[(seed >> 20) % (sizeof values / sizeof *values)]);
            } else if (strstr(keys[k], "layer") != NULL) { // few, to be quick
                used += (size_t)snprintf(words + used, sizeof words - used, ", \"%s\": 2", keys[k]);
            }
        }
        (void)snprintf(words + used, sizeof words - used, "}");
        open_any(put("x.json", words));
    }
}
END_TEST

static size_t allocations_left;

static void *failing_malloc(size_t bytes)
{
    return allocations_left-- == 0 ? NULL : malloc(bytes);
}

START_TEST(every_allocation_may_fail)
{
    (void)put("model.safetensors.index.json", "{\"metadata\": {\"total_size\": 8}, \"weight_map\": {}}");
    const char *path = put("config.json", LLAMA "}");
    uint64_t asked = 1;
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_preset_open(path, false, &preset, NULL, &err);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (asked >= nth ? HR_NOMEM : HR_OK), "%d: %s", (int)status, err.sentence);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    // those of the JSON library, which has its own door
    hr_status status = HR_NOMEM;
    json_set_alloc_funcs(failing_malloc, free);
    for (size_t nth = 0; status != HR_OK; nth++) {
        ck_assert_uint_lt(nth, 1000);
        allocations_left = nth;
        status = hr_preset_open(path, false, &preset, NULL, &err);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%d: %s", (int)status, err.sentence);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    json_set_alloc_funcs(malloc, free);
}
END_TEST

// ---- what lies beside it --------------------------------------------------------------------------------------

// LLAMA has 6480 parameters.
static const struct {
    const char *leaf, *words, *note;
} beside[] = {
    {"model.safetensors.index.json", "{\"metadata\": {\"total_parameters\": 6480}}", ""},
    {"model.safetensors.index.json", "{\"metadata\": {\"total_size\": 25920}, \"weight_map\": {}}", ""},
    {"model.safetensors.index.json", "{\"metadata\": {\"total_size\": 25924}}",
     "holds 6481 parameters and these layers have 6480"},
    {"model.safetensors.index.json", "{}", "says neither total_parameters nor a total_size"},
    {"model.safetensors.index.json", "{\"metadata\": {\"total_size\": -4}}", "says neither"},
    {"model.safetensors.index.json", "nothing", "is no JSON"},
    {"model.safetensors", "version https://git-lfs.github.com/spec/v1\n",
     "a pointer of git-lfs looks like this"},
    {"model.safetensors", "", "which safetensors begin with"},
    {"model.safetensors",
     "{\"a\": {\"dtype\": \"F32\", \"shape\": [80, 81], \"data_offsets\": [0, 25920]}, \"__metadata__\": {}, "
     "\"h.attn.bias\": {\"dtype\": \"F32\", \"shape\": [9], \"data_offsets\": [25920, 25956]}, "
     "\"ids\": {\"dtype\": \"I64\", \"shape\": [9], \"data_offsets\": [25956, 26028]}}",
     ""},
    {"model.safetensors",
     "{\"a\": {\"dtype\": \"BF16\", \"shape\": [12960, 1], \"data_offsets\": [0, 25920]}, "
     "\"b\": {\"dtype\": \"F32\", \"shape\": [27], \"data_offsets\": [25920, 26028]}}",
     "holds 12987 parameters"},
    {"model.safetensors",
     "{\"a\": {\"dtype\": \"BF16\", \"shape\": [4611686018427387904, 4], \"data_offsets\": [0, 26028]}}",
     "at most 2^56 elements"},
    {"model.safetensors", "{\"a\": {\"dtype\": \"BF16\"}}",
     "had them not all: its parameters are not compared"},
    {"model.safetensors", "{}", "needed 0 bytes of data, which its tensors have, had 26028"},
};

START_TEST(weights_beside_it_are_counted)
{
    const char *words = beside[_i].words;
    static char data[26028 + 512]; // as many bytes of data as the tensors above have
    size_t bytes = strlen(words);
    memset(data, 0, sizeof data);
    if (strcmp(beside[_i].leaf, "model.safetensors") == 0 && words[0] == '{') {
        data[0] = (char)(bytes & 0xff);
        data[1] = (char)(bytes >> 8);
        memcpy(data + 8, words, bytes);
        (void)put_bytes(beside[_i].leaf, data, bytes + 8 + 26028);
    } else {
        (void)put(beside[_i].leaf, words);
    }
    open_good(put("config.json", LLAMA "}"));
    ck_assert_msg(strstr(hr_preset_note(preset), beside[_i].note) != NULL, "%s", hr_preset_note(preset));
    ck_assert_msg(beside[_i].note[0] != '\0' || hr_preset_note(preset)[0] == '\0', "%s",
                  hr_preset_note(preset));
}
END_TEST

// ---- paths ----------------------------------------------------------------------------------------------------

START_TEST(a_folder_and_a_preset_may_name_it)
{
    ck_assert_int_eq(mkdir(path_of("net"), 0700), 0);
    (void)put("net/config.json", LLAMA "}");
    open_good(path_of("net"));
    ck_assert_str_eq(hr_preset_path(preset), path_of("net/config.json"));
    ck_assert_str_eq(hr_preset_name(preset), "net");
    ck_assert(strstr(hr_preset_imported(preset),
                     "\nmodel:\n  name: net\n  sizes: {sequence: 8, depth: 2}\n") != NULL);
    ck_assert(strstr(hr_preset_imported(preset), "device:") == NULL);
    ck_assert_str_eq(hr_preset_origin(preset, HR_KNOB_BATCH_SIZE)->file, path_of("net/config.json"));
    ck_assert_uint_eq(hr_preset_origin(preset, HR_KNOB_BATCH_SIZE)->line, 0);
    close_preset();
    ck_assert_uint_eq(parameters_of(put("mine.yaml", "model: ./net\nbatch: {size: 3}\n")), 6480);
    ck_assert_int_eq(hr_knob_int(hr_preset_knobs(preset), HR_KNOB_BATCH_SIZE), 3);
    ck_assert_ptr_null(hr_preset_imported(preset));
    close_preset();
    ck_assert_uint_eq(parameters_of(put("mine.yaml", "extends: net/config.json\nbatch: {size: 4}\n")), 6480);
    close_preset();
    (void)put("net/config.json", "{\"model_type\": \"llama\", \"hidden_size\": 0}");
    char *problems = NULL;
    ck_assert_int_eq(hr_preset_open(path_of("mine.yaml"), false, &preset, &problems, &err), HR_PRESET);
    ck_assert_msg(strstr(problems, "mine.yaml:1:10: ") != NULL && strstr(problems, "hidden_size") != NULL,
                  "%s", problems);
    hr_preset_problems_free(problems);
}
END_TEST

START_TEST(a_folder_without_one_is_told)
{
    ck_assert_int_eq(hr_preset_open(folder, false, &preset, NULL, &err), HR_READ);
    ck_assert_msg(strstr(err.sentence, "had a folder without one") != NULL, "%s", err.sentence);
    ck_assert_int_eq(hr_preset_open(path_of("none.json"), false, &preset, NULL, &err), HR_READ);
    ck_assert(hr_preset_is_path("config.json") && hr_preset_is_path(".") && hr_preset_is_path("a/b"));
    ck_assert(!hr_preset_is_path("demo"));
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("import");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, parameters_are_those_published, 0, ROWS(published));
    tcase_add_loop_test(tests, each_key_that_has_parameters_counts, 0, ROWS(counted));
    tcase_add_loop_test(tests, what_is_left_out_is_said, 0, ROWS(noted));
    tcase_add_test(tests, the_type_of_the_weights_is_the_policy);
    tcase_add_loop_test(tests, what_cannot_be_held_is_refused_with_its_key, 0, ROWS(refused));
    tcase_add_test(tests, a_file_cut_anywhere_is_refused_or_read);
    tcase_add_test(tests, as_many_blocks_as_the_knob_takes_are_read);
    tcase_add_test(tests, deep_and_long_files_are_refused);
    tcase_add_test(tests, values_of_strangers_are_refused_or_are_models);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_loop_test(tests, weights_beside_it_are_counted, 0, ROWS(beside));
    tcase_add_test(tests, a_folder_and_a_preset_may_name_it);
    tcase_add_test(tests, a_folder_without_one_is_told);
    Suite *suite = suite_create("import");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
