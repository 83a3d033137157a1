// SPDX-License-Identifier: Apache-2.0
// The process that a person started: it hands a recipe's process its limits and the person's signals, and has the last
// word where that process cannot speak any more.
#include "app/lua/recipe_process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/child.h"

#include "app/lua/lua_script.h"

enum {
    HINT_MS = 2000, // after the first signal: what it waits for
    FLUSH_MS = 300, // for what a recipe that hangs has printed before
    END_MS = 3000,  // between the end of its socket and its own
    TEXT_MAX = 256,
    BY_SIGNAL = 128, // of an exit code, as a shell says it
};

typedef struct watching {
    const char *file;
    const script_limits *limits;
    hr_child *child;
    recipe_signals signals;
    unsigned heard;
    bool hinted, killed;
} watching;

// ---- signals ----------------------------------------------------------------------------------------------------

// What we were started to ignore (nohup) stays ignored.
static void choose_signals(sigset_t *set)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    (void)sigemptyset(set);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct sigaction now;
        if (sigaction(numbers[k], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
            (void)sigaddset(set, numbers[k]);
        }
    }
}

hr_status recipe_signals_begin(recipe_signals *signals, hr_err *err)
{
    sigset_t blocked;
    choose_signals(&signals->asked_by);
    blocked = signals->asked_by;
    (void)sigaddset(&blocked, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &blocked, &signals->before);
    signals->fd = signalfd(-1, &signals->asked_by, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0) {
        return HR_FAIL(err, STATE, "no descriptor for signals was to be had: %s", strerror(errno));
    }
    return HR_OK;
}

void recipe_signals_end(recipe_signals *signals)
{
    if (signals->fd >= 0) {
        (void)close(signals->fd);
    }
    (void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
}

int recipe_signals_next(const recipe_signals *signals)
{
    struct signalfd_siginfo info;
    return read(signals->fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

// The first is handed on. A terminal that closes and a `timeout` say theirs twice; only a second Ctrl-C is meant.
static void hear(watching *w)
{
    for (int number = recipe_signals_next(&w->signals); number != 0;
         number = recipe_signals_next(&w->signals)) {
        if (w->heard++ == 0) {
            hr_child_signal(w->child, SIGUSR1, number);
        } else if (number == SIGINT) {
            w->killed = true;
            hr_child_kill(w->child);
        }
    }
}

static void hint(watching *w)
{
    w->hinted = true;
    fputs("headroom: the call of the engine under way is finished first; Ctrl-C again ends it at once\n",
          stderr);
}

// Until the recipe's process says something or ends.
static void attend(watching *w)
{
    struct pollfd fds[] = {{.fd = hr_child_socket(w->child), .events = POLLIN},
                           {.fd = w->signals.fd, .events = POLLIN}};
    do {
        int ready = poll(fds, 2, w->heard > 0 && !w->hinted ? HINT_MS : -1);
        if (ready == 0) {
            hint(w);
        } else if (ready > 0 && fds[1].revents != 0) {
            hear(w);
        }
    } while (fds[0].revents == 0);
}

// ---- the last word ----------------------------------------------------------------------------------------------

static int say(const hr_err *err)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    fputs(text, stderr);
    return hr_status_exit_code(err->status);
}

static void terminate_texts(script_trace *trace)
{
    trace->source[SCRIPT_PATH_MAX - 1] = '\0';
    trace->frame_count = trace->frame_count < SCRIPT_FRAMES_MAX ? trace->frame_count : SCRIPT_FRAMES_MAX;
    for (unsigned k = 0; k < trace->frame_count; k++) {
        trace->frames[k][SCRIPT_FRAME_MAX - 1] = '\0';
    }
}

// A file of which only the name is known.
static void name_source(script *s, const char *name)
{
    script_source *source = calloc(1, sizeof *source);
    char *text = calloc(1, 1);
    if (source == NULL || text == NULL) {
        free(source);
        free(text);
        return;
    }
    (void)snprintf(source->name, sizeof source->name, "%s", name);
    source->text = text;
    source->next = s->sources;
    s->sources = source;
}

// The lines around the place; its name alone where they cannot be read a second time (a pipe).
static void read_lines(script *s)
{
    const script_source *source = NULL;
    struct stat info;
    const char *name = s->trace.source;
    bool again = name[0] != '\0' && stat(name, &info) == 0 && S_ISREG(info.st_mode);
    if (name[0] != '\0' && (!again || script_read_source(s, name, &source, NULL) != HR_OK)) {
        name_source(s, name);
    }
}

int recipe_report_hang(int socket, const script_hang *hang, const script_limits *limits, bool typed)
{
    const volatile sig_atomic_t number = hang->interrupted;
    script s = {.limits = *limits, .notes = stderr, .interrupted = &number, .typed = typed};
    s.stop = hang->why == SCRIPT_INTERRUPTED ? SCRIPT_INTERRUPTED : SCRIPT_TIME_IS_UP;
    script_write_stop(&s, s.stop, s.stop_text);
    if (recv(socket, &s.trace, sizeof s.trace, MSG_WAITALL) != (ssize_t)sizeof s.trace) {
        s.trace = (script_trace){0};
    }
    terminate_texts(&s.trace);
    if (typed) {
        name_source(&s, s.trace.source);
    } else {
        read_lines(&s);
    }
    int code = script_report_error(&s, LUA_OK, stderr);
    script_close(&s);
    if (hang->steps > 0) {
        fprintf(stderr,
                "headroom: ended after step %llu, not saved: a callback did not come back to the run.\n",
                (unsigned long long)hang->steps);
    }
    return code == hr_status_exit_code(HR_INTERRUPTED) ? BY_SIGNAL + number : code;
}

static int report_kill(const watching *w)
{
    fprintf(stderr,
            "headroom: interrupted: %s was killed by the second Ctrl-C, nothing more was saved\n"
            "  try: once, and a run under way is saved where hr.knobs.train.save is set\n",
            w->file);
    return hr_status_exit_code(HR_INTERRUPTED);
}

static int report_death(const watching *w, int signal)
{
    char what[TEXT_MAX];
    hr_err err;
    if (signal == SIGPIPE) { // its output is no longer read: nothing to say
        return BY_SIGNAL + signal;
    }
    hr_child_describe_end(w->child, what, sizeof what);
    (void)HR_FAIL(&err, LUA, "%.300s: its process was %s", w->file, what);
    hr_err_try(&err, "headroom run PRESET with the recipe's knobs, to see whether it ends there too");
    return say(&err);
}

static int conclude(watching *w)
{
    script_hang hang;
    int signal = 0;
    bool hangs = recv(hr_child_socket(w->child), &hang, sizeof hang, MSG_WAITALL) == (ssize_t)sizeof hang;
    if (!hr_child_wait(w->child, hangs ? FLUSH_MS : END_MS)) {
        hr_child_kill(w->child);
        (void)hr_child_wait(w->child, END_MS);
    }
    int code = hr_child_exit_code(w->child, &signal);
    return hangs       ? recipe_report_hang(hr_child_socket(w->child), &hang, w->limits, false)
           : w->killed ? report_kill(w)
           : code >= 0 ? code
                       : report_death(w, signal);
}

// ---- life -------------------------------------------------------------------------------------------------------

static hr_status start(watching *w, int argc, char **argv, hr_err *err)
{
    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (words == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a recipe's process");
    }
    words[0] = (char *)(uintptr_t)w->file;
    for (int k = 0; k < argc; k++) {
        words[k + 1] = argv[k];
    }
    hr_status status = recipe_signals_begin(&w->signals, err);
    if (status == HR_OK) {
        status = hr_child_start("recipe", words, &w->child, err);
    }
    free(words);
    HR_TRY(status);
    (void)send(hr_child_socket(w->child), w->limits, sizeof *w->limits, MSG_NOSIGNAL); // or its end is seen
    return HR_OK;
}

int script_run_process(const char *file, int argc, char **argv, const script_limits *limits)
{
    watching w = {.file = file, .limits = limits, .signals.fd = -1};
    hr_err err = {0};
    int code = 0;
    (void)fflush(stdout);
    if (start(&w, argc, argv, &err) == HR_OK) {
        attend(&w);
        code = conclude(&w);
    } else {
        code = say(&err);
    }
    hr_child_destroy(w.child);
    recipe_signals_end(&w.signals);
    return code;
}

int lua_script_run(const char *file, int argc, char **argv)
{
    return script_run_process(file, argc, argv, &script_default_limits);
}
