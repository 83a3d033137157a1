// SPDX-License-Identifier: Apache-2.0
// What the selected number means, and every key: both from their tables.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/shell/command.h"
#include "app/tui/shell/frame.h"

enum { KEY_WIDTH = 10, HELP_TEXT_MAX = 16384 };

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
    const int sort = ops->table == NULL ? TABLE_OWN_ORDER : a->table[a->focus].sort;
    const pane_view v = pane_view_of(a, a->focus);
    const char *of_row = ops->term_of_row == NULL ? NULL : ops->term_of_row(&v);
    if (of_row != NULL) {
        return of_row;
    }
    if (ops->term != NULL) {
        return ops->term;
    }
    return sort >= 0 && sort < (int)ops->table->column_count ? ops->table->columns[sort].term
                                                             : pane_title(a->focus);
}

// Of a column that the table is sorted by: what it shows; otherwise what the glossary says.
static const char *focused_line(const app *a)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    const hr_term *term = hr_term_find(focused_term(a));
    const int sort = ops->table == NULL ? TABLE_OWN_ORDER : a->table[a->focus].sort;
    if (ops->term == NULL && sort >= 0 && sort < (int)ops->table->column_count) {
        return table_column_line(&ops->table->columns[sort]);
    }
    return term == NULL ? "" : term->line;
}

static void add_knob(help_text *h, const feed *f)
{
    size_t count;
    const hr_knob_row *row = &hr_knob_rows(&count)[feed_knob(f)];
    add(h, "%s: %s\n", row->key, row->line);
    add(h, "%s\n", row->explanation);
    if (row->applies != NULL) {
        add(h, "applies %s\n", row->applies);
    }
    add(h, "%s\n", row->hot ? "changes between two steps without a rebuild" : "a change rebuilds the step");
}

// What stands beside a knob in a pane without room for numbers (widgets/knobs.c).
static void add_marks(help_text *h)
{
    add(h,
        "Beside a knob, what its value below (◂) and above (▸) would do to the peak: ▾ less, ▴ more, = as "
        "much, "
        "! does not fit, · not known yet, nothing: it has no such value, or not here. * before a knob: the "
        "training does not have that value yet. ~ before a value on Fit: it changes what is learned.\n");
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

// ---- keys -----------------------------------------------------------------------------------------------------

// The keys whose job is the focused pane's; the others do the same everywhere.
static bool is_own(const app *a, request r)
{
    const pane_ops *ops = pane_ops_of(a->focus);
    switch ((int)r) {
    case REQUEST_UP:
    case REQUEST_DOWN:
    case REQUEST_PAGE_UP:
    case REQUEST_PAGE_DOWN:
    case REQUEST_FIRST:
    case REQUEST_LAST:
        return true;
    case REQUEST_LEFT:
    case REQUEST_RIGHT:
        return a->focus == PANE_KNOBS || ops->move != NULL;
    case REQUEST_ENTER:
        return a->focus == PANE_KNOBS || ops->enter_does != NULL;
    case REQUEST_FILTER:
        return ops->table != NULL || a->focus == PANE_KNOBS;
    case REQUEST_SORT:
    case REQUEST_REVERSE:
    case REQUEST_COLUMNS:
    case REQUEST_FOLLOW:
    case REQUEST_MARK:
        return ops->table != NULL;
    case REQUEST_COPY:
        return ops->table != NULL || ops->copy != NULL;
    case REQUEST_ZOOM_IN:
    case REQUEST_ZOOM_OUT:
        return ops->zoom != NULL || a->focus == PANE_VRAM;
    default:
        return false;
    }
}

static void add_keys(help_text *h, const app *a, bool own)
{
    size_t count;
    const request_row *rows = request_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (is_own(a, (request)i) != own) {
            continue;
        }
        const char *why_not = app_why_not(a, (request)i);
        bool is_screen = i >= REQUEST_FIRST_SCREEN && i < REQUEST_FIRST_SCREEN + SCREEN_COUNT;
        add(h, "\t%s\t%s\n", rows[i].shown, rows[i].line);
        if (why_not != NULL && i != REQUEST_BACK && !is_screen) {
            add(h, "\t\toff now: %s\n", why_not);
        }
    }
}

static void add_commands(help_text *h)
{
    size_t count;
    const command_row *rows = command_rows(&count);
    add(h, "After ':' stand all of these by name, and (with a ! over a file that is there)\n");
    for (size_t i = 0; i < count; i++) {
        add(h, "  :%s%s %s%s%s\n", rows[i].name, rows[i].over == NULL ? "" : "[!]", rows[i].arguments,
            rows[i].arguments[0] == '\0' ? "" : "  ", rows[i].line);
    }
}

static void make_text(help_text *h, const app *a)
{
    const hr_knob_row *knob = &hr_knob_rows(NULL)[feed_knob(&a->feed)];
    bool knobs = a->focus == PANE_KNOBS;
    add(h, "%s: %s\n", knobs ? knob->key : focused_term(a), knobs ? knob->line : focused_line(a));
    if (knobs) {
        add_marks(h);
    }
    add(h, "Keys of this pane\n");
    add_keys(h, a, true);
    add(h, "Keys everywhere\n");
    add_keys(h, a, false);
    add_commands(h);
    add(h, " \n");
    if (knobs) {
        add_knob(h, &a->feed);
    } else {
        add_term(h, focused_term(a));
    }
}

// Only lines with what is looked for, any case.
static void filter_text(help_text *h, const char *filter)
{
    size_t kept = 0;
    for (size_t at = 0; filter[0] != '\0' && at < h->length;) {
        size_t length = strcspn(h->text + at, "\n");
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)length, h->text + at);
        size_t whole = length + (h->text[at + length] == '\n');
        if (strcasestr(line, filter) != NULL) {
            memmove(h->text + kept, h->text + at, whole);
            kept += whole;
        }
        at += whole;
    }
    if (filter[0] != '\0') {
        h->text[kept] = '\0';
        h->length = kept;
        if (kept == 0) {
            add(h, "no line has '%s': / and Enter show all again\n", filter);
        }
    }
}

// ---- drawing --------------------------------------------------------------------------------------------------

// One row of the text as it is shown. Lines of keys begin with a tab: key and meaning in two columns, and what goes on
// stays in the second.
typedef struct help_row {
    size_t key, key_length, start, length; // bytes of the text; key_length 0: no key stands before it
    bool indented, reason;
} help_row;

typedef struct help_walk {
    size_t at;
    bool goes_on; // the line before has more; it was
    help_row of;
} help_walk;

static bool help_next(const glyphs *g, const help_text *h, int width, help_walk *w)
{
    const char *text = h->text;
    if (!w->goes_on) {
        w->of = (help_row){.indented = text[w->at] == '\t'};
        if (w->of.indented) {
            w->of.key = w->at + 1;
            w->of.key_length = strcspn(text + w->of.key, "\t");
            w->of.reason = w->of.key_length == 0;
            w->at = w->of.key + w->of.key_length + 1;
        }
    } else {
        w->of.key_length = 0;
    }
    bool any =
        wrap_next(g, text, w->of.indented ? width - KEY_WIDTH : width, &w->at, &w->of.start, &w->of.length);
    w->goes_on = any && text[w->at - 1] != '\n' && text[w->at] != '\0';
    return any;
}

static void draw_row(const canvas *c, int y, const help_text *h, const help_row *row)
{
    int x = 1 + (row->indented ? KEY_WIDTH : 0);
    paint_format(c, y, 1, KEY_WIDTH, ROLE_KEY, "%.*s", (int)row->key_length, h->text + row->key);
    paint_format(c, y, x, c->area.w - x - 1, row->reason ? ROLE_DIM : ROLE_TEXT, "%.*s", (int)row->length,
                 h->text + row->start);
}

static const help_text *text_of(const app *a)
{
    static help_text h; // one thread draws
    h.length = 0;
    make_text(&h, a);
    filter_text(&h, a->help.filter);
    return &h;
}

static int text_width(int width)
{
    return width - 2;
}

// Rows above the last page.
static int last_top(const glyphs *g, const help_text *h, rect area)
{
    help_walk walk = {.at = 0};
    int rows = 0;
    while (help_next(g, h, text_width(area.w), &walk)) {
        rows++;
    }
    return rows > area.h - 1 ? rows - (area.h - 1) : 0;
}

void help_settle(app *a, rect area)
{
    size_t last = (size_t)last_top(&a->looks.glyphs, text_of(a), area);
    a->help.top = a->help.top < last ? a->help.top : last;
}

void screen_help(const canvas *body, const app *a)
{
    const help_text *h = text_of(a);
    help_walk walk = {.at = 0};
    bool more = a->help.top < (size_t)last_top(body->glyphs, h, body->area);
    paint_rule(body, true, "help", more ? "more below" : "the end");
    for (int y = 1 - (int)a->help.top;
         y < body->area.h && help_next(body->glyphs, h, text_width(body->area.w), &walk); y++) {
        if (y >= 1) {
            draw_row(body, y, h, &walk.of);
        }
    }
}
