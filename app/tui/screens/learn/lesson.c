// SPDX-License-Identifier: Apache-2.0
// An open lesson: its keys and what of it is drawn.
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/learn/lesson_text.h"

static pane_request settle(const pane_view *v, void *own)
{
    learn_state *l = own;
    (void)v;
    (void)learn_take(l);
    if (l->lesson.open != NULL) {
        lesson_write(&l->lesson);
    }
    return (pane_request){.kind = PANE_DONE};
}

// ---- keys -----------------------------------------------------------------------------------------------------

static pane_request begin_work(lesson_state *s)
{
    pane_request r = {.kind = PANE_BEGINS, .knobs = &s->start};
    s->phase = LESSON_WORKS;
    s->is_judged = s->has_begun = s->in_sandbox = false;
    s->reread = 0;
    (void)snprintf(r.text, sizeof r.text, "%s", hr_lesson_tell(s->open)->preset);
    return r;
}

// NULL: it can be shown.
static const char *why_not_open(const lesson_state *s)
{
    return s->open == NULL ? "no lesson is open: Enter in the list opens one"
           : s->begins     ? "one moment: what the lesson shows is being planned"
           : s->is_broken  ? "this lesson cannot be played here: Esc goes to the list"
                           : NULL;
}

static pane_request go_on_at_work(lesson_state *s)
{
    if (s->reread > 0) {
        s->reread--;
        return (pane_request){.kind = PANE_DONE};
    }
    return s->has_begun ? pane_says("turn a knob until all of it says yes: 1 shows the Bench, h gives a hint")
                        : begin_work(s);
}

static pane_request go_on_in_pages(lesson_state *s, const hr_lesson_about *about)
{
    const bool after = s->phase == LESSON_AFTER;
    if (s->at + 1 < (after ? about->after.count : about->pages.count)) {
        s->at++;
    } else if (after) {
        return pane_says("n opens the next lesson, Esc the list; the knobs of this one can still be turned");
    } else {
        s->at = 0;
        s->phase = LESSON_ASKS;
        return about->question_count > 0 ? (pane_request){.kind = PANE_DONE} : begin_work(s);
    }
    return (pane_request){.kind = PANE_DONE};
}

// The next page, question or answer; behind the last of them the work begins.
static pane_request enter(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (why_not_open(s) != NULL) {
        return pane_says("%s", why_not_open(s));
    }
    const hr_lesson_about *about = hr_lesson_tell(s->open);
    s->top = 0;
    switch (s->phase) {
    case LESSON_ASKS:
        s->picked[s->at] = s->option;
        s->phase = LESSON_ANSWERS;
        break;
    case LESSON_ANSWERS:
        s->at++;
        s->option = 0;
        s->phase = LESSON_ASKS;
        return s->at < about->question_count ? (pane_request){.kind = PANE_DONE} : begin_work(s);
    case LESSON_WORKS:
        return go_on_at_work(s);
    case LESSON_PAGES:
    case LESSON_AFTER:
        return go_on_in_pages(s, about);
    }
    return (pane_request){.kind = PANE_DONE};
}

// Left and right: a page back and forth. Nothing is answered or begun by it.
static pane_request turn_over(lesson_state *s, int pages)
{
    const hr_lesson_about *about = hr_lesson_tell(s->open);
    const int count = (int)(s->phase == LESSON_AFTER ? about->after.count : about->pages.count);
    const bool at_work = s->phase == LESSON_WORKS;
    const int to = at_work ? (int)s->reread - pages : (int)s->at + pages;
    if (s->phase == LESSON_ASKS || s->phase == LESSON_ANSWERS) {
        return pane_says("a question comes first: Enter goes on, and the pages can be read again behind it");
    }
    if (to < 0 || to > (at_work ? count : count - 1)) {
        return pane_says("%s", pages < 0                  ? "this is the first page"
                               : s->phase == LESSON_PAGES ? "this is the last page: Enter goes on"
                               : at_work                  ? "turn a knob here: 1 shows the Bench"
                                                          : "this is the last page: n opens the next lesson");
    }
    s->top = 0;
    s->serial++;
    *(at_work ? &s->reread : &s->at) = (uint32_t)to;
    return (pane_request){.kind = PANE_DONE};
}

// That the text takes at most: where a line is broken, words may leave a row of its own to each break.
static int rows_of(const char *text, int columns)
{
    int rows = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t bytes = strcspn(at, "\n");
        rows += 1 + ((int)bytes > columns ? (int)bytes / (columns > 8 ? columns - 8 : 1) : 0);
        at += bytes + (at[bytes] == '\n');
    }
    return rows;
}

static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    if (why_not_open(s) != NULL) {
        return pane_says("%s", why_not_open(s));
    }
    if (columns != 0) {
        return turn_over(s, columns);
    }
    if (s->phase == LESSON_ASKS) {
        const int last = (int)lesson_options(&hr_lesson_tell(s->open)->questions[s->at]) - 1;
        s->option = (uint32_t)layout_clamp((int)s->option + layout_clamp(rows, -last, last), 0, last);
    } else {
        const int most = rows_of(s->text, v->place.w - 2) - (v->place.h - 1);
        s->top = layout_clamp(s->top + layout_clamp(rows, -100, 100), 0, most > 0 ? most : 0);
    }
    return (pane_request){.kind = PANE_DONE};
}

static pane_request hint(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (s->open == NULL || s->phase != LESSON_WORKS) {
        return pane_says("hints are for the work of a lesson: Enter goes on to it");
    }
    const bool was_last = s->hint == HR_LESSON_HINTS;
    s->hint = was_last ? HR_LESSON_HINTS : s->hint + 1;
    if (s->hint > s->progress.hints) { // one that was shown before is not counted again
        s->progress.hints = s->hint;
        lessons_note(l);
    }
    s->reread = 0;
    if (was_last && v->focused) {
        return pane_says("that was the last hint");
    }
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_LEARN};
}

static pane_request sandbox(const pane_view *v, void *own)
{
    learn_state *l = own;
    lesson_state *s = &l->lesson;
    (void)v;
    if (s->open != NULL && s->phase == LESSON_AFTER) {
        return pane_says("the lesson is done: every knob turns now, and nothing counts any more");
    }
    if (s->open == NULL || (s->phase != LESSON_WORKS && !s->in_sandbox)) {
        return pane_says("a sandbox is left for the work of a lesson: Enter goes on to it");
    }
    s->in_sandbox = !s->in_sandbox;
    s->reread = 0;
    if (s->in_sandbox) {
        s->parked = l->feed->knobs;
        return pane_says("sandbox: turn whatever you like, nothing counts; s goes back to where you were");
    }
    pane_request r = {.kind = PANE_TURNS_ALL, .knobs = &s->parked};
    (void)snprintf(r.text, sizeof r.text, "back in the lesson, with its knobs as you left them");
    return r;
}

static pane_request next(const pane_view *v, void *own)
{
    learn_state *l = own;
    hr_err err;
    (void)v;
    if (l->lesson.open == NULL || !l->lesson.progress.done) {
        return pane_says("the next lesson opens when this one is done; Esc shows the list, which opens any");
    }
    const char *name = hr_lesson_tell(l->lesson.open)->name;
    for (size_t k = 0; k + 1 < l->lesson_count; k++) {
        if (strcmp(l->lessons[k].name, name) == 0) {
            return lesson_begin(l, l->lessons[k + 1].name, &err) == HR_OK
                       ? (pane_request){.kind = PANE_FOCUSES, .pane = PANE_LESSON}
                       : pane_says("%s", err.sentence);
        }
    }
    return pane_says("that was the last lesson");
}

// ---- drawing --------------------------------------------------------------------------------------------------

static const char *key_of(const lesson_state *s)
{
    static const char *const keys[] = {[LESSON_PAGES] = "Enter goes on · Esc list",
                                       [LESSON_ASKS] = "Enter answers · Esc list",
                                       [LESSON_ANSWERS] = "Enter goes on · Esc list",
                                       [LESSON_WORKS] = "h hint · s sandbox · ← pages · Esc list",
                                       [LESSON_AFTER] = "n next lesson · Esc list"};
    return keys[s->phase];
}

static role role_of_line(const char *line)
{
    return strncmp(line, "  yes ", 6) == 0  ? ROLE_GOOD
           : strncmp(line, "  NO ", 5) == 0 ? ROLE_WARN
           : strncmp(line, " > ", 3) == 0   ? ROLE_SELECT
                                            : ROLE_TEXT;
}

// Where a row of goals goes on in the next row of the screen: below its words.
static int indent_of(const char *line)
{
    return strncmp(line, "  yes ", 6) == 0 || strncmp(line, "  NO  ", 6) == 0 ||
                   strncmp(line, "  -   ", 6) == 0
               ? 6
               : (int)strspn(line, " ");
}

static int draw_hanging(const canvas *words, int y, const char *line)
{
    const int indent = indent_of(line);
    char head[8];
    (void)snprintf(head, sizeof head, "%.*s", indent, line);
    canvas rest = canvas_sub(words, y, indent, words->area.h - y, words->area.w - indent);
    paint_text(words, y, 0, indent, role_of_line(line), head);
    return paint_wrapped(&rest, 0, role_of_line(line), line + strlen(head));
}

// A page stands as it was written; what was put together here is broken where the screen ends.
static void draw_page(const canvas *c, const lesson_state *s)
{
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    int y = -s->top;
    for (const char *at = s->text; *at != '\0' && y < words.area.h;) {
        char line[TABLE_CELL_MAX];
        const size_t bytes = strcspn(at, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)bytes, at);
        const bool is_indented = strncmp(line, "  ", 2) == 0, is_long = (int)strlen(line) > words.area.w;
        if (y >= 0 && is_long && (!is_indented || s->phase == LESSON_WORKS)) {
            y += draw_hanging(&words, y, line);
        } else {
            if (y >= 0) {
                paint_text(&words, y, 0, words.area.w, role_of_line(line), line);
            }
            y++;
        }
        at += bytes + (at[bytes] == '\n');
    }
}

static const hr_lesson_entry *selected(const learn_state *l)
{
    const size_t row = table_selected(l->lesson_table);
    return row < l->lesson_count && l->lessons[row].title[0] != '\0' ? &l->lessons[row] : NULL;
}

// Beside the list: what the selected one is about and what was done of it, and the way back to what is open.
static void draw_small(const canvas *c, const learn_state *l)
{
    canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    const hr_lesson_entry *entry = selected(l);
    int y = paint_wrapped(&words, 0, ROLE_TEXT,
                          entry != NULL
                              ? entry->line
                              : "A lesson is a situation that does not do what is wanted. Enter opens one.");
    const hr_lesson_progress *p = entry == NULL ? NULL : &l->progress[entry - l->lessons];
    if (p != NULL && p->done && y < words.area.h) {
        y += paint_format(&words, y, 0, words.area.w, ROLE_GOOD, "done, %u turned, %u hint%s", p->turned,
                          p->hints, p->hints == 1 ? "" : "s") > 0;
    }
    if (l->lesson.open != NULL && y < words.area.h) {
        paint_format(&words, y, 0, words.area.w, ROLE_DIM, "6 goes on with %s",
                     hr_lesson_tell(l->lesson.open)->title);
    }
}

static void draw(const canvas *c, const pane_view *v)
{
    const learn_state *l = v->rows;
    const lesson_state *s = &l->lesson;
    const bool is_page = v->focused && s->open != NULL;
    const hr_lesson_entry *entry = selected(l);
    char title[96] = "lesson";
    if (is_page || entry != NULL) {
        (void)snprintf(title, sizeof title, "lesson · %s%s",
                       is_page ? hr_lesson_tell(s->open)->title : entry->title,
                       is_page && s->in_sandbox ? " · SANDBOX" : "");
    }
    paint_rule(c, v->focused, title, is_page ? key_of(s) : "");
    if (is_page) {
        draw_page(c, s);
    } else {
        draw_small(c, l);
    }
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const learn_state *l = v->rows;
    (void)snprintf(text, PANE_TEXT_MAX, "%.*s", PANE_TEXT_MAX - 1,
                   l->lesson.open == NULL ? "No lesson is open: Enter in the list opens one."
                                          : l->lesson.text);
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    const learn_state *l = v->rows;
    (void)snprintf(text, size, "%s", l->lesson.text);
    return l->lesson.open != NULL;
}

const pane_ops pane_lesson = {.draw = draw,
                              .settle = settle,
                              .move = move,
                              .enter = enter,
                              .enter_does = "go on",
                              .hint = hint,
                              .sandbox = sandbox,
                              .next = next,
                              .say = say,
                              .copy = copy,
                              .term = "lesson"};
