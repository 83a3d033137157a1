// SPDX-License-Identifier: Apache-2.0
// A Hugging Face config.json as a PRESET of every command: it plans as our own preset of that model does, trains as it plans,
// and what `config show` prints of it is a preset.
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/program.h"

enum { WORDS_MAX = 1024 };

static void put(const char *name, const char *words)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_int_ge(fputs(words, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static json_t *report_of(const char *words)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static const json_t *field(const json_t *report, const char *group, const char *key)
{
    const json_t *value = json_object_get(json_object_get(report, group), key);
    ck_assert_msg(value != NULL, "%s.%s", group, key);
    return value;
}

static void assert_same(const json_t *a, const json_t *b, const char *group, const char *key,
                        const char *what)
{
    const json_t *one = field(a, group, key), *other = field(b, group, key);
    ck_assert_msg(json_equal(one, other), "%s: %s.%s is %lld and %lld", what, group, key,
                  (long long)json_integer_value(one), (long long)json_integer_value(other));
}

static const char *const memory_keys[] = {"peak_in_use_bytes", "peak_requested_bytes", "static_bytes",
                                          "saved_for_backward_bytes", "peak_pool_bytes"};

static void assert_same_memory(const json_t *a, const json_t *b, const char *what)
{
    for (size_t k = 0; k < sizeof memory_keys / sizeof *memory_keys; k++) {
        assert_same(a, b, "memory", memory_keys[k], what);
    }
}

// ---- beside our own presets -----------------------------------------------------------------------------------

// Where the two say the same model: GPT-2 without its dropout, which ours leaves out.
static const struct {
    const char *file, *words, *preset, *settings;
} ours[] = {
    {"tests/data/hf/llama3_2_1b.json", NULL, "llama3_2_1b", "-s device.card=a100-80g"},
    {"tests/data/hf/qwen3_0_6b.json", NULL, "qwen3_0_6b", "-s device.card=a100-80g"},
    {"tests/data/hf/gemma_2b.json", NULL, "gemma_2b", "-s device.card=a100-80g"},
    {"tests/data/hf/t5_base.json", NULL, "t5_base", "-s precision.policy=float32 -s device.card=rtx4090-24g"},
    {"gpt2.json", "{\"model_type\": \"gpt2\", \"attn_pdrop\": 0, \"embd_pdrop\": 0, \"resid_pdrop\": 0.0}",
     "gpt2_124m", "-s device.card=a100-80g -s execution.mode=graph -s batch.size=4"},
    {"bert.json", "{\"architectures\": [\"BertModel\"]}", "bert_base",
     "-s device.card=rtx4090-24g -s execution.mode=graph -s batch.size=8"},
    {"vit.json", "{\"model_type\": \"vit\", \"num_labels\": 1000}", "vit_b16",
     "-s device.card=rtx4090-24g -s execution.mode=graph -s batch.size=64"},
    {"tests/data/hf/resnet_50.json", NULL, "resnet50",
     "-s device.card=a100-80g -s execution.mode=graph -s batch.size=64"},
};

START_TEST(it_plans_as_our_own_preset_of_that_model)
{
    char path[320], words[WORDS_MAX];
    (void)snprintf(path, sizeof path, "%s", ours[_i].file);
    if (ours[_i].words != NULL) {
        put(ours[_i].file, ours[_i].words);
        (void)snprintf(path, sizeof path, "%s/%s", program_home(), ours[_i].file);
    }
    (void)snprintf(words, sizeof words, "plan %s --json %s", path, ours[_i].settings);
    json_t *read = report_of(words);
    (void)snprintf(words, sizeof words, "plan %s --json %s", ours[_i].preset, ours[_i].settings);
    json_t *own = report_of(words);
    assert_same(read, own, "model", "parameters", ours[_i].preset);
    assert_same(read, own, "step", "instructions", ours[_i].preset);
    assert_same(read, own, "step", "flops", ours[_i].preset);
    assert_same_memory(read, own, ours[_i].preset);
    json_decref(read);
    json_decref(own);
}
END_TEST

// ---- what config show prints ----------------------------------------------------------------------------------

START_TEST(what_config_show_prints_is_a_preset_of_the_same_plan)
{
    char words[WORDS_MAX];
    (void)snprintf(
        words, sizeof words,
        "config show tests/data/hf/qwen3_0_6b.json -s batch.size=2 -s model.sequence=512 -s model.depth=3");
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strncmp(o.out, "title: ", 7) == 0, "%s", o.out);
    put("saved.yaml", o.out);
    outcome_deinit(&o);
    json_t *read = report_of(
        "plan tests/data/hf/qwen3_0_6b.json --json -s batch.size=2 -s model.sequence=512 -s model.depth=3");
    (void)snprintf(words, sizeof words, "plan %s/saved.yaml --json", program_home());
    json_t *saved = report_of(words);
    assert_same(read, saved, "model", "parameters", "saved");
    assert_same(read, saved, "step", "instructions", "saved");
    assert_same(read, saved, "step", "flops", "saved");
    assert_same_memory(read, saved, "saved");
    json_decref(read);
    json_decref(saved);
}
END_TEST

// ---- tiny ones train ------------------------------------------------------------------------------------------

#define LLAMA_KEYS                                                                                           \
    "\"vocab_size\": 256, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 2, "        \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 16"
#define T5_KEYS                                                                                              \
    "\"vocab_size\": 64, \"d_model\": 16, \"d_kv\": 4, \"d_ff\": 24, \"num_layers\": 1, \"num_heads\": 1"
#define BERT_KEYS                                                                                            \
    "\"vocab_size\": 64, \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, "         \
    "\"num_attention_heads\": 4, \"max_position_embeddings\": 8"

// `learns`: from the bytes of a text in so few steps; else ids, labels and images are generated.
static const struct {
    const char *words;
    bool learns;
} tiny[] = {
    {"{\"model_type\": \"llama\", " LLAMA_KEYS ", \"torch_dtype\": \"bfloat16\"}", true},
    {"{\"model_type\": \"mistral\", " LLAMA_KEYS "}", true},
    {"{\"model_type\": \"qwen2\", " LLAMA_KEYS "}", true},
    {"{\"model_type\": \"qwen3\", " LLAMA_KEYS ", \"head_dim\": 16}", true},
    {"{\"model_type\": \"gemma\", " LLAMA_KEYS ", \"head_dim\": 8}", true},
    {"{\"model_type\": \"gemma2\", " LLAMA_KEYS ", \"head_dim\": 8}", true},
    {"{\"model_type\": \"phi3\", " LLAMA_KEYS ", \"resid_pdrop\": 0.1}", true},
    {"{\"model_type\": \"starcoder2\", " LLAMA_KEYS "}", true},
    {"{\"model_type\": \"seed_oss\", " LLAMA_KEYS ", \"head_dim\": 8}", true},
    {"{\"model_type\": \"ernie4_5\", " LLAMA_KEYS ", \"head_dim\": 8}", true},
    {"{\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 4, "
     "\"n_positions\": 16}",
     true},
    {"{\"model_type\": \"granite\", " LLAMA_KEYS
     ", \"residual_multiplier\": 0.5, \"embedding_multiplier\": 4}",
     true},
    {"{\"model_type\": \"gpt_bigcode\", \"vocab_size\": 256, \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 4, "
     "\"n_positions\": 16}",
     true},
    {"{\"model_type\": \"opt\", \"vocab_size\": 256, \"hidden_size\": 32, \"word_embed_proj_dim\": 32, "
     "\"ffn_dim\": 48, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"max_position_embeddings\": 16}",
     true},
    {"{\"model_type\": \"t5\", " T5_KEYS "}", false},
    {"{\"model_type\": \"mt5\", " T5_KEYS
     ", \"dropout_rate\": 0, \"num_decoder_layers\": 2, \"tie_word_embeddings\": false}",
     false},
    {"{\"architectures\": [\"RobertaForMaskedLM\"], " BERT_KEYS "}", false},
    {"{\"architectures\": [\"RobertaForSequenceClassification\"], " BERT_KEYS "}", false},
    {"{\"model_type\": \"resnet\", \"embedding_size\": 4, \"hidden_sizes\": [8, 16], \"depths\": [1, 2], "
     "\"num_labels\": 10}",
     false},
    {"{\"architectures\": [\"BertForMaskedLM\"], " BERT_KEYS "}", false},
    {"{\"architectures\": [\"BertModel\"], " BERT_KEYS "}", false},
    {"{\"architectures\": [\"BertForSequenceClassification\"], " BERT_KEYS "}", false},
    {"{\"architectures\": [\"DistilBertForSequenceClassification\"], \"dim\": 16, \"hidden_dim\": 24, "
     "\"n_layers\": 2, "
     "\"n_heads\": 4, \"vocab_size\": 64, \"max_position_embeddings\": 8}",
     false},
    {"{\"model_type\": \"vit\", \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"image_size\": 16, \"patch_size\": 4, \"num_labels\": 10}",
     false},
    {"{\"model_type\": \"deit\", \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"image_size\": 16, \"patch_size\": 4, \"num_labels\": 10}",
     false},
};

START_TEST(a_tiny_one_trains_as_it_plans)
{
    char words[WORDS_MAX];
    static const char settings[] = "-s device.kind=cpu -s device.vram=64MiB -s batch.size=8 -s train.seed=3 "
                                   "-s optimizer.learning_rate=1e-2";
    put("tiny.json", tiny[_i].words);
    const char *data = tiny[_i].learns ? "-s pipeline.source=text -s pipeline.path=LICENSE" : "";
    (void)snprintf(words, sizeof words, "plan %s/tiny.json --json %s %s", program_home(), settings, data);
    json_t *plan = report_of(words);
    (void)snprintf(words, sizeof words, "run %s/tiny.json --json --steps %d %s %s", program_home(),
                   tiny[_i].learns ? 30 : 3, settings, data);
    json_t *run = report_of(words);
    assert_same_memory(plan, run, tiny[_i].words);
    const double first = json_real_value(field(run, "train", "loss_first"));
    const double last = json_real_value(field(run, "train", "loss_last"));
    ck_assert_msg(first > 0 && last > 0 && last < 100, "%s: %g, %g", tiny[_i].words, first, last);
    ck_assert_msg(!tiny[_i].learns || last < 0.95 * first, "%s: from %g to %g", tiny[_i].words, first, last);
    json_decref(plan);
    json_decref(run);
}
END_TEST

// A table of places with two rows in front of the first: the judge computes the same losses.
START_TEST(rows_of_places_are_those_of_the_judge)
{
    static const char *const devices[] = {"cpu", "reference"};
    char words[WORDS_MAX];
    double loss[2];
    put("opt.json",
        "{\"model_type\": \"opt\", \"vocab_size\": 256, \"hidden_size\": 32, \"word_embed_proj_dim\": 32, "
        "\"ffn_dim\": 48, \"num_hidden_layers\": 1, \"num_attention_heads\": 4, "
        "\"max_position_embeddings\": 16, \"init_std\": 0.5, \"dropout\": 0}");
    for (int k = 0; k < 2; k++) {
        (void)snprintf(
            words, sizeof words,
            "run %s/opt.json --json --steps 20 -s device.kind=%s -s device.vram=64MiB -s batch.size=8 "
            "-s optimizer.learning_rate=1e-2 -s model.sequence=12 -s pipeline.source=text -s "
            "pipeline.path=LICENSE",
            program_home(), devices[k]);
        json_t *report = report_of(words);
        loss[k] = json_real_value(field(report, "train", "loss_last"));
        json_decref(report);
    }
    ck_assert_msg(fabs(loss[0] - loss[1]) < 1e-3, "%.9g and %.9g", loss[0], loss[1]);
    (void)snprintf(words, sizeof words, "plan %s/opt.json -s model.sequence=17", program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_msg(strstr(o.err, "needs rows for its 17 places from row 2 on, had 18") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

// ---- what a person reads --------------------------------------------------------------------------------------

static void assert_says(const char *words, int exit_code, const char *out, const char *says)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    ck_assert_msg(strstr(o.out, out) != NULL, "%s: %s", words, o.out);
    ck_assert_msg(strstr(o.err, says) != NULL, "%s: %s", words, o.err);
    outcome_deinit(&o);
}

START_TEST(every_command_says_what_it_needs)
{
    char words[WORDS_MAX];
    assert_says("plan tests/data/hf/gemma2_2b.json", 0, "gemma2_2b: batch 1, float32, graph, adamw",
                "headroom: note: sliding_window 4096 is left out");
    assert_says("presets tests/data/hf/gemma2_2b.json", 0, "attn_logit_softcapping 50 is left out", "");
    assert_says("config check tests/data/hf/llama3_2_1b.json", 0, "nothing is wrong with it", "");
    assert_says("plan tests/data/hf", 5, "", "had a folder without one");
    put("config.json", "{\"architectures\": [\"DeepseekV3ForCausalLM\"]}");
    (void)snprintf(words, sizeof words, "plan %s", program_home());
    assert_says(words, 2, "",
                "config.json: architectures says DeepseekV3ForCausalLM: latent attention is not in the");
    assert_says(words, 2, "", "\n  try: headroom presets");
    put("config.json", "{\"architectures\": [\"LlamaForCausalLM\"], " LLAMA_KEYS "}");
    (void)snprintf(words, sizeof words, "compare %s/config.json,batch.size=2 %s", program_home(),
                   program_home());
    assert_says(words, 0, "parameters", "");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("config_json");
    tcase_add_loop_test(tests, it_plans_as_our_own_preset_of_that_model, 0, sizeof ours / sizeof *ours);
    tcase_add_test(tests, what_config_show_prints_is_a_preset_of_the_same_plan);
    tcase_add_loop_test(tests, a_tiny_one_trains_as_it_plans, 0, sizeof tiny / sizeof *tiny);
    tcase_add_test(tests, rows_of_places_are_those_of_the_judge);
    tcase_add_test(tests, every_command_says_what_it_needs);
    Suite *suite = suite_create("config_json");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
