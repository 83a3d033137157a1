// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/vterm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>
#include <wchar.h>

enum { TIMEOUT_MS = 10000, LOG_MAX = 1 << 24 };

struct vt_run {
    VTerm *terminal;
    VTermScreen *screen;
    int master, from_shell, to_shell;
    pid_t shell, program;
    int rows, columns;
    int status;
    bool changed, ended;
    struct termios before;
    bool modes[VT_PRIVATE_MODES];
    char *log; // all that was written
    size_t log_bytes, scanned;
    vt_cell *cells;
};

static void need(bool good, const char *what)
{
    if (!good) {
        perror(what);
        abort();
    }
}

// ---- the shell ------------------------------------------------------------------------------------------------

typedef struct shell_news {
    pid_t pid; // of the program, in the first one
    int status;
} shell_news;

static void exec_program(const vt_setup *setup)
{
    static const int defaults[] = {SIGTTOU, SIGTTIN, SIGTSTP, SIGINT, SIGHUP, SIGTERM, SIGPIPE};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        signal(defaults[i], SIG_DFL);
    }
    setenv("TERM", setup->type == NULL ? "xterm-256color" : setup->type, 1);
    unsetenv("TMUX");
    unsetenv("STY");
    unsetenv("NO_COLOR");
    unsetenv("COLORFGBG");
    setenv("LC_ALL", "C.UTF-8", 1);
    for (size_t i = 0; setup->environment != NULL && setup->environment[i] != NULL; i++) {
        char *pair = strdup(setup->environment[i]); // putenv keeps it
        need(pair != NULL && putenv(pair) == 0, "putenv");
    }
    char *argv[16];
    size_t count = 0;
    for (; setup->command[count] != NULL && count < 15; count++) {
        argv[count] = strdup(setup->command[count]);
    }
    argv[count] = NULL;
    execv(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

static pid_t start_program(const vt_setup *setup)
{
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid()); // SIGTTOU is still ignored
        exec_program(setup);
    }
    setpgid(pid, pid);
    return pid;
}

// The ends of other terminals: they would not hang up while somebody has them open.
static void close_others(int in, int out)
{
    for (int fd = STDERR_FILENO + 1; fd < 256; fd++) {
        if (fd != in && fd != out) {
            close(fd);
        }
    }
}

// Tells of every stop and the end of the program, and continues it for each byte it is sent.
static void be_shell(const vt_setup *setup, int in, int out)
{
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    char go;
    need(read(in, &go, 1) == 1, "shell");
    pid_t program = start_program(setup);
    shell_news news = {program, 0};
    (void)!write(out, &news, sizeof news);
    for (;;) {
        if (waitpid(program, &news.status, WUNTRACED) != program) {
            _exit(1);
        }
        if (!WIFSTOPPED(news.status)) {
            break;
        }
        tcsetpgrp(STDIN_FILENO, getpgrp());
        (void)!write(out, &news, sizeof news);
        char byte;
        if (read(in, &byte, 1) == 1) {
            tcsetpgrp(STDIN_FILENO, program);
        }
        kill(-program, SIGCONT);
    }
    tcsetpgrp(STDIN_FILENO, getpgrp());
    (void)!write(out, &news, sizeof news);
    char byte;
    (void)!read(in, &byte, 1); // the terminal stays open until it has been looked at
    _exit(0);
}

// ---- the terminal ---------------------------------------------------------------------------------------------

static VTerm *terminal_new(int rows, int columns, VTermScreen **screen)
{
    VTerm *terminal = vterm_new(rows, columns);
    need(terminal != NULL, "vterm_new");
    vterm_set_utf8(terminal, 1);
    *screen = vterm_obtain_screen(terminal);
    vterm_screen_enable_altscreen(*screen, 1);
    vterm_screen_reset(*screen, 1);
    return terminal;
}

vt_run *vt_start(const vt_setup *setup)
{
    vt_run *v = calloc(1, sizeof *v);
    int to[2], from[2];
    need(v != NULL && pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipe");
    v->log = malloc(LOG_MAX);
    need(v->log != NULL, "malloc");
    v->rows = setup->rows;
    v->columns = setup->columns;
    v->terminal = terminal_new(v->rows, v->columns, &v->screen);
    struct winsize size = {.ws_row = (unsigned short)v->rows, .ws_col = (unsigned short)v->columns};
    v->shell = forkpty(&v->master, NULL, NULL, &size);
    need(v->shell >= 0, "forkpty");
    if (v->shell == 0) {
        close_others(to[0], from[1]);
        be_shell(setup, to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    v->to_shell = to[1];
    v->from_shell = from[0];
    v->before = vt_termios(v);
    vt_foreground(v);
    shell_news news;
    need(read(v->from_shell, &news, sizeof news) == sizeof news, "shell");
    v->program = news.pid;
    return v;
}

// Follows CSI ? N ; … h and l, which libvterm knows only in part.
static void scan_modes(vt_run *v)
{
    for (size_t at = v->scanned; at < v->log_bytes; at++) {
        if (v->log[at] != '\033') {
            v->scanned = at + 1;
            continue;
        }
        int numbers[8], count = 0;
        size_t to = at + 3;
        if (to < v->log_bytes && (v->log[at + 1] != '[' || v->log[at + 2] != '?')) {
            v->scanned = at + 1;
            continue;
        }
        for (numbers[0] = 0; to < v->log_bytes && strchr("0123456789;", v->log[to]) != NULL; to++) {
            if (v->log[to] == ';') {
                count += count < 7;
                numbers[count] = 0;
            } else {
                numbers[count] = (numbers[count] * 10 + v->log[to] - '0') % VT_PRIVATE_MODES;
            }
        }
        if (to >= v->log_bytes) {
            return; // the rest comes
        }
        for (int i = 0; i <= count && (v->log[to] == 'h' || v->log[to] == 'l'); i++) {
            v->modes[numbers[i]] = v->log[to] == 'h';
        }
        v->scanned = at + 1;
    }
}

// Takes what is there within `milliseconds`; false when there was nothing.
static bool take(vt_run *v, int milliseconds)
{
    struct pollfd fds[2] = {{.fd = v->master, .events = POLLIN}, {.fd = v->from_shell, .events = POLLIN}};
    if (poll(fds, 2, milliseconds) <= 0) {
        return false;
    }
    bool any = false;
    if (fds[0].revents & POLLIN) {
        char *at = v->log + v->log_bytes;
        need(v->log_bytes + 4096 <= LOG_MAX, "the program writes without end");
        ssize_t got = read(v->master, at, 4096);
        if (got > 0) {
            vterm_input_write(v->terminal, at, (size_t)got);
            v->log_bytes += (size_t)got;
            scan_modes(v);
            any = true;
        }
    }
    shell_news news;
    if (!any && fds[1].revents & POLLIN && read(v->from_shell, &news, sizeof news) == sizeof news) {
        v->status = news.status;
        v->changed = true;
        v->ended = !WIFSTOPPED(news.status);
        any = true;
    }
    if (!any) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return any;
}

// ---- doing ----------------------------------------------------------------------------------------------------

void vt_type(vt_run *v, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(v->master, bytes, count < 256 ? count : 256);
        need(written > 0, "write to the terminal");
        bytes += written;
        count -= (size_t)written;
        take(v, 0); // both ends would wait for each other
    }
}

void vt_resize(vt_run *v, int rows, int columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    v->rows = rows;
    v->columns = columns;
    vterm_set_size(v->terminal, rows, columns);
    need(ioctl(v->master, TIOCSWINSZ, &size) == 0, "TIOCSWINSZ");
}

void vt_signal(vt_run *v, int number)
{
    need(kill(v->program, number) == 0 || errno == ESRCH, "kill"); // it may have ended by an earlier one
}

void vt_set_termios(vt_run *v, const struct termios *modes)
{
    need(tcsetattr(v->master, TCSANOW, modes) == 0, "tcsetattr");
}

void vt_foreground(vt_run *v)
{
    need(write(v->to_shell, "f", 1) == 1, "fg");
}

// ---- waiting --------------------------------------------------------------------------------------------------

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool vt_shows(vt_run *v, const char *text)
{
    for (int64_t end = now_ms() + TIMEOUT_MS; now_ms() < end; take(v, 50)) {
        char *shown = vt_text(v);
        bool found = strstr(shown, text) != NULL;
        free(shown);
        if (found) {
            return true;
        }
    }
    return false;
}

bool vt_quiet(vt_run *const *v, int count, int milliseconds)
{
    int64_t end = now_ms() + TIMEOUT_MS, last = now_ms();
    while (now_ms() < end) {
        bool any = false;
        for (int i = 0; i < count; i++) {
            any = take(v[i], 0) || any;
        }
        if (any) {
            last = now_ms();
        } else if (now_ms() - last >= milliseconds) {
            return true;
        } else {
            nanosleep(&(struct timespec){0, 2000000}, NULL);
        }
    }
    return false;
}

bool vt_answered(vt_run *const *v, int count, const size_t *written)
{
    int answered = 0;
    for (int64_t end = now_ms() + TIMEOUT_MS; now_ms() < end && answered < count;) {
        answered = 0;
        for (int i = 0; i < count; i++) {
            take(v[i], 0);
            answered += v[i]->log_bytes > written[i];
        }
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return answered == count;
}

bool vt_changed(vt_run *v, int *status)
{
    for (int64_t end = now_ms() + TIMEOUT_MS; now_ms() < end && !v->changed;) {
        take(v, 50);
    }
    bool changed = v->changed;
    *status = v->status;
    v->changed = false;
    while (take(v, 0)) { // its last words
    }
    return changed;
}

void vt_close(vt_run *v)
{
    if (!v->ended) {
        close(v->master);
        v->master = -1;
        for (int64_t end = now_ms() + TIMEOUT_MS; now_ms() < end && kill(v->program, 0) == 0;) {
            struct pollfd fd = {.fd = v->from_shell, .events = POLLIN};
            shell_news news;
            if (poll(&fd, 1, 50) > 0 && read(v->from_shell, &news, sizeof news) == sizeof news &&
                !WIFSTOPPED(news.status)) {
                v->ended = true;
                break;
            }
        }
        if (!v->ended) {
            kill(v->program, SIGKILL);
        }
    }
    close(v->to_shell);
    if (v->master >= 0) {
        close(v->master);
    }
    waitpid(v->shell, NULL, 0);
    close(v->from_shell);
    vterm_free(v->terminal);
    free(v->cells);
    free(v->log);
    free(v);
}

// ---- reading --------------------------------------------------------------------------------------------------

static int16_t index_of(const VTermColor *color)
{
    if (VTERM_COLOR_IS_DEFAULT_FG(color) || VTERM_COLOR_IS_DEFAULT_BG(color)) {
        return -1;
    }
    return VTERM_COLOR_IS_INDEXED(color) ? color->indexed.idx : -2;
}

static vt_cell cell_at(const VTermScreen *screen, int y, int x)
{
    VTermScreenCell c;
    vt_cell cell = {0};
    if (vterm_screen_get_cell(screen, (VTermPos){.row = y, .col = x}, &c) != 0) {
        cell.character = c.chars[0];
        cell.foreground = index_of(&c.fg);
        cell.background = index_of(&c.bg);
        cell.bold = c.attrs.bold;
        cell.underline = c.attrs.underline != 0;
        cell.reverse = c.attrs.reverse;
    }
    return cell;
}

static vt_cell *read_cells(const VTermScreen *screen, int rows, int columns)
{
    vt_cell *cells = calloc((size_t)(rows * columns), sizeof *cells);
    need(cells != NULL, "calloc");
    for (int i = 0; i < rows * columns; i++) {
        cells[i] = cell_at(screen, i / columns, i % columns);
    }
    return cells;
}

const vt_cell *vt_cells(vt_run *v)
{
    free(v->cells);
    v->cells = read_cells(v->screen, v->rows, v->columns);
    return v->cells;
}

vt_cell *vt_cells_of(const char *bytes, size_t count, int rows, int columns)
{
    VTermScreen *screen;
    VTerm *terminal = terminal_new(rows, columns, &screen);
    vterm_input_write(terminal, bytes, count);
    vt_cell *cells = read_cells(screen, rows, columns);
    vterm_free(terminal);
    return cells;
}

char *vt_text(const vt_run *v)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    need(out != NULL, "open_memstream");
    for (int y = 0; y < v->rows; y++) {
        int blanks = 0;
        for (int x = 0; x < v->columns; x++) {
            vt_cell c = cell_at(v->screen, y, x);
            if (c.character == 0 || c.character == ' ') {
                blanks++;
            } else if (c.character != UINT32_MAX) { // the right half of the one before
                fprintf(out, "%*s%lc", blanks, "", (wint_t)c.character);
                blanks = 0;
            }
        }
        fputc('\n', out);
    }
    fclose(out);
    return text;
}

void vt_size(const vt_run *v, int *rows, int *columns)
{
    *rows = v->rows;
    *columns = v->columns;
}

bool vt_mode(const vt_run *v, int mode)
{
    return v->modes[mode];
}

size_t vt_written(const vt_run *v)
{
    return v->log_bytes;
}

bool vt_wrote(const vt_run *v, const char *bytes)
{
    return memmem(v->log, v->log_bytes, bytes, strlen(bytes)) != NULL;
}

struct termios vt_termios(const vt_run *v)
{
    struct termios modes;
    need(tcgetattr(v->master, &modes) == 0, "tcgetattr");
    return modes;
}

const struct termios *vt_before(const vt_run *v)
{
    return &v->before;
}

pid_t vt_pid(const vt_run *v)
{
    return v->program;
}

bool vt_has_ended(const vt_run *v)
{
    return v->ended;
}
