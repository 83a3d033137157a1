// SPDX-License-Identifier: Apache-2.0
// A training under mixed_float16 whose gradients overflow at the tenth step, on every device that computes: the step is
// left out bit for bit, the scale halves and counts anew, and everything goes on.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "device/executor.h"
#include "numeric/op_harness.h"
#include "ops/loss_scale.h"
#include "program/compile.h"
#include "program/model_from_text.h"

#define REQUIRE_OK(call)                                                                                     \
    do {                                                                                                     \
        hr_err err_ = {0};                                                                                   \
        hr_err *const err = &err_;                                                                           \
        if ((call) != HR_OK) {                                                                               \
            ck_abort_msg("%s", err_.sentence);                                                               \
        }                                                                                                    \
    } while (0)

static const char network[] = "device: {vram: 16MiB}\n"
                              "model:\n"
                              "  name: small\n"
                              "  input: {shape: [8, 8, 3]}\n"
                              "  classes: 4\n"
                              "  loss: softmax_cross_entropy\n"
                              "  layers:\n"
                              "    - {name: conv, kind: conv2d, filters: 4, kernel: 3, activation: relu}\n"
                              "    - {name: flat, kind: flatten}\n"
                              "    - {name: out, kind: dense, units: 4}\n";

enum { BATCH = 4, PIXELS = 8 * 8 * 3, CAPACITY_BYTES = 1 << 24, OVERFLOWING_STEP = 10, STEPS = 14 };

// What runs here; another file that includes this one may say which device alone.
static bool is_tested(const device_ops *device)
{
#ifdef TEST_DEVICE
    return strcmp(device->name, TEST_DEVICE) == 0;
#else
    return !device->simulated && strcmp(device->name, "cuda") != 0;
#endif
}

typedef struct training {
    const device_ops *device;
    void *context;
    hr_model *model;
    program *p;
    backing source;
    allocator *heap;
    executor *x;
    uint32_t slot;
    uint64_t updates;
} training;

static void put(const training *t, const tensor *at, const void *from)
{
    REQUIRE_OK(t->device->copy_in(t->context, executor_address(t->x, at->name), from, at->bytes, err));
}

// Weights from seed 1, slots at zero, the scale where it begins.
static void initialise(const training *t)
{
    for (uint32_t k = 0; k < t->p->persistent_count; k++) {
        const tensor *at = &t->p->tensors[k];
        float *values = calloc(at->bytes, 1);
        ck_assert_ptr_nonnull(values);
        if (at->category == HR_CATEGORY_WEIGHTS) {
            model_init_param(t->model, at->param, 1, values);
        } else if (at->dtype == HR_F32 && at->category == HR_CATEGORY_STATE) {
            values[0] = at->initial;
        }
        put(t, at, values);
        free(values);
    }
}

// The allocator keeps a pointer into *t.
static void begin(training *t, const device_ops *device, const char *const *pairs)
{
    *t = (training){.device = device};
    hr_knobs knobs;
    hr_target target;
    const device_options options = {.threads = 1};
    const allocator_config config = {.kind = "bfc", .limit_bytes = CAPACITY_BYTES, .growth = true};
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        REQUIRE_OK(hr_knobs_set_pair(&knobs, *pairs, err));
    }
    t->model = model_from_text(network);
    REQUIRE_OK(device->open(&options, &t->context, err));
    device->target(t->context, &target);
    REQUIRE_OK(program_compile(t->model, &knobs, PROGRAM_TRAIN, BATCH, &target, &t->p, err));
    REQUIRE_OK(program_check(t->p, err));
    REQUIRE_OK(device->memory(t->context, CAPACITY_BYTES, false, &t->source, err));
    REQUIRE_OK(allocator_create(&config, &t->source, NULL, &t->heap, err));
    REQUIRE_OK(executor_create(device, t->context, t->heap, NULL, &t->x, err));
    REQUIRE_OK(executor_build(t->x, t->p, err));
    REQUIRE_OK(executor_attach(t->x, t->p, &t->slot, err));
    initialise(t);
}

static void end(training *t)
{
    executor_destroy(t->x);
    allocator_destroy(t->heap);
    backing_close(&t->source);
    program_destroy(t->p);
    t->device->close(t->context);
    model_destroy(t->model);
}

// `image` is what every pixel of the batch is multiplied with.
static step_io step(training *t, double image)
{
    float images[BATCH * PIXELS];
    const int32_t labels[BATCH] = {0, 1, 2, 3};
    for (uint32_t i = 0; i < BATCH * PIXELS; i++) {
        images[i] = (float)(image * (double)(i * 37 % 101) / 101.0);
    }
    step_io io = {.slot = {images, labels}, .update = t->updates + 1, .learning_rate = 0.01};
    REQUIRE_OK(executor_step(t->x, t->slot, &io, err));
    t->updates += io.nonfinite ? 0 : 1;
    return io;
}

// Everything that an update changes, one after another.
static size_t trained(const training *t, char *out, size_t size)
{
    size_t used = 0;
    for (uint32_t k = 0; k < t->p->persistent_count; k++) {
        const tensor *at = &t->p->tensors[k];
        if (at->category == HR_CATEGORY_WEIGHTS || at->category == HR_CATEGORY_OPTIMIZER) {
            ck_assert_uint_le(used + at->bytes, size);
            REQUIRE_OK(t->device->copy_out(t->context, executor_address(t->x, at->name), out + used,
                                           at->bytes, err));
            used += at->bytes;
        }
    }
    return used;
}

static const char *const optimizers[] = {"optimizer.kind=sgd", "optimizer.kind=momentum",
                                         "optimizer.kind=adam"};

static void overflow_once(const device_ops *device, const char *optimizer)
{
    static char before[1 << 16], after[1 << 16];
    const char *const pairs[] = {"precision.policy=mixed_float16", "batch.size=4", "workspace.limit=1MiB",
                                 optimizer, NULL};
    training t;
    begin(&t, device, pairs);
    for (uint32_t k = 1; k <= STEPS; k++) {
        const size_t bytes = trained(&t, before, sizeof before);
        const step_io io = step(&t, k == OVERFLOWING_STEP ? 1e30 : 1.0);
        ck_assert_uint_eq(trained(&t, after, sizeof after), bytes);
        const bool same = memcmp(before, after, bytes) == 0;
        ck_assert_msg(io.nonfinite == (k == OVERFLOWING_STEP) && same == io.nonfinite, "%s, step %u",
                      device->name, k);
        ck_assert_double_eq((double)io.loss_scale,
                            k < OVERFLOWING_STEP ? OP_SCALE_INITIAL : OP_SCALE_INITIAL / 2.0);
        ck_assert(k == OVERFLOWING_STEP || isfinite(io.loss));
    }
    ck_assert_uint_eq(t.updates, STEPS - 1);
    end(&t);
}

START_TEST(an_overflow_is_left_out_and_halves_the_scale)
{
    uint32_t count = 0;
    const device_ops *const *devices = device_rows(&count);
    for (uint32_t k = 0; k < count; k++) {
        if (is_tested(devices[k])) {
            overflow_once(devices[k], optimizers[_i]);
        }
    }
}
END_TEST

// On a power of two nothing is rounded: a scale that neither flushes nor overflows changes no bit in float32.
START_TEST(a_fixed_scale_leaves_float32_as_it_is)
{
    static char plain[1 << 16], scaled[1 << 16];
    const char *const without[] = {"batch.size=4", "optimizer.kind=momentum", NULL};
    const char *const with[] = {"batch.size=4", "optimizer.kind=momentum", "precision.loss_scale=1024", NULL};
    training a, b;
    begin(&a, &device_reference, without);
    begin(&b, &device_reference, with);
    for (uint32_t k = 0; k < 5; k++) {
        (void)step(&a, 1.0);
        (void)step(&b, 1.0);
    }
    const size_t bytes = trained(&a, plain, sizeof plain);
    ck_assert_uint_eq(trained(&b, scaled, sizeof scaled), bytes);
    ck_assert_mem_eq(plain, scaled, bytes);
    end(&a);
    end(&b);
}
END_TEST

START_TEST(health_counts_every_gradient)
{
    const char *const pairs[] = {"batch.size=4", "precision.health=on", NULL};
    uint32_t count = 0;
    const device_ops *const *devices = device_rows(&count);
    for (uint32_t d = 0; d < count; d++) {
        if (!is_tested(devices[d])) {
            continue;
        }
        training t;
        begin(&t, devices[d], pairs);
        const step_io tiny = step(&t, 1e-9), huge = step(&t, 1e30);
        ck_assert_ptr_nonnull(tiny.health);
        for (uint32_t k = 0; k < t.model->param_count; k++) {
            uint64_t elements = 0;
            ck_assert(shape_elements(&t.model->params[k].shape, &elements));
            ck_assert_double_eq((double)huge.health[3 * k + 2], (double)elements);
        }
        ck_assert(huge.health[1] > 0); // of the first weights: multiples of the image
        end(&t);
    }
}
END_TEST

int main(void)
{
#ifdef TEST_DEVICE
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
#endif
    Suite *suite = suite_create("loss_scale");
    TCase *tc = tcase_create("steps");
    tcase_add_loop_test(tc, an_overflow_is_left_out_and_halves_the_scale, 0, 3);
    tcase_add_test(tc, a_fixed_scale_leaves_float32_as_it_is);
    tcase_add_test(tc, health_counts_every_gradient);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
