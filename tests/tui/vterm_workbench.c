// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/vterm_workbench.h"

#include <check.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDRAWN_MS = 100 };

const char *const workbench_still[] = {FAKE_WORKBENCH, "--still", NULL};
const char *const workbench_lively[] = {FAKE_WORKBENCH, NULL};
const char *const workbench_real[] = {HEADROOM_PROGRAM, "demo", "-s", "device.kind=plan", NULL};

vt_run *workbench_start_sized(const char *const *command, int rows, int columns)
{
    setlocale(LC_CTYPE, "C.UTF-8");
    vt_setup setup = {.command = command, .rows = rows, .columns = columns};
    return vt_start(&setup);
}

vt_run *workbench_start(const char *const *command)
{
    return workbench_start_sized(command, WORKBENCH_ROWS, WORKBENCH_COLUMNS);
}

void workbench_type(vt_run *v, const char *text)
{
    vt_type(v, text, strlen(text));
}

void workbench_settle_all(vt_run *const *v, int count)
{
    ck_assert_msg(vt_quiet(v, count, WORKBENCH_QUIET_MS), "a program never stops writing");
}

void workbench_settle(vt_run *v)
{
    workbench_settle_all(&v, 1);
}

// Every one of them draws its screen anew: asked by a signal, or, where `sizes` are given, by another size.
static void redraw_all(vt_run *const *v, int count, const int (*sizes)[2])
{
    size_t written[WORKBENCH_GROUP_MAX];
    for (int i = 0; i < count; i++) {
        written[i] = vt_written(v[i]);
        if (sizes == NULL) {
            vt_signal(v[i], SIGCONT);
        } else {
            vt_resize(v[i], sizes[i][0], sizes[i][1]);
        }
    }
    ck_assert_msg(vt_answered(v, count, written), "a program does not draw");
    ck_assert(vt_quiet(v, count, REDRAWN_MS));
}

void workbench_wait_all(vt_run *const *v, int count)
{
    workbench_settle_all(v, count);
    redraw_all(v, count, NULL); // what it knows, and has not shown yet
}

void workbench_wait(vt_run *v)
{
    workbench_wait_all(&v, 1);
}

void workbench_has_taken(const vt_run *v)
{
    ck_assert(vt_mode(v, WORKBENCH_SCREEN));
    ck_assert(!vt_mode(v, WORKBENCH_CURSOR));
    ck_assert(vt_mode(v, WORKBENCH_PASTE));
}

// As a shell needs it back.
void workbench_has_given_back(const vt_run *v)
{
    const struct termios *before = vt_before(v);
    struct termios now = vt_termios(v);
    ck_assert_msg(!vt_mode(v, WORKBENCH_SCREEN), "the alternate screen is still there");
    ck_assert_msg(vt_mode(v, WORKBENCH_CURSOR), "the cursor is still hidden");
    ck_assert_msg(!vt_mode(v, WORKBENCH_MOUSE), "the mouse is still taken");
    ck_assert_msg(!vt_mode(v, 1006), "the mouse still speaks SGR");
    ck_assert_msg(!vt_mode(v, WORKBENCH_PASTE), "pastes still have brackets");
    ck_assert_uint_eq(now.c_iflag, before->c_iflag);
    ck_assert_uint_eq(now.c_oflag, before->c_oflag);
    ck_assert_uint_eq(now.c_cflag, before->c_cflag);
    ck_assert_uint_eq(now.c_lflag, before->c_lflag);
    ck_assert_mem_eq(now.c_cc, before->c_cc, sizeof now.c_cc);
}

vt_cell *workbench_copy_cells(vt_run *v)
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

bool workbench_same_cells(const vt_cell *a, const vt_cell *b, int count)
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

void workbench_show_same(vt_run *a, vt_run *b, const char *name)
{
    char *one = vt_text(a), *other = vt_text(b);
    bool same = strcmp(one, other) == 0;
    if (!same) { // longer than a message of Check may be
        fprintf(stderr, "%s\nshows\n%s\nand should show\n%s\n", name, one, other);
    }
    ck_assert_msg(same, "%s: another screen", name);
    free(one);
    free(other);
}

// What stands there is what a frame drawn on an empty screen shows: a window of one cell keeps nothing, neither here nor
// in the program.
void workbench_are_clean(vt_run *const *v, const char *const *names, int count)
{
    vt_cell *before[WORKBENCH_GROUP_MAX];
    int sizes[WORKBENCH_GROUP_MAX][2], least[WORKBENCH_GROUP_MAX][2];
    workbench_settle_all(v, count);
    for (int i = 0; i < count; i++) {
        before[i] = workbench_copy_cells(v[i]);
        vt_size(v[i], &sizes[i][0], &sizes[i][1]);
        bool one = sizes[i][0] == 1 && sizes[i][1] == 1;
        least[i][0] = 1;
        least[i][1] = one ? 2 : 1;
    }
    redraw_all(v, count, (const int(*)[2])least);
    redraw_all(v, count, (const int(*)[2])sizes);
    for (int i = 0; i < count; i++) {
        ck_assert_msg(workbench_same_cells(before[i], vt_cells(v[i]), sizes[i][0] * sizes[i][1]),
                      "%s left something of the old screen", names[i]);
        free(before[i]);
    }
}

void workbench_is_clean(vt_run *v, const char *name)
{
    workbench_are_clean(&v, &name, 1);
}
