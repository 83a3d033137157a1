// SPDX-License-Identifier: Apache-2.0
// The engine on its own thread: commands go in, events come out in order, errors and reports are copies, stopping
// always ends. Run under the thread sanitizer too.
#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/engine.h"

#include "base/file.h"

static const char preset_text[] = "device: {kind: reference, vram: 4MiB}\n"
                                  "batch: {size: 4}\n"
                                  "pipeline: {shuffle: 16}\n"
                                  "model:\n"
                                  "  name: tiny\n"
                                  "  input: {shape: [32, 32, 3]}\n"
                                  "  classes: 10\n"
                                  "  loss: softmax_cross_entropy\n"
                                  "  layers:\n"
                                  "    - {kind: flatten}\n"
                                  "    - {kind: dense, units: 10}\n";

static hr_preset *preset;

static void open_preset(void)
{
    char path[] = "/tmp/headroom-host-XXXXXX.yaml";
    hr_err err = {0};
    int fd = mkstemps(path, 5);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, preset_text, strlen(preset_text)), (ssize_t)strlen(preset_text));
    close(fd);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    unlink(path);
}

static void close_preset(void)
{
    hr_preset_close(preset);
}

static hr_engine_host *start(void)
{
    hr_err err = {0};
    hr_engine_host *h = NULL;
    ck_assert_msg(hr_engine_host_start(preset, hr_preset_knobs(preset), &h, &err) == HR_OK, "%s",
                  err.sentence);
    return h;
}

static void send_command(hr_engine_host *h, hr_command_kind kind, uint64_t count, hr_knob_id knob,
                         const char *text)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count, .knob = knob};
    (void)snprintf(c.text, sizeof c.text, "%s", text);
    ck_assert(hr_engine_host_send(h, &c));
}

typedef struct seen {
    uint64_t steps, next_seq, lost, time_ns;
    uint64_t step_ns; // when the last step ended
    bool too_early;   // a simulated step was over before its time
    double loss;      // of the last step
    hr_engine_state state;
} seen;

// Reads events until `stop` says so, with a generous limit so that a lost wake-up fails instead of hanging.
static void read_until(hr_engine_host *h, seen *s, bool (*stop)(const seen *s))
{
    hr_event events[256];
    for (int turns = 0; turns < 20000 && !stop(s); turns++) {
        struct pollfd fd = {.fd = hr_engine_host_event_fd(h), .events = POLLIN};
        uint64_t lost = 0;
        uint64_t count = 0;
        if (poll(&fd, 1, 1000) == 1) {
            (void)!read(fd.fd, &count, sizeof count);
        }
        size_t n = hr_engine_host_events(h, events, 256, &lost);
        s->lost += lost;
        for (size_t k = 0; k < n; k++) {
            ck_assert_uint_ge(events[k].seq, s->next_seq);
            ck_assert(lost > 0 || k > 0 || events[k].seq == s->next_seq);
            s->next_seq = events[k].seq + 1;
            ck_assert_uint_ge(events[k].time_ns, s->time_ns);
            s->time_ns = events[k].time_ns;
            if (events[k].kind == HR_EVENT_STEP) {
                const uint64_t took_ns = events[k].time_ns - s->step_ns;
                s->too_early = s->too_early || (s->steps > 0 && took_ns < events[k].u.step.duration_ns);
                s->step_ns = events[k].time_ns;
                s->loss = events[k].u.step.loss;
                s->steps++;
            }
            if (events[k].kind == HR_EVENT_STATE) {
                s->state = (hr_engine_state)events[k].u.note.count;
            }
        }
    }
    ck_assert(stop(s));
}

static bool is_idle_after_five(const seen *s)
{
    return s->state == HR_ENGINE_IDLE && (s->steps >= 5 || s->lost > 0);
}

static bool is_oom(const seen *s)
{
    return s->state == HR_ENGINE_OOM;
}

static bool is_running(const seen *s)
{
    return s->state == HR_ENGINE_RUNNING && s->steps > 0;
}

static bool is_idle_after_nine(const seen *s)
{
    return s->state == HR_ENGINE_IDLE && (s->steps >= 9 || s->lost > 0);
}

// The simulated clock begins at 0 wherever the machine's is; readers see one axis.
START_TEST(a_card_takes_its_time_on_the_axis_of_the_device_before_it)
{
    seen s = {.state = HR_ENGINE_PAUSED};
    hr_preset_search_beside(".");
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_RUN, 5, 0, "");
    read_until(h, &s, is_idle_after_five);
    ck_assert_double_gt(s.loss, 0);
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_DEVICE_CARD, "rtx3070-8g");
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_DEVICE_KIND, "plan");
    s.state = HR_ENGINE_PAUSED;
    s.step_ns = s.time_ns;
    s.too_early = false;
    send_command(h, HR_COMMAND_RUN, 4, 0, "");
    read_until(h, &s, is_idle_after_nine);
    ck_assert(!s.too_early);
    ck_assert_double_nan(s.loss); // nothing is computed: the last loss is not that of these steps
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

START_TEST(commands_run_and_events_arrive_in_order)
{
    seen s = {.state = HR_ENGINE_PAUSED};
    hr_report report;
    uint64_t version = 0;
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_RUN, 5, 0, "");
    read_until(h, &s, is_idle_after_five);
    for (int k = 0; k < 1000 && !hr_engine_host_report(h, &version, &report); k++) {
        usleep(1000);
    }
    ck_assert_uint_gt(version, 0);
    ck_assert_uint_gt(report.memory.limit_bytes, 0);
    hr_report_deinit(&report);
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

START_TEST(out_of_memory_is_a_state_that_a_knob_leaves)
{
    seen s = {.state = HR_ENGINE_IDLE};
    hr_err err = {0};
    uint64_t version = 0;
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "100000");
    send_command(h, HR_COMMAND_RUN, 0, 0, "");
    read_until(h, &s, is_oom);
    for (int k = 0; k < 1000 && !hr_engine_host_error(h, &version, &err); k++) {
        usleep(1000);
    }
    ck_assert_int_eq(err.status, HR_OOM);
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "4");
    read_until(h, &s, is_running);
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

static void wait_for_error(hr_engine_host *h, uint64_t *version, hr_err *err)
{
    bool newer = false;
    for (int k = 0; k < 5000 && !newer; k++) {
        newer = hr_engine_host_error(h, version, err);
        usleep(1000);
    }
    ck_assert(newer);
}

// Nothing between the two: the state is "out of memory" before and after, and yet there is news.
START_TEST(a_second_out_of_memory_is_told_like_the_first)
{
    hr_err first = {0};
    hr_err second = {0};
    uint64_t version = 0;
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "100000");
    send_command(h, HR_COMMAND_RUN, 0, 0, "");
    wait_for_error(h, &version, &first);
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "50000");
    wait_for_error(h, &version, &second);
    ck_assert_int_eq(second.status, HR_OOM);
    ck_assert_str_ne(first.sentence, second.sentence);
    hr_report report = {.oom = {.requested_bytes = 0}};
    uint64_t report_version = 0;
    for (int k = 0; k < 5000 && strcmp(report.oom.sentence, second.sentence) != 0; k++) {
        hr_report_deinit(&report);
        (void)hr_engine_host_report(h, &report_version, &report);
        usleep(1000);
    }
    ck_assert_str_eq(report.oom.sentence, second.sentence);
    hr_report_deinit(&report);
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

// A reader with room for one event at a time is woken for every one of them.
START_TEST(the_descriptor_is_readable_while_events_wait)
{
    hr_engine_host *h = start();
    hr_engine_state state = HR_ENGINE_PAUSED;
    send_command(h, HR_COMMAND_RUN, 1, 0, "");
    while (state != HR_ENGINE_IDLE) {
        hr_event event;
        uint64_t count;
        uint64_t lost;
        struct pollfd fd = {.fd = hr_engine_host_event_fd(h), .events = POLLIN};
        ck_assert_int_eq(poll(&fd, 1, 5000), 1);
        (void)!read(fd.fd, &count, sizeof count);
        if (hr_engine_host_events(h, &event, 1, &lost) == 1 && event.kind == HR_EVENT_STATE) {
            state = (hr_engine_state)event.u.note.count;
        }
    }
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

START_TEST(a_refused_command_is_reported)
{
    hr_err err = {0};
    uint64_t version = 0;
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "many");
    for (int k = 0; k < 1000 && !hr_engine_host_error(h, &version, &err); k++) {
        usleep(1000);
    }
    ck_assert_int_eq(err.status, HR_KNOB);
    ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
}
END_TEST

START_TEST(a_save_that_fails_at_the_end_is_told)
{
    seen s = {.state = HR_ENGINE_IDLE};
    hr_err err = {0};
    char folder[] = "/tmp/headroom-quit-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/end.safetensors", folder);
    hr_engine_host *h = start();
    send_command(h, HR_COMMAND_KNOB, 0, HR_KNOB_TRAIN_SAVE, path);
    send_command(h, HR_COMMAND_RUN, 0, 0, "");
    read_until(h, &s, is_running);
    (void)file_fail_at(1);
    ck_assert_int_ne(hr_engine_host_stop(h, &err), HR_OK);
    (void)file_fail_at(0);
    ck_assert_ptr_nonnull(strstr(err.sentence, path));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(stopping_ends_a_running_engine_at_once)
{
    for (int k = 0; k < 20; k++) {
        hr_engine_host *h = start();
        send_command(h, HR_COMMAND_RUN, 0, 0, "");
        usleep((useconds_t)(k * 500));
        ck_assert_int_eq(hr_engine_host_stop(h, NULL), HR_OK);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_host");
    TCase *cases = tcase_create("engine_host");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_test(cases, commands_run_and_events_arrive_in_order);
    tcase_add_test(cases, a_card_takes_its_time_on_the_axis_of_the_device_before_it);
    tcase_add_test(cases, out_of_memory_is_a_state_that_a_knob_leaves);
    tcase_add_test(cases, a_second_out_of_memory_is_told_like_the_first);
    tcase_add_test(cases, the_descriptor_is_readable_while_events_wait);
    tcase_add_test(cases, a_refused_command_is_reported);
    tcase_add_test(cases, a_save_that_fails_at_the_end_is_told);
    tcase_add_test(cases, stopping_ends_a_running_engine_at_once);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
