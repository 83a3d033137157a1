// SPDX-License-Identifier: Apache-2.0
// The program in a terminal: it comes, every key leaves a clean screen, and every size is drawn as if it had been the
// first.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/tui/shell/requests.h"
#include "tests/tui/suite.h"
#include "tests/tui/vterm_workbench.h"

// ---- start ----------------------------------------------------------------------------------------------------

START_TEST(the_first_frame_comes_and_quitting_gives_the_terminal_back)
{
    static const char *const *const programs[] = {workbench_still, workbench_real};
    for (size_t i = 0; i < 2; i++) {
        int status;
        vt_run *v = workbench_start(programs[i]);
        ck_assert(vt_shows(v, "headroom") && vt_shows(v, "batch.size"));
        workbench_has_taken(v);
        ck_assert(vt_mode(v, WORKBENCH_MOUSE));
        workbench_type(v, "qy"); // y in case it asks
        ck_assert(vt_changed(v, &status));
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
        workbench_has_given_back(v);
        vt_close(v);
    }
}
END_TEST

START_TEST(a_screen_asks_for_its_plans_where_nothing_but_a_key_happens)
{
    vt_run *v = workbench_start(workbench_still);
    workbench_wait(v);
    workbench_settle(v);
    workbench_type(v, "0");
    workbench_settle(v);
    ck_assert(vt_shows(v, "The first plans are being made."));
    vt_close(v);
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
        v[i] = workbench_start(workbench_still);
    }
    workbench_wait_all(v, count);
}

// Each key in a program of its own.
static void press_each(const char (*keys)[8], const char *const *names, int count)
{
    vt_run *v[WORKBENCH_GROUP_MAX], *open[WORKBENCH_GROUP_MAX];
    const char *open_names[WORKBENCH_GROUP_MAX];
    int left = 0;
    start_all(v, count);
    for (int i = 0; i < count; i++) {
        workbench_type(v[i], keys[i]);
    }
    workbench_settle_all(v, count);
    for (int i = 0; i < count; i++) {
        bool may_leave = strcmp(names[i], "quit") == 0 || strcmp(names[i], "stop") == 0;
        ck_assert_msg(!vt_has_ended(v[i]) || may_leave, "%s left", names[i]);
        ck_assert_msg(vt_has_ended(v[i]) || !is_blank(v[i]), "%s left an empty screen", names[i]);
        open_names[left] = names[i];
        open[left] = v[i];
        left += !vt_has_ended(v[i]);
    }
    workbench_are_clean(open, open_names, left);
    for (int i = 0; i < count; i++) {
        vt_close(v[i]);
    }
}

START_TEST(every_key_of_the_table_leaves_a_clean_screen)
{
    size_t rows_count;
    const request_row *rows = request_rows(&rows_count);
    char keys[WORKBENCH_GROUP_MAX][8];
    const char *names[WORKBENCH_GROUP_MAX];
    int count = 0, pressed = 0;
    for (size_t i = 0; i < rows_count; i++) {
        const char *bytes = bytes_of(rows[i].key, keys[count]);
        bool leaves_a_file = strcmp(rows[i].name, "save-screen") == 0;
        if (bytes != NULL && rows[i].key != INPUT_NONE && !leaves_a_file) {
            memmove(keys[count], bytes, strlen(bytes) + 1);
            names[count++] = rows[i].name;
        }
        if (count == WORKBENCH_GROUP_MAX || (i + 1 == rows_count && count > 0)) {
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
    vt_run *v = workbench_start(workbench_lively);
    ck_assert(vt_shows(v, "headroom"));
    for (int i = 0; i < 4000 && !vt_has_ended(v); i++) {
        seed = seed * 1103515245 + 12345;
        char byte = (char)(seed >> 16 & 0xff);
        bool leaves = strchr("q\003\032\034Sy", byte) != NULL; // quits, signals, files
        vt_type(v, leaves ? " " : &byte, 1);
    }
    vt_signal(v, SIGCONT);
    workbench_settle(v);
    ck_assert(!vt_has_ended(v) && !is_blank(v));
    workbench_has_taken(v);
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
    workbench_settle_all(v, FINAL_COUNT);
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
        workbench_show_same(v[i], fresh[i], "after the storm");
        vt_cell *cells = workbench_copy_cells(fresh[i]);
        ck_assert(workbench_same_cells(cells, vt_cells(v[i]), rows * columns));
        free(cells);
        names[i] = "the storm";
        vt_close(fresh[i]);
    }
    workbench_are_clean(v, names, FINAL_COUNT);
    for (int i = 0; i < FINAL_COUNT; i++) {
        vt_close(v[i]);
    }
}
END_TEST

SUITE_MAIN("tui vterm screen", the_first_frame_comes_and_quitting_gives_the_terminal_back,
           a_screen_asks_for_its_plans_where_nothing_but_a_key_happens,
           every_key_of_the_table_leaves_a_clean_screen, random_bytes_are_survived,
           after_a_storm_of_sizes_a_frame_is_as_a_fresh_one)
