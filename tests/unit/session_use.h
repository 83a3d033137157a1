// SPDX-License-Identifier: Apache-2.0
// Sessions for tests: this program is its own worker. Include it once.
#ifndef TESTS_SESSION_USE_H
#define TESTS_SESSION_USE_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "headroom/session.h"

#include "base/clock.h"

enum { USE_WAIT_MS = 60000, USE_EVENTS = 512 };

static char use_folder[] = "/tmp/headroom-session-XXXXXX";
static char use_preset[64];
static int use_fds;

static const char use_preset_text[] = "device: {kind: reference, vram: 4MiB}\n"
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

static inline int use_open_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static inline const char *use_file(const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", use_folder, name);
    return path;
}

static inline void use_setup(void)
{
    char runtime[128];
    strcpy(use_folder + sizeof use_folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(use_folder));
    (void)snprintf(use_preset, sizeof use_preset, "%s/tiny.yaml", use_folder);
    FILE *f = fopen(use_preset, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(use_preset_text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_ptr_nonnull(getcwd(runtime, sizeof runtime));
    (void)strncat(runtime, "/presets", sizeof runtime - strlen(runtime) - 1);
    setenv("HEADROOM_DATA", runtime, 1);
    setenv("XDG_RUNTIME_DIR", use_file("run", runtime), 1);
    ck_assert_int_eq(mkdir(runtime, 0700), 0);
    use_fds = use_open_fds();
}

// Nothing of a session stays: no descriptor, no child, no socket.
static inline void use_teardown(void)
{
    char command[160];
    ck_assert_int_eq(use_open_fds(), use_fds);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    (void)snprintf(command, sizeof command, "! ls %s/run/headroom 2>/dev/null | grep .", use_folder);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", use_folder);
    ck_assert_int_eq(system(command), 0);
}

static inline hr_knobs use_knobs(const char *const *pairs)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    ck_assert_msg(hr_preset_open(use_preset, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_preset_close(preset);
    for (; pairs != NULL && *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    return knobs;
}

static inline hr_session_options use_options(const hr_knobs *knobs)
{
    return (hr_session_options){.preset = use_preset, .knobs = knobs};
}

static inline hr_session *use_start(const hr_session_options *options)
{
    hr_err err = {0};
    hr_session *s = NULL;
    ck_assert_msg(hr_session_start(options, &s, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_ge(hr_session_fd(s), 0);
    return s;
}

static inline void use_send(hr_session *s, hr_command_kind kind, uint64_t count, hr_knob_id knob,
                            const char *words)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind, .count = count, .knob = knob};
    (void)snprintf(c.text, sizeof c.text, "%s", words);
    ck_assert(hr_session_send(s, &c));
}

static inline void use_run(hr_session *s, uint64_t steps)
{
    use_send(s, HR_COMMAND_RUN, steps, 0, "");
}

// What was read so far.
typedef struct seen {
    uint64_t events, lost, next_seq, steps;
    uint64_t saved_step; // of the last save
    uint32_t step;       // of the last event
    double loss;
    hr_engine_state state;
    uint64_t in_use_bytes, time_ns;
} seen;

static inline void use_note(seen *n, const hr_event *e)
{
    ck_assert_uint_ge(e->seq, n->next_seq);
    ck_assert_uint_ge(e->time_ns, n->time_ns);
    n->next_seq = e->seq + 1;
    n->time_ns = e->time_ns;
    n->step = e->step;
    n->events++;
    if (e->kind == HR_EVENT_STEP) {
        n->steps++;
        n->loss = e->u.step.loss;
    } else if (e->kind == HR_EVENT_SAVED) {
        n->saved_step = e->u.note.count;
    } else if (e->kind == HR_EVENT_STATE) {
        n->state = (hr_engine_state)e->u.note.count;
    } else if (e->kind >= HR_EVENT_ALLOC && e->kind <= HR_EVENT_SHRINK) {
        n->in_use_bytes = e->u.memory.in_use_bytes;
    }
}

static inline void use_read(hr_session *s, seen *n)
{
    hr_event events[USE_EVENTS];
    uint64_t lost = 0;
    for (size_t got = USE_EVENTS; got == USE_EVENTS;) {
        uint64_t expected = n->next_seq;
        got = hr_session_events(s, events, USE_EVENTS, &lost);
        n->lost += lost;
        ck_assert(lost > 0 || got == 0 || n->events == 0 || events[0].seq == expected);
        for (size_t k = 0; k < got; k++) {
            use_note(n, &events[k]);
        }
    }
}

static inline bool use_wait_readable(hr_session *s, int ms)
{
    struct pollfd fd = {.fd = hr_session_fd(s), .events = POLLIN};
    return poll(&fd, 1, ms) == 1;
}

// For who waits for one thing while others lie there.
static inline void use_pause(hr_session *s)
{
    (void)use_wait_readable(s, 20);
    usleep(2000);
}

// Reads until `done` says so. Reports, errors and ends that nobody asked for keep the descriptor readable: all are taken.
static inline void use_read_until(hr_session *s, seen *n, bool (*done)(const seen *n, uint64_t number),
                                  uint64_t number)
{
    const uint64_t until_ns = clock_now_ns() + (uint64_t)USE_WAIT_MS * 1000000;
    while (!done(n, number) && clock_now_ns() < until_ns) {
        static uint64_t ignored;
        hr_report report;
        hr_err err;
        hr_session_end end;
        (void)use_wait_readable(s, 1000);
        use_read(s, n);
        ignored = 0;
        if (hr_session_report(s, &ignored, &report)) {
            hr_report_deinit(&report);
        }
        ignored = 0;
        (void)hr_session_error(s, &ignored, &err);
        if (hr_session_get_life(s, &end) == HR_SESSION_ENDED) {
            use_read(s, n);
            ck_assert_msg(done(n, number), "ended: %s", end.sentence);
        }
    }
    ck_assert(done(n, number));
}

static inline bool use_has_steps(const seen *n, uint64_t number)
{
    return n->steps >= number || (n->lost > 0 && n->step >= number);
}

static inline bool use_is_in(const seen *n, uint64_t state)
{
    return n->state == (hr_engine_state)state && n->events > 0;
}

// The save of a training that came to rest at `step`: the first one may have come sooner.
static inline bool use_has_saved(const seen *n, uint64_t step)
{
    return n->saved_step >= step;
}

static inline hr_session_end use_wait_end(hr_session *s)
{
    hr_session_end end = {0};
    const uint64_t until_ns = clock_now_ns() + (uint64_t)USE_WAIT_MS * 1000000;
    hr_session_life life = HR_SESSION_LIVE;
    while (life != HR_SESSION_ENDED && clock_now_ns() < until_ns) {
        (void)use_wait_readable(s, 100);
        life = hr_session_get_life(s, &end);
    }
    ck_assert_int_eq(life, HR_SESSION_ENDED);
    return end;
}

static inline void use_stop(hr_session *s)
{
    hr_err err = {0};
    ck_assert_msg(hr_session_stop(s, &err) == HR_OK, "%s", err.sentence);
}

static inline bool use_is_error(hr_session *s, hr_err *err)
{
    uint64_t version = 0;
    return hr_session_error(s, &version, err);
}

static inline hr_session *use_start_inline(const hr_session_options *options)
{
    hr_err err = {0};
    hr_session *s = NULL;
    ck_assert_msg(hr_session_start_inline(options, &s, &err) == HR_OK, "%s", err.sentence);
    return s;
}

static inline void use_run_inline(hr_session *s, uint64_t steps)
{
    use_run(s, steps);
    while (hr_session_advance(s, 1)) {
    }
}

static inline hr_err use_wait_error(hr_session *s)
{
    hr_err err = {0};
    for (int k = 0; k < USE_WAIT_MS / 20 && !use_is_error(s, &err); k++) {
        use_pause(s);
    }
    ck_assert_int_ne(err.status, HR_OK);
    return err;
}

// The process that /proc says is our only child; 0: there is none.
static inline pid_t use_find_child(void)
{
    char path[64];
    long pid = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "r");
    bool found = f != NULL && fscanf(f, "%ld", &pid) == 1;
    if (f != NULL) {
        fclose(f);
    }
    return found ? (pid_t)pid : 0;
}

static inline pid_t use_child(void)
{
    pid_t pid = use_find_child();
    ck_assert_int_gt(pid, 0);
    return pid;
}

#define USE_MAIN(suite_function)                                                                             \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        if (argc > 1 && argv[1][0] == '@') {                                                                 \
            static const int own[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};                             \
            for (size_t k = 0; k < sizeof own / sizeof *own; k++) {                                          \
                (void)signal(own[k], SIG_DFL); /* a sanitizer makes exit codes of them */                    \
            }                                                                                                \
            return serve_role(argv[1] + 1);                                                                  \
        }                                                                                                    \
        setenv("HEADROOM_PROGRAM", "/proc/self/exe", 1);                                                     \
        SRunner *runner = srunner_create(suite_function());                                                  \
        srunner_run_all(runner, CK_NORMAL);                                                                  \
        int failed = srunner_ntests_failed(runner);                                                          \
        srunner_free(runner);                                                                                \
        return failed != 0;                                                                                  \
    }

#endif
