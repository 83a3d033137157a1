// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/screen.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/tui/term/paint.h"
#include "app/tui/term/terminal.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_planning.h"

static FILE *nowhere;

app *screen_open(const screen_look *look)
{
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {
        fprintf(stderr, "these tests need the locale C.UTF-8\n");
        abort();
    }
    nowhere = fopen("/dev/null", "r+");
    fake_engine_set_manual(true);
    const hr_preset *preset = fake_preset();
    app *a = app_create(preset, hr_preset_knobs(preset));
    if (nowhere == NULL || a == NULL ||
        !terminal_open_on(look->type == NULL ? "xterm-256color" : look->type, nowhere, nowhere, look->rows,
                          look->columns)) {
        abort();
    }
    theme_make(&a->looks.theme, "dark", terminal_colors(), look->no_color);
    a->looks.richest_glyphs = GLYPHS_FULL;
    a->looks.glyphs = glyphs_make(look->glyphs);
    a->rows = look->rows;
    a->columns = look->columns;
    feed_start_engine(&a->feed);
    return a;
}

void screen_close(app *a)
{
    app_destroy(a);
    terminal_close_on();
    fclose(nowhere);
}

// The planner, without the planner.
static void answer_whatif(app *a)
{
    static hr_turn turns[HR_TURNS_MAX];
    const whatif_question question = {
        .knobs = a->feed.knobs, .first = feed_knob(&a->feed), .when_unset_bytes = a->feed.live.limit_bytes};
    const size_t count = whatif_begin(&a->feed.whatif, &question, turns);
    a->feed.answers.question = 0; // all of them anew
    for (size_t k = 0; k < count; k++) {
        hr_answer answer = {.number = a->feed.question, .index = (uint32_t)k, .last = k + 1 == count};
        if (!fake_planning_turn(&a->feed.knobs, &turns[k], &answer)) {
            abort();
        }
        whatif_take(&a->feed.whatif, &answer, &a->feed.answers);
    }
}

void screen_advance(app *a, unsigned pieces)
{
    bool more;
    for (unsigned i = 0; i < pieces; i++) {
        fake_engine_advance(a->feed.session, 1);
        app_drain(a, &more);
    }
    answer_whatif(a);
}

char *screen_text(app *a)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        abort();
    }
    app_draw(a);
    paint_dump(out);
    fclose(out);
    return text;
}

void screen_keys(app *a, const char *keys)
{
    for (; *keys != '\0'; keys++) {
        app_key(a, (unsigned char)*keys);
    }
}
