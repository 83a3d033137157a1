// SPDX-License-Identifier: Apache-2.0
#include "base/last_words.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SPEAKING_S = 5 }; // a handler that does not come to an end is ended by the clock

static const struct {
    int number;
    const char *cause;
} ends[] = {
    {SIGABRT, "it gave up (SIGABRT)"},
    {SIGBUS, "a file of it is cut off, or cannot be read (SIGBUS)"},
    {SIGSEGV, "it touched memory that is not its own (SIGSEGV)"},
    {SIGILL, "it has no instructions for this processor, or is damaged (SIGILL)"},
    {SIGFPE, "it divided an integer by zero (SIGFPE)"},
};
enum { ENDS = sizeof ends / sizeof *ends };

static _Thread_local const last_words *innermost;
static struct sigaction before_us[ENDS];

static void say_sentence(const hr_err *err)
{
    (void)fprintf(stderr, "%s\n", err->sentence);
}

static void (*say)(const hr_err *err) = say_sentence;

void hr_err_at_end(void (*speaker)(const hr_err *err))
{
    say = speaker == NULL ? say_sentence : speaker;
}

// Not what a signal handler may do by the book; there is nothing left that it could spoil.
static void speak(const char *cause)
{
    const last_words *w = innermost;
    hr_err err;
    innermost = NULL;
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(SPEAKING_S);
    (void)HR_FAIL(&err, DEPENDENCY, "%s, which ended the process: %s", w->calling, cause);
    hr_err_try(&err, "%s", w->hint);
    say(&err);
    _exit(hr_status_exit_code(HR_DEPENDENCY));
}

// A fault, or the library's own giving up: not what another process has sent.
static bool is_own(const siginfo_t *info)
{
    return info->si_code > 0 || info->si_pid == getpid();
}

static void on_signal(int number, siginfo_t *info, void *machine)
{
    (void)machine;
    for (int k = 0; k < ENDS; k++) {
        if (ends[k].number != number) {
            continue;
        }
        if (innermost != NULL && is_own(info)) {
            speak(ends[k].cause);
        }
        (void)sigaction(number, &before_us[k], NULL);
        if (info->si_code <= 0) { // sent by a process; a fault comes again by itself
            (void)raise(number);
        }
    }
}

static void on_exit_called(void)
{
    if (innermost != NULL) {
        speak("it called exit");
    }
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&action.sa_mask);
    for (int k = 0; k < ENDS; k++) {
        (void)sigaction(ends[k].number, &action, &before_us[k]);
    }
    (void)atexit(on_exit_called);
}

void last_words_begin(last_words *w)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, install);
    w->outer = innermost;
    innermost = w;
}

void last_words_end(const last_words *w)
{
    innermost = w->outer;
}
