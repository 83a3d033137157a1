// SPDX-License-Identifier: Apache-2.0
// Taking the terminal and giving it back; terminal_keys.c, terminal_signals.c and terminal_copy.c are the rest.
#include "app/tui/term/terminal.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/tui/term/terminal_state.h"

// ---- stderr ---------------------------------------------------------------------------------------------------

// What libraries write to stderr would stand across the screen: it is kept and printed at the end.
static void take_stderr(void)
{
    if (!isatty(STDERR_FILENO) || (terminal_now.stderr_kept = tmpfile()) == NULL) {
        return;
    }
    fflush(stderr);
    terminal_now.stderr_before = dup(STDERR_FILENO);
    dup2(fileno(terminal_now.stderr_kept), STDERR_FILENO);
}

static void give_stderr(void)
{
    char text[4096];
    size_t count;
    if (terminal_now.stderr_before < 0) {
        return;
    }
    fflush(stderr);
    dup2(terminal_now.stderr_before, STDERR_FILENO);
    close(terminal_now.stderr_before);
    terminal_now.stderr_before = -1;
    rewind(terminal_now.stderr_kept);
    while ((count = fread(text, 1, sizeof text, terminal_now.stderr_kept)) > 0) {
        fwrite(text, 1, count, stderr);
    }
    fclose(terminal_now.stderr_kept);
    terminal_now.stderr_kept = NULL;
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
    terminal_define_keys();
}

// Asks the description before anything is written: an unknown or a dumb terminal gets a sentence.
static hr_status check_terminal(hr_err *err)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return HR_FAIL(err, TERMINAL, "the workbench needs a terminal, had a file or a pipe");
    }
    bool places;
    if (!terminfo_look(NULL, STDOUT_FILENO, &places)) {
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

// `type`: NULL is that of TERM.
static bool open_screen(const char *type, FILE *out, FILE *in)
{
    const char *name = type != NULL ? type : getenv("TERM");
    terminal_now.screen = newterm(type, out, in);
    if (terminal_now.screen == NULL) {
        return false;
    }
    snprintf(terminal_now.type, sizeof terminal_now.type, "%s", name == NULL ? "" : name);
    terminal_now.out = fileno(out);
    terminal_now.serial++;
    terminal_now.can = terminfo_abilities(terminal_now.type);
    terminal_now.mouse = terminal_now.resumed = false;
    set_modes();
    return true;
}

static void close_screen(void)
{
    endwin();
    delscreen(terminal_now.screen);
    terminal_now.screen = NULL;
    terminal_now.out = -1;
}

hr_status terminal_open(bool mouse, hr_err *err)
{
    HR_TRY(check_terminal(err));
    tcgetattr(STDIN_FILENO, &terminal_now.before);
    HR_TRY(terminal_signals_open(err));
    take_stderr();
    unsetenv("LINES"); // exported ones are older than the window
    unsetenv("COLUMNS");
    if (!open_screen(NULL, stdout, stdin)) {
        give_stderr();
        terminal_signals_close();
        return HR_FAIL(err, TERMINAL, "the terminal could not be opened");
    }
    terminal_signals_catch();
    terminal_deaf_open();
    terminal_brackets(true);
    if (mouse) {
        terminal_mouse(true); // otherwise no escape of a mouse is ever written
    }
    return HR_OK;
}

void terminal_close(void)
{
    terminal_deaf_before_close();
    if (terminal_now.mouse) {
        terminal_mouse(false);
    }
    terminal_brackets(false);
    close_screen();
    terminal_deaf_close();
    terminal_signals_close();
    give_stderr();
}

bool terminal_open_on(const char *type, FILE *out, FILE *in, int rows, int columns)
{
    char text[16];
    snprintf(text, sizeof text, "%d", rows);
    setenv("LINES", text, 1);
    snprintf(text, sizeof text, "%d", columns);
    setenv("COLUMNS", text, 1);
    bool places; // asked first: a newterm that fails leaves memory behind
    return terminfo_look(type, fileno(out), &places) && places && open_screen(type, out, in);
}

void terminal_close_on(void)
{
    close_screen();
}

void terminal_resize(int rows, int columns)
{
    (void)resize_term(rows, columns);
}

unsigned terminal_serial(void)
{
    return terminal_now.serial;
}

int terminal_colors(void)
{
    return has_colors() ? COLORS : 0;
}

void terminal_redraw(void)
{
    clearok(curscr, TRUE);
}
