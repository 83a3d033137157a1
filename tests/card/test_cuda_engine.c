// SPDX-License-Identifier: Apache-2.0
// A step is a transaction, over a card whose driver refuses a launch in the middle of one: the step is discarded, nothing
// of it is saved, and training goes on from the last save, or from its beginning, to the weights of a training that
// nothing happened to.
#include <math.h>

#include "card/reach.h"
#include "unit/small_engine.h"

enum { STEPS = 8, SAVED = 3, BROKEN = 5, ALL_DONE = 77 };

static card_reach card;

// The second: batches of two rounds, of which one may be under way to the card when the step breaks off.
static const char *const settings[][6] = {
    {"device.kind=cuda", "device.vram=64MiB", "optimizer.kind=adam", "train.steps=8"},
    {"device.kind=cuda", "device.vram=64MiB", "optimizer.kind=adam", "train.steps=8", "batch.accumulate=2"}};

static hr_status save(hr_engine *e, const char *path, hr_err *err)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(c.text, sizeof c.text, "%s", path);
    return hr_engine_command(e, &c, err);
}

// Even: training was saved before. The launch that fails is an early one of the step, or one of its last; with two rounds, one
// in the middle as well.
START_TEST(a_step_that_breaks_off_is_discarded)
{
    char path[128], whole[HR_SHA256_TEXT_MAX], mended[HR_SHA256_TEXT_MAX];
    const char *const *on_card = settings[_i / 4 > 0];
    hr_err err = {0};
    hr_engine *e = create(on_card, NULL);
    run_steps(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), STEPS);
    weights_of(e, whole);
    hr_engine_destroy(e);

    e = create(on_card, NULL);
    run_steps(e, SAVED);
    if (_i % 2 == 0) {
        ck_assert_int_eq(save(e, file_in("weights.safetensors", path), &err), HR_OK);
    }
    run_steps(e, BROKEN - SAVED - 1);
    card.card_reset();
    run_steps(e, 1);
    const uint64_t launches = card.card_calls("cuLaunchKernel");
    ck_assert_uint_gt(launches, 4);
    const uint64_t nth = _i >= 8 ? launches / 2 : _i / 2 % 2 == 0 ? 3 : launches;
    card.card_fail("cuLaunchKernel", nth, CUDA_ERROR_INVALID_VALUE);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_uint_eq(hr_engine_steps(e), BROKEN);
    ck_assert_int_eq(save(e, file_in("broken.safetensors", path), &err), HR_STATE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "those of a step that broke off"));

    run_steps(e, 0);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    ck_assert_uint_eq(hr_engine_steps(e), STEPS);
    weights_of(e, mended);
    ck_assert_str_eq(mended, whole);
    hr_engine_destroy(e);
}
END_TEST

typedef struct norms {
    const hr_engine *engine;
    double of[STEPS];
    unsigned count;
} norms;

static void note_norm(void *context)
{
    norms *n = context;
    hr_err err = {0};
    ck_assert_uint_lt(n->count, STEPS);
    ck_assert_msg(hr_engine_gradient_norm(n->engine, &n->of[n->count], &err) == HR_OK, "%s", err.sentence);
    n->count++;
}

// NULL: nobody asks.
static void train(const char *const *pairs, norms *n, char sha[HR_SHA256_TEXT_MAX])
{
    const hr_engine_options options = {.before_update = n == NULL ? NULL : note_norm,
                                       .before_update_context = n};
    hr_engine *e = create(pairs, &options);
    if (n != NULL) {
        *n = (norms){.engine = e};
    }
    run_steps(e, STEPS);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

// In the middle of a step, that of the reference; and nobody's bits are other ones because somebody asked. A step that is captured
// into a graph has none.
START_TEST(the_norm_of_the_gradients_is_the_references)
{
    static const char *const reference[][6] = {
        {"device.kind=reference", "device.vram=64MiB", "optimizer.kind=adam", "train.steps=8"},
        {"device.kind=reference", "device.vram=64MiB", "optimizer.kind=adam", "train.steps=8",
         "batch.accumulate=2"}};
    static const char *const captured[] = {"device.kind=cuda",     "device.vram=64MiB",
                                           "execution.mode=graph", "execution.cuda_graph=on",
                                           "train.steps=8",        NULL};
    char asked[HR_SHA256_TEXT_MAX], alone[HR_SHA256_TEXT_MAX], judge[HR_SHA256_TEXT_MAX];
    norms ours, theirs;
    train(settings[_i], &ours, asked);
    train(settings[_i], NULL, alone);
    ck_assert_str_eq(asked, alone);
    train(reference[_i], &theirs, judge);
    ck_assert_uint_eq(ours.count, STEPS);
    for (unsigned k = 0; k < STEPS; k++) {
        ck_assert_msg(theirs.of[k] > 0 && fabs(ours.of[k] - theirs.of[k]) <= 1e-3 * theirs.of[k],
                      "step %u: %g for %g", k, ours.of[k], theirs.of[k]);
    }
    train(captured, &ours, asked);
    ck_assert(isnan(ours.of[STEPS - 1]));
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda engine");
    TCase *tests = tcase_create("transactions");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_loop_test(tests, a_step_that_breaks_off_is_discarded, 0, 10);
    tcase_add_loop_test(tests, the_norm_of_the_gradients_is_the_references, 0, 2);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
