// SPDX-License-Identifier: Apache-2.0
// A worker whose card is lost: it ends and says so, and a new one goes on from the autosave to the weights of a training
// that nothing happened to. A worker that goes on by itself where only a step failed; and one that a library ends.
#include "headroom/planning.h"

#include "reach.h"
#include "unit/session_use.h"

enum { STEPS = 30, SAVED = 5, ALL_DONE = 77 };

static int serve_role(const char *role)
{
    return hr_session_serve(role, NULL);
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
    use_read_until(s, &n, use_has_saved, SAVED);
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

// A library's refusal on a card that is well: the step fails with its sentence, and the same worker goes on from the last
// save.
START_TEST(a_failed_step_needs_no_new_worker)
{
    char path[128], whole[HR_SHA256_TEXT_MAX], mended[HR_SHA256_TEXT_MAX] = "";
    uint64_t version = 0;
    hr_report report = {.preset = ""};
    hr_err err = {0};
    seen n = {.state = HR_ENGINE_PAUSED};
    const hr_knobs knobs = knobs_of(0);
    hr_session_options options = use_options(&knobs);
    options.autosave_path = use_file("auto.safetensors", path);
    train_to_the_end(&knobs, NULL, 0, whole);

    setenv("CARD_FAIL", "cublasLtMatmul:18:13", 1); // CUBLAS_STATUS_EXECUTION_FAILED, behind the save
    hr_session *s = use_start(&options);
    unsetenv("CARD_FAIL");
    use_run(s, SAVED);
    use_read_until(s, &n, use_has_saved, SAVED);
    use_run(s, 0);
    use_read_until(s, &n, use_is_in, HR_ENGINE_FAILED);
    for (int k = 0; !use_is_error(s, &err) && k < USE_WAIT_MS / 20; k++) {
        use_pause(s);
    }
    ck_assert_msg(strstr(err.sentence, "CUBLAS_STATUS_EXECUTION_FAILED") != NULL, "%s", err.sentence);
    ck_assert_int_eq(err.status, HR_DEVICE);
    use_run(s, 0);
    for (int k = 0; mended[0] == '\0' && k < USE_WAIT_MS / 20; k++) {
        use_read(s, &n);
        if (hr_session_report(s, &version, &report)) {
            if (report.train.steps == STEPS) {
                memcpy(mended, report.train.weights_sha256, sizeof mended);
            }
            hr_report_deinit(&report);
        }
        use_pause(s);
    }
    use_stop(s);
    ck_assert_str_eq(mended, whole);
}
END_TEST

// In front of the card's libraries lies one that is cut off: the process that opens it ends, and its last words are there
// for the screen, which lives on.
static void cut_driver(void)
{
    enum { KEPT = 16384 };
    static char bytes[KEPT];
    char path[256], paths[1024];
    const char *card_folder = getenv("LD_LIBRARY_PATH");
    (void)snprintf(path, sizeof path, "%s/libcuda.so.1", card_folder);
    FILE *in = fopen(path, "rb");
    ck_assert(in != NULL && fread(bytes, 1, KEPT, in) == KEPT && fclose(in) == 0);
    FILE *out = fopen(use_file("libcuda.so.1", path), "wb");
    ck_assert(out != NULL && fwrite(bytes, 1, KEPT, out) == KEPT && fclose(out) == 0);
    (void)snprintf(paths, sizeof paths, "%s:%s", use_folder, card_folder);
    setenv("LD_LIBRARY_PATH", paths, 1);
}

static const char last_words[] = "libcuda.so.1, which ended the process: a file of it is cut off";

START_TEST(a_worker_that_a_library_ends_says_so)
{
    const hr_knobs knobs = knobs_of(0);
    const hr_session_options options = use_options(&knobs);
    cut_driver();
    hr_session *s = use_start(&options);
    use_run(s, 0);
    const hr_session_end end = use_wait_end(s);
    use_stop(s);
    ck_assert_int_eq(end.exit_code, 4);
    ck_assert_int_eq(end.signal, 0);
    ck_assert(!end.device_lost);
    ck_assert_msg(strstr(end.sentence, last_words) != NULL, "%s", end.sentence);
}
END_TEST

START_TEST(a_planner_that_a_library_ends_says_so)
{
    const hr_knobs knobs = knobs_of(0);
    hr_planning *p = NULL;
    hr_answer answer = {.last = false};
    hr_err err = {0};
    cut_driver();
    ck_assert_msg(hr_planning_start(false, &p, &err) == HR_OK, "%s", err.sentence);
    hr_planning_open(p, use_preset, false);
    ck_assert_uint_ne(hr_planning_ask_diff(p, &knobs, &knobs), 0);
    for (int k = 0; !answer.last && k < USE_WAIT_MS / 20; k++) {
        struct pollfd fd = {.fd = hr_planning_fd(p), .events = POLLIN};
        (void)poll(&fd, 1, 20);
        (void)hr_planning_take(p, &answer);
    }
    ck_assert(answer.last);
    ck_assert_int_ne(answer.status, HR_OK);
    ck_assert_msg(strstr(answer.sentence, last_words) != NULL, "%s", answer.sentence);
    hr_answer_deinit(&answer);
    hr_planning_stop(p);
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
    tcase_add_test(tests, a_failed_step_needs_no_new_worker);
    tcase_add_test(tests, a_worker_that_a_library_ends_says_so);
    tcase_add_test(tests, a_planner_that_a_library_ends_says_so);
    suite_add_tcase(suite, tests);
    return suite;
}

USE_MAIN(make_suite)
