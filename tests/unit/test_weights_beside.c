// SPDX-License-Identifier: Apache-2.0
// Promises of the network that a file of weights is planned as: the metadata of a GGUF file, or the config.json and the index beside
// a file of safetensors, are held against what is in the file.
#include "unit/weights_files.h"

// A Llama of 22688 parameters, as llama_q4_0.gguf has it.
static const char llama_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 32, "
    "\"intermediate_size\": 64, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"rms_norm_eps\": "
    "1e-5, "
    "\"rope_theta\": 500000.0, \"max_position_embeddings\": 128, \"dtype\": \"bfloat16\"}";

START_TEST(safetensors_are_planned_by_the_config_beside_them)
{
    hr_preset *preset = NULL;
    const size_t bytes = get("mixed.safetensors");
    char from[PATH_BYTES];
    (void)put("config.json", llama_config, strlen(llama_config));
    (void)strcpy(from, put("a.safetensors", data, bytes));
    ck_assert_msg(hr_preset_open(from, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(hr_preset_name(preset), strrchr(folder, '/') + 1);
    ck_assert_msg(strstr(hr_preset_note(preset),
                         "a.safetensors holds 2145 parameters and these layers have 22688") != NULL,
                  "%s", hr_preset_note(preset));
    hr_preset_close(preset);
    ck_assert_int_eq(unlink(path_of("config.json")), 0);
    ck_assert_int_eq(hr_preset_open(from, false, &preset, NULL, &err), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "needed a config.json beside it") != NULL &&
                      strstr(err.sentence, "2,145") != NULL,
                  "%s", err.sentence);
}
END_TEST

// A header of a known architecture with one key set, and a tensor of a vocabulary.
static void begin_network(const char *key, uint32_t type, const char *list_or_text, uint64_t value)
{
    static const char *const keys[] = {"llama.context_length", "llama.embedding_length", "llama.block_count",
                                       "llama.feed_forward_length", "llama.attention.head_count"};
    static const uint32_t values[] = {64, 32, 2, 64, 4};
    uint64_t others = 0;
    for (size_t k = 0; k < 5; k++) {
        others += strcmp(keys[k], key) != 0;
    }
    begin(3, 1, others + 2);
    add_text("general.architecture");
    add_whole(8, 4);
    add_text("llama");
    for (size_t k = 0; k < 5; k++) {
        if (strcmp(keys[k], key) != 0) {
            add_text(keys[k]);
            add_whole(4, 4);
            add_whole(values[k], 4);
        }
    }
    add_text(key);
    add_whole(type, 4);
    if (type == 8) {
        add_text(list_or_text);
    } else if (type == 9) { // two numbers of 32 bits
        add_whole(4, 4);
        add_whole(2, 8);
        add_whole(value, 4);
        add_whole(value + 1, 4);
    } else {
        add_whole(value, type == 7 ? 1 : 4);
    }
}

START_TEST(a_key_of_another_type_is_refused_by_its_own_name)
{
    static const struct {
        const char *key, *word;
        uint32_t type;
        uint64_t value;
        const char *says;
    } rows[] = {
        {"llama.attention.head_count", "", 9, 4,
         "llama.attention.head_count needs one whole number, had a list"},
        {"llama.attention.head_count_kv", "", 9, 1,
         "llama.attention.head_count_kv needs one whole number, had a"},
        {"llama.feed_forward_length", "", 9, 64,
         "llama.feed_forward_length needs one whole number, had a list"},
        {"llama.attention.key_length", "", 6, 0x41040000,
         "llama.attention.key_length needs one whole number, had a fraction"},
        {"llama.block_count", "two", 8, 0, "llama.block_count needs one whole number, had a text"},
        {"llama.rope.freq_base", "", 7, 1, "llama.rope.freq_base needs one number, had a flag"},
        {"general.type", "adapter", 8, 0, "general.type says 'adapter'"},
        {"general.type", "model", 8, 0, NULL},
    };
    const uint64_t sides[] = {32, 64};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_preset *preset = NULL;
        begin_network(rows[k].key, rows[k].type, rows[k].word, rows[k].value);
        add_tensor("token_embd.weight", 2, sides, 1, 0);
        ck_assert_msg(end(4096) == HR_OK, "%s", err.sentence);
        const hr_status status = hr_preset_open(path, false, &preset, NULL, &err);
        ck_assert_msg(status == (rows[k].says == NULL ? HR_OK : HR_PRESET), "%zu: %s", k, err.sentence);
        ck_assert_msg(rows[k].says == NULL || strstr(err.sentence, rows[k].says) != NULL, "%s", err.sentence);
        hr_preset_close(preset);
    }
}
END_TEST

// A file of the same tensors as a ResNet of one block, running statistics and their counts included.
START_TEST(running_statistics_are_no_parameters)
{
    static const char config[] =
        "{\"architectures\": [\"ResNetForImageClassification\"], \"num_channels\": 3, \"embedding_size\": 8, "
        "\"hidden_sizes\": [8], \"depths\": [1], \"layer_type\": \"basic\", \"hidden_act\": \"relu\", "
        "\"downsample_in_first_stage\": false, \"num_labels\": 2}";
    static const struct {
        const char *prefix, *leaf, *type, *shape;
        uint64_t bytes;
    } rows[] = {
        {"embedder.convolution", "weight", "F32", "8,3,7,7", 4704},
        {"embedder.normalization", "", "", "", 0}, // the five of a batch norm
        {"layer.0.convolution", "weight", "F32", "8,8,3,3", 2304},
        {"layer.0.normalization", "", "", "", 0},
        {"layer.1.convolution", "weight", "F32", "8,8,3,3", 2304},
        {"layer.1.normalization", "", "", "", 0},
        {"classifier.1", "weight", "F32", "2,8", 64},
        {"classifier.1", "bias", "F32", "2", 8},
    };
    static const struct {
        const char *leaf, *type, *shape;
        uint64_t bytes;
    } norm[] = {{"weight", "F32", "8", 32},
                {"bias", "F32", "8", 32},
                {"running_mean", "F32", "8", 32},
                {"running_var", "F32", "8", 32},
                {"num_batches_tracked", "I64", "", 8}};
    static char header[8192];
    size_t length = 0;
    uint64_t at = 0;
    hr_preset *preset = NULL;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const size_t count = rows[k].bytes > 0 ? 1 : 5;
        for (size_t i = 0; i < count; i++) {
            const uint64_t bytes = count == 1 ? rows[k].bytes : norm[i].bytes;
            length += (size_t)snprintf(
                header + length, sizeof header - length,
                "%s\"%s.%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                length == 0 ? "{" : ",", rows[k].prefix, count == 1 ? rows[k].leaf : norm[i].leaf,
                count == 1 ? rows[k].type : norm[i].type, count == 1 ? rows[k].shape : norm[i].shape, at,
                at + bytes);
            at += bytes;
        }
    }
    header[length++] = '}';
    used = 0;
    add_whole(length, 8);
    add(header, length);
    memset(data + used, 0, at);
    used += at;
    (void)put("model.safetensors", data, used);
    ck_assert_msg(hr_weights_read(path, &weights, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(weights.parameters, 8 * 3 * 49 + 2 * 8 * 8 * 9 + 3 * 2 * 8 + 2 * 8 + 2);
    (void)put("config.json", config, strlen(config));
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(strstr(hr_preset_note(preset), "these layers have") == NULL, "%s", hr_preset_note(preset));
    hr_preset_close(preset);
}
END_TEST

static const char other_index[] = "{\"metadata\": {\"total_parameters\": 22688}, \"weight_map\": "
                                  "{\"a\": \"other.safetensors\"}}";
static const char own_index[] = "{\"metadata\": {\"total_parameters\": 22688}, \"weight_map\": "
                                "{\"a\": \"other.safetensors\", \"b\": \"a.safetensors\"}}";

// A file that is named is read, whatever lies beside it.
START_TEST(a_named_file_that_cannot_be_read_is_no_plan)
{
    static const char *const indexes[] = {NULL, other_index, own_index};
    static const struct {
        size_t bytes; // of the file; 0: there is none
        bool garbage;
        hr_status status;
    } rows[] = {{0, false, HR_READ}, {5, false, HR_PRESET}, {300, false, HR_PRESET}, {300, true, HR_PRESET}};
    (void)put("config.json", llama_config, strlen(llama_config));
    for (size_t i = 0; i < 3; i++) {
        if (indexes[i] != NULL) {
            (void)put("model.safetensors.index.json", indexes[i], strlen(indexes[i]));
        }
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            hr_preset *preset = NULL;
            (void)get("mixed.safetensors");
            memset(data, rows[k].garbage ? 0x5a : data[0], rows[k].garbage ? rows[k].bytes : 1);
            (void)put("a.safetensors", data, rows[k].bytes);
            ck_assert(rows[k].bytes > 0 || unlink(path) == 0);
            ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), rows[k].status);
            ck_assert_msg(strstr(err.sentence, "a.safetensors: ") != NULL, "%s", err.sentence);
        }
    }
}
END_TEST

// What the whole has, where an index lists the file; else what is in the file; of one of several nothing is compared.
START_TEST(an_index_counts_for_the_files_that_it_lists)
{
    static const struct {
        const char *leaf, *index, *says;
    } rows[] = {
        {"a.safetensors", NULL, "a.safetensors holds 2145 parameters"},
        {"a.safetensors", other_index, "a.safetensors holds 2145 parameters"},
        {"a.safetensors", own_index, ""},
        {"a.safetensors", "{\"weight_map\": {\"b\": \"a.safetensors\"}}",
         "model.safetensors.index.json says neither total_parameters"},
        {"model-00001-of-00002.safetensors", other_index,
         "model-00001-of-00002.safetensors is one of several files: its parameters are not compared"},
    };
    const size_t bytes = get("mixed.safetensors");
    (void)put("config.json", llama_config, strlen(llama_config));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hr_preset *preset = NULL;
        if (rows[k].index != NULL) {
            (void)put("model.safetensors.index.json", rows[k].index, strlen(rows[k].index));
        }
        (void)put(rows[k].leaf, data, bytes);
        ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
        const char *note = hr_preset_note(preset);
        ck_assert_msg(strstr(note, rows[k].says) != NULL, "%zu: %s", k, note);
        ck_assert_msg(rows[k].says[0] != '\0' || strstr(note, "safetensors") == NULL, "%zu: %s", k, note);
        ck_assert_msg(k != 4 || strstr(note, "2145") == NULL, "%s", note);
        hr_preset_close(preset);
    }
}
END_TEST

START_TEST(a_name_says_of_how_many_files_it_is_one)
{
    static const struct {
        const char *leaf;
        uint64_t files;
    } rows[] = {
        {"model.safetensors", 1},
        {"model-00001-of-00002.safetensors", 2},
        {"-00003-of-00003.safetensors", 3},
        {"model-00003-of-00002.safetensors", 1},
        {"model-00000-of-00002.safetensors", 1},
        {"model-1-of-2.safetensors", 1},
        {"best-of-2.safetensors", 1},
    };
    const size_t bytes = get("mixed.safetensors");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        ck_assert_msg(hr_weights_read(put(rows[k].leaf, data, bytes), &weights, &err) == HR_OK, "%s",
                      err.sentence);
        ck_assert_msg(weights.files == rows[k].files, "%s: %" PRIu64, rows[k].leaf, weights.files);
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("weights_beside");
    TCase *t = tcase_create("weights_beside");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, safetensors_are_planned_by_the_config_beside_them);
    tcase_add_test(t, a_key_of_another_type_is_refused_by_its_own_name);
    tcase_add_test(t, running_statistics_are_no_parameters);
    tcase_add_test(t, a_named_file_that_cannot_be_read_is_no_plan);
    tcase_add_test(t, an_index_counts_for_the_files_that_it_lists);
    tcase_add_test(t, a_name_says_of_how_many_files_it_is_one);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
