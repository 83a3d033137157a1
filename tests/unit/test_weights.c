// SPDX-License-Identifier: Apache-2.0
// Promises of the readers of headers of weights (GGUF, safetensors): their counts and bytes, the same layers as of a
// config.json, and no file of a stranger does more than be refused in a sentence.
#include "base/hash.h"
#include "unit/weights_files.h"

static const char *type_bytes(const hr_weights *w, char out[256])
{
    size_t length = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < w->type_count; k++) {
        length += (size_t)snprintf(out + length, 256 - length, "%s%s %" PRIu64 " %" PRIu64, k > 0 ? ", " : "",
                                   w->types[k].name, w->types[k].tensors, w->types[k].bytes);
    }
    return out;
}

// ---- what is in them ------------------------------------------------------------------------------------------

// As make.py prints them, which adds up what it writes.
static const struct {
    const char *name, *architecture, *types; // each type with its tensors and bytes
    uint64_t tensors, parameters;
    bool network;
} files[] = {
    {"llama_q4_0.gguf", "llama", "Q4_0 16 12672, F32 6 656", 22, 22688, true},
    {"llama_big_endian.gguf", "llama", "Q4_0 16 12672, F32 6 656", 22, 22688, true},
    {"qwen2_f16.gguf", "qwen2", "F16 15 40960, F32 12 1168", 27, 20768, true},
    {"qwen3_bf16.gguf", "qwen3", "BF16 15 53248, F32 10 928", 25, 26848, true},
    {"experts_q8_0.gguf", "llama", "Q8_0 16 36992, F32 8 1680", 24, 35232, true},
    {"unknown_q4_0.gguf", "deepseek2", "Q4_0 9 7488, F32 4 400", 13, 13408, false},
    {"mixed.safetensors", "", "BF16 1 4096, F32 2 132, I64 1 128, F16 1 0, F8_E4M3 1 64", 6, 2145, false},
};
enum { FILES = sizeof files / sizeof *files };

START_TEST(headers_are_counted)
{
    char from[PATH_BYTES], types[256];
    (void)snprintf(from, sizeof from, "tests/data/weights/%s", files[_i].name);
    ck_assert_msg(hr_weights_read(from, &weights, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(weights.tensors, files[_i].tensors);
    ck_assert_uint_eq(weights.parameters, files[_i].parameters);
    ck_assert_str_eq(weights.architecture, files[_i].architecture);
    ck_assert_str_eq(type_bytes(&weights, types), files[_i].types);
    ck_assert(weights.names_network == files[_i].network);
}
END_TEST

// A Llama of 22688 parameters, as llama_q4_0.gguf has it.
static const char llama_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 32, "
    "\"intermediate_size\": 64, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"rms_norm_eps\": "
    "1e-5, "
    "\"rope_theta\": 500000.0, \"max_position_embeddings\": 128, \"dtype\": \"bfloat16\"}";

// The same networks as config.json of Hugging Face says them. "layers" of both are equal letter by letter.
static const struct {
    const char *name, *config;
} alike[] = {
    {"llama_q4_0.gguf", llama_config},
    {"qwen2_f16.gguf",
     "{\"architectures\": [\"Qwen2ForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 32, "
     "\"intermediate_size\": 64, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"rms_norm_eps\": "
     "1e-5, "
     "\"rope_theta\": 500000.0, \"max_position_embeddings\": 128, \"tie_word_embeddings\": true, "
     "\"torch_dtype\": \"float16\"}"},
    {"qwen3_bf16.gguf",
     "{\"architectures\": [\"Qwen3ForCausalLM\"], \"vocab_size\": 64, \"hidden_size\": 32, "
     "\"intermediate_size\": 64, "
     "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
     "\"rms_norm_eps\": 1e-5, \"rope_theta\": 500000.0, \"max_position_embeddings\": 128, "
     "\"tie_word_embeddings\": true, \"torch_dtype\": \"bfloat16\"}"},
    {"experts_q8_0.gguf", "{\"architectures\": [\"MixtralForCausalLM\"], \"vocab_size\": 64, "
                          "\"hidden_size\": 32, \"intermediate_size\": 32, "
                          "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                          "\"rms_norm_eps\": 1e-5, "
                          "\"rope_theta\": 500000.0, \"max_position_embeddings\": 128, "
                          "\"num_local_experts\": 4, \"num_experts_per_tok\": 2}"},
};

static const char *layers_of(const hr_preset *preset)
{
    const char *sizes = strstr(hr_preset_imported(preset), "\n  sizes:");
    ck_assert_ptr_nonnull(sizes);
    return sizes;
}

START_TEST(a_gguf_file_is_the_preset_that_its_config_is)
{
    hr_preset *one = NULL, *other = NULL;
    char from[PATH_BYTES];
    (void)snprintf(from, sizeof from, "tests/data/weights/%s", alike[_i].name);
    ck_assert_msg(hr_preset_open(from, false, &one, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_preset_open(put("config.json", alike[_i].config, strlen(alike[_i].config)), false,
                                 &other, NULL, &err) == HR_OK,
                  "%s", err.sentence);
    ck_assert_str_eq(layers_of(one), layers_of(other));
    ck_assert_msg(strstr(hr_preset_note(one), "these layers have") == NULL, "%s",
                  hr_preset_note(one)); // counts are equal
    ck_assert_msg(strstr(hr_preset_note(one), "Bytes of its weights by type") != NULL, "%s",
                  hr_preset_note(one));
    hr_preset_close(one);
    hr_preset_close(other);
}
END_TEST

// Bits an element, as they are published for each type.
static const struct {
    uint32_t number;
    const char *name;
    double bits;
} published[] = {
    {0, "F32", 32},          {1, "F16", 16},        {2, "Q4_0", 4.5},        {3, "Q4_1", 5},
    {6, "Q5_0", 5.5},        {7, "Q5_1", 6},        {8, "Q8_0", 8.5},        {9, "Q8_1", 9},
    {10, "Q2_K", 2.625},     {11, "Q3_K", 3.4375},  {12, "Q4_K", 4.5},       {13, "Q5_K", 5.5},
    {14, "Q6_K", 6.5625},    {15, "Q8_K", 9.125},   {16, "IQ2_XXS", 2.0625}, {17, "IQ2_XS", 2.3125},
    {18, "IQ3_XXS", 3.0625}, {19, "IQ1_S", 1.5625}, {20, "IQ4_NL", 4.5},     {21, "IQ3_S", 3.4375},
    {22, "IQ2_S", 2.5625},   {23, "IQ4_XS", 4.25},  {24, "I8", 8},           {25, "I16", 16},
    {26, "I32", 32},         {27, "I64", 64},       {28, "F64", 64},         {29, "IQ1_M", 1.75},
    {30, "BF16", 16},        {34, "TQ1_0", 1.6875}, {35, "TQ2_0", 2.0625},   {39, "MXFP4", 4.25},
    {40, "NVFP4", 4.5},      {41, "Q1_0", 1.125},
};

START_TEST(a_block_of_each_type_has_its_published_bytes)
{
    const uint64_t sides[] = {256, 3};
    const uint64_t bytes = (uint64_t)(published[_i].bits * 256 * 3 / 8);
    begin(3, 1, 0);
    add_tensor("a", 2, sides, published[_i].number, 0);
    ck_assert_msg(end(bytes) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(weights.types[0].name, published[_i].name);
    ck_assert_uint_eq(weights.bytes, bytes);
    used--; // a byte less than its data are
    ck_assert_int_eq(hr_weights_read(put("a.gguf", data, used), &weights, &err), HR_OK);
    ck_assert_uint_eq(weights.data_bytes, bytes);
    ck_assert_uint_eq(weights.held_bytes, bytes - 1);
}
END_TEST

START_TEST(places_that_overlap_or_leave_the_file_are_refused)
{
    const uint64_t sides[] = {32, 4};
    static const struct {
        const char *second;
        uint64_t offset;
        const char *says;
    } rows[] = {
        {"b", 512, NULL}, // one behind the other
        {"b", 544, NULL}, // a gap is allowed
        {"a", 512, "needed a name for each tensor, had 'a' twice"},
        {"b", 480, "needed the data of tensor 'b' from byte 512"},
        {"b", 500, "needs data at a multiple of 32, had 500"},
        {"b", UINT64_C(1) << 40, "bytes of data in all"},
        {"b", UINT64_MAX - 31, "bytes of data in all"},
        {"b", 1056, "needed 512 bytes of data from byte 1056 on for tensor 'b', had 1056 bytes"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin(3, 2, 0);
        add_tensor("a", 2, sides, 0, 0);
        add_tensor(rows[k].second, 2, sides, 0, rows[k].offset);
        const hr_status status = end(544 + 512);
        ck_assert_msg(status == (rows[k].says == NULL ? HR_OK : HR_PRESET), "%zu: %s", k, err.sentence);
        ck_assert_msg(rows[k].says == NULL || strstr(err.sentence, rows[k].says) != NULL, "%s", err.sentence);
    }
}
END_TEST

START_TEST(sizes_that_overflow_are_refused)
{
    static const struct {
        uint64_t sides[2];
        uint32_t type;
        const char *says;
    } rows[] = {
        {{UINT64_MAX, 2}, 0, "at most 2^56 elements"},
        {{UINT64_C(1) << 32, UINT64_C(1) << 32}, 0, "at most 2^56 elements"},
        {{UINT64_C(1) << 57, 1}, 24, "at most 2^56 elements"}, // of which training takes 2^61 bytes and more
        {{UINT64_C(1) << 55, 2}, 28, NULL},                    // a header alone may say so much
        {{33, 1}, 2, "rows of a multiple of 32 elements"},
        {{32, 1}, 4, "needs a type of GGUF"}, // taken out of the format
        {{32, 1}, 4000000000u, "needs a type of GGUF"},
        {{0, UINT64_MAX}, 0, NULL}, // empty
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin(3, 1, 0);
        add_tensor("a", 2, rows[k].sides, rows[k].type, 0);
        const hr_status status = end(64);
        ck_assert_msg(status == (rows[k].says == NULL ? HR_OK : HR_PRESET), "%zu: %s", k, err.sentence);
        ck_assert_msg(rows[k].says == NULL || strstr(err.sentence, rows[k].says) != NULL, "%zu: %s", k,
                      err.sentence);
    }
}
END_TEST

START_TEST(headers_that_say_too_much_are_refused)
{
    begin(3, (1 << 20) + 1, 0);
    ck_assert_int_eq(end(0), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "needed at most 1048576 tensors") != NULL, "%s", err.sentence);
    begin(3, 0, (1 << 16) + 1);
    ck_assert_int_eq(end(0), HR_PRESET);
    begin(1, 0, 0);
    ck_assert_int_eq(end(0), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "needed version 2 or 3 of GGUF, had 1") != NULL, "%s", err.sentence);
    begin(3, 0, 1); // a list of lists of lists
    add_text("a");
    add_whole(9, 4);
    for (int k = 0; k < 6; k++) {
        add_whole(9, 4);
        add_whole(1, 8);
    }
    ck_assert_int_eq(end(0), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "at most 4 deep") != NULL, "%s", err.sentence);
    begin(3, 0, 1); // a list of more numbers than there are bytes
    add_text("a");
    add_whole(9, 4);
    add_whole(10, 4);
    add_whole(UINT64_C(1) << 61, 8);
    ck_assert_int_eq(end(0), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "to the end of the file") != NULL, "%s", err.sentence);
    begin(3, 0, 2);
    for (int k = 0; k < 2; k++) {
        add_text("a");
        add_whole(4, 4);
        add_whole(7, 4);
    }
    ck_assert_int_eq(end(0), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, "each key of the metadata once, had 'a' twice") != NULL, "%s",
                  err.sentence);
}
END_TEST

// ---- safetensors ----------------------------------------------------------------------------------------------

static const struct {
    const char *header, *says;
    uint64_t data_bytes;
} wrong[] = {
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", NULL, 8},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", NULL, 8},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", NULL, 3},
    {"{}", NULL, 0},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", "needs whole bytes", 2},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", NULL, 7}, // cut
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     "needed 8 bytes of data, which its tensors have", 9},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}",
     "needs data_offsets 8 bytes apart, had 0 and 9", 9},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "needs data_offsets 8 bytes apart",
     8},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     "needed the data of tensor 'a' at byte 0", 12},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
     "\"data_offsets\":[0,4]}}",
     "needed the data of tensor", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
     "\"data_offsets\":[4,8]}}",
     "had 'a' twice", 8},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"\\u0061\":{\"dtype\":\"F32\","
     "\"shape\":[1],"
     "\"data_offsets\":[4,8]}}",
     "needed a tensor's name without a backslash", 8},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", "had 'F33'", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "needed a whole number of a shape",
     4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", "needed ']' of a shape", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]}}",
     "needed a whole number", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,4]}}", "2^56 elements",
     4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "had them not all", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", "had 'offsets'", 4},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "had one twice", 4},
    {"{\"a\":7}", "needed '{' of a tensor", 0},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}{", "needed blanks behind the header",
     4},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", "needed '}' behind the tensors", 4},
    {"{\"__metadata__\":{\"a\":7}}", "of a value of __metadata__", 0},
    {"[1]", "which safetensors begin with", 0},
};

static hr_status read_safetensors(const char *header, uint64_t data_bytes)
{
    static const unsigned char zeros[64];
    used = 0;
    add_whole(strlen(header), 8);
    add(header, strlen(header));
    add(zeros, data_bytes);
    return hr_weights_read(put("a.safetensors", data, used), &weights, &err);
}

START_TEST(what_safetensors_cannot_say_is_refused)
{
    const hr_status status = read_safetensors(wrong[_i].header, wrong[_i].data_bytes);
    ck_assert_msg(status == (wrong[_i].says == NULL ? HR_OK : HR_PRESET), "%s: %s", wrong[_i].header,
                  err.sentence);
    ck_assert_msg(wrong[_i].says == NULL || strstr(err.sentence, wrong[_i].says) != NULL, "%s: %s",
                  wrong[_i].header, err.sentence);
}
END_TEST

START_TEST(slots_and_state_of_a_save_are_no_parameters)
{
    static const char header[] =
        "{\"__metadata__\":{\"category:w:mask\":\"state\",\"category:w:m\":\"optimizer\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
        "\"w:m\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]},"
        "\"w:mask\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[24,36]}}";
    ck_assert_int_eq(read_safetensors(header, 36), HR_OK);
    ck_assert_uint_eq(weights.parameters, 3);
    ck_assert_uint_eq(weights.types[0].elements, 9);
}
END_TEST

// A round of hash64.
#define HASH_1 UINT64_C(0xBF58476D1CE4E5B9)
#define HASH_2 UINT64_C(0x94D049BB133111EB)

static uint64_t hash_round(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word * HASH_1) * HASH_2;
    return hash ^ hash >> 32;
}

// Another name of 16 letters with the hash of `name`: its second half undoes what its first one changed.
static void collide(const char name[16], char out[16])
{
    uint64_t halves[2], other[2], inverse = HASH_1;
    bool plain = false;
    memcpy(halves, name, 16);
    memcpy(other, name, 16);
    for (int k = 0; k < 6; k++) {
        inverse *= 2 - HASH_1 * inverse;
    }
    const uint64_t begin = hash64_mix(0, 16);
    for (unsigned k = 1; !plain; k++) {
        ck_assert_uint_lt(k, 4096);
        other[0] = halves[0] ^ (k & 15) ^ (uint64_t)(k >> 4 & 15) << 8 ^ (uint64_t)(k >> 8) << 16;
        other[1] =
            (hash_round(begin, other[0]) ^ hash_round(begin, halves[0]) ^ halves[1] * HASH_1) * inverse;
        memcpy(out, other, 16);
        plain = true;
        for (int i = 0; i < 16; i++) {
            plain = plain && (unsigned char)out[i] >= ' ' && out[i] != '"' && out[i] != '\\';
        }
    }
    ck_assert_uint_eq(hash64(name, 16, 0), hash64(out, 16, 0));
}

START_TEST(a_name_that_stands_twice_is_found_behind_another_of_its_hash)
{
    static const char name[] = "aaaaaaaabbbbbbbb";
    char other[16], header[512];
    collide(name, other);
    for (int twice = 0; twice < 2; twice++) {
        (void)snprintf(header, sizeof header,
                       "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                       "\"%.16s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                       "\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}",
                       name, other, twice ? name : "c");
        const hr_status status = read_safetensors(header, 3);
        ck_assert_msg(status == (twice ? HR_PRESET : HR_OK), "%s", err.sentence);
        ck_assert_msg(!twice || strstr(err.sentence, "had 'aaaaaaaabbbbbbbb' twice") != NULL, "%s",
                      err.sentence);
    }
}
END_TEST

// ---- strangers ------------------------------------------------------------------------------------------------

static void open_any(const char *leaf, size_t bytes)
{
    hr_preset *preset = NULL;
    char *problems = NULL;
    err.sentence[0] = '\0';
    hr_status status = hr_weights_read(put(leaf, data, bytes), &weights, &err);
    ck_assert_msg(status == HR_OK || (status == HR_PRESET && err.sentence[0] != '\0'), "%d: %s", (int)status,
                  err.sentence);
    const hr_status opened = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(problems == NULL && (opened == HR_OK || opened == HR_PRESET), "%d: %s", (int)opened,
                  problems);
    ck_assert(status == HR_OK || opened != HR_OK);
    hr_preset_close(preset);
    ck_assert_int_eq(hr_host_mem_live(), 0);
}

// A header alone says all that is planned; one that is cut itself is refused.
START_TEST(a_file_cut_in_its_data_is_read_and_in_its_header_refused)
{
    static const char *const names[][2] = {{"llama_q4_0.gguf", "a.gguf"},
                                           {"mixed.safetensors", "a.safetensors"}};
    const size_t padding[] = {31, 0}; // between the header and its data
    for (size_t k = 0; k < 2; k++) {
        const size_t bytes = get(names[k][0]);
        ck_assert_int_eq(hr_weights_read(put(names[k][1], data, bytes), &weights, &err), HR_OK);
        const hr_weights whole = weights;
        ck_assert_uint_eq(whole.held_bytes, whole.data_bytes);
        const size_t data_at = bytes - whole.data_bytes;
        for (size_t cut = 0; cut < bytes; cut += cut < data_at - 64 ? 13 : cut < data_at + 64 ? 1 : 997) {
            open_any(names[k][1], cut);
            const bool is_read = hr_weights_read(path, &weights, &err) == HR_OK;
            ck_assert_msg(cut >= data_at ? is_read : !is_read || cut + padding[k] >= data_at, "%zu of %s",
                          cut, names[k][0]);
            if (is_read) {
                ck_assert_uint_eq(weights.held_bytes, cut < data_at ? 0 : cut - data_at);
                ck_assert_uint_eq(weights.data_bytes, whole.data_bytes);
                ck_assert_uint_eq(weights.parameters, whole.parameters);
                ck_assert_uint_eq(weights.tensors, whole.tensors);
            }
        }
    }
}
END_TEST

START_TEST(a_header_alone_is_the_preset_of_its_file_with_a_note)
{
    hr_preset *whole = NULL, *header = NULL;
    const size_t bytes = get("llama_q4_0.gguf");
    ck_assert_int_eq(hr_preset_open(put("a.gguf", data, bytes), false, &whole, NULL, &err), HR_OK);
    ck_assert_int_eq(hr_weights_read(path, &weights, &err), HR_OK);
    const size_t cut = bytes - weights.data_bytes + 1000;
    ck_assert_int_eq(hr_preset_open(put("a.gguf", data, cut), false, &header, NULL, &err), HR_OK);
    ck_assert_str_eq(layers_of(whole), layers_of(header));
    ck_assert_ptr_null(strstr(hr_preset_note(whole), "bytes of its data"));
    ck_assert_msg(strstr(hr_preset_note(header), "The file has 1,000 of the 13,344 bytes of its data") !=
                      NULL,
                  "%s", hr_preset_note(header));
    hr_preset_close(whole);
    hr_preset_close(header);
}
END_TEST

// Seeded bytes changed in the header.
START_TEST(headers_of_strangers_are_refused_or_read)
{
    static const unsigned char values[] = {0, 1, 2, 4, 8, 9, 0x7f, 0x80, 0xff, '"', '{', '9'};
    uint32_t seed = 29;
    for (int round = 0; round < 600; round++) {
        const bool gguf = round % 3 != 0;
        const size_t bytes =
            get(gguf ? (round % 2 == 0 ? "qwen3_bf16.gguf" : "experts_q8_0.gguf") : "mixed.safetensors");
        for (int k = 0; k < 1 + round % 3; k++) {
            seed = seed * 1664525 + 1013904223;
            data[(seed >> 8) % (gguf ? 3000 : 540)] = values[(seed >> 24) % sizeof values];
        }
        open_any(gguf ? "a.gguf" : "a.safetensors", bytes);
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
    static const char *const names[][2] = {{"experts_q8_0.gguf", "a.gguf"},
                                           {"mixed.safetensors", "model.safetensors"}};
    const size_t bytes = get(names[_i][0]);
    hr_preset *preset = NULL;
    hr_status status = HR_NOMEM;
    (void)put("config.json", llama_config, strlen(llama_config));
    (void)put(names[_i][1], data, bytes);
    uint64_t asked = 1;
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        status = hr_preset_open(path, false, &preset, NULL, &err);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (asked >= nth ? HR_NOMEM : HR_OK), "%d: %s", (int)status, err.sentence);
        hr_preset_close(preset);
        preset = NULL;
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    status = HR_NOMEM;
    json_set_alloc_funcs(failing_malloc, free); // the JSON library's own door
    for (size_t nth = 0; status != HR_OK; nth++) {
        ck_assert_uint_lt(nth, 4000);
        allocations_left = nth;
        status = hr_preset_open(path, false, &preset, NULL, &err);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "%d: %s", (int)status, err.sentence);
        hr_preset_close(preset);
        preset = NULL;
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    json_set_alloc_funcs(malloc, free);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("weights");
    TCase *t = tcase_create("weights");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, headers_are_counted, 0, FILES);
    tcase_add_loop_test(t, a_gguf_file_is_the_preset_that_its_config_is, 0, sizeof alike / sizeof *alike);
    tcase_add_loop_test(t, a_block_of_each_type_has_its_published_bytes, 0,
                        sizeof published / sizeof *published);
    tcase_add_test(t, places_that_overlap_or_leave_the_file_are_refused);
    tcase_add_test(t, sizes_that_overflow_are_refused);
    tcase_add_test(t, headers_that_say_too_much_are_refused);
    tcase_add_loop_test(t, what_safetensors_cannot_say_is_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, slots_and_state_of_a_save_are_no_parameters);
    tcase_add_test(t, a_name_that_stands_twice_is_found_behind_another_of_its_hash);
    tcase_add_test(t, a_file_cut_in_its_data_is_read_and_in_its_header_refused);
    tcase_add_test(t, a_header_alone_is_the_preset_of_its_file_with_a_note);
    tcase_add_test(t, headers_of_strangers_are_refused_or_read);
    tcase_add_loop_test(t, every_allocation_may_fail, 0, 2);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
