// SPDX-License-Identifier: Apache-2.0
// What a frame costs: every screen of the workbench, drawn in this process on the scripted engine of tests/tui. Prints
// JSON: seconds of a frame after a step of the engine, and of one that is written whole. ncurses writes to /dev/null.
//
//   bench_frames [FRAMES]     so many of each, of every screen and size; 201 unless told
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/tui/term/terminal.h"
#include "tests/tui/screen.h"

enum { FRAMES = 201, STEPS_BEFORE = 120 };

static const screen_look looks[] = {{.rows = 24, .columns = 80}, {.rows = 50, .columns = 160}};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double frame_seconds(app *a)
{
    const double begin = seconds_now();
    app_draw(a);
    return seconds_now() - begin;
}

static void print_frames(app *a, const char *name, bool whole, int frames)
{
    printf(", \"%s\": [", name);
    for (int k = 0; k < frames; k++) {
        screen_advance(a, 1);
        if (whole) {
            terminal_redraw();
        }
        printf("%s%.4g", k == 0 ? "" : ", ", frame_seconds(a));
    }
    putchar(']');
}

static void measure(const screen_look *look, int frames, bool first)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    app *a = screen_open(look);
    screen_advance(a, STEPS_BEFORE);
    for (int screen = 0; screen < SCREEN_COUNT; screen++) {
        app_show_screen(a, (screen_id)screen);
        app_draw(a); // the change of screens is not a frame of it
        printf("%s\n {\"rows\": %d, \"columns\": %d, \"screen\": \"%s\"", first && screen == 0 ? "" : ",",
               look->rows, look->columns, rows[request_of_screen((screen_id)screen)].name);
        print_frames(a, "frame_seconds", false, frames);
        print_frames(a, "whole_frame_seconds", true, frames / 4 + 1);
        putchar('}');
    }
    screen_close(a);
}

int main(int argc, char **argv)
{
    const int frames = argc > 1 ? atoi(argv[1]) : FRAMES;
    if (frames < 1) {
        fputs("bench_frames: how many frames? a number above 0\n", stderr);
        return 2;
    }
    printf("[");
    for (size_t k = 0; k < sizeof looks / sizeof *looks; k++) {
        measure(&looks[k], frames, k == 0);
    }
    puts("\n]");
    return 0;
}
