// SPDX-License-Identifier: Apache-2.0
#include "app/lua/watch.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_NS = 100000000,       // between two looks, of processor time or, after an interruption, of the clock
    LOOKS_AFTER_INTERRUPT = 5, // at one stretch of Lua before it counts as hanging
    HOSTED_LOOK_NS = 40000000, // a person waits before the screen
    HOSTED_LOOKS = 3,
    LINE_MAX_BYTES = 240
};

static script *_Atomic watched;
static int watcher;
static pthread_t recipe_thread;
static timer_t processor_timer, clock_timer;
static volatile sig_atomic_t interrupted, looks_left, stretch_seen;

// ---- the end of one that hangs ----------------------------------------------------------------------------------

static uint64_t lost_steps(const script *s)
{
    if (s->engine == NULL || !s->trained ||
        hr_knob_is(hr_engine_knobs(s->engine), HR_KNOB_DEVICE_KIND, "plan")) {
        return 0;
    }
    const uint64_t steps = hr_engine_steps(s->engine);
    return steps > s->saved_steps ? steps : 0;
}

// Lua stands in a function of its library that does not come back, so its stack stands still. The place is sent only when
// it is in a file that was opened as source. Flushed last: the reader of the output may be what it waits for.
static void end_hosted(script_stop why)
{
    static script_trace trace;
    char text[SCRIPT_TEXT_MAX], line[LINE_MAX_BYTES];
    script *s = watched;
    script_write_stop(s, why, text);
    script_trace_stack(s->running, &trace);
    const int length =
        snprintf(line, sizeof line, "%.120s:%d: a function of Lua's library did not come back (ended %s)\n",
                 trace.source, trace.line, text);
    const ssize_t written =
        write(STDERR_FILENO, line, length < LINE_MAX_BYTES ? (size_t)length : sizeof line - 1);
    (void)written;
    _exit(hr_status_exit_code(HR_LUA));
}

static void end_hanging(script_stop why)
{
    if (watcher < 0) {
        end_hosted(why);
    }
    static script_trace trace;
    const script_hang hang = {.why = (int)why, .interrupted = interrupted, .steps = lost_steps(watched)};
    bool told = write(watcher, &hang, sizeof hang) == (ssize_t)sizeof hang;
    script_trace_stack(watched->running, &trace);
    if (script_find_source(watched, trace.source) == NULL) {
        trace.source[0] = '\0';
    }
    told = told && write(watcher, &trace, sizeof trace) == (ssize_t)sizeof trace;
    if (!watched->printing) {
        (void)fflush(watched->out);
    }
    _exit(hr_status_exit_code(told ? HR_LUA : HR_STATE));
}

static bool hangs_after_interrupt(void)
{
    if (watched->stretch != stretch_seen) {
        stretch_seen = watched->stretch;
        looks_left = watcher < 0 ? HOSTED_LOOKS : LOOKS_AFTER_INTERRUPT;
    }
    return --looks_left <= 0;
}

// ---- signals ----------------------------------------------------------------------------------------------------

// They are the process's: any thread may be the one that gets them.
static bool is_recipe_thread(int number)
{
    if (pthread_equal(pthread_self(), recipe_thread)) {
        return true;
    }
    (void)pthread_kill(recipe_thread, number);
    return false;
}

static void on_look(int number)
{
    int before = errno;
    if (is_recipe_thread(number) && watched != NULL && !watched->in_engine) {
        if (script_lua_ns(watched) > watched->limits.lua_ns + script_grace_ns(&watched->limits)) {
            end_hanging(SCRIPT_TIME_IS_UP);
        }
        if (interrupted != 0 && hangs_after_interrupt()) {
            end_hanging(SCRIPT_INTERRUPTED);
        }
    }
    errno = before;
}

static struct itimerspec every(long ns)
{
    return (struct itimerspec){.it_interval = {.tv_nsec = ns}, .it_value = {.tv_nsec = ns}};
}

void script_interrupt(int number)
{
    const struct itimerspec look = every(watcher < 0 ? HOSTED_LOOK_NS : LOOK_NS);
    interrupted = number;
    if (watched != NULL) {
        (void)timer_settime(clock_timer, 0, &look, NULL);
    }
}

const volatile sig_atomic_t *script_interruption(void)
{
    return &interrupted;
}

void script_forget_interrupt(void)
{
    const struct itimerspec none = {.it_value = {.tv_nsec = 0}};
    interrupted = 0;
    if (watched != NULL) {
        (void)timer_settime(clock_timer, 0, &none, NULL);
    }
}

static void on_interrupt(int number, siginfo_t *info, void *machine)
{
    int before = errno;
    (void)number;
    (void)machine;
    script_interrupt(info->si_value.sival_int);
    errno = before;
}

const volatile sig_atomic_t *script_hear_interrupts(void)
{
    struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t heard;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigemptyset(&heard);
    (void)sigaddset(&heard, SIGUSR1);
    (void)pthread_sigmask(SIG_UNBLOCK, &heard, NULL);
    return &interrupted;
}

// ---- life -------------------------------------------------------------------------------------------------------

hr_status script_watch(script *s, int socket, hr_err *err)
{
    struct sigaction action = {.sa_handler = on_look, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    const uint64_t tenth_ns = script_grace_ns(&s->limits);
    const struct itimerspec look = every(tenth_ns < LOOK_NS ? (long)tenth_ns + 1 : LOOK_NS);
    watcher = socket;
    recipe_thread = pthread_self();
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGVTALRM, &action, NULL);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &processor_timer) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &clock_timer) != 0 ||
        timer_settime(processor_timer, 0, &look, NULL) != 0) {
        return HR_FAIL(err, STATE, "no timer that bounds a recipe's time was to be had: %s", strerror(errno));
    }
    watched = s;
    if (interrupted != 0) { // before there was a timer
        (void)timer_settime(clock_timer, 0, &look, NULL);
    }
    return HR_OK;
}

void script_watch_forget(void)
{
    const struct itimerspec never = {0};
    interrupted = 0;
    stretch_seen = -1;
    if (watched != NULL) {
        (void)timer_settime(clock_timer, 0, &never, NULL);
    }
}

void script_watch_end(void)
{
    if (watched != NULL) {
        watched = NULL;
        (void)timer_delete(processor_timer);
        (void)timer_delete(clock_timer);
    }
}
