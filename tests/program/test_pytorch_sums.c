// SPDX-License-Identifier: Apache-2.0
// What PyTorch's sum over rows, a bias's gradient, asks for beside its result: what a card was asked for, and what the rules of
// ATen/native/cuda/Reduce.cuh say step by step, for matrices of many shapes on cards of many sizes.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ops/pytorch.h"
#include "program/compile.h"
#include "program/model_from_text.h"

typedef struct sum_card {
    uint32_t major, minor, multiprocessors, threads; // threads: that a multiprocessor holds
} sum_card;

static const sum_card rtx3060 = {8, 6, 28, 1536}, t4 = {7, 5, 40, 1024}, h100 = {9, 0, 132, 2048};

// As an H100 was asked for them (tests/bench/results/cuda_requests.h100.json: GPT-2, BERT and ViT).
START_TEST(the_sum_of_a_bias_takes_what_a_card_was_asked_for)
{
    static const struct {
        uint64_t rows, columns, found, counters;
    } asked[] = {{8192, 768, 50331648, 24}, {8192, 2304, 139198464, 72}, {8192, 3072, 138412032, 96},
                 {4096, 768, 25165824, 24}, {4096, 2304, 75497472, 72},  {4096, 3072, 100663296, 96},
                 {6304, 768, 38928384, 24}, {6304, 2304, 116785152, 72}, {6304, 3072, 138412032, 96},
                 {1000, 768, 0, 0} /* few values a thread */};
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        const pytorch_sums sums = pytorch_column_sums(asked[k].rows, asked[k].columns, HR_F32, 9, 0, 132);
        ck_assert_uint_eq(sums.found_bytes, asked[k].found);
        ck_assert_uint_eq(sums.counter_bytes, asked[k].counters);
    }
    ck_assert_uint_eq(pytorch_column_sums(8192, 768, HR_F32, 0, 0, 0).found_bytes, 0); // no card
}
END_TEST

// ---- the rules, step by step ----------------------------------------------------------------------------------------

static uint64_t parts(uint64_t whole, uint64_t part)
{
    return (whole + part - 1) / part;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// The largest power of two that is not larger, if that is below the most.
static uint64_t power_of_two(uint64_t count, uint64_t most)
{
    uint64_t power = 1;
    while (count < most && 2 * power <= count) {
        power *= 2;
    }
    return count < most ? power : most;
}

typedef struct sum_block {
    uint64_t width, height, vector;
} sum_block;

// A block's columns and rows of threads. The rows of a matrix of one column are contiguous: threads lie along them.
static sum_block block_of(uint64_t rows, uint64_t columns)
{
    sum_block b = {.vector = 4};
    while (columns % b.vector != 0) {
        b.vector /= 2;
    }
    const bool along = columns == 1;
    const uint64_t across = along ? (rows >= 128 ? rows / 4 : rows) : columns / b.vector,
                   most = 512 / b.vector;
    const uint64_t most_wide = power_of_two(across, most), most_high = power_of_two(along ? 1 : rows, most);
    b.height = least(most_high, most / least(most_wide, 32));
    b.width = least(most_wide, most / b.height);
    return b;
}

static pytorch_sums judged(uint64_t rows, uint64_t columns, uint64_t element, const sum_card *card)
{
    const bool along = columns == 1;
    const sum_block b = block_of(rows, columns);
    uint64_t step = along ? b.width : 1,
             results = along ? 1 : b.width; // a block's values of a column, and its columns
    const bool high = parts(rows, step) >= least(16 * b.height, 256);
    *(high ? &step : &results) *= b.height;
    const uint64_t grid = parts(columns / b.vector, results), values = parts(rows, step);
    const uint64_t wanted = card->multiprocessors * (card->threads / (b.width * b.height));
    if (!high || values < 256 || grid > wanted) {
        return (pytorch_sums){0};
    }
    uint64_t sharing = parts(wanted, grid);
    sharing = sharing > parts(values, 16) ? parts(values, 16) : sharing;
    sharing = sharing < parts(values, 256) ? parts(values, 256) : sharing;
    const uint64_t found = element * columns * sharing * (along ? 1 : b.width * b.vector);
    return sharing < 2 ? (pytorch_sums){0} : (pytorch_sums){found, sizeof(int32_t) * grid};
}

static void assert_as_judged(uint64_t rows, uint64_t columns, hr_dtype type, const sum_card *card)
{
    const pytorch_sums judge = judged(rows, columns, type == HR_F64 ? 8 : 4, card);
    const pytorch_sums sums =
        pytorch_column_sums(rows, columns, type, card->major, card->minor, card->multiprocessors);
    ck_assert_msg(sums.found_bytes == judge.found_bytes && sums.counter_bytes == judge.counter_bytes,
                  "%ju rows, %ju columns, %u multiprocessors: %ju and %ju bytes, by the rules %ju and %ju",
                  (uintmax_t)rows, (uintmax_t)columns, card->multiprocessors, (uintmax_t)sums.found_bytes,
                  (uintmax_t)sums.counter_bytes, (uintmax_t)judge.found_bytes,
                  (uintmax_t)judge.counter_bytes);
}

START_TEST(the_sum_follows_the_rules_for_every_shape)
{
    static const hr_dtype types[] = {HR_F32, HR_F64, HR_F16, HR_BF16};
    const sum_card *const cards[] = {&rtx3060, &t4, &h100};
    const uint64_t wide[] = {768, 10000, 21504, 21508, 30522, 32003, 50257, 50304};
    uint32_t some = 0, none = 0;
    for (size_t c = 0; c < sizeof cards / sizeof *cards; c++) {
        for (uint64_t rows = 1; rows < UINT64_C(1) << 21; rows += 1 + rows / 3) {
            for (uint64_t k = 1; k < 140; k++) {
                const uint64_t columns = k < 132 ? k : wide[k - 132];
                assert_as_judged(rows, columns, types[k % 4], cards[c]);
                const bool any = judged(rows, columns, 4, cards[c]).found_bytes != 0;
                *(any ? &some : &none) += 1;
            }
        }
    }
    ck_assert_uint_gt(some, 1000);
    ck_assert_uint_gt(none, 1000);
}
END_TEST

// 30,522 columns are 477 blocks of 512 threads and 2 columns of each: of those an RTX 3060 works on 28 * 3 at once, an H100 on 132 * 4.
START_TEST(blocks_share_no_column_where_columns_alone_fill_the_card)
{
    ck_assert_uint_eq(pytorch_column_sums(4096, 30522, HR_F32, 8, 6, 28).found_bytes, 0);
    ck_assert_uint_eq(pytorch_column_sums(4096, 30522, HR_F32, 8, 6, 28).counter_bytes, 0);
    ck_assert_uint_eq(pytorch_column_sums(32768, 30522, HR_F32, 8, 6, 28).found_bytes, 0);
    ck_assert_uint_gt(pytorch_column_sums(32768, 30522, HR_F32, 9, 0, 132).found_bytes, 0);
    ck_assert_uint_eq(pytorch_column_sums(32768, 50257, HR_F32, 9, 0, 132).found_bytes, 0);
}
END_TEST

// ---- in a program ---------------------------------------------------------------------------------------------------

static hr_status ask_nothing(void *context, const op_query *q, uint64_t limit, target_answer *out,
                             hr_err *err)
{
    (void)context, (void)q, (void)limit, (void)err;
    *out = (target_answer){0};
    return HR_OK;
}

static const hr_target target = {
    .name = "willing", .key = 119, .ask = ask_nothing, .compute_major = 9, .multiprocessors = 132};

static const char model_text[] = "device: {vram: 1GiB}\n"
                                 "model:\n"
                                 "  name: long\n"
                                 "  input: {shape: [8192, 4]}\n"
                                 "  classes: 5\n"
                                 "  loss: softmax_cross_entropy\n"
                                 "  layers:\n"
                                 "    - {name: rows, kind: dense, units: 16}\n"
                                 "    - {name: first, kind: slice, axis: 1, from: 0, count: 1}\n"
                                 "    - {name: features, kind: reshape, shape: [16]}\n"
                                 "    - {name: head, kind: dense, units: 5}\n";

static uint64_t bytes_of_sums(const char *policy)
{
    hr_knobs knobs;
    hr_err err = {0};
    program *p = NULL;
    uint64_t bytes = 0;
    hr_knobs_init(&knobs);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_EXECUTION_AS, "pytorch", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_PRECISION_POLICY, policy, NULL), HR_OK);
    hr_model *model = model_from_text(model_text);
    ck_assert_msg(program_compile(model, &knobs, PROGRAM_TRAIN, 2, &target, &p, &err) == HR_OK, "%s",
                  err.sentence);
    for (uint32_t k = 0; k < p->tensor_count; k++) {
        bytes +=
            strstr(p->tensors[k].name, "rows/bias") != NULL && strstr(p->tensors[k].name, ":sums") != NULL
                ? p->tensors[k].bytes
                : 0;
    }
    program_destroy(p);
    model_destroy(model);
    return bytes;
}

START_TEST(a_program_adds_up_in_the_gradients_type)
{
    const uint64_t single = judged(16384, 16, 4, &h100).found_bytes;
    ck_assert_uint_gt(single, 0);
    ck_assert_uint_eq(bytes_of_sums("float32"), single);
    ck_assert_uint_eq(bytes_of_sums("mixed_bfloat16"), single);
    ck_assert_uint_eq(bytes_of_sums("float64"), 2 * single);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pytorch_sums");
    TCase *tests = tcase_create("pytorch_sums");
    tcase_add_test(tests, the_sum_of_a_bias_takes_what_a_card_was_asked_for);
    tcase_add_test(tests, the_sum_follows_the_rules_for_every_shape);
    tcase_add_test(tests, blocks_share_no_column_where_columns_alone_fill_the_card);
    tcase_add_test(tests, a_program_adds_up_in_the_gradients_type);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
