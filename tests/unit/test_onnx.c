// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files: as many parameters as the module that was exported has and its layers, what no layer
// does is refused with its node, and no file of a stranger does more than be refused.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"

#include "base/host_mem.h"
#include "model/model.h"

static char folder[64], path[128];
static hr_preset *preset;
static hr_err err;

static void setup(void)
{
    (void)strcpy(folder, "/tmp/headroom-onnx-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a.onnx", folder);
    memset(&err, 0, sizeof err);
}

static void close_preset(void)
{
    hr_preset_close(preset);
    preset = NULL;
}

static void teardown(void)
{
    close_preset();
    ck_assert_int_eq(hr_host_mem_live(), 0);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void put(const void *data, size_t bytes)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

static size_t get(const char *name, unsigned char *data, size_t room)
{
    char from[128];
    (void)snprintf(from, sizeof from, "tests/data/onnx/%s.onnx", name);
    FILE *f = fopen(from, "r");
    ck_assert_msg(f != NULL, "%s", from);
    const size_t bytes = fread(data, 1, room, f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert(bytes > 0 && bytes < room);
    return bytes;
}

// Refused with a sentence, or a preset whose model is one; true: it was read.
static bool open_any(void)
{
    char *problems = NULL;
    hr_model *model = NULL;
    err.sentence[0] = '\0';
    const hr_status status = hr_preset_open(path, false, &preset, &problems, &err);
    ck_assert_msg(problems == NULL, "%s", problems); // what is written is a preset without a problem
    if (status == HR_OK) {
        ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err) == HR_OK ||
                          strstr(err.sentence, "layer") != NULL,
                      "%s", err.sentence);
        model_destroy(model);
    }
    ck_assert_msg(status == HR_OK || status == HR_PRESET || status == HR_READ, "%d: %s", (int)status,
                  err.sentence);
    ck_assert(status == HR_OK || err.sentence[0] != '\0');
    close_preset();
    return status == HR_OK;
}

// ---- what exporters write -------------------------------------------------------------------------------------

// Parameters as PyTorch counts them (tests/data/onnx/make.py prints them), and the kinds of the layers as the module has them.
static const struct {
    const char *name;
    uint64_t parameters;
    const char *kinds;
} files[] = {
    {"residual_script", 914, "conv2d batch_norm max_pool conv2d batch_norm add global_avg_pool dense"},
    {"residual_dynamo", 914, "conv2d batch_norm max_pool conv2d batch_norm add global_avg_pool dense"},
    {"inverted_script", 410,
     "conv2d zero_pad depthwise_conv2d global_avg_pool reshape conv2d conv2d multiply avg_pool "
     "global_avg_pool dense"},
    {"inverted_dynamo", 410,
     "conv2d depthwise_conv2d global_avg_pool reshape conv2d conv2d multiply avg_pool "
     "global_avg_pool dense"},
    {"dilated_script", 316, "conv2d depthwise_conv2d global_avg_pool reshape conv2d"},
    {"dense_dynamo", 1814,
     "conv2d batch_norm conv2d concat batch_norm conv2d concat batch_norm conv2d concat global_avg_pool "
     "dense"},
    {"unet_script", 1122, "conv2d max_pool conv2d conv2d_transpose upsample concat conv2d"},
    {"patches_script", 4554,
     "conv2d reshape class_token position_embedding layer_norm attention add layer_norm dense dense add "
     "layer_norm slice flatten dense"},
    {"patches_dynamo", 4554,
     "conv2d reshape class_token position_embedding layer_norm attention add layer_norm dense dense add "
     "layer_norm slice flatten dense"},
    {"patches_eager", 4554,
     "conv2d reshape class_token position_embedding layer_norm attention add layer_norm dense dense add "
     "layer_norm slice flatten dense"},
    {"gpt_dynamo", 147440,
     "embedding position_embedding layer_norm attention add layer_norm dense dense add layer_norm dense"},
    {"attention_dynamo", 147440,
     "embedding position_embedding layer_norm attention add layer_norm dense dense add layer_norm dense"},
    {"gpt_fixed", 147440,
     "embedding position_embedding layer_norm attention add layer_norm dense dense add layer_norm dense"},
    {"tied_script", 432, "embedding dense dense"},
    {"rotary_dynamo", 11200, "embedding rms_norm attention add rms_norm dense dense multiply dense add"},
};
enum { FILES = sizeof files / sizeof *files };

static hr_model *model_of(const char *name)
{
    char from[128], *problems = NULL;
    hr_model *model = NULL;
    (void)snprintf(from, sizeof from, "tests/data/onnx/%s.onnx", name);
    ck_assert_msg(hr_preset_open(from, false, &preset, &problems, &err) == HR_OK, "%s: %s", from,
                  problems != NULL ? problems : err.sentence);
    ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, &problems, &err) == HR_OK, "%s: %s",
                  from, problems);
    return model;
}

START_TEST(each_file_is_the_module_that_was_exported)
{
    char kinds[512] = "";
    hr_model *model = model_of(files[_i].name);
    for (uint32_t k = 0; k < model->layer_count; k++) {
        const char *kind = model->layers[k].kind;
        if (strcmp(kind, "input") != 0 && strcmp(kind, "loss") != 0) {
            (void)snprintf(kinds + strlen(kinds), sizeof kinds - strlen(kinds), "%s%s",
                           kinds[0] != '\0' ? " " : "", kind);
        }
    }
    ck_assert_uint_eq(model->trainable_parameters, files[_i].parameters);
    ck_assert_str_eq(kinds, files[_i].kinds);
    model_destroy(model);
}
END_TEST

// Words of the preset that a file is read as.
static const struct {
    const char *name, *words;
} written[] = {
    {"residual_script", "note: \"2 batch norms that the exporter had multiplied"},
    {"residual_dynamo",
     "{name: conv1, kind: conv2d, filters: 8, kernel: 3, stride: 2, padding: 1, bias: false}"},
    {"residual_dynamo",
     "{name: conv1_bn, kind: batch_norm, epsilon: 1e-05, momentum: 0.1, activation: relu}"},
    {"inverted_script", "kind: zero_pad, padding: [0, 1, 0, 1]"},
    {"inverted_dynamo", "filters: 4, kernel: 1, activation: relu6"},
    {"dense_dynamo", "input: {shape: [8, 8, 3]}"},
    {"unet_script", "labels: {type: int32, classes: 2}"},
    {"patches_dynamo", "kind: attention, heads: 2}"},
    {"patches_eager", "kind: attention, heads: 2, form: materialised}"},
    {"gpt_dynamo", "kind: attention, heads: 2, causal: true}"},
    {"gpt_fixed", "kind: attention, heads: 2, causal: true}"},
    {"gpt_dynamo", "units: 64, activation: gelu_tanh"},
    {"gpt_dynamo", "transpose: true, share: "},
    {"gpt_dynamo", "input: {type: int32, classes: 9000, shape: [8]}"},
    {"tied_script", "{name: head, kind: dense, units: 40, bias: own, transpose: true, share: tokens}"},
    {"rotary_dynamo", "heads: 4, kv_heads: 2, causal: true, rotary: 10000, bias: false}"},
    {"rotary_dynamo", "kind: rms_norm, epsilon: 1e-06}"},
};

START_TEST(the_preset_that_it_is_read_as_says)
{
    model_destroy(model_of(written[_i].name));
    ck_assert_msg(strstr(hr_preset_imported(preset), written[_i].words) != NULL, "%s",
                  hr_preset_imported(preset));
}
END_TEST

// ---- files of strangers ---------------------------------------------------------------------------------------

enum { ROOM = 1 << 15 };

START_TEST(a_file_cut_anywhere_is_refused_or_read)
{
    unsigned char data[ROOM];
    const size_t bytes = get("residual_script", data, sizeof data);
    for (size_t k = 0; k < bytes; k++) {
        put(data, k);
        (void)open_any();
    }
    put(data, bytes);
    ck_assert(open_any());
}
END_TEST

START_TEST(a_file_with_other_bytes_is_refused_or_read)
{
    unsigned char data[ROOM], other[ROOM];
    uint32_t seed = 29;
    const size_t bytes = get(files[_i].name, data, sizeof data);
    for (int round = 0; round < 60; round++) {
        memcpy(other, data, bytes);
        for (int k = 0; k < 1 + round % 4; k++) {
            seed = seed * 1664525 + 1013904223;
            other[(seed >> 8) % bytes] =
                (unsigned char)(round % 3 == 0 ? seed >> 24
                                               : other[(seed >> 8) % bytes] ^ (1u << (seed >> 29)));
        }
        put(other, bytes);
        (void)open_any();
    }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    unsigned char data[ROOM];
    put(data, get(files[_i].name, data, sizeof data));
    uint64_t asked = 1;
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_preset_open(path, false, &preset, NULL, &err);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(status == (asked >= nth ? HR_NOMEM : HR_OK), "%d: %s", (int)status, err.sentence);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

// ---- files by hand --------------------------------------------------------------------------------------------

// Messages of protobuf, written from their end so that a length is known when it is written.
typedef struct message {
    unsigned char data[ROOM];
    size_t at; // of its first byte
} message;

static void number(message *m, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    m->at -= count;
    memcpy(m->data + m->at, bytes, count);
}

static void varint(message *m, unsigned tag, uint64_t value)
{
    number(m, value);
    number(m, tag << 3);
}

static void bytes_of(message *m, unsigned tag, const void *from, size_t count)
{
    m->at -= count;
    memcpy(m->data + m->at, from, count);
    number(m, count);
    number(m, tag << 3 | 2);
}

static void words(message *m, unsigned tag, const char *text)
{
    bytes_of(m, tag, text, strlen(text));
}

// What was written since `end` becomes a field.
static void close_message(message *m, unsigned tag, size_t end)
{
    number(m, end - m->at);
    number(m, tag << 3 | 2);
}

// "Op in,in -> out"; one node.
static void node(message *m, const char *op, const char *one, const char *two, const char *out,
                 const char *domain)
{
    const size_t end = m->at;
    words(m, 7, domain);
    words(m, 4, op);
    words(m, 3, "the node");
    words(m, 2, out);
    if (two[0] != '\0') {
        words(m, 1, two);
    }
    words(m, 1, one);
    close_message(m, 1, end);
}

// A value of [batch, size], batch left open.
static void value(message *m, unsigned tag, const char *name, uint64_t size)
{
    const size_t end = m->at;
    size_t dim = m->at;
    if (size > 0) {
        varint(m, 1, size);
    } else {
        words(m, 2, "places");
    }
    close_message(m, 1, dim);
    dim = m->at;
    words(m, 2, "batch");
    close_message(m, 1, dim);
    close_message(m, 2, end); // shape
    varint(m, 1, 1);          // float
    close_message(m, 1, end);
    close_message(m, 2, end);
    words(m, 1, name);
    close_message(m, tag, end);
}

static void weight(message *m, const char *name, uint64_t rows, uint64_t columns)
{
    const size_t end = m->at;
    varint(m, 14, 1);
    words(m, 8, name);
    varint(m, 2, 1);
    varint(m, 1, columns);
    varint(m, 1, rows);
    close_message(m, 5, end);
}

static void begin(message *m)
{
    m->at = sizeof m->data;
}

static void end_graph(message *m, uint64_t opset)
{
    close_message(m, 7, sizeof m->data);
    const size_t end = m->at;
    varint(m, 2, opset);
    close_message(m, 8, end);
    put(m->data + m->at, sizeof m->data - m->at);
}

static void assert_refused(const char *sentence)
{
    ck_assert(!open_any());
    ck_assert_msg(strstr(err.sentence, sentence) != NULL, "%s", err.sentence);
}

static void one_node(const char *op, const char *one, const char *two, const char *domain, uint64_t opset)
{
    static message m;
    begin(&m);
    weight(&m, "w", 4, 3);
    value(&m, 12, "y", 3);
    value(&m, 11, "x", 4);
    node(&m, op, one, two, "y", domain);
    end_graph(&m, opset);
}

START_TEST(a_file_written_by_hand_is_read)
{
    one_node("MatMul", "x", "w", "", 17);
    ck_assert(open_any());
}
END_TEST

static const struct {
    const char *op, *one, *two, *domain;
    uint64_t opset;
    const char *sentence;
} refused[] = {
    {"NonZero", "x", "", "", 17, "node 'the node' (NonZero): no layer of ours does this"},
    {"MatMul", "x", "w", "com.mine", 17, "node 'the node' (MatMul): an operator of 'com.mine'"},
    {"MatMul", "y", "w", "", 17, "it reads 'y', which nothing before it gives: a circle"},
    {"MatMul", "x", "z", "", 17, "it reads 'z', which nothing before it gives"},
    {"MatMul", "x", "w", "", 12, "needs operators of opset 13 to 23, had 12"},
    {"MatMul", "x", "w", "", 99, "had 99"},
    {"Exp", "x", "", "", 17, "node 'the node' (Exp): no layer of ours does this of what another computes"},
    {"Conv", "x", "w", "", 17, "node 'the node' (Conv): needs weights of 4 dimensions"},
    {"Add", "x", "w", "", 17, "a sum with a parameter"},
    {"Identity", "x", "", "", 17, "is an input as it is"},
    {"Identity", "w", "", "", 17, "has no output that a loss could judge"},
};

START_TEST(what_no_layer_does_is_refused_with_its_node)
{
    one_node(refused[_i].op, refused[_i].one, refused[_i].two, refused[_i].domain, refused[_i].opset);
    assert_refused(refused[_i].sentence);
}
END_TEST

START_TEST(channels_that_change_places_are_refused)
{
    unsigned char data[ROOM];
    put(data, get("shuffle_script", data, sizeof data));
    assert_refused("(Slice): a piece of a dimension that lies in several places, and no layer permutes");
}
END_TEST

START_TEST(sizes_that_are_none_or_too_large_are_refused)
{
    static message m;
    begin(&m);
    weight(&m, "w", UINT64_C(1) << 62, 8);
    end_graph(&m, 17);
    assert_refused("beyond 8 dimensions of 0 to 2^40");
    begin(&m);
    weight(&m, "w", UINT64_C(1) << 39, 8);
    end_graph(&m, 17);
    assert_refused("'w' is beyond the largest tensor of 2^40 elements");
    begin(&m);
    value(&m, 11, "x", 0);
    end_graph(&m, 17);
    assert_refused("has the size 'places' at dimension 1, which is no number");
    put("", 0);
    assert_refused("needed an ONNX file with a graph, had none");
    put("title: a preset\n", 16);
    assert_refused("needed an ONNX file, had other bytes");
}
END_TEST

START_TEST(a_million_nodes_are_refused)
{
    enum { MANY = 1000000 };
    static message m;
    begin(&m);
    node(&m, "Relu", "x", "", "x", "");
    const size_t one = sizeof m.data - m.at, all = one * MANY;
    unsigned char *data = malloc(all + 16);
    ck_assert_ptr_nonnull(data);
    message head = {.at = 16};
    number(&head, all);
    number(&head, 7 << 3 | 2);
    const size_t first = 16 - head.at;
    memcpy(data, head.data + head.at, first);
    for (size_t k = 0; k < MANY; k++) {
        memcpy(data + first + k * one, m.data + m.at, one);
    }
    put(data, first + all);
    free(data);
    assert_refused("it has more than 65536 nodes, which is the limit");
}
END_TEST

// ---- graphs in words ------------------------------------------------------------------------------------------

enum { PARTS = 1024 };

static size_t split(char *text, const char *between, char *parts[PARTS])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *part = strtok_r(text, between, &rest); part != NULL; part = strtok_r(NULL, between, &rest)) {
        ck_assert_uint_lt(count, PARTS);
        parts[count++] = part;
    }
    return count;
}

static uint64_t type_of(char letter)
{
    return letter == 'f'   ? 1
           : letter == 'c' ? 3 // int8
           : letter == 'i' ? 7
           : letter == 'h' ? 10
           : letter == 'd' ? 11
                           : 16; // bfloat16
}

// "16,4": a tensor of floats in another file.
static void tensor_field(message *m, unsigned tag, const char *name, char letter, char *dims)
{
    char *parts[PARTS];
    const size_t end = m->at;
    varint(m, 14, 1);
    words(m, 8, name);
    varint(m, 2, type_of(letter));
    for (size_t k = split(dims, ",", parts); k-- > 0;) {
        varint(m, 1, strtoull(parts[k], NULL, 10));
    }
    close_message(m, tag, end);
}

// "axis=1", "perm=0,2,1", "mode=nearest", "value=:16,4" (a tensor whose name is "value" as well).
static void attribute(message *m, char *text)
{
    char *parts[PARTS], *what = strchr(text, '=') + 1;
    const size_t end = m->at;
    what[-1] = '\0';
    if (what[0] == ':') {
        tensor_field(m, 5, text, 'f', what + 1);
    } else if (strspn(what, "-0123456789,") < strlen(what)) {
        words(m, 4, what);
    } else if (strchr(what, ',') == NULL) {
        varint(m, 3, (uint64_t)strtoll(what, NULL, 10));
    } else {
        for (size_t k = split(what, ",", parts); k-- > 0;) {
            varint(m, 8, (uint64_t)strtoll(parts[k], NULL, 10));
        }
    }
    words(m, 1, text);
    close_message(m, 5, end);
}

// "Op in - in > out key=value"; '-' is an operand that is left out.
static void node_in_words(message *m, char *text)
{
    char *parts[PARTS];
    const size_t end = m->at, count = split(text, " ", parts);
    bool outputs = true;
    for (size_t k = count; k-- > 1;) {
        if (strcmp(parts[k], ">") == 0) {
            outputs = false;
        } else if (strchr(parts[k], '=') != NULL) {
            attribute(m, parts[k]);
        } else {
            words(m, outputs ? 2 : 1, strcmp(parts[k], "-") == 0 ? "" : parts[k]);
        }
    }
    words(m, 4, parts[0]);
    close_message(m, 1, end);
}

// "w f 16,4" in another file; "s = 1 2" int64; "c ~ 0.5" a float; "m ^ 8 0.5" a square that has the number above its
// diagonal; "m @ 8 55 1" one that has it at that place.
static void weight_in_words(message *m, char *text)
{
    static float square[64 * 64];
    int64_t wholes[16];
    char *parts[PARTS];
    const size_t count = split(text, " ", parts), end = m->at;
    const char kind = parts[1][0];
    if (strchr("=~^@", kind) == NULL) {
        tensor_field(m, 5, parts[0], kind, count > 2 ? parts[2] : parts[1] + 1);
        return;
    }
    const size_t place = kind == '@' ? strtoul(parts[3], NULL, 10) : 0;
    const size_t side = kind == '^' || kind == '@' ? strtoul(parts[2], NULL, 10) : 1;
    for (size_t k = 0; k < side * side; k++) {
        const bool has = kind == '~' || (kind == '@' ? k == place : k % side > k / side);
        square[k] = has ? strtof(parts[count - 1], NULL) : 0;
    }
    for (size_t k = 2; kind == '=' && k < count; k++) {
        wholes[k - 2] = strtoll(parts[k], NULL, 10);
    }
    bytes_of(m, 9, kind == '=' ? (const void *)wholes : square,
             kind == '=' ? (count - 2) * sizeof *wholes : side * side * sizeof *square);
    words(m, 8, parts[0]);
    varint(m, 2, type_of(kind == '=' ? 'i' : 'f'));
    for (int k = 0; k < 2 && (kind == '^' || kind == '@'); k++) {
        varint(m, 1, side);
    }
    if (kind == '=') {
        varint(m, 1, count - 2);
    }
    close_message(m, 5, end);
}

// "x f 8,16", behind the batch.
static void value_in_words(message *m, unsigned tag, char *text)
{
    char *parts[PARTS], *dims[PARTS];
    const size_t end = m->at, count = split(text, " ", parts);
    for (size_t k = count < 3 ? 0 : split(parts[2], ",", dims); k-- > 0;) {
        const size_t dim = m->at;
        varint(m, 1, strtoull(dims[k], NULL, 10));
        close_message(m, 1, dim);
    }
    const size_t batch = m->at;
    words(m, 2, "batch");
    close_message(m, 1, batch);
    close_message(m, 2, end);
    varint(m, 1, type_of(parts[1][0]));
    close_message(m, 1, end);
    close_message(m, 2, end);
    words(m, 1, parts[0]);
    close_message(m, tag, end);
}

static void graph_in_words(const char *input, const char *output, const char *weights, const char *nodes)
{
    static message m;
    static char all[ROOM];
    char *parts[PARTS];
    begin(&m);
    (void)snprintf(all, sizeof all, "%s", output);
    value_in_words(&m, 12, all);
    (void)snprintf(all, sizeof all, "%s", input);
    value_in_words(&m, 11, all);
    (void)snprintf(all, sizeof all, "%s", weights);
    for (size_t k = split(all, ";", parts); k-- > 0;) {
        weight_in_words(&m, parts[k]);
    }
    (void)snprintf(all, sizeof all, "%s", nodes);
    for (size_t k = split(all, ";", parts); k-- > 0;) {
        node_in_words(&m, parts[k]);
    }
    end_graph(&m, 18);
}

// Attention of two heads over 8 places, whose scores s1 become the shares p; `places` of the queries, which q makes of q0.
#define ATTENTION_IN(places, q, weights, shares)                                                             \
    "x f 8,16", "y f " places ",4",                                                                          \
        "wq f 16,16;wk f 16,16;wv f 16,16;wo f 16,16;wh f 16,4;c ~ 0.35355339;s = 0;e = 1;one = 1;"          \
        "r = 0 8 2 8;rq = 0 " places " 2 8;f = 0 " places " 16" weights,                                     \
        "MatMul x wq > q0;MatMul x wk > k0;MatMul x wv > v0;" q                                              \
        "Transpose q2 > q3 perm=0,2,1,3;Reshape k0 r > k2;Transpose k2 > k3 perm=0,2,3,1;"                   \
        "Reshape v0 r > v2;Transpose v2 > v3 perm=0,2,1,3;MatMul q3 k3 > s0;Mul s0 c > s1;" shares           \
        "MatMul p v3 > o;Transpose o > o1 perm=0,2,1,3;Reshape o1 f > o2;MatMul o2 wo > o3;MatMul o3 wh > y"
#define ATTENTION(weights, shares) ATTENTION_IN("8", "Reshape q0 rq > q2;", weights, shares)

// What is written is not what our layers do, or has shapes that none has.
static const struct {
    const char *input, *output, *weights, *nodes, *sentence;
} misread[] = {
    {"x f 16", "y f 4", "w f 1;v f 16,4", "Squeeze w > s;MatMul s v > y",
     "needs a tensor of rows and features, had 0 dimensions"},
    {"x f 16", "y f 4", "w f 1;v f 16,4", "MatMul x v > d;Squeeze w > s;Add d s > y",
     "neither a bias behind a product"},
    {"x f 16", "y f 4", "w f 16,4", "MatMul x w > d;ReduceSum d > m;Mul d m > y",
     "a mean or sum over the batch"},
    {"x f 16", "y f", "w f 16,4", "MatMul x w > d;ReduceMean d > y keepdims=0",
     "a mean or sum over the batch"},
    {ATTENTION_IN("1", "Slice q0 s e one > q1;Reshape q1 rq > q2;", "", "Softmax s1 > p;"),
     "queries, keys or values of 1 places where their dense layer gives 8"},
    {ATTENTION("", "Softmax s1 > s2;Softmax s2 > p;"), "a second softmax of attention"},
    {ATTENTION(";m ^ 8 -inf", "Softmax s1 > s2;Add s2 m > p;"), "a mask behind the softmax of attention"},
    {ATTENTION(";m ^ 8 0.5", "Add s1 m > s2;Softmax s2 > p;"),
     "a mask of attention that is neither causal nor empty"},
    {ATTENTION(";m ^ 8 -9", "Add s1 m > s2;Softmax s2 > p;"),
     "a mask of attention that is neither causal nor empty"},
    {"x f 3,8,8", "y f 4,12,12", "w f 4,3,3,3;n = 1 2 2 2",
     "Conv x w > c;Cast n > s to=1;Resize c - s > y mode=nearest",
     "an image of another size in the batch or the channels"},
    {"x f 3,8,8", "y f 4,12,12", "w f 4,3,3,3;n = 8 12 12",
     "Conv x w > c;Shape c > h start=0 end=1;Concat h n > s axis=0;Resize c - - s > y mode=nearest",
     "an image of another size in the batch or the channels"},
    {"x f 16", "y f 4", "w c 16,4", "MatMul x w > y",
     "'w' learns 'w', whose elements are no floats but of ONNX's type 3"},
};

START_TEST(what_no_layer_computes_is_not_taken_for_one)
{
    graph_in_words(misread[_i].input, misread[_i].output, misread[_i].weights, misread[_i].nodes);
    assert_refused(misread[_i].sentence);
}
END_TEST

static const struct {
    const char *input, *output, *weights, *nodes, *words;
} read_right[] = {
    {"x f 16", "y f 4", "n = 1 2;s = 1099511627776 1099511627776 0 2;v f 16,4",
     "Expand n s > e;Flatten e > f axis=1;Shape f > g;MatMul x v > y", "kind: dense, units: 4"},
    {"x f 16", "y f 16", "w f 16,4", "MatMul x w > d;ReduceSum d > y noop_with_empty_axes=1;",
     "kind: dense, units: 4"},
    {ATTENTION("", "Softmax s1 > p;"), "kind: attention, heads: 2, form: materialised, bias: false}"},
    {ATTENTION(";m ^ 8 -inf", "Add s1 m > s2;Softmax s2 > p;"), "heads: 2, causal: true"},
    {ATTENTION(";m ^ 8 -1e4", "Add s1 m > s2;Softmax s2 > p;"), "heads: 2, causal: true"},
    {"x f 3,8,8", "y f 4,12,12", "w f 4,3,3,3;n = 1 1 2 2",
     "Conv x w > c;Cast n > s to=1;Resize c - s > y mode=nearest", "kind: upsample, size: 2"},
    {"x f 3,8,8", "y f 4,12,12", "w f 4,3,3,3;n = 4 12 12",
     "Conv x w > c;Shape c > h start=0 end=1;Concat h n > s axis=0;Resize c - - s > y mode=nearest",
     "kind: upsample, size: 2"},
    {"x f 16", "y f 16", "",
     "Constant > a value=:16,16;Constant > b value=:16,16;Identity x > value;MatMul value a > h;MatMul h b > "
     "y",
     "says it: 512 parameters"},
    {"x f 16", "y f 16", "", "Constant > a value=:16,16;MatMul x a > h;MatMul h a > y",
     "says it: 256 parameters"},
    {"x f 16", "y f 4", "w f 16,4",
     "Transpose w > t perm=1,0;Gemm x t > d transB=1;Gemm x t > e transB=1;Add d e > y",
     "says it: 64 parameters"},
    {"x h 3,8,8", "y h 4", "w h 4,3,3,3", "Conv x w > c;GlobalAveragePool c > g;Flatten g > y",
     "input: {shape: [8, 8, 3]}"},
    {"x b 3,8,8", "y b 4", "w b 4,3,3,3", "Conv x w > c;GlobalAveragePool c > g;Flatten g > y",
     "input: {shape: [8, 8, 3]}"},
    {"x h 16", "y h 4", "w h 16,4", "MatMul x w > y",
     "The file's weights take two bytes: precision.policy mixed_float16"},
    {"x f 16", "y f 4", "w h 16,4;b f 4", "Cast x > h to=10;MatMul h w > d;Add d b > y",
     "1 weights have another type than the first"},
    {"x f 16", "y f 4", "w\xc3\xa9 f 16,4;w\xc3\xa8 f 16,4",
     "MatMul x w\xc3\xa9 > d;MatMul x w\xc3\xa8 > e;Add d e > y", "says it: 128 parameters"},
    {"x f 16", "y f 4", "w\xc3\xa9 f 16,4", "MatMul x w\xc3\xa9 > y",
     "{name: w__, kind: dense, units: 4, bias: false}"},
};

START_TEST(graphs_in_words_are_read_as_they_are)
{
    graph_in_words(read_right[_i].input, read_right[_i].output, read_right[_i].weights, read_right[_i].nodes);
    ck_assert_msg(open_any(), "%s", err.sentence);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_OK);
    ck_assert_msg(strstr(hr_preset_imported(preset), read_right[_i].words) != NULL, "%s",
                  hr_preset_imported(preset));
}
END_TEST

static const struct {
    const char *input, *weights, *nodes, *policy;
} policies[] = {
    {"x f 16", "w f 16,4", "MatMul x w > y", "float32"},
    {"x h 16", "w h 16,4", "MatMul x w > y", "mixed_float16"},
    {"x b 16", "w b 16,4", "MatMul x w > y", "mixed_bfloat16"},
    {"x f 16", "w h 16,4", "Cast x > h to=10;MatMul h w > y", "mixed_float16"},
    {"x i 8", "w d 16,4", "Gather w x > y", "float64"},
};

START_TEST(the_policy_of_types_is_that_of_its_weights)
{
    char value[HR_KNOB_TEXT_MAX];
    graph_in_words(policies[_i].input, "y f 4", policies[_i].weights, policies[_i].nodes);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_OK);
    ck_assert_str_eq(hr_knob_format(hr_preset_knobs(preset), HR_KNOB_PRECISION_POLICY, value),
                     policies[_i].policy);
}
END_TEST

// Each product with a weight of that name is held against each table. These two differ in the last place that is looked at.
START_TEST(a_file_of_many_tables_and_products_takes_no_long_time)
{
    enum { TABLES = 100 };
    static char nodes[ROOM];
    size_t length = 0;
    for (int k = 0; k < TABLES; k++) {
        length += (size_t)snprintf(nodes + length, sizeof nodes - length, "Gather t x > e%d;", k);
    }
    for (int k = 0; k < TABLES; k++) {
        length += (size_t)snprintf(nodes + length, sizeof nodes - length, "Add s%d e%d > s%d;", k, k, k + 1);
    }
    for (int k = 0; k < TABLES; k++) {
        length += (size_t)snprintf(nodes + length, sizeof nodes - length, "MatMul s%d onnx::MatMul_1 > s%d;",
                                   TABLES + k, TABLES + k + 1);
    }
    memcpy(strstr(nodes, "Add s0 "), "Add e0 ", 7);
    graph_in_words("x i 4", "s200 f 4,8", "t @ 8 0 0;onnx::MatMul_1 @ 8 55 1", nodes);
    assert_refused("what it computes of constant numbers is beyond the limit");
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("onnx");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, each_file_is_the_module_that_was_exported, 0, FILES);
    tcase_add_loop_test(tests, the_preset_that_it_is_read_as_says, 0, ROWS(written));
    tcase_add_test(tests, a_file_cut_anywhere_is_refused_or_read);
    tcase_add_loop_test(tests, a_file_with_other_bytes_is_refused_or_read, 0, FILES);
    tcase_add_loop_test(tests, every_allocation_may_fail, 0, FILES);
    tcase_add_test(tests, a_file_written_by_hand_is_read);
    tcase_add_loop_test(tests, what_no_layer_does_is_refused_with_its_node, 0, ROWS(refused));
    tcase_add_test(tests, channels_that_change_places_are_refused);
    tcase_add_test(tests, sizes_that_are_none_or_too_large_are_refused);
    tcase_add_test(tests, a_million_nodes_are_refused);
    tcase_add_loop_test(tests, what_no_layer_computes_is_not_taken_for_one, 0, ROWS(misread));
    tcase_add_loop_test(tests, graphs_in_words_are_read_as_they_are, 0, ROWS(read_right));
    tcase_add_loop_test(tests, the_policy_of_types_is_that_of_its_weights, 0, ROWS(policies));
    tcase_add_test(tests, a_file_of_many_tables_and_products_takes_no_long_time);
    Suite *suite = suite_create("onnx");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
