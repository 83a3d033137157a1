// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files: as many parameters as the module that was exported has and its layers, what no layer
// does is refused with its node, and no file of a stranger does more than be refused. Operators: test_onnx_graphs.c.
#include "unit/onnx_words.h"

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
    {"factor_script", 2344, "embedding attention add dense"},
    {"dense_dynamo", 1814,
     "conv2d batch_norm conv2d concat batch_norm conv2d concat batch_norm conv2d concat global_avg_pool "
     "dense"},
    {"unet_script", 1122, "conv2d max_pool conv2d conv2d_transpose upsample concat conv2d"},
    {"segment_script", 242, "conv2d upsample conv2d upsample"},
    {"segment_dynamo", 242, "conv2d upsample conv2d upsample"},
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
    {"rotary_script", 11200, "embedding rms_norm attention add rms_norm dense dense multiply dense add"},
    {"norms_script", 914, "conv2d group_norm conv2d group_norm add global_avg_pool dense"},
    {"norms_dynamo", 914, "conv2d group_norm conv2d group_norm add global_avg_pool dense"},
    {"patches_fixed", 4554,
     "conv2d reshape class_token position_embedding layer_norm attention add layer_norm dense dense add "
     "layer_norm slice "
     "flatten dense"},
    {"open_script", 5570,
     "embedding position_embedding layer_norm attention add layer_norm dense dense add dense"},
    {"open_dynamo", 5570,
     "embedding position_embedding layer_norm attention add layer_norm dense dense add dense"},
    {"biased_dynamo", 922, "conv2d batch_norm conv2d batch_norm global_avg_pool dense"},
    {"dropped_script", 546, "conv2d batch_norm global_avg_pool dense dropout dense"},
    {"dropped_dynamo", 546, "conv2d batch_norm global_avg_pool dense dropout dense"},
    {"shuffle_script", 72, "conv2d channel_shuffle slice slice conv2d conv2d add global_avg_pool"},
    {"shuffle_dynamo", 72, "conv2d channel_shuffle slice slice conv2d conv2d add global_avg_pool"},
    {"mixer_script", 1274,
     "conv2d layer_norm reshape permute dense dense permute reshape add layer_norm dense dense add reshape "
     "reduce dense"},
    {"mixer_dynamo", 1274,
     "conv2d layer_norm reshape permute dense dense permute reshape add layer_norm dense dense add reshape "
     "reduce dense"},
    {"pixels_script", 1041, "pixel_unshuffle conv2d conv2d pixel_shuffle conv2d global_avg_pool"},
    {"windows_script", 1182,
     "conv2d window_attention add roll window_attention roll add patch_merging dense reshape reduce dense"},
    {"windows_dynamo", 1182,
     "conv2d window_attention add roll window_attention roll add patch_merging dense reshape reduce dense"},
    {"sound_script", 641,
     "conv1d reshape batch_norm reshape max_pool1d conv1d conv1d avg_pool1d gru slice flatten dense"},
    {"sound_dynamo", 641,
     "conv1d reshape batch_norm reshape max_pool1d conv1d conv1d avg_pool1d gru slice flatten dense"},
    {"pixels_dynamo", 1041, "pixel_unshuffle conv2d conv2d pixel_shuffle conv2d global_avg_pool"},
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
    {"factor_script", "{name: o, kind: attention, heads: 2, scale: 0.5, form: materialised, bias: false}"},
    {"dilated_script", "kernel: [3, 2], stride: 2, dilation: [2, 3]"},
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
    {"rotary_script", "heads: 4, kv_heads: 2, causal: true, rotary: 10000, bias: false}"},
    {"norms_script", "{name: norm1, kind: group_norm, groups: 2, epsilon: 1e-05, activation: silu}"},
    {"norms_dynamo", "{name: norm2, kind: group_norm, groups: 8, epsilon: 1e-05}"},
    {"open_script", "The length 'places' is left open: model.sequence begins at 32."},
    {"open_dynamo", "sizes: {sequence: 32}"},
    {"open_dynamo", "input: {type: int32, classes: 50, shape: [$sequence]}"},
    {"open_dynamo", "kind: position_embedding, rows: 40}"},
    {"dropped_dynamo", "{name: dropout, kind: dropout, rate: 0.2}"},
    {"shuffle_dynamo", "{name: channel_shuffle, kind: channel_shuffle, groups: 2}"},
    {"mixer_dynamo", "{name: permute, kind: permute, axes: [2, 1]}"},
    {"windows_dynamo", "kind: window_attention, heads: 2, size: [2, 3]}"},
    {"windows_script", "kind: window_attention, heads: 2, size: [2, 3], shift: 1}"},
    {"sound_dynamo", "kernel: 3, dilation: 4, padding: 4, groups: 4, activation: gelu}"},
    {"sound_script", "input: {shape: [40, 3]}"},
    {"pixels_dynamo", "{name: pixel_shuffle, kind: pixel_shuffle, size: 2}"},
};

START_TEST(the_preset_that_it_is_read_as_says)
{
    model_destroy(model_of(written[_i].name));
    ck_assert_msg(strstr(hr_preset_imported(preset), written[_i].words) != NULL, "%s",
                  hr_preset_imported(preset));
}
END_TEST

// ---- files of strangers ---------------------------------------------------------------------------------------

START_TEST(a_file_cut_anywhere_is_refused_or_read)
{
    unsigned char data[ROOM];
    const size_t bytes = get("residual_script", data, sizeof data);
    put(data, bytes);
    ck_assert(open_any());
    for (size_t k = bytes; k-- > 0;) {
        ck_assert_int_eq(truncate(path, (off_t)k), 0);
        (void)open_any();
    }
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
    tcase_add_test(tests, sizes_that_are_none_or_too_large_are_refused);
    tcase_add_test(tests, a_million_nodes_are_refused);
    Suite *suite = suite_create("onnx");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
