// SPDX-License-Identifier: Apache-2.0
// Promises of nodes of ONNX that are let pass: a layer of the shape that the file says, with all that is learned in it and nothing
// made up, or a refusal by name.
#include "unit/onnx_words.h"

static bool open_opaque(void)
{
    hr_model *model = NULL;
    const hr_status status = hr_preset_open_opaque(path, false, &preset, NULL, &err);
    if (status == HR_OK) {
        ck_assert_msg(model_create(preset, hr_preset_knobs(preset), &model, NULL, &err) == HR_OK, "%s",
                      err.sentence);
        model_destroy(model);
    }
    return status == HR_OK;
}

#define IMAGE   "x f 3,8,8", "y f 4"
#define TO_MEAN ";GlobalAveragePool s > p;Flatten p > y"
#define ROWS_OF "x f 6,16", "y f 6,4"

static const struct {
    const char *input, *output, *weights, *nodes, *words;
} passed[] = {
    // An image stays one: what follows is read as ever.
    {IMAGE, "w f 4,3,1,1;v f 4,4,3,3;s : f 4,10,10",
     "Conv x w > c;Strange c > s;Conv s v > d;GlobalAveragePool d > p;Flatten p > y",
     "kind: opaque, shape: [10, 10, 4]}\n    - {name: v, kind: conv2d, filters: 4, kernel: 3, bias: false}"},
    {IMAGE, "w f 4,3,1,1;s : f 4,10,10", "Conv x w > c;Strange c > s" TO_MEAN,
     "1 layer is opaque (Strange): "},
    {IMAGE, "w f 4,3,1,1;s : f 4,10,10 batch", "Conv x w > c;Strange c > s" TO_MEAN, "shape: [10, 10, 4]"},
    // What it learns: floats, and of the file.
    {IMAGE, "w f 4,3,1,1;k f 5,5;b f 7;i = 1 2 3;e ~ 0.5;s : f 4,8,8",
     "Conv x w > c;Strange c k b i e > s" TO_MEAN, "parameters: 32}"},
    {IMAGE, "w f 4,3,1,1;k f 5,5;s : f 4,8,8", "Conv x w > c;Strange c k > s" TO_MEAN,
     "says it: 37 parameters"},
    // Each output by itself; one that nobody reads is none.
    {IMAGE, "w f 4,3,1,1;k f 5,5;s : f 4,8,8;t : f 4,8,8",
     "Conv x w > c;Strange c k > a t - u;Add a t > s;GlobalAveragePool s > p;Flatten p > y",
     "cannot be opaque: the file says no shape of its output 'a'"},
    {IMAGE, "w f 4,3,1,1;k f 5,5;a : f 4,8,8;t : f 4,8,8",
     "Conv x w > c;Strange c k > a t u;Add a t > s" TO_MEAN,
     "parameters: 25}\n    - {name: Strange_1, kind: opaque, input: w, shape: [8, 8, 4]}"},
    // Samples in pieces, as windows of an image are.
    {"x f 6,16", "y f 2,3,4", "w f 16,4;s : f 3,4 2*batch;r = -1 2 3 4",
     "MatMul x w > d;Strange d > s;Reshape s r > y", "shape: [2, 3, 4]"},
    {"x f 6,16", "y f 2,3,4", "w f 16,4;s : f 3,4 batch*2;r = -1 2 3 4",
     "MatMul x w > d;Strange d > s;Reshape s r > y", "shape: [2, 3, 4]"},
    {"x f 6,16 4", "y f 2,3,4 4", "w f 16,4;s : f 3,4 8;r = -1 2 3 4",
     "MatMul x w > d;Strange d > s;Reshape s r > y", "shape: [2, 3, 4]"},
    // More dimensions than a layer has: the first behind the batch are joined.
    {"x f 6,16", "y f 2,2,2,2,2", "w f 16,4", "MatMul x w > d;Strange d > y", "shape: [4, 2, 2, 2]"},
    // A step of what would be one layer is one itself, where it is not finished.
    {ROWS_OF, "w f 16,4;two ~ 2;q : f 6,4;y : f 6,4", "MatMul x w > d;Pow d two > q;Strange q > y",
     "2 layers are opaque (Pow, Strange)"},
    {ROWS_OF, "w f 16,4;two ~ 2;e ~ 1e-5;q : f 6,4;m : f 6,1;s : f 6,1",
     "MatMul x w > d;Pow d two > q;ReduceMean q > m axes=-1;Add m e > s;Strange s > y",
     "4 layers are opaque (Pow, ReduceMean, Add, Strange)"},
    // What is known stays known.
    {ROWS_OF, "w f 16,4;s : f 6,4", "MatMul x w > d;Strange d > s;Relu s > y", "kind: relu"},
    // A length that is left open.
    {"x i ?", "y f ?,4", "w f 9,4", "Gather w x > e;Strange e > y", "shape: [$sequence, 4]"},
};

START_TEST(what_is_not_known_is_a_layer_of_its_shape)
{
    graph_in_words(passed[_i].input, passed[_i].output, passed[_i].weights, passed[_i].nodes);
    const bool refused = strncmp(passed[_i].words, "cannot", 6) == 0;
    ck_assert_msg(open_opaque() != refused, "%s", err.sentence);
    const char *said = refused ? err.sentence : hr_preset_imported(preset);
    ck_assert_msg(strstr(said, passed[_i].words) != NULL, "%s", said);
}
END_TEST

static const struct {
    const char *input, *output, *weights, *nodes, *sentence;
} refused[] = {
    {ROWS_OF, "w f 16,4", "MatMul x w > d;Strange d > s;Relu s > y",
     "(Strange): cannot be opaque: the file says no shape of its output 's'"},
    {ROWS_OF, "w f 16,4;s : i 6,4", "MatMul x w > d;Strange d > s;Relu s > y",
     "its output 's' is of no floats but of ONNX's type 7"},
    {ROWS_OF, "w f 16,4;s : f ?,4", "MatMul x w > d;Strange d > s;Relu s > y",
     "the file leaves a dimension open of its output 's'"},
    {ROWS_OF, "w f 16,4;s : f 6,4 other", "MatMul x w > d;Strange d > s;Relu s > y",
     "the file says no batch first of its output 's'"},
    {ROWS_OF, "w f 16,4;s : f 6,4 3", "MatMul x w > d;Strange d > s;Relu s > y",
     "the file says no batch first"},
    {ROWS_OF, "w f 16,4;k = 1 2;s : f 6,4", "MatMul x w > d;Strange k > s;Add d s > y",
     "it reads no tensor of the model"},
    {"x i 8", "y f 8,4", "s : f 8,4", "Strange x > s;Relu s > y", "it reads ids"},
    {ROWS_OF, "w f 16,4;s : f 6,4", "MatMul x w > d;Strange d z > s;Relu s > y", "nothing before it gives"},
    {ROWS_OF, "w f 16,4;s : f 4294967296,4", "MatMul x w > d;Strange d > s;Relu s > y",
     "4294967296 places in one dimension"},
    {ROWS_OF, "w f 16,4;s : f 1099511627776,1099511627776", "MatMul x w > d;Strange d > s;Relu s > y",
     "beyond the largest"},
};

START_TEST(what_cannot_be_let_pass_is_named)
{
    graph_in_words(refused[_i].input, refused[_i].output, refused[_i].weights, refused[_i].nodes);
    ck_assert(!open_opaque());
    ck_assert_msg(strstr(err.sentence, refused[_i].sentence) != NULL, "%s", err.sentence);
}
END_TEST

// Without the word a node is refused by its name, and the way on is said where there is one.
START_TEST(a_refusal_says_whether_it_can_be_let_pass)
{
    graph_in_words(IMAGE, "w f 4,3,1,1;s : f 4,8,8", "Conv x w > c;Strange c > s" TO_MEAN);
    assert_refused("(Strange): no layer of ours does this");
    ck_assert_msg(strstr(err.hint, "a.onnx' --opaque") != NULL, "%s", err.hint);
    graph_in_words(IMAGE, "w f 4,3,1,1", "Conv x w > c;Strange c > s" TO_MEAN);
    memset(&err, 0, sizeof err);
    assert_refused("(Strange): no layer of ours does this");
    ck_assert_msg(strstr(err.hint, "--opaque") == NULL, "%s", err.hint);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    uint64_t asked = 1;
    graph_in_words(ROWS_OF, "w f 16,4;two ~ 2;q : f 6,4;k f 5,5",
                   "MatMul x w > d;Pow d two > q;Strange q k > y");
    for (uint64_t nth = 1; asked >= nth; nth++) {
        (void)hr_host_mem_fail_at(nth);
        const hr_status status = hr_preset_open_opaque(path, false, &preset, NULL, &err);
        asked = hr_host_mem_fail_at(0);
        ck_assert_msg(status == HR_OK || status == HR_NOMEM, "request %d: %s", (int)nth, err.sentence);
        close_preset();
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("onnx_opaque");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_is_not_known_is_a_layer_of_its_shape, 0, ROWS(passed));
    tcase_add_loop_test(tests, what_cannot_be_let_pass_is_named, 0, ROWS(refused));
    tcase_add_test(tests, a_refusal_says_whether_it_can_be_let_pass);
    tcase_add_test(tests, every_allocation_may_fail);
    Suite *suite = suite_create("onnx_opaque");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
