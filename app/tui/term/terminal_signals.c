// SPDX-License-Identifier: Apache-2.0
// Signals: those that are asked for go through a pipe to the loop; those of a crash give the terminal back first.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app/tui/term/terminal_state.h"

enum { CRASH_STACK_BYTES = 1 << 16, RESTORE_MAX = 256 };

static struct {
    int pipe[2];
    sigset_t mask_before;
    volatile sig_atomic_t ending;  // SIGTERM or SIGHUP that was not read yet
    int64_t ending_ms;             // when the last one came, read or not; 0: none
    volatile sig_atomic_t stopped; // by ourselves
    char restore[RESTORE_MAX];     // what gives the screen back
    size_t restore_bytes;
    int stderr_kept; // file descriptor, −1
    void (*before)(void *);
    void (*after)(void *);
    void *context;
} s = {.pipe = {-1, -1}, .stderr_kept = -1};

static unsigned char crash_stack[CRASH_STACK_BYTES]; // where a stack overflow can be told of

// ---- crashes: only calls that are safe in a signal handler ----------------------------------------------------

// What was written to stderr meanwhile often says why.
static void tell_stderr(int fd)
{
    char text[1024];
    ssize_t got;
    for (off_t at = 0; (got = pread(s.stderr_kept, text, sizeof text, at)) > 0; at += got) {
        terminal_write(fd, text, (size_t)got);
    }
}

// SIGTTOU is held back here, so that a process in the background can do this too.
static void give_back(void)
{
    const bool takes = terminal_takes_now();
    if (takes) {
        terminal_write(terminal_now.out, s.restore, s.restore_bytes);
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal_now.before);
    if (takes && s.stderr_kept >= 0) {
        tell_stderr(terminal_now.stderr_before);
    }
}

static void end_by(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void on_fatal(int number)
{
    static const char note[] = "\r\nheadroom: it crashed; the terminal is restored\r\n";
    give_back();
    int fd = terminal_now.stderr_before >= 0 ? terminal_now.stderr_before : STDERR_FILENO;
    terminal_write(fd, note, sizeof note - 1);
    end_by(number);
}

// ---- the pipe -------------------------------------------------------------------------------------------------

static void tell(int number)
{
    int before = errno;
    unsigned char byte = (unsigned char)number;
    (void)!write(s.pipe[1], &byte, 1);
    errno = before;
}

static void on_told(int number)
{
    tell(number);
}

// Whoever is not listened to comes a second time. A line that drops sends twice at once, by the shell and by the kernel, and
// what is kept at the first must not be lost by the second.
static void on_ending(int number)
{
    enum { LISTENED_TO_MS = 500 };
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); // safe in a handler: POSIX says so
    const int64_t now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (s.ending_ms != 0 && now_ms - s.ending_ms < LISTENED_TO_MS) {
        return;
    }
    if (s.ending) {
        give_back();
        end_by(number);
    }
    s.ending_ms = now_ms;
    s.ending = 1;
    tell(number);
}

static void on_continued(int number)
{
    if (!s.stopped) {
        tell(number);
    }
}

// ---- handlers -------------------------------------------------------------------------------------------------

typedef struct catch_row {
    int number;
    void (*handler)(int);
    int flags;
} catch_row;

static const catch_row catches[] = {
    {SIGINT, on_told, SA_RESTART},    {SIGTSTP, on_told, SA_RESTART},  {SIGCONT, on_continued, SA_RESTART},
    {SIGTERM, on_ending, SA_RESTART}, {SIGHUP, on_ending, SA_RESTART}, {SIGSEGV, on_fatal, SA_ONSTACK},
    {SIGBUS, on_fatal, SA_ONSTACK},   {SIGFPE, on_fatal, SA_ONSTACK},  {SIGILL, on_fatal, SA_ONSTACK},
    {SIGABRT, on_fatal, SA_ONSTACK},
};

enum { CATCH_COUNT = sizeof catches / sizeof *catches };

static struct sigaction before_us[CATCH_COUNT];

static void watch_stack(bool on)
{
    stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof crash_stack, .ss_flags = on ? 0 : SS_DISABLE};
    sigaltstack(&stack, NULL);
}

static void add_restore(const char *sequence)
{
    size_t length = strlen(sequence);
    if (s.restore_bytes + length <= sizeof s.restore) {
        memcpy(s.restore + s.restore_bytes, sequence, length);
        s.restore_bytes += length;
    }
}

static void prepare_restore(void)
{
    static const char *const names[] = {"rmkx", "sgr0", "cnorm", "rmcup"};
    s.restore_bytes = 0;
    add_restore(terminal_now.can.sync ? "\033[?2026l" : "");
    add_restore(terminal_now.can.paste ? "\033[?2004l" : "");
    add_restore(terminfo_string("kmous")[0] != '\0' ? "\033[?1006l\033[?1000l" : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        add_restore(terminfo_string(names[i]));
    }
}

hr_status terminal_signals_open(hr_err *err)
{
    if (pipe2(s.pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        return HR_FAIL(err, TERMINAL, "no pipe for signals: %s", strerror(errno));
    }
    for (size_t i = 0; i < CATCH_COUNT; i++) {
        sigaction(catches[i].number, NULL, &before_us[i]);
    }
    sigset_t held; // everywhere but in poll, so that none falls between a check and the wait
    sigemptyset(&held);
    sigaddset(&held, SIGWINCH);
    sigaddset(&held, SIGTSTP);
    sigaddset(&held, SIGINT);
    sigprocmask(SIG_BLOCK, &held, &s.mask_before);
    s.ending = s.stopped = 0;
    s.ending_ms = 0;
    return HR_OK;
}

void terminal_signals_catch(void)
{
    prepare_restore();
    watch_stack(true);
    s.stderr_kept = terminal_now.stderr_kept == NULL ? -1 : fileno(terminal_now.stderr_kept);
    for (size_t i = 0; i < CATCH_COUNT; i++) {
        bool ignored = before_us[i].sa_handler == SIG_IGN; // nohup, or a shell without jobs
        struct sigaction action = {.sa_handler = ignored ? SIG_IGN : catches[i].handler,
                                   .sa_flags = catches[i].flags};
        sigemptyset(&action.sa_mask);
        sigaddset(&action.sa_mask, SIGTTOU);
        sigaction(catches[i].number, &action, NULL);
    }
}

// After a first signal to end, saves go on behind the terminal; later signals change nothing.
void terminal_signals_close(void)
{
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < CATCH_COUNT; i++) {
        const bool told = s.ending_ms != 0 && catches[i].handler == on_ending;
        sigaction(catches[i].number, told ? &ignored : &before_us[i], NULL);
    }
    watch_stack(false);
    sigprocmask(SIG_SETMASK, &s.mask_before, NULL);
    s.stderr_kept = -1;
    for (int i = 0; i < 2; i++) {
        if (s.pipe[i] >= 0) {
            close(s.pipe[i]);
        }
        s.pipe[i] = -1;
    }
}

// ---- stopping -------------------------------------------------------------------------------------------------

static void stop_process(void)
{
    struct sigaction stop = {.sa_handler = SIG_DFL}, ours;
    sigset_t only, mask;
    sigemptyset(&stop.sa_mask);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    sigaction(SIGTSTP, &stop, &ours);
    s.stopped = 1;
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &only, &mask); // stops here, and goes on from here
    sigprocmask(SIG_SETMASK, &mask, NULL);
    s.stopped = 0;
    sigaction(SIGTSTP, &ours, NULL);
}

static void leave(void)
{
    terminal_brackets(false);
    endwin(); // alternate screen, cursor, keypad, mouse, modes
}

// The shell may have changed the modes, and a person the window.
static void come_back(void)
{
    struct winsize size;
    tcgetattr(STDIN_FILENO, &terminal_now.before);
    def_shell_mode();
    reset_prog_mode();
    terminal_brackets(true);
    if (ioctl(terminal_now.out, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        resizeterm(size.ws_row, size.ws_col);
    }
    clearok(curscr, TRUE);
    terminal_now.resumed = true;
}

void terminal_on_suspend(void (*before)(void *), void (*after)(void *), void *context)
{
    s.before = before;
    s.after = after;
    s.context = context;
}

void terminal_suspend(void)
{
    if (s.before != NULL) {
        s.before(s.context);
    }
    leave();
    stop_process();
    come_back();
    if (s.after != NULL) {
        s.after(s.context);
    }
}

// Returns its exit status.
static int wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        stop_process();
        (void)kill(child, SIGCONT);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Both are of the terminal's group: what its user told the program is not for us.
static void forget_told(void)
{
    static const struct timespec now = {0};
    sigset_t told;
    sigemptyset(&told);
    sigaddset(&told, SIGINT);
    sigaddset(&told, SIGTSTP);
    while (sigtimedwait(&told, NULL, &now) > 0) {
    }
}

int terminal_lend(char *const argv[])
{
    posix_spawnattr_t how;
    sigset_t none;
    pid_t child;
    int status = 127;
    sigemptyset(&none);
    if (posix_spawnattr_init(&how) != 0) {
        return status;
    }
    leave();
    bool made = posix_spawnattr_setsigmask(&how, &none) == 0 &&
                posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK) == 0;
    if (made && posix_spawnp(&child, argv[0], NULL, &how, argv, environ) == 0) {
        status = wait_for(child);
    }
    forget_told();
    come_back();
    (void)posix_spawnattr_destroy(&how);
    return status;
}

// ---- reading them ---------------------------------------------------------------------------------------------

int terminal_signal_fd(void)
{
    return s.pipe[0];
}

int terminal_signal(void)
{
    unsigned char byte;
    if (read(s.pipe[0], &byte, 1) != 1) {
        return 0;
    }
    switch (byte) {
    case SIGTSTP:
        terminal_suspend();
        return 0;
    case SIGCONT: // stopped from outside, where nothing could be given back
        endwin();
        come_back();
        return 0;
    case SIGTERM:
    case SIGHUP:
        s.ending = 0;
        return byte;
    default:
        return byte;
    }
}

const sigset_t *terminal_poll_mask(void)
{
    return &s.mask_before;
}
