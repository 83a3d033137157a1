// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files, operator by operator: what a graph says is read as that, and what no layer computes is
// not taken for one.
#include "unit/onnx_words.h"

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

// A convolution to 4 channels of 8 x 8, then a group norm of two groups as exporters write it, then `rest` of n3 or n4.
#define GROUPED(weights, rest)                                                                               \
    "x f 3,8,8", "y f 4",                                                                                    \
        "w f 4,3,1,1;one * 2 1;no * 2 0;r = 0 2 -1;b = 0 4 8 8;g f 4,1,1;h f 4,1,1" weights,                 \
        "Conv x w > c;Reshape c r > n1;InstanceNormalization n1 one no > n2;Reshape n2 b > n3;" rest
#define GROUPED_MEAN(weights, rest) GROUPED(weights, rest "GlobalAveragePool n > p;Flatten p > y")
// A class token of those values before 16 patches of width 4, of a batch of 2.
#define TOKEN(values)                                                                                        \
    "x f 3,8,8 2", "y f 17,4 2", "w f 4,3,2,2;r = 2 4 16;t " values,                                         \
        "Conv x w > c strides=2,2;Reshape c r > p;Transpose p > q perm=0,2,1;Concat t q > y axis=1"
// The mean of a channel, flattened and looked up in that order, each sample so many places behind the one before.
#define STRIDED(order, behind)                                                                               \
    "x f 3,8,8", "y f 4",                                                                                    \
        "w f 4,3,1,1;v f 4,4;flat = -1;o = " order ";z = 0;one = 1;c = " behind ";ax = 1 2 3;q = 0 2 3",     \
        "Conv x w > c0;GlobalAveragePool c0 > p;Reshape p flat > f;Shape p > s start=0 end=1;Squeeze s z > " \
        "b;"                                                                                                 \
        "Squeeze z z > from;Squeeze one z > by;Range from b by > r;Mul r c > r4;Unsqueeze r4 ax > u;"        \
        "Unsqueeze o q > o4;Add u o4 > at;Gather f at > g axis=0;Flatten g > h;MatMul h v > y"
#define RESIZED(how)                                                                                         \
    "x f 3,8,8", "y f 4,16,16", "w f 4,3,1,1;s * 4 1;n = 1 1 2 2",                                           \
        "Conv x w > c;Cast n > f to=1;Resize c - f > y mode=nearest " how
#define LINEAR(how)                                                                                          \
    "x f 3,8,8", "y f 4,16,16", "w f 4,3,1,1;n = 1 1 2 2",                                                   \
        "Conv x w > c;Cast n > f to=1;Resize c - f > y mode=linear " how
#define RESIZED_TO(size, mode)                                                                               \
    "x f 3,8,8", "y f 4,8,8", "w f 4,3,1,1;n = 4 " size,                                                     \
        "Conv x w > c;Shape c > h start=0 end=1;Concat h n > s axis=0;Resize c - - s > y mode=" mode
// x of 2 by 8 under the shape s, which `how` makes of (0, 16) and more.
#define RESHAPED(numbers, how)                                                                               \
    "x f 2,8", "y f 4", "w f 16,4;z = 0;" numbers, how "Concat z p > s axis=0;Reshape x s > f;MatMul f w > y"

// Ids of an open length, and a table of so many positions.
#define OPEN_WEIGHTS(rows) "w f 9,4;t f " rows ",4;z = 0;one = 1"
#define OPEN_NODES                                                                                           \
    "Gather w x > e;Shape x > s start=1 end=2;Squeeze s z > n;Squeeze z z > from;Squeeze one z > by;"        \
    "Range from n by > ids;Gather t ids > rows;Add e rows > y"

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
    {GROUPED_MEAN("", "Relu n3 > n;"), "it reads a group or instance norm without a gain and a shift"},
    {GROUPED_MEAN("", "Mul n3 g > n4;Relu n4 > n;"), "it reads a group norm without a shift"},
    {GROUPED_MEAN(";k f 8,1,1", "Mul n3 k > n;"),
     "a product with a parameter other than a factor for each channel"},
    {"x f 3,8,8", "y f 4", "w f 4,3,1,1;one * 8 1;no * 8 0;r = 0 8 -1;b = 0 4 8 8;g f 4,1,1;h f 4,1,1",
     "Conv x w > c;Transpose c > t perm=0,2,3,1;Reshape t r > n1;InstanceNormalization n1 one no > n2;"
     "Reshape n2 b > n3;Mul n3 g > n4;Add n4 h > n;GlobalAveragePool n > p;Flatten p > y",
     "no whole channels that follow each other"},
    {"x f 3,8,8", "y f 4", "w f 4,3,1,1;g f 2;h f 2",
     "Conv x w > c;GroupNormalization c g h > n num_groups=2;GlobalAveragePool n > p;Flatten p > y",
     "needs a gain and a shift for each of 4 channels"},
    {TOKEN("+ 2,1,4"), "a parameter joined with a tensor, other than a row before a sequence"},
    {RESIZED("coordinate_transformation_mode=align_corners"), "over the grid align_corners rounded by"},
    {RESIZED("nearest_mode=floor"), "over the grid half_pixel rounded by floor"},
    {LINEAR("coordinate_transformation_mode=asymmetric"), "over the grid asymmetric, where our layer has"},
    {LINEAR("antialias=1"), "a resizing with antialias"},
    {RESIZED_TO("1 8", "linear coordinate_transformation_mode=pytorch_half_pixel"), "to one pixel"},
    {RESIZED_TO("12 8", "nearest"), "an upsampling by 1.5, which is no whole multiple up to 64"},
    {RESIZED_TO("0 8", "linear"), "an image of 8 pixels resized to 0"},
    {RESIZED_TO("16 16", "cubic"), "a resizing in mode cubic"},
    {RESIZED_TO("16 12", "linear keep_aspect_ratio_policy=not_larger"),
     "whose keep_aspect_ratio_policy is not_larger, where our layer has stretch"},
    {RESIZED_TO("16 16", "nearest keep_aspect_ratio_policy=not_smaller"),
     "whose keep_aspect_ratio_policy is not_smaller"},
    {"x f 3,8,8", "y f 3,11,11", "", "AveragePool x > y kernel_shape=2,2 strides=1,1 pads=2,2,2,2",
     "needs padding below its windows of 2x2 pixels, had 2"},
    {"x f 3,8,8", "y f 3,8,8", "s = 0;e = 8;a = 2;by = 0", "Slice x s e a by > y",
     "needs steps other than 0"},
    {"x i ?", "y f ?,4", "w f 9,4;n = 1000;one = 1", "Gather w x > e;Slice e one n one > y",
     "its length 'places' is left open, and a layer of it would have to know it"},
    {"x i ?", "y f ?,4", "w f 9,4;r = 0 2 -1 4", "Gather w x > e;Reshape e r > y",
     "needs a shape of as many elements as there are"},
    {"x i ?", "y f ?,4", OPEN_WEIGHTS("7"), OPEN_NODES,
     "a table of 7 positions, where a sequence that is left open begins with 8"},
    {STRIDED("0 2 1 3", "4"), "a look-up of several places"},
    {STRIDED("0 1 2 3", "0"), "a look-up of several places"}, // the first sample's for all of them
    {STRIDED("0 1 2 3", "3"), "a look-up of several places"},
    {RESHAPED("n = 2 8", "ReduceProd n > p noop_with_empty_axes=1;"), "8 features by a weight of 16"},
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
    // Padding from a shape: 8 - 7 rows behind, and 8 - 9 columns clipped at 0.
    {"x f 3,8,8", "y f 4,9,8", "w f 4,3,1,1;o = 1 2;z = 0;f = 0 0 0 0 0 0;seven = 7 9",
     "Conv x w > c;Shape c > s start=2 end=4;Sub s seven > d;Clip d z - > p;Concat f p > all axis=0;Pad c "
     "all > y",
     "kind: zero_pad, padding: [0, 1, 0, 0]"},
    {"x f 3,8,8", "y f 4,8,8", "w f 4,3,1,1", "Conv x w > c;AveragePool c > y kernel_shape=1,1 strides=1,1",
     "kind: avg_pool, size: 1"},
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
    {GROUPED_MEAN("", "Mul n3 g > n4;Add n4 h > n;"), "kind: group_norm, groups: 2, epsilon: 1e-05"},
    {GROUPED_MEAN("", "Mul g n3 > n4;Add h n4 > n5;Relu n5 > n;"), "epsilon: 1e-05, activation: relu"},
    {GROUPED_MEAN(";k * 4,1,1 1;l * 4,1,1 0", "Mul n3 k > n4;Add n4 l > n;"), "that has not learned yet"},
    {"x f 3,8,8", "y f 4", "w f 4,3,1,1;n.weight * 4 1;n.bias * 4 0",
     "Conv x w > c;InstanceNormalization c n.weight n.bias > n;GlobalAveragePool n > p;Flatten p > y",
     "{name: n, kind: group_norm, groups: 4, epsilon: 1e-05}"},
    {"x f 3,8,8", "y f 4", "w f 4,3,1,1;g f 4;h f 4",
     "Conv x w > c;GroupNormalization c g h > n num_groups=1;GlobalAveragePool n > p;Flatten p > y",
     "kind: group_norm, groups: 1, epsilon: 1e-05"},
    {TOKEN("* 2,1,4 0.5"), "says it: 52 parameters"},
    {TOKEN("f 2,1,4"), "'t' is taken for one row that the exporter has written for each"},
    {"x i ?", "y f ?,4", "w f 9,4", "Gather w x > y", "input: {type: int32, classes: 9, shape: [$sequence]}"},
    {"x i ?", "y f ?,4", "w f 9,4", "Gather w x > y", "sizes: {sequence: 128}"},
    {"x i ?", "y f ?,4", "w f 9,4;m = 0;one = 1", "Gather w x > e;Slice e m one one > l;Flatten l > y",
     "kind: slice, axis: 1, count: 1"},
    {"x i ?", "y f ?,4", OPEN_WEIGHTS("20"), OPEN_NODES, "sizes: {sequence: 16}"},
    {"x i ?", "y f ?,4", OPEN_WEIGHTS("20"), OPEN_NODES, "kind: position_embedding, rows: 20"},
    {"x i ?", "y f ?,4", OPEN_WEIGHTS("8"), OPEN_NODES, "kind: position_embedding, rows: 8"},
    {STRIDED("0 1 2 3", "4"), "says it: 28 parameters"},
    {RESIZED("coordinate_transformation_mode=asymmetric nearest_mode=floor"), "kind: upsample, size: 2"},
    {LINEAR(""), "kind: upsample, size: 2, mode: bilinear}"},
    {LINEAR("coordinate_transformation_mode=align_corners"),
     "kind: upsample, size: 2, mode: bilinear, align_corners: true}"},
    {RESIZED_TO("12 5", "linear coordinate_transformation_mode=pytorch_half_pixel"),
     "kind: upsample, to: [12, 5], mode: bilinear}"},
    {LINEAR("keep_aspect_ratio_policy=stretch"), "kind: upsample, size: 2, mode: bilinear}"},
    {LINEAR("keep_aspect_ratio_policy=not_larger"), "kind: upsample, size: 2, mode: bilinear}"}, // of sizes
    {"x f 3,8,8", "y f 3,1,8", "s = 5;e = -9;a = 2;by = -9223372036854775808", "Slice x s e a by > y",
     "from: 5, count: 1}"},
    {RESHAPED("n = 16 8;s0 = 0;e = -9;by = -9223372036854775808", "Slice n s0 e z by > p;"),
     "says it: 64 parameters"},
    // none of two rows of three
    {RESHAPED("n = 13;m = 1 2 3 4 5 6;t = 2 3;s0 = 1;e = 1;by = 9223372036854775807",
              "Reshape m t > m2;Slice m2 s0 e z by > none;Shape none > d;ReduceMax d > k keepdims=1;"
              "Add n k > p;"),
     "says it: 64 parameters"},
    {RESHAPED("n = 2 8", "ReduceProd n > p keepdims=1;"), "says it: 64 parameters"},
    {RESHAPED("n = 4 4;k = 0", "ReduceProd n k > p;"), "says it: 64 parameters"},
    {"x f 2,8", "y f 2,4", "n = 2 8;z = 0;w f 8,4",
     "ReduceProd n > p noop_with_empty_axes=1;Concat z p > s axis=0;Reshape x s > r;MatMul r w > y",
     "says it: 32 parameters"},
    {"x f 2,8", "y f 4", "n = 2 8;z = 0;e = 1;w f 16,4",
     "Unsqueeze n e > u;ReduceMax u z > k keepdims=0;ReduceSum k > k2;Add k2 k2 > p;Concat z p > s axis=0;"
     "Reshape x s > f;MatMul f w > y",
     "says it: 64 parameters"},
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
    TCase *tests = tcase_create("onnx_graphs");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, what_no_layer_computes_is_not_taken_for_one, 0, ROWS(misread));
    tcase_add_loop_test(tests, graphs_in_words_are_read_as_they_are, 0, ROWS(read_right));
    tcase_add_loop_test(tests, the_policy_of_types_is_that_of_its_weights, 0, ROWS(policies));
    tcase_add_test(tests, a_file_of_many_tables_and_products_takes_no_long_time);
    Suite *suite = suite_create("onnx_graphs");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
