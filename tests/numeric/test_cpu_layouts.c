// SPDX-License-Identifier: Apache-2.0
// execution.layout auto on the cpu device: it promises no kernel that it does not have, and the gradients of whole
// networks, with their reorders between layouts, are those of nhwc as far as float32 goes.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "device/executor.h"
#include "model/model.h"
#include "numeric/op_cases.h"
#include "program/compile.h"

enum { CONVOLUTIONS = 300 };

static const double allowed_distance = 2e-5; // of the tensor's largest gradient

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0};                                                                                   \
        hr_err *const err = &err_;                                                                           \
        if ((call) != HR_OK) {                                                                               \
            ck_abort_msg("%s", err_.sentence);                                                               \
        }                                                                                                    \
    } while (0)

// ---- promises -------------------------------------------------------------------------------------------------

typedef struct geometry {
    int64_t n, h, w, c, f, kernel_h, kernel_w, stride_h, stride_w, pad[4]; // top, left, bottom, right
    bool depthwise;
} geometry;

static geometry draw_geometry(uint64_t *state)
{
    static const int64_t channels[] = {3, 16, 32, 48};
    geometry g = {.n = op_random_int(state, 1, 3),
                  .h = op_random_int(state, 2, 20),
                  .w = op_random_int(state, 2, 20),
                  .c = channels[op_random_int(state, 0, 3)],
                  .f = channels[op_random_int(state, 1, 3)],
                  .stride_h = op_random_int(state, 1, 3),
                  .stride_w = op_random_int(state, 1, 3),
                  .depthwise = op_random_int(state, 0, 4) == 0};
    for (int k = 0; k < 4; k++) {
        g.pad[k] = op_random_int(state, 0, 2);
    }
    g.kernel_h = op_random_int(state, 1, g.h < 5 ? g.h : 5);
    g.kernel_w = op_random_int(state, 1, g.w < 5 ? g.w : 5);
    g.f = g.depthwise ? g.c : g.f;
    return g;
}

static op_operand image(int64_t n, int64_t h, int64_t w, int64_t c)
{
    return (op_operand){.shape = shape_of(4, (const int64_t[]){n, h, w, c}),
                        .dtype = HR_F32,
                        .layout = c % OP_BLOCK_CHANNELS == 0 ? HR_LAYOUT_BLOCKED : HR_LAYOUT_PLAIN};
}

static op_query blocked_query(hr_op op, const geometry *g)
{
    const int64_t groups = g->depthwise ? g->c : 1;
    const op_operand x = image(g->n, g->h, g->w, g->c);
    const op_operand y = image(g->n, (g->h + g->pad[0] + g->pad[2] - g->kernel_h) / g->stride_h + 1,
                               (g->w + g->pad[1] + g->pad[3] - g->kernel_w) / g->stride_w + 1, g->f);
    const op_operand weights = {
        .shape = shape_of(4, (const int64_t[]){g->kernel_h, g->kernel_w, g->c / groups, g->f}),
        .dtype = HR_F32};
    op_query q = {.op = op,
                  .in_count = 2,
                  .out_count = 1,
                  .attr = {.kernel_h = (int32_t)g->kernel_h,
                           .kernel_w = (int32_t)g->kernel_w,
                           .stride_h = (int32_t)g->stride_h,
                           .stride_w = (int32_t)g->stride_w,
                           .pad_top = (int32_t)g->pad[0],
                           .pad_left = (int32_t)g->pad[1],
                           .pad_bottom = (int32_t)g->pad[2],
                           .pad_right = (int32_t)g->pad[3],
                           .groups = (int32_t)groups}};
    q.in[0] = op == HR_OP_CONV2D_BWD_DATA ? y : x;
    q.in[1] = op == HR_OP_CONV2D_BWD_WEIGHTS ? y : weights;
    q.out[0] = op == HR_OP_CONV2D ? y : op == HR_OP_CONV2D_BWD_DATA ? x : weights;
    return q;
}

static const hr_op convolutions[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};

static hr_target open_target(void **context)
{
    hr_target target;
    REQUIRE_OK(device_cpu.open(&(device_options){.threads = 2}, context, err));
    device_cpu.target(*context, &target);
    return target;
}

// What is preferred in blocks, the target has a kernel for.
static bool holds_its_promise(const hr_target *target, const op_query *q)
{
    hr_err err = {0};
    target_answer answer;
    if (!target->prefers_blocked(target->context, q)) {
        return false;
    }
    ck_assert_msg(target->ask(target->context, q, UINT64_MAX, &answer, &err) == HR_OK,
                  "%s %dx%d stride %dx%d: %s", op_name((hr_op)q->op), q->attr.kernel_h, q->attr.kernel_w,
                  q->attr.stride_h, q->attr.stride_w, err.sentence);
    return true;
}

START_TEST(what_is_preferred_in_blocks_has_a_kernel)
{
    void *context = NULL;
    const hr_target target = open_target(&context);
    uint64_t state = 11;
    unsigned preferred = 0, refused = 0;
    for (int k = 0; k < CONVOLUTIONS; k++) {
        const geometry g = draw_geometry(&state);
        const op_query q = blocked_query(convolutions[k % 3], &g);
        const bool is_preferred = holds_its_promise(&target, &q);
        preferred += is_preferred;
        refused += !is_preferred;
    }
    const geometry odd = {2, 6, 5, 16,           16,   3,
                          2, 2, 1, {2, 1, 0, 0}, false}; // oneDNN has no kernel for its dw
    for (int k = 0; k < 3; k++) {
        const op_query q = blocked_query(convolutions[k], &odd);
        (void)holds_its_promise(&target, &q);
    }
    ck_assert_uint_gt(refused, 0);
    const geometry usual = {2, 16, 16, 16, 16, 3, 3, 1, 1, {1, 1, 1, 1}, false};
    const op_query q = blocked_query(HR_OP_CONV2D, &usual);
    ck_assert(target.prefers_blocked(context, &q) == (preferred > 0)); // where blocks of 16 are native
    device_cpu.close(context);
}
END_TEST

// Our kernels read weights as they lie; the library's would have them reordered.
START_TEST(where_our_kernel_computes_over_plain_images_blocks_save_nothing)
{
    void *context = NULL;
    hr_err err = {0};
    const hr_target target = open_target(&context);
    static const geometry shapes[] = {{4, 16, 16, 64, 128, 1, 1, 1, 1, {0, 0, 0, 0}, false},
                                      {4, 32, 32, 64, 64, 3, 3, 1, 1, {1, 1, 1, 1}, false}};
    unsigned ours = 0, preferred = 0;
    for (unsigned k = 0; k < 6; k++) {
        op_query blocked = blocked_query(convolutions[k % 3], &shapes[k / 3]), plain = blocked;
        for (int n = 0; n < 2; n++) {
            plain.in[n].layout = HR_LAYOUT_PLAIN;
        }
        plain.out[0].layout = HR_LAYOUT_PLAIN;
        target_answer answer;
        ck_assert(target.ask(context, &plain, UINT64_MAX, &answer, &err) == HR_OK);
        const bool is_ours = strncmp(answer.impl, "own ", 4) == 0;
        if (!target.prefers_blocked(context, &blocked)) {
            continue;
        }
        ck_assert(target.ask(context, &blocked, UINT64_MAX, &answer, &err) == HR_OK);
        const double gain = target.blocked_gain_seconds(context, &blocked, &answer);
        ck_assert_msg(!is_ours || gain < 0.0, "%s saves %g s", op_name((hr_op)blocked.op), gain);
        ours += is_ours;
        preferred++;
    }
    ck_assert(preferred == 0 || ours > 0);
    device_cpu.close(context);
}
END_TEST

// ---- gradients of whole networks --------------------------------------------------------------------------------

typedef struct run {
    hr_preset *preset;
    hr_knobs knobs;
    hr_model *model;
    void *context;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
} run;

static void run_compile(run *r, const char *preset, const char *const *pairs)
{
    REQUIRE_OK(hr_preset_open(preset, false, &r->preset, NULL, err));
    r->knobs = *hr_preset_knobs(r->preset);
    for (; *pairs != NULL; pairs++) {
        REQUIRE_OK(hr_knobs_set_pair(&r->knobs, *pairs, err));
    }
    REQUIRE_OK(model_create(r->preset, &r->model, NULL, err));
    const hr_target target = open_target(&r->context);
    REQUIRE_OK(program_compile(r->model, &r->knobs, PROGRAM_TRAIN,
                               (uint32_t)hr_knob_int(&r->knobs, HR_KNOB_BATCH_SIZE), &target, &r->p, err));
    ck_assert(program_check(r->p, NULL) == HR_OK);
}

static void run_open(run *r, const char *preset, const char *const *pairs)
{
    *r = (run){0};
    const allocator_config config = {.kind = "bfc", .limit_bytes = HR_GIB, .growth = true};
    run_compile(r, preset, pairs);
    REQUIRE_OK(device_cpu.memory(r->context, HR_GIB, false, &r->source, err));
    REQUIRE_OK(allocator_create(&config, &r->source, NULL, &r->heap, err));
    REQUIRE_OK(executor_create(&device_cpu, r->context, r->heap, NULL, &r->x, err));
    REQUIRE_OK(executor_build(r->x, r->p, err));
    for (uint32_t k = 0; k < r->p->persistent_count; k++) {
        const tensor *t = &r->p->tensors[k];
        float *values = calloc(1, t->bytes);
        if (t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_STATE) {
            model_init_param(r->model, t->param, 1, values);
        }
        REQUIRE_OK(device_cpu.copy_in(r->context, executor_address(r->x, t->name), values, t->bytes, err));
        free(values);
    }
    REQUIRE_OK(executor_attach(r->x, r->p, &r->slot, err));
}

static void run_close(run *r)
{
    executor_destroy(r->x);
    allocator_destroy(r->heap);
    backing_close(&r->source);
    program_destroy(r->p);
    device_cpu.close(r->context);
    model_destroy(r->model);
    hr_preset_close(r->preset);
}

static uint64_t slot_elements(const run *r, uint32_t slot)
{
    uint64_t elements = 0;
    ck_assert(shape_elements(&r->model->values[r->model->slots[slot].value].shape, &elements));
    return elements * r->p->batch;
}

// One step with a learning rate of 1 and no momentum: what the weights lose is the gradient.
static void run_step(const run *r)
{
    uint64_t state = 5;
    const uint64_t pixels = slot_elements(r, 0), labels = slot_elements(r, 1);
    float *x = calloc(pixels, sizeof *x);
    int32_t *wide = calloc(labels, sizeof *wide);
    uint8_t *narrow = calloc(labels, 1);
    for (uint64_t k = 0; k < pixels; k++) {
        x[k] = (float)op_random(&state, -1.0, 1.0);
    }
    for (uint64_t k = 0; k < labels; k++) {
        wide[k] = (int32_t)(k % r->model->slots[1].classes);
        narrow[k] = (uint8_t)wide[k];
    }
    const bool bytes = r->model->values[r->model->slots[1].value].dtype == HR_U8;
    step_io io = {.slot = {x, bytes ? (void *)narrow : (void *)wide}, .learning_rate = 1.0, .update = 1};
    REQUIRE_OK(executor_step(r->x, r->slot, &io, err));
    free(x);
    free(wide);
    free(narrow);
}

static float *weights_of(const run *r, const tensor *t)
{
    float *values = calloc(1, t->bytes);
    ck_assert_ptr_nonnull(values);
    REQUIRE_OK(device_cpu.copy_out(r->context, executor_address(r->x, t->name), values, t->bytes, err));
    return values;
}

static void compare_updates(const run *plain, const run *chosen, const tensor *t)
{
    float *a = weights_of(plain, t), *b = weights_of(chosen, t), *before = calloc(1, t->bytes);
    double largest = 0.0, distance = 0.0;
    model_init_param(plain->model, t->param, 1, before);
    for (uint64_t k = 0; k < t->bytes / sizeof *a; k++) {
        largest = fmax(largest, fabs((double)a[k] - (double)before[k]));
        distance = fmax(distance, fabs((double)a[k] - (double)b[k]));
    }
    const double rounding = 1.2e-7 * 8.0; // of weights of up to about 8
    ck_assert_msg(distance <= allowed_distance * largest + rounding, "%s: %g of %g", t->name, distance,
                  largest);
    free(a);
    free(b);
    free(before);
}

static unsigned image_reorders(const program *p)
{
    unsigned count = 0;
    for (uint32_t n = 0; n < p->instr_count; n++) {
        count += p->instrs[n].op == HR_OP_REORDER && p->instrs[n].attr.peer == HR_NO_ID;
    }
    return count;
}

static const struct {
    const char *preset, *mode, *batch;
    bool reorders;
} networks[] = {
    {"presets/models/vgg16_tiny.yaml", "execution.mode=graph", "batch.size=4", true},
    {"presets/models/vgg16_tiny.yaml", "execution.mode=eager", "batch.size=4", true},
    {"presets/models/unet_tiny.yaml", "execution.mode=graph", "batch.size=16", true},
    {"presets/models/unet_tiny.yaml", "execution.mode=eager", "batch.size=16", true},
    {"presets/models/mobilenet_v2_tiny.yaml", "execution.mode=graph", "batch.size=4", false},
    {"presets/models/resnet50_tiny.yaml", "execution.mode=graph", "batch.size=4", false},
};

START_TEST(gradients_do_not_depend_on_the_layout)
{
    const char *pairs[] = {networks[_i].mode,
                           networks[_i].batch,
                           "optimizer.kind=sgd",
                           "threads.count=2",
                           "precision.policy=float32",
                           "execution.layout=nhwc",
                           NULL};
    run plain, chosen;
    run_open(&plain, networks[_i].preset, pairs);
    pairs[5] = "execution.layout=auto";
    run_open(&chosen, networks[_i].preset, pairs);
    run_step(&plain);
    run_step(&chosen);
    hr_target target;
    device_cpu.target(chosen.context, &target);
    const geometry usual = {2, 16, 16, 16, 16, 3, 3, 1, 1, {1, 1, 1, 1}, false};
    const op_query q = blocked_query(HR_OP_CONV2D, &usual);
    ck_assert(!networks[_i].reorders || !target.prefers_blocked(target.context, &q) ||
              image_reorders(chosen.p) > 0);
    for (uint32_t k = 0; k < plain.p->persistent_count; k++) {
        const tensor *t = &plain.p->tensors[k];
        if (t->category == HR_CATEGORY_WEIGHTS) {
            compare_updates(&plain, &chosen, t);
        }
    }
    run_close(&plain);
    run_close(&chosen);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_layouts");
    TCase *c = tcase_create("layouts");
    tcase_add_test(c, what_is_preferred_in_blocks_has_a_kernel);
    tcase_add_test(c, where_our_kernel_computes_over_plain_images_blocks_save_nothing);
    tcase_add_loop_test(c, gradients_do_not_depend_on_the_layout, 0,
                        (int)(sizeof networks / sizeof networks[0]));
    tcase_set_timeout(c, 300);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
