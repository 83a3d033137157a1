// SPDX-License-Identifier: Apache-2.0
// pipeline.normalise and pipeline.transfer: what images travel as. Bytes, float32 and float64 are 1 : 4 : 8 on the host, on the
// link and in the batch's place on the device; training is the same bit for bit: over every policy that has another type, over
// epochs and their last batches, rounds, evaluations, rebuilds and batches that are held ahead.
#include "headroom/preset.h"

#include "unit/small_engine.h"

enum {
    IMAGES = 27,
    HELD_OUT = 9,
    PAIRS_MAX = 14,
    STEPS = 7,
    IMAGE_BYTES = 32 * 32 * 3,
    LABEL_BYTES = 4,
    LOG = 16
};

static char images[160];

static void open_all(void)
{
    open_preset();
    (void)write_images(IMAGES, HELD_OUT, images);
}

typedef struct told {
    double losses[LOG], eval_losses[LOG];
    uint64_t steps, evaluations;
} told;

static void listen(void *context, const hr_event *event)
{
    told *t = context;
    if (event->kind == HR_EVENT_STEP) {
        ck_assert_uint_lt(t->steps, LOG);
        t->losses[t->steps++] = event->u.step.loss;
    } else if (event->kind == HR_EVENT_EVAL) {
        ck_assert_uint_lt(t->evaluations, LOG);
        t->eval_losses[t->evaluations++] = event->u.step.loss;
    }
}

static hr_engine *open_engine(const char *travels, const char *const *pairs, const hr_engine_options *options)
{
    const char *all[PAIRS_MAX] = {images, "threads.count=1", "device.vram=64MiB", travels};
    for (size_t k = 4; *pairs != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        all[k] = *pairs++;
    }
    return create(all, options);
}

static void run_well(hr_engine *e, uint64_t steps)
{
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
}

// ---- the same training ------------------------------------------------------------------------------------------

static const char *const ways[][5] = {
    {"device.kind=reference", "execution.mode=eager"},
    {"device.kind=reference", "execution.mode=graph", "pipeline.device_prefetch=2", "batch.accumulate=3"},
    {"device.kind=reference", "precision.policy=float64", "pipeline.array=uint8"},
    {"device.kind=cpu", "execution.mode=eager", "checkpoint.strategy=every:1"},
    {"device.kind=cpu", "execution.mode=eager", "offload.activations=on", "offload.prefetch=0"},
    {"device.kind=cpu", "execution.mode=eager", "precision.policy=mixed_float16",
     "pipeline.device_prefetch=1"},
    {"device.kind=cpu", "execution.mode=graph", "precision.policy=mixed_bfloat16", "batch.remainder=pad"},
    {"device.kind=cpu", "execution.mode=graph", "precision.policy=float16", "execution.fuse=off"},
    {"device.kind=cpu", "execution.mode=graph", "precision.policy=bfloat16", "allocator.kind=static"},
    {"device.kind=cpu", "execution.mode=graph", "pipeline.cache=ram",
     "pipeline.stages=map,cache,shuffle,batch"},
    {"device.kind=cpu", "execution.mode=graph", "checkpoint.strategy=selective", "pipeline.resident=on"},
};
enum { WAYS = sizeof ways / sizeof *ways };

// Under float64 a float32 batch has other digits than a float64 one.
static bool rounds_alike(const char *travels, const char *const *pairs)
{
    return strcmp(travels, "pipeline.transfer=float32") != 0 || pairs[1] == NULL ||
           strcmp(pairs[1], "precision.policy=float64") != 0;
}

START_TEST(weights_and_losses_are_the_same_bit_for_bit)
{
    static const char *const travels[] = {"pipeline.normalise=host", "pipeline.normalise=device",
                                          "pipeline.transfer=float32", "pipeline.transfer=float64"};
    told t[4] = {{.steps = 0}};
    char sha[4][HR_SHA256_TEXT_MAX];
    const char *pairs[6] = {NULL};
    memcpy(pairs, ways[_i], sizeof ways[_i]);
    for (int k = 0; k < 4; k++) {
        if (rounds_alike(travels[k], pairs)) {
            const hr_engine_options options = {.sink = listen, .sink_context = &t[k]};
            hr_engine *e = open_engine(travels[k], pairs, &options);
            run_well(e, STEPS);
            weights_of(e, sha[k]);
            hr_engine_destroy(e);
            ck_assert_str_eq(sha[k], sha[0]);
            ck_assert_mem_eq(&t[k], &t[0], sizeof t[0]);
        }
    }
    ck_assert_uint_eq(t[0].steps, STEPS);
}
END_TEST

START_TEST(turned_between_steps_it_goes_on_with_the_same_batches)
{
    char sha[2][HR_SHA256_TEXT_MAX];
    const char *const pairs[] = {"device.kind=cpu", "pipeline.device_prefetch=1", NULL};
    for (int turns = 0; turns < 2; turns++) {
        hr_engine *e = open_engine("pipeline.normalise=host", pairs, NULL);
        run_well(e, 2);
        ck_assert_int_eq(turns ? turn(e, HR_KNOB_PIPELINE_NORMALISE, "device") : HR_OK, HR_OK);
        run_well(e, 2);
        ck_assert_int_eq(turns ? turn(e, HR_KNOB_PIPELINE_NORMALISE, "host") : HR_OK, HR_OK);
        ck_assert_int_eq(turns ? turn(e, HR_KNOB_PIPELINE_TRANSFER, "float64") : HR_OK, HR_OK);
        run_well(e, 3);
        weights_of(e, sha[turns]);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(sha[0], sha[1]);
}
END_TEST

// ---- its bytes --------------------------------------------------------------------------------------------------

static const struct {
    const char *pair;
    uint64_t value_bytes;
} kinds[] = {
    {"pipeline.normalise=device", 1}, {"pipeline.transfer=float32", 4}, {"pipeline.transfer=float64", 8}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t stage_bytes(const hr_report *r, const char *name)
{
    for (uint32_t k = 0; k < r->host.stage_count; k++) {
        if (strcmp(r->host.stages[k].name, name) == 0) {
            return r->host.stages[k].peak_bytes;
        }
    }
    return 0;
}

static const char *const devices[] = {"device.kind=plan", "device.kind=reference", "device.kind=cpu"};

// The oracle: 16 images of 32x32x3 are 49,152 bytes, 196,608 as float32, 393,216 as float64.
START_TEST(bytes_float32_and_float64_are_1_4_and_8)
{
    static const uint64_t oracle[KINDS] = {49152, 196608, 393216};
    for (size_t k = 0; k < KINDS; k++) {
        for (int planned = 0; planned < 2; planned++) {
            const char *const pairs[] = {devices[_i], "batch.size=16", "pipeline.prefetch=2",
                                         "pipeline.device_prefetch=1", NULL};
            const hr_engine_options options = {.plan_only = planned == 1};
            hr_engine *e = open_engine(kinds[k].pair, pairs, &options);
            run_well(e, 3);
            hr_report r = report_of(e);
            ck_assert_uint_eq(oracle[k], 16 * IMAGE_BYTES * kinds[k].value_bytes);
            ck_assert_uint_eq(r.h2d_bytes_per_step - 16 * LABEL_BYTES, oracle[k]);
            ck_assert_uint_eq(stage_bytes(&r, "prefetch"), 3 * (oracle[k] + 16 * LABEL_BYTES));
            ck_assert_uint_eq(r.memory.at_peak.by_category[HR_CATEGORY_INPUT],
                              2 * (oracle[k] + 16 * LABEL_BYTES));
            hr_report_deinit(&r);
            hr_engine_destroy(e);
        }
    }
}
END_TEST

// What article 003 holds and sends: an array of float64 that a loop hands over as it is.
START_TEST(auto_sends_what_the_first_layer_reads)
{
    static const struct {
        const char *policy, *mode;
        uint64_t value_bytes;
    } cases[] = {{"precision.policy=float32", "execution.mode=eager", 4},
                 {"precision.policy=mixed_float16", "execution.mode=graph", 2},
                 {"precision.policy=mixed_float16", "execution.mode=eager", 4},
                 {"precision.policy=bfloat16", "execution.mode=eager", 2},
                 {"precision.policy=float64", "execution.mode=graph", 8}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *const pairs[] = {cases[k].policy, cases[k].mode, "pipeline.prefetch=1", NULL};
        hr_engine *e = open_engine("pipeline.transfer=auto", pairs, NULL);
        const uint64_t batch_bytes = 8 * (IMAGE_BYTES * cases[k].value_bytes + LABEL_BYTES);
        run_well(e, 1);
        hr_report r = report_of(e);
        ck_assert_uint_eq(r.h2d_bytes_per_step, batch_bytes);
        ck_assert_uint_eq(stage_bytes(&r, "prefetch"), 2 * batch_bytes);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
}
END_TEST

// Eager: x lives until the next step, and the tape holds what the step made of it.
START_TEST(the_tape_saves_the_images_once)
{
    uint64_t saved[2], held[2];
    for (int k = 0; k < 2; k++) {
        const char *const pairs[] = {"execution.mode=eager", NULL};
        hr_engine *e =
            open_engine(k == 0 ? "pipeline.normalise=host" : "pipeline.normalise=device", pairs, NULL);
        run_well(e, 1);
        hr_report r = report_of(e);
        saved[k] = r.memory.saved_for_backward_bytes;
        held[k] = r.memory.at_peak.by_category[HR_CATEGORY_INPUT] +
                  r.memory.at_peak.by_category[HR_CATEGORY_ACTIVATIONS];
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert_uint_eq(saved[0], saved[1]);
    ck_assert_uint_eq(held[1], held[0] + 8 * IMAGE_BYTES);
}
END_TEST

// ---- where it is not ----------------------------------------------------------------------------------------------

static hr_report planned_with(const char *travels, const char *const *pairs)
{
    const hr_engine_options options = {.plan_only = true};
    hr_engine *e = open_engine(travels, pairs, &options);
    run_well(e, 1);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    return r;
}

// Whoever holds the set as numbers has no bytes to send.
START_TEST(an_array_of_numbers_sends_numbers)
{
    static const char *const arrays[] = {"pipeline.array=float32", "pipeline.array=float64"};
    const char *const pairs[] = {arrays[_i], NULL};
    hr_report host = planned_with("pipeline.normalise=host", pairs);
    hr_report device = planned_with("pipeline.normalise=device", pairs);
    ck_assert_uint_eq(host.h2d_bytes_per_step, device.h2d_bytes_per_step);
    ck_assert_uint_eq(host.host.peak_bytes, device.host.peak_bytes);
    hr_report_deinit(&host);
    hr_report_deinit(&device);
}
END_TEST

// Arrays of float32 in the shape of the images: the program asks for bytes, and there are none.
START_TEST(values_that_are_no_bytes_are_refused)
{
    char path[128], pair[192];
    const size_t head = 128, values = 4 * (size_t)IMAGE_BYTES;
    hr_err err = {0};
    hr_engine *e = NULL;
    char *file = calloc(head + values * sizeof(float), 1);
    ck_assert_ptr_nonnull(file);
    for (int k = 0; k < 2; k++) {
        memset(file, ' ', head);
        memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
        const int length = sprintf(file + 10, "{'descr': '%s', 'fortran_order': False, 'shape': (4%s), }",
                                   k == 0 ? "<f4" : "|u1", k == 0 ? ", 32, 32, 3" : ",");
        file[10 + length] = ' ';
        file[head - 1] = '\n';
        FILE *f = fopen(file_in(k == 0 ? "x_train.npy" : "y_train.npy", path), "wb");
        ck_assert_ptr_nonnull(f);
        const size_t bytes = head + (k == 0 ? values * sizeof(float) : 4);
        ck_assert_uint_eq(fwrite(file, 1, bytes, f), bytes);
        ck_assert_int_eq(fclose(f), 0);
    }
    free(file);
    (void)snprintf(pair, sizeof pair, "pipeline.path=%s", folder);
    hr_knobs knobs = *hr_preset_knobs(preset);
    const char *const pairs[] = {pair, "pipeline.source=npy", "batch.size=2", "pipeline.normalise=device"};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, pairs[k], NULL), HR_OK);
    }
    ck_assert_int_eq(hr_engine_create(preset, &knobs, NULL, &e, &err), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    const hr_err *had = hr_engine_error(e);
    ck_assert_int_eq(had->status, HR_DATA);
    ck_assert_ptr_nonnull(
        strstr(had->sentence, "needed images of bytes for pipeline.normalise=device, had values"));
    ck_assert_str_eq(had->hint, "-s pipeline.normalise=host");
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("normalise");
    TCase *c = tcase_create("normalise");
    tcase_add_checked_fixture(c, open_all, close_preset);
    tcase_add_loop_test(c, weights_and_losses_are_the_same_bit_for_bit, 0, WAYS);
    tcase_add_test(c, turned_between_steps_it_goes_on_with_the_same_batches);
    tcase_add_loop_test(c, bytes_float32_and_float64_are_1_4_and_8, 0, 3);
    tcase_add_test(c, auto_sends_what_the_first_layer_reads);
    tcase_add_test(c, the_tape_saves_the_images_once);
    tcase_add_loop_test(c, an_array_of_numbers_sends_numbers, 0, 2);
    tcase_add_test(c, values_that_are_no_bytes_are_refused);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
