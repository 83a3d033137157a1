// SPDX-License-Identifier: Apache-2.0
// What the workbench remembers. Every system call on its file fails once (linked with --wrap).
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tui/shell/command.h"
#include "app/tui/shell/remember.h"
#include "app/tui/shell/tour.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

// ---- calls that fail ------------------------------------------------------------------------------------------

static long calls, failing; // the failing-th call fails; 0: none

static bool fails(void)
{
    errno = EIO;
    return ++calls == failing;
}

int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int file, void *to, size_t size);
ssize_t __real_write(int file, const void *from, size_t size);
int __real_fsync(int file);
int __real_close(int file);
int __real_rename(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int file, void *to, size_t size);
ssize_t __wrap_write(int file, const void *from, size_t size);
int __wrap_fsync(int file);
int __wrap_close(int file);
int __wrap_rename(const char *from, const char *to);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(args, unsigned) : 0;
    va_end(args);
    return fails() ? -1 : __real_open(path, flags, mode);
}

ssize_t __wrap_read(int file, void *to, size_t size)
{
    return fails() ? -1 : __real_read(file, to, size);
}

ssize_t __wrap_write(int file, const void *from, size_t size)
{
    return fails() ? -1 : __real_write(file, from, size);
}

int __wrap_fsync(int file)
{
    return fails() ? -1 : __real_fsync(file);
}

int __wrap_close(int file)
{
    bool failed = fails();
    int closed = __real_close(file);
    return failed ? -1 : closed;
}

int __wrap_rename(const char *from, const char *to)
{
    return fails() ? -1 : __real_rename(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return fails() ? -1 : __real_mkdir(path, mode);
}

// ---- a folder of its own --------------------------------------------------------------------------------------

static const char file[] = "state/headroom/workbench";
static const remember_given nothing_given;

static void enter_folder(void)
{
    char folder[] = "/tmp/headroom-state-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static char *slurp(const char *path)
{
    char *text = calloc(1, REMEMBER_BYTES_MAX + 1);
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        free(text);
        return NULL;
    }
    size_t length = fread(text, 1, REMEMBER_BYTES_MAX, in);
    text[length] = '\0';
    fclose(in);
    return text;
}

static void write_file(const char *text, size_t length)
{
    (void)system("mkdir -p state/headroom");
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, length, out), length);
    fclose(out);
}

static const screen_look plain = {.rows = 24, .columns = 120};

static app *bench(void)
{
    return screen_open(&plain);
}

// Turns all that is remembered away from its default.
static void turn_looks(app *a)
{
    screen_advance(a, 5);
    app_command(a, "theme safe");
    app_command(a, "glyphs braille");
    a->focus = PANE_PEAK;
    app_command(a, "columns shape");
    app_command(a, "sort bytes");
    app_command(a, "sort bytes");
    a->card_seen = true;
    screen_keys(a, ":set batch.size 64\n:run 5\n");
}

START_TEST(what_was_turned_comes_back_and_a_plan_does_not_change)
{
    enter_folder();
    app *a = bench();
    turn_looks(a);
    ck_assert(remember_write(a, file));
    char *first = slurp(file);
    screen_close(a);
    a = bench();
    hr_knobs knobs = a->feed.knobs;
    remember_read(a, file, nothing_given);
    ck_assert_str_eq(theme_name(&a->looks.theme), "safe");
    ck_assert_int_eq(a->looks.glyphs.set, GLYPHS_BRAILLE);
    ck_assert(a->card_seen);
    ck_assert_uint_ne(a->table[PANE_PEAK].hidden, 0);
    ck_assert_int_eq(a->table[PANE_PEAK].sort, TABLE_OWN_ORDER); // an order is of the moment
    ck_assert(!a->table[PANE_PEAK].reversed);
    screen_keys(a, ":");
    app_key(a, INPUT_UP);
    ck_assert_str_eq(a->prompt.text, "run 5");
    app_key(a, INPUT_UP);
    ck_assert_str_eq(a->prompt.text, "set batch.size 64");
    app_key(a, INPUT_ESCAPE);
    ck_assert_mem_eq(&a->feed.knobs, &knobs, sizeof knobs);
    char *again = remember_text(a);
    ck_assert_str_eq(first, again);
    free(first);
    free(again);
    screen_close(a);
}
END_TEST

// The preset comes back as it says itself; one key turns what had been turned of it.
START_TEST(turned_knobs_come_back_with_one_key_and_not_before)
{
    enter_folder();
    app *a = bench();
    const hr_knobs own = a->feed.knobs;
    screen_advance(a, 5);
    screen_keys(a, ":set batch.size 64\n:set execution.mode graph\n");
    ck_assert(remember_write(a, file));
    screen_close(a);
    for (int start = 0; start < 2; start++) { // who does not want them now may the next time
        a = bench();
        remember_read(a, file, nothing_given);
        ck_assert_mem_eq(&a->feed.knobs, &own, sizeof own);
        ck_assert_ptr_nonnull(
            strstr(a->feed.message.text, "Z turns batch.size=64 execution.mode=graph again"));
        calls = 0;
        ck_assert(remember_write(a, file));
        ck_assert_int_eq(calls, 0);
        if (start == 1) {
            screen_advance(a, 5);
            screen_keys(a, "Z");
            ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 64);
            ck_assert(hr_knob_is(&a->feed.knobs, HR_KNOB_EXECUTION_MODE, "graph"));
            screen_keys(a, "z"); // both
            ck_assert(knob_edit_same(&a->feed.knobs, &own));
            app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "32"); // another way
            ck_assert(remember_write(a, file));
        }
        screen_close(a);
    }
    char *text = slurp(file);
    ck_assert_ptr_nonnull(strstr(text, "turned batch.size=32\n"));
    free(text);
}
END_TEST

// In another folder it would be another file, and a save is of one training.
START_TEST(paths_of_the_moment_are_not_remembered)
{
    app *a = bench();
    screen_advance(a, 5);
    screen_keys(a, ":set train.save w.safetensors\n:set pipeline.path here\n"
                   ":set pipeline.cache_path here\n:set batch.size 64\n");
    char *text = remember_text(a);
    ck_assert_ptr_nonnull(strstr(text, "\nturned batch.size=64\n"));
    free(text);
    screen_keys(a, ":set pipeline.path /dev/null\n");
    text = remember_text(a);
    ck_assert_ptr_nonnull(strstr(text, "pipeline.path=/dev/null"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(what_was_turned_of_another_preset_does_not_come)
{
    static const char *const files[] = {"preset /dev/null\nturned batch.size=64\n", "turned batch.sise=64\n",
                                        "turned batch.size=many\n", "turned \n"};
    enter_folder();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_file(files[i], strlen(files[i]));
        app *a = bench();
        remember_read(a, file, nothing_given);
        ck_assert_uint_eq(a->feed.turned.count, 0);
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
        screen_close(a);
    }
}
END_TEST

START_TEST(who_only_watches_is_offered_no_turns)
{
    enter_folder();
    write_file("turned batch.size=64\n", 21);
    app *a = bench();
    a->feed.watched = "/dev/null/socket";
    remember_read(a, file, nothing_given);
    ck_assert_uint_eq(a->feed.turned.count, 0);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_close(a);
}
END_TEST

// The last preset is remembered by whoever only opened it.
START_TEST(a_file_that_says_otherwise_is_written_anew)
{
    enter_folder();
    write_file("preset /dev/null\n", 17);
    app *a = bench();
    remember_read(a, file, nothing_given);
    ck_assert(remember_write(a, file));
    char *text = slurp(file);
    ck_assert_ptr_null(strstr(text, "/dev/null"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(the_command_line_goes_before_what_is_remembered)
{
    enter_folder();
    write_file("theme mono\nglyphs ASCII\n", 24);
    app *a = bench();
    remember_read(a, file, (remember_given){.theme = true, .glyphs = true, .mouse = true});
    ck_assert_str_eq(theme_name(&a->looks.theme), "dark");
    ck_assert_int_eq(a->looks.glyphs.set, GLYPHS_FULL);
    char *text = remember_text(a); // for the next time, when it says nothing
    ck_assert_ptr_nonnull(strstr(text, "theme mono\n"));
    ck_assert_ptr_nonnull(strstr(text, "glyphs ASCII\n"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(what_nobody_chose_is_not_remembered)
{
    app *a = bench(); // a terminal may offer less than the next one
    char *text = remember_text(a);
    ck_assert_ptr_null(strstr(text, "theme"));
    ck_assert_ptr_null(strstr(text, "glyphs"));
    ck_assert_ptr_null(strstr(text, "mouse"));
    free(text);
    a->looks.richest_glyphs = GLYPHS_BRAILLE;
    enter_folder();
    write_file("glyphs blocks\n", 14);
    remember_read(a, file, nothing_given);
    ck_assert_int_ne(a->looks.glyphs.set, GLYPHS_BLOCK);
    text = remember_text(a);
    ck_assert_ptr_nonnull(strstr(text, "glyphs blocks\n"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(nothing_is_written_when_nothing_changed)
{
    enter_folder();
    app *a = bench();
    ck_assert(remember_write(a, file));
    calls = 0;
    ck_assert(remember_write(a, file));
    ck_assert_int_eq(calls, 0);
    app_command(a, "theme mono");
    ck_assert(remember_write(a, file));
    ck_assert_int_gt(calls, 0);
    screen_close(a);
}
END_TEST

// What stands there after a call failed is the old file or the new one, whole, and nothing beside it.
START_TEST(whatever_fails_the_file_is_whole_and_the_workbench_lives)
{
    enter_folder();
    bool whole = false;
    for (failing = 1; !whole; failing++) {
        long this_time = failing;
        (void)system("rm -rf state; mkdir -p state/headroom; echo 'theme light' > state/headroom/workbench");
        failing = 0;
        app *a = bench();
        turn_looks(a);
        char *wanted = remember_text(a);
        calls = 0;
        failing = this_time;
        bool written = remember_write(a, file);
        whole = calls < failing;
        failing = 0;
        char *found = slurp(file);
        ck_assert_ptr_nonnull(found);
        ck_assert_str_eq(found, written ? wanted : "theme light\n");
        ck_assert_int_eq(system("test $(ls -A state/headroom | wc -l) = 1"), 0);
        failing = this_time;
        free(found);
        free(wanted);
        failing = 0;
        screen_close(a);
        failing = this_time;
    }
    ck_assert_int_gt(failing, 6);
    failing = 0;
}
END_TEST

START_TEST(a_file_that_cannot_be_read_changes_nothing)
{
    enter_folder();
    write_file("theme mono\ncard seen\n", 21);
    for (long k = 1; k <= 2; k++) { // open, the first read
        app *a = bench();
        calls = 0;
        failing = k;
        remember_read(a, file, nothing_given);
        failing = 0;
        ck_assert_str_eq(theme_name(&a->looks.theme), "dark");
        ck_assert(!a->card_seen);
        screen_close(a);
    }
    char preset[64];
    ck_assert(!remember_preset("state/nothing", preset, sizeof preset));
    ck_assert(!remember_preset("state", preset, sizeof preset)); // a folder
}
END_TEST

START_TEST(a_home_that_cannot_be_written_is_no_error)
{
    enter_folder();
    fclose(fopen("state", "w")); // where a folder has to be
    app *a = bench();
    turn_looks(a);
    ck_assert(!remember_write(a, file));
    a->card_seen = false;
    a->remembered.path = file;
    card_show(a);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE); // it would come every time
    screen_close(a);
}
END_TEST

START_TEST(any_file_is_read_without_harm)
{
    enter_folder();
    static const char *const lines[] = {
        "theme",           "theme \n",
        "theme nothing\n", "glyphs \xff\n",
        "table\n",         "table PEAK sort=\n",
        "mouse \n",        "table NOPE a b\n",
        "line \x1b[2Jx\n", "table PEAK hidden=tensor,dtype,shape,bytes,,,\n",
        "\n\n\n",          "future thing 3\n",
        "preset \n",       "table PEAK hidden=a sort=nothing reversed x=y\n",
    };
    for (size_t seed = 0; seed < 300; seed++) {
        char text[4096];
        size_t length = 0;
        srand((unsigned)seed);
        for (int i = 0; i < 12; i++) {
            const char *line = lines[(size_t)rand() % (sizeof lines / sizeof *lines)];
            length += (size_t)snprintf(text + length, sizeof text - length, "%s", line);
        }
        text[(size_t)rand() % length] = (char)rand();
        write_file(text, length);
        app *a = bench();
        remember_read(a, file, nothing_given);
        screen_advance(a, 2);
        screen_keys(a, ":");
        app_key(a, INPUT_UP);
        ck_assert_ptr_null(strchr(a->prompt.text, '\x1b'));
        free(screen_text(a));
        screen_close(a);
    }
}
END_TEST

START_TEST(a_huge_file_is_read_up_to_its_bound)
{
    enter_folder();
    size_t size = 3 * (size_t)REMEMBER_BYTES_MAX;
    char *text = malloc(size);
    for (size_t i = 0; i < size; i++) {
        text[i] = "line a\n"[i % 7];
    }
    write_file(text, size);
    app *a = bench();
    remember_read(a, file, nothing_given);
    ck_assert_uint_le(prompt_past(&a->prompt), PROMPT_PAST);
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(the_card_is_shown_once_ever_and_any_key_closes_it_and_acts)
{
    enter_folder();
    app *a = bench();
    a->remembered.path = file;
    card_show(a);
    ck_assert_int_eq(a->overlay, OVERLAY_CARD);
    screen_advance(a, 10); // it trains behind it
    ck_assert_uint_gt(a->feed.live.steps, 5);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "any key closes this"));
    free(text);
    screen_keys(a, "b");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert(a->bench.baseline.pinned);
    screen_close(a);
    a = bench();
    a->remembered.path = file;
    remember_read(a, file, nothing_given);
    card_show(a);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_close(a);
}
END_TEST

START_TEST(the_tour_goes_on_with_the_key_it_names)
{
    app *a = bench();
    screen_advance(a, 10);
    tour_begin(a);
    static const int keys[] = {INPUT_RIGHT, 'z',          'b', INPUT_TAB, '?', INPUT_ESCAPE,
                               ':',         INPUT_ESCAPE, '2', '4',       '0'};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *text = screen_text(a);
        const char *line = tour_line(a);
        ck_assert(line == NULL || a->overlay != OVERLAY_NONE || strstr(text, line) != NULL);
        free(text);
        app_key(a, keys[i]);
        screen_advance(a, 1);
    }
    ck_assert_ptr_null(tour_line(a));
    ck_assert_int_eq(a->screen, SCREEN_FIT);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "that was the tour"));
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui state", what_was_turned_comes_back_and_a_plan_does_not_change,
           turned_knobs_come_back_with_one_key_and_not_before,
           what_was_turned_of_another_preset_does_not_come, paths_of_the_moment_are_not_remembered,
           a_file_that_says_otherwise_is_written_anew, who_only_watches_is_offered_no_turns,
           the_command_line_goes_before_what_is_remembered, what_nobody_chose_is_not_remembered,
           nothing_is_written_when_nothing_changed, whatever_fails_the_file_is_whole_and_the_workbench_lives,
           a_file_that_cannot_be_read_changes_nothing, a_home_that_cannot_be_written_is_no_error,
           any_file_is_read_without_harm, a_huge_file_is_read_up_to_its_bound,
           the_card_is_shown_once_ever_and_any_key_closes_it_and_acts, the_tour_goes_on_with_the_key_it_names)
