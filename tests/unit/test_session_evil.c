// SPDX-License-Identifier: Apache-2.0
// Workers that lie, flood or do not listen: this program is the worker, and does one thing wrong once it was told what
// to train. Whoever holds the session is never held up, and nothing of the worker stays.
#include <fcntl.h>
#include <stdatomic.h>

#include "events/ring.h"
#include "session/messages.h"
#include "session/spawn.h"
#include "unit/session_use.h"

// ---- the worker -----------------------------------------------------------------------------------------------

static void wait_for_message(wire *w, wire_message *m)
{
    while (!wire_read(w, m)) {
        struct pollfd fd = {.fd = wire_fd(w), .events = POLLIN};
        (void)poll(&fd, 1, -1);
    }
}

static void talk_to_stderr(void)
{
    static char lines[4096];
    memset(lines, '\n', sizeof lines);
    memset(lines, 'x', sizeof lines / 2);
    for (;;) {
        (void)!write(STDERR_FILENO, lines, sizeof lines);
    }
}

static void talk_without_end(wire *w)
{
    static const uint64_t put = 1;
    for (;;) {
        (void)wire_write(w, MESSAGE_WAKE, &put, sizeof put, -1);
        while ((wire_events(w) & POLLOUT) != 0) {
            wire_flush(w);
        }
    }
}

// Works, to see it, and reads nothing.
static void go_on(wire *w)
{
    trace_ring *ring = NULL;
    if (trace_ring_create(16, &ring, NULL) != HR_OK ||
        !wire_write(w, MESSAGE_RING, NULL, 0, trace_ring_fd(ring))) {
        exit(1);
    }
    atomic_store(&trace_ring_heartbeat(ring)->state, HR_ENGINE_RUNNING);
    for (;;) {
        atomic_fetch_add(&trace_ring_heartbeat(ring)->beats, 1);
        usleep(1000);
    }
}

// Once it is to end, nothing is heard of it for longer than a worker without a save is given; then it ends well.
static void save_late(wire *w)
{
    static const unsigned late_us = 7000000;
    wire_message m;
    wire_out body = {0};
    put_ended(&body, HR_OK, &(hr_err){.status = HR_OK});
    do {
        wait_for_message(w, &m);
    } while (m.kind != MESSAGE_QUIT);
    usleep(late_us);
    (void)wire_write(w, MESSAGE_ENDED, body.data, (uint32_t)body.bytes, -1);
    wire_flush(w);
    exit(0);
}

typedef struct lie {
    message_kind kind;
    uint32_t bytes; // of a body of 0xff
    bool null_fd;   // /dev/null comes with it
    unsigned times;
} lie;

static const lie lies[] = {
    {MESSAGE_OPEN, 0, false, 1},   {MESSAGE_COMMAND, 0, false, 1}, {MESSAGE_ASK_HEAP, 0, false, 1},
    {MESSAGE_QUIT, 0, false, 1},   {MESSAGE_TAKEN, 8, false, 1},   {MESSAGE_KINDS, 0, false, 1},
    {MESSAGE_RING, 0, false, 1},   {MESSAGE_RING, 0, true, 1},     {MESSAGE_RING, 4, true, 1},
    {MESSAGE_WAKE, 8, true, 1},    {MESSAGE_WAKE, 7, false, 1},    {MESSAGE_ABOUT, 64, false, 1},
    {MESSAGE_REPORT, 4, false, 1}, {MESSAGE_ERROR, 0, false, 1},   {MESSAGE_HEAP, 16, false, 1},
    {MESSAGE_ENDED, 3, false, 1},  {MESSAGE_WAKE, 8, true, 300},
};
enum { LIES = sizeof lies / sizeof *lies };

static void tell(wire *w, const lie *l)
{
    static uint8_t body[64];
    memset(body, 0xff, sizeof body);
    for (unsigned k = 0; k < l->times; k++) {
        int fd = l->null_fd ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
        (void)wire_write(w, l->kind, body, l->bytes, fd);
        if (fd >= 0) {
            close(fd);
        }
    }
    (void)pause(); // until it is killed
}

static int serve_role(const char *role)
{
    wire *w = NULL;
    const char *how = getenv("WORKER_IS");
    const int socket = strcmp(role, "worker") == 0 ? child_begin() : -1;
    if (socket < 0 || how == NULL || wire_create(socket, MESSAGE_KINDS, &w, NULL) != HR_OK) {
        return 2;
    }
    wire_message open;
    wait_for_message(w, &open);
    if (strcmp(how, "talks") == 0) {
        talk_to_stderr();
    } else if (strcmp(how, "floods") == 0) {
        talk_without_end(w);
    } else if (strcmp(how, "saves late") == 0) {
        save_late(w);
    } else if (strcmp(how, "goes on") == 0 || strcmp(how, "goes on, saves") == 0) {
        go_on(w);
    } else if (strcmp(how, "leaves") == 0) {
        wire_destroy(w);
        (void)pause();
    } else {
        tell(w, &lies[strtoul(how, NULL, 10) % LIES]);
    }
    return 0;
}

// ---- whoever holds the session ----------------------------------------------------------------------------------

static hr_session *start_evil(const char *how)
{
    static const char *const saving[] = {"train.save=/tmp/never-written.safetensors", NULL};
    hr_knobs knobs = use_knobs(strstr(how, "saves") != NULL ? saving : NULL);
    hr_session_options options = use_options(&knobs);
    setenv("WORKER_IS", how, 1);
    return use_start(&options);
}

// Every call comes back, however much the other side has to say.
START_TEST(who_never_stops_talking_holds_nobody_up)
{
    static const char *const ways[] = {"talks", "floods"};
    hr_session *s = start_evil(ways[_i]);
    hr_session_end end;
    hr_event events[8];
    for (int k = 0; k < 40; k++) {
        uint64_t lost = 0;
        ck_assert(use_wait_readable(s, USE_WAIT_MS));
        ck_assert_uint_eq(hr_session_events(s, events, 8, &lost), 0);
        ck_assert_int_ne(hr_session_get_life(s, &end), HR_SESSION_ENDED);
    }
    hr_session_kill(s);
    end = use_wait_end(s);
    ck_assert(end.by_us);
    ck_assert_int_eq(end.signal, SIGKILL);
    ck_assert(_i == 1 || strstr(end.sentence, "the last it said: xxx") != NULL);
    use_stop(s);
}
END_TEST

START_TEST(an_endless_stderr_is_taken_in_pieces)
{
    child c = {.pid = -1, .pidfd = -1, .socket = -1, .errors = open("/dev/zero", O_RDONLY | O_CLOEXEC)};
    ck_assert_int_ge(c.errors, 0);
    child_listen(&c);
    ck_assert_int_ge(c.errors, 0); // to be listened to again
    ck_assert_uint_eq(strlen(c.line), sizeof c.line - 1);
    close(c.errors);
}
END_TEST

START_TEST(what_a_worker_may_not_say_ends_it)
{
    char how[8];
    (void)snprintf(how, sizeof how, "%d", _i);
    hr_session *s = start_evil(how);
    hr_session_end end = use_wait_end(s);
    ck_assert(end.by_us);
    ck_assert_str_eq(end.sentence, "the worker was ended from here: what it said was broken");
    use_stop(s);
}
END_TEST

// After more than HR_SESSION_SILENT_NS: one is waited for and ends well, the other for as long as one likes.
static void assert_waits_for_save(hr_session *late, hr_session *beating)
{
    hr_err err = {0};
    ck_assert(!hr_session_try_stop(late));
    ck_assert(!hr_session_try_stop(beating));
    for (int k = 0; k < USE_WAIT_MS / 20 && !hr_session_try_stop(late); k++) {
        use_pause(late);
    }
    ck_assert(hr_session_try_stop(late));
    ck_assert_msg(hr_session_stop(late, &err) == HR_OK, "%s", err.sentence);
    ck_assert(!hr_session_try_stop(beating));
    hr_session_kill(beating);
    ck_assert_int_eq(hr_session_stop(beating, &err), HR_STATE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "killed from here"));
}

// One beats, so that it is not silent, and reads nothing; another has closed its socket. Two more have a file to write.
START_TEST(who_cannot_be_reached_is_not_waited_for)
{
    hr_err err = {0};
    hr_session_end end;
    hr_session *leaver = start_evil("leaves"), *s = start_evil("goes on");
    hr_session *late = start_evil("saves late"), *beating = start_evil("goes on, saves");
    for (int k = 0; k < 50; k++) {
        use_pause(s);
        ck_assert_int_eq(hr_session_get_life(s, &end), HR_SESSION_LIVE);
        ck_assert_int_ne(hr_session_get_life(leaver, &end), HR_SESSION_ENDED);
    }
    ck_assert(!hr_session_try_stop(late));
    ck_assert(!hr_session_try_stop(beating));
    ck_assert_msg(hr_session_stop(s, &err) == HR_OK, "%s", err.sentence); // nobody waited for anything of it
    assert_waits_for_save(late, beating);
    end = use_wait_end(leaver);
    ck_assert(end.by_us);
    ck_assert_int_eq(end.signal, SIGKILL);
    use_stop(leaver);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("session_evil");
    TCase *evil = tcase_create("evil");
    tcase_add_checked_fixture(evil, use_setup, use_teardown);
    tcase_set_timeout(evil, 60);
    tcase_add_loop_test(evil, who_never_stops_talking_holds_nobody_up, 0, 2);
    tcase_add_test(evil, an_endless_stderr_is_taken_in_pieces);
    tcase_add_loop_test(evil, what_a_worker_may_not_say_ends_it, 0, LIES);
    tcase_add_test(evil, who_cannot_be_reached_is_not_waited_for);
    suite_add_tcase(suite, evil);
    return suite;
}

USE_MAIN(make_suite)
