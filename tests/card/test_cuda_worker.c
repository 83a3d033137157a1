// SPDX-License-Identifier: Apache-2.0
// A worker whose card is lost: it ends and says so, and a new one goes on from the autosave to the weights of a training
// that nothing happened to.
#include "reach.h"
#include "unit/session_use.h"

enum { STEPS = 30, SAVED = 5, ALL_DONE = 77 };

static int serve_role(const char *role)
{
    return hr_session_serve(role);
}

static const char *const on_card[][4] = {
    {"device.kind=cuda", "device.vram=64MiB", "train.steps=30", NULL},
    {"device.kind=cuda", "device.vram=64MiB", "train.steps=30", "execution.cuda_graph=on"},
};

static hr_knobs knobs_of(int k)
{
    const char *pairs[5] = {NULL};
    for (int n = 0; n < 4; n++) {
        pairs[n] = on_card[k][n];
    }
    return use_knobs(pairs);
}

// The weights of the last step; from `resume_path` on, where there is one.
static void train_to_the_end(const hr_knobs *knobs, const char *resume_path, uint64_t steps_before,
                             char sha[HR_SHA256_TEXT_MAX])
{
    uint64_t version = 0;
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_report report = {.preset = ""};
    hr_session_options options = use_options(knobs);
    options.resume_path = resume_path;
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, STEPS - steps_before);
    bool done = false;
    for (int k = 0; !done && k < USE_WAIT_MS / 20; k++) {
        if (hr_session_report(s, &version, &report)) {
            done = report.train.steps == STEPS && report.train.weights_sha256[0] != '\0';
            memcpy(sha, report.train.weights_sha256, HR_SHA256_TEXT_MAX);
            hr_report_deinit(&report);
        }
        use_pause(s);
    }
    ck_assert(done);
    use_stop(s);
}

START_TEST(a_lost_card_ends_the_worker_and_a_new_one_goes_on)
{
    char path[128], once[128], whole[HR_SHA256_TEXT_MAX], mended[HR_SHA256_TEXT_MAX];
    seen n = {.state = HR_ENGINE_PAUSED};
    const hr_knobs knobs = knobs_of(_i);
    hr_session_options options = use_options(&knobs);
    options.autosave_path = use_file("auto.safetensors", path);
    train_to_the_end(&knobs, NULL, 0, whole);

    setenv("CARD_LOSE_AT", "110", 1);
    setenv("CARD_FAIL_ONCE", use_file("once", once), 1);
    hr_session *s = use_start(&options);
    use_run(s, SAVED);
    use_read_until(s, &n, use_has_saves, 1);
    use_run(s, 0);
    const hr_session_end end = use_wait_end(s);
    use_stop(s);
    ck_assert_msg(end.device_lost, "%s", end.sentence);
    ck_assert_int_eq(end.exit_code, 4);
    ck_assert_int_eq(end.signal, 0);
    ck_assert_msg(strstr(end.sentence, "ILLEGAL_ADDRESS") != NULL, "%s", end.sentence);
    ck_assert_uint_eq(end.saved_step, SAVED);
    ck_assert_uint_gt(end.step, SAVED);
    ck_assert_uint_lt(end.step, STEPS);

    train_to_the_end(&knobs, path, SAVED,
                     mended); // the file that stands for it is there: nothing is lost again
    ck_assert_str_eq(mended, whole);
}
END_TEST

static Suite *make_suite(void)
{
    card_reach card;
    Suite *suite = suite_create("a worker's card");
    TCase *tests = tcase_create("lost");
    if (!card_is_emulated(&card)) {
        puts("skipped: libcuda.so.1 is not the emulated card");
        exit(ALL_DONE);
    }
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, use_setup, use_teardown);
    tcase_add_loop_test(tests, a_lost_card_ends_the_worker_and_a_new_one_goes_on, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}

USE_MAIN(make_suite)
