// SPDX-License-Identifier: Apache-2.0
// An overflow forced at the tenth update of a mixed_float16 training, from image files to saved weights: what Keras'
// LossScaleOptimizer does then. The images are black but for one level, so that gradients of the convolution are
// small; those of the tenth batch are white, 255 times as bright, and its scaled gradients leave float16.
#include <check.h>
#include <math.h>
#include <string.h>

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 4, kernel: 3, padding: 1, bias: false, init: normal, init_scale: 0.05}\n" \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10, init: normal, init_scale: 1}\n"
#include "unit/small_engine.h"

enum { BATCH = 8, STEPS = 14, OVERFLOWING = 10, PIXELS = 3072 };

// CIFAR-10's binary form: the samples of batch OVERFLOWING are white.
static void write_batches(const char *name)
{
    char path[128];
    FILE *f = fopen(file_in(name, path), "wb");
    ck_assert_ptr_nonnull(f);
    for (int n = 0; n < BATCH * STEPS; n++) {
        unsigned char record[PIXELS + 1] = {(unsigned char)(n % 10)};
        memset(record + 1, n / BATCH == OVERFLOWING - 1 ? 255 : 1, PIXELS);
        ck_assert_uint_eq(fwrite(record, 1, sizeof record, f), sizeof record);
    }
    ck_assert_int_eq(fclose(f), 0);
}

static void open_all(void)
{
    open_preset();
    write_batches("data_batch_1.bin");
    write_batches("test_batch.bin");
}

typedef struct heard {
    hr_event_scale scale; // the last of `scales`
    uint64_t scales, overflowing_layers;
    double loss;
} heard;

static void listen(void *context, const hr_event *event)
{
    heard *h = context;
    if (event->kind == HR_EVENT_SCALE) {
        h->scale = event->u.scale;
        h->scales++;
    } else if (event->kind == HR_EVENT_STEP) {
        h->loss = event->u.step.loss;
    } else if (event->kind == HR_EVENT_HEALTH) {
        h->overflowing_layers += event->u.health.overflowing > 0;
    }
}

static const char *const devices[] = {
    "device.kind=reference",
#if HEADROOM_HAVE_ONEDNN
    "device.kind=cpu",
#endif
};
static const char *const optimizers[] = {"optimizer.kind=momentum", "optimizer.kind=adam"};
enum { DEVICES = sizeof devices / sizeof devices[0] };
static const char *const floors[] = {"precision.loss_scale_floor=none", "precision.loss_scale_floor=one"};

// Both floors agree this far from one.
START_TEST(the_tenth_update_is_left_out_and_the_scale_halves)
{
    char images[160], before[HR_SHA256_TEXT_MAX] = "", after[HR_SHA256_TEXT_MAX];
    (void)snprintf(images, sizeof images, "pipeline.path=%s", folder);
    const char *const pairs[] = {images,
                                 devices[_i % DEVICES],
                                 optimizers[_i / DEVICES % 2],
                                 floors[_i / DEVICES / 2],
                                 "precision.policy=mixed_float16",
                                 "precision.health=on",
                                 "pipeline.shuffle=0",
                                 "threads.count=1",
                                 "optimizer.learning_rate=0.0001",
                                 NULL};
    heard h = {.scales = 0};
    const hr_engine_options options = {.sink = listen, .sink_context = &h};
    hr_engine *e = create(pairs, &options);
    for (uint64_t k = 1; k <= STEPS; k++) {
        h.overflowing_layers = 0;
        run_steps(e, 1);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        weights_of(e, after);
        hr_report r = report_of(e);
        const bool left_out = k == OVERFLOWING, behind = k >= OVERFLOWING;
        ck_assert_uint_eq(r.train.steps, k);
        ck_assert_uint_eq(r.train.updates, k - behind);
        ck_assert_msg((strcmp(before, after) == 0) == left_out, "step %u", (unsigned)k);
        ck_assert_uint_eq(h.scales, behind ? 2 : 1); // told where it begins and where it changes
        ck_assert_double_eq(h.scale.scale, behind ? 16384.0 : 32768.0);
        ck_assert_uint_eq(h.scale.skipped, behind ? 1 : 0);
        ck_assert_uint_eq(h.scale.happened, behind ? 0 : 1);
        ck_assert_int_eq(h.overflowing_layers > 0, left_out);
        ck_assert(isfinite(h.loss));
        memcpy(before, after, sizeof before);
        hr_report_deinit(&r);
    }
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forced_overflow");
    TCase *tc = tcase_create("engine");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, open_all, close_preset);
    tcase_add_loop_test(tc, the_tenth_update_is_left_out_and_the_scale_halves, 0, 4 * DEVICES);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
