// SPDX-License-Identifier: Apache-2.0
// Looking at a training from elsewhere: several at once, each at its own pace, none of them able to change anything; a
// run that serves watchers itself; a trace that is played; and silence.
#include <math.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "headroom/trace.h"

#include "session/messages.h"
#include "session/watch_socket.h"
#include "unit/session_use.h"

static int serve_role(const char *role)
{
    return hr_session_serve(role, NULL);
}

static hr_session *attach(const char *path)
{
    hr_err err = {0};
    hr_session *s = NULL;
    ck_assert_msg(hr_session_attach(path, &s, &err) == HR_OK, "%s", err.sentence);
    ck_assert(hr_session_is_read_only(s));
    return s;
}

static const char *socket_of(pid_t pid, char path[WATCH_PATH_MAX])
{
    ck_assert(watch_path(pid, path));
    for (int k = 0; k < USE_WAIT_MS / 2 && access(path, F_OK) != 0; k++) {
        usleep(2000);
    }
    return path;
}

static bool has_report(hr_session *s, uint64_t steps)
{
    uint64_t version = 0;
    hr_report report;
    if (!hr_session_report(s, &version, &report)) {
        return false;
    }
    bool found = report.train.steps >= steps;
    hr_report_deinit(&report);
    return found;
}

static void wait_report(hr_session *s, uint64_t steps)
{
    bool found = false;
    for (int k = 0; k < USE_WAIT_MS / 20 && !found; k++) {
        use_pause(s);
        found = has_report(s, steps);
    }
    ck_assert(found);
}

// ---- a worker -------------------------------------------------------------------------------------------------

START_TEST(several_watch_and_none_disturbs_another)
{
    char path[WATCH_PATH_MAX], preset[HR_KNOB_TEXT_MAX];
    seen owner = {.state = HR_ENGINE_PAUSED}, quick = owner, slow = owner;
    hr_knobs knobs = use_knobs((const char *const[]){"batch.size=3", NULL}), watched;
    hr_session_options options = use_options(&knobs);
    options.watchable = true;
    hr_session *s = use_start(&options);
    hr_session *one = attach(socket_of(use_child(), path)), *two = attach(path);
    use_run(s, 30);
    use_read_until(s, &owner, use_is_in, HR_ENGINE_IDLE);
    use_read_until(one, &quick, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(owner.steps, 30);
    ck_assert_uint_eq(quick.events, owner.events);
    ck_assert_uint_eq(quick.lost, 0);
    wait_report(one, 30);
    ck_assert(hr_session_about(one, preset, &watched));
    ck_assert_str_eq(preset, use_preset);
    ck_assert_int_eq(hr_knob_int(&watched, HR_KNOB_BATCH_SIZE), 3);
    use_send(s, HR_COMMAND_KNOB, 0, HR_KNOB_BATCH_SIZE, "5");
    for (int k = 0; k < USE_WAIT_MS / 20 && hr_knob_int(&watched, HR_KNOB_BATCH_SIZE) != 5; k++) {
        use_pause(one);
        uint64_t version = 0;
        hr_err err;
        (void)hr_session_error(one, &version, &err); // takes in what has come
        ck_assert(hr_session_about(one, preset, &watched));
    }
    ck_assert_int_eq(hr_knob_int(&watched, HR_KNOB_BATCH_SIZE), 5);
    use_read_until(two, &slow, use_is_in, HR_ENGINE_IDLE); // looks for the first time
    ck_assert_uint_ge(slow.events + slow.lost, owner.events);
    ck_assert(!hr_session_send(two, &(hr_command){.kind = HR_COMMAND_STOP}));
    hr_session_kill(two); // not its to kill
    use_stop(two);
    use_run(s, 1);
    use_read_until(s, &owner, use_has_steps, 31);
    use_stop(s);
    hr_session_end end = use_wait_end(one);
    ck_assert_int_eq(end.exit_code, 0);
    ck_assert_str_eq(end.sentence, "the training was ended");
    use_stop(one);
}
END_TEST

START_TEST(a_watcher_sees_that_the_worker_is_gone)
{
    char path[WATCH_PATH_MAX];
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.watchable = true;
    hr_session *s = use_start(&options), *w = attach(socket_of(use_child(), path));
    use_run(s, 0);
    use_read_until(w, &n, use_has_steps, 2);
    hr_session_kill(s);
    hr_session_end end = use_wait_end(w);
    ck_assert_int_eq(end.exit_code, -1);
    ck_assert_uint_ge(end.step, 2);
    ck_assert_str_eq(end.sentence, "it was killed: its process is gone without a word");
    (void)use_wait_end(s);
    ck_assert_int_ne(access(path, F_OK), 0); // its owner has removed what it could not
    use_stop(w);
    use_stop(s);
}
END_TEST

// What a watcher may not say ends its connection, and nothing else.
START_TEST(a_watcher_cannot_command)
{
    static const message_kind kinds[] = {MESSAGE_COMMAND, MESSAGE_QUIT,  MESSAGE_OPEN,
                                         MESSAGE_RING,    MESSAGE_ENDED, MESSAGE_TAKEN};
    char path[WATCH_PATH_MAX];
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.watchable = true;
    hr_session *s = use_start(&options);
    (void)socket_of(use_child(), path);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int fd = -1;
        wire *w = NULL;
        wire_message m;
        wire_out body = {0};
        put_command(&body, &(hr_command){.kind = HR_COMMAND_QUIT});
        ck_assert_int_eq(watch_connect(path, &fd, NULL), HR_OK);
        ck_assert_int_eq(wire_create(fd, MESSAGE_KINDS, &w, NULL), HR_OK);
        ck_assert(wire_write(w, kinds[k], body.data, (uint32_t)body.bytes, -1));
        for (int turns = 0; turns < USE_WAIT_MS / 10 && !wire_is_closed(w); turns++) {
            struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
            (void)poll(&poll_fd, 1, 10);
            while (wire_read(w, &m)) {
                if (m.fd >= 0) {
                    close(m.fd);
                }
            }
        }
        ck_assert(wire_is_closed(w));
        wire_destroy(w);
        wire_out_deinit(&body);
    }
    use_run(s, 2);
    use_read_until(s, &n, use_has_steps, 2);
    use_stop(s);
}
END_TEST

START_TEST(more_watchers_than_there_is_room_for_are_turned_away)
{
    enum { MANY = 20, ROOM = 16 };
    char path[WATCH_PATH_MAX];
    int taken = 0;
    hr_session *watchers[MANY];
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.watchable = true;
    hr_session *s = use_start(&options);
    (void)socket_of(use_child(), path);
    for (int k = 0; k < MANY; k++) {
        watchers[k] = attach(path);
    }
    for (int k = 0; k < MANY; k++) {
        hr_session_end end;
        uint64_t version = 0;
        hr_report report;
        bool has = false, gone = false;
        for (int turns = 0; turns < USE_WAIT_MS / 20 && !has && !gone; turns++) {
            use_pause(watchers[k]);
            has = hr_session_report(watchers[k], &version, &report);
            gone = hr_session_get_life(watchers[k], &end) == HR_SESSION_ENDED;
        }
        if (has) {
            hr_report_deinit(&report);
        }
        taken += has;
    }
    ck_assert_int_eq(taken, ROOM);
    for (int k = 0; k < MANY; k++) {
        use_stop(watchers[k]);
    }
    use_stop(s);
}
END_TEST

// ---- a run that serves watchers --------------------------------------------------------------------------------

START_TEST(a_run_lets_itself_be_watched)
{
    char path[WATCH_PATH_MAX];
    hr_err err = {0};
    hr_watch_server *server = NULL;
    hr_preset *preset = NULL;
    hr_engine *engine = NULL;
    seen n = {.state = HR_ENGINE_PAUSED};
    bool idle = false;
    hr_knobs knobs = use_knobs(NULL);
    ck_assert_int_eq(hr_watch_server_start(use_preset, &knobs, &server, &err), HR_OK);
    ck_assert_ptr_nonnull(server);
    ck_assert(!hr_watch_server_wants_report(server));
    hr_session *w = attach(socket_of(getpid(), path));
    hr_engine_options options = {.sink = hr_watch_server_event, .sink_context = server};
    ck_assert_int_eq(hr_preset_open(use_preset, false, &preset, NULL, &err), HR_OK);
    ck_assert_int_eq(hr_engine_create(preset, &knobs, &options, &engine, &err), HR_OK);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 9};
    ck_assert_int_eq(hr_engine_command(engine, &run, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(engine, &idle);
    }
    use_read_until(w, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(n.steps, 9);
    ck_assert_uint_eq(n.lost, 0);
    ck_assert(hr_watch_server_wants_report(server));
    hr_report report;
    ck_assert_int_eq(hr_engine_report(engine, &report, NULL), HR_OK);
    hr_watch_server_report(server, &report);
    hr_report_deinit(&report);
    ck_assert(!hr_watch_server_wants_report(server)); // at most four a second
    wait_report(w, 9);
    hr_engine_destroy(engine);
    hr_watch_server_stop(server);
    hr_watch_server_stop(NULL);
    hr_session_end end = use_wait_end(w);
    ck_assert_int_eq(end.exit_code, 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    use_stop(w);
    hr_preset_close(preset);
}
END_TEST

// Messages without a byte of the kernel's own that stand in both buffers of a socket: some kernels count nothing else.
static unsigned held_by_a_socket(int fd)
{
    int sent = 0;
    int received = 0;
    socklen_t bytes = sizeof sent;
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sent, &bytes), 0);
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &received, &bytes), 0);
    return (unsigned)(sent + received) / sizeof(uint64_t[2]);
}

// Says over and over that it has seen nothing, and reads none of the answers: they are not kept for it.
START_TEST(who_talks_and_does_not_read_is_owed_little)
{
    enum { QUIET_MS = 300 };
    char path[WATCH_PATH_MAX];
    int fd = -1;
    unsigned wakes = 0;
    uint64_t cursor = 0;
    wire *w = NULL;
    wire_message m;
    hr_watch_server *server = NULL;
    hr_knobs knobs = use_knobs(NULL);
    ck_assert_int_eq(hr_watch_server_start(use_preset, &knobs, &server, NULL), HR_OK);
    hr_watch_server_event(server, &(hr_event){.version = HR_EVENT_VERSION, .kind = HR_EVENT_ALLOC});
    ck_assert_int_eq(watch_connect(socket_of(getpid(), path), &fd, NULL), HR_OK);
    ck_assert_int_eq(wire_create(fd, MESSAGE_KINDS, &w, NULL), HR_OK);
    const unsigned held = held_by_a_socket(fd);
    for (unsigned k = 0; k < 2 * held; k++) {
        ck_assert(wire_write(w, MESSAGE_TAKEN, &cursor, sizeof cursor, -1));
    }
    while ((wire_events(w) & POLLOUT) != 0) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        ck_assert_int_eq(poll(&ready, 1, USE_WAIT_MS), 1);
        wire_flush(w);
    }
    for (struct pollfd ready = {.fd = fd, .events = POLLIN}; poll(&ready, 1, QUIET_MS) == 1;) {
        while (wire_read(w, &m)) {
            wakes += m.kind == MESSAGE_WAKE;
            if (m.fd >= 0) {
                close(m.fd);
            }
        }
        ck_assert(!wire_is_closed(w));
    }
    ck_assert_uint_gt(wakes, 0);
    ck_assert_uint_lt(wakes, held);
    wire_destroy(w);
    hr_watch_server_stop(server);
}
END_TEST

START_TEST(without_a_folder_of_our_own_nobody_watches)
{
    hr_err err = {0};
    hr_watch_server *server = NULL;
    char folder[128];
    hr_knobs knobs = use_knobs(NULL);
    ck_assert_int_eq(mkdir(use_file("run/headroom", folder), 0755), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0); // open to others
    char path[WATCH_PATH_MAX];
    int fd = -1;
    ck_assert(watch_path(getpid(), path));
    ck_assert_int_eq(watch_listen(path, &fd, &err), HR_READ);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert_int_eq(symlink("/tmp", folder), 0); // not a folder, and not ours
    ck_assert_int_eq(watch_listen(path, &fd, &err), HR_READ);
    ck_assert_int_eq(unlink(folder), 0);
    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_int_eq(hr_watch_server_start(use_preset, &knobs, &server, &err), HR_OK);
    ck_assert_ptr_null(server);
}
END_TEST

START_TEST(what_is_neither_socket_nor_trace_is_refused)
{
    char path[128];
    hr_err err = {0};
    hr_session *s = NULL;
    ck_assert_int_eq(hr_session_attach(use_file("nothing", path), &s, &err), HR_READ);
    ck_assert_int_eq(hr_session_attach(use_preset, &s, &err), HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "needed a trace of headroom"));
    ck_assert_int_eq(hr_session_attach(use_folder, &s, &err), HR_READ);
    ck_assert_ptr_null(s);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); // nobody accepts
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", use_file("dead.sock", path));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    ck_assert_int_eq(hr_session_attach(path, &s, &err), HR_READ);
    ck_assert_ptr_null(s);
}
END_TEST

// A process that is stopped, and so many before us that the kernel would have us wait.
START_TEST(who_does_not_answer_holds_nobody_up)
{
    enum { KNOCKS = 8 };
    char path[128];
    hr_err err = {0};
    hr_session *s = NULL, *waiting[KNOCKS];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), count = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s", use_file("deaf.sock", path));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    while (count < KNOCKS && hr_session_attach(path, &s, &err) == HR_OK) {
        waiting[count++] = s;
    }
    ck_assert_int_lt(count, KNOCKS);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(err.status, HR_READ);
    ck_assert_ptr_nonnull(strstr(err.sentence, "none is accepted"));
    while (count > 0) {
        use_stop(waiting[--count]);
    }
    close(fd);
}
END_TEST

// ---- a trace --------------------------------------------------------------------------------------------------

typedef struct record {
    hr_event *events;
    size_t count;
} record;

static void keep_event(void *context, const hr_event *event)
{
    record *r = context;
    r->events = realloc(r->events, (r->count + 1) * sizeof *r->events);
    ck_assert_ptr_nonnull(r->events);
    r->events[r->count++] = *event;
}

// A run of the plan device with a trace of it in `file`.
static record run_traced(const char *file)
{
    static const char *const pairs[] = {"device.kind=plan", "device.card=rtx3070-8g", NULL};
    record r = {0};
    hr_preset *preset = NULL;
    hr_engine *engine = NULL;
    hr_trace *trace = NULL;
    bool idle = false;
    hr_knobs knobs = use_knobs(pairs);
    hr_engine_options options = {.sink = keep_event, .sink_context = &r};
    ck_assert_int_eq(hr_preset_open(use_preset, false, &preset, NULL, NULL), HR_OK);
    ck_assert_int_eq(hr_engine_create(preset, &knobs, &options, &engine, NULL), HR_OK);
    ck_assert_int_eq(hr_trace_open(engine, file, &trace, NULL), HR_OK);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 4};
    ck_assert_int_eq(hr_engine_command(engine, &run, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(engine, &idle);
    }
    ck_assert_int_eq(hr_trace_close(trace, NULL), HR_OK);
    record traced = {.count = r.count}; // what the engine gives back at its end is told to others alone
    hr_engine_destroy(engine);
    hr_preset_close(preset);
    traced.events = r.events;
    return traced;
}

static bool is_in_csv(const hr_event *e)
{
    return (e->kind >= HR_EVENT_ALLOC && e->kind <= HR_EVENT_OOM) || e->kind == HR_EVENT_BUILD ||
           e->kind == HR_EVENT_STEP || e->kind == HR_EVENT_EVAL;
}

// What a CSV says of an event, and what follows from it.
static void check_csv_event(const hr_event *e, const hr_event *was)
{
    ck_assert_int_eq(e->kind, was->kind);
    ck_assert_uint_eq(e->step, was->step);
    ck_assert_uint_eq(e->time_ns, was->time_ns);
    if (was->kind == HR_EVENT_STEP) {
        ck_assert_uint_eq(e->u.step.duration_ns, was->u.step.duration_ns);
        ck_assert_uint_eq(e->u.step.peak_in_use_bytes, was->u.step.peak_in_use_bytes);
        ck_assert_double_nan(e->u.step.loss);
    } else if (was->kind != HR_EVENT_BUILD) {
        ck_assert_uint_eq(e->u.memory.address, was->u.memory.address);
        ck_assert_uint_eq(e->u.memory.in_use_bytes, was->u.memory.in_use_bytes);
        ck_assert_uint_eq(e->u.memory.pool_bytes, was->u.memory.pool_bytes);
    }
}

START_TEST(a_trace_is_played_whole_and_in_its_time)
{
    static const char *const names[] = {"run.hrt", "run.csv"};
    char path[128];
    hr_event events[7]; // a small table: many calls
    uint64_t lost = 0;
    size_t at = 0;
    hr_session_end end = {0};
    record r = run_traced(use_file(names[_i], path));
    hr_session *s = attach(path);
    const uint64_t begin_ns = clock_now_ns();
    while (hr_session_get_life(s, &end) != HR_SESSION_ENDED) {
        ck_assert(use_wait_readable(s, USE_WAIT_MS));
        size_t got = hr_session_events(s, events, 7, &lost);
        ck_assert_uint_eq(lost, 0);
        for (size_t k = 0; k < got; k++) {
            while (_i == 1 && at < r.count && !is_in_csv(&r.events[at])) {
                at++;
            }
            ck_assert_uint_lt(at, r.count);
            if (_i == 0) {
                ck_assert_mem_eq(&events[k], &r.events[at], sizeof events[k]);
            } else {
                check_csv_event(&events[k], &r.events[at]);
            }
            uint64_t after_ns = events[k].time_ns - r.events[0].time_ns;
            ck_assert(_i == 1 || r.events[0].time_ns > events[k].time_ns ||
                      clock_now_ns() - begin_ns >= after_ns / 2);
            at++;
        }
    }
    ck_assert_int_eq(end.exit_code, 0);
    ck_assert_uint_eq(end.step, 4);
    ck_assert(!use_wait_readable(s, 0));
    while (at < r.count && _i == 1 && !is_in_csv(&r.events[at])) {
        at++;
    }
    ck_assert_uint_eq(at, r.count);
    use_stop(s);
    free(r.events);
}
END_TEST

START_TEST(a_trace_that_was_cut_is_refused)
{
    char path[128];
    hr_err err = {0};
    hr_session *s = NULL;
    struct stat info;
    record r = run_traced(use_file("run.hrt", path));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(truncate(path, info.st_size - 3), 0);
    ck_assert_int_eq(hr_session_attach(path, &s, &err), HR_READ);
    ck_assert_ptr_null(s);
    free(r.events);
}
END_TEST

// ---- silence --------------------------------------------------------------------------------------------------

START_TEST(a_stopped_worker_is_silent_until_it_goes_on)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_session_end end = {0};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 2);
    kill(use_child(), SIGSTOP);
    const uint64_t begin_ns = clock_now_ns();
    while (hr_session_get_life(s, &end) == HR_SESSION_LIVE) {
        usleep(20000);
        use_read(s, &n);
    }
    ck_assert_int_eq(hr_session_get_life(s, &end), HR_SESSION_SILENT);
    ck_assert_uint_ge(clock_now_ns() - begin_ns, HR_SESSION_SILENT_NS - UINT64_C(1000000000));
    ck_assert_uint_ge(end.step, 2);
    ck_assert_ptr_nonnull(strstr(end.sentence, "has done nothing for 5 s"));
    kill(use_child(), SIGCONT);
    use_read_until(s, &n, use_has_steps, n.steps + 2);
    ck_assert_int_eq(hr_session_get_life(s, &end), HR_SESSION_LIVE);
    kill(use_child(), SIGSTOP);
    hr_session_kill(s);
    end = use_wait_end(s);
    ck_assert(end.by_us);
    use_stop(s);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("session_watch");
    TCase *watching = tcase_create("watching"), *traces = tcase_create("traces"),
          *silent = tcase_create("silence");
    tcase_add_checked_fixture(watching, use_setup, use_teardown);
    tcase_add_test(watching, several_watch_and_none_disturbs_another);
    tcase_add_test(watching, a_watcher_sees_that_the_worker_is_gone);
    tcase_add_test(watching, a_watcher_cannot_command);
    tcase_add_test(watching, more_watchers_than_there_is_room_for_are_turned_away);
    tcase_add_test(watching, a_run_lets_itself_be_watched);
    tcase_add_test(watching, who_talks_and_does_not_read_is_owed_little);
    tcase_add_test(watching, without_a_folder_of_our_own_nobody_watches);
    tcase_add_test(watching, what_is_neither_socket_nor_trace_is_refused);
    tcase_add_test(watching, who_does_not_answer_holds_nobody_up);
    suite_add_tcase(suite, watching);
    tcase_add_checked_fixture(traces, use_setup, use_teardown);
    tcase_add_loop_test(traces, a_trace_is_played_whole_and_in_its_time, 0, 2);
    tcase_add_test(traces, a_trace_that_was_cut_is_refused);
    suite_add_tcase(suite, traces);
    tcase_add_checked_fixture(silent, use_setup, use_teardown);
    tcase_set_timeout(silent, 120);
    tcase_add_test(silent, a_stopped_worker_is_silent_until_it_goes_on);
    suite_add_tcase(suite, silent);
    return suite;
}

USE_MAIN(make_suite)
