// SPDX-License-Identifier: Apache-2.0
// Workers killed at random moments, by every kind of signal, while they build, train, pause, save and take commands.
// After each: the session says what ended it, no process, descriptor, socket or half-written file stays, and a new worker
// goes on from the last save, not a step before it. Who gets to the end has the weights of a training that was never
// killed.
//
//   soak_worker_kills [--seconds S] [--seed N] [--kills K]     of build/release/headroom, or $HEADROOM_PROGRAM
//
// Until K kills (500) were made, or the time is up when S is not 0. One JSON object on stdout; exit 1 at the first
// finding, which stands on stderr.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "headroom/session.h"

enum { STEPS = 40, EVENTS = 1024, PRESETS = 3, TIMEOUT_S = 60, PATH_SIZE = 160 };

typedef struct subject {
    const char *preset;
    const char *pairs[6];
    char whole[HR_SHA256_TEXT_MAX]; // weights of a training that nobody killed
    double seconds;                 // that it took, from the start of its process
} subject;

static subject subjects[PRESETS] = {
    {.preset = "cifar10_separable_cnn_tiny",
     .pairs = {"device.kind=cpu", "optimizer.kind=adam", "threads.count=1"}},
    {.preset = "mlp_tiny", .pairs = {"device.kind=cpu", "optimizer.kind=momentum", "threads.count=1"}},
    {.preset = "resnet18_cifar_tiny",
     .pairs = {"device.kind=cpu", "execution.mode=graph", "threads.count=1"}},
};

static const int signals[] = {SIGKILL, SIGKILL, SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGTERM};

typedef struct soak {
    uint64_t seed, seconds, kills_wanted;
    uint64_t dice;
    uint64_t kills, starts, ends, in_step, between_steps, before_ring, resumed_steps;
    char folder[PATH_SIZE], save[PATH_SIZE];
    int fds;
} soak;

// What was read of one worker.
typedef struct seen {
    uint64_t first_step, last_step; // of STEP events; 0: none
    uint64_t saves;
    hr_engine_state state;
} seen;

static uint32_t roll(soak *k, uint32_t below)
{
    k->dice = k->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(k->dice >> 33) % below;
}

static double now_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void find(const soak *k, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

static void find(const soak *k, const char *format, ...)
{
    va_list words;
    (void)fprintf(stderr, "soak_worker_kills: seed %" PRIu64 ", after %" PRIu64 " kills: ", k->seed,
                  k->kills);
    va_start(words, format);
    (void)vfprintf(stderr, format, words);
    va_end(words);
    (void)fputc('\n', stderr);
    exit(1);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

// ---- one worker -----------------------------------------------------------------------------------------------

static void send_command(const soak *k, hr_session *s, hr_command_kind kind)
{
    const hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind};
    hr_session_end end;
    if (!hr_session_send(s, &c) && hr_session_get_life(s, &end) != HR_SESSION_ENDED) {
        find(k, "a command was not taken");
    }
}

static void read_events(const soak *k, hr_session *s, seen *n)
{
    static hr_event events[EVENTS];
    size_t got = EVENTS;
    while (got == EVENTS) {
        uint64_t lost = 0;
        got = hr_session_events(s, events, EVENTS, &lost);
        for (size_t e = 0; e < got; e++) {
            if (events[e].kind == HR_EVENT_STEP) {
                if (n->last_step > 0 && events[e].step != n->last_step + 1 && lost == 0) {
                    find(k, "step %u came behind step %" PRIu64, events[e].step, n->last_step);
                }
                n->last_step = events[e].step;
                n->first_step = n->first_step == 0 ? n->last_step : n->first_step;
            } else if (events[e].kind == HR_EVENT_SAVED) {
                n->saves++;
            } else if (events[e].kind == HR_EVENT_STATE) {
                n->state = (hr_engine_state)events[e].u.note.count;
            }
        }
    }
}

static void read_for(const soak *k, hr_session *s, seen *n, double seconds)
{
    const double until = now_seconds() + seconds;
    double left = seconds;
    while (left > 0) {
        struct pollfd fd = {.fd = hr_session_fd(s), .events = POLLIN};
        uint64_t version = 0;
        hr_report report;
        hr_err err;
        (void)poll(&fd, 1, (int)(left * 1000) + 1);
        read_events(k, s, n);
        if (hr_session_report(s, &version, &report)) {
            hr_report_deinit(&report);
        }
        version = 0;
        (void)hr_session_error(s, &version, &err);
        left = until - now_seconds();
    }
}

static pid_t only_child(const soak *k)
{
    char path[64];
    long pid = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%ld", &pid) != 1) {
        find(k, "the worker is not to be seen in %s", path);
    }
    (void)fclose(f);
    return (pid_t)pid;
}

static hr_session_end wait_end(const soak *k, hr_session *s, seen *n)
{
    hr_session_end end = {0};
    const double until = now_seconds() + TIMEOUT_S;
    while (hr_session_get_life(s, &end) != HR_SESSION_ENDED) {
        if (now_seconds() > until) {
            find(k, "the worker was killed, and its session does not say so");
        }
        (void)usleep(1000);
    }
    read_events(k, s, n);
    return end;
}

static hr_session *start(soak *k, const subject *t, bool resumes)
{
    char steps[64];
    hr_err err = {0};
    hr_session *s = NULL;
    hr_preset *preset = NULL;
    if (hr_preset_open(t->preset, false, &preset, NULL, &err) != HR_OK) {
        find(k, "%s", err.sentence);
    }
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_preset_close(preset);
    (void)snprintf(steps, sizeof steps, "train.steps=%d", STEPS);
    bool set = hr_knobs_set_pair(&knobs, steps, &err) == HR_OK;
    for (size_t p = 0; set && t->pairs[p] != NULL; p++) {
        set = hr_knobs_set_pair(&knobs, t->pairs[p], &err) == HR_OK;
    }
    const hr_session_options options = {.preset = t->preset,
                                        .knobs = &knobs,
                                        .resume_path = resumes ? k->save : NULL,
                                        .autosave_path = k->save,
                                        .watchable = true};
    if (!set || hr_session_start(&options, &s, &err) != HR_OK) {
        find(k, "%s", err.sentence);
    }
    k->starts++;
    return s;
}

static void stop(const soak *k, hr_session *s)
{
    hr_err err = {0};
    if (hr_session_stop(s, &err) != HR_OK) {
        find(k, "stopping: %s", err.sentence);
    }
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
        find(k, "a process stayed");
    }
    int fds = count_entries("/proc/self/fd");
    if (fds != k->fds) {
        find(k, "%d descriptors are open, %d were", fds, k->fds);
    }
}

// Only the save itself may lie in the folder, and no socket in its own.
static void check_leftovers(const soak *k)
{
    char sockets[2 * PATH_SIZE];
    (void)snprintf(sockets, sizeof sockets, "%s/headroom", k->folder);
    const int dots = 2, expected = dots + 1 + (access(k->save, F_OK) == 0); // the sockets' folder is one
    if (access(sockets, F_OK) == 0 && count_entries(sockets) != dots) {
        find(k, "a socket stayed in %s", sockets);
    }
    if (access(sockets, F_OK) == 0 && count_entries(k->folder) != expected) {
        find(k, "%s has %d entries, expected %d", k->folder, count_entries(k->folder), expected);
    }
}

static void check_end(soak *k, const hr_session_end *end, const seen *n, int number, uint64_t saved_before)
{
    if (end->signal != number || end->by_us || end->exit_code != -1) {
        find(k, "killed by %d; the session says %d, by us: %d, exit code %d", number, end->signal, end->by_us,
             end->exit_code);
    }
    if (end->step < n->last_step) {
        find(k, "it had done %" PRIu64 " steps, the end says %" PRIu64, n->last_step, end->step);
    }
    if (end->saved_step != HR_NONE && (end->saved_step < saved_before || end->saved_step > end->step)) {
        find(k, "the save is of step %" PRIu64 ", the one before was of %" PRIu64 ", done are %" PRIu64,
             end->saved_step, saved_before, end->step);
    }
    if (end->saved_step == HR_NONE && n->saves > 0) {
        find(k, "a save was told of, the end knows none");
    }
    k->in_step += end->instr != HR_NO_ID;
    k->between_steps += end->instr == HR_NO_ID;
    k->before_ring += end->step == 0 && end->saved_step == HR_NONE;
}

// ---- one training, killed until it is done ----------------------------------------------------------------------

static void train_whole(soak *k, subject *t)
{
    uint64_t version = 0;
    hr_report report;
    const double begin = now_seconds();
    hr_session *s = start(k, t, false);
    bool done = false;
    seen n = {.state = HR_ENGINE_RUNNING};
    send_command(k, s, HR_COMMAND_RUN);
    for (const double until = now_seconds() + TIMEOUT_S; !done && now_seconds() < until;) {
        hr_session_end end;
        read_for(k, s, &n, 0.02);
        if (hr_session_get_life(s, &end) == HR_SESSION_ENDED) {
            find(k, "%s: %s", t->preset, end.sentence);
        }
        version = 0;
        if (hr_session_report(s, &version, &report)) {
            done = report.train.steps == STEPS && report.train.weights_sha256[0] != '\0';
            memcpy(t->whole, report.train.weights_sha256, sizeof t->whole);
            hr_report_deinit(&report);
        }
    }
    t->seconds = now_seconds() - begin;
    stop(k, s);
    (void)unlink(k->save);
    if (!done) {
        find(k, "%s did not do its %d steps", t->preset, STEPS);
    }
}

// A share of the time that all of it takes, with pauses that save. True: all steps are done.
static bool work_a_while(soak *k, const subject *t, hr_session *s, seen *n)
{
    const double until = now_seconds() + t->seconds * roll(k, 1000) * 1e-3;
    double left = until - now_seconds();
    send_command(k, s, HR_COMMAND_RUN);
    while (left > 0) {
        const double piece = t->seconds * roll(k, 300) * 1e-3;
        read_for(k, s, n, piece < left ? piece : left);
        if (roll(k, 2) == 0) {
            send_command(k, s, HR_COMMAND_PAUSE);
            read_for(k, s, n, (double)roll(k, 20) * 1e-3);
            send_command(k, s, HR_COMMAND_RUN);
        }
        left = until - now_seconds();
    }
    return n->last_step == STEPS;
}

static void check_weights(soak *k, const subject *t, hr_session *s, seen *n)
{
    bool right = false, any = false;
    for (const double until = now_seconds() + TIMEOUT_S; !any && now_seconds() < until;) {
        uint64_t version = 0;
        hr_report report;
        if (hr_session_report(s, &version, &report)) {
            any = report.train.steps == STEPS && report.train.weights_sha256[0] != '\0';
            right = any && strcmp(report.train.weights_sha256, t->whole) == 0;
            hr_report_deinit(&report);
        }
        read_for(k, s, n, any ? 0 : 0.01);
    }
    if (!right) {
        find(k, "%s: the weights at step %d are %s those of a training that was never killed", t->preset,
             STEPS, any ? "not" : "not to be had to compare with");
    }
    k->ends++;
}

static bool is_over(const soak *k, double end)
{
    return k->kills >= k->kills_wanted || (k->seconds > 0 && now_seconds() >= end);
}

static void train_killed(soak *k, const subject *t, double end_time)
{
    uint64_t saved = 0; // step of the last save that is known of
    bool done = false;
    (void)unlink(k->save);
    while (!done && !is_over(k, end_time)) {
        const bool resumes = access(k->save, F_OK) == 0;
        seen n = {.state = HR_ENGINE_RUNNING};
        hr_session *s = start(k, t, resumes);
        done = work_a_while(k, t, s, &n);
        if (n.first_step != 0 && n.first_step <= saved) {
            find(k, "the save was of step %" PRIu64 ", training went on with step %" PRIu64, saved,
                 n.first_step);
        }
        k->resumed_steps += resumes && n.first_step > 0 ? n.first_step - 1 : 0;
        if (done) {
            check_weights(k, t, s, &n);
        }
        const int number = signals[roll(k, sizeof signals / sizeof *signals)];
        if (number == SIGKILL && roll(k, 4) == 0) {
            (void)kill(only_child(k), SIGSTOP); // a hanging one dies as well
        }
        (void)kill(only_child(k), number);
        hr_session_end end = wait_end(k, s, &n);
        check_end(k, &end, &n, number, saved);
        saved = end.saved_step != HR_NONE ? end.saved_step : saved;
        stop(k, s);
        k->kills++;
        check_leftovers(k);
    }
}

// ---- the program ----------------------------------------------------------------------------------------------

static bool read_options(soak *k, int argc, char **argv)
{
    for (int n = 1; n + 1 < argc; n += 2) {
        uint64_t value = strtoull(argv[n + 1], NULL, 10);
        if (strcmp(argv[n], "--seconds") == 0) {
            k->seconds = value;
        } else if (strcmp(argv[n], "--seed") == 0) {
            k->seed = value;
        } else if (strcmp(argv[n], "--kills") == 0) {
            k->kills_wanted = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1;
}

static void make_folder(soak *k)
{
    (void)snprintf(k->folder, sizeof k->folder, "/tmp/headroom-kills-XXXXXX");
    if (mkdtemp(k->folder) == NULL || setenv("XDG_RUNTIME_DIR", k->folder, 1) != 0) {
        find(k, "no folder of its own");
    }
    (void)snprintf(k->save, sizeof k->save, "%.128s/auto.safetensors", k->folder);
}

static void remove_folder(const soak *k)
{
    char sockets[2 * PATH_SIZE];
    (void)unlink(k->save);
    (void)snprintf(sockets, sizeof sockets, "%s/headroom", k->folder);
    (void)rmdir(sockets);
    if (rmdir(k->folder) != 0) {
        find(k, "%s is not empty at the end", k->folder);
    }
}

int main(int argc, char **argv)
{
    soak k = {.seed = 1, .kills_wanted = 500};
    if (!read_options(&k, argc, argv)) {
        (void)fputs("usage: soak_worker_kills [--seconds S] [--seed N] [--kills K]\n", stderr);
        return 2;
    }
    k.dice = k.seed;
    hr_preset_search_beside("build/release");
    (void)setenv("HEADROOM_PROGRAM", "build/release/headroom", 0);
    make_folder(&k);
    k.fds = count_entries("/proc/self/fd");
    const double end_time = now_seconds() + (double)k.seconds;
    for (uint32_t t = 0; t < PRESETS; t++) {
        train_whole(&k, &subjects[t]);
    }
    for (uint32_t t = 0; !is_over(&k, end_time); t = (t + 1) % PRESETS) {
        train_killed(&k, &subjects[t], end_time);
    }
    remove_folder(&k);
    (void)printf("{\"name\": \"worker_kills\", \"seed\": %" PRIu64 ", \"kills\": %" PRIu64
                 ", \"in_step\": %" PRIu64 ", \"between_steps\": %" PRIu64 ", \"before_a_step\": %" PRIu64
                 ", \"trainings_done\": %" PRIu64 ", \"steps_resumed_from\": %" PRIu64 ", \"findings\": 0}\n",
                 k.seed, k.kills, k.in_step, k.between_steps, k.before_ring, k.ends, k.resumed_steps);
    return 0;
}
