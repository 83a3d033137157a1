// SPDX-License-Identifier: Apache-2.0
// Promises of device/cuda/graph.h and properties.h that need no card: what the real cuDNN says of ResNet-50's convolutions
// for the cards that are shipped. Skipped where cuDNN is not found.
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77 };

#if HEADROOM_HAVE_CUDA

#include "headroom/card.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "device_cuda/conv_spec.h"
#include "device_cuda/cudnn.h"
#include "device_cuda/driver.h"
#include "device_cuda/graph_library.h"

static hr_err err;

static cuda_device *open_device(const char *card_name, bool tf32, bool deterministic)
{
    hr_card card;
    void *context = NULL;
    ck_assert_msg(hr_card_load(card_name, &card, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_ne(card.properties_path, "");
    const device_options options = {
        .card = &card, .plan_only = true, .tf32 = tf32, .deterministic = deterministic};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    return context;
}

// ---- ResNet-50 ------------------------------------------------------------------------------------------------

typedef struct layer {
    int32_t size, in, out, kernel, stride;
} layer;

// Version 1.5, batch 64, 224x224: 23 shapes, three directions each.
static const layer resnet50[] = {
    {224, 3, 64, 7, 2},     {56, 64, 64, 1, 1},    {56, 64, 64, 3, 1},    {56, 64, 256, 1, 1},
    {56, 256, 64, 1, 1},    {56, 256, 128, 1, 1},  {56, 128, 128, 3, 2},  {28, 128, 512, 1, 1},
    {56, 256, 512, 1, 2},   {28, 512, 128, 1, 1},  {28, 128, 128, 3, 1},  {28, 512, 256, 1, 1},
    {28, 256, 256, 3, 2},   {14, 256, 1024, 1, 1}, {28, 512, 1024, 1, 2}, {14, 1024, 256, 1, 1},
    {14, 256, 256, 3, 1},   {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2},  {7, 512, 2048, 1, 1},
    {14, 1024, 2048, 1, 2}, {7, 2048, 512, 1, 1},  {7, 512, 512, 3, 1},
};
enum {
    LAYERS = sizeof resnet50 / sizeof *resnet50,
    DIRECTIONS = 3,
    TYPES = 3,
    QUERIES = LAYERS * DIRECTIONS
};

static const hr_op directions[DIRECTIONS] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
static const hr_dtype types[TYPES] = {HR_F32, HR_F16, HR_BF16};

static op_operand operand(hr_dtype dtype, uint32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (op_operand){.shape = shape_of(rank, (const int64_t[]){a, b, c, d}), .dtype = dtype};
}

static op_query query_of(layer l, hr_op op, hr_dtype dtype, int32_t groups, bool bias)
{
    const int32_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
    const op_operand x = operand(dtype, 4, 64, l.size, l.size, l.in),
                     y = operand(dtype, 4, 64, out, out, l.out),
                     w = operand(dtype, 4, l.kernel, l.kernel, l.in / groups, l.out),
                     b = operand(dtype, 1, l.out, 0, 0, 0);
    op_query q = {.op = op,
                  .in_count = 2,
                  .out_count = 1,
                  .attr = {.kernel_h = l.kernel,
                           .kernel_w = l.kernel,
                           .stride_h = l.stride,
                           .stride_w = l.stride,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad,
                           .groups = groups}};
    q.in[0] = op == HR_OP_CONV2D_BWD_DATA ? y : x;
    q.in[1] = op == HR_OP_CONV2D_BWD_WEIGHTS ? y : w;
    q.out[0] = op == HR_OP_CONV2D ? y : op == HR_OP_CONV2D_BWD_DATA ? x : w;
    if (bias) {
        q.in[2] = b;
        q.in_count = 3;
    }
    return q;
}

static op_query resnet_query(uint32_t k, hr_dtype dtype)
{
    return query_of(resnet50[k / DIRECTIONS], directions[k % DIRECTIONS], dtype, 1, false);
}

static hr_status choose(cuda_device *device, const op_query *q, uint64_t limit, graph_choice *out)
{
    static graph_spec spec;
    uint8_t result = 0;
    conv_spec(q, &spec, &result);
    return graph_choose(device, &spec, limit, out, &err);
}

static graph_choice chosen(cuda_device *device, const op_query *q, uint64_t limit)
{
    graph_choice c;
    ck_assert_msg(choose(device, q, limit, &c) == HR_OK, "%s", err.sentence);
    return c;
}

static void expect_same(const graph_choice *a, const graph_choice *b)
{
    ck_assert_uint_eq(a->workspace_bytes, b->workspace_bytes);
    ck_assert_uint_eq(a->position, b->position);
    ck_assert_uint_eq(a->behind, b->behind);
    ck_assert_str_eq(a->name, b->name);
}

// ---- figures --------------------------------------------------------------------------------------------------

// cuDNN 9.19.0 for compute capability 9.0 with 132 multiprocessors, measured when this was designed.
static const struct {
    layer l;
    int32_t groups;
    hr_dtype dtype;
    uint64_t forward, data, weights;
} figures[] = {
    {{56, 64, 64, 3, 1}, 1, HR_BF16, 131, 131, 295107},
    {{56, 64, 64, 3, 1}, 1, HR_F16, 131, 131, 295107},
    {{56, 64, 64, 3, 1}, 1, HR_F32, 131, 131, 295107},
    {{14, 256, 256, 3, 1}, 1, HR_F16, 1048771, 131, 131},
    {{224, 4, 64, 7, 2}, 1, HR_BF16, 51430416, 130326544, 57552016},
    {{224, 4, 64, 7, 2}, 1, HR_F32, 51430416, 260653072, 262922384},
    {{112, 96, 96, 3, 1}, 96, HR_F32, 0, 0, 274474},
};

START_TEST(workspaces_are_those_that_were_measured)
{
    cuda_device *device = open_device("h200-141g", true, false);
    if (cudnn.cudnnGetVersion() == 91900) {
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++) {
            const uint64_t expected[DIRECTIONS] = {figures[k].forward, figures[k].data, figures[k].weights};
            for (uint32_t d = 0; d < DIRECTIONS; d++) {
                const op_query q =
                    query_of(figures[k].l, directions[d], figures[k].dtype, figures[k].groups, false);
                ck_assert_uint_eq(chosen(device, &q, UINT64_MAX).workspace_bytes, expected[d]);
            }
        }
    }
    device_cuda.close(device);
}
END_TEST

// ---- limits ---------------------------------------------------------------------------------------------------

static const uint64_t limits[] = {0, 32 * HR_MIB, 256 * HR_MIB, UINT64_MAX};
enum { LIMITS = sizeof limits / sizeof *limits };

START_TEST(a_smaller_limit_never_gets_a_larger_workspace)
{
    cuda_device *device = open_device("h200-141g", true, false);
    for (uint32_t k = 0; k < QUERIES; k++) {
        const op_query q = resnet_query(k, types[_i]);
        uint64_t before = 0;
        uint8_t behind = UINT8_MAX;
        for (size_t i = 0; i < LIMITS; i++) {
            const graph_choice c = chosen(device, &q, limits[i]);
            const graph_choice again = chosen(device, &q, c.workspace_bytes);
            ck_assert_uint_le(c.workspace_bytes, limits[i]);
            ck_assert_uint_ge(c.workspace_bytes, before);
            ck_assert_uint_eq(c.position, again.position);
            ck_assert_uint_le(c.behind, behind); // and is nearer to the library's first choice
            behind = c.behind;
            before = c.workspace_bytes;
        }
        ck_assert_uint_eq(behind, 0); // nothing was kept from it in the end
    }
    device_cuda.close(device);
}
END_TEST

START_TEST(answers_do_not_depend_on_what_was_asked_before)
{
    cuda_device *first = open_device("a100-80g", true, false), *second = open_device("a100-80g", true, false);
    for (uint32_t k = 0; k < QUERIES; k++) {
        const op_query q = resnet_query(k, HR_BF16);
        for (size_t i = LIMITS; i-- > 0;) {
            (void)chosen(first, &q, limits[i]);
        }
    }
    for (uint32_t k = QUERIES; k-- > 0;) {
        const op_query q = resnet_query(k, HR_BF16);
        for (size_t i = 0; i < LIMITS; i++) {
            const graph_choice a = chosen(first, &q, limits[i]), b = chosen(second, &q, limits[i]);
            expect_same(&a, &b);
        }
    }
    device_cuda.close(first);
    device_cuda.close(second);
}
END_TEST

// ---- knobs ----------------------------------------------------------------------------------------------------

START_TEST(without_tf32_float32_gets_other_engines)
{
    cuda_device *with = open_device("h200-141g", true, false),
                *without = open_device("h200-141g", false, false);
    uint32_t others = 0;
    for (uint32_t k = 0; k < QUERIES; k++) {
        const op_query q = resnet_query(k, HR_F32), half = resnet_query(k, HR_BF16);
        const graph_choice a = chosen(with, &q, UINT64_MAX), b = chosen(without, &q, UINT64_MAX);
        others += strcmp(a.name, b.name) != 0;
        ck_assert_uint_ge(b.position, a.position);
        const graph_choice c = chosen(with, &half, UINT64_MAX), d = chosen(without, &half, UINT64_MAX);
        expect_same(&c, &d);
    }
    ck_assert_uint_ge(others, QUERIES - 1); // one is best without tensor cores
    device_cuda.close(with);
    device_cuda.close(without);
}
END_TEST

START_TEST(deterministic_devices_get_deterministic_engines)
{
    cuda_device *device = open_device("rtx3070-8g", false, true);
    for (uint32_t k = 0; k < QUERIES; k++) {
        for (uint32_t t = 0; t < TYPES; t++) {
            const op_query q = resnet_query(k, types[t]);
            for (size_t i = 0; i < LIMITS; i++) {
                ck_assert(chosen(device, &q, limits[i]).deterministic);
            }
        }
    }
    device_cuda.close(device);
}
END_TEST

START_TEST(bias_and_relu_are_the_librarys)
{
    cuda_device *device = open_device("h200-141g", true, false);
    for (uint32_t k = 0; k < LAYERS; k++) {
        for (int32_t act = HR_ACT_NONE; act <= HR_ACT_RELU; act++) {
            op_query q = query_of(resnet50[k], HR_OP_CONV2D, HR_BF16, 1, true);
            q.attr.act = act;
            ck_assert(conv_fuses_bias(&q));
            (void)chosen(device, &q, 64 * HR_MIB);
        }
    }
    device_cuda.close(device);
}
END_TEST

// ---- cards ----------------------------------------------------------------------------------------------------

static const char *const cards[] = {"h200-141g", "a100-80g", "rtx4090-24g", "rtx3070-8g", "rtx3060-12g"};

START_TEST(every_card_answers)
{
    cuda_device *device = open_device(cards[_i], true, false);
    char words[64];
    graph_library_words(cuda_device_graphs(device), words, sizeof words);
    ck_assert_msg(strncmp(words, "cuDNN 9.", 8) == 0, "%s", words);
    for (uint32_t k = 0; k < QUERIES; k++) {
        const op_query q = resnet_query(k, HR_F16);
        (void)chosen(device, &q, 64 * HR_MIB);
    }
    device_cuda.close(device);
}
END_TEST

START_TEST(keys_tell_cards_and_knobs_apart)
{
    uint64_t keys[8];
    cuda_device *devices[] = {
        open_device("h200-141g", true, false),   open_device("h200-141g", false, false),
        open_device("h200-141g", true, true),    open_device("a100-80g", true, false),
        open_device("rtx3070-8g", true, false),  open_device("rtx3060-12g", true, false),
        open_device("rtx4090-24g", true, false), open_device("h200-141g", true, false)};
    for (size_t k = 0; k < 8; k++) {
        hr_target target;
        device_cuda.target(devices[k], &target);
        keys[k] = target.key;
        for (size_t i = 0; i < k; i++) {
            ck_assert_int_eq(keys[i] == keys[k], i == 0 && k == 7);
        }
        device_cuda.close(devices[k]);
    }
}
END_TEST

START_TEST(a_device_that_plans_prepares_nothing)
{
    cuda_device *device = open_device("h200-141g", true, false);
    const op_query q = resnet_query(0, HR_BF16);
    graph_spec spec;
    uint8_t result = 0;
    graph *g = NULL;
    cuda_properties own;
    conv_spec(&q, &spec, &result);
    ck_assert_int_eq(graph_prepare(device, &spec, UINT64_MAX, &g, &err), HR_DEVICE);
    ck_assert_ptr_null(g);
    ck_assert_ptr_nonnull(strstr(err.sentence, "opened for plans"));
    ck_assert_int_eq(graph_library_properties(cuda_device_graphs(device), &own, &err), HR_DEVICE);
    device_cuda.close(device);
}
END_TEST

// Of the first card that is there; 0: there is none.
static int major_here(void)
{
    CUdevice card = 0;
    int major = 0;
    const bool known = cuda_driver_need(NULL) == HR_OK && cuda_driver.cuDeviceGet(&card, 0) == CUDA_SUCCESS &&
                       cuda_driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                                        card) == CUDA_SUCCESS;
    return known ? major : 0;
}

// A plan that names no card is for the one that is there.
START_TEST(without_properties_there_is_no_engine_and_the_sentence_says_why)
{
    void *device = NULL;
    const op_query q = resnet_query(0, HR_BF16);
    graph_choice c;
    ck_assert_int_eq(device_cuda.open(&(device_options){.plan_only = true}, &device, &err), HR_OK);
    ck_assert_int_eq(choose(device, &q, UINT64_MAX, &c), major_here() == 0 ? HR_DEVICE : HR_OK);
    ck_assert(major_here() != 0 || strstr(err.sentence, "device properties") != NULL);
    device_cuda.close(device);
}
END_TEST

START_TEST(what_cudnn_cannot_compute_is_refused_with_its_limit)
{
    cuda_device *device = open_device("h200-141g", false, false);
    graph_choice c;
    op_query q = resnet_query(0, HR_BF16);
    q.attr.pad_bottom += 100; // the result's shape is another one
    ck_assert_int_eq(choose(device, &q, UINT64_MAX, &c), HR_DEVICE);
    ck_assert_str_ne(err.sentence, "");
    graph_spec spec = {.node_count = 1, .node = {{.kind = GRAPH_CONV, .in_count = 2, .in = {7, 8}}}};
    ck_assert_int_eq(graph_choose(device, &spec, UINT64_MAX, &c, &err), HR_CHECK);
    device_cuda.close(device);
}
END_TEST

START_TEST(no_host_memory_is_an_error_and_leaves_nothing_behind)
{
    const op_query q = resnet_query(4, HR_BF16);
    bool finished = false;
    for (uint64_t n = 1; !finished && n < 100; n++) {
        cuda_device *device = open_device("h200-141g", true, false);
        graph_choice c;
        hr_host_mem_fail_at(n);
        const hr_status status = choose(device, &q, UINT64_MAX, &c);
        finished = hr_host_mem_fail_at(0) < n;
        ck_assert_int_eq(status, finished ? HR_OK : HR_NOMEM);
        (void)chosen(device, &q, UINT64_MAX);
        device_cuda.close(device);
        ck_assert_int_eq(hr_host_mem_live(), 0);
    }
    ck_assert(finished);
}
END_TEST

// The gradient of a wide layer's weights with that of its bias, whose sums the library's workspace shares the limit with.
static op_query bias_gradient_query(void)
{
    op_query q = query_of((layer){56, 64, 64, 3, 1}, HR_OP_CONV2D_BWD_WEIGHTS, HR_BF16, 1, false);
    q.out[1] = operand(HR_BF16, 1, 64, 0, 0, 0);
    q.out_count = 2;
    return q;
}

static hr_status ask_device(cuda_device *device, const op_query *q, target_answer *out)
{
    hr_target target;
    device_cuda.target(device, &target);
    return target.ask(target.context, q, HR_GIB, out, &err);
}

START_TEST(for_want_of_host_memory_nothing_else_is_answered)
{
    const op_query q = bias_gradient_query();
    target_answer whole, answer;
    bool finished = false;
    cuda_device *device = open_device("h200-141g", true, false);
    ck_assert_int_eq(ask_device(device, &q, &whole), HR_OK);
    device_cuda.close(device);
    for (uint64_t n = 1; !finished && n < 100; n++) {
        device = open_device("h200-141g", true, false);
        hr_host_mem_fail_at(n);
        const hr_status status = ask_device(device, &q, &answer);
        finished = hr_host_mem_fail_at(0) < n;
        ck_assert_int_eq(status, finished ? HR_OK : HR_NOMEM);
        ck_assert_int_eq(ask_device(device, &q, &answer), HR_OK);
        ck_assert_int_eq(memcmp(&answer, &whole, sizeof answer), 0);
        device_cuda.close(device);
    }
    ck_assert(finished);
}
END_TEST

START_TEST(an_answer_leaves_no_error_behind)
{
    op_query q = resnet_query(7, HR_BF16);
    q.attr.pad_bottom += 100; // the library refuses, our own kernel does not mind
    cuda_device *device = open_device("h200-141g", true, false);
    target_answer answer;
    err = (hr_err){.sentence = "before"};
    ck_assert_int_eq(ask_device(device, &q, &answer), HR_OK);
    ck_assert_str_eq(answer.impl, "own direct, not cudnn");
    ck_assert_str_eq(err.sentence, "before");
    device_cuda.close(device);
}
END_TEST

// ---- what lasts longer ----------------------------------------------------------------------------------------

static target_answer answer_of(const hr_target *t, uint32_t k)
{
    target_answer answer;
    const op_query q = resnet_query(k, HR_BF16);
    ck_assert_msg(target_ask(t, &q, 64 * HR_MIB, &answer, &err) == HR_OK, "%s", err.sentence);
    return answer;
}

// The name of an answer is that of the engine that cuDNN gave, in its words.
START_TEST(answers_name_the_engine_that_cudnn_chose)
{
    hr_target target;
    uint32_t engines = 0;
    cuda_device *device = open_device("h200-141g", true, false);
    device_cuda.target(device, &target);
    for (uint32_t k = 0; k < QUERIES; k++) {
        char name[TARGET_IMPL_MAX];
        const op_query q = resnet_query(k, HR_BF16);
        const target_answer a = answer_of(&target, k);
        ck_assert_uint_eq(a.instead, TARGET_INSTEAD_NONE);
        if (strcmp(a.impl, "cublaslt") != 0) {
            const graph_choice c = chosen(device, &q, 64 * HR_MIB);
            snprintf(name, sizeof name, "cudnn %s", c.name);
            ck_assert_str_eq(a.impl, name);
            ck_assert_uint_eq(a.workspace_bytes, c.workspace_bytes);
            engines++;
        }
    }
    ck_assert_uint_gt(engines, DIRECTIONS); // pointwise ones of stride 1 are products
    target_forget();
    device_cuda.close(device);
}
END_TEST

// Nobody but cuDNN fits this one, and it has no engine: whoever computes it says so.
START_TEST(what_cudnn_refuses_is_named_as_our_own)
{
    hr_target target;
    target_answer a;
    cuda_device *device = open_device("h200-141g", false, false);
    device_cuda.target(device, &target);
    op_query q = resnet_query(6, HR_F32); // 3x3
    q.attr.pad_bottom += 1;               // cuDNN would make the result one row larger
    ck_assert_msg(target_ask(&target, &q, UINT64_MAX, &a, &err) == HR_OK, "%s", err.sentence);
    ck_assert_str_eq(a.impl, "own direct, not cudnn");
    ck_assert(a.instead == (cudnn_shows_compiled() ? TARGET_INSTEAD_ENGINE : TARGET_INSTEAD_DRIVER));
    target_forget();
    device_cuda.close(device);
}
END_TEST

static const hr_op transposed[DIRECTIONS] = {HR_OP_CONV2D_TRANSPOSE, HR_OP_CONV2D_TRANSPOSE_BWD_DATA,
                                             HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS};

typedef struct drawn {
    int32_t kernel[2], stride[2], before[2], behind[2], groups;
    int64_t samples, large[2], small[2], c, f; // c: of the large image
} drawn;

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = hash64_mix(*state, below);
    return (*state >> 20) % below;
}

// Any convolution that a model may have: both paddings, strides, groups, odd channels. Of a transposed one the padding behind
// is negative where strides are larger than kernels, as `same` makes it.
static drawn draw_convolution(uint64_t *state, bool is_transposed)
{
    const int32_t unit = draw(state, 3) == 0 ? 1 : 8;
    drawn g = {.groups = !is_transposed && draw(state, 4) == 0 ? 2 + 2 * (int32_t)draw(state, 2) : 1,
               .samples = 1 + (int64_t)draw(state, 16)};
    g.c = g.groups * unit * (1 + (int64_t)draw(state, 24));
    g.f = g.groups * unit * (1 + (int64_t)draw(state, 24));
    for (int k = 0; k < 2; k++) {
        g.kernel[k] = 1 + (int32_t)draw(state, 7);
        g.stride[k] = 1 + (int32_t)draw(state, 4);
        g.before[k] = (int32_t)draw(state, (uint64_t)g.kernel[k]);
        g.behind[k] = is_transposed && g.stride[k] > g.kernel[k]
                          ? g.kernel[k] - g.stride[k]
                          : (int32_t)draw(state, (uint64_t)g.kernel[k]);
        g.small[k] = 2 + (int64_t)draw(state, 12);
        g.large[k] = (g.small[k] - 1) * g.stride[k] + g.kernel[k] - g.before[k] - g.behind[k];
        g.large[k] = g.large[k] < 1 ? 1 : g.large[k];
        g.small[k] = (g.large[k] + g.before[k] + g.behind[k] - g.kernel[k]) / g.stride[k] + 1;
    }
    return g;
}

static op_query query_of_drawn(const drawn *g, hr_op op, hr_dtype dtype)
{
    const op_operand large = operand(dtype, 4, g->samples, g->large[0], g->large[1], g->c),
                     small = operand(dtype, 4, g->samples, g->small[0], g->small[1], g->f),
                     w = operand(dtype, 4, g->kernel[0], g->kernel[1], g->c / g->groups, g->f);
    op_query q = {.op = op,
                  .in_count = 2,
                  .out_count = 1,
                  .in = {large, w},
                  .out = {small},
                  .attr = {.kernel_h = g->kernel[0],
                           .kernel_w = g->kernel[1],
                           .stride_h = g->stride[0],
                           .stride_w = g->stride[1],
                           .pad_top = g->before[0],
                           .pad_left = g->before[1],
                           .pad_bottom = g->behind[0],
                           .pad_right = g->behind[1],
                           .groups = g->groups}};
    if (op == HR_OP_CONV2D_BWD_DATA || op == HR_OP_CONV2D_TRANSPOSE) {
        q.in[0] = small;
        q.out[0] = large;
    } else if (op == HR_OP_CONV2D_BWD_WEIGHTS || op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS) {
        q.in[0] = op == HR_OP_CONV2D_BWD_WEIGHTS ? large : small;
        q.in[1] = op == HR_OP_CONV2D_BWD_WEIGHTS ? small : large;
        q.out[0] = w;
    }
    return q;
}

// Known faults of cuDNN (gates.c): what is computed as a gradient of float32, padded by other widths behind than before; in every
// type an image's, where channels are no multiple of eight.
static bool is_faulty(const op_query *q)
{
    const op_attr *a = &q->attr;
    const int64_t *w = q->in[1].shape.dim;
    const bool uneven = a->pad_top != a->pad_bottom || a->pad_left != a->pad_right;
    const bool of_image = q->op == HR_OP_CONV2D_BWD_DATA || q->op == HR_OP_CONV2D_TRANSPOSE;
    const bool odd = of_image && (w[2] % 8 != 0 || w[3] % 8 != 0);
    const bool single =
        q->in[0].dtype == HR_F32 && q->op != HR_OP_CONV2D && q->op != HR_OP_CONV2D_TRANSPOSE_BWD_DATA;
    return uneven && (odd || single);
}

// The table in device/cuda/README.md: whatever the limit, `own direct` is planned for a negative padding and for a fault of
// cuDNN alone. For the rest it waits for what a card refuses at load.
START_TEST(our_own_direct_convolution_is_planned_for_what_cudnn_may_not_have_alone)
{
    hr_target target;
    uint64_t state = (uint64_t)_i + 1;
    unsigned direct = 0;
    cuda_device *device = open_device(cards[_i], true, false);
    device_cuda.target(device, &target);
    for (uint32_t k = 0; k < 180; k++) {
        const drawn g = draw_convolution(&state, k % 2 == 1);
        const hr_op op = (k % 2 == 1 ? transposed : directions)[k / 2 % DIRECTIONS];
        const op_query q = query_of_drawn(&g, op, types[k / 6 % TYPES]);
        const bool negative = g.behind[0] < 0 || g.behind[1] < 0;
        for (int limited = 0; limited < 2; limited++) {
            target_answer a = {0};
            ck_assert_msg(target.ask(target.context, &q, limited ? 0 : UINT64_MAX, &a, &err) == HR_OK, "%s",
                          err.sentence);
            const bool is_direct = strncmp(a.impl, "own direct", 10) == 0;
            ck_assert_msg(is_direct == (negative || is_faulty(&q)), "%u, %s: %s", k, op_name(op), a.impl);
            direct += is_direct;
        }
    }
    ck_assert_uint_gt(direct, 0);
    device_cuda.close(device);
}
END_TEST

START_TEST(remembered_answers_are_the_same)
{
    char path[] = "/tmp/cudnn_plans_XXXXXX";
    static target_answer first[QUERIES];
    hr_target target;
    cuda_device *device = open_device("rtx4090-24g", true, false);
    device_cuda.target(device, &target);
    ck_assert(target.slow_to_ask);
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    file_close(fd);
    for (uint32_t k = 0; k < QUERIES; k++) {
        first[k] = answer_of(&target, k);
    }
    ck_assert(target_memo_save(path));
    target_forget();
    target_memo_load(path);
    for (uint32_t k = 0; k < QUERIES; k++) {
        const target_answer again = answer_of(&target, k);
        ck_assert_uint_eq(again.workspace_bytes, first[k].workspace_bytes);
        ck_assert_uint_eq(again.reorder_count, first[k].reorder_count);
        for (uint8_t n = 0; n < again.reorder_count; n++) {
            ck_assert_uint_eq(again.reorder[n].operand, first[k].reorder[n].operand);
            ck_assert_uint_eq(again.reorder[n].bytes, first[k].reorder[n].bytes);
        }
        ck_assert_ptr_eq(again.impl, first[k].impl);
    }
    (void)remove(path);
    target_forget();
    device_cuda.close(device);
}
END_TEST

// ---- properties -----------------------------------------------------------------------------------------------

static char *whole(const char *card_name, size_t *bytes)
{
    hr_card card;
    char *json = NULL;
    ck_assert_int_eq(hr_card_load(card_name, &card, &err), HR_OK);
    ck_assert_int_eq(file_read(card.properties_path, HR_MIB, &json, bytes, &err), HR_OK);
    return json;
}

// Those that every_card_answers walks wholly, and the others.
static const char *const shipped[] = {"h200-141g",   "a100-80g",  "rtx4090-24g",   "rtx3070-8g",
                                      "rtx3060-12g", "h100-80g",  "h100-pcie-80g", "h100-nvl-94g",
                                      "a100-40g",    "b200-180g", "l4-24g",        "l40s-48g",
                                      "a10-24g",     "a30-24g",   "a40-48g",       "t4-16g"};

// cuDNN plans a convolution for each of them; without a driver it knows ready-made engines alone. Outside of Check too.
static hr_status plan_for(const char *card_name)
{
    const layer l = {28, 128, 128, 3, 1};
    hr_card card;
    void *device = NULL;
    hr_status status = hr_card_load(card_name, &card, &err);
    if (status == HR_OK) {
        status = device_cuda.open(&(device_options){.card = &card, .plan_only = true, .tf32 = true}, &device,
                                  &err);
    }
    for (uint32_t d = 0; d < DIRECTIONS && status == HR_OK; d++) {
        const op_query q = query_of(l, directions[d], HR_F16, 1, false);
        graph_choice c;
        status = choose(device, &q, UINT64_MAX, &c);
        if (status == HR_OK && strncmp(c.name, "eng", 3) != 0) {
            status = HR_FAIL(&err, CHECK, "no engine: %s", c.name);
        }
    }
    if (device != NULL) {
        device_cuda.close(device);
    }
    return status;
}

// The same in a process of its own; how it ended, or -1. This program plans for the card that it is given.
static int plan_apart(const char *card_name, bool hides_card)
{
    extern char **environ;
    char card[64];
    char *words[] = {card, card, NULL};
    int status = 0;
    (void)snprintf(card, sizeof card, "%s", card_name);
    const pid_t child = fork();
    if (child == 0) {
        if (hides_card) {
            (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
        }
        (void)execve("/proc/self/exe", words, environ);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Beside a card of compute capability 9.0, cuDNN 9.19 ends the process that plans for 10.0: then it has its last words, and
// what they say helps.
START_TEST(cudnn_plans_for_every_shipped_file)
{
    hr_card card;
    ck_assert_int_eq(hr_card_load(shipped[_i], &card, &err), HR_OK);
    if (major_here() == 0 || (int)card.compute_major <= major_here()) {
        ck_assert_msg(plan_for(shipped[_i]) == HR_OK, "%s", err.sentence);
        return;
    }
    const int ended = plan_apart(shipped[_i], false);
    ck_assert_msg(ended == EXIT_SUCCESS || ended == hr_status_exit_code(HR_DEPENDENCY), "exit %d", ended);
    ck_assert_int_eq(plan_apart(shipped[_i], true), EXIT_SUCCESS);
}
END_TEST

START_TEST(a_process_of_its_own_plans_as_well)
{
    ck_assert_int_eq(plan_apart("h200-141g", true), EXIT_SUCCESS);
}
END_TEST

START_TEST(every_file_is_shipped)
{
    glob_t found;
    ck_assert_int_eq(glob("presets/cards/*.json", 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, sizeof shipped / sizeof *shipped);
    globfree(&found);
}
END_TEST

START_TEST(shipped_properties_are_their_cards)
{
    hr_card card;
    cuda_properties p;
    ck_assert_int_eq(hr_card_load(shipped[_i], &card, &err), HR_OK);
    ck_assert_msg(cuda_properties_read(card.properties_path, &p, &err) == HR_OK, "%s", err.sentence);
    ck_assert_uint_eq(p.traits.compute_major, card.compute_major);
    ck_assert_uint_eq(p.traits.compute_minor, card.compute_minor);
    ck_assert_msg(strstr(card.title, p.name) != NULL ||
                      strncmp(p.name, card.title, strlen("NVIDIA A100")) == 0,
                  "%s, %s", p.name, card.title);
    const char *memory = strstr(p.text, "\"totalGlobalMem\":");
    ck_assert_ptr_nonnull(memory);
    const uint64_t bytes = strtoull(memory + strlen("\"totalGlobalMem\":"), NULL, 10);
    ck_assert_uint_le(bytes, card.vram_bytes + HR_GIB);
    ck_assert_uint_ge(bytes, card.vram_bytes - card.vram_bytes / 20);
}
END_TEST

START_TEST(properties_of_two_cards_of_a_kind_have_one_hash)
{
    size_t bytes = 0;
    char *json = whole("h200-141g", &bytes);
    cuda_properties a, b, c;
    ck_assert_int_eq(cuda_properties_parse(json, bytes, "a", &a, &err), HR_OK);
    char *ordinal = strstr(json, "\"cudaDeviceId\": 0"), *count = strstr(json, "132");
    ck_assert_ptr_nonnull(ordinal);
    ck_assert_ptr_nonnull(count);
    ordinal[strlen("\"cudaDeviceId\": ")] = '3';
    ck_assert_int_eq(cuda_properties_parse(json, bytes, "b", &b, &err), HR_OK);
    memcpy(count, "114", 3);
    ck_assert_int_eq(cuda_properties_parse(json, bytes, "c", &c, &err), HR_OK);
    ck_assert_str_ne(a.text, b.text);
    ck_assert_uint_eq(a.hash, b.hash);
    ck_assert_uint_ne(a.hash, c.hash);
    ck_assert_uint_eq(c.traits.multiprocessors, 114);
    hr_free(json);
}
END_TEST

START_TEST(a_file_cut_anywhere_is_an_error_with_a_sentence)
{
    size_t bytes = 0;
    char *json = whole("a100-80g", &bytes);
    const char *end = strrchr(json, '}');
    for (size_t k = 0; k < (size_t)(end - json); k++) {
        cuda_properties p;
        err = (hr_err){0};
        ck_assert_int_eq(cuda_properties_parse(json, k, "cut.json", &p, &err), HR_PRESET);
        ck_assert_ptr_nonnull(strstr(err.sentence, "cut.json"));
    }
    hr_free(json);
}
END_TEST

static const struct {
    const char *from, *to, *says;
} wrong[] = {
    {"\"warpSize\": 32", "\"warpSize\": 31", "'warpSize' needs an integer from 32 to 32, had 31"},
    {"\"warpSize\": 32,", "", "need 'warpSize'"},
    {"\"l2CacheSize\": 62914560", "\"l2CacheSize\": \"60 MiB\"", "'l2CacheSize' needs an integer"},
    {"\"isTccDriver\": 0", "\"isTccDriver\": 7", "'isTccDriver' needs an integer from 0 to 1, had 7"},
    {"[1024, 1024, 64]", "[1024, 1024]", "'maxBlockSize' needs three integers"},
    {"\"NVIDIA H200\"", "\"\"", "'deviceName' needs a name"},
    {"\"deviceVer\": 900", "\"deviceVer\": -900", "'deviceVer' needs an integer"},
    {"[1024, 1024, 64]", "[1024, 1024, 64, 1]", "'maxBlockSize' needs three integers"},
    {"[1024, 1024, 64]", "[1024, 1024, 65537]", "'maxBlockSize' needs three integers from 1 to 65536"},
    {"\"multiProcessorCount\": 132", "\"multiProcessorCount\": 65537", "from 1 to 65536, had 65537"},
    {"\"multiProcessorCount\": 132", "\"multiProcessorCount\": 0", "from 1 to 65536, had 0"},
};

START_TEST(what_is_wrong_with_properties_is_named)
{
    size_t bytes = 0;
    char *json = whole("h200-141g", &bytes), changed[4096];
    const char *at = strstr(json, wrong[_i].from);
    cuda_properties p;
    ck_assert_ptr_nonnull(at);
    (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - json), json, wrong[_i].to,
                   at + strlen(wrong[_i].from));
    ck_assert_int_eq(cuda_properties_parse(changed, strlen(changed), "h.json", &p, &err), HR_PRESET);
    ck_assert_msg(strstr(err.sentence, wrong[_i].says) != NULL, "%s", err.sentence);
    hr_free(json);
}
END_TEST

START_TEST(a_broken_property_file_keeps_the_device_from_opening)
{
    hr_card card;
    void *device = NULL;
    char path[] = "/tmp/cudnn_plans_XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    file_close(fd);
    ck_assert_int_eq(hr_card_load("h200-141g", &card, &err), HR_OK);
    (void)snprintf(card.properties_path, sizeof card.properties_path, "%s", path);
    ck_assert_int_eq(device_cuda.open(&(device_options){.card = &card, .plan_only = true}, &device, &err),
                     HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
    (void)remove(path);
}
END_TEST

// Of every side its own padding, of every axis its own stride: the library refuses an image that they do not make.
START_TEST(every_side_has_its_own_padding)
{
    cuda_device *device = open_device("h200-141g", true, false);
    op_query q = resnet_query(2 * DIRECTIONS, HR_F16); // 3x3 over 56 x 56 x 64
    q.attr.pad_top = q.attr.pad_left = 0;
    q.attr.pad_bottom = 2;
    q.attr.pad_right = 1;
    q.attr.stride_h = 1;
    q.attr.stride_w = 2;
    q.out[0].shape.dim[2] = 28;
    (void)chosen(device, &q, UINT64_MAX);
    device_cuda.close(device);
}
END_TEST

// What a kernel may take of a card is its own generation's.
START_TEST(properties_of_another_generation_are_refused)
{
    hr_card card, other;
    void *device = NULL;
    ck_assert_int_eq(hr_card_load("h200-141g", &card, &err), HR_OK);
    ck_assert_int_eq(hr_card_load("rtx3070-8g", &other, &err), HR_OK);
    memcpy(card.properties_path, other.properties_path, sizeof card.properties_path);
    ck_assert_int_eq(device_cuda.open(&(device_options){.card = &card, .plan_only = true}, &device, &err),
                     HR_PRESET);
    ck_assert_ptr_nonnull(strstr(err.sentence, "is of compute capability 8.6, card "));
}
END_TEST

START_TEST(traits_are_those_of_the_file)
{
    size_t bytes = 0;
    char *json = whole("rtx3070-8g", &bytes);
    cuda_properties p;
    ck_assert_int_eq(cuda_properties_parse(json, bytes, "p", &p, &err), HR_OK);
    ck_assert_uint_eq(p.traits.compute_major, 8);
    ck_assert_uint_eq(p.traits.compute_minor, 6);
    ck_assert_uint_eq(p.traits.shared_bytes_per_block, 99 * HR_KIB); // with opt-in, not the 48 KiB without
    hr_free(json);
}
END_TEST

static Suite *plans_suite(void)
{
    Suite *suite = suite_create("cudnn_plans");
    TCase *c = tcase_create("cudnn_plans");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, workspaces_are_those_that_were_measured);
    tcase_add_loop_test(c, a_smaller_limit_never_gets_a_larger_workspace, 0, TYPES);
    tcase_add_test(c, answers_do_not_depend_on_what_was_asked_before);
    tcase_add_test(c, without_tf32_float32_gets_other_engines);
    tcase_add_test(c, deterministic_devices_get_deterministic_engines);
    tcase_add_test(c, bias_and_relu_are_the_librarys);
    tcase_add_loop_test(c, every_card_answers, 0, sizeof cards / sizeof *cards);
    tcase_add_test(c, keys_tell_cards_and_knobs_apart);
    tcase_add_test(c, a_device_that_plans_prepares_nothing);
    tcase_add_test(c, without_properties_there_is_no_engine_and_the_sentence_says_why);
    tcase_add_test(c, what_cudnn_cannot_compute_is_refused_with_its_limit);
    tcase_add_test(c, no_host_memory_is_an_error_and_leaves_nothing_behind);
    tcase_add_test(c, for_want_of_host_memory_nothing_else_is_answered);
    tcase_add_test(c, an_answer_leaves_no_error_behind);
    tcase_add_test(c, answers_name_the_engine_that_cudnn_chose);
    tcase_add_test(c, what_cudnn_refuses_is_named_as_our_own);
    tcase_add_loop_test(c, our_own_direct_convolution_is_planned_for_what_cudnn_may_not_have_alone, 0,
                        sizeof cards / sizeof *cards);
    tcase_add_test(c, remembered_answers_are_the_same);
    tcase_add_loop_test(c, shipped_properties_are_their_cards, 0, sizeof shipped / sizeof *shipped);
    tcase_add_loop_test(c, cudnn_plans_for_every_shipped_file, 0, sizeof shipped / sizeof *shipped);
    tcase_add_test(c, a_process_of_its_own_plans_as_well);
    tcase_add_test(c, every_file_is_shipped);
    tcase_add_test(c, properties_of_two_cards_of_a_kind_have_one_hash);
    tcase_add_test(c, a_file_cut_anywhere_is_an_error_with_a_sentence);
    tcase_add_loop_test(c, what_is_wrong_with_properties_is_named, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(c, every_side_has_its_own_padding);
    tcase_add_test(c, properties_of_another_generation_are_refused);
    tcase_add_test(c, traits_are_those_of_the_file);
    tcase_add_test(c, a_broken_property_file_keeps_the_device_from_opening);
    suite_add_tcase(suite, c);
    return suite;
}

int main(int argc, char **argv)
{
    hr_preset_search_beside(".");
    setenv("XDG_DATA_HOME", "/dev/null/nowhere", 1);
    unsetenv("HEADROOM_DATA");
    if (cudnn_need(&err) != HR_OK) {
        printf("skipped: %s\n", err.sentence);
        return SKIPPED;
    }
    if (argc > 1) {
        return plan_for(argv[1]) == HR_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(plans_suite());
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
