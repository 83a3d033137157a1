// SPDX-License-Identifier: Apache-2.0
// Promises of device/cuda/attention.c that need no card: the real cuDNN takes its graphs on every card that is shipped,
// for the workspaces that were measured when this was designed; what it does not take, our own row answers. Skipped
// where cuDNN is not found.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#if HEADROOM_HAVE_CUDA

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "device/device.h"
#include "device_cuda/cudnn.h"

static hr_err err;

// GPT-2 124M, and what differs from it.
enum { BATCH = 16, HEADS = 12, LENGTH = 1024, FEATURES = 64 };

typedef struct shape {
    int64_t samples, heads, queries, keys, features;
    bool causal;
    double rate;
} shape;

static const shape gpt2 = {BATCH, HEADS, LENGTH, LENGTH, FEATURES, true, 0.0};

static op_query query_of(hr_op op, const shape *s, hr_dtype dtype)
{
    const int64_t width = s->heads * s->features;
    const op_operand q = {.shape = shape_of(3, (const int64_t[]){s->samples, s->queries, width}),
                          .dtype = dtype},
                     k = {.shape = shape_of(3, (const int64_t[]){s->samples, s->keys, width}),
                          .dtype = dtype},
                     lse = {.shape = shape_of(3, (const int64_t[]){s->samples, s->heads, s->queries}),
                            .dtype = HR_F32};
    op_query made = {.op = op,
                     .in_count = 3,
                     .out_count = 2,
                     .attr = {.heads = (int32_t)s->heads,
                              .flags = s->causal ? OP_FLAG_CAUSAL : 0,
                              .rate = s->rate,
                              .salt = 1},
                     .in = {q, k, k, q, q, lse},
                     .out = {q, lse}};
    if (op == HR_OP_ATTENTION_BWD) {
        made.in_count = 6;
        made.out_count = 3;
        made.out[1] = made.out[2] = k;
    }
    return made;
}

static void *open_device(const hr_card *card, bool deterministic)
{
    void *context = NULL;
    const device_options options = {.card = card, .plan_only = true, .deterministic = deterministic};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    return context;
}

static void *open_shipped(const char *name, bool deterministic)
{
    hr_card card;
    ck_assert_msg(hr_card_load(name, &card, &err) == HR_OK, "%s", err.sentence);
    return open_device(&card, deterministic);
}

static target_answer answer_of(void *device, hr_op op, const shape *s, hr_dtype dtype, uint64_t limit)
{
    hr_target target;
    target_answer answer = {0};
    const op_query q = query_of(op, s, dtype);
    device_cuda.target(device, &target);
    ck_assert_msg(target.ask(target.context, &q, limit, &answer, &err) == HR_OK, "%s", err.sentence);
    return answer;
}

static void expect_library(const target_answer *a, bool library)
{
    ck_assert_msg((strncmp(a->impl, "cudnn", 5) == 0) == library, "%s", a->impl);
}

static const char *const cards[] = {"h200-141g", "rtx4090-24g", "rtx3070-8g", "a100-80g"};
enum { CARDS = sizeof cards / sizeof *cards };
static const hr_dtype halves[] = {HR_F16, HR_BF16};

static const uint64_t sums_bytes = (uint64_t)BATCH * HEADS * LENGTH * sizeof(float);
enum { SMALL = 4096 }; // what engines want beside

START_TEST(every_card_streams_attention_of_two_bytes)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        void *device = open_shipped(cards[_i], deterministic == 1);
        for (int k = 0; k < 2; k++) {
            const target_answer forward = answer_of(device, HR_OP_ATTENTION, &gpt2, halves[k], UINT64_MAX);
            expect_library(&forward, true);
            ck_assert_uint_le(forward.workspace_bytes, SMALL);
            const target_answer back = answer_of(device, HR_OP_ATTENTION_BWD, &gpt2, halves[k], UINT64_MAX);
            expect_library(&back, true);
            const uint64_t most = (deterministic == 1 ? 384 : 48) * (uint64_t)HR_MIB;
            ck_assert_uint_ge(back.workspace_bytes, most + sums_bytes);
            ck_assert_uint_le(back.workspace_bytes, most + sums_bytes + SMALL);
        }
        device_cuda.close(device);
    }
}
END_TEST

START_TEST(the_workspace_as_the_limit_gives_the_same)
{
    void *device = open_shipped(cards[_i], false);
    const target_answer a = answer_of(device, HR_OP_ATTENTION_BWD, &gpt2, HR_BF16, UINT64_MAX);
    const target_answer b = answer_of(device, HR_OP_ATTENTION_BWD, &gpt2, HR_BF16, a.workspace_bytes);
    ck_assert_str_eq(a.impl, b.impl);
    ck_assert_uint_eq(a.workspace_bytes, b.workspace_bytes);
    const target_answer c = answer_of(device, HR_OP_ATTENTION_BWD, &gpt2, HR_BF16, a.workspace_bytes - 1);
    ck_assert_uint_lt(c.workspace_bytes, a.workspace_bytes);
    device_cuda.close(device);
}
END_TEST

START_TEST(what_the_library_does_not_take_we_do)
{
    void *device = open_shipped(cards[_i], false);
    const shape odd = {2, 3, 40, 40, 15, true, 0.0}, apart = {2, 3, 40, 50, 16, true, 0.0},
                wide = {1, 1, 64, 64, 264, false, 0.0};
    const shape *const shapes[] = {&odd, &apart, &wide};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const shape *s = shapes[k];
        const target_answer forward = answer_of(device, HR_OP_ATTENTION, s, HR_BF16, 0);
        const uint64_t sums = (uint64_t)(s->samples * s->heads * s->queries) * sizeof(float);
        const target_answer back = answer_of(device, HR_OP_ATTENTION_BWD, s, HR_BF16, sums);
        expect_library(&forward, false);
        expect_library(&back, false);
        ck_assert_uint_eq(forward.workspace_bytes, 0);
        ck_assert_uint_eq(back.workspace_bytes, sums);
    }
    const target_answer single = answer_of(device, HR_OP_ATTENTION, &gpt2, HR_F32, UINT64_MAX);
    expect_library(&single, false);
    device_cuda.close(device);
}
END_TEST

// BERT's: the library draws the masks, unless the same bits are asked for every time.
START_TEST(dropout_is_the_librarys_unless_bits_are_to_be_the_same)
{
    static const shape bert[] = {{32, 12, 512, 512, 64, false, 0.1},
                                 {BATCH, HEADS, LENGTH, LENGTH, FEATURES, true, 0.1}};
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        void *device = open_shipped(cards[_i], deterministic == 1);
        for (int k = 0; k < 4; k++) {
            const shape *s = &bert[k / 2];
            const target_answer forward = answer_of(device, HR_OP_ATTENTION, s, halves[k % 2], UINT64_MAX);
            const target_answer back = answer_of(device, HR_OP_ATTENTION_BWD, s, halves[k % 2], UINT64_MAX);
            expect_library(&forward, deterministic == 0);
            expect_library(&back, deterministic == 0);
        }
        device_cuda.close(device);
    }
}
END_TEST

// Under 16 MiB the library has forward alone: a mask that backward would not draw.
START_TEST(one_of_the_two_draws_the_mask_of_both_passes)
{
    static const shape bert = {32, 12, 512, 512, 64, false, 0.1};
    static const struct {
        uint64_t limit;
        bool library;
    } limits[] = {{0, false}, {16 * HR_MIB, false}, {UINT64_MAX, true}};
    void *device = open_shipped(cards[_i], false);
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        const uint64_t limit = limits[k].limit;
        const target_answer forward = answer_of(device, HR_OP_ATTENTION, &bert, HR_BF16, limit);
        const target_answer back = answer_of(device, HR_OP_ATTENTION_BWD, &bert, HR_BF16, limit);
        expect_library(&forward, limits[k].library);
        expect_library(&back, limits[k].library);
        ck_assert_uint_eq(forward.instead, limits[k].library ? TARGET_INSTEAD_NONE : TARGET_INSTEAD_LIMIT);
        ck_assert_uint_eq(back.instead, forward.instead);
    }
    device_cuda.close(device);
}
END_TEST

START_TEST(cards_before_ampere_have_our_own)
{
    const hr_card t4 = {.name = "t4", .compute_major = 7, .compute_minor = 5};
    void *device = open_device(&t4, false);
    const target_answer forward = answer_of(device, HR_OP_ATTENTION, &gpt2, HR_F16, UINT64_MAX);
    const target_answer back = answer_of(device, HR_OP_ATTENTION_BWD, &gpt2, HR_F16, UINT64_MAX);
    expect_library(&forward, false);
    expect_library(&back, false);
    ck_assert_uint_eq(back.workspace_bytes, sums_bytes);
    device_cuda.close(device);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    setenv("XDG_DATA_HOME", "/nowhere", 1);
    unsetenv("HEADROOM_DATA");
    if (cudnn_need(&err) != HR_OK || !cudnn_shows_compiled()) {
        (void)fprintf(stderr, "skipped: no cuDNN with engines that are compiled: %s\n", err.sentence);
        return SKIPPED;
    }
    Suite *suite = suite_create("cudnn_attention");
    TCase *all = tcase_create("attention");
    tcase_add_loop_test(all, every_card_streams_attention_of_two_bytes, 0, CARDS);
    tcase_add_loop_test(all, the_workspace_as_the_limit_gives_the_same, 0, CARDS);
    tcase_add_loop_test(all, what_the_library_does_not_take_we_do, 0, CARDS);
    tcase_add_loop_test(all, dropout_is_the_librarys_unless_bits_are_to_be_the_same, 0, CARDS);
    tcase_add_loop_test(all, one_of_the_two_draws_the_mask_of_both_passes, 0, CARDS);
    tcase_add_test(all, cards_before_ampere_have_our_own);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#else

int main(void)
{
    return SKIPPED;
}

#endif
