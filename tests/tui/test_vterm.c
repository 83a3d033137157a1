// SPDX-License-Identifier: Apache-2.0
// The program in a terminal: it comes, every key leaves a clean screen, every size is drawn as if it had been the first,
// and the terminal is given back on every way out.
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/tui/requests.h"
#include "tests/tui/suite.h"
#include "tests/tui/vterm.h"

// The workbench draws four frames a second of what happens by itself: after so long nothing is waiting to be drawn.
enum { ROWS = 24, COLUMNS = 80, QUIET_MS = 300, REDRAWN_MS = 60, GROUP_MAX = 32 };
enum { MODE_CURSOR = 25, MODE_MOUSE = 1000, MODE_SCREEN = 1049, MODE_PASTE = 2004 };

static const char *const still[] = {FAKE_WORKBENCH, "--still", NULL};
static const char *const lively[] = {FAKE_WORKBENCH, NULL};
static const char *const real[] = {HEADROOM_PROGRAM, "demo", "-s", "device.kind=plan", NULL};

static vt_run *start_sized(const char *const *command, int rows, int columns)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    vt_setup setup = {.command = command, .rows = rows, .columns = columns};
    return vt_start(&setup);
}

static vt_run *start(const char *const *command)
{
    return start_sized(command, ROWS, COLUMNS);
}

static void type(vt_run *v, const char *text)
{
    vt_type(v, text, strlen(text));
}

static void settle_all(vt_run *const *v, int count)
{
    ck_assert_msg(vt_quiet(v, count, QUIET_MS), "a program never stops writing");
}

static void settle(vt_run *v)
{
    settle_all(&v, 1);
}

static void has_taken(const vt_run *v)
{
    ck_assert(vt_mode(v, MODE_SCREEN));
    ck_assert(!vt_mode(v, MODE_CURSOR));
    ck_assert(vt_mode(v, MODE_PASTE));
}

// As a shell needs it back.
static void has_given_back(const vt_run *v)
{
    const struct termios *before = vt_before(v);
    struct termios now = vt_termios(v);
    ck_assert_msg(!vt_mode(v, MODE_SCREEN), "the alternate screen is still there");
    ck_assert_msg(vt_mode(v, MODE_CURSOR), "the cursor is still hidden");
    ck_assert_msg(!vt_mode(v, MODE_MOUSE), "the mouse is still taken");
    ck_assert_msg(!vt_mode(v, 1006), "the mouse still speaks SGR");
    ck_assert_msg(!vt_mode(v, MODE_PASTE), "pastes still have brackets");
    ck_assert_uint_eq(now.c_iflag, before->c_iflag);
    ck_assert_uint_eq(now.c_oflag, before->c_oflag);
    ck_assert_uint_eq(now.c_cflag, before->c_cflag);
    ck_assert_uint_eq(now.c_lflag, before->c_lflag);
    ck_assert_mem_eq(now.c_cc, before->c_cc, sizeof now.c_cc);
}

// ---- start ----------------------------------------------------------------------------------------------------

START_TEST(the_first_frame_comes_and_quitting_gives_the_terminal_back)
{
    static const char *const *const programs[] = {still, real};
    for (size_t i = 0; i < 2; i++) {
        int status;
        vt_run *v = start(programs[i]);
        ck_assert(vt_shows(v, "headroom") && vt_shows(v, "batch.size"));
        has_taken(v);
        ck_assert(vt_mode(v, MODE_MOUSE));
        type(v, "qy"); // y in case it asks
        ck_assert(vt_changed(v, &status));
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
        has_given_back(v);
        vt_close(v);
    }
}
END_TEST

// ---- keys -----------------------------------------------------------------------------------------------------

static const char *bytes_of(int key, char text[8])
{
    static const struct {
        int key;
        const char *bytes;
    } beyond[] = {
        {INPUT_UP, "\033OA"},       {INPUT_DOWN, "\033OB"},       {INPUT_LEFT, "\033OD"},
        {INPUT_RIGHT, "\033OC"},    {INPUT_HOME, "\033OH"},       {INPUT_END, "\033OF"},
        {INPUT_PAGE_UP, "\033[5~"}, {INPUT_PAGE_DOWN, "\033[6~"}, {INPUT_BACK_TAB, "\033[Z"},
        {INPUT_DELETE, "\033[3~"},  {INPUT_ENTER, "\r"},
    };
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        if (beyond[i].key == key) {
            return beyond[i].bytes;
        }
    }
    if (key >= INPUT_BEYOND_UNICODE) {
        return NULL;
    }
    snprintf(text, 8, "%c", key);
    return text;
}

static vt_cell *copy_cells(vt_run *v)
{
    int rows, columns;
    vt_size(v, &rows, &columns);
    int count = rows * columns;
    vt_cell *copy = calloc((size_t)count, sizeof *copy);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, vt_cells(v), (size_t)count * sizeof *copy);
    return copy;
}

static uint32_t shown(uint32_t character)
{
    return character == 0 ? ' ' : character;
}

static bool same_cells(const vt_cell *a, const vt_cell *b, int count)
{
    for (int i = 0; i < count; i++) {
        if (shown(a[i].character) != shown(b[i].character) || a[i].foreground != b[i].foreground ||
            a[i].background != b[i].background || a[i].bold != b[i].bold ||
            a[i].underline != b[i].underline || a[i].reverse != b[i].reverse) {
            return false;
        }
    }
    return true;
}

// What stands there is what a frame drawn on an empty screen shows: a window of one cell keeps nothing, neither here nor
// in the program.
static void are_clean(vt_run *const *v, const char *const *names, int count)
{
    vt_cell *before[GROUP_MAX];
    int rows[GROUP_MAX], columns[GROUP_MAX];
    settle_all(v, count);
    for (int i = 0; i < count; i++) {
        before[i] = copy_cells(v[i]);
        vt_size(v[i], &rows[i], &columns[i]);
        vt_resize(v[i], 1, 1);
    }
    ck_assert(vt_quiet(v, count, REDRAWN_MS));
    for (int i = 0; i < count; i++) {
        vt_resize(v[i], rows[i], columns[i]);
    }
    ck_assert(vt_quiet(v, count, REDRAWN_MS));
    for (int i = 0; i < count; i++) {
        ck_assert_msg(same_cells(before[i], vt_cells(v[i]), rows[i] * columns[i]),
                      "%s left something of the old screen", names[i]);
        free(before[i]);
    }
}

static void is_clean(vt_run *v, const char *name)
{
    are_clean(&v, &name, 1);
}

static bool is_blank(vt_run *v)
{
    char *text = vt_text(v);
    bool blank = text[strspn(text, " \n")] == '\0';
    free(text);
    return blank;
}

static void start_all(vt_run **v, int count)
{
    for (int i = 0; i < count; i++) {
        v[i] = start(still);
    }
    settle_all(v, count);
}

// Each key in a program of its own.
static void press_each(const char (*keys)[8], const char *const *names, int count)
{
    vt_run *v[GROUP_MAX], *open[GROUP_MAX];
    const char *open_names[GROUP_MAX];
    int left = 0;
    start_all(v, count);
    for (int i = 0; i < count; i++) {
        type(v[i], keys[i]);
    }
    settle_all(v, count);
    for (int i = 0; i < count; i++) {
        bool may_leave = strcmp(names[i], "quit") == 0 || strcmp(names[i], "stop") == 0;
        ck_assert_msg(!vt_has_ended(v[i]) || may_leave, "%s left", names[i]);
        ck_assert_msg(vt_has_ended(v[i]) || !is_blank(v[i]), "%s left an empty screen", names[i]);
        open_names[left] = names[i];
        open[left] = v[i];
        left += !vt_has_ended(v[i]);
    }
    are_clean(open, open_names, left);
    for (int i = 0; i < count; i++) {
        vt_close(v[i]);
    }
}

START_TEST(every_key_of_the_table_leaves_a_clean_screen)
{
    size_t rows_count;
    const request_row *rows = request_rows(&rows_count);
    char keys[GROUP_MAX][8];
    const char *names[GROUP_MAX];
    int count = 0, pressed = 0;
    for (size_t i = 0; i < rows_count; i++) {
        const char *bytes = bytes_of(rows[i].key, keys[count]);
        bool leaves_a_file = strcmp(rows[i].name, "save-screen") == 0;
        if (bytes != NULL && rows[i].key != INPUT_NONE && !leaves_a_file) {
            memmove(keys[count], bytes, strlen(bytes) + 1);
            names[count++] = rows[i].name;
        }
        if (count == GROUP_MAX || (i + 1 == rows_count && count > 0)) {
            press_each((const char(*)[8])keys, names, count);
            pressed += count;
            count = 0;
        }
    }
    ck_assert_int_gt(pressed, 20);
}
END_TEST

// Also what no terminal sends: nothing crashes, and the screen stays the program's.
START_TEST(random_bytes_are_survived)
{
    unsigned seed = 20231; // of this sequence
    vt_run *v = start(lively);
    ck_assert(vt_shows(v, "headroom"));
    for (int i = 0; i < 4000 && !vt_has_ended(v); i++) {
        seed = seed * 1103515245 + 12345;
        char byte = (char)(seed >> 16 & 0xff);
        bool leaves = strchr("q\003\032\034Sy", byte) != NULL; // quits, signals, files
        vt_type(v, leaves ? " " : &byte, 1);
    }
    vt_signal(v, SIGCONT);
    settle(v);
    ck_assert(!vt_has_ended(v) && !is_blank(v));
    has_taken(v);
    vt_close(v);
}
END_TEST

// ---- sizes ----------------------------------------------------------------------------------------------------

static const struct {
    int rows, columns;
} final_sizes[] = {{24, 80}, {50, 160}, {36, 120}, {16, 60}, {10, 40}, {4, 20}, {120, 300}, {1, 1}};
enum { FINAL_COUNT = sizeof final_sizes / sizeof *final_sizes };

static void storm(vt_run *v, unsigned seed)
{
    for (int i = 0; i < 100; i++) {
        seed = seed * 1103515245 + 12345;
        vt_resize(v, 1 + (int)(seed >> 16) % 120, 1 + (int)(seed >> 8 & 0xffff) % 300);
        if (i % 10 == 0) {
            vt_quiet(&v, 1, 2);
        }
    }
    ck_assert_msg(!vt_has_ended(v), "it ended in the storm");
}

// Which pane has the focus depends on the sizes before; where one pane is shown alone it is always the memory.
static void resize_all(vt_run *const *v, bool final)
{
    for (int i = 0; i < FINAL_COUNT; i++) {
        vt_resize(v[i], final ? final_sizes[i].rows : 16, final ? final_sizes[i].columns : 60);
    }
    settle_all(v, FINAL_COUNT);
}

START_TEST(after_a_storm_of_sizes_a_frame_is_as_a_fresh_one)
{
    vt_run *v[FINAL_COUNT], *fresh[FINAL_COUNT];
    const char *names[FINAL_COUNT];
    start_all(v, FINAL_COUNT);
    start_all(fresh, FINAL_COUNT);
    for (unsigned i = 0; i < FINAL_COUNT; i++) {
        storm(v[i], i);
    }
    resize_all(v, false);
    resize_all(fresh, false);
    resize_all(v, true);
    resize_all(fresh, true);
    for (int i = 0; i < FINAL_COUNT; i++) {
        int rows = final_sizes[i].rows, columns = final_sizes[i].columns;
        char *a = vt_text(v[i]), *b = vt_text(fresh[i]);
        ck_assert_msg(strcmp(a, b) == 0, "%d x %d: after the storm\n%s\nfresh\n%s\n", rows, columns, a, b);
        vt_cell *cells = copy_cells(fresh[i]);
        ck_assert(same_cells(cells, vt_cells(v[i]), rows * columns));
        free(cells);
        free(a);
        free(b);
        names[i] = "the storm";
        vt_close(fresh[i]);
    }
    are_clean(v, names, FINAL_COUNT);
    for (int i = 0; i < FINAL_COUNT; i++) {
        vt_close(v[i]);
    }
}
END_TEST

// ---- mouse and paste ------------------------------------------------------------------------------------------

START_TEST(the_mouse_is_not_touched_when_it_is_not_wanted)
{
    static const char *const without[] = {FAKE_WORKBENCH, "--still", "--no-mouse", NULL};
    vt_run *v = start(without);
    ck_assert(vt_shows(v, "headroom"));
    settle(v);
    ck_assert(!vt_mode(v, MODE_MOUSE) && !vt_wrote(v, "1000h") && !vt_wrote(v, "?1006"));
    vt_close(v);
}
END_TEST

START_TEST(a_paste_never_is_a_key)
{
    int status;
    vt_run *v = start(still);
    ck_assert(vt_shows(v, "headroom"));
    settle(v);
    char *before = vt_text(v);
    type(v, "\033[200~q\ry\033OBzzz\033[201~");
    settle(v);
    ck_assert(!vt_has_ended(v));
    has_taken(v);
    type(v, "\033");
    settle(v);
    char *after = vt_text(v);
    ck_assert_str_eq(before, after);
    type(v, "qy"); // and after it keys are keys again
    ck_assert(vt_changed(v, &status));
    free(before);
    free(after);
    vt_close(v);
}
END_TEST

START_TEST(pasted_text_goes_into_the_line)
{
    vt_run *v = start(still);
    ck_assert(vt_shows(v, "headroom"));
    type(v, ":");
    type(v, "\033[200~set batch.size 64\033[201~");
    ck_assert(vt_shows(v, "set batch.size 64"));
    vt_close(v);
}
END_TEST

// ---- stopping and ending --------------------------------------------------------------------------------------

static void stops_and_comes_back(vt_run *v)
{
    int status;
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(WIFSTOPPED(status), "status %x", (unsigned)status);
    has_given_back(v);
    vt_resize(v, 30, 100);
    vt_foreground(v);
    settle(v);
    has_taken(v);
    ck_assert(vt_mode(v, MODE_MOUSE));
    is_clean(v, "coming back");
    vt_run *fresh = start_sized(still, 30, 100);
    settle(fresh);
    char *a = vt_text(v), *b = vt_text(fresh);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    vt_close(fresh);
}

START_TEST(ctrl_z_gives_back_and_returns_to_the_new_size)
{
    vt_run *v = start(still);
    ck_assert(vt_shows(v, "headroom"));
    settle(v);
    type(v, "\032");
    stops_and_comes_back(v);
    vt_resize(v, ROWS, COLUMNS);
    settle(v);
    vt_signal(v, SIGTSTP); // as kill -TSTP does
    stops_and_comes_back(v);
    vt_close(v);
}
END_TEST

static const struct {
    int number;
    bool by_signal; // otherwise it leaves in order
} endings[] = {{SIGSEGV, true}, {SIGABRT, true},  {SIGBUS, true}, {SIGFPE, true},
               {SIGILL, true},  {SIGTERM, false}, {SIGHUP, false}};

START_TEST(every_end_gives_the_terminal_back)
{
    static const char *const *const programs[] = {lively, real};
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            int status;
            vt_run *v = start(programs[p]);
            ck_assert(vt_shows(v, "batch.size"));
            vt_signal(v, endings[i].number);
            ck_assert_msg(vt_changed(v, &status), "signal %d did not end it", endings[i].number);
            ck_assert_msg(endings[i].by_signal == (WIFSIGNALED(status) != 0), "signal %d: status %x",
                          endings[i].number, (unsigned)status);
            ck_assert(!endings[i].by_signal || WTERMSIG(status) == endings[i].number);
            has_given_back(v);
            ck_assert(!endings[i].by_signal || vt_shows(v, "it crashed; the terminal is restored"));
            vt_close(v);
        }
    }
}
END_TEST

START_TEST(who_loses_the_terminal_ends)
{
    static const char *const *const programs[] = {lively, real};
    for (size_t p = 0; p < 2; p++) {
        vt_run *v = start(programs[p]);
        pid_t pid = vt_pid(v);
        ck_assert(vt_shows(v, "batch.size"));
        vt_close(v); // waits, and kills what does not end
        ck_assert_int_ne(kill(pid, 0), 0);
    }
}
END_TEST

// ---- other terminals ------------------------------------------------------------------------------------------

static const struct {
    const char *type, *locale;
    bool ascii;
} terminals[] = {
    {"xterm-256color", "LC_ALL=C.UTF-8", false},  {"screen", "LC_ALL=C.UTF-8", false},
    {"screen-256color", "LC_ALL=C.UTF-8", false}, {"tmux-256color", "LC_ALL=C.UTF-8", false},
    {"linux", "LC_ALL=C.UTF-8", false},           {"vt100", "LC_ALL=C.UTF-8", false},
    {"xterm-256color", "LC_ALL=C", true},         {"vt100", "LC_ALL=POSIX", true},
};

enum { TERMINAL_COUNT = sizeof terminals / sizeof *terminals };

static bool is_ascii(const char *text)
{
    while (*text == '\n' || (*text >= ' ' && *text < 0x7f)) {
        text++;
    }
    return *text == '\0';
}

START_TEST(every_terminal_shows_the_bench_and_gets_back_what_it_gave)
{
    vt_run *v[TERMINAL_COUNT];
    const char *names[TERMINAL_COUNT];
    setlocale(LC_CTYPE, "C.UTF-8");
    for (int i = 0; i < TERMINAL_COUNT; i++) {
        const char *environment[] = {terminals[i].locale, NULL};
        v[i] = vt_start(&(vt_setup){still, environment, terminals[i].type, ROWS, COLUMNS});
        names[i] = terminals[i].type;
    }
    are_clean(v, names, TERMINAL_COUNT);
    for (int i = 0; i < TERMINAL_COUNT; i++) {
        int status;
        char *text = vt_text(v[i]);
        ck_assert_msg(strstr(text, "batch.size") != NULL, "%s\n%s", names[i], text);
        ck_assert_msg(is_ascii(text) == terminals[i].ascii, "%s %s\n%s", names[i], terminals[i].locale, text);
        ck_assert(strcmp(names[i], "vt100") != 0 || !vt_wrote(v[i], "?2004")); // it would be printed
        type(v[i], "qy");
        ck_assert(vt_changed(v[i], &status));
        struct termios now = vt_termios(v[i]);
        ck_assert_uint_eq(now.c_lflag, vt_before(v[i])->c_lflag);
        ck_assert(!vt_mode(v[i], MODE_SCREEN) && !vt_mode(v[i], MODE_PASTE) && !vt_mode(v[i], MODE_MOUSE));
        free(text);
        vt_close(v[i]);
    }
}
END_TEST

static void is_refused(const char *type, const char *said)
{
    int status;
    vt_setup setup = {still, NULL, type, ROWS, COLUMNS};
    vt_run *v = vt_start(&setup);
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 4, "%s: status %x", type, (unsigned)status);
    ck_assert_msg(vt_shows(v, said) && vt_shows(v, "try:"), "%s", type);
    ck_assert(!vt_wrote(v, "\033"));
    vt_close(v);
}

START_TEST(terminals_that_cannot_are_told_what_to_do)
{
    is_refused("dumb", "cannot place its cursor");
    is_refused("no-such-terminal", "is in no terminal description");
}
END_TEST

START_TEST(without_colors_no_color_is_written)
{
    static const char *const environment[] = {"NO_COLOR=1", NULL};
    vt_setup setup = {lively, environment, NULL, ROWS, COLUMNS};
    vt_run *v = vt_start(&setup);
    ck_assert(vt_shows(v, "running"));
    const vt_cell *cells = vt_cells(v);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        ck_assert(cells[i].foreground == -1 && cells[i].background == -1);
    }
    vt_close(v);
}
END_TEST

SUITE_MAIN("tui vterm", the_first_frame_comes_and_quitting_gives_the_terminal_back,
           every_key_of_the_table_leaves_a_clean_screen, random_bytes_are_survived,
           after_a_storm_of_sizes_a_frame_is_as_a_fresh_one, the_mouse_is_not_touched_when_it_is_not_wanted,
           a_paste_never_is_a_key, pasted_text_goes_into_the_line,
           ctrl_z_gives_back_and_returns_to_the_new_size, every_end_gives_the_terminal_back,
           who_loses_the_terminal_ends, every_terminal_shows_the_bench_and_gets_back_what_it_gave,
           terminals_that_cannot_are_told_what_to_do, without_colors_no_color_is_written)
