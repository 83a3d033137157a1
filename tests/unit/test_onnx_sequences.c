// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files of sequences: windows over places have as many as ONNX says, recurrent layers are those of
// PyTorch, and others are refused by name.
#include "unit/onnx_words.h"

static uint32_t seed;

static int below(int count)
{
    seed = seed * 1664525 + 1013904223;
    return (int)((seed >> 8) % (uint32_t)count);
}

static uint64_t parameters_of_file(void)
{
    hr_model *model = NULL;
    ck_assert_int_eq(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err), HR_OK);
    const uint64_t count = model->trainable_parameters;
    model_destroy(model);
    return count;
}

// ---- windows --------------------------------------------------------------------------------------------------

typedef struct windowed {
    int size, kernel, stride, dilation, pads[2], groups, out;
    const char *op;
} windowed;

static windowed random_window(void)
{
    static const char *const ops[] = {"Conv", "MaxPool", "AveragePool"};
    windowed v = {.size = 9 + below(9), .kernel = 1 + below(5), .stride = 1 + below(3), .op = ops[below(3)]};
    const bool conv = v.op[0] == 'C';
    v.dilation = conv && v.kernel > 1 ? 1 + below(2) : 1;
    v.groups = conv ? 1 + below(2) : 1;
    v.pads[0] = below(v.kernel);
    const int how = below(3);
    v.pads[1] = how == 0 ? below(v.kernel) : how == 1 ? v.pads[0] + 1 : v.pads[0];
    v.out = (v.size + v.pads[0] + v.pads[1] - (v.kernel - 1) * v.dilation - 1) / v.stride + 1; // as ONNX says
    return v;
}

// Whether there are as many places as the stride asks for, and the padding is what that needs, the odd one behind.
static bool pads_as_same(const windowed *v)
{
    const int places = (v->size + v->stride - 1) / v->stride;
    const int needs = (places - 1) * v->stride + (v->kernel - 1) * v->dilation + 1 - v->size;
    return v->out == places && needs > 0 && v->pads[0] == needs / 2 && v->pads[1] == needs - needs / 2;
}

// A window over 4 features, and a dense layer over all that it gives.
static void window_graph(const windowed *v)
{
    char input[64], weights[256], nodes[256];
    (void)snprintf(input, sizeof input, "x f 4,%d", v->size);
    (void)snprintf(weights, sizeof weights, "w f 4,%d,%d;d f %d,3", 4 / v->groups, v->kernel, 4 * v->out);
    char head[32], tail[64] = "";
    (void)snprintf(head, sizeof head, "%s x%s", v->op, v->op[0] == 'C' ? " w" : "");
    if (v->op[0] == 'C') {
        (void)snprintf(tail, sizeof tail, " dilations=%d, group=%d", v->dilation, v->groups);
    }
    (void)snprintf(nodes, sizeof nodes,
                   "%s > c kernel_shape=%d, strides=%d, pads=%d,%d%s;Flatten c > f;MatMul f d > y", head,
                   v->kernel, v->stride, v->pads[0], v->pads[1], tail);
    graph_in_words(input, "y f 3", weights, nodes);
}

// Whether each place sees itself and all that its window reaches before it.
static bool pads_as_causal(const windowed *v)
{
    return v->op[0] == 'C' && v->pads[0] == (v->kernel - 1) * v->dilation && v->pads[1] == 0;
}

// How far the last window reaches behind the sequence; negative: it does not reach its end.
static int reach_behind(const windowed *v)
{
    return (v->out - 1) * v->stride + (v->kernel - 1) * v->dilation + 1 - v->size - v->pads[0];
}

START_TEST(a_window_has_as_many_places_as_onnx_says)
{
    int reads = 0, same = 0, causal = 0, before = 0;
    seed = 11;
    for (int round = 0; round < 300; round++) {
        const windowed v = random_window();
        window_graph(&v);
        if (hr_preset_open(path, false, &preset, NULL, &err) != HR_OK) {
            const bool behind = reach_behind(&v) > v.pads[0];
            ck_assert_msg(strstr(err.sentence, behind ? "further behind the sequence than its padding"
                                                      : "as many places on both sides") != NULL,
                          "%s", err.sentence);
            ck_assert_int_ne(v.pads[0], v.pads[1]);
            ck_assert(!(v.op[0] == 'C' && pads_as_same(&v)) && !pads_as_causal(&v));
            before += behind ? 0 : 1;
            continue;
        }
        const int kernels = v.op[0] == 'C' ? 4 * 4 / v.groups * v.kernel : 0;
        ck_assert_uint_eq(parameters_of_file(), (uint64_t)(4 * v.out * 3 + kernels));
        reads++;
        const bool says = strstr(hr_preset_imported(preset), "padding: causal") != NULL;
        ck_assert(!says || pads_as_causal(&v));
        causal += says ? 1 : 0;
        same += v.op[0] == 'C' && pads_as_same(&v) && v.pads[0] != v.pads[1] ? 1 : 0;
        close_preset();
    }
    ck_assert_int_gt(reads, 100);
    ck_assert_int_gt(same, 0);
    ck_assert_int_gt(causal, 0);
    ck_assert_int_gt(before, 0);
}
END_TEST

// Two places of padding before a window of three, and so on: each place sees none behind it.
static const struct {
    const char *nodes, *weights, *words;
} causals[] = {
    {"Conv x w > y pads=2,0", "w f 4,4,3", "kernel: 3, padding: causal,"},
    {"Conv x w > y pads=6,0 dilations=3,", "w f 4,4,3", "kernel: 3, dilation: 3, padding: causal,"},
    {"Conv x w > y pads=3,0 strides=2,", "w f 4,4,4", "kernel: 4, stride: 2, padding: causal,"},
};

START_TEST(padding_before_a_sequence_alone_is_causal)
{
    graph_in_words("x f 4,9", "y f 4,9", causals[_i].weights, causals[_i].nodes);
    ck_assert_msg(open_any(), "%s", err.sentence);
    ck_assert_int_eq(hr_preset_open(path, false, &preset, NULL, &err), HR_OK);
    ck_assert_msg(strstr(hr_preset_imported(preset), causals[_i].words) != NULL, "%s",
                  hr_preset_imported(preset));
}
END_TEST

// ---- recurrence -----------------------------------------------------------------------------------------------

// x of 6 places by 4 features, a recurrent layer of 5 units, and what `rest` makes of its outputs y4 and h3.
#define RECURRENT(op, weights, words, rest)                                                                  \
    "x f 6,4", "y f 3", "u f 5,3;i = -1;z = 0;two = 1;" weights,                                             \
        "Transpose x > t perm=1,0,2;" op " t w r b" words ";" rest
#define LAST_PLACE                                                                                           \
    "Squeeze y4 two > y3;Transpose y3 > q perm=1,0,2;Gather q i > l axis=1;Squeeze l two > m;MatMul m u > y"
#define LAST_STATE   "Squeeze h3 z > m;MatMul m u > y"
#define GRU_WEIGHTS  "w f 1,15,4;r f 1,15,5;b f 1,30"
#define LSTM_WEIGHTS "w f 1,20,4;r f 1,20,5;b f 1,40"
#define IN_ORDER     " > y4 h3 hidden_size=5 linear_before_reset=1"

static const struct {
    const char *input, *output, *weights, *nodes;
    uint64_t parameters;
} recurrent[] = {
    {RECURRENT("GRU", GRU_WEIGHTS, IN_ORDER, LAST_PLACE), 15 * 4 + 15 * 5 + 30 + 15},
    {RECURRENT("GRU", GRU_WEIGHTS, IN_ORDER, LAST_STATE), 15 * 4 + 15 * 5 + 30 + 15},
    {RECURRENT("LSTM", LSTM_WEIGHTS, " > y4 h3 hidden_size=5", LAST_PLACE), 20 * 4 + 20 * 5 + 20 + 15},
    {RECURRENT("LSTM", LSTM_WEIGHTS, " > y4 h3 c3 hidden_size=5 direction=forward", LAST_STATE),
     20 * 4 + 20 * 5 + 20 + 15},
    {RECURRENT("GRU", GRU_WEIGHTS ";s * 1,2,5 0", " - s > y4 h3 hidden_size=5 linear_before_reset=1",
               LAST_PLACE),
     15 * 4 + 15 * 5 + 30 + 15},
};

START_TEST(a_recurrent_operator_is_a_layer)
{
    graph_in_words(recurrent[_i].input, recurrent[_i].output, recurrent[_i].weights, recurrent[_i].nodes);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(parameters_of_file(), recurrent[_i].parameters);
    ck_assert(strstr(hr_preset_imported(preset), "units: 5}\n") != NULL);
    ck_assert(strstr(hr_preset_imported(preset), "kind: slice, axis: 1, from: 5, count: 1}") != NULL);
}
END_TEST

// ---- refusals -------------------------------------------------------------------------------------------------

static const struct {
    const char *input, *output, *weights, *nodes, *sentence;
} refused[] = {
    {RECURRENT("GRU", GRU_WEIGHTS, " > y4 h3 hidden_size=5", LAST_PLACE), "needs to run forward over"},
    {RECURRENT("GRU", GRU_WEIGHTS, IN_ORDER " direction=reverse", LAST_PLACE), "needs to run forward over"},
    {RECURRENT("GRU", GRU_WEIGHTS, " > y4 h3 linear_before_reset=1", LAST_PLACE),
     "needs a hidden_size from 1 to 2147483647, had 0"},
    {RECURRENT("LSTM", LSTM_WEIGHTS, " > y4 h3 c3 hidden_size=5", "Squeeze c3 z > m;MatMul m u > y"),
     "needs to run forward over"},
    {RECURRENT("GRU", GRU_WEIGHTS ";s * 1,2,5 0.5", " - s > y4 h3 hidden_size=5 linear_before_reset=1",
               LAST_PLACE),
     "a carried state, lengths of sequences or peepholes"},
    {RECURRENT("GRU", "w f 2,15,4;r f 1,15,5;b f 1,30", IN_ORDER, LAST_PLACE),
     "needs weights of one direction"},
    {RECURRENT("GRU", "w f 1,15,5;r f 1,15,5;b f 1,30", IN_ORDER, LAST_PLACE),
     "needs weights of one direction"},
    {RECURRENT("GRU", "w f 1,15,4;r f 1,15,5;b f 1,15", IN_ORDER, LAST_PLACE),
     "needs weights of one direction"},
    {"x f 4,9", "y f 4,7", "w f 4,4,3", "Conv x w > y group=3",
     "4 filters of 4 features in 3 groups, over 4 features"},
    {"x f 4,2", "y f 4,1", "w f 4,4,3", "Conv x w > y", "windows of 3 over a sequence of 2"},
    {"x f 4,9", "y f 4,9", "w f 4,4,3", "Conv x w > y auto_pad=SAME_UPPER", "with their padding in numbers"},
    {"x f 4,9", "y f 4,7", "w f 4,4,3", "Conv x w > y pads=1,1,1,1",
     "needs 2 of pads from 0 to 65535 for a sequence"},
    {"x f 4,9", "y f 4,9", "w f 4,4,3", "Conv x w > y pads=0,2",
     "further behind the sequence than its padding"},
    {"x f 4,9", "y f 4,8", "w f 4,4,3", "Conv x w > y pads=1,0",
     "a padding of 1 before the sequence and 0 behind it, where our layers have as many places on both "
     "sides, or, causal, 2 before it"},
    {"x f 4,9", "y f 4,9", "w f 4,4,3", "MaxPool x > y kernel_shape=3, strides=1, pads=2,0",
     "a padding of 2 before the sequence and 0 behind it, where our layers have as many places on both "
     "sides"},
    {"x f 4,9", "y f 4,12", "w f 4,4,3", "AveragePool x > y kernel_shape=2, strides=1, pads=2,2",
     "needs padding below its windows of 2 places, had 2"},
    {RECURRENT("LSTM", LSTM_WEIGHTS, " > y4 h3 hidden_size=0", LAST_STATE),
     "needs a hidden_size from 1 to 2147483647, had 0"},
};

START_TEST(what_no_layer_of_sequences_does_is_refused)
{
    graph_in_words(refused[_i].input, refused[_i].output, refused[_i].weights, refused[_i].nodes);
    assert_refused(refused[_i].sentence);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("onnx_sequences");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_window_has_as_many_places_as_onnx_says);
    tcase_add_loop_test(tests, padding_before_a_sequence_alone_is_causal, 0, ROWS(causals));
    tcase_add_loop_test(tests, a_recurrent_operator_is_a_layer, 0, ROWS(recurrent));
    tcase_add_loop_test(tests, what_no_layer_of_sequences_does_is_refused, 0, ROWS(refused));
    Suite *suite = suite_create("onnx_sequences");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
