// SPDX-License-Identifier: Apache-2.0
// Promises of device/cuda/conv_pytorch.c that need no card: which engine PyTorch would take, as the real cuDNN says it for the
// properties of a card. Skipped where cuDNN is not found.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

#if HEADROOM_HAVE_CUDA

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "device_cuda/conv_spec.h"
#include "device_cuda/cudnn.h"
#include "device_cuda/graph_library.h"

static hr_err err;

static cuda_device *open_device(const char *card_name, bool deterministic)
{
    hr_card card;
    void *context = NULL;
    ck_assert_msg(hr_card_load(card_name, &card, &err) == HR_OK, "%s", err.sentence);
    const device_options options = {.card = &card, .plan_only = true, .deterministic = deterministic};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    return context;
}

static op_operand operand(hr_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (op_operand){.shape = shape_of(4, (const int64_t[]){a, b, c, d}), .dtype = dtype};
}

typedef struct layer {
    int32_t batch, size, in, out, kernel, groups;
} layer;

static op_query query_of(layer l, hr_op op, hr_dtype dtype)
{
    const int32_t pad = l.kernel / 2;
    const op_operand x = operand(dtype, l.batch, l.size, l.size, l.in),
                     y = operand(dtype, l.batch, l.size, l.size, l.out),
                     w = operand(dtype, l.kernel, l.kernel, l.in / l.groups, l.out);
    op_query q = {.op = op,
                  .in_count = 2,
                  .out_count = 1,
                  .attr = {.kernel_h = l.kernel,
                           .kernel_w = l.kernel,
                           .stride_h = 1,
                           .stride_w = 1,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad,
                           .groups = l.groups}};
    q.in[0] = op == HR_OP_CONV2D_BWD_DATA ? y : x;
    q.in[1] = op == HR_OP_CONV2D_BWD_WEIGHTS ? y : w;
    q.out[0] = op == HR_OP_CONV2D ? y : op == HR_OP_CONV2D_BWD_DATA ? x : w;
    return q;
}

static hr_status ask(cuda_device *device, const op_query *q, pytorch_images images, uint64_t limit,
                     target_answer *out)
{
    hr_target target;
    device_cuda.target(device, &target);
    ck_assert(target.ask_pytorch != NULL);
    return target.ask_pytorch(target.context, q, &images, limit, out, &err);
}

static target_answer answer_of(cuda_device *device, const op_query *q, pytorch_images images, uint64_t limit)
{
    target_answer a;
    ck_assert_msg(ask(device, q, images, limit, &a) == HR_OK, "%s", err.sentence);
    return a;
}

static const hr_op directions[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
enum { DIRECTIONS = 3 };
static const pytorch_images as_it_comes = {.tf32 = true}, plain = {.tf32 = false},
                            on_the_card = {.channels_last = true, .tf32 = false};
static const pytorch_images settings[] = {{false, false}, {false, true}, {true, false}, {true, true}};
static const layer layers[] = {{8, 56, 64, 64, 3, 1}, {8, 28, 128, 512, 1, 1}, {8, 14, 96, 96, 5, 4}};
enum { SETTINGS = 4, LAYERS = sizeof layers / sizeof *layers };

// ---- figures ----------------------------------------------------------------------------------------------------

// What PyTorch 2.11 asked for on an H100 (cuDNN 9.19): U-Net's step in cuda_requests.h100.json, channels_last, no TF32.
static const struct {
    layer l;
    hr_op op;
    uint64_t bytes;
} figures[] = {
    {{4, 256, 64, 64, 3, 1}, HR_OP_CONV2D, 134365200},
    {{4, 128, 128, 128, 3, 1}, HR_OP_CONV2D, 67698704},
    {{4, 64, 128, 256, 3, 1}, HR_OP_CONV2D, 26345488},
    {{4, 64, 256, 256, 3, 1}, HR_OP_CONV2D, 35913744},
    {{4, 32, 512, 512, 3, 1}, HR_OP_CONV2D, 26214416},
    {{4, 16, 1024, 1024, 3, 1}, HR_OP_CONV2D, 46137360},
    {{4, 256, 128, 64, 3, 1}, HR_OP_CONV2D, 201621520},
    {{4, 16, 512, 1024, 3, 1}, HR_OP_CONV2D_BWD_DATA, 25165840},
    {{4, 32, 512, 512, 3, 1}, HR_OP_CONV2D_BWD_DATA, 26214416},
};

START_TEST(workspaces_are_those_that_pytorch_asked_for_on_a_card)
{
    cuda_device *device = open_device("h100-80g", false);
    for (size_t k = 0; cudnn.cudnnGetVersion() == 91900 && k < sizeof figures / sizeof *figures; k++) {
        const op_query q = query_of(figures[k].l, figures[k].op, HR_F32);
        ck_assert_uint_eq(answer_of(device, &q, on_the_card, UINT64_MAX).workspace_bytes, figures[k].bytes);
    }
    device_cuda.close(device);
}
END_TEST

// ---- settings ---------------------------------------------------------------------------------------------------

START_TEST(a_smaller_limit_never_gets_a_larger_workspace)
{
    static const uint64_t limits[] = {UINT64_MAX, 64 * HR_MIB, HR_MIB, 0};
    cuda_device *device = open_device("rtx3060-12g", false);
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t d = 0; d < DIRECTIONS; d++) {
            const op_query q = query_of(layers[l], directions[d], _i == 0 ? HR_F32 : HR_BF16);
            target_answer first = {0};
            for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
                target_answer a;
                const hr_status status = ask(device, &q, as_it_comes, limits[k], &a);
                ck_assert(status == HR_OK || (status == HR_DEVICE && k > 0));
                ck_assert(status != HR_OK || a.workspace_bytes <= limits[k]);
                first = k == 0 ? a : first;
                if (status == HR_OK && limits[k] >= first.workspace_bytes) {
                    ck_assert_str_eq(a.impl, first.impl);
                }
            }
        }
    }
    device_cuda.close(device);
}
END_TEST

// Contiguous images are copied for tensor cores, one behind the other, into the workspace.
START_TEST(contiguous_images_are_copied_and_others_are_not)
{
    cuda_device *device = open_device("h100-80g", false);
    const op_query q = query_of((layer){128, 56, 64, 64, 3, 1}, HR_OP_CONV2D, HR_BF16);
    const uint64_t image = 128 * 56 * 56 * 64 * sizeof(uint16_t);
    ck_assert_uint_ge(answer_of(device, &q, as_it_comes, UINT64_MAX).workspace_bytes, 2 * image);
    ck_assert_uint_lt(answer_of(device, &q, settings[3], UINT64_MAX).workspace_bytes, image);
    device_cuda.close(device);
}
END_TEST

START_TEST(tf32_is_a_question_of_float32_alone)
{
    cuda_device *device = open_device("a100-80g", false);
    uint32_t others = 0;
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t d = 0; d < DIRECTIONS; d++) {
            const op_query q = query_of(layers[l], directions[d], HR_F32),
                           half = query_of(layers[l], directions[d], HR_F16);
            others += strcmp(answer_of(device, &q, as_it_comes, UINT64_MAX).impl,
                             answer_of(device, &q, plain, UINT64_MAX).impl) != 0;
            ck_assert_str_eq(answer_of(device, &half, as_it_comes, UINT64_MAX).impl,
                             answer_of(device, &half, plain, UINT64_MAX).impl);
        }
    }
    ck_assert_uint_gt(others, 0);
    device_cuda.close(device);
}
END_TEST

START_TEST(engines_that_change_their_order_are_left_out_where_it_is_asked)
{
    cuda_device *device = open_device("rtx3070-8g", true);
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t s = 0; s < SETTINGS; s++) {
            const op_query q = query_of(layers[l], HR_OP_CONV2D_BWD_WEIGHTS, HR_F32);
            graph_spec spec;
            graph_choice c;
            conv_pytorch_spec(&q, &settings[s], &spec);
            ck_assert_int_eq(graph_choose_named(device, &spec, settings[s].tf32, UINT64_MAX, &c, &err),
                             HR_OK);
            ck_assert(c.deterministic);
        }
    }
    device_cuda.close(device);
}
END_TEST

// cuDNN wants a driver to plan some of these: what it says of the engine is believed without one.
START_TEST(what_only_a_driver_can_plan_is_answered)
{
    cuda_device *device = open_device("h100-80g", false);
    for (size_t d = 0; d < DIRECTIONS; d++) {
        const op_query q = query_of((layer){64, 112, 32, 32, 3, 32}, directions[d], HR_F32);
        (void)answer_of(device, &q, on_the_card, UINT64_MAX);
        ck_assert_uint_eq(answer_of(device, &q, as_it_comes, UINT64_MAX).workspace_bytes,
                          0); // PyTorch's own kernel
    }
    device_cuda.close(device);
}
END_TEST

// A kernel of PyTorch's own then; and what cuDNN has no engine for is no refusal.
START_TEST(bfloat16_of_an_older_card_has_no_workspace)
{
    cuda_device *device = open_device("t4-16g", false);
    uint32_t none = 0;
    for (size_t l = 0; l < LAYERS; l++) {
        for (size_t d = 0; d < DIRECTIONS; d++) {
            const op_query q = query_of(layers[l], directions[d], HR_BF16);
            target_answer a = answer_of(device, &q, as_it_comes, UINT64_MAX);
            ck_assert(a.workspace_bytes == 0 && a.instead == TARGET_INSTEAD_NONE);
            ck_assert_int_eq(conv_pytorch_workspace(device, &q, &as_it_comes, UINT64_MAX, &a, &err), HR_OK);
            const uint8_t why = cudnn_shows_compiled() ? TARGET_INSTEAD_ENGINE : TARGET_INSTEAD_DRIVER;
            ck_assert_int_eq(a.instead, a.impl == NULL ? why : TARGET_INSTEAD_NONE);
            ck_assert(a.impl != NULL || a.workspace_bytes == 0);
            none += a.impl == NULL;
        }
    }
    ck_assert_uint_gt(none, 0);
    device_cuda.close(device);
}
END_TEST

// ---- the graph --------------------------------------------------------------------------------------------------

static void expect_strides(const graph_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    ck_assert(t->stride[0] == a && t->stride[1] == b && t->stride[2] == c && t->stride[3] == d);
}

START_TEST(images_and_weights_lie_as_the_script_says)
{
    const op_query q = query_of((layer){2, 8, 6, 10, 3, 1}, HR_OP_CONV2D, HR_F32);
    graph_spec spec;
    conv_pytorch_spec(&q, &plain, &spec);
    expect_strides(&spec.tensor[CONV_X], 384, 64, 8, 1);
    expect_strides(&spec.tensor[CONV_WEIGHTS], 54, 9, 3, 1);
    expect_strides(&spec.tensor[CONV_Y], 640, 64, 8, 1);
    conv_pytorch_spec(&q, &on_the_card, &spec);
    expect_strides(&spec.tensor[CONV_X], 384, 1, 48, 6);
    expect_strides(&spec.tensor[CONV_WEIGHTS], 54, 1, 18, 6);
    expect_strides(&spec.tensor[CONV_Y], 640, 1, 80, 10);
    ck_assert(spec.as_named);
}
END_TEST

START_TEST(a_bias_comes_behind)
{
    op_query q = query_of((layer){2, 8, 6, 10, 3, 1}, HR_OP_CONV2D, HR_F32);
    graph_spec spec;
    q.in[2] = (op_operand){.shape = shape_of(1, (const int64_t[]){10}), .dtype = HR_F32};
    q.in_count = 3;
    q.attr.act = HR_ACT_RELU;
    conv_pytorch_spec(&q, &plain, &spec);
    ck_assert(spec.node_count == 1 && spec.tensor_count == CONV_BIAS);
    ck_assert(spec.node[0].pad_before[0] == 1 && spec.node[0].pad_after[1] == 1);
}
END_TEST

START_TEST(the_result_of_a_transposed_one_is_cut_where_its_pads_differ)
{
    op_query q = query_of((layer){2, 8, 6, 10, 3, 1}, HR_OP_CONV2D_TRANSPOSE, HR_F32);
    graph_spec spec;
    q.out[0] = operand(HR_F32, 2, 8, 8, 10);
    q.attr.pad_top = 0;
    q.attr.pad_bottom = 2;
    q.attr.pad_left = -1; // PyTorch has none
    q.attr.pad_right = 0;
    conv_pytorch_spec(&q, &plain, &spec);
    const graph_node *n = &spec.node[0];
    ck_assert(n->pad_before[0] == 0 && n->pad_after[0] == 0 && n->pad_before[1] == 0 && n->pad_after[1] == 0);
    ck_assert(spec.tensor[CONV_X].dim[2] == 10 && spec.tensor[CONV_X].dim[3] == 8);
    expect_strides(&spec.tensor[CONV_X], 800, 80, 8, 1);
}
END_TEST

// ---- without ----------------------------------------------------------------------------------------------------

START_TEST(where_nobody_can_be_asked_the_target_does_not_know)
{
    hr_card card;
    void *device = NULL;
    hr_target target;
    ck_assert_int_eq(hr_card_load("rtx4060-8g", &card, &err), HR_OK);
    ck_assert_str_eq(card.properties_path, "");
    ck_assert_int_eq(device_cuda.open(&(device_options){.card = &card, .plan_only = true}, &device, &err),
                     HR_OK);
    device_cuda.target(device, &target);
    ck_assert(target.ask_pytorch == NULL);
    device_cuda.close(device);
}
END_TEST

START_TEST(no_host_memory_is_an_error_and_leaves_nothing_behind)
{
    const op_query q = query_of(layers[0], HR_OP_CONV2D, HR_BF16);
    bool finished = false;
    for (uint64_t n = 1; !finished && n < 100; n++) {
        cuda_device *device = open_device("h100-80g", false);
        target_answer a;
        hr_host_mem_fail_at(n);
        const hr_status status = ask(device, &q, as_it_comes, UINT64_MAX, &a);
        finished = hr_host_mem_fail_at(0) < n;
        ck_assert(status == HR_NOMEM || (finished && status == HR_OK));
        (void)answer_of(device, &q, as_it_comes, UINT64_MAX);
        device_cuda.close(device);
    }
    ck_assert(finished);
}
END_TEST

static Suite *pytorch_suite(void)
{
    Suite *suite = suite_create("cudnn_pytorch");
    TCase *c = tcase_create("cudnn_pytorch");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, workspaces_are_those_that_pytorch_asked_for_on_a_card);
    tcase_add_loop_test(c, a_smaller_limit_never_gets_a_larger_workspace, 0, 2);
    tcase_add_test(c, contiguous_images_are_copied_and_others_are_not);
    tcase_add_test(c, tf32_is_a_question_of_float32_alone);
    tcase_add_test(c, engines_that_change_their_order_are_left_out_where_it_is_asked);
    tcase_add_test(c, what_only_a_driver_can_plan_is_answered);
    tcase_add_test(c, images_and_weights_lie_as_the_script_says);
    tcase_add_test(c, bfloat16_of_an_older_card_has_no_workspace);
    tcase_add_test(c, a_bias_comes_behind);
    tcase_add_test(c, the_result_of_a_transposed_one_is_cut_where_its_pads_differ);
    tcase_add_test(c, where_nobody_can_be_asked_the_target_does_not_know);
    tcase_add_test(c, no_host_memory_is_an_error_and_leaves_nothing_behind);
    suite_add_tcase(suite, c);
    return suite;
}

int main(void)
{
    hr_preset_search_beside(".");
    setenv("XDG_DATA_HOME", "/dev/null/nowhere", 1);
    unsetenv("HEADROOM_DATA");
    if (cudnn_need(&err) != HR_OK) {
        printf("skipped: %s\n", err.sentence);
        return SKIPPED;
    }
    SRunner *runner = srunner_create(pytorch_suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#else

int main(void)
{
    printf("skipped: CUDA not built\n");
    return SKIPPED;
}

#endif
