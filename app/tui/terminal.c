// SPDX-License-Identifier: Apache-2.0
#include "app/tui/terminal.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "app/tui/requests.h"
#include "app/tui/terminfo.h"

// There is one terminal, and a crash handler has no argument to find it by.
static struct {
    SCREEN *screen;
    struct termios before;
    char restore[256]; // what a crash writes to give the screen back
    size_t restore_bytes;
    int signal_pipe[2];
    sigset_t mask_before;
    int stderr_before; // −1: not taken
    FILE *stderr_kept;
    bool mouse;
} t = {.signal_pipe = {-1, -1}, .stderr_before = -1};

static const int polite[] = {SIGINT, SIGTERM, SIGHUP};
static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// ---- keys -----------------------------------------------------------------------------------------------------

static const struct {
    int code;
    int key;
} codes[] = {
    {KEY_UP, INPUT_UP},          {KEY_DOWN, INPUT_DOWN},       {KEY_LEFT, INPUT_LEFT},
    {KEY_RIGHT, INPUT_RIGHT},    {KEY_HOME, INPUT_HOME},       {KEY_END, INPUT_END},
    {KEY_PPAGE, INPUT_PAGE_UP},  {KEY_NPAGE, INPUT_PAGE_DOWN}, {KEY_BTAB, INPUT_BACK_TAB},
    {KEY_DC, INPUT_DELETE},      {KEY_ENTER, INPUT_ENTER},     {KEY_BACKSPACE, INPUT_BACKSPACE},
    {KEY_RESIZE, INPUT_RESIZED},
};

// Both forms of each arrow: in keypad mode terminals disagree with their own description.
static void define_keys(void)
{
    static const struct {
        const char *text;
        int code;
    } forms[] = {
        {"\033[A", KEY_UP},    {"\033OA", KEY_UP},    {"\033[B", KEY_DOWN},   {"\033OB", KEY_DOWN},
        {"\033[C", KEY_RIGHT}, {"\033OC", KEY_RIGHT}, {"\033[D", KEY_LEFT},   {"\033OD", KEY_LEFT},
        {"\033[H", KEY_HOME},  {"\033OH", KEY_HOME},  {"\033[1~", KEY_HOME},  {"\033[F", KEY_END},
        {"\033OF", KEY_END},   {"\033[4~", KEY_END},  {"\033[5~", KEY_PPAGE}, {"\033[6~", KEY_NPAGE},
        {"\033[3~", KEY_DC},   {"\033[Z", KEY_BTAB},  {"\033OM", KEY_ENTER},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        define_key(forms[i].text, forms[i].code);
    }
}

static terminal_event mouse_event(void)
{
    MEVENT m;
    terminal_event e = {.key = INPUT_RESIZED}; // a click that means nothing redraws nothing
    if (getmouse(&m) != OK) {
        return e;
    }
    e.y = m.y;
    e.x = m.x;
    if (m.bstate & BUTTON4_PRESSED) {
        e.key = INPUT_UP;
    } else if (m.bstate & BUTTON5_PRESSED) {
        e.key = INPUT_DOWN;
    } else if (m.bstate & (BUTTON1_RELEASED | BUTTON1_CLICKED)) {
        e.key = INPUT_CLICK;
    }
    return e;
}

terminal_event terminal_key(void)
{
    wint_t code;
    int got = get_wch(&code);
    if (got == ERR) {
        return (terminal_event){.key = INPUT_NONE};
    }
    if (got == KEY_CODE_YES) {
        if (code == KEY_MOUSE) {
            return mouse_event();
        }
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
            if (codes[i].code == (int)code) {
                return (terminal_event){.key = codes[i].key};
            }
        }
        return (terminal_event){.key = INPUT_RESIZED};
    }
    return (terminal_event){.key = code == '\r' ? INPUT_ENTER : (int)code};
}

// ---- signals --------------------------------------------------------------------------------------------------

static void on_polite(int number)
{
    int before = errno;
    unsigned char byte = (unsigned char)number;
    (void)!write(t.signal_pipe[1], &byte, 1);
    errno = before;
}

// Only calls that are safe in a signal handler.
static void on_fatal(int number)
{
    static const char note[] = "\r\nheadroom: it crashed; the terminal is restored\r\n";
    (void)!write(STDOUT_FILENO, t.restore, t.restore_bytes);
    tcsetattr(STDIN_FILENO, TCSANOW, &t.before);
    (void)!write(STDERR_FILENO, note, sizeof note - 1);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_all(const int *numbers, size_t count, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < count; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

// Held back everywhere but in poll, so that none falls between a check and the wait.
static void hold_signals(void)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof polite / sizeof *polite; i++) {
        sigaddset(&held, polite[i]);
    }
    sigaddset(&held, SIGWINCH);
    sigaddset(&held, SIGTSTP);
    sigprocmask(SIG_BLOCK, &held, &t.mask_before);
}

static void add_restore(const char *name)
{
    const char *sequence = terminfo_string(name);
    size_t length = strlen(sequence);
    if (t.restore_bytes + length <= sizeof t.restore) {
        memcpy(t.restore + t.restore_bytes, sequence, length);
        t.restore_bytes += length;
    }
}

static void prepare_crash(void)
{
    static const char mouse_off[] = "\033[?1000l";
    t.restore_bytes = 0;
    add_restore("rmkx");
    add_restore("sgr0");
    add_restore("cnorm");
    add_restore("rmcup");
    if (t.mouse) {
        memcpy(t.restore + t.restore_bytes, mouse_off, sizeof mouse_off - 1);
        t.restore_bytes += sizeof mouse_off - 1;
    }
    catch_all(fatal, sizeof fatal / sizeof *fatal, on_fatal, 0);
}

int terminal_signal_fd(void)
{
    return t.signal_pipe[0];
}

int terminal_signal(void)
{
    unsigned char byte;
    return read(t.signal_pipe[0], &byte, 1) == 1 ? byte : 0;
}

const sigset_t *terminal_poll_mask(void)
{
    return &t.mask_before;
}

// ---- stderr ---------------------------------------------------------------------------------------------------

// What libraries write to stderr would stand across the screen: it is kept and printed at the end.
static void take_stderr(void)
{
    if (!isatty(STDERR_FILENO) || (t.stderr_kept = tmpfile()) == NULL) {
        return;
    }
    fflush(stderr);
    t.stderr_before = dup(STDERR_FILENO);
    dup2(fileno(t.stderr_kept), STDERR_FILENO);
}

static void give_stderr(void)
{
    char text[4096];
    size_t count;
    if (t.stderr_before < 0) {
        return;
    }
    fflush(stderr);
    dup2(t.stderr_before, STDERR_FILENO);
    close(t.stderr_before);
    t.stderr_before = -1;
    rewind(t.stderr_kept);
    while ((count = fread(text, 1, sizeof text, t.stderr_kept)) > 0) {
        fwrite(text, 1, count, stderr);
    }
    fclose(t.stderr_kept);
    t.stderr_kept = NULL;
}

// ---- open and close -------------------------------------------------------------------------------------------

static void set_modes(void)
{
    cbreak();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    leaveok(stdscr, TRUE);
    curs_set(0); // ERR where the cursor cannot be hidden: no harm
    if (has_colors()) {
        start_color();
        use_default_colors();
    }
    define_keys();
}

// Asks the description before anything is written: an unknown or a dumb terminal gets a sentence.
static hr_status check_terminal(hr_err *err)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return HR_FAIL(err, TERMINAL, "the workbench needs a terminal, had a file or a pipe");
    }
    bool places;
    if (!terminfo_look(STDOUT_FILENO, &places)) {
        hr_status status = HR_FAIL(err, TERMINAL, "TERM=%s is in no terminal description this machine has",
                                   name == NULL ? "" : name);
        hr_err_try(err, "TERM=xterm-256color headroom, or headroom run PRESET --plain");
        return status;
    }
    if (!places) {
        return HR_FAIL(err, TERMINAL, "TERM=%s cannot place its cursor, which the workbench needs",
                       name == NULL ? "" : name);
    }
    return HR_OK;
}

hr_status terminal_open(bool mouse, hr_err *err)
{
    HR_TRY(check_terminal(err));
    tcgetattr(STDIN_FILENO, &t.before);
    if (pipe(t.signal_pipe) != 0) {
        return HR_FAIL(err, TERMINAL, "no pipe for signals: %s", strerror(errno));
    }
    hold_signals();
    take_stderr();
    t.screen = newterm(NULL, stdout, stdin);
    if (t.screen == NULL) {
        give_stderr();
        sigprocmask(SIG_SETMASK, &t.mask_before, NULL);
        return HR_FAIL(err, TERMINAL, "the terminal could not be opened");
    }
    set_modes();
    t.mouse = mouse;
    if (mouse) {
        mousemask(BUTTON1_RELEASED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
        mouseinterval(0);
    }
    catch_all(polite, sizeof polite / sizeof *polite, on_polite, SA_RESTART);
    prepare_crash();
    return HR_OK;
}

void terminal_close(void)
{
    if (t.mouse) {
        mousemask(0, NULL);
    }
    endwin();
    delscreen(t.screen);
    t.screen = NULL;
    catch_all(fatal, sizeof fatal / sizeof *fatal, SIG_DFL, 0);
    catch_all(polite, sizeof polite / sizeof *polite, SIG_DFL, 0);
    sigprocmask(SIG_SETMASK, &t.mask_before, NULL);
    close(t.signal_pipe[0]);
    close(t.signal_pipe[1]);
    t.signal_pipe[0] = t.signal_pipe[1] = -1;
    give_stderr();
}

bool terminal_open_on(const char *type, FILE *out, FILE *in, int rows, int columns)
{
    char text[16];
    snprintf(text, sizeof text, "%d", rows);
    setenv("LINES", text, 1);
    snprintf(text, sizeof text, "%d", columns);
    setenv("COLUMNS", text, 1);
    t.screen = newterm(type, out, in);
    if (t.screen == NULL) {
        return false;
    }
    set_modes();
    return true;
}

void terminal_close_on(void)
{
    endwin();
    delscreen(t.screen);
    t.screen = NULL;
}

int terminal_colors(void)
{
    return has_colors() ? COLORS : 0;
}

void terminal_redraw(void)
{
    clearok(curscr, TRUE);
}
