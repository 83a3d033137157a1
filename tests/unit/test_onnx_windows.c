// SPDX-License-Identifier: Apache-2.0
// Promises of the reader of ONNX files of attention within windows: biases are those of a table by relative position, masks
// those of a roll, and nothing else is taken for them. Judged by where pixels were before the image was rolled.
#include "unit/onnx_words.h"

// Windows of H by W pixels, DOWN below one another and ACROSS beside one another, of HEADS heads of 4 features.
enum { H = 2, W = 3, DOWN = 3, ACROSS = 2, HEADS = 2, PLACES = H * W, COUNT = DOWN * ACROSS };

// An image of 8 channels, 6 by 6 pixels, as windows of 6 places; queries, keys and values of one product; `scores` make p of s0.
#define WINDOWS(weights, scores, rest)                                                                       \
    "x f 8,6,6", "y f 6,6,4",                                                                                \
        "wc f 8,8,1,1;wq f 8,24;wo f 8,8;wh f 8,4;c ~ 0.5;i0 = 0;i1 = 1;i2 = 2;"                             \
        "cut = -1 3 2 2 3 8;flat = -1 6 8;three = -1 6 3 2 4;back = -1 3 2 2 3 8;image = -1 6 6 8;"          \
        "by = -1 6 2 6 6;one = -1 2 6 6" weights,                                                            \
        "Conv x wc > c0;Transpose c0 > t perm=0,2,3,1;Reshape t cut > a;Transpose a > b perm=0,1,3,2,4,5;"   \
        "Reshape b flat > d;MatMul d wq > e;Reshape e three > f;Transpose f > g perm=2,0,3,1,4;"             \
        "Gather g i0 > q4 axis=0;Squeeze q4 i0 > q0;Gather g i1 > k4 axis=0;Squeeze k4 i0 > k0;"             \
        "Gather g i2 > v4 axis=0;Squeeze v4 i0 > v;Mul q0 c > q;Transpose k0 > k perm=0,1,3,2;"              \
        "MatMul q k > s0;" scores "MatMul p v > m;Transpose m > n perm=0,2,1,3;Reshape n flat > o;"          \
        "MatMul o wo > z;" rest
#define TO_IMAGE                                                                                             \
    "Reshape z back > z1;Transpose z1 > z2 perm=0,1,3,2,4,5;Reshape z2 image > z3;MatMul z3 wh > y"
#define BIASED "Add s0 bias > s1;Softmax s1 > p;"
#define MASKED "Add s0 bias > s1;Reshape s1 by > s2;Add s2 mask > s3;Reshape s3 one > s4;Softmax s4 > p;"

static uint32_t seed;

static int below(int count)
{
    seed = seed * 1664525 + 1013904223;
    return (int)((seed >> 8) % (uint32_t)count);
}

// ---- biases ---------------------------------------------------------------------------------------------------

// What is looked up in a table of random numbers, one for each head and each way from a pixel to another.
static void list_biases(void)
{
    float table[HEADS][2 * H][2 * W];
    for (int k = 0; k < HEADS * 2 * H * 2 * W; k++) {
        (&table[0][0][0])[k] = (float)below(1000) / 8;
    }
    for (int k = 0; k < HEADS * PLACES * PLACES; k++) {
        const int i = k / PLACES % PLACES, j = k % PLACES;
        listed[k] = table[k / PLACES / PLACES][i / W - j / W + H - 1][i % W - j % W + W - 1];
    }
}

static bool reads_as(const char *words)
{
    if (hr_preset_open(path, false, &preset, NULL, &err) != HR_OK) {
        return false;
    }
    ck_assert_msg(strstr(hr_preset_imported(preset), words) != NULL, "%s", hr_preset_imported(preset));
    close_preset();
    return true;
}

START_TEST(biases_by_where_pixels_stand_are_those_of_a_table)
{
    seed = 3;
    for (int round = 0; round < 8; round++) {
        list_biases();
        graph_in_words(WINDOWS(";bias # 1,2,6,6", BIASED, TO_IMAGE));
        ck_assert_msg(reads_as("kind: window_attention, heads: 2, size: [2, 3], bias: false}"), "%s",
                      err.sentence);
        ck_assert(open_any());
    }
    // (2 * 2 - 1) * (2 * 3 - 1) numbers a head, however many were looked up
    graph_in_words(WINDOWS(";bias # 1,2,6,6", BIASED, TO_IMAGE));
    ck_assert(reads_as("says it: 382 parameters"));
}
END_TEST

START_TEST(biases_of_which_one_differs_are_none)
{
    seed = 4;
    for (int round = 0; round < 40; round++) {
        list_biases();
        // Only between the first pixel and the last there is one way alone.
        const int k = below(HEADS * PLACES * PLACES), i = k / PLACES % PLACES, j = k % PLACES;
        if (i + j == PLACES - 1 && (i == 0 || j == 0)) {
            continue;
        }
        const bool alone = (i / W != j / W) && (i % W - j % W == W - 1 || j % W - i % W == W - 1);
        listed[k] += 1;
        graph_in_words(WINDOWS(";bias # 1,2,6,6", BIASED, TO_IMAGE));
        ck_assert_int_eq(open_any(), alone);
        if (!alone) {
            ck_assert_msg(strstr(err.sentence, "neither causal nor empty") != NULL, "%s", err.sentence);
        }
    }
}
END_TEST

START_TEST(biases_in_another_file_are_taken_for_them_with_a_note)
{
    graph_in_words(WINDOWS(";bias f 1,2,6,6", BIASED, TO_IMAGE));
    ck_assert(reads_as("'bias' is taken for what was looked up in a table of biases by relative position."));
}
END_TEST

// ---- masks ----------------------------------------------------------------------------------------------------

// A pair is torn where the way from one to the other was another before the image was rolled up and to the left.
static void list_mask(int up, int left)
{
    for (int k = 0; k < COUNT * PLACES * PLACES; k++) {
        const int window = k / PLACES / PLACES, i = k / PLACES % PLACES, j = k % PLACES;
        const int y[2] = {window / ACROSS * H + i / W, window / ACROSS * H + j / W};
        const int x[2] = {window % ACROSS * W + i % W, window % ACROSS * W + j % W};
        const int rows = (y[0] + up) % (DOWN * H) - (y[1] + up) % (DOWN * H);
        const int columns = (x[0] + left) % (ACROSS * W) - (x[1] + left) % (ACROSS * W);
        listed[k] = rows == y[0] - y[1] && columns == x[0] - x[1] ? 0 : -100;
    }
}

static void masked_graph(void)
{
    graph_in_words(WINDOWS(";bias * 1,2,6,6 0.5;mask # 1,6,1,6,6", MASKED, TO_IMAGE));
}

START_TEST(a_mask_of_a_roll_is_its_shift)
{
    for (int up = 0; up < H; up++) {
        for (int left = 0; left < W; left++) {
            char words[96] = "size: [2, 3], bias: false}";
            if (up == left && up > 0) {
                (void)snprintf(words, sizeof words, "size: [2, 3], shift: %d, bias", up);
            } else if (up + left > 0) {
                (void)snprintf(words, sizeof words, "size: [2, 3], shift: [%d, %d], bias", up, left);
            }
            list_mask(up, left);
            masked_graph();
            ck_assert_msg(reads_as(words), "%d %d: %s", up, left, err.sentence);
            ck_assert(open_any());
        }
    }
}
END_TEST

START_TEST(a_mask_that_no_roll_explains_is_refused)
{
    seed = 5;
    for (int round = 0; round < 40; round++) {
        list_mask(below(H), below(W));
        const int k = below(COUNT * PLACES * PLACES);
        listed[k] = listed[k] < 0 ? (round % 2 == 0 ? 0 : -99) : -100;
        masked_graph();
        assert_refused("a mask of windows that no roll of the image explains");
    }
}
END_TEST

// ---- what it is not -------------------------------------------------------------------------------------------

static const struct {
    const char *input, *output, *weights, *nodes, *sentence;
} refused[] = {
    {WINDOWS("", "Softmax s0 > p;", TO_IMAGE),
     "heads of attention that are no part of a dense layer's features"},
    {WINDOWS(";bias * 1,2,6,6 0.5", "Add s0 bias > s1;Add s1 bias > s2;Softmax s2 > p;", TO_IMAGE),
     "a sum with the number 0.5, which no layer is"},
    {WINDOWS(";bias * 1,2,6,6 0.5", "Softmax s0 > s1;Add s1 bias > p;", TO_IMAGE),
     "a sum with the number 0.5, which no layer is"},
    {WINDOWS(";bias * 1,2,6,6 0.5;mask f 1,6,1,6,6", MASKED, TO_IMAGE),
     "the values of 'mask' are needed here, and lie in another file"},
    {WINDOWS(";bias * 1,2,6,6 0.5;mask + 1,2,3,6,6", MASKED, TO_IMAGE),
     "a mask of windows in another form than [1, windows, 1, places, places]"},
    {WINDOWS(";bias * 1,2,6,6 0.5;ob f 8", BIASED,
             "Add z ob > zb;"
             "Reshape zb back > z1;Transpose z1 > z2 "
             "perm=0,1,3,2,4,5;Reshape z2 image > z3;MatMul z3 wh > y"),
     "attention of windows with biases in some of its projections"},
};

START_TEST(other_attention_is_not_taken_for_that_of_windows)
{
    graph_in_words(refused[_i].input, refused[_i].output, refused[_i].weights, refused[_i].nodes);
    assert_refused(refused[_i].sentence);
}
END_TEST

// ---- numbers that are put into others -------------------------------------------------------------------------

// x of 2 by 8 under the shape s: p is what ScatterND makes of (9, 9, 9).
#define SHAPED(weights, how)                                                                                 \
    "x f 2,8", "y f 2,8", "nine = 9 9 9;e = 1" weights, how "Reshape x p > y0;Relu y0 > y"

static const struct {
    const char *input, *output, *weights, *nodes, *sentence; // NULL: it is read
} scattered[] = {
    {SHAPED(";i = 0;u = 8 0 2", "ScatterND nine i u > p;"),
     "needs as many updates as its indices name places"},
    {SHAPED(";i = 2 0 1;u = 8 0 2", "Unsqueeze i e > j;ScatterND nine j u > p;"), NULL},
    {SHAPED(";i = -1 -3 -2;u = 8 0 2", "Unsqueeze i e > j;ScatterND nine j u > p;"), NULL},
    {SHAPED(";i = 2 0 3;u = 8 0 2", "Unsqueeze i e > j;ScatterND nine j u > p;"),
     "puts a number beyond the table"},
    {SHAPED(";i = 2 0;u = 8 0 2", "Unsqueeze i e > j;ScatterND nine j u > p;"),
     "needs as many updates as its indices name places"},
    {SHAPED(";i = 2 0 1;u = 8 0 2", "Unsqueeze i e > j;ScatterND nine j u > p reduction=add;"),
     "needs updates that are put as they are, had the reduction add"},
    {SHAPED(";i = 0;u = 8;c ~ 3", "ScatterND c i u > p;"), "needs a table, had a single number"},
    {SHAPED(";i = 2 0 1 0;u = 8", "ScatterND nine i u > p;"), "needs indices of 1 to 1 dimensions, had 4"},
};

START_TEST(numbers_are_put_where_indices_say)
{
    graph_in_words(scattered[_i].input, scattered[_i].output, scattered[_i].weights, scattered[_i].nodes);
    if (scattered[_i].sentence != NULL) {
        assert_refused(scattered[_i].sentence);
        return;
    }
    ck_assert_msg(open_any(), "%s", err.sentence);
}
END_TEST

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

int main(void)
{
    TCase *tests = tcase_create("onnx_windows");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, biases_by_where_pixels_stand_are_those_of_a_table);
    tcase_add_test(tests, biases_of_which_one_differs_are_none);
    tcase_add_test(tests, biases_in_another_file_are_taken_for_them_with_a_note);
    tcase_add_test(tests, a_mask_of_a_roll_is_its_shift);
    tcase_add_test(tests, a_mask_that_no_roll_explains_is_refused);
    tcase_add_loop_test(tests, other_attention_is_not_taken_for_that_of_windows, 0, ROWS(refused));
    tcase_add_loop_test(tests, numbers_are_put_where_indices_say, 0, ROWS(scattered));
    Suite *suite = suite_create("onnx_windows");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
