// SPDX-License-Identifier: Apache-2.0
// Golden screens: tests/tui/golden/NAME.txt is what a frame shows, character for character. After a wanted change,
// HEADROOM_GOLDEN=write makes them anew; read the difference before committing it.
#ifndef TESTS_TUI_GOLDEN_H
#define TESTS_TUI_GOLDEN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "tests/tui/screen.h"

// Tables grow; what a screen looks like does not change by it: "knobs 3/NN", "terms · 5 of NNN".
static inline void golden_hide_count(char *text, const char *pane, const char *before, size_t count)
{
    char total[32];
    const int length = snprintf(total, sizeof total, "%s%zu", before, count);
    for (char *at = strstr(text, pane); at != NULL; at = strstr(at + 1, pane)) {
        char *found = strstr(at, total);
        if (found != NULL && found < at + strcspn(at, "\n")) {
            memset(found + strlen(before), 'N', (size_t)length - strlen(before));
        }
    }
}

static inline void golden_hide_counts(char *text)
{
    size_t terms;
    (void)hr_terms(&terms);
    golden_hide_count(text, "knobs ", "/", HR_KNOB_COUNT);
    golden_hide_count(text, "terms ", " of ", terms);
}

static inline void golden_compare(const char *name, app *a)
{
    char path[128];
    char *text = screen_text(a);
    golden_hide_counts(text);
    const char *mode = getenv("HEADROOM_GOLDEN");
    bool writes = mode != NULL && strcmp(mode, "write") == 0;
    snprintf(path, sizeof path, "tests/tui/golden/%s.txt", name);
    FILE *file = fopen(path, writes ? "w" : "r");
    ck_assert_msg(file != NULL, "%s is missing: HEADROOM_GOLDEN=write makes it", path);
    if (writes) {
        fputs(text, file);
    } else {
        char *golden = calloc(1, 1 << 20);
        size_t length = fread(golden, 1, (1 << 20) - 1, file);
        bool same = length == strlen(text) && memcmp(golden, text, length) == 0;
        if (!same) { // longer than a message of Check may be
            fprintf(stderr, "%s was\n%s\nand is now\n%s\n", path, golden, text);
        }
        ck_assert_msg(same, "%s is not what the screen shows", path);
        free(golden);
    }
    fclose(file);
    free(text);
}

// The sizes and looks that every screen is shown in: "runs-80x24", "runs-ascii".
static const struct golden_look {
    const char *name;
    screen_look look;
} golden_looks[] = {
    {"80x24", {.rows = 24, .columns = 80}},
    {"120x36", {.rows = 36, .columns = 120}},
    {"160x50", {.rows = 50, .columns = 160}},
    {"60x16", {.rows = 16, .columns = 60}},
    {"ascii", {.rows = 24, .columns = 80, .glyphs = GLYPHS_ASCII}},
    {"mono", {.rows = 24, .columns = 80, .no_color = true}},
};

enum { GOLDEN_LOOKS = sizeof golden_looks / sizeof *golden_looks };

// Opens a workbench in every look, lets `prepare` bring it where it is wanted, and compares.
static inline void golden_all(const char *screen, void (*prepare)(app *a))
{
    for (int i = 0; i < GOLDEN_LOOKS; i++) {
        char name[96];
        app *a = screen_open(&golden_looks[i].look);
        prepare(a);
        snprintf(name, sizeof name, "%s-%s", screen, golden_looks[i].name);
        golden_compare(name, a);
        screen_close(a);
    }
}

#endif
