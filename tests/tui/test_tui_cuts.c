// SPDX-License-Identifier: Apache-2.0
// Nothing that one decides by is cut off: every screen is walked at 80×24 and 60×16, pane by pane and row by row, with
// its lists and lines, in several situations. A text that has no room must stand whole somewhere on the same screen; of a
// row, once it is selected.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/shell/act.h"
#include "app/tui/shell/panes.h"
#include "app/tui/shell/tour.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

enum { CUTS_MAX = 64, ROWS_MAX = 24, ROWS_WALKED = 10, CUT_TEXT = 2048 };

// ---- what a frame cut ---------------------------------------------------------------------------------------------

static struct {
    char text[CUTS_MAX][CUT_TEXT];
    int y[CUTS_MAX];
    int count;
} cuts;

static void note_cut(void *context, int y, int x, const char *text)
{
    (void)context;
    (void)x;
    ck_assert_int_lt(cuts.count, CUTS_MAX);
    cuts.y[cuts.count] = y;
    snprintf(cuts.text[cuts.count++], CUT_TEXT, "%s", text);
}

// Without blanks: a text that is wrapped has none at its breaks.
static void add_solid(char *solid, const char *from, const char *end)
{
    size_t length = strlen(solid);
    for (; from < end; from++) {
        if (*from != ' ' && *from != '\n') {
            solid[length++] = *from;
        }
    }
    solid[length] = '\0';
}

// What stands within a rectangle of the screen, row behind row.
static void read_rect(const char *text, rect r, char *solid)
{
    solid[0] = '\0';
    for (int y = 0; *text != '\0'; y++) {
        const char *end = text + strcspn(text, "\n"), *from = end, *to = end;
        int x = 0;
        for (const char *at = text; at < end;) {
            const char *next = at;
            int columns = glyphs_columns(utf8_next(&next));
            from = x >= r.x && from == end ? at : from;
            to = x < r.x + r.w ? next : to;
            x += columns;
            to = x <= r.x + r.w ? next : to;
            at = next;
        }
        if (y >= r.y && y < r.y + r.h && from < end) {
            add_solid(solid, from, to > from ? to : from);
        }
        text = end + (*end == '\n');
    }
}

static bool stands_whole(const app *a, const char *screen, const char *text)
{
    static char solid[1 << 16], wanted[CUT_TEXT];
    layout l = app_layout(a);
    wanted[0] = '\0';
    add_solid(wanted, text, text + strlen(text));
    for (int pane = 0; pane < PANE_COUNT; pane++) {
        read_rect(screen, l.pane[pane], solid);
        if (l.pane[pane].h > 0 && strstr(solid, wanted) != NULL) {
            return true;
        }
    }
    read_rect(screen, (rect){0, 0, a->rows, a->columns}, solid);
    return strstr(solid, wanted) != NULL;
}

static int found; // of all frames

static void check(app *a, const char *where)
{
    cuts.count = 0;
    char *text = screen_text(a);
    for (int i = 0; i < cuts.count; i++) {
        if (!stands_whole(a, text, cuts.text[i])) {
            found++;
            fprintf(stderr, "%dx%d screen %s, pane %s, %s, row %d: cut off and nowhere whole: %s\n%s\n",
                    a->columns, a->rows, request_rows(&(size_t){0})[request_of_screen(a->screen)].name,
                    pane_title(a->focus), where, cuts.y[i], cuts.text[i], found < 4 ? text : "");
        }
    }
    free(text);
}

// ---- the walk -----------------------------------------------------------------------------------------------------

static void walk_rows(app *a, const char *where)
{
    size_t knobs;
    knob_edit_panel(&knobs);
    int rows = a->focus == PANE_KNOBS ? (int)knobs : ROWS_WALKED;
    app_key(a, INPUT_HOME);
    for (int i = 0; i < rows; i++) {
        check(a, where);
        app_key(a, INPUT_DOWN);
    }
    app_key(a, INPUT_END);
    check(a, where);
    app_key(a, INPUT_HOME);
}

static void walk_panes(app *a, const char *where)
{
    const pane_id first = a->focus;
    int panes = 0; // a lesson that a key opened has the screen for itself: there is no way round to the first
    do {
        walk_rows(a, where);
        app_key(a, 'o');
        check(a, "sorted");
        app_key(a, '.');
        check(a, "said");
        app_key(a, INPUT_TAB);
    } while (a->focus != first && ++panes < PANE_COUNT);
}

static void walk_screens(app *a, const char *where)
{
    for (int screen = 0; screen < SCREEN_COUNT; screen++) {
        app_show_screen(a, (screen_id)screen);
        walk_panes(a, where);
        app_key(a, 'e');
        walk_rows(a, "expanded");
        a->expanded = false;
        app_key(a, INPUT_ESCAPE);
    }
}

static void walk_overlays(app *a)
{
    size_t knobs;
    app_show_screen(a, SCREEN_BENCH);
    app_key(a, '?');
    for (int i = 0; i < 8; i++) {
        check(a, "help");
        app_key(a, INPUT_PAGE_DOWN);
    }
    screen_keys(a, "/peak");
    check(a, "find");
    screen_keys(a, "\n");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "p");
    for (int i = 0; i < ROWS_WALKED; i++) {
        check(a, "presets");
        app_key(a, INPUT_DOWN);
    }
    screen_keys(a, "/wi");
    check(a, "narrow");
    screen_keys(a, "\n");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "5c");
    check(a, "columns");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "/b");
    check(a, "filter");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "1");
    for (knob_edit_panel(&knobs), a->feed.knob = 0; a->feed.knob < knobs; a->feed.knob++) {
        a->focus = PANE_KNOBS;
        app_key(a, INPUT_ENTER);
        check(a, "edit");
        for (int i = 0; i < 3; i++) {
            app_key(a, INPUT_TAB);
            check(a, "edit, Tab");
        }
        app_key(a, INPUT_ESCAPE);
    }
    a->feed.knob = 0;
    static const char *const lines[] = {":",        ":s",     ":set ", ":set opt", ":set device.card ",
                                        ":preset ", ":theme "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        screen_keys(a, lines[i]);
        check(a, lines[i]);
        app_key(a, INPUT_TAB);
        check(a, lines[i]);
        app_key(a, INPUT_ESCAPE);
    }
    tour_begin(a);
    for (; tour_line(a) != NULL; a->tour++) {
        check(a, "tour");
        if (a->tour == 9) {
            break;
        }
    }
    a->tour = 0;
    a->overlay = OVERLAY_CARD;
    check(a, "card");
    a->overlay = OVERLAY_SWITCH;
    snprintf(a->next.preset, sizeof a->next.preset, "a_preset_with_a_long_name_of_its_own.yaml");
    check(a, "switch");
    a->overlay = OVERLAY_QUIT;
    check(a, "quit");
    a->overlay = OVERLAY_NONE;
}

static void walk_messages(app *a)
{
    static const char *const lines[] = {
        ":set batch.sise 3\n",
        ":set batch.size -1\n",
        ":set allocator.kind static\n",
        ":preset ./a/folder/that/is/not/there/and/has/a/long/name/of_its_own.yaml\n",
        ":save-display nowhere.gif\n",
        ":glyphs none\n",
        ":fix 99\n",
        ":set precision.policy mixed_float61\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        screen_keys(a, lines[i]);
        check(a, lines[i]);
        app_key(a, INPUT_ESCAPE);
    }
}

// ---- situations ---------------------------------------------------------------------------------------------------

static void tell_fit(app *a)
{
    static const char *const points[] = {
        "", "execution.mode=graph",
        "execution.mode=graph checkpoint.strategy=sqrt batch.size=32 batch.accumulate=4 offload.optimizer=on",
        "precision.policy=mixed_bfloat16 optimizer.fused_backward=on batch.size=16 batch.accumulate=8"};
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    for (uint32_t i = 0; i < 4; i++) {
        hr_answer answer = {
            .kind = HR_QUESTION_FIT, .number = a->feed.fit.question, .index = i, .last = i == 3};
        answer.point.plan = (hr_whatif){.limit_bytes = 64 * HR_MIB,
                                        .peak_in_use_bytes = (70 - 10 * i) * HR_MIB,
                                        .fits = i > 0,
                                        .missing_bytes = i > 0 ? 0 : 6 * HR_MIB,
                                        .step_seconds = 0.04 + 0.01 * i};
        snprintf(answer.point.knobs, sizeof answer.point.knobs, "%s", points[i]);
        app_take_fit(a, &answer);
    }
}

static void fits(app *a)
{
    screen_advance(a, 60);
    fake_step_plan_show(a);
    tell_fit(a);
}

static void runs_out(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, ":set batch.size 256\n");
    screen_advance(a, 3);
    hr_report_oom *oom = &a->feed.report.oom;
    oom->hole_count = HR_HOLES_MAX + 30;
    oom->cause = HR_OOM_FRAGMENTATION;
    snprintf(oom->fixes[0].knobs, sizeof oom->fixes[0].knobs,
             "batch.size=64 batch.accumulate=4 execution.mode=graph precision.policy=mixed_bfloat16 "
             "optimizer.fused_backward=on");
    fake_step_plan_show(a);
}

static void waits_without_room(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "r");
    screen_advance(a, 2);
    screen_keys(a, ":set device.vram 32MiB\n");
    screen_advance(a, 2);
    tell_fit(a);
}

static void has_many_runs(app *a)
{
    static const char *const turns[] = {":set batch.size 64\n",
                                        ":set execution.mode graph\n",
                                        ":set optimizer.kind adafactor_keras\n",
                                        ":set precision.policy mixed_bfloat16\n",
                                        ":set optimizer.learning_rate 0.00025\n",
                                        ":set batch.size 512\n"};
    screen_advance(a, 20);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        screen_keys(a, turns[i]);
        screen_advance(a, 12);
    }
    app_key(a, INPUT_ESCAPE);
}

static void has_long_names(app *a)
{
    screen_advance(a, 20);
    screen_keys(
        a, ":set pipeline.path /srv/experiments/2024/images-of-every-kind/train-00000-of-00128.tfrecord\n");
    screen_keys(a, ":set checkpoint.strategy list:separable_conv2d,separable_conv2d_1,dense,dense_1\n");
    screen_keys(a, ":set train.save /srv/experiments/2024/saves/the-separable-network-with-adam.hrsave\n");
    screen_advance(a, 12);
    app_key(a, INPUT_ESCAPE);
}

static void walk(const char *name, void (*prepare)(app *a))
{
    static const screen_look looks[] = {{.rows = 24, .columns = 80}, {.rows = 16, .columns = 60}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        app *a = screen_open(&looks[i]);
        prepare(a);
        paint_watch_cuts(note_cut, NULL);
        walk_screens(a, name);
        walk_overlays(a);
        walk_messages(a);
        paint_watch_cuts(NULL, NULL);
        screen_close(a);
    }
    ck_assert_msg(found == 0, "%d texts are cut off and stand nowhere whole", found);
}

START_TEST(of_a_training_that_fits_nothing_is_cut_off)
{
    walk("fits", fits);
}
END_TEST

START_TEST(of_one_that_ran_out_of_memory_nothing_is_cut_off)
{
    walk("out of memory", runs_out);
}
END_TEST

START_TEST(of_one_that_waits_without_room_nothing_is_cut_off)
{
    walk("waits", waits_without_room);
}
END_TEST

START_TEST(of_many_runs_nothing_is_cut_off)
{
    walk("many runs", has_many_runs);
}
END_TEST

START_TEST(of_long_names_nothing_is_cut_off)
{
    walk("long names", has_long_names);
}
END_TEST

SUITE_MAIN("tui cuts", of_a_training_that_fits_nothing_is_cut_off,
           of_one_that_ran_out_of_memory_nothing_is_cut_off,
           of_one_that_waits_without_room_nothing_is_cut_off, of_many_runs_nothing_is_cut_off,
           of_long_names_nothing_is_cut_off)
