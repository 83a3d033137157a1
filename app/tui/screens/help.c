// SPDX-License-Identifier: Apache-2.0
// What the selected number means, and every key: both from their tables.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/screens/screens.h"

enum { KEY_WIDTH = 10, HELP_TEXT_MAX = 8192 };

typedef struct help_text {
    char text[HELP_TEXT_MAX];
    size_t length;
} help_text;

static void add(help_text *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(help_text *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(h->text + h->length, sizeof h->text - h->length, format, args);
    va_end(args);
    h->length += length > 0 ? (size_t)length : 0;
    h->length = h->length < sizeof h->text ? h->length : sizeof h->text - 1;
}

static const char *focused_term(const app *a)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    return ops->term != NULL ? ops->term(a) : pane_title(a->focus);
}

static void add_knob(help_text *h, const app *a)
{
    size_t count;
    const hr_knob_row *row = &hr_knob_rows(&count)[app_knob(a)];
    add(h, "%s: %s\n", row->key, row->line);
    add(h, "%s\n", row->explanation);
    if (row->applies != NULL) {
        add(h, "applies %s\n", row->applies);
    }
    add(h, "%s\n", row->hot ? "changes between two steps without a rebuild" : "a change rebuilds the step");
}

static void add_term(help_text *h, const char *name)
{
    const hr_term *term = hr_term_find(name);
    if (term == NULL) {
        add(h, "%s\n", name);
        return;
    }
    const struct {
        const char *label, *value;
    } rows[] = {{"formula", term->formula},
                {"unit", term->unit != NULL && term->unit[0] != '\0' ? term->unit : NULL},
                {"TensorFlow", term->tensorflow},
                {"PyTorch", term->pytorch},
                {"nvidia-smi", term->nvidia_smi}};
    add(h, "%s: %s\n", term->name, term->line);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].value != NULL) {
            add(h, "  %s: %s\n", rows[i].label, rows[i].value);
        }
    }
}

static void make_text(help_text *h, const app *a)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    if (a->focus == PANE_KNOBS) {
        add_knob(h, a);
    } else {
        add_term(h, focused_term(a));
    }
    add(h, " \n");
    for (size_t i = 0; i < count; i++) {
        add(h, "\t%s\t%s\n", rows[i].shown, rows[i].line);
    }
    add(h, " \n");
    add(h, "%s\n",
        "After ':' stand the same by name, and set KEY VALUE, fix NUMBER, preset NAME, save FILE, "
        "save-display FILE.");
}

// Lines of keys begin with a tab: key and meaning in two columns.
static void draw_row(const canvas *c, int y, const char *row)
{
    if (row[0] != '\t') {
        paint_text(c, y, 1, c->area.w - 2, ROLE_TEXT, row);
        return;
    }
    const char *line = strchr(row + 1, '\t');
    paint_format(c, y, 1, KEY_WIDTH, ROLE_KEY, "%.*s", (int)(line - row - 1), row + 1);
    paint_text(c, y, 1 + KEY_WIDTH, c->area.w - KEY_WIDTH - 2, ROLE_TEXT, line + 1);
}

void screen_help(const canvas *body, const app *a)
{
    static help_text h; // one thread draws
    size_t start, length;
    char row[1024];
    h.length = 0;
    make_text(&h, a);
    int rows = 0;
    while (wrap_row(body->glyphs, h.text, body->area.w - 2, rows, &start, &length)) {
        rows++;
    }
    int last = rows - (body->area.h - 1);
    int top = (int)a->help_top > last ? (last > 0 ? last : 0) : (int)a->help_top;
    paint_rule(body, true, "help", last > 0 ? "↑↓ PgUp PgDn · Esc closes" : "Esc closes");
    for (int y = 1;
         y < body->area.h && wrap_row(body->glyphs, h.text, body->area.w - 2, top + y - 1, &start, &length);
         y++) {
        snprintf(row, sizeof row, "%.*s", (int)length, h.text + start);
        draw_row(body, y, row);
    }
}
