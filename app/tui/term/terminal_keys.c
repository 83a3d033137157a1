// SPDX-License-Identifier: Apache-2.0
// Keys, mouse and pastes.
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "app/tui/term/input.h"
#include "app/tui/term/terminal_state.h"

enum {
    KEY_PASTE_BEGIN = KEY_MAX + 1,
    KEY_PASTE_END,
    DOUBLE_CLICK_MS = 400,
    PASTE_SILENT_MS = 1000, // a paste that lost its end is over
};

static const mmask_t mouse_wanted = BUTTON1_RELEASED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED;

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
void terminal_define_keys(void)
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
    if (terminal_now.can.paste) {
        define_key("\033[200~", KEY_PASTE_BEGIN);
        define_key("\033[201~", KEY_PASTE_END);
    }
}

static int key_of(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].code == code) {
            return codes[i].key;
        }
    }
    return INPUT_UNKNOWN;
}

// ---- mouse ----------------------------------------------------------------------------------------------------

static struct {
    uint64_t at_ms;
    int y, x;
} last_click;

static int count_clicks(int y, int x)
{
    uint64_t now = terminal_clock_ms();
    bool again = last_click.at_ms != 0 && now - last_click.at_ms <= DOUBLE_CLICK_MS && last_click.y == y &&
                 last_click.x == x;
    last_click.at_ms = again ? 0 : now;
    last_click.y = y;
    last_click.x = x;
    return again ? 2 : 1;
}

// INPUT_NONE for what means nothing here.
static terminal_event mouse_event(void)
{
    MEVENT m;
    terminal_event e = {.key = INPUT_NONE};
    if (getmouse(&m) != OK) {
        return e;
    }
    e.y = m.y;
    e.x = m.x;
    if (m.bstate & BUTTON4_PRESSED) {
        e.key = INPUT_WHEEL_UP;
    } else if (m.bstate & BUTTON5_PRESSED) {
        e.key = INPUT_WHEEL_DOWN;
    } else if (m.bstate & (BUTTON1_RELEASED | BUTTON1_CLICKED)) {
        e.key = INPUT_CLICK;
        e.clicks = count_clicks(m.y, m.x);
    }
    return e;
}

void terminal_mouse(bool on)
{
    mousemask(on ? mouse_wanted : 0, NULL); // writes what switches it, and flushes
    mouseinterval(0);
    terminal_now.mouse = on;
}

bool terminal_has_mouse(void)
{
    return terminal_now.mouse;
}

// ---- pastes ---------------------------------------------------------------------------------------------------

static struct {
    bool open;
    uint64_t last_ms;
} paste;

static bool paste_is_open(void)
{
    paste.open = paste.open && terminal_clock_ms() - paste.last_ms <= PASTE_SILENT_MS;
    return paste.open;
}

// Line ends come as \r; tabs are blanks; other controls, and sequences that stood in the text, are dropped.
static terminal_event pasted_character(wint_t code)
{
    int key = code == '\r' || code == '\n' ? '\n' : code == '\t' ? ' ' : (int)code;
    bool dropped = (key < ' ' && key != '\n') || key == 0x7f;
    paste.last_ms = terminal_clock_ms();
    return (terminal_event){.key = dropped ? INPUT_NONE : key, .pasted = true};
}

static terminal_event function_key(int code)
{
    if (code == KEY_PASTE_BEGIN || code == KEY_PASTE_END) {
        paste.open = code == KEY_PASTE_BEGIN;
        paste.last_ms = terminal_clock_ms();
        return (terminal_event){.key = INPUT_NONE};
    }
    if (code == KEY_MOUSE) {
        return mouse_event();
    }
    int key = key_of(code);
    bool in_paste = paste_is_open() && key != INPUT_RESIZED;
    return (terminal_event){.key = in_paste ? INPUT_NONE : key};
}

// ---- the next one ---------------------------------------------------------------------------------------------

// There is something to read, and it is nothing: the other end has hung up.
static bool is_closed(void)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    int waiting = 0;
    if (poll(&fd, 1, 0) <= 0) {
        return false;
    }
    bool readable = (fd.revents & POLLIN) != 0 && ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
    return !readable;
}

terminal_event terminal_key(void)
{
    if (terminal_now.resumed) {
        terminal_now.resumed = false;
        return (terminal_event){.key = INPUT_RESIZED};
    }
    for (;;) {
        wint_t code;
        int got = get_wch(&code);
        if (got == ERR) {
            return (terminal_event){.key = INPUT_NONE, .closed = is_closed()};
        }
        terminal_event e = got == KEY_CODE_YES ? function_key((int)code)
                           : paste_is_open()
                               ? pasted_character(code)
                               : (terminal_event){.key = code == '\r' ? INPUT_ENTER : (int)code};
        if (e.key != INPUT_NONE) {
            return e;
        }
    }
}
